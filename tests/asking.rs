//! Queries of a timeline: with and without a time, for one address and for many, for its own stacks
//! and others, and with foreign ids.

use std::sync::Arc;

use allocation_counter::measure;
use chronosym::{
    AddressAt, Answer, Certainty, Code, Filter, LiveSession, NameReason, Options, Position,
    Profile, Resolver, Session, StackId, When,
};
use chronosym_conformance::script::*;
use chronosym_support::payload::Method;

const SINCE: u64 = 30;

/// A body that never ends, two in turn, an unloaded one; a rundown lists all that remain.
fn answers() -> Answers {
    let mut s = Script::default();
    s.load(10, 1, method(1, 0x1000, 64, "Sole"));
    s.load(10, 1, method(2, 0x2000, 64, "First"));
    s.unload(20, 1, method(2, 0x2000, 64, "First"));
    s.load(SINCE as i64, 1, method(3, 0x2000, 64, "Second"));
    s.load(10, 1, method(4, 0x3000, 64, "Gone"));
    s.unload(20, 1, method(4, 0x3000, 64, "Gone"));
    s.complete(40);
    s.finish()
}

fn ask(answers: &Answers, address: u64, when: When, position: Position) -> Answer {
    let process = answers.0.find_process(PID, None).expect("the process");
    answers.0.resolve(process, address, when, position, None)
}

fn sole(answer: Answer) -> String {
    match answer {
        Answer::One(candidate) => text(&candidate.frames[0]),
        Answer::Ambiguous(all) => panic!("ambiguous: {all:?}"),
    }
}

/// Rule 19.
// Rule 19.
#[test]
fn without_a_time_all_occupants_are_returned() {
    let answers = answers();
    let exact = |address| ask(&answers, address, When::Unknown, Position::Exact);
    assert_eq!(sole(exact(0x1010)), "T.Sole");
    assert_eq!(sole(exact(0x3010)), "T.Gone");
    assert_eq!(sole(exact(0x9010)), "NoCodeAtAddress");
    let Answer::Ambiguous(lives) = exact(0x2010) else {
        panic!("two bodies stood there");
    };
    let lives: Vec<_> = lives
        .iter()
        .map(|c| (c.lifetime.map(|life| life.from), text(&c.frames[0])))
        .collect();
    let names = ["T.First", "T.Second"].map(str::to_owned);
    let [first, second] = names;
    assert_eq!(lives, [(Some(10), first), (Some(SINCE), second)]);
    let at = |time| ask(&answers, 0x2010, When::At(time), Position::Exact);
    assert_eq!(sole(at(15)), "T.First");
    assert_eq!(sole(at(SINCE)), "T.Second");
    // A return address that is a body's first byte, with no code before it.
    let first_byte = ask(&answers, 0x1000, When::Unknown, Position::Return);
    assert_eq!(sole(first_byte), "T.Sole");
}

#[test]
fn the_end_of_time_is_a_time() {
    let answers = answers();
    assert_eq!(answers.name(0x1010, u64::MAX), "T.Sole");
    assert_eq!(answers.name(0x3010, u64::MAX), "AfterUnload");
}

#[test]
fn stacks_that_are_not_interned_are_resolved_alike() {
    let answers = answers();
    let process = answers.0.find_process(PID, None).expect("the process");
    let mut resolver = Resolver::new(&answers.0, None);
    let mut names = |addresses: &[u64], when| -> Vec<String> {
        let resolved = resolver.resolve_addresses(process, addresses, when, Position::Exact);
        let (stack, _) = resolved.expect("a stack");
        resolver
            .stack(stack)
            .map(|id| text(resolver.frame(id)))
            .collect()
    };
    let stack = [0x1010, 0x2011, 0x3011];
    let all = ["T.Sole", "T.First", "T.Gone"];
    assert_eq!(names(&stack, When::At(15)), all);
    assert_eq!(
        names(&stack, When::At(35)),
        ["T.Sole", "T.Second", "AfterUnload"]
    );
    assert_eq!(
        names(&stack, When::Unknown),
        ["T.Sole", "Ambiguous", "T.Gone"]
    );
    assert_eq!(names(&stack, When::At(15)), all, "what is kept is by time");
    let none = resolver.resolve_addresses(process, &[], When::Unknown, Position::Exact);
    assert_eq!(none, None);
}

#[test]
fn batches_answer_as_single_questions_do_and_allocate_nothing() {
    let answers = answers();
    let timeline = &answers.0;
    let process = timeline.find_process(PID, None).expect("the process");
    let (foreign, _) = foreign();
    let mut queries = Vec::new();
    for address in (0xff0..0x3080).step_by(8) {
        for (time, position) in [(15, Position::Exact), (u64::MAX, Position::Return)] {
            queries.push(AddressAt::new(process, address, time, position));
            queries.push(AddressAt::new(foreign, address, time, position));
        }
    }
    queries.extend((0..1000).map(|i| AddressAt::new(process, 0xff0 + i, 15, Position::Return)));
    let mut found = vec![None; queries.len()];
    let allocated = measure(|| timeline.bodies_of_batch(&queries, &mut found));
    assert_eq!(allocated.count_total, 0);
    let mut queries = queries.iter().zip(found);
    for address in (0xff0..0x3080).step_by(8) {
        for (time, position) in [(15, Position::Exact), (u64::MAX, Position::Return)] {
            let one = timeline.body(process, address, time, position);
            assert_eq!(queries.next().map(|q| q.1), Some(one), "{address:#x}");
            assert_eq!(queries.next().map(|q| q.1), Some(None));
        }
    }
    let bodies = queries.filter(|(_, body)| body.is_some()).count();
    // Return addresses from the first byte of a body to the one after its last.
    assert_eq!(bodies, 65);
}

/// A process and a stack of a timeline with more of them.
fn foreign() -> (chronosym::ProcessIndex, StackId) {
    let mut session = Session::new(Options::default());
    for pid in 0..40 {
        session.perf_map(pid, b"1000 10 name\n");
    }
    let stack = session.intern(0..100).expect("a stack");
    let timeline = session.finish();
    (timeline.find_process(39, None).expect("a process"), stack)
}

#[test]
fn ids_of_another_timeline_find_nothing() {
    let answers = answers();
    let timeline = &answers.0;
    let (process, stack) = foreign();
    let frames = timeline.frames(process, 0x1010, 15, Position::Exact, None);
    assert_eq!(frames[0].name(), Err(NameReason::NoCodeAtAddress));
    assert_eq!(frames[0].code, Code::Nothing);
    assert!(timeline.process_view(process).is_none());
    assert_eq!(timeline.bodies(process).count(), 0);
    assert_eq!(timeline.modules(process).count(), 0);
    assert_eq!(timeline.images(process).count(), 0);
    assert!(timeline.bodies_at(process, 0x1010).is_empty());
    assert!(timeline.lifetimes_at(process, 0x1010).is_empty());
    assert!(timeline.untimed_at(process, 0x1010).is_empty());
    assert_eq!(timeline.stacks().addresses(stack).count(), 0);
    let known = timeline.find_process(PID, None).expect("the process");
    let mut resolver = Resolver::new(timeline, None);
    let resolved = resolver.resolve_stack(known, stack, When::At(15), Position::Exact);
    assert_eq!(resolved, None);
    let resolved = resolver.resolve_addresses(process, &[1], When::At(15), Position::Exact);
    let (stack, _) = resolved.expect("a frame without a name");
    let other = Resolver::new(timeline, None);
    assert_eq!((other.caller(stack), other.stack(stack).count()), (None, 0));
    let leaf = other.frame(other.leaf(stack));
    assert_eq!(
        (leaf.code, leaf.name()),
        (Code::Nothing, Err(NameReason::InvalidAddress))
    );
    assert_eq!(other.frame(resolver.leaf(stack)).code, Code::Nothing);
    assert!(!Filter::default().has_process(timeline, process));
}

#[test]
fn a_stack_of_a_live_session_is_resolved_by_its_addresses() {
    let mut live = LiveSession::new();
    live.perf_map(7, b"1000 10 one\n2000 10 two\n");
    live.publish();
    let timeline = live.reader().timeline();
    let process = timeline.find_process(7, None).expect("the process");
    let mut resolver = Resolver::new(&timeline, None);
    let addresses = [0x1001, 0x2001];
    let resolved = resolver.resolve_addresses(process, &addresses, When::Unknown, Position::Exact);
    let (stack, _) = resolved.expect("a stack");
    let names: Vec<_> = resolver
        .stack(stack)
        .map(|id| text(resolver.frame(id)))
        .collect();
    assert_eq!(names, ["one", "two"]);
}

/// Holds its resolver, as a user interface does.
struct Viewer {
    profile: Profile,
    resolver: Resolver,
}

#[test]
fn profiles_and_resolvers_can_be_kept_and_sent() {
    let mut s = Script::default();
    s.load(10, 1, method(1, 0x1000, 64, "A"));
    s.sample(20, 5, &[0x1010]);
    let viewer = {
        let timeline = s.finish().0;
        Viewer {
            profile: timeline.profile(&Filter::default(), None),
            resolver: Resolver::new(&timeline, None),
        }
    };
    let label = std::thread::spawn(move || {
        assert!(Arc::ptr_eq(
            viewer.profile.resolver.timeline(),
            viewer.resolver.timeline()
        ));
        let resolver = &viewer.profile.resolver;
        let frame = resolver.frame(resolver.leaf(viewer.profile.entries[0].stack));
        let function = &resolver.functions()[frame.function.id().index()];
        assert!(Arc::ptr_eq(function, &frame.function));
        frame.label().to_owned()
    });
    assert_eq!(label.join().expect("a label"), "T.A");
}

#[test]
fn overloads_are_two_functions_and_two_rows() {
    let mut s = Script::default();
    s.module_load(5, 7, "/app/App.dll");
    for (id, start, signature) in [
        (1, 0x1000, "void  (int32)"),
        (2, 0x2000, "void  (string)"),
        (3, 0x3000, "void  (string)"),
    ] {
        let names = Some(("N.T", "Write", signature));
        let module = 7;
        s.load(
            10,
            1,
            Method {
                names,
                module,
                ..method(id, start, 64, "")
            },
        );
    }
    s.sample(20, 5, &[0x1010]);
    s.sample(21, 5, &[0x2010, 0x3011]);
    s.sample(22, 5, &[0x3010]);
    let timeline = s.finish().0;
    let profile = timeline.profile(&Filter::default(), None);
    assert_eq!(profile.resolver.functions().len(), 2);
    assert_eq!(profile.resolver.binaries().len(), 1);
    let (by, sort) = Default::default();
    let methods = chronosym_export::hotspots(&profile, by, sort, false);
    let rows: Vec<_> = methods
        .iter()
        .map(|m| (&*m.label.name, m.counts.own.samples, m.counts.total.samples))
        .collect();
    assert_eq!(
        rows,
        [
            ("App!N.T.Write(string)", 2, 2),
            ("App!N.T.Write(int32)", 1, 1),
        ]
    );
    // Folded stacks are text: equal labels are merged.
    let options = chronosym_export::TreeOptions {
        threads: false,
        ..Default::default()
    };
    let tree = chronosym_export::CallTree::new(&profile, options);
    let mut folded = Vec::new();
    chronosym_export::write_folded(&tree, &mut folded).expect("text");
    let folded = String::from_utf8(folded).expect("text");
    let lines: Vec<&str> = folded
        .lines()
        .filter_map(|l| l.split_once(';'))
        .map(|l| l.1)
        .collect();
    assert_eq!(lines, ["App!N.T.Write 2", "App!N.T.Write;App!N.T.Write 1"]);
}

/// Rule 18.
// Rule 18.
#[test]
fn names_that_contest_an_address_without_a_time_are_approximate() {
    let mut session = Session::new(Options::default());
    session.perf_map(7, b"1000 10 one\n1008 10 two\n2000 10 same\n2000 10 same\n");
    let timeline = session.finish();
    let process = timeline.find_process(7, None).expect("the process");
    let at = |address| {
        let frames = timeline.frames(process, address, 5, Position::Exact, None);
        (text(&frames[0]), frames[0].certainty)
    };
    assert_eq!(at(0x1001), ("one".to_owned(), Some(Certainty::Inferred)));
    assert_eq!(at(0x1009), ("two".to_owned(), Some(Certainty::Approximate)));
    assert_eq!(at(0x2001), ("same".to_owned(), Some(Certainty::Inferred)));
}
