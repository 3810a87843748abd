//! Saved timelines resolve like their traces: every frame of every sample of every available trace.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use chronosym::source::EventStream;
use chronosym::source::nettrace::NettraceStream;
use chronosym::{
    DeltaReader, Frame, FrameId, Input, LiveSession, MergeError, Opener, ResolvedStack, Resolver,
    SampleClass, SampleSelection, SaveOptions, SavedTimeline, Session, Timeline, When, merge,
};
use chronosym_conformance::{CORPUS, TESTDATA, case, unzip};
use libtest_mimic::{Arguments, Failed, Trial};

/// Extensions of traces, also in zip files.
const TRACES: [&str; 6] = [
    ".nettrace",
    ".netperf",
    ".etl",
    ".nettrace.zip",
    ".netperf.zip",
    ".etl.zip",
];
/// The traces of the repository.
const OWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata");
/// Larger files take a debug build too long.
const LARGEST: u64 = 12 << 20;

fn main() -> ExitCode {
    let own = Path::new(OWN);
    let mut cases: Vec<Trial> = traces(own)
        .into_iter()
        .map(|path| {
            let name = path
                .strip_prefix(own)
                .unwrap_or(&path)
                .display()
                .to_string();
            Trial::test(name, move || answers_are_equal(&path))
        })
        .collect();
    for variable in [CORPUS, TESTDATA] {
        let folder = std::env::var_os(variable).map(PathBuf::from);
        for path in folder.as_deref().map(traces).unwrap_or_default() {
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            cases.push(case(variable, format!("{variable} {name}"), move |_| {
                answers_are_equal(&path)
            }));
        }
    }
    cases.push(Trial::test("merged_timelines", merged));
    libtest_mimic::run(&Arguments::from_args(), cases).exit_code()
}

/// The traces in a folder and those below it.
fn traces(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            let length = entry.metadata().map_or(0, |it| it.len());
            if path.is_dir() {
                folders.push(path);
            } else if (name == "perf.data" || TRACES.iter().any(|it| name.ends_with(it)))
                && length <= LARGEST
            {
                all.push(path);
            }
        }
    }
    all.sort();
    all
}

fn read(path: &Path) -> Result<(Arc<Timeline>, Vec<u8>), Failed> {
    let mut session = Session::new(SampleSelection::All);
    let diagnostics = Opener::new()
        .open([Input::file(path)])?
        .read(&mut session)?;
    let timeline = session.finish();
    let options = SaveOptions::new()
        .with_samples()
        .with_diagnostics(&diagnostics);
    let bytes = timeline.save(Vec::new(), &options)?;
    Ok((timeline, bytes))
}

fn answers_are_equal(path: &Path) -> Result<(), Failed> {
    let (timeline, bytes) = read(path)?;
    if path.starts_with(OWN) && path.to_string_lossy().ends_with(".nettrace.zip") {
        deltas_are_equal(path, &timeline)?;
    }
    let saved = Timeline::open(&bytes)?;
    let mut resolvers = [Resolver::new(&timeline, None), Resolver::new(&saved, None)];
    let mut equal = Equal::default();
    let samples = timeline.samples().iter().zip(saved.samples().iter());
    for ((class, time), (saved_class, saved_time)) in samples {
        let classes = [
            timeline.samples().classes()[class as usize],
            saved.samples().classes()[saved_class as usize],
        ];
        equal.compare(&mut resolvers, &classes, [time, saved_time])?;
    }
    if timeline.samples().len() != saved.samples().len() {
        return Err("samples are missing".into());
    }
    println!(
        "{}: {} frames of {} stacks",
        path.display(),
        equal.frames.len(),
        equal.stacks.len()
    );
    Ok(())
}

/// What a live session of a trace appends names what the trace names.
fn deltas_are_equal(path: &Path, timeline: &Arc<Timeline>) -> Result<(), Failed> {
    let bytes = unzip(path, ".nettrace")?;
    let mut stream = NettraceStream::new(bytes.as_slice(), Default::default())?;
    let mut live = LiveSession::new();
    live.keep_deltas();
    let mut deltas = Vec::new();
    while live
        .read_batch(|session| stream.read_batch(session))?
        .is_some()
    {
        deltas.extend(live.take_delta());
    }
    deltas.extend(live.take_delta());
    let mut session = Session::new(SampleSelection::None);
    let read = DeltaReader::new().read(&deltas, &mut session)?;
    if read < deltas.len() {
        return Err("the deltas are cut short".into());
    }
    let named = session.finish();
    let mut resolvers = [Resolver::new(timeline, None), Resolver::new(&named, None)];
    let mut equal = Equal::default();
    for (class, time) in timeline.samples().iter() {
        let class = timeline.samples().classes()[class as usize];
        let thread = timeline.thread_view(class.thread).ok_or("a thread")?;
        let pid = timeline
            .process_view(thread.process)
            .and_then(|it| it.pid)
            .ok_or("a process")?;
        let Some(process) = named.find_process(pid, Some(time)) else {
            // No event states its code, nor that it exists.
            if timeline.bodies(thread.process).next().is_some() {
                return Err(format!("no process {pid}").into());
            }
            continue;
        };
        let addresses: Vec<u64> = timeline.stacks().addresses(class.stack).collect();
        let (position, when) = (class.kind.leaf_position(), When::At(time));
        let [first, second] = &mut resolvers;
        let a = first.resolve_stack(thread.process, class.stack, when, position);
        let b = second.resolve_addresses(process, &addresses, when, position);
        let ((a, _), (b, _)) = a.zip(b).ok_or("a sample has no stack")?;
        equal.stacks_are_equal(&resolvers, [a, b], time)?;
    }
    println!("{}: {} bytes of deltas", path.display(), deltas.len());
    Ok(())
}

/// Stacks and frames of two timelines that were compared.
#[derive(Default)]
struct Equal {
    stacks: HashSet<[ResolvedStack; 2]>,
    frames: HashSet<[FrameId; 2]>,
}

impl Equal {
    fn compare(
        &mut self,
        resolvers: &mut [Resolver; 2],
        classes: &[SampleClass; 2],
        times: [u64; 2],
    ) -> Result<(), Failed> {
        let [first, second] = resolvers;
        let resolved =
            (first.resolve(&classes[0], times[0])).zip(second.resolve(&classes[1], times[1]));
        let ((a, _), (b, _)) = resolved.ok_or("a sample has no stack")?;
        self.stacks_are_equal(resolvers, [a, b], times[0])
    }

    fn stacks_are_equal(
        &mut self,
        [first, second]: &[Resolver; 2],
        [a, b]: [ResolvedStack; 2],
        time: u64,
    ) -> Result<(), Failed> {
        if !self.stacks.insert([a, b]) {
            return Ok(());
        }
        let (a, b): (Vec<FrameId>, Vec<FrameId>) =
            (first.stack(a).collect(), second.stack(b).collect());
        if a.len() != b.len() {
            return Err(format!(
                "a stack at {} ns has {} frames, not {}",
                time,
                b.len(),
                a.len()
            )
            .into());
        }
        for pair in a.into_iter().zip(b) {
            if self.frames.insert([pair.0, pair.1]) {
                let (a, b) = (text(first.frame(pair.0)), text(second.frame(pair.1)));
                if a != b {
                    return Err(format!("at {time} ns: {b}, not {a}").into());
                }
            }
        }
        Ok(())
    }
}

/// Returns all of a frame except the indices of its process and body.
fn text(frame: &Frame) -> String {
    let Frame {
        address,
        offset,
        token,
        il_offset,
        line,
        inlined,
        tier,
        evidence,
        ..
    } = frame;
    let (name, certainty, module) = (frame.name(), frame.certainty, frame.module());
    let rest = (frame.after_loss, frame.proof, frame.function.signature());
    format!(
        "{address:#x} {name:?} {module:?} {offset:?} {token:?} {il_offset:?} {line:?} {inlined} {tier:?} {evidence:?} {certainty:?} {rest:?}"
    )
}

/// Merges traces of different processes into one timeline, and rejects one that is given twice.
fn merged() -> Result<(), Failed> {
    let own = Path::new(OWN);
    let paths = [
        "clr10/traces/all.nettrace.zip",
        "clr10/traces/entry.nettrace.zip",
    ]
    .map(|it| own.join(it));
    let mut timelines = Vec::new();
    for path in &paths {
        timelines.push(read(path)?);
    }
    timelines.sort_by_key(|(it, _)| it.facts().start_unix_ns);
    let mut files = Vec::new();
    for (path, (_, bytes)) in paths.iter().zip(&timelines) {
        files.push((path.to_str().ok_or("a path")?, SavedTimeline::open(bytes)?));
    }
    let mut session = Session::new(SampleSelection::All);
    merge(&files, &mut session)?;
    let merged = session.finish();
    let zero = timelines
        .iter()
        .filter_map(|(it, _)| it.facts().start_unix_ns)
        .min();
    let mut equal = Equal::default();
    let mut all = merged.samples().iter();
    for (timeline, _) in &timelines {
        let shift = timeline
            .facts()
            .start_unix_ns
            .zip(zero)
            .map_or(0, |(start, zero)| (start - zero) as u64);
        let mut resolvers = [Resolver::new(timeline, None), Resolver::new(&merged, None)];
        equal.stacks.clear();
        equal.frames.clear();
        for ((class, time), (merged_class, merged_time)) in
            timeline.samples().iter().zip(all.by_ref())
        {
            if merged_time != time + shift {
                return Err(format!("{merged_time} ns is not {time} ns + {shift} ns").into());
            }
            let classes = [
                timeline.samples().classes()[class as usize],
                merged.samples().classes()[merged_class as usize],
            ];
            equal.compare(&mut resolvers, &classes, [time, merged_time])?;
        }
    }
    let total: u64 = timelines.iter().map(|(it, _)| it.samples().len()).sum();
    if merged.samples().len() != total {
        return Err(format!("{} samples of {total}", merged.samples().len()).into());
    }
    let twice = [
        files.remove(0),
        ("again", SavedTimeline::open(&timelines[0].1)?),
    ];
    match merge(&twice, &mut Session::new(SampleSelection::All)) {
        Err(MergeError::SameRecording { .. }) => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}
