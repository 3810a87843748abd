//! Garbage collections.

use std::collections::BTreeMap;

use chronosym_core::{
    Filter, PairedSuspension, ProcessIndex, StackId, SuspensionPairs, ThreadIndex, Timeline,
};
use chronosym_events::Value;
use chronosym_types::hash::HashMap;

use crate::events::{RuntimeEvent, for_each, passes};
use crate::numbers::{GcReason, GcType, SuspensionReason};
use crate::report::{Report, id};
use crate::stacks::Stacks;
use crate::suspensions::{Suspension, Suspensions};
use crate::unused::Unused;

/// The garbage collections of a trace.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use chronosym_core::facts::At;
/// use chronosym_core::{Filter, Payload, PointerSize, Session};
/// use chronosym_events::{EventKey, EventSchema, Provider};
/// use chronosym_runtime::{Collections, Report};
/// # let start = [&1u32.to_le_bytes()[..], &2u32.to_le_bytes(), &1u32.to_le_bytes(), &0u32.to_le_bytes(), &[9, 0], &[0; 8]].concat();
/// # let end = [&1u32.to_le_bytes()[..], &2u32.to_le_bytes(), &[9, 0]].concat();
///
/// // GCStart and GCEnd of a collection of generation 2.
/// let mut session = Session::new(Report::Gc.options());
/// for (id, version, time_ns, bytes) in [(1, 2, 100, &start), (2, 1, 900, &end)] {
///     let key = EventKey::Manifest { provider: Provider::Runtime, id, version };
///     let event_type = session.event_type(Arc::new(EventSchema::new(key)));
///     let payload = Payload { pointer_size: PointerSize::Eight, bytes };
///     session.push(event_type, At::new(time_ns).process(42).thread(7), payload, None);
/// }
/// let collections = Collections::new(&session.finish(), &Filter::default()).collections;
/// assert_eq!((collections[0].number, collections[0].generation), (1, Some(2)));
/// assert_eq!((collections[0].start_ns, collections[0].end_ns), (100, Some(900)));
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Collections {
    /// In order of their starts.
    pub collections: Vec<Collection>,
    /// The suspensions that are part of collections: the pauses. A background collection has
    /// several.
    pub pauses: Suspensions,
    /// Suspensions for other reasons, such as the profiler's samples.
    pub others: Suspensions,
    /// Events that could not be used.
    pub unused: Unused,
}

/// A garbage collection. Absent values are not in the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Collection {
    /// The process.
    pub process: ProcessIndex,
    /// The thread that logged its start.
    pub thread: ThreadIndex,
    /// The runtime's number of it, from 1.
    pub number: u64,
    /// The condemned generation.
    pub generation: Option<u32>,
    /// Why it was triggered.
    pub reason: Option<GcReason>,
    /// The type of the collection: blocking or background.
    pub kind: Option<GcType>,
    /// GCStart, ns.
    pub start_ns: u64,
    /// GCEnd, ns.
    pub end_ns: Option<u64>,
    /// The time for which it suspended the program, ns: its part of the suspensions.
    pub pause_ns: Option<u64>,
    /// The part of the pause until all threads were suspended, ns.
    pub suspending_ns: Option<u64>,
    /// The heap after it.
    pub heap: Option<HeapStats>,
    /// Number of heaps (GCGlobalHeapHistory); server GC has one per processor.
    pub heaps: Option<u32>,
    /// Bytes of each heap after it (GCPerHeapHistory); empty if they are not in the trace.
    pub heap_sizes: Vec<u64>,
    /// The reason that GCTriggered states, where a thread's own action triggered the collection.
    pub trigger: Option<GcReason>,
    /// The stack of GCTriggered.
    pub trigger_stack: Option<StackId>,
    /// The time of GCTriggered, at which its stack is resolved.
    pub trigger_ns: Option<u64>,
    /// The thread of GCTriggered.
    pub trigger_thread: Option<ThreadIndex>,
}

/// GCHeapStats: the heap after a collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapStats {
    /// Bytes of generation 0, 1, 2, the large object heap, and the pinned object heap, which exists
    /// since .NET 5.
    pub sizes: [u64; 5],
    /// Bytes promoted from each; for the large and pinned object heaps, bytes that
    /// survived.
    pub promoted: [u64; 5],
    /// Number of pinned objects.
    pub pinned_objects: u64,
    /// Number of GC handles.
    pub handles: u64,
}

impl HeapStats {
    /// Returns the bytes of all generations.
    pub fn size(&self) -> u64 {
        self.sizes.iter().fold(0, |sum, &n| sum.saturating_add(n))
    }

    /// Returns the bytes promoted from all generations.
    pub fn total_promoted(&self) -> u64 {
        (self.promoted.iter()).fold(0, |sum, &n| sum.saturating_add(n))
    }
}

/// The collections of one generation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GenerationTotals {
    /// Number of collections.
    pub count: u64,
    /// Number of background collections.
    pub background: u64,
    /// Number of collections that the program induced.
    pub induced: u64,
    /// Sum of the pauses that are known, ns.
    pub pause_ns: u64,
    /// The longest, ns.
    pub max_pause_ns: u64,
    /// Collections whose pause is unknown.
    pub without_pause: u64,
    /// Sum of the promoted bytes that are known.
    pub promoted: u64,
}

impl Collections {
    /// Reads the collections that start within a filter.
    pub fn new(timeline: &Timeline, filter: &Filter) -> Self {
        let mut reader = Reader {
            stacks: Stacks::new(timeline),
            processes: HashMap::default(),
            suspensions: SuspensionPairs::default(),
            gc: Collections::default(),
        };
        let mut unused = Unused::default();
        for_each(
            timeline,
            filter,
            Report::Gc.events(),
            &mut unused,
            |event, unused| {
                reader.event(event, unused);
            },
        );
        unused.without_end += reader.suspensions.open();
        let mut gc = reader.gc;
        let is_open = |collection: &&Collection| collection.end_ns.is_none();
        unused.without_end += gc.collections.iter().filter(is_open).count() as u64;
        gc.collections
            .retain(|it| passes(filter, timeline, it.thread, it.start_ns));
        for suspensions in [&mut gc.pauses, &mut gc.others] {
            suspensions
                .list
                .retain(|it| passes(filter, timeline, it.thread, it.start_ns));
        }
        gc.unused = unused;
        gc
    }

    /// Returns totals by generation; `None` is the generation of events without one.
    pub fn generations(&self) -> BTreeMap<Option<u32>, GenerationTotals> {
        let mut totals: BTreeMap<Option<u32>, GenerationTotals> = BTreeMap::new();
        for collection in &self.collections {
            let of = totals.entry(collection.generation).or_default();
            of.count += 1;
            of.background += u64::from(collection.kind == Some(GcType::BACKGROUND));
            of.induced += u64::from(collection.reason.is_some_and(GcReason::is_induced));
            match collection.pause_ns {
                None => of.without_pause += 1,
                Some(pause) => {
                    of.pause_ns = of.pause_ns.saturating_add(pause);
                    of.max_pause_ns = of.max_pause_ns.max(pause);
                }
            }
            let promoted = collection.heap.map_or(0, |heap| heap.total_promoted());
            of.promoted = of.promoted.saturating_add(promoted);
        }
        totals
    }
}

impl GcReason {
    /// Returns whether the program requested the collection (`GC.Collect`).
    pub fn is_induced(self) -> bool {
        matches!(self.0, 1 | 7 | 10 | 17)
    }
}

struct Reader {
    stacks: Stacks,
    processes: HashMap<ProcessIndex, State>,
    suspensions: SuspensionPairs<OpenSuspension>,
    gc: Collections,
}

/// The state of one process. Collections are indices in the list.
#[derive(Default)]
struct State {
    /// Started and not ended, by number.
    open: HashMap<u64, usize>,
    background: Option<usize>,
    last_ended: Option<usize>,
    trigger: Option<Trigger>,
}

struct OpenSuspension {
    reason: Option<SuspensionReason>,
    /// The collections that started in it, with the times.
    starts: Vec<(usize, u64)>,
}

struct Trigger {
    reason: Option<GcReason>,
    stack: Option<StackId>,
    thread: ThreadIndex,
    time_ns: u64,
}

/// Limit of heaps: the runtime has at most 1024.
const MAX_HEAPS: u32 = 1024;

/// Returns the bytes of a heap after a collection, of all its generations.
fn size_after(event: &RuntimeEvent<'_>) -> Option<u64> {
    let Value::Array(generations) = event.fields().get("Values")? else {
        return None;
    };
    generations.iter().try_fold(0_u64, |sum, generation| {
        let Value::Object(generation) = generation else {
            return None;
        };
        match generation.get("SizeAfter")? {
            Value::U64(size) | Value::Hex(size) => Some(sum.saturating_add(*size)),
            _ => None,
        }
    })
}

impl State {
    /// Returns the collection that started last of those that run or, if none does, that ended last.
    fn latest(&self) -> Option<usize> {
        self.open.values().copied().max().or(self.last_ended)
    }
}

impl Reader {
    fn event(&mut self, event: &RuntimeEvent<'_>, unused: &mut Unused) {
        let state = self.processes.entry(event.process).or_default();
        let collections = &mut self.gc.collections;
        match event.id {
            id::GC_SUSPEND_EE_BEGIN => {
                let open = OpenSuspension {
                    reason: event.u32("Reason").map(SuspensionReason),
                    starts: Vec::new(),
                };
                let before =
                    (self.suspensions).start(event.process, event.thread, event.time_ns, open);
                unused.without_end += u64::from(before.is_some());
            }
            id::GC_SUSPEND_EE_END => {
                (self.suspensions).suspended(event.process, event.thread, event.time_ns);
            }
            id::GC_RESTART_EE_END => {
                match (self.suspensions).end(event.process, event.thread, event.time_ns) {
                    None => unused.without_start += 1,
                    Some(paired) => self.close(event, paired),
                }
            }
            id::GC_TRIGGERED => {
                state.trigger = Some(Trigger {
                    reason: event.u32("Reason").map(GcReason),
                    stack: self.stacks.take(event),
                    thread: event.thread,
                    time_ns: event.time_ns,
                });
            }
            id::GC_START => {
                let Some(number) = event.number("Count") else {
                    unused.incomplete += 1;
                    return;
                };
                // .NET Framework logs two versions of the event for each collection.
                if let Some(&same) = state.open.get(&number) {
                    collections[same].fill(event);
                    return;
                }
                let index = collections.len();
                collections.push(Collection::new(event, number, state.trigger.take()));
                state.open.insert(number, index);
                if collections[index].kind == Some(GcType::BACKGROUND) {
                    state.background = Some(index);
                }
                if let Some(open) = self.suspensions.current(event.process, event.thread) {
                    open.starts.push((index, event.time_ns));
                }
            }
            id::GC_END => {
                let number = event.number("Count");
                let Some(index) = number.and_then(|number| state.open.remove(&number)) else {
                    unused.without_start += 1;
                    return;
                };
                collections[index].end_ns = Some(event.time_ns);
                state.last_ended = Some(index);
                if state.background == Some(index) {
                    state.background = None;
                }
            }
            id::GC_GLOBAL_HEAP_HISTORY => {
                if let Some(index) = state.latest() {
                    collections[index].heaps = event.u32("NumHeaps");
                }
            }
            id::GC_PER_HEAP_HISTORY => {
                let known = event.u32("HeapIndex").zip(size_after(event));
                let known = known.filter(|&(heap, _)| heap < MAX_HEAPS);
                match (state.latest(), known) {
                    (_, None) => unused.incomplete += 1,
                    (None, _) => unused.without_start += 1,
                    (Some(index), Some((heap, size))) => {
                        let sizes = &mut collections[index].heap_sizes;
                        let heap = heap as usize;
                        sizes.resize(sizes.len().max(heap + 1), 0);
                        sizes[heap] = size;
                    }
                }
            }
            _ => {
                // The heap after the collection that ended before.
                if let Some(index) = state.last_ended {
                    collections[index].heap.get_or_insert(HeapStats::of(event));
                }
            }
        }
    }

    /// Charges a suspension to the collections that it is part of, each moment once.
    fn close(&mut self, event: &RuntimeEvent<'_>, paired: PairedSuspension<OpenSuspension>) {
        let (start_ns, open) = (paired.start_ns, paired.data);
        let state = self.processes.get(&event.process);
        let background = state.and_then(|state| state.background);
        let suspension = Suspension {
            process: event.process,
            thread: event.thread,
            reason: open.reason,
            requested_ns: paired.requested_ns,
            start_ns,
            suspended_ns: paired.suspended_ns,
            end_ns: event.time_ns,
        };
        let is_for_gc = open.reason.is_none_or(SuspensionReason::is_for_gc);
        let mut starts = open.starts;
        if starts.is_empty() && is_for_gc {
            starts.extend(background.map(|index| (index, start_ns)));
        }
        if starts.is_empty() {
            let kept = match open.reason.is_some_and(SuspensionReason::is_for_gc) {
                true => &mut self.gc.pauses,
                false => &mut self.gc.others,
            };
            kept.list.push(suspension);
            return;
        }
        let ends = starts.iter().skip(1).map(|&(_, start)| start);
        let ends: Vec<u64> = ends.chain([event.time_ns]).collect();
        let mut from = start_ns;
        for (&(index, _), to) in starts.iter().zip(ends) {
            let collection = &mut self.gc.collections[index];
            let pause = collection.pause_ns.get_or_insert(0);
            *pause = pause.saturating_add(to.saturating_sub(from));
            from = from.max(to);
        }
        if let (Some(&(first, _)), Some(ns)) = (starts.first(), suspension.suspending_ns()) {
            let suspending = &mut self.gc.collections[first].suspending_ns;
            *suspending = Some(suspending.unwrap_or(0).saturating_add(ns));
        }
        self.gc.pauses.list.push(suspension);
    }
}

impl Collection {
    fn new(event: &RuntimeEvent<'_>, number: u64, trigger: Option<Trigger>) -> Self {
        let mut collection = Collection {
            process: event.process,
            thread: event.thread,
            number,
            generation: None,
            reason: None,
            kind: None,
            start_ns: event.time_ns,
            end_ns: None,
            pause_ns: None,
            suspending_ns: None,
            heap: None,
            heaps: None,
            heap_sizes: Vec::new(),
            trigger: trigger.as_ref().and_then(|trigger| trigger.reason),
            trigger_stack: trigger.as_ref().and_then(|trigger| trigger.stack),
            trigger_ns: trigger.as_ref().map(|trigger| trigger.time_ns),
            trigger_thread: trigger.map(|trigger| trigger.thread),
        };
        collection.fill(event);
        collection
    }

    /// Sets fields that are not known yet.
    fn fill(&mut self, event: &RuntimeEvent<'_>) {
        self.generation = self.generation.or(event.u32("Depth"));
        self.reason = self.reason.or(event.u32("Reason").map(GcReason));
        self.kind = self.kind.or(event.u32("Type").map(GcType));
    }
}

impl HeapStats {
    fn of(event: &RuntimeEvent<'_>) -> Self {
        let numbers =
            |name: &str| [0, 1, 2, 3, 4].map(|i| event.number(&format!("{name}{i}")).unwrap_or(0));
        HeapStats {
            sizes: numbers("GenerationSize"),
            promoted: numbers("TotalPromotedSize"),
            pinned_objects: event.number("PinnedObjectCount").unwrap_or(0),
            handles: event.number("GCHandleCount").unwrap_or(0),
        }
    }
}
