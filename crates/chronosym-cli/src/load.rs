//! From the command line's trace to a timeline.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use chronosym::{Filter, Options, ProcessIndex, SampleSelection, Session, Timeline};

use crate::args::{self, EventFilters, Filters, Symbols, Usage};
use crate::recording::{self, Recording};
use crate::salvage::Notes;
use crate::units::show_time;

/// A trace that was read.
pub struct Loaded {
    pub timeline: Arc<Timeline>,
    /// What was damaged, lost or not understood, in words.
    pub notes: Vec<String>,
    pub lost_events: u64,
    /// Whether a file ends in the middle.
    pub is_cut_short: bool,
}

/// Reads traces into a timeline; `samples` says whose stacks are kept.
pub fn load(paths: &[PathBuf], samples: SampleSelection, symbols: &Symbols) -> Result<Loaded> {
    let mut session = Session::new(Options { samples });
    let damage = Notes::default();
    let mut notes;
    let lost_events;
    let is_cut_short;
    match recording::open(paths, &damage)? {
        Recording::Nettrace(source, name) => {
            let read = chronosym::source::nettrace::read(source, &mut session);
            let diagnostics = read.context(name)?;
            lost_events = diagnostics.lost_events();
            is_cut_short = diagnostics.truncation.is_some();
            notes = nettrace_notes(&diagnostics);
        }
        Recording::Etl(reader) => {
            let report = chronosym::source::etl::read(*reader, &mut session);
            lost_events = report.diagnostics.events_lost;
            is_cut_short =
                report.diagnostics.truncated_buffers > 0 || report.diagnostics.unread_bytes > 0;
            notes = etl_notes(&report);
        }
    }
    notes.splice(0..0, damage.take());
    let mut strange = Vec::new();
    for map in &symbols.perf_map {
        strange.extend(read_perf_map(map, &mut session)?);
    }
    let timeline = session.finish();
    notes.extend(strange.iter().map(|pid| {
        let known = known_processes(&timeline);
        format!("a perf map of process id {pid} is not used: the trace has no such process; it has {known}")
    }));
    notes.extend(session_notes(&timeline));
    Ok(Loaded {
        timeline,
        notes,
        lost_events,
        is_cut_short,
    })
}

/// `FILE` for the trace's only process, or `PID=FILE`. The pid is returned if the trace has no such process.
fn read_perf_map(argument: &Path, session: &mut Session) -> Result<Option<u32>> {
    let (said, path) = args::perf_map(argument);
    let text = argument.display();
    let own = session.facts().process_id;
    let Some(pid) = said.or(own).or_else(|| pid_in_name(argument)) else {
        bail!("{text}: which process is this perf map of? Say --perf-map PID={text}");
    };
    let trace = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let bytes = if trace.starts_with(&[0x1f, 0x8b]) {
        let mut plain = Vec::new();
        let mut decoder = flate2::read::MultiGzDecoder::new(trace.as_slice());
        std::io::Read::read_to_end(&mut decoder, &mut plain)
            .with_context(|| format!("{} is a damaged gzip file", path.display()))?;
        plain
    } else {
        trace
    };
    if own != Some(pid) && !session.has_process(pid) {
        return Ok(Some(pid));
    }
    session.perf_map(pid, &bytes);
    Ok(None)
}

/// The pid of `perf-PID.map`.
fn pid_in_name(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    name.strip_prefix("perf-")?.split('.').next()?.parse().ok()
}

/// The selection that `--event` makes.
pub fn selection(filters: &EventFilters) -> SampleSelection {
    match filters.event.as_slice() {
        [] => SampleSelection::Profilers,
        events => SampleSelection::Events(events.to_vec()),
    }
}

/// The filter that the options make; a process that the trace does not know is an error.
pub fn filter(filters: &Filters, timeline: &Timeline) -> Result<Filter> {
    let filter = Filter {
        pid: filters.pid,
        process: filters.process.clone(),
        from_ns: filters.from,
        to_ns: filters.to,
        ..Filter::default()
    };
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

/// The processes that a command asks about: those that had the pid, of which a time tells which is meant; or the only one.
pub fn processes(
    timeline: &Timeline,
    pid: Option<(u32, Option<u64>)>,
    time: Option<u64>,
) -> Result<Vec<ProcessIndex>> {
    if let Some((pid, at)) = pid {
        let all = with_pid(timeline, (pid, at))?;
        return Ok(match (at, time) {
            (None, Some(time)) => timeline.process_of(pid, time).into_iter().collect(),
            _ => all,
        });
    }
    let managed: Vec<_> = timeline.processes().filter(|p| p.is_managed).collect();
    let all: Vec<_> = timeline.processes().filter(|p| p.pid != Some(0)).collect();
    match (managed.as_slice(), all.as_slice()) {
        ([only], _) | ([], [only]) => Ok(vec![only.index]),
        _ => bail!(Usage(format!(
            "which process? Say --pid; the trace has {}",
            known_processes(timeline)
        ))),
    }
}

/// The processes that had an id, or the one that had it at a time.
fn with_pid(timeline: &Timeline, (pid, at): (u32, Option<u64>)) -> Result<Vec<ProcessIndex>> {
    let filter = Filter {
        pid: Some((pid, at)),
        ..Filter::default()
    };
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
            "no process had the id {pid} at {}; those that had it: {}",
            show_time(at),
            lives.join(", ")
        ),
        _ => bail!(
            "the trace has no process id {pid}; it has {}",
            known_processes(timeline)
        ),
    }
}

/// The processes that had an id, and when, for error messages.
pub fn lives_of(timeline: &Timeline, pid: u32) -> Vec<String> {
    let of_pid = timeline.processes().filter(|p| p.pid == Some(pid));
    let life = |p: chronosym::ProcessView<'_>| {
        let from = p.start_ns.map_or("before".to_owned(), show_time);
        let to = p.end_ns.map_or("after".to_owned(), show_time);
        format!("{} {from}..{to}", p.name.unwrap_or("unnamed"))
    };
    of_pid.map(life).collect()
}

/// The first processes of a trace, for error messages.
pub fn known_processes(timeline: &Timeline) -> String {
    const SHOWN: usize = 8;
    let all: Vec<_> = timeline.processes().collect();
    let mut names: Vec<String> = all
        .iter()
        .take(SHOWN)
        .map(|p| match (p.name, p.pid) {
            (None, Some(pid)) => format!("unnamed ({pid})"),
            _ => p.label(),
        })
        .collect();
    match all.len() {
        0 => "no process at all".to_owned(),
        n if n > SHOWN => {
            names.push(format!("{} more", n - SHOWN));
            names.join(", ")
        }
        _ => names.join(", "),
    }
}

/// What a reader of nettrace and netperf found wrong, in words.
pub fn nettrace_notes(d: &chronosym_nettrace::Diagnostics) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(cut) = d.truncation {
        notes.push(format!(
            "the trace is cut short at byte {}: {} bytes of an unfinished part were dropped, all before them is used",
            cut.at_offset, cut.bytes_lost
        ));
    }
    if d.lost_events() > 0 {
        notes.push(format!(
            "the runtime dropped {} events on {} threads",
            d.lost_events(),
            d.losses.len()
        ));
    }
    let counted = [
        (d.bad_records, "records make no sense and were left out"),
        (d.bad_blocks, "blocks are damaged"),
        (d.bad_bytes, "bytes of records and blocks could not be used"),
        (d.unknown_blocks, "blocks are of an unknown kind"),
        (
            d.unknown_metadata,
            "events have a type that was never defined",
        ),
        (d.unknown_stacks, "events name a stack that is not there"),
        (d.unknown_threads, "events name a thread that is not there"),
        (d.unknown_labels, "events name labels that are not there"),
        (
            d.unreadable_fields,
            "event types have a field that cannot be read",
        ),
        (
            d.unknown_options,
            "options of event types and threads are of an unknown kind",
        ),
        (
            d.forced_regions,
            "times the events were too many to be put in order as a whole",
        ),
        (d.trailing_bytes, "bytes follow the end of the trace"),
    ];
    notes.extend(
        counted
            .iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, what)| format!("{n} {what}")),
    );
    notes
}

fn etl_notes(report: &chronosym::source::etl::EtlReport) -> Vec<String> {
    let mut notes = etl_reader_notes(&report.diagnostics);
    if report.undefined_stack_keys > 0 {
        let n = report.undefined_stack_keys;
        notes.push(format!("{n} stack keys were never defined"));
    }
    if report.unreadable_descriptions > 0 {
        let n = report.unreadable_descriptions;
        notes.push(format!("{n} descriptions of event types cannot be read"));
    }
    if report.late_stack_parts > 0 {
        let n = report.late_stack_parts;
        notes.push(format!(
            "{n} parts of stacks came more than 2 s after their event and were left out"
        ));
    }
    notes
}

/// What a reader of .etl found wrong, in words.
pub fn etl_reader_notes(d: &chronosym_etl::Diagnostics) -> Vec<String> {
    let counted = [
        (d.events_lost, "events were lost while recording"),
        (d.buffers_lost, "buffers were lost while recording"),
        (
            d.buffers_with_lost_events,
            "buffers are marked: events around them were lost",
        ),
        (
            d.buffers_after_lost_buffer,
            "buffers are marked: a buffer before them was lost",
        ),
        (
            d.lost_event_records,
            "times a real-time consumer was too slow and events were lost",
        ),
        (
            d.truncated_buffers,
            "buffers are cut off at the end of the file",
        ),
        (d.damaged_compression, "compressed buffers are damaged"),
        (
            d.damaged_buffers,
            "buffers end in something that is no record",
        ),
        (d.dropped_bytes, "bytes could not be read as records"),
        (d.damaged_headers, "buffer headers are damaged"),
        (d.skipped_bytes, "bytes between buffers are part of none"),
        (d.unread_bytes, "bytes at the end of the file are no buffer"),
        (d.read_errors, "reads of the file failed"),
        (
            d.clamped_times,
            "records are from before the start or from long after the end, and were moved there",
        ),
        (
            d.unordered_buffers,
            "buffers had records out of the order of time, which were sorted",
        ),
        (
            d.late_records,
            "records could not be put in the order of time",
        ),
    ];
    counted
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!("{n} {what}"))
        .collect()
}

fn session_notes(timeline: &Timeline) -> Vec<String> {
    let mut notes = Vec::new();
    let diagnostics = timeline.diagnostics();
    for (id, error, count) in &diagnostics.undecodable {
        let label = timeline.event_types()[id.index()].label();
        notes.push(format!("{count} {label} events do not decode: {error}"));
    }
    let counted = [
        (timeline.unbound_il_maps(), "IL maps belong to no code body"),
        (
            diagnostics.unbound_inline_trees,
            "inline trees belong to no code body",
        ),
        (
            diagnostics.bad_perf_map_rows,
            "perf map lines are not of the form START SIZE name",
        ),
        (
            diagnostics.unknown_event_types,
            "events are of a type that was never registered",
        ),
        (
            diagnostics.stacks_dropped,
            "stacks were dropped: too many distinct frames",
        ),
    ];
    notes.extend(
        counted
            .iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, what)| format!("{n} {what}")),
    );
    notes
}
