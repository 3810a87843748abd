//! Certainty after lost events, and which address of a frame is looked up.

use chronosym::facts::{At, Fact, Image, Method, Module, Process, Sample};
use chronosym::{
    Action, Certainty, EventSelector, Filter, Frame, Loss, LossScope, ModuleRef, NameReason,
    Options, Position, Resolver, SampleKind, SampleSelection, Session, SymbolSource, Timeline,
};
use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::payload;

const PID: u32 = 42;

fn session() -> Session {
    let mut session = Session::new(Options::default());
    session.facts().pointer_size = Some(8);
    session.apply(at(0), Process::new(Action::DCStart, "app"));
    session
}

fn at(time: u64) -> At {
    At::new(time).process(PID).thread(7)
}

fn method(action: Action, id: u64, start: u64, name: &'static str) -> Method<'static> {
    let method = Method::new(action, id, start, 0x40).in_module(1, 0x0600_0000 | id as u32);
    match name {
        "" => method,
        name => method.named("T", name, "void ()"),
    }
}

fn frame(
    timeline: &Timeline,
    address: u64,
    time: u64,
    symbols: Option<&dyn SymbolSource>,
) -> Frame {
    let process = timeline.find_process(PID, None).expect("the process");
    timeline
        .frames(process, address, time, Position::Exact, symbols)
        .remove(0)
}

/// Rule 6: the end of a module ends a body, whose own unload may be lost.
#[test]
fn an_end_by_the_container_confirms_nothing_after_a_loss() {
    for (has_unload, has_loss) in [(false, true), (true, true), (false, false)] {
        let mut session = session();
        session.apply(at(5), Module::new(Action::Load, 1, "/app/a.dll"));
        session.apply(at(10), method(Action::Load, 1, 0x1000, "Run"));
        if has_loss {
            session.lost(Loss::between(40, 50));
        }
        if has_unload {
            session.apply(at(90), method(Action::Unload, 1, 0x1000, "Run"));
        }
        session.apply(at(100), Module::new(Action::Unload, 1, "/app/a.dll"));
        let timeline = session.finish();
        let answer = |time| {
            let frame = frame(&timeline, 0x1010, time, None);
            assert_eq!(frame.name(), Ok("T.Run"));
            (frame.certainty, frame.is_guess())
        };
        let exact = (Some(Certainty::Exact), false);
        let doubtful = match has_loss && !has_unload {
            true => (Some(Certainty::Inferred), true),
            false => exact,
        };
        assert_eq!(answer(39), exact);
        assert_eq!(answer(60), doubtful);
        assert_eq!(answer(85), doubtful);
    }
}

/// A fork copies what its parent knows, and confirms nothing.
#[test]
fn a_mapping_that_was_inherited_after_a_loss_is_in_doubt() {
    for has_loss in [false, true] {
        let mut session = session();
        session.apply(at(5), Image::new(Action::Load, 0x1000, 0x1000, "/lib/a.so"));
        if has_loss {
            session.lost(Loss::between(40, 50));
        }
        let child = At::new(60).process(PID + 1);
        session.apply(child, Process::new(Action::Load, "app"));
        session.apply(child, Fact::Fork { parent: PID });
        let timeline = session.finish();
        let process = timeline.find_process(PID + 1, None).expect("the child");
        let frame = timeline
            .frames(process, 0x1010, 70, Position::Exact, None)
            .remove(0);
        assert_eq!(frame.module(), Some("a"));
        let expected = match has_loss {
            true => Certainty::Inferred,
            false => Certainty::Exact,
        };
        assert_eq!(frame.certainty, Some(expected));
    }
}

/// A loss of the system's recorder concerns images, one of a runtime the code of its process.
#[test]
fn a_loss_of_one_recording_leaves_answers_of_others_certain() {
    let answers = |loss: Option<Loss>, complete_until: Option<u64>| {
        let mut session = session();
        let other = At::new(5).process(PID + 1);
        session.apply(at(5), Image::new(Action::Load, 0x8000, 0x1000, "/lib/a.so"));
        session.apply(other, Image::new(Action::Load, 0x8000, 0x1000, "/lib/a.so"));
        session.apply(at(10), method(Action::Load, 1, 0x1000, "Run"));
        session.apply(other.at(10), method(Action::Load, 1, 0x1000, "Run"));
        if let Some(loss) = loss {
            session.lost(loss);
        }
        session.sample(at(100), &[0x1010], Sample::cpu());
        if let Some(until) = complete_until {
            session.confirm_code(PID, until);
        }
        let timeline = session.finish();
        let is_exact = |pid, address, time| {
            let process = timeline.find_process(pid, None).expect("a process");
            let frames = timeline.frames(process, address, time, Position::Exact, None);
            assert!(frames[0].module().is_some() || frames[0].name().is_ok());
            frames[0].certainty == Some(Certainty::Exact)
        };
        // Of each process its image and its code; its code after 90.
        [
            is_exact(PID, 0x8010, 60),
            is_exact(PID, 0x1010, 60),
            is_exact(PID + 1, 0x8010, 60),
            is_exact(PID + 1, 0x1010, 60),
            is_exact(PID, 0x1010, 95),
        ]
    };
    let loss = Loss::between(40, 50);
    let [system, runtime] = [LossScope::System, LossScope::Runtime].map(|it| loss.scope(it));
    let own = |loss: Loss| Some(loss.of_process(Some(PID)));
    assert_eq!(answers(None, None), [true; 5]);
    assert_eq!(answers(Some(loss), None), [false; 5]);
    assert_eq!(
        answers(Some(system), None),
        [false; 5],
        "the process may be another"
    );
    assert_eq!(
        answers(Some(runtime), None),
        [true, false, true, false, false]
    );
    assert_eq!(
        answers(own(runtime), None),
        [true, false, true, true, false]
    );
    assert_eq!(
        answers(own(system), None),
        [false, false, true, true, false]
    );
    // Up to 90 the complete recording of the runtime confirms the code, and that it is the process.
    assert_eq!(
        answers(Some(system), Some(90)),
        [false, true, false, false, true]
    );
    assert_eq!(
        answers(Some(loss), Some(90)),
        [false; 5],
        "events of the code may be lost, too"
    );
    assert_eq!(
        answers(own(system), Some(45)),
        [false, false, true, true, false]
    );
}

/// A loss is the reason if it may have contained the event that describes the code.
#[test]
fn the_reason_for_no_code_is_the_loss_that_covers_its_event() {
    use NameReason::{EventsLost, NoCodeAtAddress, NoRundown};
    let reasons = |loss: Loss, is_managed: bool, is_listed: bool| {
        let mut session = session();
        if is_managed {
            session.apply(at(1), method(Action::Load, 1, 0x1000, "Run"));
        }
        session.lost(loss);
        if is_listed {
            session.apply(at(99), Fact::RundownComplete { clr_instance: 0 });
        }
        session.sample(at(100), &[0x1010], Sample::cpu());
        let timeline = session.finish();
        [40, 41].map(|time| frame(&timeline, 0x9000, time, None).name().err())
    };
    let whole = Loss::between(40, 50);
    // The code may have been loaded in the loss, or is older than the recording.
    assert_eq!(
        reasons(whole, true, false),
        [NoRundown, EventsLost].map(Some)
    );
    // The list at the end may have been lost, or a part of it.
    let at_end = Loss::between(80, 100);
    assert_eq!(reasons(at_end, true, false), [EventsLost; 2].map(Some));
    assert_eq!(reasons(at_end, true, true), [EventsLost; 2].map(Some));
    assert_eq!(reasons(whole, true, true), [EventsLost; 2].map(Some));
    // The system's recorder describes images before they are used, and no code.
    let system = whole.scope(LossScope::System);
    assert_eq!(reasons(system, true, false), [NoRundown; 2].map(Some));
    assert_eq!(
        reasons(system, false, false),
        [NoCodeAtAddress, EventsLost].map(Some)
    );
    // Another process lost events.
    let other = whole.of_process(Some(PID + 1));
    assert_eq!(reasons(other, true, false), [NoRundown; 2].map(Some));
    assert_eq!(reasons(other, false, false), [NoCodeAtAddress; 2].map(Some));
}

// Rule 9.
#[test]
fn the_first_user_frame_below_kernel_frames_is_looked_up_at_its_own_address() {
    const KERNEL: u64 = 0xffff_8000_0000_1000;
    for kind in [SampleKind::Cpu, SampleKind::Event] {
        let mut session = Session::new(SampleSelection::Events(
            EventSelector::parse("Samples").into_iter().collect(),
        ));
        session.facts().pointer_size = Some(8);
        session.apply(at(0), Process::new(Action::DCStart, "app"));
        session.apply(at(1), method(Action::Load, 1, 0x1000, "Before"));
        session.apply(at(1), method(Action::Load, 2, 0x1040, "At"));
        let stack = [KERNEL + 8, KERNEL, 0x1040, 0x1040];
        session.sample(at(5), &stack, Sample::new(kind));
        session.sample(at(6), &[0x1044, 0x1040], Sample::new(kind));
        let timeline = session.finish();
        let mut resolver = Resolver::new(&timeline, None);
        let mut stacks = Vec::new();
        timeline.for_each_sample(&Filter::default(), |class, time| {
            let (stack, _) = resolver.resolve(class, time).expect("a stack");
            let names = resolver
                .stack(stack)
                .map(|id| resolver.frame(id).label().to_owned());
            stacks.push(names.collect::<Vec<_>>());
        });
        assert_eq!(stacks[0][2..], ["T.At", "T.Before"], "{kind}");
        assert_eq!(stacks[1], ["T.At", "T.Before"], "{kind}");
        let process = timeline.find_process(PID, None).expect("the process");
        let when = chronosym::When::At(5);
        let leaf = kind.leaf_position();
        let (stack, _) = resolver
            .resolve_addresses(process, &stack, when, leaf)
            .expect("frames");
        let names = resolver
            .stack(stack)
            .map(|id| resolver.frame(id).label().to_owned());
        assert_eq!(names.collect::<Vec<_>>()[2..], ["T.At", "T.Before"]);
    }
}

#[test]
fn a_kernel_address_does_not_lack_a_rundown() {
    let mut session = session();
    session.apply(at(1), method(Action::Load, 1, 0x1000, "Run"));
    let timeline = session.finish();
    let reason = |address| frame(&timeline, address, 5, None).name().err();
    assert_eq!(
        reason(0xffff_8000_0000_1000),
        Some(NameReason::NoCodeAtAddress)
    );
    assert_eq!(reason(0x9000), Some(NameReason::NoRundown));
}

struct Metadata;

impl SymbolSource for Metadata {
    fn method_name(&self, module: &ModuleRef<'_>, token: u32) -> Option<(String, String)> {
        let is_it = module.il_path == "/app/PluginA.dll" && token == 0x0600_0001;
        is_it.then(|| ("Plugin".to_owned(), "Run".to_owned()))
    }
}

#[test]
fn methods_without_names_in_events_are_named_by_their_tokens() {
    let mut session = session();
    session.apply(at(1), Module::new(Action::Load, 1, "/app/PluginA.dll"));
    session.apply(at(2), method(Action::Load, 1, 0x1000, ""));
    session.apply(
        at(2),
        Method::new(Action::Load, 2, 0x2000, 0x40).in_module(1, 0),
    );
    let timeline = session.finish();
    let label = |address, symbols| frame(&timeline, address, 5, symbols).label().to_owned();
    assert_eq!(label(0x1010, Some(&Metadata)), "PluginA!Plugin.Run");
    assert_eq!(label(0x1010, None), "PluginA!0x06000001");
    let unnamed = frame(&timeline, 0x1010, 5, None);
    assert_eq!(unnamed.name(), Err(NameReason::NoName));
    assert_eq!(
        (unnamed.token, unnamed.module()),
        (Some(0x0600_0001), Some("PluginA"))
    );
    assert_eq!(
        label(0x2010, Some(&Metadata)),
        "0x2010",
        "a nil token names nothing"
    );
}

/// Code of an assembly that is not collectible stays, unless it is dynamic or generic.
#[test]
fn code_that_is_never_unloaded_is_certain_after_a_loss() {
    const JITTED: u32 = 8;
    const DYNAMIC: u32 = 1;
    const GENERIC: u32 = 2;
    const COLLECTIBLE: u32 = 8;
    let certainty = |assembly_flags: Option<u32>, method_flags: u32, is_module_first: bool| {
        let mut trace = NettraceWriter::v4();
        let mut event = |id, bytes: &[u8], time| {
            let of_type = trace.event_type("Microsoft-Windows-DotNETRuntime", id, 1);
            trace.event(of_type, time, 7, &[], bytes);
        };
        let module = payload::Module {
            id: 9,
            assembly: 5,
            il_path: "/app/App.dll",
            ..payload::Module::default()
        };
        let method = payload::Method {
            id: 1,
            module: 9,
            start: 0x1000,
            size: 0x40,
            flags: JITTED | method_flags,
            names: Some(("T", "Run", "void ()")),
            ..payload::Method::default()
        };
        if is_module_first {
            event(152, &module.encode(1), 5);
        }
        if let Some(flags) = assembly_flags {
            event(154, &payload::assembly(1, 5, 1, 0, flags, "App", 0), 10);
        }
        if !is_module_first {
            event(152, &module.encode(1), 11);
        }
        event(143, &method.encode(1), 20);
        trace.lose(7, 3);
        let sample = trace.event_type("Microsoft-DotNETCore-SampleProfiler", 0, 0);
        trace.event(sample, 200, 7, &[0x1010], &payload::thread_sample(2));
        let mut session = Session::new(Options::default());
        let bytes = trace.finish();
        chronosym::source::nettrace::read(&*bytes, &mut session).expect("a trace");
        let timeline = session.finish();
        assert_eq!(timeline.losses().len(), 1);
        let process = timeline.processes().next().expect("a process").index;
        let frames = timeline.frames(process, 0x1010, 200, Position::Exact, None);
        assert_eq!(frames[0].name(), Ok("T.Run"));
        frames[0].certainty
    };
    let (exact, inferred) = (Some(Certainty::Exact), Some(Certainty::Inferred));
    assert_eq!(certainty(Some(0), 0, false), exact);
    assert_eq!(certainty(Some(COLLECTIBLE), 0, false), inferred);
    assert_eq!(certainty(Some(0), DYNAMIC, false), inferred);
    assert_eq!(certainty(Some(0), GENERIC, false), inferred);
    assert_eq!(certainty(None, 0, false), inferred);
    // The id of the assembly may have been that of another one.
    assert_eq!(certainty(Some(0), 0, true), inferred);
}
