//! Reports of the runtime's own events, from traces written by hand: compares each pairing with a
//! naive model or with numbers counted by hand.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chronosym::runtime::{
    AdjustmentReason, AllocationEvent, AllocationKind, Allocations, Collections, Contention,
    Exceptions, GcReason, GcType, Jit, JitDecisions, Report, SuspensionReason, TailCallType,
    TailCallers, ThreadPool, keep_for_durations, weigh_by_duration,
};
use chronosym::{
    EventSelector, Filter, Options, Resolver, SampleSelection, Session, Timeline, Weight,
};
use chronosym_conformance::unzip;
use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::payload::{
    Payload, jitting_started, r2r_entry_point, r2r_entry_point_start,
};
use chronosym_support::random::Random;
use chronosym_support::trace::TypeId;

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

/// A trace of the runtime's events.
struct Trace {
    writer: NettraceWriter,
    types: BTreeMap<(u32, u32), TypeId>,
}

impl Trace {
    fn new() -> Self {
        Trace {
            writer: NettraceWriter::v4(),
            types: BTreeMap::new(),
        }
    }

    /// An event: id and version, time and thread, payload.
    fn event(&mut self, (id, version): (u32, u32), (time, thread): (i64, u64), payload: Payload) {
        self.event_with(&[], (id, version), (time, thread), &payload.finish());
    }

    fn event_with(
        &mut self,
        stack: &[u64],
        key: (u32, u32),
        (time, thread): (i64, u64),
        bytes: &[u8],
    ) {
        let types = self.types.entry(key);
        let id = *types.or_insert_with(|| self.writer.event_type(RUNTIME, key.0, key.1));
        self.writer.event(id, time, thread, stack, bytes);
    }

    fn read(self, report: Report) -> Arc<Timeline> {
        read(&self.writer.finish(), report.options())
    }
}

fn read(bytes: &[u8], options: Options) -> Arc<Timeline> {
    let mut session = Session::new(options);
    chronosym::source::nettrace::read(Cursor::new(bytes), &mut session).expect("a trace");
    session.finish()
}

fn all() -> Filter {
    Filter::default()
}

fn clr() -> Payload {
    Payload::new().u16(7)
}

// Collections.

fn gc_start(number: u32, generation: u32, reason: u32, kind: u32) -> Payload {
    let payload = Payload::new().u32(number).u32(generation).u32(reason);
    payload.u32(kind).u16(7).u64(0)
}

fn gc_end(number: u32) -> Payload {
    Payload::new().u32(number).u32(0).u16(7)
}

fn suspend(reason: u32) -> Payload {
    Payload::new().u32(reason).u32(0).u16(7)
}

fn heap_stats(size: u64, promoted: u64) -> Payload {
    let of_generations = (0..4).fold(Payload::new(), |p, i| p.u64(size + i).u64(promoted + i));
    let counts = of_generations.u64(0).u64(0).u32(5).u32(0).u32(9).u16(7);
    counts.u64(1000).u64(2000)
}

/// GCGlobalHeapHistory and, of each heap, GCPerHeapHistory: bytes of its generations after the
/// collection.
fn heap_history(trace: &mut Trace, time: i64, heaps: &[&[u64]]) {
    let global = Payload::new().u64(0).u32(heaps.len() as u32);
    let global = (0..3).fold(global, |p, _| p.u32(0)).u32(0).u16(7);
    trace.event((205, 2), (time, 1), global.u32(0).u32(0));
    for (index, sizes) in heaps.iter().enumerate() {
        let head = (0..6).fold(Payload::new().u16(7), |p, _| p.u64(0));
        let head = (0..5).fold(head, |p, _| p.u32(0)).u32(index as u32);
        let head = head.u64(0).u32(sizes.len() as u32);
        let heap = sizes.iter().fold(head, |p, &size| {
            let before = (0..3).fold(p, |p, _| p.u64(9));
            (0..6).fold(before.u64(size), |p, _| p.u64(9))
        });
        trace.event((204, 3), (time + 1, 1), heap);
    }
}

#[test]
fn collections_of_server_gc_have_the_sizes_of_each_heap() {
    let mut trace = Trace::new();
    trace.event((1, 2), (100, 1), gc_start(1, 2, 1, 1));
    trace.event((1, 2), (200, 1), gc_start(2, 0, 1, 2));
    heap_history(&mut trace, 210, &[&[1, 2], &[30, 40, 50]]);
    trace.event((2, 1), (220, 1), gc_end(2));
    heap_history(&mut trace, 290, &[&[5], &[6], &[7]]);
    trace.event((2, 1), (300, 1), gc_end(1));
    let timeline = trace.read(Report::Gc);
    let gc = Collections::new(&timeline, &all());
    let heaps = gc.collections.iter();
    let heaps: Vec<_> = heaps
        .map(|it| (it.number, it.heaps, it.heap_sizes.clone()))
        .collect();
    assert_eq!(
        heaps,
        [(1, Some(3), vec![5, 6, 7]), (2, Some(2), vec![3, 120])]
    );
    assert_eq!(gc.unused.incomplete, 0);
}

#[test]
fn collections_have_their_pauses_heaps_and_triggers() {
    let mut trace = Trace::new();
    // A blocking collection of generation 0. Another thread, the profiler, requests a suspension
    // while it runs, and gets it afterwards.
    trace.event((9, 1), (100, 1), suspend(1));
    trace.event((8, 1), (130, 1), clr());
    trace.event_with(
        &[0x10, 0x20],
        (35, 0),
        (131, 1),
        &Payload::new().u32(4).u16(7).finish(),
    );
    trace.event((1, 2), (140, 1), gc_start(1, 0, 4, 0));
    trace.event((9, 1), (150, 2), suspend(0));
    trace.event((2, 1), (180, 1), gc_end(1));
    trace.event((4, 2), (181, 1), heap_stats(10_000, 100));
    trace.event((7, 1), (190, 1), clr());
    trace.event((3, 1), (200, 1), clr());
    trace.event((8, 1), (205, 2), clr());
    trace.event((3, 1), (230, 2), clr());
    // A background collection: it suspends at its start and once more; a collection of
    // generation 1 runs meanwhile.
    trace.event((9, 1), (300, 1), suspend(6));
    trace.event((8, 1), (310, 1), clr());
    trace.event((1, 2), (320, 1), gc_start(2, 2, 1, 1));
    trace.event((3, 1), (340, 1), clr());
    trace.event((9, 1), (400, 3), suspend(1));
    trace.event((8, 1), (401, 3), clr());
    trace.event((1, 2), (402, 3), gc_start(3, 1, 0, 2));
    trace.event((2, 1), (420, 3), gc_end(3));
    trace.event((3, 1), (430, 3), clr());
    trace.event((9, 1), (500, 1), suspend(6));
    trace.event((8, 1), (505, 1), clr());
    trace.event((3, 1), (550, 1), clr());
    trace.event((2, 1), (560, 1), gc_end(2));
    let timeline = trace.read(Report::Gc);
    let gc = Collections::new(&timeline, &all());
    let summary: Vec<_> = gc
        .collections
        .iter()
        .map(|it| {
            let (generation, kind) = (it.generation.unwrap(), it.kind.unwrap());
            (
                it.number,
                generation,
                kind,
                it.end_ns,
                it.pause_ns,
                it.suspending_ns,
            )
        })
        .collect();
    assert_eq!(
        summary,
        [
            (1, 0, GcType(0), Some(180), Some(100), Some(30)),
            (
                2,
                2,
                GcType::BACKGROUND,
                Some(560),
                Some(40 + 50),
                Some(10 + 5)
            ),
            (3, 1, GcType(2), Some(420), Some(30), Some(1)),
        ]
    );
    let first = &gc.collections[0];
    assert_eq!(first.reason.unwrap().to_string(), "AllocLarge");
    assert_eq!(first.trigger, Some(GcReason(4)));
    assert!(first.trigger_stack.is_some());
    let heap = first.heap.unwrap();
    assert_eq!(heap.sizes, [10_000, 10_001, 10_002, 10_003, 1000]);
    assert_eq!((heap.size(), heap.total_promoted()), (41_006, 406 + 2000));
    assert_eq!((heap.pinned_objects, heap.handles), (5, 9));
    assert!(gc.collections[1].heap.is_none());
    let pauses: Vec<_> = gc.pauses.list.iter().map(|it| it.duration_ns()).collect();
    assert_eq!(pauses, [100, 40, 30, 50]);
    // The profiler's suspension starts when the collection's has ended.
    let others: Vec<_> = gc
        .others
        .list
        .iter()
        .map(|it| (it.reason, it.start_ns, it.end_ns))
        .collect();
    assert_eq!(others, [(Some(SuspensionReason(0)), 200, 230)]);
    assert_eq!((gc.others.waited_ns(), gc.pauses.waited_ns()), (50, 0));
    let totals = gc.generations();
    assert_eq!(totals[&Some(2)].background, 1);
    assert_eq!(totals[&Some(2)].induced, 1);
    assert_eq!(totals[&Some(0)].promoted, 2406);
    assert!(gc.unused.is_empty(), "{:?}", gc.unused);
}

#[test]
fn collections_that_start_in_one_suspension_share_it() {
    let mut trace = Trace::new();
    trace.event((9, 1), (100, 1), suspend(1));
    trace.event((8, 1), (110, 1), clr());
    trace.event((1, 2), (120, 1), gc_start(1, 1, 0, 0));
    trace.event((2, 1), (150, 1), gc_end(1));
    trace.event((1, 2), (160, 1), gc_start(2, 2, 0, 1));
    trace.event((3, 1), (200, 1), clr());
    trace.event((2, 1), (300, 1), gc_end(2));
    let gc = Collections::new(&trace.read(Report::Gc), &all());
    let pauses: Vec<_> = gc.collections.iter().map(|it| it.pause_ns).collect();
    assert_eq!(pauses, [Some(60), Some(40)]);
    assert_eq!(gc.pauses.percentiles().unwrap().total_ns, 100);
}

#[test]
fn two_versions_of_one_start_are_one_collection() {
    let mut trace = Trace::new();
    // As .NET Framework 4.5.2 logs them.
    let old = || Payload::new().u32(1).u32(0).u32(1).u32(0).u16(7);
    trace.event((9, 1), (100, 1), suspend(1));
    trace.event((1, 1), (110, 1), old());
    trace.event((1, 2), (111, 1), gc_start(1, 0, 1, 0));
    trace.event((2, 1), (150, 1), gc_end(1));
    trace.event((3, 1), (160, 1), clr());
    let gc = Collections::new(&trace.read(Report::Gc), &all());
    assert_eq!(gc.collections.len(), 1);
    assert_eq!(gc.collections[0].pause_ns, Some(60));
    assert!(gc.unused.is_empty());
}

#[test]
fn unpaired_events_are_counted() {
    let mut trace = Trace::new();
    trace.event((3, 1), (10, 1), clr());
    trace.event((2, 1), (20, 1), gc_end(1));
    trace.event((9, 1), (30, 1), suspend(1));
    trace.event((9, 1), (40, 1), suspend(1));
    trace.event((1, 2), (50, 1), gc_start(2, 0, 0, 0));
    // Version 3, with an unpublished field; and a truncated start.
    trace.event((1, 3), (60, 1), gc_start(3, 0, 0, 0).u64(1));
    trace.event((1, 2), (70, 1), Payload::new().u16(1));
    let gc = Collections::new(&trace.read(Report::Gc), &all());
    assert_eq!(gc.unused.without_start, 2);
    // A suspension that another one follows, the other one, and two collections.
    assert_eq!(gc.unused.without_end, 4);
    assert_eq!((gc.unused.newer, gc.unused.incomplete), (1, 1));
    assert_eq!(gc.collections.len(), 2);
    assert!(gc.collections.iter().all(|it| it.pause_ns.is_none()));
}

/// No moment is charged twice, whatever the order of events.
#[test]
fn pauses_never_exceed_the_time_that_they_cover() {
    let mut random = Random::new(1);
    for _ in 0..200 {
        let mut trace = Trace::new();
        let (mut number, mut last) = (0, 0);
        for _ in 0..60 {
            last += random.below(20) as i64;
            let at = (last, 1 + random.below(3));
            match random.below(6) {
                0 => trace.event((9, 1), at, suspend(random.below(7) as u32)),
                1 => trace.event((8, 1), at, clr()),
                2 | 3 => trace.event((3, 1), at, clr()),
                4 => {
                    number += 1;
                    let kind = random.below(3) as u32;
                    trace.event((1, 2), at, gc_start(number, kind, 0, kind));
                }
                _ => trace.event(
                    (2, 1),
                    at,
                    gc_end(random.below(u64::from(number) + 1) as u32),
                ),
            }
        }
        let gc = Collections::new(&trace.read(Report::Gc), &all());
        let suspended = [&gc.pauses, &gc.others]
            .map(|it| it.list.iter().map(|it| it.duration_ns()).sum::<u64>());
        assert!(suspended.iter().sum::<u64>() <= last as u64);
        let charged: u64 = gc.collections.iter().filter_map(|it| it.pause_ns).sum();
        assert!(charged <= suspended[0], "{charged} of {suspended:?}");
        let mut ends = gc
            .pauses
            .list
            .iter()
            .chain(&gc.others.list)
            .collect::<Vec<_>>();
        ends.sort_by_key(|it| (it.end_ns, it.start_ns));
        assert!(ends.is_sorted_by(|a, b| a.end_ns <= b.start_ns));
    }
}

// Compilations.

fn load(method: u64, size: u32, flags: u32, name: &str) -> Payload {
    let range = Payload::new()
        .u64(method)
        .u64(0x77)
        .u64(0x1000 * method)
        .u32(size);
    let rest = range.u32(0x0600_0001).u32(flags);
    rest.names(("App.Type", name, "void ()")).u16(7)
}

fn start(method: u64, il_size: u32, name: &str) -> Vec<u8> {
    let names = ("App.Type", name, "void ()");
    jitting_started(1, method, 0x77, 0x0600_0001, il_size, names, 7)
}

#[test]
fn compilations_have_tiers_sizes_and_their_own_time() {
    let mut trace = Trace::new();
    // B is compiled while A is; the stub's start is not logged; C's code was rejected.
    trace.event_with(&[], (145, 1), (100, 1), &start(1, 50, "A"));
    trace.event_with(&[], (145, 1), (120, 1), &start(2, 20, "B"));
    trace.event((143, 1), (150, 1), load(2, 64, 0x8 | 3 << 7, "B"));
    trace.event((143, 1), (160, 1), load(9, 16, 0x9, "IL_STUB"));
    trace.event((143, 1), (200, 1), load(1, 128, 0x8 | 4 << 7, "A"));
    trace.event_with(&[], (145, 1), (150, 2), &start(3, 10, "C"));
    trace.event((143, 1), (400, 2), load(3, 32, 0x48 | 4 << 7, "C"));
    // Precompiled code, a compilation without an end, and a lookup without a result.
    trace.event((143, 1), (410, 2), load(4, 32, 0, "D"));
    trace.event_with(&[], (145, 1), (420, 2), &start(5, 10, "E"));
    trace.event_with(&[], (160, 0), (430, 2), &r2r_entry_point_start(6, 7));
    let names = ("App.Type", "F", "void ()");
    trace.event_with(&[], (159, 0), (437, 2), &r2r_entry_point(6, names, 0, 7));
    trace.event_with(
        &[],
        (159, 0),
        (440, 2),
        &r2r_entry_point(7, names, 0x7000, 7),
    );
    let jit = Jit::new(&trace.read(Report::Jit), &all());
    let methods: Vec<_> = jit
        .methods
        .iter()
        .map(|it| {
            let tier = it.tier.map(|tier| tier.to_string());
            let name = it.name.as_deref().unwrap();
            (
                name,
                tier,
                it.il_size,
                it.native_size,
                it.duration_ns,
                it.rejected,
            )
        })
        .collect();
    let tier = |name: &str| Some(name.to_owned());
    assert_eq!(
        methods,
        [
            (
                "App.Type.B",
                tier("QuickJitted"),
                Some(20),
                64,
                Some(30),
                false
            ),
            ("App.Type.IL_STUB", None, None, 16, None, false),
            (
                "App.Type.A",
                tier("OptimizedTier1"),
                Some(50),
                128,
                Some(70),
                false
            ),
            (
                "App.Type.C",
                tier("OptimizedTier1"),
                Some(10),
                32,
                Some(250),
                true
            ),
        ]
    );
    let threads: Vec<_> = jit
        .threads
        .iter()
        .map(|it| (it.methods, it.duration_ns))
        .collect();
    assert_eq!(threads, [(1, 250), (3, 100)]);
    // 95 % of 350 ns have passed when C, the last, is ready.
    assert_eq!((jit.duration_ns(), jit.steady_ns()), (350, Some(400)));
    assert_eq!((jit.lookups.found, jit.lookups.not_found), (1, 1));
    assert_eq!(jit.lookups.durations.unwrap().total_ns, 7);
    assert_eq!(jit.unused.without_end, 1);
}

/// A start or load of a method on one thread in the model.
#[derive(Clone, Copy, Debug)]
struct Step {
    time: u64,
    method: u64,
    is_start: bool,
}

/// Returns the self time of each load: its length without the pairs inside it. The start of a load
/// is the last one of the method that no pair has used and that is in no pair.
fn model_of_jit(steps: &[Step]) -> Vec<Option<u64>> {
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    let mut own = Vec::new();
    for (at, step) in steps.iter().enumerate().filter(|(_, step)| !step.is_start) {
        let is_free = |start: usize| pairs.iter().all(|&(from, to)| start < from || start > to);
        let from = (0..at)
            .rev()
            .find(|&i| steps[i].is_start && steps[i].method == step.method && is_free(i));
        own.push(from.map(|from| {
            let ticks = steps[from].time..step.time;
            let within = |tick: &u64| {
                let mut inner = pairs.iter().filter(|&&(start, _)| start > from);
                inner.any(|&(start, end)| (steps[start].time..steps[end].time).contains(tick))
            };
            ticks.filter(|tick| !within(tick)).count() as u64
        }));
        pairs.extend(from.map(|from| (from, at)));
    }
    own
}

#[test]
fn own_times_of_compilations_equal_the_model() {
    let mut random = Random::new(2);
    for _ in 0..300 {
        let mut time = 0;
        let steps: Vec<Step> = (0..24)
            .map(|_| {
                time += random.below(10);
                Step {
                    time,
                    method: random.below(4),
                    is_start: random.below(2) == 0,
                }
            })
            .collect();
        let mut trace = Trace::new();
        for step in &steps {
            let at = (step.time as i64, 1);
            match step.is_start {
                true => trace.event_with(&[], (145, 1), at, &start(step.method, 1, "M")),
                false => trace.event((143, 1), at, load(step.method, 1, 8, "M")),
            }
        }
        let jit = Jit::new(&trace.read(Report::Jit), &all());
        let own: Vec<_> = jit.methods.iter().map(|it| it.duration_ns).collect();
        assert_eq!(own, model_of_jit(&steps), "{steps:?}");
        let starts = steps.iter().filter(|step| step.is_start).count();
        let paired = own.iter().flatten().count();
        assert_eq!(jit.unused.without_end as usize, starts - paired);
    }
}

// Exceptions.

fn thrown(name: &str, message: &str, flags: u16) -> Payload {
    let texts = Payload::new().wide(name).wide(message);
    texts.u64(0x1234).u32(0x8013_1500).u16(flags).u16(7)
}

fn block(method: &str) -> Payload {
    Payload::new().u64(0x10).u64(0x20).wide(method).u16(7)
}

#[test]
fn exceptions_find_their_handlers() {
    let mut trace = Trace::new();
    // A: a finally block runs, in which B is thrown and caught, before A's handler.
    trace.event_with(
        &[0x1111, 0x2222],
        (80, 1),
        (100, 1),
        &thrown("A", "a", 0x10).finish(),
    );
    trace.event((252, 0), (110, 1), block("finally"));
    trace.event((80, 1), (120, 1), thrown("B", "b", 0x10));
    trace.event((250, 0), (125, 1), block("in finally"));
    trace.event((251, 0), (126, 1), clr());
    trace.event((253, 0), (130, 1), clr());
    trace.event((250, 0), (150, 1), block("handler of A"));
    // A is thrown again and caught further out; another thread throws meanwhile.
    trace.event((80, 1), (160, 1), thrown("A", "a", 0x14));
    trace.event((80, 1), (165, 2), thrown("C", "", 0));
    trace.event((250, 0), (190, 1), block("outer"));
    // C has no handler in the trace: the next exception of its thread is not nested in it.
    trace.event((80, 1), (200, 2), thrown("D", "d", 0));
    trace.event((250, 0), (204, 2), block("handler of D"));
    trace.event((250, 0), (210, 2), block("of an exception before"));
    let exceptions = Exceptions::new(&trace.read(Report::Exceptions), &all());
    let seen: Vec<_> = exceptions
        .thrown
        .iter()
        .map(|it| {
            let (name, caught) = (it.type_name.as_deref().unwrap(), it.caught_in.as_deref());
            (
                name,
                it.message.as_deref(),
                caught,
                it.dispatch_ns,
                it.rethrown,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("A", Some("a"), Some("handler of A"), Some(50), false),
            ("B", Some("b"), Some("in finally"), Some(5), false),
            ("A", Some("a"), Some("outer"), Some(30), true),
            ("C", None, None, None, false),
            ("D", Some("d"), Some("handler of D"), Some(4), false),
        ]
    );
    assert!(exceptions.thrown[0].stack.is_some());
    assert!(exceptions.thrown[1].stack.is_none());
    assert_eq!(exceptions.unused.without_start, 1);
    let mut filter = all();
    (filter.from_ns, filter.to_ns) = (Some(120), Some(200));
    let timeline = {
        let mut trace = Trace::new();
        trace.event((80, 1), (100, 1), thrown("A", "", 0));
        trace.event((250, 0), (190, 1), block("late"));
        trace.event((80, 1), (195, 1), thrown("B", "", 0));
        trace.read(Report::Exceptions)
    };
    let within = Exceptions::new(&timeline, &filter);
    assert_eq!(within.thrown.len(), 1, "the time of the throw decides");
}

// Allocations.

fn tick(amount: u64, kind: u32, name: &str, size: u64) -> Payload {
    let amounts = Payload::new()
        .u32(amount as u32)
        .u32(kind)
        .u16(7)
        .u64(amount);
    amounts.u64(0x99).wide(name).u32(0).u64(0xabc).u64(size)
}

#[test]
fn ticks_weigh_what_they_represent() {
    let mut trace = Trace::new();
    let big = 5 << 32;
    let large = tick(big, 1, "System.Byte[]", big).finish();
    trace.event_with(&[0x1111], (10, 4), (100, 1), &large);
    trace.event((10, 4), (110, 2), tick(106_496, 0, "System.String", 32));
    // Version 3 has no size, version 1 neither type nor 64 bits.
    let v3 = Payload::new()
        .u32(100)
        .u32(2)
        .u16(7)
        .u64(100)
        .u64(1)
        .wide("T")
        .u32(0)
        .u64(2);
    trace.event((10, 3), (120, 1), v3);
    trace.event((10, 1), (130, 1), Payload::new().u32(200).u32(0).u16(7));
    trace.event((10, 4), (140, 1), Payload::new().u16(1));
    let all = Allocations::new(&trace.read(Report::Allocations), &all());
    let seen: Vec<_> = all
        .allocations
        .iter()
        .map(|it| {
            (
                it.type_name.as_deref(),
                it.kind,
                it.bytes,
                it.object_size,
                it.stack.is_some(),
            )
        })
        .collect();
    let kind = |kind| Some(AllocationKind(kind));
    assert_eq!(
        seen,
        [
            (Some("System.Byte[]"), kind(1), big, Some(big), true),
            (Some("System.String"), kind(0), 106_496, Some(32), false),
            (Some("T"), kind(2), 100, None, false),
            (None, kind(0), 200, None, false),
        ]
    );
    assert_eq!(all.event, Some(AllocationEvent::Tick));
    assert_eq!((all.bytes(), all.unused.incomplete), (big + 106_796, 1));
}

#[test]
fn sampled_allocations_replace_ticks() {
    let sampled = |name: &str, size: u64, offset: u64| {
        let payload = Payload::new().u32(0).u16(7).u64(0x99).wide(name);
        payload.u64(0xabc).u64(size).u64(offset)
    };
    let mut trace = Trace::new();
    trace.event((10, 4), (100, 1), tick(106_496, 0, "Ticked", 32));
    trace.event((303, 0), (110, 1), sampled("Small", 24, 23));
    trace.event((303, 0), (120, 1), sampled("Huge", 1_000_000, 400_000));
    let all = Allocations::new(&trace.read(Report::Allocations), &all());
    let bytes: Vec<_> = all.allocations.iter().map(|it| it.bytes).collect();
    assert_eq!(bytes, [102_401, 702_400]);
    assert_eq!(
        (all.event, all.same_by_ticks),
        (Some(AllocationEvent::Sampled), 1)
    );
}

// Locks.

#[test]
fn waits_end_with_the_next_stop_of_their_thread() {
    let mut random = Random::new(3);
    for _ in 0..200 {
        let mut trace = Trace::new();
        let mut steps: Vec<(u64, u64, bool)> = Vec::new();
        let mut time = 0;
        for _ in 0..40 {
            time += random.below(5);
            let (thread, is_start) = (1 + random.below(3), random.below(2) == 0);
            steps.push((time, thread, is_start));
            let at = (time as i64, thread);
            match is_start {
                true => trace.event((81, 1), at, Payload::new().u8(0).u16(7)),
                false => trace.event((91, 0), at, Payload::new().u8(0).u16(7)),
            }
        }
        let waits = Contention::new(&trace.read(Report::Contention), &all());
        let starts = steps.iter().enumerate().filter(|(_, step)| step.2);
        let model: Vec<_> = starts
            .map(|(at, &(time, thread, _))| {
                let next = steps[at + 1..].iter().find(|step| step.1 == thread);
                next.filter(|step| !step.2).map(|step| step.0 - time)
            })
            .collect();
        let seen: Vec<_> = waits.waits.iter().map(|it| it.duration_ns).collect();
        assert_eq!(seen, model, "{steps:?}");
        let open = model.iter().filter(|it| it.is_none()).count() as u64;
        let stops = steps.iter().filter(|step| !step.2).count() as u64;
        let paired = model.len() as u64 - open;
        assert_eq!(
            (waits.unused.without_end, waits.unused.without_start),
            (open, stops - paired)
        );
    }
}

#[test]
fn locks_have_owners_and_stated_durations() {
    let start = Payload::new().u8(0).u16(7).u64(0x5000).u64(0x6000).u64(42);
    let stop = |ns: f64| Payload::new().u8(0).u16(7).u64(ns.to_bits());
    let mut trace = Trace::new();
    trace.event_with(&[0x10], (81, 2), (100, 1), &start.clone().finish());
    trace.event((91, 1), (200, 1), stop(90.0));
    // Longer than the time between the events, and no number.
    trace.event((81, 2), (300, 1), start.clone());
    trace.event((91, 1), (350, 1), stop(1e18));
    trace.event((81, 2), (400, 1), start);
    trace.event((91, 1), (450, 1), stop(f64::NAN));
    let waits = Contention::new(&trace.read(Report::Contention), &all());
    let durations: Vec<_> = waits.waits.iter().map(|it| it.duration_ns).collect();
    assert_eq!(durations, [Some(90), Some(50), Some(50)]);
    let first = &waits.waits[0];
    assert_eq!(
        (first.lock_id, first.object, first.owner_tid),
        (Some(0x5000), Some(0x6000), Some(42))
    );
    assert!(first.stack.is_some());
    assert_eq!(waits.duration_ns(), 190);
}

// The thread pool.

#[test]
fn workers_are_injected_and_items_wait() {
    let adjust = |count: u32, reason: u32| {
        let throughput = Payload::new().u64(1.5f64.to_bits());
        throughput.u32(count).u32(reason).u16(7)
    };
    let item = |id: u64| Payload::new().u64(id).u16(7);
    let mut trace = Trace::new();
    trace.event(
        (59, 0),
        (50, 1),
        Payload::new().u16(2).u16(99).u16(1).u16(9).u16(7),
    );
    trace.event((55, 0), (100, 1), adjust(2, 1));
    trace.event((55, 0), (200, 1), adjust(5, 6));
    trace.event((55, 0), (300, 1), adjust(4, 3));
    trace.event((50, 0), (110, 2), Payload::new().u32(3).u32(0).u16(7));
    trace.event((57, 0), (120, 2), Payload::new().u32(1).u32(0).u16(7));
    // The first item is queued twice; another is taken that was queued before the trace.
    trace.event((61, 0), (400, 1), item(1));
    trace.event((61, 0), (410, 1), item(1));
    trace.event((62, 0), (450, 2), item(1));
    trace.event((62, 0), (455, 3), item(2));
    trace.event((62, 0), (470, 2), item(1));
    trace.event((61, 0), (480, 1), item(3));
    let pool = ThreadPool::new(&trace.read(Report::ThreadPool), &all());
    let changes: Vec<_> = pool
        .adjustments
        .iter()
        .map(|it| (it.workers, it.before, it.injected()))
        .collect();
    assert_eq!(
        changes,
        [(2, None, None), (5, Some(2), Some(3)), (4, Some(5), None)]
    );
    assert_eq!(
        pool.adjustments[1].reason,
        Some(AdjustmentReason::STARVATION)
    );
    assert_eq!(pool.adjustments[1].throughput, Some(1.5));
    assert_eq!((pool.most_workers(), pool.limits), (Some(3), Some((2, 99))));
    assert_eq!((pool.work.enqueued, pool.work.dequeued), (3, 3));
    let latency = pool.work.latency.unwrap();
    assert_eq!((latency.count, latency.total_ns), (2, 50 + 60));
    assert_eq!((pool.unused.without_start, pool.unused.without_end), (1, 1));
    assert_eq!(pool.io.latency, None);
}

#[test]
fn an_empty_trace_has_nothing() {
    for report in Report::ALL {
        let mut trace = Trace::new();
        trace.event((200, 0), (10, 1), clr());
        let timeline = trace.read(report);
        assert_eq!(timeline.kept_events().count(), 0);
        assert!(Collections::new(&timeline, &all()).collections.is_empty());
        assert!(Allocations::new(&timeline, &all()).event.is_none());
    }
}

// Decisions of the JIT.

fn compiled(name: &str) -> Payload {
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

// A program that counts its own events: testdata/clr8/known.

fn known(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/clr8/known");
    folder.join(name)
}

fn known_trace(name: &str, options: Options) -> Arc<Timeline> {
    let zip = known(&format!("{name}.nettrace.zip"));
    read(&unzip(&zip, ".nettrace").expect("a trace"), options)
}

#[test]
fn reports_equal_what_the_program_counted() {
    let truth = std::fs::read(known("events.json")).unwrap();
    let truth: serde_json::Value = serde_json::from_slice(&truth).unwrap();
    let counted = |key: &str| truth[key].as_u64().unwrap();
    let timeline = known_trace("events", Report::options_of(&Report::ALL));
    let near = |seen: u64, key: &str, percent: u64| {
        let exact = counted(key);
        assert!(
            seen.abs_diff(exact) * 100 <= exact * percent,
            "{key}: {seen}, {exact} counted"
        );
    };
    let gc = Collections::new(&timeline, &all());
    // GC.CollectionCount counts a collection in each generation up to its own.
    for (generation, key) in [(0, "gen0"), (1, "gen1"), (2, "gen2")] {
        let of = gc
            .collections
            .iter()
            .filter(|it| it.generation >= Some(generation));
        assert_eq!(of.count() as u64, counted(key), "{key}");
    }
    // GC.GetTotalPauseDuration includes the time in which collections waited for the profiler.
    near(
        gc.pauses.percentiles().unwrap().total_ns + gc.pauses.waited_ns(),
        "pause_ns",
        2,
    );

    let exceptions = Exceptions::new(&timeline, &all()).thrown;
    for (name, key) in [
        ("KnownError", "known"),
        ("System.InvalidOperationException", "invalid"),
        ("System.ArgumentException", "argument"),
    ] {
        let mut of = exceptions
            .iter()
            .filter(|it| it.type_name.as_deref() == Some(name));
        assert_eq!(of.clone().count() as u64, counted(key), "{key}");
        assert!(of.all(|it| it.caught_in.is_some() && it.stack.is_some()));
    }
    let rethrown = exceptions.iter().filter(|it| it.rethrown).count() as u64;
    assert_eq!(rethrown * 2, counted("invalid"));

    let allocations = Allocations::new(&timeline, &all());
    near(allocations.bytes(), "allocated", 1);
    for (name, key) in [
        ("KnownA", "bytes_a"),
        ("KnownB", "bytes_b"),
        ("System.Byte[]", "bytes_l"),
    ] {
        let of = allocations.allocations.iter();
        let of = of.filter(|it| it.type_name.as_deref() == Some(name));
        near(of.map(|it| it.bytes).sum(), key, 1);
    }

    let waits = Contention::new(&timeline, &all());
    let of_program = waits
        .waits
        .iter()
        .filter(|it| it.stack.is_some() && it.lock_id.is_some());
    assert_eq!(of_program.count() as u64, counted("waits"));
    near(waits.duration_ns(), "waited_ns", 1);

    // The runtime counts a little before the process ends.
    let jit = Jit::new(&timeline, &all());
    near(jit.methods.len() as u64, "jitted", 5);
    near(jit.duration_ns(), "jit_ns", 10);
    assert!(jit.methods.iter().all(|it| it.duration_ns.is_some()));
}

#[test]
fn decisions_equal_the_events() {
    let timeline = known_trace("inlining", JitDecisions::options());
    let decisions = JitDecisions::new(&timeline, &all());
    let logged = |names: &[&str]| -> u64 {
        let types = timeline.event_types().iter();
        let of = types.filter(|it| names.contains(&&*it.schema.name()));
        of.map(|it| it.count).sum()
    };
    let bodies = &decisions.bodies;
    let sum = |count: fn(&chronosym::runtime::CompiledBody) -> usize| -> u64 {
        bodies.iter().map(|it| count(it) as u64).sum()
    };
    assert_eq!(
        sum(|it| it.inlined.len()),
        logged(&["MethodJitInliningSucceeded"])
    );
    assert_eq!(
        sum(|it| it.rejected.len()),
        logged(&["MethodJitInliningFailed"])
    );
    let tail_calls = ["MethodJitTailCallSucceeded", "MethodJitTailCallFailed"];
    assert_eq!(sum(|it| it.tail_calls.len()), logged(&tail_calls));
    assert!(bodies.iter().all(|it| it.start.is_some()));
    assert_eq!(decisions.unused, chronosym::runtime::Unused::default());
    // Rich debug info states the same inlined calls of each body, but for calls that left no code.
    let mut resolver = Resolver::new(&timeline, None);
    let (mut compared, mut stated) = (0, 0);
    for body in bodies {
        let process = body.process;
        let index = (timeline.bodies_at(process, body.start.unwrap()).iter())
            .min_by_key(|it| it.lifetime.from.abs_diff(body.time_ns))
            .map(|it| it.index);
        let nodes = resolver.inlinees(process, index.unwrap());
        if nodes.is_empty() {
            continue;
        }
        let inlinees: Vec<_> = nodes.iter().filter(|node| node.parent.is_some()).collect();
        assert!(inlinees.len() <= body.inlined.len(), "{}", body.name);
        // Without symbol files, methods that were never compiled alone have no names.
        let mut callees: Vec<_> = body.inlined.iter().map(|call| &*call.callee).collect();
        for name in inlinees.iter().filter_map(|node| node.function.name()) {
            let at = callees.iter().position(|callee| *callee == name);
            callees.remove(at.unwrap_or_else(|| panic!("{name} in {}", body.name)));
        }
        compared += inlinees.len();
        stated += body.inlined.len();
    }
    assert!(
        compared > 20 && compared * 10 >= stated * 9,
        "{compared} of {stated}"
    );
    // As the program is written: Never may not be inlined, Big has a try block, Small is tiny.
    let hot = bodies
        .iter()
        .filter(|it| &*it.name == "Known.Hot" && !it.inlined.is_empty());
    for body in hot {
        assert!(body.inlined.iter().any(|it| &*it.callee == "Known.Small"));
        let reason = |callee: &str| {
            let mut rejected = body.rejected.iter();
            rejected
                .find(|it| &*it.callee == callee)
                .map(|it| &*it.reason)
        };
        assert_eq!(reason("Known.Never"), Some("noinline per IL/cached result"));
        assert!(reason("Known.Big").is_some());
    }
}

/// Many activities without partners on one thread: pairing does not search them all.
#[test]
fn unpaired_events_in_bulk_are_only_counted() {
    const MANY: u64 = 40_000;
    let mut trace = Trace::new();
    for i in 0..MANY {
        trace.event_with(&[], (145, 1), (i as i64, 1), &start(i, 1, "M"));
    }
    for i in 0..MANY {
        trace.event((143, 1), ((MANY + i) as i64, 1), load(MANY + i, 1, 8, "M"));
    }
    let jit = Jit::new(&trace.read(Report::Jit), &all());
    assert_eq!(
        (jit.methods.len() as u64, jit.unused.without_end),
        (MANY, MANY)
    );

    let mut trace = Trace::new();
    for i in 0..MANY {
        trace.event((80, 1), (i as i64, 1), thrown("A", "", 2));
    }
    trace.event((252, 0), (MANY as i64, 1), block("finally"));
    for i in 0..MANY {
        trace.event((80, 1), ((MANY + i) as i64, 1), thrown("B", "", 0));
    }
    let exceptions = Exceptions::new(&trace.read(Report::Exceptions), &all());
    assert_eq!(exceptions.thrown.len() as u64, 2 * MANY);

    let mut trace = Trace::new();
    for i in 0..MANY {
        trace.event((9, 1), (i as i64, i), suspend(1));
    }
    for i in 0..MANY {
        let number = i as u32;
        trace.event((1, 2), ((MANY + i) as i64, MANY), gc_start(number, 0, 0, 0));
    }
    let gc = Collections::new(&trace.read(Report::Gc), &all());
    assert_eq!(gc.unused.without_end, 2 * MANY);
}

/// Stacks of first events weigh the durations of their activities.
#[test]
fn durations_weigh_the_stacks_of_starts() {
    let selector = |id| EventSelector::parse(&format!("{RUNTIME}/{id}")).unwrap();
    let weights = |events: Vec<EventSelector>| {
        let mut trace = Trace::new();
        let wait = Payload::new().u8(0).u16(7).finish();
        trace.event_with(&[0x10], (81, 1), (100, 1), &wait);
        trace.event_with(&[0x10], (81, 1), (110, 2), &wait);
        trace.event((91, 0), (130, 1), Payload::new().u8(0).u16(7));
        trace.event_with(&[0x20], (145, 1), (200, 1), &start(1, 1, "M"));
        trace.event_with(&[0x30], (80, 1), (205, 1), &thrown("A", "", 0).finish());
        trace.event((143, 1), (250, 1), load(1, 1, 8, "M"));
        let mut options = Options::from(SampleSelection::Events(events));
        keep_for_durations(&mut options);
        let mut timeline = read(&trace.writer.finish(), options);
        weigh_by_duration(Arc::get_mut(&mut timeline).unwrap());
        let mut weights = Vec::new();
        timeline.for_each_weighed_sample(&all(), |it| weights.push((it.time_ns, it.weight)));
        weights
    };
    assert_eq!(
        weights(vec![selector(81), selector(145), selector(80)]),
        [
            (100, Weight::Ns(30)),
            (110, Weight::Unknown),
            (200, Weight::Ns(50)),
            (205, Weight::One),
        ]
    );
    assert_eq!(weights(vec![selector(80)]), [(205, Weight::One)]);
    // All events of the provider have no common unit: each counts once.
    let provider = EventSelector::parse(RUNTIME).unwrap();
    assert!(
        weights(vec![provider])
            .iter()
            .all(|(_, weight)| *weight == Weight::One)
    );
}
