//! A live session resolves while events arrive, and after the last one like a frozen timeline.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chronosym::facts::{At, Method, Sample};
use chronosym::source::EventStream;
use chronosym::source::nettrace::NettraceStream;
use chronosym::{
    Action, Filter, LiveSession, Options, Position, ProcessIndex, SampleKind, Session, Timeline,
};
use chronosym_conformance::script;
use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::payload::universal;
use chronosym_support::trace::{FieldKind, TraceInfo, TypeSpec};

fn read_live(bytes: impl AsRef<[u8]> + Send, live: &mut LiveSession) {
    let stream = NettraceStream::new(Cursor::new(bytes), Default::default());
    chronosym::source::read_live(&mut stream.expect("a trace"), live).expect("a trace");
}

/// Returns the only process of a synthetic trace.
fn process_of(timeline: &Timeline) -> ProcessIndex {
    timeline
        .find_process(script::PID, None)
        .expect("the process")
}

fn offline(bytes: &[u8]) -> Arc<Timeline> {
    let mut session = Session::new(Options::default());
    chronosym::source::nettrace::read(Cursor::new(bytes), &mut session).expect("a trace");
    session.finish()
}

/// Returns every sampled address with its time and its position in the stack.
fn questions(timeline: &Timeline) -> BTreeSet<(u32, u64, u64, bool)> {
    let mut questions = BTreeSet::new();
    timeline.for_each_sample(&Filter::default(), |class, time| {
        let thread = timeline.thread_view(class.thread).expect("a thread");
        let process = timeline.process_view(thread.process);
        let pid = process.and_then(|process| process.pid);
        let pid = pid.expect("a process id");
        for (depth, address) in timeline.stacks().addresses(class.stack).enumerate() {
            questions.insert((
                pid,
                address,
                time,
                depth == 0 && class.kind.leaf_position() == Position::Exact,
            ));
        }
    });
    questions
}

fn position(exact: bool) -> Position {
    if exact {
        Position::Exact
    } else {
        Position::Return
    }
}

fn compare(trace: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../testdata")
        .join(trace);
    let bytes = chronosym_conformance::unzip(&path, ".nettrace").expect("a trace in a zip");
    compare_bytes(trace, &bytes);
}

fn compare_bytes(trace: &str, bytes: &[u8]) {
    let frozen = offline(bytes);
    let mut live = LiveSession::new();
    let reader = live.reader();
    read_live(bytes, &mut live);
    live.finish();
    let now = reader.timeline();
    let questions = questions(&frozen);
    assert!(!questions.is_empty(), "{trace} has no samples");
    for (pid, address, time, exact) in questions {
        let ask = |timeline: &Timeline| {
            let process = timeline.find_process(pid, Some(time)).expect("the process");
            timeline.frames(process, address, time, position(exact), None)
        };
        assert_eq!(ask(&now), ask(&frozen), "{trace}: {address:#x} at {time}");
        let process = now.find_process(pid, Some(time)).expect("the process");
        assert!(!now.is_provisional(process, address, time, position(exact)));
    }
}

macro_rules! after_the_last_event {
    ($($name:ident: $trace:literal,)*) => {$(
        #[test]
        fn $name() {
            compare($trace);
        }
    )*};
}

after_the_last_event! {
    live_is_frozen_all: "clr10/traces/all.nettrace.zip",
    live_is_frozen_reuse: "clr10/traces/reuse.nettrace.zip",
    live_is_frozen_rich: "clr10/traces/rich.nettrace.zip",
    live_is_frozen_net9: "clr10/traces/net9-rich.nettrace.zip",
    live_is_frozen_entry: "clr10/traces/entry.nettrace.zip",
    live_is_frozen_default: "clr10/traces/default.nettrace.zip",
    live_is_frozen_attach: "clr10/traces/attach.nettrace.zip",
    live_is_frozen_norundown: "clr10/traces/norundown.nettrace.zip",
    live_is_frozen_r2r: "clr10/traces/r2r.nettrace.zip",
    live_is_frozen_memory: "clr10/traces/memory.nettrace.zip",
    live_is_frozen_linux: "clr10/traces/linux.nettrace.zip",
    live_is_frozen_clr31_all: "clr31/workload/traces/all.nettrace.zip",
    live_is_frozen_clr31_reuse: "clr31/workload/traces/reuse.nettrace.zip",
    live_is_frozen_clr31_full: "clr31/live/traces/full.nettrace.zip",
    live_is_frozen_clr31_minimal: "clr31/live/traces/minimal.nettrace.zip",
    live_is_frozen_clr31_attach: "clr31/live/traces/attach.nettrace.zip",
}

/// Returns a trace of methods: one per millisecond, each at one of a few addresses, alive for 3 ms.
fn churn(methods: i64) -> Vec<u8> {
    let mut writer = NettraceWriter::v4();
    let load = writer.event_type(script::RUNTIME, 143, 2);
    let unload = writer.event_type(script::RUNTIME, 144, 2);
    let body = |n: i64| script::method(n as u64, 0x10_000 + (n as u64 % 8) * 0x100, 0x80, "Churn");
    for n in 0..methods {
        writer.event(load, n * 1_000_000, 1, &[], &body(n).encode(2));
        if n >= 3 {
            writer.event(unload, n * 1_000_000 + 1, 1, &[], &body(n - 3).encode(2));
        }
        if n % 50 == 49 {
            writer.sequence_point();
        }
    }
    writer.finish()
}

// Rule 20.
#[test]
fn answers_can_be_had_while_events_arrive() {
    let bytes = churn(2_000);
    let mut live = LiveSession::new();
    let reader = live.reader();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let (mut answers, mut last) = (0u64, 0);
            while !done.load(Ordering::Relaxed) {
                let timeline = reader.timeline();
                assert!(
                    timeline.facts().duration_ns >= last,
                    "time does not go back"
                );
                last = timeline.facts().duration_ns;
                let Some(process) = timeline.find_process(script::PID, None) else {
                    continue;
                };
                for time in [last, last / 2] {
                    let frame = timeline
                        .frames(process, 0x10_010, time, Position::Exact, None)
                        .pop();
                    answers += u64::from(frame.is_some());
                }
            }
            answers
        });
        read_live(&bytes, &mut live);
        done.store(true, Ordering::Relaxed);
        asking.join().expect("readers do not fail");
    });
    let timeline = reader.timeline();
    let process = process_of(&timeline);
    let at = |time| {
        timeline
            .frames(process, 0x10_010, time, Position::Exact, None)
            .pop()
            .and_then(|f| f.name().ok().map(str::to_owned))
    };
    assert_eq!(at(1_000_000).as_deref(), Some("T.Churn"));
    let provisional = |time| timeline.is_provisional(process, 0x10_010, time, Position::Exact);
    assert!(provisional(timeline.facts().duration_ns + 1));
    assert!(!provisional(1_000_000), "it lies before the watermark");
    assert_eq!(timeline.watermark(), timeline.facts().duration_ns);
}

#[test]
fn code_before_the_horizon_is_dropped_and_later_answers_stay() {
    let bytes = churn(2_000);
    let frozen = offline(&bytes);
    let mut live = LiveSession::new();
    read_live(&bytes, &mut live);
    let horizon = 1_000_000_000;
    let dropped = live.forget_before(horizon);
    assert!(dropped > 900, "only {dropped} bodies were dropped");
    live.finish();
    let now = live.reader().timeline();
    let (a, b) = (
        now.find_process(script::PID, None),
        frozen.find_process(script::PID, None),
    );
    let (a, b) = (a.expect("the process"), b.expect("the process"));
    let kept = frozen.bodies(b).count() - dropped;
    assert_eq!(now.bodies(a).count(), kept);
    let frames = now.frames(a, 0x10_010, 500_000_000, Position::Exact, None);
    assert_eq!(script::text(&frames[0]), "AfterUnload");
    for time in (horizon..2_000_000_000).step_by(500_000) {
        for slot in 0..8u64 {
            let address = 0x10_010 + slot * 0x100;
            let ask = |timeline: &Timeline, process| {
                timeline
                    .frames(process, address, time, Position::Exact, None)
                    .pop()
                    .and_then(|f| f.name().ok().map(str::to_owned))
            };
            assert_eq!(ask(&now, a), ask(&frozen, b), "{address:#x} at {time}");
        }
    }
}

#[test]
fn a_second_session_reports_code_from_before_the_first() {
    let mut first = NettraceWriter::v4();
    let load = first.event_type(script::RUNTIME, 143, 2);
    first.event(
        load,
        10,
        1,
        &[],
        &script::method(1, 0x1000, 64, "New").encode(2),
    );
    // It starts ten seconds later: its times are relative to that.
    let mut second = NettraceWriter::v4().info(TraceInfo {
        qpc_start: 10_001_000_000,
        ..TraceInfo::default()
    });
    let listed = second.event_type(script::RUNDOWN, 144, 2);
    let complete = second.event_type(script::RUNDOWN, 146, 1);
    second.event(
        listed,
        20,
        1,
        &[],
        &script::method(1, 0x1000, 64, "New").encode(2),
    );
    second.event(
        listed,
        20,
        1,
        &[],
        &script::method(2, 0x2000, 64, "Old").encode(2),
    );
    second.event(complete, 21, 1, &[], &[0, 0]);
    let mut live = LiveSession::new();
    for trace in [first.finish(), second.finish()] {
        read_live(trace, &mut live);
    }
    live.finish();
    let timeline = live.reader().timeline();
    let process = process_of(&timeline);
    assert_eq!(timeline.bodies(process).count(), 2);
    let name = |address| {
        timeline
            .frames(process, address, 15, Position::Exact, None)
            .pop()
            .and_then(|f| f.name().ok().map(str::to_owned))
    };
    assert_eq!(name(0x1010).as_deref(), Some("T.New"));
    assert_eq!(name(0x2010).as_deref(), Some("T.Old"));
    assert_eq!(timeline.facts().duration_ns, 10_000_000_021);
}

/// The architecture is inferred from addresses in stacks, which a live session does not keep.
// Rule 9.
#[test]
fn live_equals_frozen_if_addresses_determine_the_processor() {
    let mut w = NettraceWriter::v4().info(TraceInfo {
        pointer_size: 4,
        ..TraceInfo::default()
    });
    let load = w.event_type(script::RUNTIME, 143, 2);
    let sample = w.event_type(script::SAMPLER, 0, 0);
    let method = script::method(1, 0x1_0000, 0x1000, "Thumb");
    w.event(load, 10, 1, &[], &method.encode(2));
    for i in 0..100 {
        let stack = [0x1_0001 + 6 * i, 0x1_0801];
        w.event(sample, 20 + i as i64, 1, &stack, &[2, 0, 0, 0]);
    }
    let bytes = w.finish();
    compare_bytes("thumb", &bytes);
    let timeline = offline(&bytes);
    let process = process_of(&timeline);
    let frames = timeline.frames(process, 0x1_0001, 50, Position::Exact, None);
    assert_eq!(frames[0].offset, Some(0), "the low bit is no address");
}

/// A process with a mapping that exits at 500 ns; another continues.
fn exit() -> Vec<u8> {
    let mut w = NettraceWriter::v6();
    let number = FieldKind::VAR_U;
    let named = |id, name: &str| TypeSpec::new("Universal.System", id, 0).named(name);
    let process = w.define(
        named(0, "ExistingProcess")
            .field("NamespaceId", number.clone())
            .field("Name", FieldKind::UTF8)
            .field("NamespaceName", FieldKind::UTF8),
    );
    let exit = w.define(named(2, "ProcessExit"));
    let load = w.event_type(script::RUNTIME, 143, 2);
    let payload = universal::process(7, "Short", "");
    w.event(process, 0, 1, &[], &payload);
    let method = script::method(1, 0x1000, 64, "A");
    w.event(load, 100, 1, &[], &method.encode(2));
    w.sequence_point();
    w.event(exit, 500, 1, &[], &[]);
    w.sequence_point();
    w.event(
        load,
        2_000,
        1,
        &[],
        &script::method(2, 0x8000, 64, "B").encode(2),
    );
    w.finish()
}

#[test]
fn live_sessions_drop_the_state_of_ended_processes() {
    let bytes = exit();
    let mut live = LiveSession::new();
    read_live(&bytes, &mut live);
    let before = live.reader().timeline();
    live.finish();
    for timeline in [&*before, &*live.reader().timeline(), &offline(&bytes)] {
        let process = timeline.processes().next().expect("a process").index;
        let name = |time| {
            let frames = timeline.frames(process, 0x1010, time, Position::Exact, None);
            script::text(&frames[0])
        };
        assert_eq!(name(200), "T.A");
        assert_eq!(name(700), "AfterUnload");
        let pid = timeline.process_view(process).expect("a process").pid;
        let alive = |time| timeline.find_process(pid.expect("a pid"), Some(time));
        assert_eq!((alive(200), alive(700)), (Some(process), None));
        assert_eq!(timeline.process_of(pid.expect("a pid"), 700), Some(process));
    }
}

#[test]
fn a_return_address_is_final_only_if_its_call_is() {
    let mut live = LiveSession::new();
    let mut w = NettraceWriter::v4();
    let load = w.event_type(script::RUNTIME, 143, 2);
    w.event(
        load,
        100,
        1,
        &[],
        &script::method(1, 0x5000, 64, "Next").encode(2),
    );
    read_live(w.finish(), &mut live);
    live.advance(150);
    live.publish();
    let timeline = live.reader().timeline();
    let process = process_of(&timeline);
    let provisional = |address, position| timeline.is_provisional(process, address, 120, position);
    assert!(!provisional(0x5000, Position::Exact));
    assert!(!provisional(0x5001, Position::Return));
    // An end at 0x5000 may still be reported.
    assert!(provisional(0x5000, Position::Return));
}

#[test]
fn code_before_the_watermark_is_counted() {
    let mut live = LiveSession::new();
    let trace = |time, id| {
        let mut w = NettraceWriter::v4();
        let load = w.event_type(script::RUNTIME, 143, 2);
        let method = script::method(id, 0x1000 * id, 64, "A");
        w.event(load, time, 1, &[], &method.encode(2));
        w.finish()
    };
    let mut read = |bytes: Vec<u8>| {
        read_live(bytes, &mut live);
        let diagnostics = live.reader().timeline().diagnostics();
        diagnostics.iter().map(|it| it.count).sum::<u64>()
    };
    assert_eq!(read(trace(1_000, 1)), 0);
    assert_eq!(read(trace(500, 2)), 1);
}

/// Samples are those of the trace, however often they are taken.
#[test]
fn samples_are_taken_while_events_arrive() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/clr10/traces/reuse.nettrace.zip");
    let bytes = chronosym_conformance::unzip(&path, ".nettrace").expect("a trace in a zip");
    let frozen = offline(&bytes);
    let mut expected = Vec::new();
    frozen.for_each_sample(&Filter::default(), |class, time| {
        let thread = frozen.thread_view(class.thread).expect("a thread");
        let addresses: Vec<u64> = frozen.stacks().addresses(class.stack).collect();
        expected.push((thread.tid, time, class.kind, addresses));
    });
    let stream = NettraceStream::new(bytes.as_slice(), Default::default());
    let mut stream = stream.expect("a trace");
    let mut live = LiveSession::new();
    live.keep_samples(u64::MAX);
    let mut taken = Vec::new();
    loop {
        let more = live.read_batch(|session| stream.read_batch(session));
        let dropped = live.drain_samples(|sample| {
            let addresses = sample.leaf_first.to_vec();
            taken.push((sample.tid, sample.time_ns, sample.kind, addresses));
        });
        assert_eq!(dropped, 0);
        if more.expect("a trace").is_none() {
            break;
        }
    }
    let key = |sample: &(u64, u64, SampleKind, Vec<u64>)| (sample.1, sample.0);
    expected.sort_by_key(key);
    taken.sort_by_key(key);
    assert!(!taken.is_empty());
    assert!(
        taken == expected,
        "{} samples of {}",
        taken.len(),
        expected.len()
    );
}

#[test]
fn samples_that_are_not_taken_are_dropped_and_counted() {
    let mut live = LiveSession::new();
    live.keep_samples(10);
    for time in 0..25 {
        live.sample(
            At::new(time).process(1).thread(2),
            &[0x1000 + time],
            Sample::cpu(),
        );
    }
    let mut times = Vec::new();
    let dropped = live.drain_samples(|sample| times.push(sample.time_ns));
    assert_eq!((dropped, times), (22, vec![22, 23, 24]));
    assert_eq!(live.drain_samples(|_| panic!("they were taken")), 0);
    let mut without = LiveSession::new();
    without.sample(At::new(1).process(1), &[1], Sample::cpu());
    assert_eq!(without.drain_samples(|_| panic!("none is stored")), 0);
}

/// A profile of the samples of a while is that of a timeline that has no others.
#[test]
fn samples_of_a_while_have_a_profile() {
    let mut live = LiveSession::new();
    live.keep_samples(1000);
    let at = |time| At::new(time).process(1).thread(2);
    let method = |id, start, name| {
        let method = Method::new(Action::Load, id, start, 64);
        method.named("Ns.Type", name, "void ()")
    };
    live.apply(at(1), method(1, 0x1000, "First"));
    live.apply(at(2), method(2, 0x2000, "Second"));
    for (address, label) in [(0x1010, "Ns.Type.First"), (0x2010, "Ns.Type.Second")] {
        for time in 0..3 {
            live.sample(at(10 + time), &[address, 0x1020], Sample::cpu());
        }
        let (timeline, dropped) = live.take_samples();
        assert_eq!((dropped, timeline.samples().len()), (0, 3));
        let profile = timeline.profile(&Filter::default(), None);
        let leaves = profile.entries.iter().map(|entry| {
            let leaf = profile.resolver.leaf(entry.stack);
            (
                profile.resolver.frame(leaf).label().to_owned(),
                entry.samples,
            )
        });
        assert_eq!(leaves.collect::<Vec<_>>(), [(label.to_owned(), 3)]);
    }
    assert!(live.take_samples().0.samples().is_empty());
}
