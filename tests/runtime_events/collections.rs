//! Collections, their pauses and heaps.

use chronosym::runtime::{Collections, GcReason, GcType, Report, SuspensionReason};
use chronosym_support::payload::Payload;

use crate::trace::{Trace, all, clr};
use chronosym_support::random::Random;

pub fn gc_start(number: u32, generation: u32, reason: u32, kind: u32) -> Payload {
    let payload = Payload::new().u32(number).u32(generation).u32(reason);
    payload.u32(kind).u16(7).u64(0)
}

pub fn gc_end(number: u32) -> Payload {
    Payload::new().u32(number).u32(0).u16(7)
}

pub fn suspend(reason: u32) -> Payload {
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
