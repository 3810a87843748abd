//! Records .NET programs with EventPipe and `perf record` at once, and compares the names of
//! compiled code with the runtime's own perf map, and source lines with those of EventPipe alone.
//!
//! `CHRONOSYM_DOTNET_8` is the path of a `dotnet` host of .NET 8, and `CHRONOSYM_SINGLE_FILES` has
//! programs with a runtime inside.
#![cfg(target_os = "linux")]

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::sync::Arc;

use chronosym::symbols::{StoreConfig, SymbolOptions, Symbolizer};
use chronosym::{
    BodyView, Code, Evidence, Filter, Frame, Input, Opener, Options, Position, ProcessIndex,
    Timeline, UntimedView,
};
use chronosym_conformance::perf_record;
use chronosym_events::OptimizationTier;
use libtest_mimic::{Arguments, Failed, Trial};

const EVENTS: &str =
    "Microsoft-Windows-DotNETRuntime:20038:5,Microsoft-Windows-DotNETRuntimeRundown:20038:5";

fn workload() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/clr31/workload")
}

fn main() -> ExitCode {
    let host = std::env::var_os("CHRONOSYM_DOTNET_8");
    let is_ignored = host.is_none();
    let run = move || {
        let program = workload().join("Workload.dll");
        let command = [host.ok_or("no host")?, program.into(), "4".into()];
        agrees(&command, 20)
    };
    let mut cases = vec![Trial::test("dotnet_8", run).with_ignored_flag(is_ignored)];
    let programs = std::env::var_os("CHRONOSYM_SINGLE_FILES").unwrap_or_default();
    for program in std::env::split_paths(&programs) {
        // Of the one with .NET 8, `dotnet_8` says enough.
        let folders = program
            .ancestors()
            .filter_map(|folder| folder.file_name()?.to_str());
        let mut newer = folders.filter(|name| name.starts_with("azure-mcp"));
        let Some(name) = newer.next().map(str::to_owned) else {
            continue;
        };
        let command = [program.clone().into(), "--help".into()];
        cases.push(Trial::test(name, move || agrees(&command, 0)));
    }
    libtest_mimic::run(&Arguments::from_args(), cases).exit_code()
}

/// Records a program, and compares; at least `lines` frames must have a line of C#.
fn agrees(command: &[OsString], lines: u64) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    let mut perf = perf_record("cpu-clock");
    perf.args(["-F", "499", "-g", "-o"]);
    perf.arg(folder.join("perf.data")).arg("--").args(command);
    let variables = [
        ("SYSTEM_GLOBALIZATION_INVARIANT", "1".into()),
        ("ROLL_FORWARD", "Major".into()),
        ("PerfMapEnabled", "1".into()),
        ("PerfMapJitDumpPath", folder.as_os_str().to_owned()),
        ("EnableEventPipe", "1".into()),
        ("EventPipeOutputPath", folder.join("app.nettrace").into()),
        ("EventPipeConfig", EVENTS.into()),
    ];
    for (name, value) in variables {
        perf.env(format!("DOTNET_{name}"), value);
    }
    let output = perf.env("TMPDIR", folder).stdin(Stdio::null()).output();
    let output = match output {
        Err(error) if std::env::var_os("CHRONOSYM_REQUIRE_TOOLS").is_none() => {
            println!("skipped: perf is missing: {error}");
            return Ok(());
        }
        output => output?,
    };
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("perf_event_open") || said.contains("perf_event_paranoid") {
        println!("skipped: the kernel refuses perf_event_open: {said}");
        return Ok(());
    }
    compare(folder, lines).map_err(|error| format!("{error:?}: {said}").into())
}

fn compare(folder: &Path, least_lines: u64) -> Result<(), Failed> {
    let files = std::fs::read_dir(folder)?
        .flatten()
        .map(|entry| entry.path());
    let map = files.into_iter().find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("perf-") && name.ends_with(".map")
    });
    let (data, events) = (folder.join("perf.data"), folder.join("app.nettrace"));
    let (joined, pid) = open([&data, &events, &map.ok_or("the runtime wrote no perf map")?])?;
    let (alone, pid_alone) = open([&events])?;
    let recordings = &joined.facts().recordings;
    let of_events = recordings.iter().find(|it| it.name.ends_with(".nettrace"));
    let of_events = of_events.ok_or("the nettrace is not joined")?;
    if of_events.error_ns != 0 {
        return Err(format!("{of_events:?}").into());
    }
    let later_ns = start_of(&events)?.saturating_sub(first_of(&data)?);
    let symbols = {
        let mut config = StoreConfig::new();
        config.folders = vec![workload()];
        Symbolizer::new(config, SymbolOptions::default())
    };
    let bodies: BTreeMap<_, _> = joined.bodies(pid).map(|body| (body.index, body)).collect();
    let (mut named, mut lines, mut unlisted) = (0, 0, 0);
    let (mut seen, mut faults) = (HashSet::new(), Vec::new());
    for (addresses, time, leaf) in stacks(&joined, pid) {
        let mut position = leaf;
        for (depth, &address) in addresses.iter().enumerate() {
            if depth > 0 {
                position = Position::Return;
            }
            let frames = joined.frames(pid, address, time, position, Some(&symbols));
            let Some(Code::Body(_, index)) = frames.last().map(|host| host.code) else {
                continue;
            };
            let body = &bodies[&index];
            if !is_jitted(body) {
                continue;
            }
            named += 1;
            if !seen.insert((address, index, position == leaf)) {
                continue;
            }
            let rows = joined.untimed_at(pid, body.start);
            let is_row = |row: &UntimedView| {
                let range = (body.start, body.start + body.size - 1);
                (row.start, row.last) == range && is_name(row.name.as_deref(), body.name.as_deref())
            };
            let is_row = rows.iter().any(is_row);
            // Rows have no times, and that of a dynamic method may be the one of the next method
            // at its address.
            let is_dynamic = body.token & 0x00ff_ffff == 0;
            // The runtime's map lacks a row now and then.
            let is_unlisted = is_dynamic || rows.is_empty();
            unlisted += usize::from(!is_row && is_unlisted);
            let own_name = frames.last().and_then(|host| host.name().ok());
            if !is_row && !is_unlisted || own_name != body.name.as_deref() {
                faults.push(format!(
                    "{address:#x} at {time}: {body:?}, in the map: {rows:?}"
                ));
            }
            // The runtime stops recording events before its last methods run.
            let is_recorded = frames
                .last()
                .is_some_and(|host| host.evidence != Some(Evidence::JitDump));
            let Some(own_time) = time.checked_sub(later_ns).filter(|_| is_recorded) else {
                continue;
            };
            let of_alone = alone.frames(pid_alone, address, own_time, position, Some(&symbols));
            lines += frames.iter().filter(|frame| frame.line.is_ok()).count() as u64;
            if lines_of(&frames) != lines_of(&of_alone) {
                let (ours, theirs) = (lines_of(&frames), lines_of(&of_alone));
                faults.push(format!(
                    "{address:#x} at {time}: {ours:?}, alone {theirs:?}"
                ));
            }
        }
    }
    println!("{named} frames of compiled code as in the perf map, {lines} with a line");
    if !faults.is_empty() {
        let first = &faults[..faults.len().min(10)];
        return Err(format!("{} faults: {first:#?}", faults.len()).into());
    }
    if unlisted > seen.len() / 50 {
        let all = seen.len();
        return Err(format!("{unlisted} frames of {all} are not in the map").into());
    }
    if named < 200 || lines < least_lines {
        return Err("too few to compare".into());
    }
    Ok(())
}

fn open<const N: usize>(paths: [&PathBuf; N]) -> Result<(Arc<Timeline>, ProcessIndex), Failed> {
    let inputs = paths.map(|path| Input::file(path.clone()));
    let (timeline, _) = Opener::new().open(inputs)?.timeline(Options::default())?;
    let managed = timeline.processes().find(|process| process.is_managed);
    let managed = managed.ok_or("no process has a runtime")?.index;
    Ok((timeline, managed))
}

/// The clock at the start of a nettrace.
fn start_of(path: &Path) -> Result<u64, Failed> {
    let reader = chronosym_nettrace::Reader::new(File::open(path)?, Default::default())?;
    Ok(reader.header().qpc_start.try_into()?)
}

/// The clock at the first record of a perf.data.
fn first_of(path: &Path) -> Result<u64, Failed> {
    let mut reader = chronosym_perf::Reader::open(File::open(path)?, Default::default())?;
    while let Some(record) = reader.next_record()? {
        if let Some(time) = record.time_ns {
            return Ok(time);
        }
    }
    Err("no record has a time".into())
}

/// The sampled stacks of a process, each with its time and the position of its leaf.
fn stacks(timeline: &Arc<Timeline>, pid: ProcessIndex) -> Vec<(Vec<u64>, u64, Position)> {
    let mut stacks = Vec::new();
    timeline.for_each_sample(&Filter::default(), |class, time| {
        let process = timeline
            .thread_view(class.thread)
            .map(|thread| thread.process);
        if process == Some(pid) {
            let addresses = timeline.stacks().addresses(class.stack).collect();
            stacks.push((addresses, time, class.kind.leaf_position()));
        }
    });
    stacks
}

fn is_jitted(body: &BodyView<'_>) -> bool {
    use OptimizationTier::{PreJIT, ReadyToRun};
    body.tier
        .is_some_and(|tier| !matches!(tier, PreJIT | ReadyToRun))
}

/// Returns whether a row of the perf map has the name of a body. The runtime drops the last
/// character of some names there.
fn is_name(row: Option<&str>, body: Option<&str>) -> bool {
    let (Some(row), Some(body)) = (row, body) else {
        return false;
    };
    let cut = body.char_indices().next_back().map(|(at, _)| &body[..at]);
    row == body || Some(row) == cut
}

/// Names and lines of C# of the frames at an address.
fn lines_of(frames: &[Frame]) -> Vec<String> {
    let text = |frame: &Frame| match &frame.line {
        Ok(line) => format!("{:?} {}:{}", frame.name(), line.file, line.line),
        Err(_) => format!("{:?}", frame.name()),
    };
    frames.iter().map(text).collect()
}
