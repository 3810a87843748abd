//! Compares the runtime's own perf map of the same run, and its own stack traces, with traces.

mod workload;

use std::collections::{BTreeMap, HashMap};
use std::io::Cursor;
use std::sync::Arc;

use chronosym::{
    BodyView, Certainty, Evidence, Filter, NameReason, Options, Position, ProcessIndex, Resolver,
    Session, Timeline,
};
use chronosym_events::OptimizationTier;

use workload::{Report, Trace, bytes, check, gunzip, open, session};

/// Reads a trace, with its perf map if that is wanted.
fn read_into(mut session: Session, trace: &str, with_map: bool) -> Arc<Timeline> {
    let bytes = bytes(&format!("{trace}.nettrace.zip"));
    chronosym::source::nettrace::read(Cursor::new(bytes), &mut session).expect("a trace");
    if with_map {
        let pid = session.facts().process_id.expect("a process");
        session.perf_map(pid, gunzip(&format!("{trace}.perf.map.gz")).as_bytes());
    }
    session.finish()
}

fn read(trace: &str, with_map: bool) -> Arc<Timeline> {
    read_into(Session::new(Options::default()), trace, with_map)
}

fn managed(timeline: &Timeline) -> ProcessIndex {
    let mut processes = timeline.processes().filter(|p| p.is_managed);
    processes.next().expect("a managed process").index
}

fn is_jitted(body: &BodyView<'_>) -> bool {
    use OptimizationTier::{PreJIT, ReadyToRun};
    body.tier
        .is_some_and(|tier| !matches!(tier, PreJIT | ReadyToRun))
}

#[test]
fn every_jitted_body_is_in_the_perf_map() {
    for trace in [
        "clr10/traces/all",
        "clr10/traces/attach",
        "clr10/traces/entry",
        "clr10/traces/norundown",
        "clr10/traces/reuse",
        "clr10/traces/rich",
        "clr31/live/traces/full",
        "clr31/workload/traces/all",
        "clr31/workload/traces/reuse",
    ] {
        let timeline = read(trace, true);
        let diagnostics = timeline.diagnostics();
        let bad_rows = diagnostics.iter().find(|it| it.text.contains("perf map"));
        assert_eq!(bad_rows, None, "{trace}");
        let process = managed(&timeline);
        let (mut compared, mut faults) = (0, Vec::new());
        for body in timeline.bodies(process).filter(is_jitted) {
            compared += 1;
            let rows = timeline.untimed_at(process, body.start);
            let same = rows.iter().any(|row| {
                (row.start, row.last) == (body.start, body.start + body.size - 1)
                    && row.name == body.name
            });
            if !same {
                faults.push(format!("{body:?}: {rows:?}"));
            }
        }
        println!("{trace}: {compared} bodies");
        assert!(
            faults.is_empty(),
            "{trace}: {} of {compared}:\n{}",
            faults.len(),
            faults[..faults.len().min(20)].join("\n")
        );
        assert!(compared > 300, "{trace}: only {compared}");
    }
}

const NO_RUNDOWN: &str = "clr10/traces/norundown";

/// Calls `each` with each frame of each sample of a timeline: the frame, its position, and its
/// time.
fn frames(timeline: &Arc<Timeline>, mut each: impl FnMut(&chronosym::Frame, Position, u64)) {
    let mut resolver = Resolver::new(timeline, None);
    timeline.for_each_sample(&Filter::default(), |class, time| {
        let stack = resolver.resolve(class, time).expect("a stack").0;
        for (depth, id) in resolver.stack(stack).enumerate() {
            let position = if depth == 0 && class.kind.leaf_position() == Position::Exact {
                Position::Exact
            } else {
                Position::Return
            };
            each(resolver.frame(id), position, time);
        }
    });
}

// Rule 18.
#[test]
fn a_perf_map_names_code_missing_in_the_rundown() {
    let bare = read(NO_RUNDOWN, false);
    let full = read(NO_RUNDOWN, true);
    let process = managed(&full);
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    frames(&full, |frame, position, time| {
        let without = bare
            .frames(process, frame.address, time, position, None)
            .pop()
            .expect("a frame");
        let call = frame.address - u64::from(position == Position::Return);
        let known = !full.untimed_at(process, call).is_empty();
        let kind = if without.name().is_ok() {
            // Names proved by events stay: the map has no times.
            assert_eq!(frame, &without);
            assert_ne!(frame.evidence, Some(Evidence::PerfMap));
            "proven"
        } else {
            assert_eq!(without.name().err(), Some(NameReason::NoRundown));
            if known {
                assert!(frame.name().is_ok(), "{frame:?}");
                assert_eq!(frame.evidence, Some(Evidence::PerfMap));
                assert_eq!(frame.certainty, Some(Certainty::Inferred));
                "by the map"
            } else {
                assert_eq!(frame, &without);
                "unknown"
            }
        };
        *counts.entry(kind).or_default() += 1;
    });
    println!("{counts:?}");
    assert!(counts["proven"] > 1_000 && counts["by the map"] > 1_000);
}

#[test]
fn names_from_the_perf_map_are_the_truth() {
    let timeline = read_into(session(), NO_RUNDOWN, true);
    let trace = Trace::new(timeline, &bytes(&format!("{NO_RUNDOWN}.nettrace.zip")));
    let mut report = Report::default();
    check(&trace, 1, &mut report);
    println!(
        "{} frames, {} without a name",
        report.frames,
        report.unnamed.len()
    );
    assert!(report.wrong.is_empty(), "{}", report.wrong.join("\n"));
    for (reason, text) in &report.unnamed {
        // Precompiled code is in no perf map.
        assert_eq!(*reason, NameReason::NoRundown, "{text}");
        assert!(text.contains(": System."), "{text}");
    }
    assert!(report.frames - report.unnamed.len() as u64 > 500);
}

/// Precompiled methods by name and signature, with their sizes, as the rundowns of other runs of
/// that runtime list them.
fn precompiled_sizes() -> HashMap<(String, String), u64> {
    let mut sizes = HashMap::new();
    for run in ["all", "attach", "entry", "reuse"] {
        let timeline = read(&format!("clr10/traces/{run}"), false);
        let listed = |b: &BodyView<'_>| !is_jitted(b) && !b.is_cold;
        for body in timeline.bodies(managed(&timeline)).filter(listed) {
            if let (Some(name), Some(signature)) = (body.name, body.signature) {
                sizes.insert((name, signature.to_owned()), body.size);
            }
        }
    }
    sizes
}

#[test]
fn entry_points_without_sizes_name_the_right_method() {
    let sizes = precompiled_sizes();
    let timeline = read(NO_RUNDOWN, false);
    let (mut right, mut faults) = (0, Vec::new());
    frames(&timeline, |frame, position, _| {
        if frame.evidence != Some(Evidence::EntryPoint) {
            return;
        }
        assert_eq!(frame.certainty, Some(Certainty::Approximate));
        let name = frame.name().unwrap_or_default().to_owned();
        let signature = frame.signature().unwrap_or_default().to_owned();
        let offset = frame.offset.expect("an offset") - u64::from(position == Position::Return);
        match sizes.get(&(name, signature)) {
            Some(&size) if offset < size => right += 1,
            size => faults.push(format!("{:?}+{offset} of {size:?}", frame.name())),
        }
    });
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(right > 20, "only {right}");
}

/// `Return Name[T](Arguments)` → `Name`.
fn method_of(text: &str) -> &str {
    let head = text.split(['(', '[']).next().unwrap_or_default();
    head.rsplit(' ').next().unwrap_or_default()
}

// Rule 13.
#[test]
fn il_maps_give_the_runtimes_own_offsets() {
    for trace in ["full", "minimal", "attach"] {
        let trace = format!("clr31/live/traces/{trace}");
        let timeline = read(&trace, false);
        let process = managed(&timeline);
        let mut bodies: HashMap<(u32, String), Vec<BodyView<'_>>> = HashMap::new();
        for body in timeline.bodies(process) {
            let name = open(body.name.as_deref().unwrap_or_default());
            bodies.entry((body.token, name)).or_default().push(body);
        }
        let truth = gunzip(&format!("{trace}.truth.tsv.gz"));
        let (mut right, mut faults) = (0, Vec::new());
        for line in truth.lines() {
            let parts: Vec<&str> = line.split('\t').collect();
            let number = |i: usize| -> i64 { parts[i].parse().expect("a number") };
            let name = format!("{}.{}", open(parts[2]), method_of(parts[3]));
            let (token, il, native) = (number(4) as u32, number(5), number(6) as u64);
            if parts[2] == "Live.Native" {
                // A P/Invoke: no IL, and code in a stub only.
                assert_eq!(il, -1);
                continue;
            }
            let Some(bodies) = bodies.get(&(token, name)) else {
                faults.push(format!("no body: {line}"));
                continue;
            };
            // Of several tiers, the one whose code is meant: the runtime states no address, and
            // looks up raw offsets.
            let mapped = bodies.iter().filter(|b| b.il_map_entries.is_some());
            let answers: Vec<_> = mapped
                .filter(|b| native < b.size)
                .filter_map(|b| {
                    let address = b.start + native;
                    let time = b.lifetime.from;
                    let mut frames = timeline.frames(process, address, time, Position::Exact, None);
                    frames.pop()?.il_offset
                })
                .collect();
            if answers.iter().any(|a| i64::from(a.offset) == il) {
                right += 1;
            } else if bodies.iter().any(is_jitted) {
                faults.push(format!("{answers:?}: {line}"));
            }
        }
        println!("{trace}: {right}");
        assert!(
            faults.is_empty(),
            "{trace}: {} faults\n{}",
            faults.len(),
            faults[..faults.len().min(20)].join("\n")
        );
        assert!(right > 1_000, "{trace}: only {right}");
    }
}
