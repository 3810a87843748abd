//! A batch has the frames of single queries, and a resolver that follows a live session those of a
//! new one.

use std::sync::Arc;

use allocation_counter::measure;
use chronosym_core::facts::{
    At, Fact, IlMap, Image, Method, Module, Process, Sample, Stub, Symbol,
};
use chronosym_core::{
    Action, AddressAt, AddressQuery, BatchQuery, BodyIndex, Certainty, Code, Frame, FrameTable,
    LiveSession, Loss, NameReason, Options, Position, QueryProcess, ResolvedBatch, Resolver,
    Session, StackQuery, TableFrame, Timeline, When,
};
use proptest::prelude::*;

const PIDS: [u32; 3] = [4, 7, 9];

/// One step of a history: the event, its address, and its process.
#[derive(Clone, Debug)]
struct Step {
    what: u8,
    pid: usize,
    id: u64,
    slot: u64,
}

fn step() -> impl Strategy<Value = Step> {
    (0_u8..16, 0..PIDS.len(), 0_u64..6, 0_u64..8).prop_map(|(what, pid, id, slot)| Step {
        what,
        pid,
        id,
        slot,
    })
}

fn apply(live: &mut LiveSession, time: u64, step: &Step) {
    let at = At::new(time).process(PIDS[step.pid]).thread(step.id % 2);
    let (start, size) = (
        0x1000 + step.slot * 0x80,
        0x40 + 0x30 * (step.id as u32 % 3),
    );
    let names = ["", "First", "Second"];
    let name = names[(step.slot % 3) as usize];
    let path = format!("/app/m{}.dll", step.id);
    let module = |action| Module::new(action, step.id, &*path);
    let method = |action| {
        let method = Method::new(action, step.id, start, size).in_module(step.id, 1);
        method.named("Ns.Type", name, "void ()")
    };
    match step.what {
        0 | 1 => live.apply(at, method(Action::Load)),
        2 => live.apply(at, method(Action::Unload)),
        3 => live.apply(at, method(Action::DCEnd)),
        4 => live.apply(at, method(Action::DCStart)),
        5 => live.apply(at, IlMap::new(Action::Load, step.id, &[(0, 0), (9, 0x20)])),
        6 => live.apply(at, module(Action::Load)),
        7 => live.apply(at, module(Action::DCEnd)),
        8 => live.apply(at, module(Action::Unload)),
        9 => live.apply(at, Image::new(Action::Load, start & !0xff, 0x180, &*path)),
        10 => live.apply(at, Stub::new(step.id, ["Native", name, ""])),
        11 => live.apply(at, Symbol::new(start, start + 0x20, name)),
        12 => live.apply(at, Process::new(Action::Unload, "")),
        13 => live.apply(at, Process::new(Action::Load, "again")),
        14 => live.apply(at, Fact::RundownComplete { clr_instance: 0 }),
        _ => live.lost(Loss::between(time, time + 1)),
    }
}

/// Compares a table's frame.
fn is_frame(table: &FrameTable, at: TableFrame, frame: &Frame) -> bool {
    let index = at.index();
    let text = |id| Some(table.text(id)).filter(|text| !text.is_empty());
    let line = frame.line.as_ref().ok();
    let body = match frame.code {
        Code::Body(process, body) => Some((process, body)),
        _ => None,
    };
    text(table.module()[index]) == frame.module()
        && text(table.method()[index]) == frame.name().ok()
        && text(table.signature()[index]) == frame.signature()
        && text(table.file()[index]) == line.map(|line| &*line.file)
        && table.line()[index] == line.map_or(0, |line| line.line)
        && table.inlined()[index] == frame.inlined
        && table.tier()[index] == frame.tier
        && table.evidence()[index] == frame.evidence
        && table.certainty()[index] == frame.certainty
        && table.reason()[index] == frame.name_reason()
        && table.line_reason()[index] == frame.line_reason()
        && table.body()[index] == body
}

/// The body that was alive at the address of frames.
fn body_of(frames: &[Frame]) -> Option<BodyIndex> {
    let frame = frames.last()?;
    match frame.code {
        Code::Body(_, body) if frame.certainty != Some(Certainty::Approximate) => Some(body),
        _ => None,
    }
}

/// Queries of all slots of all processes at several times, by pid and by index.
fn queries(timeline: &Timeline, now: u64) -> Vec<AddressQuery> {
    let mut queries = Vec::new();
    for time_ns in [now / 2, now - 1, now] {
        for pid in PIDS {
            let index = timeline.process_of(pid, time_ns).map(QueryProcess::Index);
            for process in [Some(QueryProcess::Pid(pid)), index].into_iter().flatten() {
                for address in (0x0fff..0x1480).step_by(0x21) {
                    for position in [Position::Exact, Position::Return] {
                        queries.push(AddressQuery {
                            process,
                            address,
                            time_ns,
                            position,
                        });
                    }
                }
            }
        }
    }
    queries
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn batches_and_resolvers_that_follow_have_the_frames_of_single_queries(
        steps in prop::collection::vec(step(), 1..60),
        every in 1_usize..12,
    ) {
        let mut live = LiveSession::new();
        let reader = live.reader();
        let mut resolver = Resolver::new(&reader.timeline(), None);
        let mut batch = ResolvedBatch::default();
        for (number, step) in steps.iter().enumerate() {
            let now = (number as u64 + 1) * 10;
            apply(&mut live, now, step);
            if number % every != 0 {
                continue;
            }
            if step.slot == 0 {
                live.forget_before(now / 2);
            }
            live.advance(now);
            live.publish();
            let timeline = reader.timeline();
            resolver.advance_to(&timeline);
            let mut fresh = Resolver::new(&timeline, None);
            let queries = queries(&timeline, now);
            resolver.resolve_batch(&queries, &mut batch);
            prop_assert_eq!(batch.len(), queries.len());
            for (index, query) in queries.iter().enumerate() {
                let process = match query.process {
                    QueryProcess::Index(process) => Some(process),
                    QueryProcess::Pid(pid) => timeline.process_of(pid, query.time_ns),
                };
                let Some(process) = process else {
                    prop_assert!(resolver.frame_table().body()[batch.frames_of(index)[0].index()].is_none());
                    continue;
                };
                let &AddressQuery { address, time_ns, position, .. } = query;
                let frames = timeline.frames(process, address, time_ns, position, None);
                let table = resolver.frame_table();
                let resolved = batch.frames_of(index);
                prop_assert_eq!(resolved.len(), frames.len());
                let body = timeline.body(process, address, time_ns, position);
                prop_assert_eq!(body, body_of(&frames), "{:?}", query);
                for (at, frame) in resolved.iter().zip(&frames) {
                    prop_assert!(is_frame(table, *at, frame), "{:?} is not {:?}", query, frame);
                }
                let single = |resolver: &mut Resolver| {
                    let when = When::At(time_ns);
                    let stack = resolver.resolve_addresses(process, &[address], when, position);
                    let (stack, valid) = stack.expect("an address");
                    (resolver.frame(resolver.leaf(stack)).clone(), valid)
                };
                let (frame, valid) = single(&mut resolver);
                prop_assert_eq!(&frame, &frames[0]);
                prop_assert!(valid.contains(&time_ns));
                prop_assert_eq!(single(&mut fresh).0, frame);
            }
        }
    }
}

/// `count` methods of one process, alive from 10.
fn frozen(count: u64) -> Arc<Timeline> {
    let mut session = Session::new(Options::default());
    for id in 0..count {
        let name = format!("M{id}");
        let method = Method::new(Action::Load, id, 0x1000 + id * 0x100, 0x80);
        let at = At::new(10).process(7).thread(1);
        session.apply(at, method.named("Type", &*name, ""));
    }
    session.finish()
}

/// Without a rundown, a loss after an address was sampled could not have described its code.
#[test]
fn the_reason_for_no_code_changes_at_a_loss() {
    let mut session = Session::new(Options::default());
    let method = Method::new(Action::Load, 1, 0x1000, 0x80).named("Type", "Run", "");
    session.apply(At::new(10).process(7).thread(1), method);
    session.lost(Loss::between(100, 120));
    session.sample(At::new(300).process(7), &[0x1010], Sample::cpu());
    let mut resolver = Resolver::new(&session.finish(), None);
    let mut batch = ResolvedBatch::default();
    let queries = [50, 100, 101, 200, 50].map(|time_ns| AddressQuery {
        address: 0x9000,
        time_ns,
        ..query(0)
    });
    resolver.resolve_batch(&queries, &mut batch);
    let reasons = batch
        .frames()
        .iter()
        .map(|frame| resolver.frame_table().reason()[frame.index()]);
    let [before, after] = [NameReason::NoRundown, NameReason::EventsLost].map(Some);
    assert!(reasons.eq([before, before, after, after, before]));
}

fn query(number: u64) -> AddressQuery {
    AddressQuery {
        process: QueryProcess::Pid(7),
        address: 0x1000 + number % 500 * 0x80,
        time_ns: 20,
        position: Position::Exact,
    }
}

/// A query in a layout of its own.
struct Own(AddressQuery, bool);

impl BatchQuery for Own {
    fn query(&self) -> AddressQuery {
        self.0
    }

    fn is_valid(&self) -> bool {
        self.1
    }
}

#[test]
fn batches_with_an_invalid_query_have_no_answers() {
    let mut resolver = Resolver::new(&frozen(200), None);
    let mut batch = ResolvedBatch::default();
    // One thread, and several.
    for count in [10, 200_000] {
        let mut queries: Vec<_> = (0..count).map(|it| Own(query(it), true)).collect();
        resolver.resolve_batch(&queries, &mut batch);
        assert_eq!(batch.len(), queries.len());
        queries.last_mut().expect("a query").1 = false;
        resolver.resolve_batch(&queries, &mut batch);
        assert!(batch.is_empty() && batch.frames().is_empty());
    }
}

#[test]
fn batches_allocate_nothing_for_each_query() {
    let mut resolver = Resolver::new(&frozen(200), None);
    let queries: Vec<_> = (0..200_000).map(query).collect();
    let mut batch = ResolvedBatch::default();
    resolver.resolve_batch(&queries, &mut batch);
    for (index, query) in queries.iter().enumerate() {
        let &[frame] = batch.frames_of(index) else {
            panic!("not one frame");
        };
        let method = resolver.frame_table().method()[frame.index()];
        let number = (query.address - 0x1000) / 0x80;
        let expected = match number % 2 == 0 && number < 400 {
            true => format!("Type.M{}", number / 2),
            false => String::new(),
        };
        assert_eq!(resolver.frame_table().text(method), expected);
    }
    // Some for each thread.
    let allocations = |resolver: &mut Resolver, batch: &mut ResolvedBatch, count: usize| {
        measure(|| resolver.resolve_batch(&queries[..count], batch)).count_total
    };
    assert_eq!(allocations(&mut resolver, &mut batch, 30_000), 0);
    assert!(allocations(&mut resolver, &mut batch, 200_000) < 200);
}

#[test]
fn stacks_have_the_frames_of_their_addresses() {
    let mut resolver = Resolver::new(&frozen(200), None);
    let mut batch = ResolvedBatch::default();
    let addresses = [0x1010, 0x1111, 0x1001];
    let stack = |leaf_first| StackQuery {
        process: QueryProcess::Pid(7),
        leaf_first,
        time_ns: 20,
        position: Position::Exact,
    };
    resolver.resolve_stacks(
        &[stack(&addresses), stack(&[]), stack(&addresses[1..])],
        &mut batch,
    );
    let names = |index| -> Vec<&str> {
        let table = resolver.frame_table();
        let frames = batch.frames_of(index).iter();
        frames
            .map(|frame| table.text(table.method()[frame.index()]))
            .collect()
    };
    assert_eq!(batch.offsets(), [0, 3, 3, 5]);
    assert_eq!(names(0), ["Type.M0", "Type.M1", "Type.M0"]);
    assert!(names(1).is_empty());
    assert_eq!(names(2), ["Type.M1", "Type.M0"]);
    assert!(batch.frames_of(3).is_empty() && batch.frames_of(usize::MAX).is_empty());
}

#[test]
fn ids_are_stable_without_changes() {
    let mut live = LiveSession::new();
    let at = |time| At::new(time).process(7).thread(1);
    let method = |id: u64| {
        Method::new(Action::Load, id, 0x1000 * (id + 1), 64).named("Type", "Run", "void ()")
    };
    live.apply(at(10), method(0));
    live.publish();
    let reader = live.reader();
    let mut resolver = Resolver::new(&reader.timeline(), None);
    let resolve = |resolver: &mut Resolver| {
        let process = resolver
            .timeline()
            .find_process(7, None)
            .expect("the process");
        let stack = resolver.resolve_addresses(process, &[0x1010], When::At(15), Position::Exact);
        resolver.leaf(stack.expect("an address").0)
    };
    let first = resolve(&mut resolver);
    for id in 1..100 {
        live.apply(at(10 + id), method(id));
        live.publish();
        resolver.advance_to(&reader.timeline());
        assert_eq!(resolve(&mut resolver), first);
    }
    assert_eq!(resolver.frames().len(), 1);
    // A module that is known later makes another frame of the body.
    live.apply(at(200), Module::new(Action::Load, 3, "/app/a.dll"));
    let listed = Method::new(Action::DCEnd, 0, 0x1000, 64);
    live.apply(at(201), listed.in_module(3, 1));
    live.publish();
    resolver.advance_to(&reader.timeline());
    let later = resolve(&mut resolver);
    assert_ne!(later, first);
    assert_eq!(resolver.frame(later).label(), "a!Type.Run");
    assert_eq!(resolver.frame(first).label(), "Type.Run");
}

/// Code that was not loaded yet has the call before a return address, not the code at the address itself.
#[test]
fn a_body_is_never_another_one_than_that_of_the_frames() {
    let mut session = Session::new(Options::default());
    let at = At::new(100).process(42);
    let (own, before) = (0x1000, 0x0fc0);
    session.apply(
        at,
        Method::new(Action::Load, 1, own, 64).named("T", "Own", ""),
    );
    session.apply(
        at.at(2_000),
        Method::new(Action::Load, 2, before, 64).named("T", "Before", ""),
    );
    let timeline = session.finish();
    let process = timeline.find_process(42, None).unwrap();
    let mut found = Vec::new();
    for time_ns in [500, 3_000] {
        let frames = timeline.frames(process, own, time_ns, Position::Return, None);
        assert_eq!(frames[0].name(), Ok("T.Before"));
        let body = timeline.body(process, own, time_ns, Position::Return);
        assert_eq!(body, body_of(&frames));
        let mut batch = [None];
        let at = AddressAt::new(process, own, time_ns, Position::Return);
        timeline.bodies_of_batch(&[at], &mut batch);
        assert_eq!(batch, [body]);
        found.push(body.is_some());
    }
    assert_eq!(found, [false, true]);
}

#[test]
fn a_timeline_for_few_lookups_has_the_same_answers() {
    let [many, few] = [false, true].map(|few_lookups| {
        let mut options = Options::default();
        options.few_lookups = few_lookups;
        let mut session = Session::new(options);
        let at = At::new(0).process(7).thread(1);
        session.apply(
            at,
            Image::new(Action::Load, 0x1600, 0x100, "/app/native.so"),
        );
        for id in 0..40 {
            let (name, start) = (format!("M{id}"), 0x1000 + id % 13 * 0x70);
            let method = |action| Method::new(action, id, start, 0x60 + id as u32 % 3 * 0x20);
            let load = method(Action::Load).named("Type", &*name, "");
            session.apply(at.at(100 + id * 10), load);
            if id % 4 == 0 {
                session.apply(at.at(105 + id * 10), method(Action::Unload));
            }
        }
        session.finish()
    });
    let process = many.find_process(7, None).expect("the process");
    let mut bodies = 0;
    for position in [Position::Exact, Position::Return] {
        for time in (90..600).step_by(5) {
            let addresses = (0xff0..0x1720).step_by(0x10);
            let at = |address| AddressAt::new(process, address, time, position);
            let all: Vec<_> = addresses.clone().map(at).collect();
            let [expected, batch] = [&many, &few].map(|timeline| {
                let mut batch = vec![None; all.len()];
                timeline.bodies_of_batch(&all, &mut batch);
                batch
            });
            assert_eq!(batch, expected, "at {time}");
            bodies += batch.iter().flatten().count();
            for address in addresses {
                let [expected, frames] = [&many, &few]
                    .map(|timeline| timeline.frames(process, address, time, position, None));
                assert_eq!(frames, expected, "{address:#x} at {time}");
            }
        }
    }
    assert!(bodies > 1_000, "{bodies}");
}
