//! Allocations.

use std::sync::Arc;

use chronosym_core::{Filter, ProcessIndex, StackId, ThreadIndex, Timeline};
use chronosym_types::closed_list;

use crate::events::{RuntimeEvent, for_each, passes};
use crate::numbers::AllocationKind;
use crate::report::{Report, id};
use crate::stacks::Stacks;
use crate::texts::Texts;
use crate::unused::Unused;

closed_list! {
    /// The event that represents allocations.
    AllocationEvent {
        /// GCAllocationTick: one about every 100 KB of a heap, with the type of the object that
        /// reached the limit.
        Tick = "GCAllocationTick",
        /// AllocationSampled (.NET 10): each byte is chosen with a probability of 1/102,400.
        Sampled = "AllocationSampled",
    }
}

/// The allocations of a trace.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Allocations {
    /// In time order. If the trace has both events, those of the unbiased one, AllocationSampled.
    pub allocations: Vec<Allocation>,
    /// The event that they come from.
    pub event: Option<AllocationEvent>,
    /// Number of events of the other kind, which represent the same allocations.
    pub same_by_ticks: u64,
    /// Events that could not be used.
    pub unused: Unused,
}

/// An event that represents allocations.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Allocation {
    /// The process.
    pub process: ProcessIndex,
    /// The thread.
    pub thread: ThreadIndex,
    /// When, ns.
    pub time_ns: u64,
    /// The type of the object.
    pub type_name: Option<Arc<str>>,
    /// The heap.
    pub kind: Option<AllocationKind>,
    /// Bytes that the event represents: AllocationAmount64 of a tick; for AllocationSampled,
    /// 102,400 bytes and the part of the object after the sampled byte.
    pub bytes: u64,
    /// Bytes of the object itself.
    pub object_size: Option<u64>,
    /// The stack of the thread.
    pub stack: Option<StackId>,
}

/// AllocationSampled samples one byte in this many.
const SAMPLING_DISTANCE: u64 = 102_400;

impl Allocations {
    /// Reads the allocations within a filter.
    pub fn new(timeline: &Timeline, filter: &Filter) -> Self {
        let (mut stacks, mut texts) = (Stacks::new(timeline), Texts::default());
        let (mut ticks, mut sampled) = (Vec::new(), Vec::new());
        let mut unused = Unused::default();
        for_each(
            timeline,
            filter,
            Report::Allocations.events(),
            &mut unused,
            |event, unused| {
                let stack = stacks.take(event);
                if !passes(filter, timeline, event.thread, event.time_ns) {
                    return;
                }
                let is_tick = event.id == id::GC_ALLOCATION_TICK;
                let Some(bytes) = (if is_tick {
                    amount(event)
                } else {
                    upscaled(event)
                }) else {
                    unused.incomplete += 1;
                    return;
                };
                let list = if is_tick { &mut ticks } else { &mut sampled };
                list.push(Allocation {
                    process: event.process,
                    thread: event.thread,
                    time_ns: event.time_ns,
                    type_name: event.text("TypeName").map(|name| texts.share(&name)),
                    kind: event.u32("AllocationKind").map(AllocationKind),
                    bytes,
                    object_size: event.number("ObjectSize"),
                    stack,
                });
            },
        );
        let (allocations, event, same_by_ticks) = match (ticks.is_empty(), sampled.is_empty()) {
            (true, true) => (ticks, None, 0),
            (false, true) => (ticks, Some(AllocationEvent::Tick), 0),
            (_, false) => (sampled, Some(AllocationEvent::Sampled), ticks.len() as u64),
        };
        Allocations {
            allocations,
            event,
            same_by_ticks,
            unused,
        }
    }

    /// Returns the bytes that all events represent.
    pub fn bytes(&self) -> u64 {
        let bytes = self.allocations.iter().map(|allocation| allocation.bytes);
        bytes.fold(0, u64::saturating_add)
    }
}

/// Returns the bytes of a tick: the 32-bit amount of old versions overflows.
fn amount(event: &RuntimeEvent<'_>) -> Option<u64> {
    let wide = event.number("AllocationAmount64");
    wide.or_else(|| event.number("AllocationAmount"))
}

/// Returns the bytes that a chosen byte represents: those up to it, on average, and the rest of its
/// object.
fn upscaled(event: &RuntimeEvent<'_>) -> Option<u64> {
    let rest = event
        .number("ObjectSize")?
        .saturating_sub(event.number("SampledByteOffset")?);
    Some(SAMPLING_DISTANCE.saturating_add(rest))
}
