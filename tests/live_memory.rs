//! The memory budget of live sessions: events beyond it are reported, and no exact answer is wrong.

use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use chronosym::facts::{At, Method, Process, Sample};
use chronosym::source::nettrace::NettraceStream;
use chronosym::{Action, Budget, Certainty, LiveSession, Position, Timeline};

const PID: u32 = 42;

fn at(time: u64) -> At {
    At::new(time).process(PID).thread(7)
}

fn method(action: Action, id: u64, slot: u64) -> Method<'static> {
    Method::new(action, id, 0x10_0000 + slot * 0x100, 0x80).in_module(1, 0x0600_0000 | id as u32)
}

fn memory(live: &mut LiveSession) -> u64 {
    let mut bytes = 0;
    let read = live.read_batch(|session| {
        bytes = session.memory_bytes();
        Ok::<_, ()>(None)
    });
    assert_eq!(read, Ok(None));
    bytes
}

/// Name and certainty of the code at a slot.
fn answer(timeline: &Timeline, slot: u64, time: u64) -> (Option<String>, Option<Certainty>) {
    let process = timeline.find_process(PID, None).expect("the process");
    let address = 0x10_0010 + slot * 0x100;
    let frame = timeline
        .frames(process, address, time, Position::Exact, None)
        .remove(0);
    (frame.name().ok().map(str::to_owned), frame.certainty)
}

fn left_out(timeline: &Timeline) -> u64 {
    let diagnostics = timeline.diagnostics();
    let all = diagnostics.iter().filter(|it| it.text.contains("left out"));
    all.map(|it| it.count).sum()
}

/// `methods` of names of their own, each in one of 1,000 slots.
fn compile(live: &mut LiveSession, times: std::ops::Range<u64>) {
    for time in times {
        let name = format!("Method{time}");
        let load = method(Action::Load, time, time % 1_000).named("T", &name, "void ()");
        live.apply(at(time), load);
    }
    live.advance(u64::MAX - 1);
    live.publish();
}

#[test]
fn a_budget_leaves_out_code_and_no_answer_is_wrong_and_exact() {
    const BYTES: u64 = 4 << 20;
    let (mut live, mut whole) = (LiveSession::new(), LiveSession::new());
    live.limit_memory(Budget::new(BYTES));
    for session in [&mut live, &mut whole] {
        session.apply(at(0), Process::new(Action::DCStart, "app"));
        compile(session, 1..40_000);
    }
    assert!(memory(&mut whole) > 2 * BYTES);
    assert!(memory(&mut live) < BYTES);
    let (now, truth) = (live.reader().timeline(), whole.reader().timeline());
    let refused = left_out(&now);
    assert!((1..40_000).contains(&refused), "{refused}");
    assert_eq!((left_out(&truth), truth.losses().len()), (0, 0));
    assert_eq!(now.losses().len(), 1, "events in a row are one loss");
    assert_eq!(now.losses()[0].events, refused);
    let (mut exact, mut doubted) = (0, 0);
    for time in (1_000..40_000).step_by(7) {
        let (name, certainty) = answer(&now, time % 1_000, time);
        let (expected, _) = answer(&truth, time % 1_000, time);
        match certainty {
            Some(Certainty::Exact) => {
                assert_eq!(name, expected, "at {time}");
                exact += 1;
            }
            _ => doubted += 1,
        }
    }
    assert!(exact > 100 && doubted > 100, "{exact} {doubted}");

    // Ends are applied, so that dropping what ended makes room again.
    for time in 40_000..41_000 {
        let id = 40_000 - refused - 1 - (time - 40_000);
        live.apply(at(time), method(Action::Unload, id, id % 1_000));
    }
    live.forget_before(41_000);
    compile(&mut live, 41_000..42_000);
    let now = live.reader().timeline();
    assert_eq!(left_out(&now), refused, "nothing more is left out");
    let (name, certainty) = answer(&now, 0, 41_999);
    assert_eq!(name.as_deref(), Some("T.Method41000"));
    assert_eq!(certainty, Some(Certainty::Exact));
}

/// Ends of what was never loaded take memory, too.
#[test]
fn a_flood_of_ends_is_bounded() {
    const BYTES: u64 = 1 << 20;
    let mut live = LiveSession::new();
    live.limit_memory(Budget::new(BYTES));
    for id in 0..50_000 {
        live.apply(at(id), method(Action::Unload, id, id));
        let other = At::new(id).process(1_000 + id as u32);
        live.apply(other, Process::new(Action::Unload, "other"));
    }
    let used = memory(&mut live);
    assert!(used < BYTES + BYTES / 4, "{used}");
    live.publish();
    assert!(left_out(&live.reader().timeline()) > 10_000);
}

#[test]
fn samples_that_wait_are_dropped_before_code() {
    let mut live = LiveSession::new();
    live.keep_samples(u64::MAX);
    live.limit_memory(Budget::new(4 << 20));
    compile(&mut live, 1..2_000);
    for time in 0..100_000 {
        live.sample(at(time), &[0x1000 + time, 0x9000 + time], Sample::cpu());
    }
    let mut taken = 0;
    let dropped = live.drain_samples(|_| taken += 1);
    assert_eq!(dropped + taken, 100_000);
    assert!(taken > 0 && dropped > 0, "{taken} {dropped}");
    compile(&mut live, 100_000..100_100);
    let now = live.reader().timeline();
    assert_eq!((left_out(&now), now.losses().len()), (0, 0));
}

/// A recording read into a session with a budget: each exact answer is that of the whole.
#[test]
fn a_recording_is_read_to_its_end() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/clr10/traces/reuse.nettrace.zip");
    let bytes = chronosym_conformance::unzip(&path, ".nettrace").expect("a trace in a zip");
    let read = |budget: Budget| -> Arc<Timeline> {
        let mut live = LiveSession::new();
        live.limit_memory(budget);
        let stream = NettraceStream::new(Cursor::new(&bytes), Default::default());
        chronosym::source::read_live(&mut stream.expect("a trace"), &mut live).expect("a trace");
        live.finish();
        live.reader().timeline()
    };
    let (whole, limited) = (read(Budget::UNLIMITED), read(Budget::new(4 << 20)));
    assert!(left_out(&limited) > 1_000);
    let duration = whole.facts().duration_ns;
    assert_eq!(limited.facts().duration_ns, duration, "the end is reached");
    let pid = whole.facts().process_id.expect("a process id");
    let of = |timeline: &Timeline| timeline.find_process(pid, None).expect("the process");
    let mut exact = 0;
    for (number, body) in whole.bodies(of(&whole)).enumerate() {
        if number % 41 != 0 {
            continue;
        }
        for time in (0..=8).map(|part| duration / 8 * part) {
            let ask = |timeline: &Timeline| {
                let frames = timeline.frames(of(timeline), body.start, time, Position::Exact, None);
                let frame = frames.last().expect("a frame");
                (frame.name().ok().map(str::to_owned), frame.certainty)
            };
            let (name, certainty) = ask(&limited);
            if certainty == Some(Certainty::Exact) && name.is_some() {
                assert_eq!(name, ask(&whole).0, "{:#x} at {time}", body.start);
                exact += 1;
            }
        }
    }
    assert!(exact > 100, "{exact}");
}
