//! Allocations by type.

use chronosym::runtime::{AllocationEvent, AllocationKind, Allocations, Report};
use chronosym_support::payload::Payload;

use crate::trace::{Trace, all};

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
