//! A saved timeline resolves like the original, and damaged ones are rejected.

use std::ops::Range;
use std::sync::Arc;

use chronosym_core::facts::{
    At, Fact, IlMap, Image, Method, MethodFlags, Module, Process, Sample, Stub, Symbol,
};
use chronosym_core::{
    Action, Certainty, DeltaReader, Diagnostics, Filter, Frame, LineReason, LiveSession, Loss,
    LossScope, ModuleRef, Options, Position, PrecompiledCode, SampleSelection, SaveOptions,
    SavedError, SavedTimeline, Session, SymbolSource, Timeline, When,
};
use proptest::prelude::*;

const PIDS: [u32; 3] = [4, 7, 9];
const TIMES: [u64; 5] = [0, 15, 40, 70, 1_000];

fn addresses() -> impl Iterator<Item = u64> {
    (0x0f80..0x1600).step_by(0x28)
}

/// One step of a history: the event, its address, and its process.
type Step = (u8, usize, u64, u64);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((0_u8..18, 0..PIDS.len(), 0_u64..6, 0_u64..8), 0..60)
}

fn apply(apply: &mut dyn FnMut(At, Fact<'_>), time: u64, &(what, pid, id, slot): &Step) {
    let at = At::new(time).process(PIDS[pid]).thread(id % 2);
    let start = 0x1000 + slot * 0x80;
    let size = 0x40 + 0x30 * (id as u32 % 3);
    let name = ["", "First", "Second"][(slot % 3) as usize];
    let path = format!("/app/m{id}.dll");
    let module = |action| Module::new(action, id, &*path);
    let method = |action| {
        let method = Method::new(action, id, start, size).in_module(id, 0x600_0001);
        method.named("Ns.Type", name, "void ()")
    };
    let entries = [(-2, 0), (0, 4), (9, 0x20), (-3, 0x30)];
    let fact: Fact<'_> = match what {
        0 | 1 => method(Action::Load).into(),
        2 => method(Action::Unload).into(),
        3 => method(Action::DCEnd).into(),
        4 => method(Action::DCStart).into(),
        5 => IlMap::new(Action::Load, id, &entries).into(),
        6 => module(Action::Load).into(),
        7 => module(Action::DCEnd).into(),
        8 => module(Action::Unload).into(),
        9 => Image::new(Action::Load, start & !0xff, 0x180, &*path).into(),
        10 => Stub::new(id, ["Native", name, ""]).into(),
        11 => Symbol::new(start, start + 0x20, name).into(),
        12 => Process::new(Action::Unload, "").into(),
        13 => Process::new(Action::Load, "again").into(),
        14 => Fact::Fork { parent: PIDS[0] },
        15 => Fact::RundownComplete { clr_instance: 0 },
        16 => Fact::ThreadName(name.into()),
        _ => {
            let mut jitted = method(Action::Load);
            jitted.flags = MethodFlags::jitted(None);
            jitted.into()
        }
    };
    apply(at, fact);
}

fn session(steps: &[Step], options: impl Into<Options>) -> Session {
    let mut session = Session::new(options);
    for (step, time) in steps.iter().zip(10..) {
        apply(&mut |at, fact| session.apply(at, fact), time, step);
        let at = At::new(time).process(PIDS[step.1]).thread(step.2);
        session.sample(
            at,
            &[0x1000 + step.3 * 0x80, 0x1010 + step.2],
            Sample::cpu(),
        );
        if step.0 == 15 {
            session.lost(Loss::of_events(time, time + 2, 3));
        }
    }
    session
}

fn save(timeline: &Timeline) -> Vec<u8> {
    let options = SaveOptions::new().with_samples();
    timeline.save(Vec::new(), &options).expect("memory")
}

fn open(bytes: &[u8], options: impl Into<Options>) -> Result<Arc<Timeline>, SavedError> {
    let mut session = Session::new(options);
    SavedTimeline::open(bytes)?.read_into(&mut session)?;
    Ok(session.finish())
}

/// Returns all answers for an address, and its entries in listings.
fn answers(timeline: &Timeline, pid: u32, address: u64) -> String {
    let mut text = String::new();
    for process in timeline.processes().filter(|it| it.pid == Some(pid)) {
        let times = TIMES.iter().map(|&time| When::At(time));
        for when in times.chain([When::Unknown]) {
            for position in [Position::Exact, Position::Return] {
                let answer = timeline.resolve(process.index, address, when, position, None);
                text += &format!("{when:?} {position:?} {answer:?}\n");
            }
        }
    }
    text
}

fn listings(timeline: &Timeline) -> String {
    let mut text = format!("{:?} {:?}\n", timeline.facts(), timeline.diagnostics());
    for process in timeline.processes() {
        text += &format!("{process:?}\n");
        for body in timeline.bodies(process.index) {
            text += &format!("{body:?}\n");
        }
        for module in timeline.modules(process.index) {
            let files = (module.module.il_path, module.module.managed_pdb);
            text += &format!(
                "{} {:?} {:?} {:?} {}\n",
                module.name, module.start, module.end, files, module.bodies
            );
        }
        for image in timeline.images(process.index) {
            text += &format!(
                "{} {:?} {:x}\n",
                image.name, image.lifetime, image.image.base
            );
        }
    }
    text.replace("lacks_samples: true", "lacks_samples: false")
}

fn samples(timeline: &Arc<Timeline>) -> String {
    let mut text = String::new();
    let profile = timeline.profile(&Filter::default(), None);
    for entry in &profile.entries {
        let frames = profile.resolver.stack(entry.stack);
        let frames = frames.map(|frame| profile.resolver.frame(frame));
        let labels: Vec<_> = frames
            .map(|it| (it.label().to_owned(), it.certainty))
            .collect();
        text += &format!("{} {:?} {labels:?}\n", entry.samples, entry.time_ns);
    }
    text
}

/// Names precompiled code of a module after all of its starts: each is needed to find its file.
struct Starts;

impl SymbolSource for Starts {
    fn precompiled_range(&self, module: &ModuleRef<'_>) -> Result<Range<u64>, LineReason> {
        match module.precompiled_starts().next() {
            Some(_) => Ok(0x1000..0x1500),
            None => Err(LineReason::NoILMap),
        }
    }

    fn precompiled(&self, module: &ModuleRef<'_>, _: u64) -> Option<PrecompiledCode> {
        let starts: Vec<_> = module.precompiled_starts().collect();
        let mut code = PrecompiledCode::new(0);
        code.name = Some(format!("{starts:?}").into());
        Some(code)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_saved_timeline_resolves_like_the_original(steps in steps()) {
        let timeline = session(&steps, Options::default()).finish();
        let bytes = save(&timeline);
        let saved = open(&bytes, Options::default()).expect("what was saved");
        prop_assert_eq!(listings(&timeline), listings(&saved));
        prop_assert_eq!(samples(&timeline), samples(&saved));
        for (pid, address) in PIDS.iter().flat_map(|&pid| addresses().map(move |it| (pid, it))) {
            prop_assert_eq!(answers(&timeline, pid, address), answers(&saved, pid, address));
        }
        prop_assert_eq!(&save(&saved), &bytes, "a fixed point");
    }

    #[test]
    fn addresses_are_answered_by_a_few_blocks(steps in steps()) {
        let timeline = session(&steps, Options::default()).finish();
        let bytes = timeline.save(Vec::new(), &SaveOptions::new()).expect("memory");
        let saved = SavedTimeline::open(&bytes).expect("what was saved");
        for address in addresses().step_by(5) {
            for (pid, position) in [(7, Position::Exact), (9, Position::Return)] {
                for time in [None, Some(40)] {
                    let part = saved.timeline_of(Some(pid), time, &[address], position);
                    let (part, _) = part.expect("what was saved");
                    let process = part.processes().find(|it| it.pid == Some(pid));
                    let when = time.map_or(When::Unknown, When::At);
                    // Numbers of bodies are other ones.
                    let text = |timeline: &Timeline| {
                        let process = process.as_ref()?.index;
                        let answer = timeline.resolve(process, address, when, position, Some(&Starts));
                        let mut text = format!("{answer:?}");
                        while let Some(at) = text.find("BodyIndex(") {
                            let end = text[at..].find(')')? + at;
                            text.replace_range(at..=end, "body");
                        }
                        Some(text)
                    };
                    prop_assert_eq!(text(&timeline), text(&part));
                }
            }
        }
    }

    #[test]
    fn bodies_are_named_by_their_blocks_alone(steps in steps()) {
        let timeline = session(&steps, Options::default()).finish();
        let bytes = timeline.save(Vec::new(), &SaveOptions::new()).expect("memory");
        let saved = SavedTimeline::open(&bytes).expect("what was saved");
        for address in addresses().step_by(5) {
            for (pid, position, time) in [(7, Position::Exact, 25), (9, Position::Return, 40)] {
                let (part, _) = saved.bodies_of(Some(pid), &[address], position).expect("what was saved");
                let labels = |timeline: &Timeline| {
                    let process = timeline.find_process(pid, None)?;
                    let body = timeline.body(process, address, time, position)?;
                    let frames = timeline.frames(process, address, time, position, Some(&Starts));
                    let labels: Vec<_> = frames.iter().map(|it| it.label().to_owned()).collect();
                    let mut label = String::new();
                    if timeline.push_body_label(process, body, Some(&Starts), &mut label) {
                        assert_eq!(labels, [label]);
                    }
                    // Guesses depend on the files of modules.
                    let guess = |it: &Frame| it.certainty == Some(Certainty::Approximate);
                    (!frames.iter().any(guess)).then_some(labels)
                };
                if let Some(part) = labels(&part) {
                    prop_assert_eq!(labels(&timeline), Some(part));
                }
            }
        }
    }

    #[test]
    fn deltas_answer_as_what_was_pushed(steps in steps(), every in 1_usize..20, cut in 0_usize..4000) {
        let (mut live, mut offline) = (LiveSession::new(), Session::new(SampleSelection::None));
        live.keep_deltas();
        let mut bytes = Vec::new();
        for ((step, time), number) in steps.iter().zip(10..).zip(1..) {
            apply(&mut |at, fact| live.apply(at, fact), time, step);
            apply(&mut |at, fact| offline.apply(at, fact), time, step);
            if number % every == 0 {
                live.advance(time);
                live.publish();
                live.forget_before(time);
                bytes.extend(live.take_delta());
            }
        }
        bytes.extend(live.take_delta());
        // In pieces, as they arrive.
        let (mut reader, mut session) = (DeltaReader::new(), Session::new(SampleSelection::None));
        let cut = cut.min(bytes.len());
        let read = reader.read(&bytes[..cut], &mut session).expect("as written");
        let rest = reader.read(&bytes[read..], &mut session);
        prop_assert_eq!(rest, Ok(bytes.len() - read));
        let (expected, read) = (offline.finish(), session.finish());
        prop_assert_eq!(listings(&expected), listings(&read));
        for (pid, address) in PIDS.iter().flat_map(|&pid| addresses().map(move |it| (pid, it))) {
            prop_assert_eq!(answers(&expected, pid, address), answers(&read, pid, address));
        }
    }

    #[test]
    fn a_live_session_is_saved_in_its_current_state(steps in steps(), horizon in 0_u64..80) {
        let mut live = LiveSession::new();
        for (step, time) in steps.iter().zip(10..) {
            apply(&mut |at, fact| live.apply(at, fact), time, step);
        }
        live.forget_before(horizon);
        live.finish();
        let timeline = live.reader().timeline();
        let bytes = timeline.save(Vec::new(), &SaveOptions::new()).expect("memory");
        let saved = open(&bytes, SampleSelection::None).expect("what was saved");
        // Dropped elements leave gaps among indices; names and times are the same.
        let names = |timeline: &Timeline, address| -> Vec<String> {
            let mut all = Vec::new();
            for process in timeline.processes() {
                for time in TIMES.iter().copied().filter(|&time| time >= horizon) {
                    let frames = timeline.frames(process.index, address, time, Position::Exact, None);
                    all.extend(frames.iter().map(|it| format!("{} {:?} {:?}", it.label(), it.name(), it.certainty)));
                }
            }
            all
        };
        for address in addresses() {
            prop_assert_eq!(names(&timeline, address), names(&saved, address));
        }
    }
}

fn example() -> Vec<u8> {
    let steps: Vec<Step> = (0..60)
        .map(|i| ((i % 17) as u8, i % 3, i as u64 % 6, i as u64 % 8))
        .collect();
    save(&session(&steps, Options::default()).finish())
}

#[test]
fn truncated_or_changed_files_are_rejected() {
    let bytes = example();
    assert!(open(&bytes, Options::default()).is_ok());
    for end in 0..bytes.len() {
        let error = open(&bytes[..end], Options::default()).expect_err("a part");
        match end {
            0..8 => assert_eq!(error, SavedError::NotSaved),
            _ => assert_eq!(error, SavedError::CutShort { length: end as u64 }),
        }
    }
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x41;
        assert!(open(&changed, Options::default()).is_err(), "byte {at}");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(open(&longer, Options::default()).is_err());
    let mut newer = bytes;
    newer[8] = 5;
    let error = SavedError::NewerVersion { found: 5, known: 4 };
    assert_eq!(open(&newer, Options::default()).err(), Some(error));
}

fn deltas() -> Vec<u8> {
    let mut live = LiveSession::new();
    live.keep_deltas();
    let mut bytes = Vec::new();
    for time in 10..70 {
        let number = time as usize - 10;
        let step = ((number % 17) as u8, number % 3, time % 6, time % 8);
        apply(&mut |at, fact| live.apply(at, fact), time, &step);
        if time % 20 == 0 {
            bytes.extend(live.take_delta());
        }
    }
    bytes.extend(live.take_delta());
    assert!(live.take_delta().is_empty(), "nothing was pushed since");
    bytes
}

#[test]
fn deltas_cut_short_have_what_was_complete_and_changed_ones_are_refused() {
    let bytes = deltas();
    let read = |bytes: &[u8]| {
        let mut session = Session::new(SampleSelection::None);
        let read = DeltaReader::new().read(bytes, &mut session);
        read.map(|read| (read, listings(&session.finish())))
    };
    let whole = read(&bytes).expect("as written");
    assert_eq!(whole.0, bytes.len());
    let mut lengths = Vec::new();
    for end in 0..bytes.len() {
        let (length, _) = read(&bytes[..end]).expect("a part");
        assert!(length <= end);
        lengths.push(length);
    }
    lengths.dedup();
    assert_eq!(lengths.len(), 1 + 4, "nothing, or up to one of four deltas");
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x41;
        assert!(read(&changed).is_err(), "byte {at}");
    }
}

#[test]
fn options_select_samples_of_a_saved_timeline() {
    let bytes = example();
    let samples = |options: SampleSelection| open(&bytes, options).expect("whole").samples().len();
    assert_eq!(samples(SampleSelection::None), 0);
    assert_eq!(samples(SampleSelection::Profilers), 60);
    let steps = [(0, 1, 1, 1)];
    let without = session(&steps, Options::default()).finish();
    let without = without
        .save(Vec::new(), &SaveOptions::new())
        .expect("memory");
    let without = open(&without, Options::default()).expect("whole");
    assert!(without.facts().lacks_samples);
    assert!(without.samples().is_empty());
}

#[test]
fn diagnostics_of_the_trace_are_kept() {
    let mut diagnostics = Diagnostics::default();
    diagnostics.add_counts(&[(
        3,
        chronosym_core::DiagnosticKind::LostEvents,
        "events were lost",
    )]);
    let timeline = session(&[], Options::default()).finish();
    let options = SaveOptions::new().with_diagnostics(&diagnostics);
    let bytes = timeline.save(Vec::new(), &options).expect("memory");
    let saved = SavedTimeline::open(&bytes).expect("whole");
    let read = saved.read_into(&mut Session::new(Options::default()));
    assert_eq!(read, Ok(diagnostics));
}

#[test]
fn losses_keep_what_they_concern() {
    let mut session = session(&[], Options::default());
    let loss = Loss::of_events(10, 20, 3);
    let of_process = loss.of_process(Some(0)).scope(LossScope::System);
    let losses = [loss, of_process, loss.scope(LossScope::Runtime)];
    losses.iter().for_each(|loss| session.lost(*loss));
    let bytes = session.finish().save(Vec::new(), &SaveOptions::new());
    let saved = open(&bytes.expect("memory"), Options::default()).expect("whole");
    assert_eq!(saved.losses(), losses);
}

/// Makes the file that the next test reads, for a version of the format that is new.
#[test]
#[ignore = "writes a file"]
fn write_the_example() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/version4.chrono");
    std::fs::write(path, example()).expect("a writable folder");
}

/// Files of earlier versions are read as this one.
#[test]
fn every_version_is_read() {
    is_read(include_bytes!("data/version1.chrono"));
    is_read(include_bytes!("data/version2.chrono"));
    is_read(include_bytes!("data/version3.chrono"));
    is_read(include_bytes!("data/version4.chrono"));
}

fn is_read(bytes: &[u8]) {
    let saved = open(bytes, Options::default()).expect("a known version");
    let steps: Vec<Step> = (0..60)
        .map(|i| ((i % 17) as u8, i % 3, i as u64 % 6, i as u64 % 8))
        .collect();
    let timeline = session(&steps, Options::default()).finish();
    assert_eq!(listings(&timeline), listings(&saved));
    assert_eq!(samples(&timeline), samples(&saved));
    for address in addresses() {
        let file = SavedTimeline::open(bytes).expect("a known version");
        let (part, _) = file
            .timeline_of(None, Some(40), &[address], Position::Return)
            .expect("a known version");
        for pid in PIDS {
            let names = |timeline: &Timeline| {
                let process = timeline.find_process(pid, None)?;
                let frames = timeline.frames(process, address, 40, Position::Return, None);
                Some(
                    frames
                        .iter()
                        .map(|it| it.label().to_owned())
                        .collect::<Vec<_>>(),
                )
            };
            assert_eq!(names(&timeline), names(&part));
        }
    }
}
