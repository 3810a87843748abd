//! The thread pool.

use chronosym::runtime::{AdjustmentReason, Report, ThreadPool};
use chronosym_support::payload::Payload;

use crate::trace::{Trace, all};

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
