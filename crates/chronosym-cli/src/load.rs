//! Reads traces into a timeline.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use chronosym::open::{SymbolEntries, read_perf_map};
use chronosym::{
    Diagnostic, DiagnosticKind, Diagnostics, Filter, Options, ProcessIndex, ProcessView, ReadError,
    SavedTimeline, Session, Timeline,
};

use chronosym_export::Pattern;
use chronosym_symbols::mmap::FileData;
use chronosym_types::escape;

use crate::args::{self, AddressQuery, Filters, Symbols, Usage};
use crate::units::show_time;
use crate::{absent, exported, input, interrupt, limits};

/// A trace and its timeline.
pub struct Loaded {
    pub timeline: Arc<Timeline>,
    /// Defects of the trace.
    pub diagnostics: Diagnostics,
    /// Symbol files in the zip archive that contains the trace.
    pub symbol_entries: SymbolEntries,
    /// The folders that contain the traces.
    pub folders: Vec<PathBuf>,
}

impl Drop for Loaded {
    /// Leaves the timeline to the end of the process: freeing its parts one by one takes longer.
    fn drop(&mut self) {
        std::mem::forget(Arc::clone(&self.timeline));
    }
}

/// Reads traces into a timeline; the options select what it stores apart from code.
pub fn load(paths: &[PathBuf], options: impl Into<Options>, symbols: &Symbols) -> Result<Loaded> {
    let mut options = options.into();
    options.few_lookups = true;
    let mut session = Session::new(options);
    let (symbol_entries, mut diagnostics) = match exported::read(paths, &mut session)? {
        Some(diagnostics) => (SymbolEntries::default(), diagnostics),
        None => {
            let recording = input::open(paths, symbols)?;
            let symbol_entries = recording.symbol_entries();
            interrupt::make(|| symbol_entries.folder(), |folder| *folder)
                .context("cannot make a folder for symbol files")?;
            (symbol_entries, recording.read(&mut session)?)
        }
    };
    let mut strange = Vec::new();
    for map in &symbols.perf_map {
        strange.extend(add_perf_map(map, &mut session)?);
    }
    let timeline = session.finish();
    for pid in strange {
        let processes = known_processes(&timeline);
        let text = format!(
            "a perf map of process id {pid} is not used: the trace has no such process; it has {processes}"
        );
        diagnostics.push(Diagnostic::new(DiagnosticKind::Unused, text));
    }
    diagnostics.list.extend(timeline.diagnostics());
    Ok(Loaded {
        timeline,
        diagnostics,
        symbol_entries,
        folders: folders(paths),
    })
}

/// Rejects a saved timeline for reports about events.
pub fn refuse_without_events(timeline: &Timeline) -> Result<()> {
    if timeline.facts().lacks_events {
        bail!(ReadError::NoEvents);
    }
    Ok(())
}

/// Quotes paths for a shell.
pub fn shell_words(paths: &[PathBuf]) -> String {
    let words = paths
        .iter()
        .map(|path| escape::shell(&path.to_string_lossy()).into_owned());
    words.collect::<Vec<_>>().join(" ")
}

/// Returns whether a file is a saved timeline. A pipe is none: what is read of it would be lost.
pub fn is_saved(path: &Path) -> bool {
    let mut head = [0; 16];
    let mut read = || File::open(path).and_then(|mut file| file.read_exact(&mut head));
    path.is_file() && read().is_ok() && SavedTimeline::is_saved(&head)
}

/// Reads the part of a saved timeline that resolves some addresses; `None` if the file is not one.
pub fn part(path: &Path, query: &AddressQuery, addresses: &[u64]) -> Result<Option<Loaded>> {
    if !is_saved(path) {
        return Ok(None);
    }
    let bytes = FileData::map(path)?;
    let pid = query.pid.map(|(pid, _)| pid);
    let part = SavedTimeline::open(&bytes)
        .and_then(|saved| saved.timeline_of(pid, query.time_ns(), addresses, query.position()));
    let part = part.with_context(|| format!("cannot read {}", path.display()))?;
    let (timeline, mut diagnostics) = part;
    diagnostics.list.extend(timeline.diagnostics());
    Ok(Some(Loaded {
        timeline,
        diagnostics,
        symbol_entries: SymbolEntries::default(),
        folders: folders(&[path.to_owned()]),
    }))
}

/// Returns the folders of files; a pipe has none.
fn folders(paths: &[PathBuf]) -> Vec<PathBuf> {
    let files = paths.iter().filter(|path| path.is_file());
    let folder = |path: &PathBuf| match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Some(PathBuf::from(".")),
        folder => folder.map(Path::to_owned),
    };
    let mut folders: Vec<PathBuf> = files.filter_map(folder).collect();
    folders.dedup();
    folders
}

/// Adds a perf map given as `FILE` for the trace's only process, or as `PID=FILE`. Returns the pid
/// if the trace has no such process.
fn add_perf_map(argument: &Path, session: &mut Session) -> Result<Option<u32>> {
    let (said, path) = args::perf_map(argument);
    let text = argument.display();
    let own = session.facts().process_id;
    let Some(pid) = said.or(own).or_else(|| pid_in_name(argument)) else {
        bail!("{text}: the process of this perf map is unknown; use --perf-map PID={text}");
    };
    let text = read_perf_map(path, &limits::get())?;
    if own != Some(pid) && !session.has_process(pid) {
        return Ok(Some(pid));
    }
    session.perf_map(pid, &text);
    Ok(None)
}

/// Returns the pid in `perf-PID.map`.
fn pid_in_name(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    name.strip_prefix("perf-")?.split('.').next()?.parse().ok()
}

/// Returns the filter for the options; a process that is not in the trace is an error.
pub fn filter(filters: &Filters, timeline: &Timeline) -> Result<Filter> {
    let mut filter = Filter::default();
    filter.pid = filters.pid;
    filter.process = filters
        .process
        .as_deref()
        .map(|name| process_name(name, timeline))
        .transpose()?;
    filter.from_ns = filters.from;
    filter.to_ns = filters.to;
    if let Some(pid) = filter.pid {
        with_pid(timeline, pid)?;
    }
    if let Some(name) = &filter.process
        && !timeline
            .processes()
            .any(|p| filter.has_process(timeline, p.index))
    {
        let id = filter.pid.map(|(pid, _)| format!(" with id {pid}"));
        bail!(
            "the trace has no process '{name}'{}; it has {}",
            id.unwrap_or_default(),
            known_processes(timeline)
        );
    }
    Ok(filter)
}

/// Returns the name of the processes that a pattern selects: the pattern itself if it is one.
fn process_name(pattern: &str, timeline: &Timeline) -> Result<String> {
    let names = timeline.processes().filter_map(|process| process.name);
    let names: Vec<&str> = names.collect();
    if names.iter().any(|name| name.eq_ignore_ascii_case(pattern)) {
        return Ok(pattern.to_owned());
    }
    let matches = Pattern::new(pattern).map_err(|error| Usage(error.to_string()))?;
    let matching: BTreeSet<&str> = names
        .into_iter()
        .filter(|name| matches.is_match(name))
        .collect();
    match matching.len() {
        0 => Ok(pattern.to_owned()),
        1 => Ok(matching.into_iter().collect()),
        _ => {
            let names = matching.into_iter().map(str::to_owned);
            bail!(
                "--process {pattern} matches several names: {}",
                absent::some(names)
            )
        }
    }
}

/// Returns the processes of a query: those with the pid, or the one with it at a time; without a
/// pid the only process.
pub fn processes(timeline: &Timeline, query: &AddressQuery) -> Result<Vec<ProcessIndex>> {
    if let Some((pid, at)) = query.pid {
        let all = with_pid(timeline, (pid, at))?;
        return Ok(match (at, query.time) {
            (None, Some(time)) => timeline.process_of(pid, time).into_iter().collect(),
            _ => all,
        });
    }
    let managed: Vec<_> = timeline.processes().filter(|p| p.is_managed).collect();
    let all: Vec<_> = timeline.processes().filter(|p| p.pid != Some(0)).collect();
    match (managed.as_slice(), all.as_slice()) {
        ([only], _) | ([], [only]) => Ok(vec![only.index]),
        _ => bail!(Usage(format!(
            "several processes: select one with --pid; the trace has {}",
            known_processes(timeline)
        ))),
    }
}

/// Returns the processes with an id, or the one that had it at a time.
fn with_pid(timeline: &Timeline, (pid, at): (u32, Option<u64>)) -> Result<Vec<ProcessIndex>> {
    let mut filter = Filter::default();
    filter.pid = Some((pid, at));
    let meant = timeline
        .processes()
        .filter(|p| filter.has_process(timeline, p.index));
    let meant: Vec<_> = meant.map(|p| p.index).collect();
    if !meant.is_empty() {
        return Ok(meant);
    }
    let lives = lives_of(timeline, pid);
    match (at, lives.as_slice()) {
        (Some(at), [_, ..]) => bail!(
            "no process had the id {pid} at {}; processes with this id: {}",
            show_time(at),
            lives.join(", ")
        ),
        _ => bail!(
            "the trace has no process id {pid}; it has {}",
            known_processes(timeline)
        ),
    }
}

/// Describes the processes with an id and their lifetimes, for error messages.
pub fn lives_of(timeline: &Timeline, pid: u32) -> Vec<String> {
    let of_pid = timeline.processes().filter(|p| p.pid == Some(pid));
    let life = |p: ProcessView<'_>| {
        let from = p.start_ns.map_or("before".to_owned(), show_time);
        let to = p.end_ns.map_or("after".to_owned(), show_time);
        format!("{} {from}..{to}", p.name.unwrap_or("unnamed"))
    };
    of_pid.map(life).collect()
}

/// Lists the first processes of a trace, for error messages.
pub fn known_processes(timeline: &Timeline) -> String {
    let all: Vec<_> = timeline.processes().collect();
    let name = |p: &ProcessView<'_>| match (p.name, p.pid) {
        (None, Some(pid)) => format!("unnamed ({pid})"),
        _ => p.label(),
    };
    match all.len() {
        0 => "no process at all".to_owned(),
        _ => absent::some(all.iter().map(name)),
    }
}
