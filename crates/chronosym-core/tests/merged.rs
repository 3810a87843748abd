//! Two recordings of one process, merged, answer as one recording with the data of both.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use chronosym_core::facts::{At, Fact, IlMap, Image, Method, Module, Process, ProcessKey, Symbol};
use chronosym_core::{
    Action, MergeError, Options, Position, SaveOptions, SavedTimeline, Session, Timeline, merge,
};
use proptest::prelude::*;

const PID: u32 = 7;
/// Time between two steps: more than the error of the clocks.
const STEP_NS: u64 = 10_000_000;
const BEGAN_UNIX_NS: i128 = 1_700_000_000_000_000_000;

/// One step of a history: the event, a method or image, and an address.
type Step = (u8, u64, u64);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((0_u8..15, 0_u64..6, 0_u64..8), 0..30)
}

fn at(time_ns: u64) -> At {
    At::new(time_ns).process(PID).thread(1)
}

fn range(id: u64, slot: u64) -> Range<u64> {
    let start = 0x1000 + slot * 0x80;
    start..start + 0x40 + 0x30 * (id % 3)
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

fn method<'a>(action: Action, id: u64, slot: u64) -> Method<'a> {
    let Range { start, end } = range(id, slot);
    let size = (end - start) as u32;
    let name = ["First", "Second", "Third"][(id % 3) as usize];
    let mut method = Method::new(action, id, start, size).in_module(1 + id % 2, 0x600_0001);
    method.native_code_version = 1 + slot;
    method.named("Ns.Type", name, "void ()")
}

fn apply(session: &mut Session, time_ns: u64, &(what, id, slot): &Step) {
    let path = format!("/app/m{id}.dll");
    let image = |action| Image::new(action, 0x1000 + slot * 0x100, 0x180, &*path);
    let fact: Fact<'_> = match what {
        0..=2 => method(Action::Load, id, slot).into(),
        3 => method(Action::Unload, id, slot).into(),
        4 => method(Action::DCEnd, id, slot).into(),
        5 => method(Action::DCStart, id, slot).into(),
        6 => image(Action::Load).into(),
        7 => image(Action::Unload).into(),
        8 => Symbol::new(0x1000 + slot * 0x80, 0x1020 + slot * 0x80, "stub").into(),
        14 => {
            let entries = [(0, 0), (1 + slot as i32, 4), (20, 0x20)];
            let mut map = IlMap::new(Action::Load, id, &entries);
            map.version = Some(1 + slot);
            session.apply(at(time_ns), map);
            return;
        }
        9 => Fact::ThreadName(["", "main", "worker"][(id % 3) as usize].into()),
        _ => {
            let action = [Action::Load, Action::Unload, Action::DCStart, Action::DCEnd];
            let path = format!("/app/module{}.dll", 1 + id % 2);
            let module = Module::new(action[usize::from(what - 10)], 1 + id % 2, &*path);
            session.apply(at(time_ns), module);
            return;
        }
    };
    session.apply(at(time_ns), fact);
}

/// What every recording of the process lists at its start.
fn list_core(session: &mut Session, time_ns: u64) {
    let core = Module::new(Action::DCStart, 0x7f00, "/app/core.dll");
    session.apply(at(time_ns), core);
}

/// A recording that began at a time.
fn recording(began_ns: u64) -> Session {
    let mut session = Session::new(Options::default());
    session.facts().start_unix_ns = Some(BEGAN_UNIX_NS + i128::from(began_ns));
    session
}

fn save(session: Session) -> Vec<u8> {
    let timeline = session.finish();
    let saved = timeline.save(Vec::new(), &SaveOptions::new());
    saved.expect("memory")
}

fn merged(files: &[&[u8]]) -> Result<Arc<Timeline>, MergeError> {
    let names = ["first", "second", "third"].iter();
    let files = names.zip(files);
    let files = files.map(|(name, bytes)| (*name, SavedTimeline::open(bytes).expect("saved")));
    let mut session = Session::new(Options::default());
    merge(&files.collect::<Vec<_>>(), &mut session)?;
    Ok(session.finish())
}

/// Returns the names at all addresses and times of a number of steps.
fn names(timeline: &Timeline, steps: u64) -> Vec<String> {
    let process = timeline.find_process(PID, None).expect("the process");
    let mut all = Vec::new();
    for address in (0x0f80..0x1800).step_by(0x58) {
        for time in (0..=steps).map(|step| step * STEP_NS + STEP_NS / 2) {
            let frames = timeline.frames(process, address, time, Position::Exact, None);
            let names: Vec<_> = (frames.iter())
                .map(|it| (it.name().ok(), it.il_offset))
                .collect();
            all.push(format!("{address:#x} at {time}: {names:?}"));
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, max_shrink_iters: 150, ..ProptestConfig::default() })]

    #[test]
    fn halves_of_a_recording_answer_as_the_whole(steps in steps(), first in 0_usize..30) {
        let split = first.min(steps.len()).max(1);
        let split_ns = split as u64 * STEP_NS;
        let (mut whole, mut halves) = (recording(0), [recording(0), recording(split_ns)]);
        list_core(&mut whole, 0);
        list_core(&mut halves[0], 0);
        list_core(&mut halves[1], 0);
        let mut mapped = BTreeSet::new();
        let mut loaded = BTreeSet::new();
        let (mut loads, mut methods) = ([0; 2], BTreeMap::new());
        let (mut stated, mut unloaded) = (Vec::new(), BTreeSet::new());
        let mut listed = [None; 2];
        let mut loaded_before = None;
        for (index, step) in steps.iter().enumerate() {
            let time = index as u64 * STEP_NS;
            let method_before = std::mem::take(&mut loaded_before);
            let mut step = *step;
            // An image is mapped once, and a module loaded once before its unload, and not after a
            // list of its methods. Between its unload and its load there are none of its methods;
            // only those since its load are listed or unloaded, and none is listed where another one
            // is. An IL map follows the load of its method.
            if let (0..=5, id, slot) = step {
                let load = loads[id as usize % 2];
                let before = methods.get(&(id, slot)).copied().unwrap_or(load);
                let range = range(id, slot);
                let there = stated.iter().rev().find(|(other, _)| overlap(other, &range));
                let is_there = there.is_none_or(|(_, other)| *other == (id, slot));
                let is_gone = unloaded.contains(&(id % 2));
                if is_gone || step.0 > 2 && (before != load || step.0 == 5 && !is_there) {
                    continue;
                }
                if step.0 > 2 {
                    listed[id as usize % 2] = Some(load);
                }
                methods.insert((id, slot), load);
                stated.push((range, (id, slot)));
            }
            match step {
                (0..=2 | 5, id, slot) => loaded_before = Some((id, slot)),
                (10, id, _) if listed[id as usize % 2] == Some(loads[id as usize % 2]) => continue,
                (10, id, _) if !loaded.insert(id % 2) => continue,
                (10, id, _) => {
                    unloaded.remove(&(id % 2));
                    loads[id as usize % 2] += 1;
                }
                (11, id, _) => {
                    loaded.remove(&(id % 2));
                    unloaded.insert(id % 2);
                    loads[id as usize % 2] += 1;
                }
                (12 | 13, id, _) => {
                    unloaded.remove(&(id % 2));
                    loaded.insert(id % 2);
                }
                (14, ..) => match method_before {
                    Some((id, slot)) => (step.1, step.2) = (id, slot),
                    None => continue,
                },
                (6, id, slot) if !mapped.insert((id, slot)) => continue,
                (7, id, slot) => _ = mapped.remove(&(id, slot)),
                _ => {}
            }
            apply(&mut whole, time, &step);
            match index < split {
                true => apply(&mut halves[0], time, &step),
                false => apply(&mut halves[1], time - split_ns, &step),
            }
        }
        let halves = halves.map(save);
        let whole = whole.finish();
        let merged = merged(&[&halves[0], &halves[1]]).expect("one process");
        prop_assert_eq!(merged.processes().count(), 1);
        let count = steps.len() as u64;
        for (expected, found) in names(&whole, count).iter().zip(names(&merged, count)) {
            prop_assert_eq!(expected, &found);
        }
    }
}

/// An agent appends what happens; a list of the code that ran before comes from another session.
#[test]
fn a_list_of_earlier_code_completes_a_recording() {
    let (mut list, mut events) = (recording(0), recording(STEP_NS));
    list_core(&mut list, 0);
    list_core(&mut events, 0);
    list.apply(at(10), Module::new(Action::DCStart, 1, "/app/m.dll"));
    list.apply(at(10), method(Action::DCStart, 1, 1));
    events.apply(at(STEP_NS), method(Action::Load, 2, 4));
    events.apply(at(3 * STEP_NS), method(Action::Unload, 1, 1));
    let (list, events) = (save(list), save(events));
    for files in [[&list, &events], [&events, &list]] {
        let merged = merged(&files.map(Vec::as_slice)).expect("one process");
        let process = merged.find_process(PID, None).expect("the process");
        let name = |address, time| {
            let frames = merged.frames(process, address, time, Position::Exact, None);
            frames[0].name().ok().map(str::to_owned)
        };
        let name = |address, step| name(address, step * STEP_NS + STEP_NS / 2);
        assert_eq!(name(0x1088, 0).as_deref(), Some("Ns.Type.Second"));
        assert_eq!(name(0x1088, 3).as_deref(), Some("Ns.Type.Second"));
        assert_eq!(name(0x1088, 5), None, "unloaded in the other recording");
        assert_eq!(name(0x1208, 3).as_deref(), Some("Ns.Type.Third"));
        let (time, position) = (3 * STEP_NS, Position::Exact);
        let frames = merged.frames(process, 0x1208, time, position, None);
        assert_eq!(
            frames[0].module(),
            Some("m"),
            "listed in the other recording"
        );
    }
}

fn name_at(timeline: &Timeline, address: u64, time_ns: u64) -> Option<String> {
    let process = timeline.find_process(PID, None).expect("the process");
    let frames = timeline.frames(process, address, time_ns, Position::Exact, None);
    frames[0].name().ok().map(str::to_owned)
}

#[test]
fn a_repeated_unload_adds_no_lifetime() {
    let (mut first, mut second) = (recording(0), recording(4 * STEP_NS));
    for session in [&mut first, &mut second] {
        list_core(session, 0);
    }
    first.apply(at(0), method(Action::Load, 1, 1));
    first.apply(at(STEP_NS), method(Action::Unload, 1, 1));
    second.apply(at(STEP_NS), method(Action::Unload, 1, 1));
    let merged = merged(&[&save(first), &save(second)]).expect("one process");
    let name = |step| name_at(&merged, 0x1088, step * STEP_NS + STEP_NS / 2);
    assert_eq!(name(0).as_deref(), Some("Ns.Type.Second"));
    assert_eq!([name(2), name(4)], [None, None]);
}

#[test]
fn code_ends_with_a_module_that_another_recording_unloads() {
    let (mut first, mut second) = (recording(0), recording(2 * STEP_NS));
    for session in [&mut first, &mut second] {
        list_core(session, 0);
    }
    first.apply(at(0), method(Action::Load, 1, 1));
    second.apply(at(0), Module::new(Action::Unload, 2, "/app/m.dll"));
    let image = Image::new(Action::Load, 0x1000, 0x1000, "/app/other.dll");
    second.apply(at(2 * STEP_NS), image);
    let merged = merged(&[&save(first), &save(second)]).expect("one process");
    let name = |step| name_at(&merged, 0x1088, step * STEP_NS + STEP_NS / 2);
    assert_eq!(name(1).as_deref(), Some("Ns.Type.Second"));
    assert_eq!(name(2), None, "unloaded with its module");
}

#[test]
fn an_il_map_is_joined_to_the_load_in_another_recording() {
    let (mut first, mut second) = (recording(0), recording(STEP_NS));
    for session in [&mut first, &mut second] {
        list_core(session, 0);
    }
    first.apply(at(STEP_NS / 2), method(Action::Load, 1, 1));
    let map = (14, 1, 1);
    apply(&mut second, 0, &map);
    let second = save(second);
    let merged = merged(&[&save(first), &second]).expect("one process");
    let process = merged.find_process(PID, None).expect("the process");
    let frames = merged.frames(process, 0x1088, STEP_NS, Position::Exact, None);
    assert_eq!(frames[0].il_offset.map(|it| it.offset), Some(2));
    assert!(
        merged.diagnostics().is_empty(),
        "{:?}",
        merged.diagnostics()
    );
    let alone = Timeline::open(&second).expect("saved");
    let unused = |timeline: &Timeline| {
        timeline
            .diagnostics()
            .iter()
            .map(|it| it.count)
            .sum::<u64>()
    };
    assert_eq!(unused(&alone), 1);
}

#[test]
fn code_ends_with_the_first_of_two_unloads_of_its_module() {
    let (mut first, mut second) = (recording(0), recording(2 * STEP_NS));
    for session in [&mut first, &mut second] {
        list_core(session, 0);
    }
    first.apply(at(0), method(Action::Load, 1, 1));
    for step in [0, 2] {
        second.apply(
            at(step * STEP_NS),
            Module::new(Action::Unload, 2, "/app/m.dll"),
        );
    }
    let merged = merged(&[&save(first), &save(second)]).expect("one process");
    let name = |step| name_at(&merged, 0x1088, step * STEP_NS + STEP_NS / 2);
    assert_eq!(name(1).as_deref(), Some("Ns.Type.Second"));
    assert_eq!([name(2), name(5)], [None, None]);
}

/// Its module was unloaded in between, in the recording that has the second load.
#[test]
fn code_that_is_loaded_again_ended_with_its_module() {
    let (mut first, mut second) = (recording(0), recording(STEP_NS));
    for session in [&mut first, &mut second] {
        list_core(session, 0);
    }
    first.apply(at(0), method(Action::Load, 1, 1));
    second.apply(at(0), Module::new(Action::Unload, 2, "/app/m.dll"));
    second.apply(at(STEP_NS), method(Action::Load, 1, 1));
    let merged = merged(&[&save(first), &save(second)]).expect("one process");
    let name = |step| name_at(&merged, 0x1088, step * STEP_NS + STEP_NS / 2);
    assert_eq!(name(0).as_deref(), Some("Ns.Type.Second"));
    assert_eq!(name(1), None, "unloaded with its module");
    assert_eq!(name(2).as_deref(), Some("Ns.Type.Second"));
}

#[test]
fn code_is_in_the_latest_module_of_its_id() {
    let (mut first, mut second) = (recording(0), recording(3 * STEP_NS));
    for session in [&mut first, &mut second] {
        list_core(session, 0);
    }
    for (action, step) in [(Action::Load, 0), (Action::Unload, 1), (Action::Load, 2)] {
        first.apply(at(step * STEP_NS), Module::new(action, 2, "/app/m.dll"));
    }
    second.apply(at(0), method(Action::DCStart, 1, 1));
    let merged = merged(&[&save(first), &save(second)]).expect("one process");
    let name = |step| name_at(&merged, 0x1088, step * STEP_NS + STEP_NS / 2);
    assert_eq!([name(0), name(1)], [None, None], "before the module");
    assert_eq!(name(2).as_deref(), Some("Ns.Type.Second"));
}

#[test]
fn what_happens_between_recordings_is_lost() {
    let (mut first, mut second) = (recording(0), recording(10 * STEP_NS));
    for session in [&mut first, &mut second] {
        list_core(session, 0);
        session.apply(at(STEP_NS), method(Action::Load, 1, 1));
        session.apply(at(2 * STEP_NS), method(Action::Load, 2, 4));
    }
    let merged = merged(&[&save(first), &save(second)]).expect("one process");
    let process = merged.find_process(PID, None).expect("the process");
    let losses = merged.losses();
    assert_eq!(losses.len(), 1);
    assert_eq!(losses[0].from_ns, 2 * STEP_NS);
    assert_eq!(losses[0].to_ns, 10 * STEP_NS);
    let frames = merged.frames(process, 0x1088, 5 * STEP_NS, Position::Exact, None);
    assert_eq!(frames[0].name(), Ok("Ns.Type.Second"));
}

#[test]
fn processes_are_the_same_by_their_keys() {
    let with_key = |began_ns, key: ProcessKey| {
        let mut session = recording(began_ns);
        session.apply(at(0), Process::new(Action::DCStart, "app"));
        session.apply(at(0), key);
        session.apply(at(STEP_NS), method(Action::Load, 1, 1));
        save(session)
    };
    let started = |ns| ProcessKey::new(Some(ns), None);
    let inside = |inode| ProcessKey::new(Some(100), Some(inode));
    let result = |a, b| merged(&[&with_key(0, a), &with_key(STEP_NS, b)]);
    let same = result(started(100), started(200)).expect("one process");
    assert_eq!(same.processes().count(), 1);
    let process = same.processes().next().expect("the process");
    assert_eq!(process.started_unix_ns, Some(100));
    let other = result(started(100), started(3_000_000_000));
    assert!(
        matches!(other, Err(MergeError::SameProcess { .. })),
        "{other:?}"
    );
    let other = result(inside(1), inside(2));
    assert!(
        matches!(other, Err(MergeError::SameProcess { .. })),
        "{other:?}"
    );
    let unknown = result(ProcessKey::default(), ProcessKey::default());
    assert!(
        matches!(unknown, Err(MergeError::SameProcess { .. })),
        "{unknown:?}"
    );
}

#[test]
fn a_recording_is_merged_once() {
    let mut session = recording(0);
    list_core(&mut session, 0);
    session.apply(at(STEP_NS), method(Action::Load, 1, 1));
    let file = save(session);
    let twice = merged(&[&file, &file]);
    assert!(
        matches!(twice, Err(MergeError::SameRecording { .. })),
        "{twice:?}"
    );
}
