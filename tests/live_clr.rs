//! Records the workload with a real CLR, and compares with the expected stacks in the trace.
//!
//! Needs `CHRONOSYM_DOTNET`, the path of a `dotnet` host of .NET Core 3.1 or later; ignored if that
//! is not set.

#[cfg(target_os = "linux")]
mod mapped;
mod runtime;
mod workload;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

use chronosym::NameReason;
use chronosym::source::nettrace::NettraceStream;
use chronosym::source::{EventStream, ReadError, read_live};
use runtime::{Recording, Workload, host, major};
use workload::{Report, Trace, check, read};

/// Returns what the runtime subtracts from a return address before it looks up its IL offset:
/// nothing in .NET Core 3.1.
fn caller_offset() -> u64 {
    u64::from(major() >= 5)
}

fn main() -> ExitCode {
    let case = |name: &str, run: fn() -> Result<(), Failed>| {
        Trial::test(name, run).with_ignored_flag(host().is_none())
    };
    let mut cases = vec![
        case("recorded_from_the_start", recorded_from_the_start),
        case("cut_in_the_middle_of_its_rundown", cut_in_its_rundown),
        case("buffers_too_small", buffers_too_small),
    ];
    #[cfg(unix)]
    cases.extend([
        case("streamed_from_the_start", attached::from_the_start),
        case("streamed_from_the_middle", attached::late),
        case("killed_while_streamed", attached::killed),
    ]);
    #[cfg(target_os = "linux")]
    cases.push(case("mapped_as_its_images_say", images::mapped));
    libtest_mimic::run(&Arguments::from_args(), cases).exit_code()
}

fn recorded(seconds: u32, megabytes: u32) -> Result<Vec<u8>, Failed> {
    let mut workload = Workload::start(seconds, Some(&Recording { megabytes }))?;
    workload.wait()?;
    Ok(workload.trace()?)
}

fn report(trace: &Trace) -> Report {
    let mut report = Report::default();
    check(trace, caller_offset(), &mut report);
    println!(
        "{} frames, {} IL offsets, {} without a name",
        report.frames,
        report.il,
        report.unnamed.len()
    );
    report
}

/// All frames have the right name and offsets.
fn complete(trace: &Trace, least: u64) -> Result<(), Failed> {
    let report = report(trace);
    let faults = report.faults();
    if !faults.is_empty() {
        return Err(format!("{} faults:\n{}", faults.len(), faults.join("\n")).into());
    }
    enough(&report, least)
}

/// Frames with a name have the right one; the others lack it because of what is missing from the
/// trace: the rundown, or events that could have described their code.
fn incomplete(trace: &Trace, least: u64) -> Result<(), Failed> {
    const REASONS: [NameReason; 2] = [NameReason::NoRundown, NameReason::EventsLost];
    let report = report(trace);
    let other = report.unnamed.iter().filter(|(r, _)| !REASONS.contains(r));
    let faults: Vec<&str> = report
        .wrong
        .iter()
        .chain(other.map(|(_, text)| text))
        .map(String::as_str)
        .collect();
    if !faults.is_empty() {
        return Err(format!("{} faults:\n{}", faults.len(), faults.join("\n")).into());
    }
    enough(&report, least)
}

fn enough(report: &Report, least: u64) -> Result<(), Failed> {
    let named = report.frames - report.unnamed.len() as u64;
    if named < least || report.il == 0 {
        return Err(format!("only {named} frames were compared").into());
    }
    Ok(())
}

fn recorded_from_the_start() -> Result<(), Failed> {
    let (trace, diagnostics) = read(&recorded(2, 256)?);
    if !diagnostics.list.is_empty() {
        return Err(format!("{diagnostics:?}").into());
    }
    complete(&trace, 40)
}

/// How many methods the rundown at the end lists.
fn listed(bytes: &[u8]) -> Result<u64, Failed> {
    let mut reader = chronosym_nettrace::Reader::new(bytes, Default::default())?;
    let mut count = 0;
    while let Some(region) = reader.next_region()? {
        for record in region.records() {
            let event_type = region.event_type(record.event_type).ok_or("a type")?;
            let is_rundown = event_type.provider == "Microsoft-Windows-DotNETRuntimeRundown";
            count += u64::from(is_rundown && event_type.id == 144);
        }
    }
    Ok(count)
}

fn cut_in_its_rundown() -> Result<(), Failed> {
    let bytes = recorded(2, 256)?;
    let all = listed(&bytes)?;
    let mut cuts = 0;
    for part in 1..32 {
        let cut = &bytes[..bytes.len() / 32 * part];
        let some = listed(cut)?;
        if some == 0 || some == all {
            continue;
        }
        cuts += 1;
        println!("{some} of {all} methods listed");
        let (trace, diagnostics) = read(cut);
        if diagnostics.list.is_empty() {
            return Err("nothing says that the trace is cut short".into());
        }
        incomplete(&trace, 20)?;
    }
    if cuts == 0 {
        return Err("no cut fell into the rundown".into());
    }
    Ok(())
}

fn buffers_too_small() -> Result<(), Failed> {
    let (trace, diagnostics) = read(&recorded(6, 2)?);
    if diagnostics.lost_events() == 0 {
        return Err("nothing was lost".into());
    }
    incomplete(&trace, 1)
}

#[cfg(unix)]
mod attached {
    use std::io::{self, Read};
    use std::path::Path;
    use std::time::Duration;

    use chronosym::Diagnostics;
    use chronosym::{EventTypeInfo, LiveSession, Timeline};

    use super::*;
    use crate::runtime::{ipc, wait_for};

    /// Why a recording failed.
    enum Stop {
        /// .NET Core 3.1 hangs or crashes now and then when a session starts or stops.
        Silent,
        Failed(Failed),
    }

    impl From<io::Error> for Stop {
        fn from(error: io::Error) -> Self {
            if ipc::is_silent(&error) {
                Stop::Silent
            } else {
                Stop::Failed(error.into())
            }
        }
    }

    impl From<String> for Stop {
        fn from(error: String) -> Self {
            Stop::Failed(error.into())
        }
    }

    /// Tries again when the runtime hangs or crashes.
    fn patiently(record: impl Fn() -> Result<(), Stop>) -> Result<(), Failed> {
        for _ in 0..3 {
            match record() {
                Ok(()) => return Ok(()),
                Err(Stop::Failed(failed)) => return Err(failed),
                Err(Stop::Silent) => println!("the runtime hangs or crashes"),
            }
        }
        Err("the runtime hung or crashed three times".into())
    }

    /// Keeps a copy of the bytes read.
    struct Tee<'a, R> {
        from: R,
        copy: &'a mut Vec<u8>,
        /// The runtime hung or crashed.
        silent: &'a mut bool,
    }

    impl<R: Read> Read for Tee<'_, R> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let result = self.from.read(into);
            *self.silent |= result.as_ref().is_err_and(ipc::is_silent);
            let count = result?;
            self.copy.extend_from_slice(&into[..count]);
            Ok(count)
        }
    }

    /// Returns whether code of the workload has names, and an expected stack to compare with was
    /// read.
    fn has_answers(timeline: &Timeline) -> bool {
        let truth = |t: &EventTypeInfo| t.label() == "Workload-Truth/1" && t.count >= 40;
        let is_own = |name: String| name.starts_with("Workload.") || name.starts_with("dynamic");
        timeline.event_types().iter().any(truth)
            && timeline
                .processes()
                .any(|p| timeline.bodies(p.index).any(|b| b.name.is_some_and(is_own)))
    }

    /// Records a workload and resolves meanwhile; `end` is called when there are results.
    fn record(
        workload: &mut Workload,
        end: impl FnOnce(&mut Workload, &Path, u64) -> io::Result<()>,
    ) -> Result<(Vec<u8>, Diagnostics), Stop> {
        let mut recording = ipc::attach(workload)?;
        let (mut copy, mut silent) = (Vec::new(), false);
        let mut live = LiveSession::new();
        let reader = live.reader();
        let (answered, ended, read_result) = std::thread::scope(|scope| {
            let reading = scope.spawn(|| {
                let tee = Tee {
                    from: &mut recording.stream,
                    copy: &mut copy,
                    silent: &mut silent,
                };
                let mut stream = NettraceStream::new(tee, Default::default())?;
                read_live(&mut stream, &mut live)?;
                Ok::<_, ReadError>(stream.diagnostics())
            });
            let answered = wait_for("an answer while recording", || {
                let answers = has_answers(&reader.timeline());
                (answers || reading.is_finished()).then_some(answers)
            });
            let ended = end(workload, &recording.socket, recording.id);
            (answered, ended, reading.join())
        });
        ended?;
        if silent {
            return Err(Stop::Silent);
        }
        let diagnostics = read_result
            .map_err(|_| "the reader panicked".to_owned())?
            .map_err(|e| e.to_string())?;
        if !answered? {
            return Err("the recording ended without an answer".to_owned().into());
        }
        Ok((copy, diagnostics))
    }

    pub fn from_the_start() -> Result<(), Failed> {
        patiently(|| streamed(Duration::ZERO))
    }

    /// Most methods are known only from the rundown at the end.
    pub fn late() -> Result<(), Failed> {
        patiently(|| streamed(Duration::from_secs(3)))
    }

    fn streamed(delay: Duration) -> Result<(), Stop> {
        let mut workload = Workload::start(60, None)?;
        std::thread::sleep(delay);
        let (bytes, diagnostics) = record(&mut workload, |_, socket, id| ipc::stop(socket, id))?;
        if !diagnostics.list.is_empty() {
            return Err(format!("{diagnostics:?}").into());
        }
        complete(&read(&bytes).0, 100).map_err(Stop::Failed)
    }

    pub fn killed() -> Result<(), Failed> {
        patiently(|| {
            let mut workload = Workload::start(60, None)?;
            let (bytes, _) = record(&mut workload, |workload, _, _| {
                workload.kill().map_err(io::Error::other)
            })?;
            incomplete(&read(&bytes).0, 1).map_err(Stop::Failed)
        })
    }
}

#[cfg(target_os = "linux")]
mod images {
    //! Where a runtime maps its precompiled images, and the names that the images then have for its
    //! methods.

    use std::collections::BTreeMap;
    use std::path::Path;

    use chronosym::symbols::{StoreConfig, SymbolOptions, Symbolizer};
    use chronosym::{Evidence, Position};
    use chronosym_events::OptimizationTier;
    use libtest_mimic::Failed;

    use crate::mapped::{self, MappedFile};
    use crate::runtime::{Recording, Workload, wait_for};
    use crate::workload::read;

    const CORE: &str = "/System.Private.CoreLib.dll";

    /// The `.dll` files that a process has mapped now, as /proc has them.
    fn files_of(pid: u32) -> Option<Vec<MappedFile>> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
        let mut pieces: BTreeMap<&str, Vec<(u64, u64, u64)>> = BTreeMap::new();
        for line in text.lines().filter(|line| line.ends_with(".dll")) {
            let path = &line[line.find('/')?..];
            let mut words = line.split_whitespace();
            let (start, end) = words.next()?.split_once('-')?;
            let hex = |text| u64::from_str_radix(text, 16).ok();
            let offset = hex(words.nth(1)?)?;
            pieces
                .entry(path)
                .or_default()
                .push((hex(start)?, hex(end)?, offset));
        }
        let files = pieces.into_iter().filter_map(|(path, pieces)| {
            Some(MappedFile {
                path: path.to_owned(),
                metadata: mapped::metadata(&std::fs::read(path).ok()?)?,
                pieces,
            })
        });
        Some(files.collect())
    }

    /// Each mapping is one of the file on disk, and the images and the runtime name addresses
    /// alike.
    pub fn mapped() -> Result<(), Failed> {
        let mut workload = Workload::start(6, Some(&Recording { megabytes: 256 }))?;
        let mut before = Vec::new();
        let files = wait_for("the runtime's images", || {
            let files = files_of(workload.pid())?;
            // Not while one is being mapped.
            let pieces: Vec<_> = files.iter().map(|file| file.pieces.clone()).collect();
            let is_steady = std::mem::replace(&mut before, pieces.clone()) == pieces;
            let core = files.iter().find(|file| file.path.ends_with(CORE))?;
            // Headers and sections; the program's own module is loaded last.
            let is_loaded = files.iter().any(|file| file.path.ends_with("/PluginA.dll"));
            (core.pieces.len() > 3 && is_loaded && is_steady).then_some(files)
        })?;
        workload.wait()?;
        let (recorded, _) = read(&workload.trace()?);
        let runtime = recorded.timeline.processes().find(|p| p.is_managed);
        let runtime = runtime.ok_or("no process")?.index;

        let mut config = StoreConfig::new();
        let folder = |file: &MappedFile| Path::new(&file.path).parent().map(Path::to_owned);
        config.folders = files.iter().filter_map(folder).collect();
        config.folders.sort();
        config.folders.dedup();
        let symbols = Symbolizer::new(config, SymbolOptions::default());
        let (timeline, process) = mapped::trace(&files);
        for image in timeline.images(process).map(|view| view.image) {
            let file = symbols.image_symbols(&image);
            if let Err(reason) = file.found {
                return Err(format!("{:?}: {reason}", image.path).into());
            }
        }
        let mut same = 0;
        for body in recorded.timeline.bodies(runtime) {
            let is_precompiled = body.tier == Some(OptimizationTier::ReadyToRun)
                && body.token >> 24 == 6
                && body.size > 0;
            let Some(name) = body.name.filter(|_| is_precompiled) else {
                continue;
            };
            let at = body.start + body.size / 2;
            let frames = timeline.frames(process, at, 1_000_000, Position::Exact, Some(&symbols));
            let frame = &frames[0];
            let is_mapped = |file: &MappedFile| {
                let mut pieces = file.pieces.iter();
                pieces.any(|&(start, end, _)| (start..end).contains(&at))
            };
            if !files.iter().any(is_mapped) {
                continue;
            }
            if (frame.name().ok(), frame.evidence) != (Some(&name), Some(Evidence::ImageTable)) {
                return Err(format!("{name} is {frame:?}").into());
            }
            same += 1;
        }
        println!("{} files, {same} precompiled methods", files.len());
        if same < 500 {
            return Err(format!("only {same} precompiled methods").into());
        }
        Ok(())
    }
}
