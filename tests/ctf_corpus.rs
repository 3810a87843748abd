//! Compares LTTng traces and texts of perf with the output of other readers.

use std::collections::BTreeMap;
use std::io::{Cursor, Read as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use chronosym::{Filter, Options, Position, Timeline};
use chronosym_conformance::{CORPUS, TESTDATA, case};
use chronosym_perf::script;
use libtest_mimic::{Arguments, Failed};

fn main() -> ExitCode {
    let mut cases = vec![
        case(CORPUS, "clr_only_has_the_events_of_babeltrace", clr_only),
        case(CORPUS, "clr_only_as_a_timeline", timeline_of_clr_only),
    ];
    for name in ["net8", "net10"] {
        cases.push(case(
            TESTDATA,
            format!("the_text_of_{name}_has_the_names_that_perf_printed"),
            move |folder| printed_names(&folder.join("perf").join(name).join("perf-script.txt.gz")),
        ));
    }
    libtest_mimic::run(&Arguments::from_args(), cases).exit_code()
}

fn check(holds: bool, why: impl Into<String>) -> Result<(), Failed> {
    if holds {
        Ok(())
    } else {
        Err(why.into().into())
    }
}

/// A reader of the traces in a zip file.
fn unzipped(path: &Path) -> Result<chronosym_ctf::Reader<Cursor<Vec<u8>>>, Failed> {
    const METADATA: [u8; 4] = [0x57, 0x1d, 0xd1, 0x75];
    const STREAM: [u8; 4] = [0xc1, 0x1f, 0xfc, 0xc1];
    let mut archive = zip::ZipArchive::new(std::fs::File::open(path)?)?;
    let (mut traces, mut streams) = (Vec::new(), Vec::new());
    for at in 0..archive.len() {
        let mut bytes = Vec::new();
        archive.by_index(at)?.read_to_end(&mut bytes)?;
        if bytes.starts_with(&METADATA) {
            traces.push(chronosym_ctf::Metadata::parse(&bytes, Default::default())?);
        } else if bytes.starts_with(&STREAM) {
            streams.push(Cursor::new(bytes));
        }
    }
    let source = chronosym_ctf::Source { traces, streams };
    Ok(chronosym_ctf::Reader::new(source, Default::default())?)
}

fn clr_only(corpus: &Path) -> Result<(), Failed> {
    let mut reader = unzipped(&corpus.join("clr-only.trace.zip"))?;
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let (mut first, mut last) = (None, 0);
    while let Some(event) = reader.next_event()? {
        first.get_or_insert(event.ticks);
        assert!(event.time_ns >= last);
        last = event.time_ns;
        *counts.entry(event.event_type.name.clone()).or_default() += 1;
        if let Some(chronosym_ctf::Value::Bytes(data)) = event.fields.get("__data__") {
            let length = event.fields.get("length").and_then(|it| it.as_u64());
            assert_eq!(length, Some(data.len() as u64), "{}", event.event_type.name);
        }
    }
    check(first == Some(9_934_866_181_367), format!("{first:?}"))?;
    check(
        counts.values().sum::<u64>() == 32_762,
        format!("{counts:?}"),
    )?;
    for (name, count) in [
        ("EventSource", 19_905),
        ("MethodJittingStarted_V1", 3_113),
        ("MethodLoadVerbose_V1", 3_043),
        ("MethodLoadVerbose_V2", 70),
        ("ModuleLoad_V2", 202),
    ] {
        let found = counts.get(&format!("DotNETRuntime:{name}"));
        check(found == Some(&count), format!("{name}: {found:?}"))?;
    }
    // 18 of user space, 8 empty ones of the kernel.
    let diagnostics = reader.diagnostics();
    check(
        diagnostics.is_clean() && diagnostics.packets == 26,
        format!("{diagnostics:?}"),
    )
}

fn timeline_of_clr_only(corpus: &Path) -> Result<(), Failed> {
    let recording = chronosym::open(corpus.join("clr-only.trace.zip"))?;
    let (timeline, diagnostics) = recording.timeline(Options::default())?;
    check(
        diagnostics.list.is_empty(),
        format!("{:?}", diagnostics.list),
    )?;
    let (mut bodies, mut modules) = (0, 0);
    for process in timeline.processes() {
        bodies += timeline.bodies(process.index).count();
        modules += timeline.modules(process.index).count();
        let runtime = process.runtimes.first();
        check(
            runtime.is_some_and(|it| it.contains("3.1.1")),
            format!("{runtime:?}"),
        )?;
    }
    check(
        (bodies, modules) == (3_113, 202),
        format!("{bodies}, {modules}"),
    )
}

/// Each frame of each sample is called as it was printed.
fn printed_names(path: &Path) -> Result<(), Failed> {
    let (timeline, diagnostics): (Arc<Timeline>, _) =
        chronosym::open(path)?.timeline(Options::default())?;
    check(
        diagnostics.list.is_empty(),
        format!("{:?}", diagnostics.list),
    )?;
    let mut found: Vec<(u64, u64, Vec<Option<String>>)> = Vec::new();
    timeline.for_each_sample(&Filter::default(), |class, time| {
        let thread = timeline.thread_view(class.thread).expect("it has one");
        let mut position = class.kind.leaf_position();
        let names = timeline.stacks().addresses(class.stack).map(|address| {
            let frames = timeline.frames(thread.process, address, time, position, None);
            position = Position::Return;
            frames[0].name().ok().map(str::to_owned)
        });
        found.push((time / 1_000, thread.tid, names.collect()));
    });
    let text = std::fs::File::open(path)?;
    let mut reader = script::Reader::new(flate2::read::GzDecoder::new(text), Default::default())?;
    let (mut expected, mut began_ns) = (Vec::new(), None);
    while let Some(sample) = reader.next_sample()? {
        let began_ns = *began_ns.get_or_insert(sample.time_ns);
        let names: Vec<Option<String>> = sample
            .frames()
            .map(|frame| frame.symbol.map(str::to_owned))
            .collect();
        expected.push((
            (sample.time_ns - began_ns) / 1_000,
            u64::from(sample.tid),
            names,
        ));
    }
    found.sort();
    expected.sort();
    check(
        found.len() == expected.len(),
        format!("{} samples", found.len()),
    )?;
    let (mut named, mut others) = (0, 0);
    for ((time, tid, ours), (their_time, their_tid, theirs)) in found.iter().zip(&expected) {
        check(
            (time, tid) == (their_time, their_tid),
            format!("{time} {tid}"),
        )?;
        for (ours, theirs) in ours.iter().zip(theirs) {
            match (ours, theirs) {
                (None, None) => {}
                // The runtime's text is parsed, which leaves the method's name.
                (Some(ours), Some(theirs)) => {
                    let method = ours.rsplit('.').next().unwrap_or(ours);
                    let is_same = theirs.contains(method);
                    named += u64::from(is_same);
                    others += u64::from(!is_same);
                }
                _ => return Err(format!("{ours:?} for {theirs:?}").into()),
            }
        }
    }
    // Two methods at one address in succession: a symbol without a time names the later one.
    check(
        named > 6_000 && others * 100 < named,
        format!("{named} named, {others} otherwise"),
    )
}
