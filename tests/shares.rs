//! The percentages of named frames in real traces of others, and their evidence.

use std::collections::BTreeMap;
use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use chronosym::{
    Diagnostics, Evidence, Filter, Frame, NameReason, Options, Resolver, Session, Timeline,
};
use chronosym_conformance::{CORPUS, case, unzip};
use libtest_mimic::{Arguments, Failed};

fn main() -> ExitCode {
    let cases = vec![
        case(CORPUS, "macos_samples_of_jitted_code", macos),
        case(CORPUS, "arm32_samples", arm32),
        case(CORPUS, "samples_without_a_rundown", without_rundown),
        case(CORPUS, "samples_of_a_native_process", native_process),
        case(CORPUS, "stacks_of_a_rundown_are_not_advised", only_rundown),
    ];
    libtest_mimic::run(&Arguments::from_args(), cases).exit_code()
}

fn read(bytes: &[u8]) -> Result<Arc<Timeline>, Failed> {
    let mut session = Session::new(Options::default());
    let diagnostics = chronosym::source::nettrace::read(Cursor::new(bytes), &mut session)?;
    if !diagnostics.list.is_empty() {
        return Err(format!("{diagnostics:?}").into());
    }
    Ok(session.finish())
}

fn zipped(corpus: &Path, name: &str) -> Result<Arc<Timeline>, Failed> {
    read(&unzip(
        &corpus.join(format!("{name}.nettrace.zip")),
        ".nettrace",
    )?)
}

/// Counts of the frames of all samples, by evidence and reason.
#[derive(Debug, Default)]
struct Shares {
    samples: u64,
    frames: u64,
    named: BTreeMap<Evidence, u64>,
    unnamed: BTreeMap<NameReason, u64>,
    with_il: u64,
}

impl Shares {
    fn of(timeline: &Arc<Timeline>, mut each: impl FnMut(&Frame)) -> Self {
        let mut shares = Shares::default();
        let mut resolver = Resolver::new(timeline, None);
        timeline.for_each_sample(&Filter::default(), |class, time| {
            shares.samples += 1;
            let stack = resolver.resolve(class, time).expect("a stack").0;
            for id in resolver.stack(stack) {
                let frame = resolver.frame(id);
                each(frame);
                shares.frames += 1;
                shares.with_il += u64::from(frame.il_offset.is_some());
                match (frame.evidence, frame.name().err()) {
                    (_, Some(reason)) => *shares.unnamed.entry(reason).or_default() += 1,
                    (Some(evidence), None) => *shares.named.entry(evidence).or_default() += 1,
                    (None, None) => {}
                }
            }
        });
        println!("{shares:?}");
        shares
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), Failed> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what}: {found:?}, not {expected:?}").into())
}

/// Every frame is in a jitted method with an IL map.
fn macos(corpus: &Path) -> Result<(), Failed> {
    let shares = Shares::of(&zipped(corpus, "only_managed_samples")?, |_| {});
    same("samples", shares.samples, 7_423)?;
    same("named", shares.named, [(Evidence::DCEnd, 27_273)].into())?;
    same("with IL offset", shares.with_il, 27_273)?;
    same("unnamed", shares.unnamed, BTreeMap::new())
}

/// Thumb code, although the trace does not state that the machine is an arm32: every address in a
/// stack is odd.
fn arm32(corpus: &Path) -> Result<(), Failed> {
    let timeline = zipped(corpus, "VoiceMemo.23092")?;
    same("machine", &timeline.facts().machine, &None)?;
    let (mut thumb, mut odd) = (0, 0);
    let shares = Shares::of(&timeline, |frame| {
        thumb += frame.address & 1;
        odd += frame.offset.unwrap_or(0) & 1;
    });
    same("samples", shares.samples, 947)?;
    same("Thumb addresses", thumb, 12_206)?;
    same("offsets that still have the Thumb bit", odd, 0)?;
    // No code was ever loaded at the other addresses.
    same("named", shares.named, [(Evidence::DCEnd, 12_120)].into())?;
    let unnamed = [(NameReason::NoCodeAtAddress, 86)].into();
    same("unnamed", shares.unnamed, unnamed)?;
    same("with IL offset", shares.with_il, 32)
}

/// A crashed process: 53 methods compiled during the recording, 1,547 entry points of precompiled
/// ones.
fn without_rundown(corpus: &Path) -> Result<(), Failed> {
    let name = "eventpipe-dotnetcore3.0-win-x64-objver4";
    let shares = Shares::of(&zipped(corpus, name)?, |_| {});
    same("samples", shares.samples, 35_161)?;
    same("frames", shares.frames, 539_953)?;
    let of = |evidence| shares.named.get(&evidence).copied().unwrap_or(0);
    same("frames in loaded code", of(Evidence::Load), 34_372)?;
    // All other frames are precompiled code known by entry points only. Recording started with the
    // process, so most of the code that ran was looked up in the meantime.
    let by_entry = of(Evidence::EntryPoint);
    if by_entry * 100 < shares.frames * 90 {
        return Err(format!("only {by_entry} frames by entry points").into());
    }
    let reasons: Vec<&NameReason> = shares.unnamed.keys().collect();
    same("reasons", reasons, vec![&NameReason::NoRundown])
}

/// A recording of a machine: a native process whose symbols are in the trace.
fn native_process(corpus: &Path) -> Result<(), Failed> {
    let timeline = read(&fs::read(corpus.join("record-trace.v6.nettrace"))?)?;
    let shares = Shares::of(&timeline, |_| {});
    same("samples", shares.samples, 1_507)?;
    same("frames", shares.frames, 15_406)?;
    let named = [(Evidence::ProcessSymbol, 13_899)].into();
    same("named", shares.named, named)?;
    // One frame of each sample: its image is known, but has no symbol for that address.
    let unnamed = [(NameReason::NoSymbolFile, 1_507)].into();
    same("unnamed", shares.unnamed, unnamed)
}

/// Of events with stacks, the summary of a trace without samples names those of the program.
fn only_rundown(corpus: &Path) -> Result<(), Failed> {
    let path = corpus.join("eventpipe-dotnetcore2.1-linux-x64-objver3.netperf.zip");
    let timeline = read(&unzip(&path, ".netperf")?)?;
    let profile = timeline.profile(&Filter::default(), None);
    let summary = chronosym_export::TraceSummary::new(&profile, &Diagnostics::default());
    let text = summary.sentences("app.netperf").join(" ");
    match text.contains("stacks --event 'System.Threading.Tasks.TplEventSource/25'") {
        true => Ok(()),
        false => Err(text.into()),
    }
}
