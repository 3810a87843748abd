//! Decisions of the JIT about calls.

use chronosym::runtime::{JitDecisions, TailCallType, TailCallers};
use chronosym::{Certainty, Options, Profile};
use chronosym_export::{CandidateInlinees, Shape};
use chronosym_support::payload::Payload;

use crate::compilations::load;
use crate::trace::{Trace, all, read};

pub fn compiled(name: &str) -> Payload {
    Payload::new().names(("App.Type", name, "void ()"))
}

#[test]
fn decisions_belong_to_the_next_load_of_their_thread() {
    let null = ("<null>", "<null>", "<null>");
    let mut trace = Trace::new();
    let inlined = |of: &str, by: &str, callee: &str| {
        let callers = compiled(of).names(("App.Type", by, "void ()"));
        callers.names(("App.Type", callee, "void ()")).u16(7)
    };
    let rejected = |of: &str, callee: &str| {
        let callers = compiled(of).names(("App.Type", of, "void ()"));
        callers.names(("App.Type", callee, "void ()"))
    };
    // A and B are compiled at once on two threads; A twice on the first.
    trace.event((185, 0), (100, 1), inlined("A", "A", "X"));
    trace.event((185, 0), (101, 2), inlined("B", "B", "Y"));
    trace.event(
        (192, 0),
        (102, 1),
        rejected("A", "Z").u32(1).wide("too many il bytes").u16(7),
    );
    trace.event(
        (186, 0),
        (103, 2),
        rejected("B", "Z").u32(0).narrow("recursive").u16(7),
    );
    let tail = |of: &str| compiled(of).names(null).names(("", "C", "void ()"));
    trace.event((188, 0), (104, 1), tail("A").u32(1).u32(2).u16(7));
    trace.event(
        (191, 0),
        (105, 1),
        tail("A").u32(0).wide("Never returns").u16(7),
    );
    trace.event((143, 1), (110, 1), load(1, 64, 0x8 | 4 << 7, "A"));
    trace.event((143, 1), (111, 2), load(2, 32, 0x8 | 3 << 7, "B"));
    trace.event((185, 0), (200, 1), inlined("A", "X", "W"));
    trace.event((143, 1), (210, 1), load(1, 70, 0x8 | 4 << 7, "A"));
    // Without a load, and without a name.
    trace.event((185, 0), (300, 1), inlined("E", "E", "X"));
    trace.event((185, 0), (310, 1), Payload::new().names(("", "", "")));
    let timeline = read(&trace.writer.finish(), JitDecisions::options());
    let decisions = JitDecisions::new(&timeline, &all());
    let seen: Vec<_> = decisions
        .bodies
        .iter()
        .map(|it| {
            (
                &*it.name,
                it.time_ns,
                it.size,
                it.inlined.len(),
                it.rejected.len(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("App.Type.A", 110, 64, 1, 1),
            ("App.Type.B", 111, 32, 1, 1),
            ("App.Type.A", 210, 70, 1, 0),
            ("App.Type.E", 300, 0, 1, 0),
        ]
    );
    let first = &decisions.bodies[0];
    assert_eq!(first.start, Some(0x1000));
    let call = &first.rejected[0];
    assert_eq!(
        (&*call.callee, &*call.reason, call.always),
        ("App.Type.Z", "too many il bytes", true)
    );
    assert_eq!(&*decisions.bodies[1].rejected[0].reason, "recursive");
    assert_eq!(&*decisions.bodies[2].inlined[0].caller, "App.Type.X");
    let tails: Vec<_> = first
        .tail_calls
        .iter()
        .map(|it| (&*it.caller, &*it.callee, it.is_explicit, it.outcome.clone()))
        .collect();
    let helper = Ok(TailCallType(2));
    assert_eq!(
        tails,
        [
            ("App.Type.A", "C", true, helper),
            ("App.Type.A", "C", false, Err("Never returns".into())),
        ]
    );
    assert_eq!(
        (decisions.unused.without_end, decisions.unused.incomplete),
        (1, 1)
    );
}

/// Stacks as labels, innermost first, with `~` before guesses.
fn labels(profile: &Profile) -> Vec<Vec<String>> {
    let resolver = &profile.resolver;
    let label = |id| {
        let frame = resolver.frame(id);
        assert_eq!(frame.is_guess(), frame.inlined, "{}", frame.label());
        format!(
            "{}{}",
            if frame.is_guess() { "~" } else { "" },
            frame.label()
        )
    };
    let stacks = profile.entries.iter();
    let mut stacks: Vec<Vec<String>> = stacks
        .map(|entry| resolver.stack(entry.stack).map(label).collect())
        .collect();
    stacks.sort();
    stacks
}

#[test]
fn candidates_stand_between_a_body_and_the_method_that_one_inlinee_calls() {
    let mut trace = Trace::new();
    let methods = |of: &str, by: &str, callee: &str| {
        let caller = compiled(of).names(("App.Type", by, "void ()"));
        caller.names(("App.Type", callee, "void ()"))
    };
    // A is inlined into M, and B into A; only B calls C. Both M and B call D.
    trace.event((185, 0), (100, 1), methods("M", "M", "A").u16(7));
    trace.event((185, 0), (101, 1), methods("M", "A", "B").u16(7));
    for (by, callee) in [("B", "C"), ("M", "D"), ("B", "D")] {
        let rejected = methods("M", by, callee).u32(0).wide("too big").u16(7);
        trace.event((192, 0), (102, 1), rejected);
    }
    for (method, name) in (1..).zip(["M", "C", "D"]) {
        trace.event((143, 1), (110, 1), load(method, 64, 0x8 | 4 << 7, name));
    }
    let sampler = trace
        .writer
        .event_type("Microsoft-DotNETCore-SampleProfiler", 0, 0);
    let stacks = [&[0x2010, 0x1010, 0x1020][..], &[0x3010, 0x1010], &[0x1010]];
    for (time, stack) in (120..).zip(stacks) {
        trace.writer.event(sampler, time, 1, stack, &[2, 0, 0, 0]);
    }
    let timeline = read(&trace.writer.finish(), JitDecisions::options());
    let candidates = CandidateInlinees::new(&timeline, &all());
    let mut profile = timeline.profile(&all(), None);
    let plain = labels(&profile);
    assert_eq!(plain.concat().len(), 6, "{plain:?}");
    let shape = Shape::default().candidate_inlinees(candidates);
    shape.apply(&mut profile);
    let [a, b, c, d, m] = [
        "~App.Type.A",
        "~App.Type.B",
        "App.Type.C",
        "App.Type.D",
        "App.Type.M",
    ];
    assert_eq!(labels(&profile), [vec![c, b, a, m, m], vec![d, m], vec![m]]);
    let frames = profile.resolver.frames().iter();
    for frame in frames.filter(|frame| frame.inlined) {
        assert_eq!(frame.certainty, Some(Certainty::Approximate));
        assert!(frame.line.is_err() && frame.il_offset.is_none());
    }
    // They are frames like others: patterns see them, and they can be left out.
    let mut profile = timeline.profile(&all(), None);
    let shape = shape.include("Type.B").unwrap().no_inlines();
    shape.apply(&mut profile);
    assert_eq!(labels(&profile), [[c, m, m]]);
}

#[test]
fn frames_state_the_methods_that_call_theirs_by_a_tail_call() {
    let mut trace = Trace::new();
    let call = |of: &str, callee: &str| {
        let caller = compiled(of).names(("<null>", "<null>", "<null>"));
        caller.names(("App.Type", callee, "void ()"))
    };
    // By a helper, by a jump, and a loop, which leaves the frame.
    trace.event((188, 0), (101, 1), call("C", "B").u32(1).u32(2).u16(7));
    trace.event((188, 0), (102, 1), call("D", "B").u32(0).u32(0).u16(7));
    trace.event((188, 0), (103, 1), call("B", "B").u32(0).u32(1).u16(7));
    trace.event((143, 1), (110, 1), load(1, 64, 0x8 | 4 << 7, "A"));
    trace.event((143, 1), (111, 1), load(2, 64, 0x8 | 4 << 7, "B"));
    let sampler = trace
        .writer
        .event_type("Microsoft-DotNETCore-SampleProfiler", 0, 0);
    let stack = [0x2010, 0x1010];
    trace.writer.event(sampler, 120, 1, &stack, &[2, 0, 0, 0]);
    let mut options = Options::default();
    TailCallers::keep(&mut options);
    let timeline = read(&trace.writer.finish(), options);
    let mut line = Vec::new();
    chronosym_export::write_json_lines(
        &timeline,
        &all(),
        None,
        &chronosym_export::Shape::default(),
        chronosym_export::JsonStacks::Inline,
        None,
        &mut line,
    )
    .unwrap();
    let line: serde_json::Value = serde_json::from_slice(&line).unwrap();
    let frames = &line["frames"];
    assert_eq!(frames[0]["name"], "App.Type.B");
    assert_eq!(
        frames[0]["tail_callers"],
        serde_json::json!(["App.Type.C", "App.Type.D"])
    );
    assert_eq!(frames[1]["name"], "App.Type.A");
    assert!(frames[1]["tail_callers"].is_null());
}
