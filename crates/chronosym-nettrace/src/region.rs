//! One ordering region and the records in it.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "positions and sizes in a region, which has at most 1 GiB, and counts of what was read"
)]

use std::iter::FusedIterator;
use std::sync::OnceLock;

use chronosym_types::{Addresses, Guid};

use crate::blob_table::{BlobTable, EMPTY_BLOB, NO_BLOB};
use crate::clock::Clock;
use crate::event_type::{EventType, EventTypeIndex, EventTypes};
use crate::header::TraceHeader;
use crate::label::{Label, Labels};
use crate::stack::StackIndex;
use crate::thread::{Thread, Threads};

/// The fields of an event's header, kept until its region is delivered.
#[derive(Clone, Copy)]
pub(crate) struct EventHeader {
    pub(crate) time: i64,
    /// OS thread id, or in V6 a slot of [`Threads`].
    pub(crate) thread: u64,
    pub(crate) capture_thread: u64,
    pub(crate) payload_at: u32,
    pub(crate) payload_size: u32,
    pub(crate) event_type: u32,
    pub(crate) stack: u32,
    pub(crate) sequence: u32,
    pub(crate) context: u32,
}

/// Fields that rarely change, kept once for consecutive events with the same values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Context {
    pub(crate) processor: u32,
    pub(crate) labels: u32,
    pub(crate) activity_id: Guid,
    pub(crate) related_activity_id: Guid,
}

pub(crate) const UNKNOWN_PROCESSOR: u32 = u32::MAX;

impl Context {
    pub(crate) const NONE: Self = Self {
        processor: UNKNOWN_PROCESSOR,
        labels: NO_BLOB,
        activity_id: Guid::ZERO,
        related_activity_id: Guid::ZERO,
    };
}

/// How many events of a type there were in a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Count {
    /// All of them.
    pub events: u64,
    /// Those with a stack that is not empty.
    pub stacks: u64,
}

/// The tables of the region being read; their memory is reused for the next one.
#[derive(Default)]
pub(crate) struct RegionData {
    pub(crate) headers: Vec<EventHeader>,
    pub(crate) contexts: Vec<Context>,
    /// Counts of event types without records, by type, and the types that have any.
    counts: Vec<Count>,
    counted: Vec<u32>,
    /// The latest time of any event.
    pub(crate) last_time: i64,
    pub(crate) stacks: BlobTable,
    pub(crate) labels: BlobTable,
    /// Positions of the headers by time, computed on first use; empty if they are in that order.
    order: OnceLock<Vec<u32>>,
}

impl RegionData {
    /// Forgets the events; stacks and labels stay valid until a sequence point.
    pub(crate) fn clear_events(&mut self) {
        self.headers.clear();
        self.contexts.clear();
        self.order.take();
        for event_type in self.counted.drain(..) {
            if let Some(count) = self.counts.get_mut(event_type as usize) {
                *count = Count::default();
            }
        }
        self.last_time = i64::MIN;
    }

    /// Returns whether no event was read.
    pub(crate) fn is_empty(&self) -> bool {
        self.headers.is_empty() && self.counted.is_empty()
    }

    /// Counts an event instead of keeping it.
    #[inline]
    pub(crate) fn count(&mut self, event_type: u32, has_stack: bool) {
        match self.counts.get_mut(event_type as usize) {
            Some(count) if count.events > 0 => {
                count.events += 1;
                count.stacks += u64::from(has_stack);
            }
            _ => self.count_first(event_type, has_stack),
        }
    }

    #[cold]
    fn count_first(&mut self, event_type: u32, has_stack: bool) {
        let index = event_type as usize;
        if index >= self.counts.len() {
            self.counts.resize(index + 1, Count::default());
        }
        if let Some(count) = self.counts.get_mut(index) {
            self.counted.push(event_type);
            count.events = 1;
            count.stacks = u64::from(has_stack);
        }
    }

    /// Stacks and labels of events read so far stay, but later events cannot refer to them.
    pub(crate) fn forget_ids(&mut self) {
        self.stacks.forget_ids();
        self.labels.forget_ids();
    }

    pub(crate) fn clear_tables(&mut self) {
        self.stacks.clear();
        self.labels.clear();
    }

    /// Number of headers and contexts, which the limit of a region bounds.
    #[inline]
    pub(crate) fn records(&self) -> usize {
        self.headers.len() + self.contexts.len()
    }

    /// Bytes that the headers take.
    pub(crate) fn size(&self) -> usize {
        size_of_val(self.headers.as_slice()) + size_of_val(self.contexts.as_slice())
    }

    /// Index of a context in the list, which it is appended to unless it is the last one already.
    pub(crate) fn context(&mut self, context: &Context) -> u32 {
        if self.contexts.last() != Some(context) {
            self.contexts.push(*context);
        }
        u32::try_from(self.contexts.len() - 1).unwrap_or(u32::MAX)
    }

    fn time_order(&self) -> Option<&[u32]> {
        let order = self.order.get_or_init(|| {
            if self.headers.is_sorted_by_key(|header| header.time) {
                return Vec::new();
            }
            let keys = self.headers.iter().zip(0u32..);
            let mut keys: Vec<(i64, u32)> = keys
                .map(|(header, position)| (header.time, position))
                .collect();
            // The headers of each thread are sorted runs, which a stable sort merges.
            keys.sort_by_key(|&(time, _)| time);
            keys.into_iter().map(|(_, position)| position).collect()
        });
        (!order.is_empty()).then_some(order.as_slice())
    }
}

/// The events between two sequence points: all of them come after those of the region before.
///
/// Payloads, stacks and labels are borrowed from the reader and gone with its next region.
#[derive(Clone, Copy)]
pub struct Region<'r> {
    pub(crate) bytes: &'r [u8],
    pub(crate) data: &'r RegionData,
    pub(crate) header: &'r TraceHeader,
    pub(crate) clock: Clock,
    pub(crate) types: &'r EventTypes,
    pub(crate) threads: Option<&'r Threads>,
}

impl<'r> Region<'r> {
    /// Number of records.
    pub fn len(&self) -> usize {
        self.data.headers.len()
    }

    /// Returns whether there is no record: all events of the region are of types that are only
    /// counted.
    pub fn is_empty(&self) -> bool {
        self.data.headers.is_empty()
    }

    /// Bytes of the trace that are in memory with the region; its payloads are among them.
    pub fn bytes_held(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the numbers of events, by type, that [`Reader::select`](crate::Reader::select)
    /// excluded.
    pub fn counted(&self) -> impl Iterator<Item = (EventTypeIndex, Count)> + use<'r> {
        let data = self.data;
        data.counted.iter().filter_map(|&index| {
            let count = data.counts.get(index as usize)?;
            Some((EventTypeIndex(index), *count))
        })
    }

    /// Returns the latest time of an event, counted ones included: ns since the start of the trace.
    pub fn last_time_ns(&self) -> u64 {
        self.clock.ns(self.data.last_time)
    }

    /// Returns the records in file order, which is not time order across threads.
    pub fn records(&self) -> Records<'r> {
        Records {
            region: *self,
            order: None,
            next: 0,
            end: self.len(),
        }
    }

    /// Returns the record at a position in file order; `None` past the last.
    #[inline]
    pub fn record(&self, position: usize) -> Option<Record<'r>> {
        let header = self.data.headers.get(position)?;
        Some(self.record_of(header))
    }

    /// Returns the record at a position in the order of time, that of
    /// [`in_time_order`](Self::in_time_order); `None` past the last.
    #[inline]
    pub fn record_by_time(&self, position: usize) -> Option<Record<'r>> {
        self.record(match self.data.time_order() {
            None => position,
            Some(order) => *order.get(position)? as usize,
        })
    }

    /// Returns the records by time; those of one time stay in file order. The first call sorts
    /// them.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_nettrace::{Options, Reader};
    /// # let mut writer = chronosym_support::nettrace::NettraceWriter::v4();
    /// # let tick = writer.event_type("My-EventSource", 1, 0);
    /// # writer.event(tick, 300, 1, &[], &[]);
    /// # writer.event(tick, 400, 1, &[], &[]);
    /// # writer.event(tick, 350, 2, &[], &[]);
    /// # let trace = writer.finish();
    ///
    /// let mut reader = Reader::new(&trace[..], Options::default())?;
    /// while let Some(region) = reader.next_region()? {
    ///     let times: Vec<_> = region.in_time_order().map(|record| record.time_ns).collect();
    ///     assert_eq!(times, [300, 350, 400]);
    /// }
    /// # Ok::<(), chronosym_nettrace::Error>(())
    /// ```
    pub fn in_time_order(&self) -> Records<'r> {
        Records {
            region: *self,
            order: self.data.time_order(),
            next: 0,
            end: self.len(),
        }
    }

    /// Number of stacks: indexes are below it. Not every stack need be used by an event.
    pub fn stack_count(&self) -> usize {
        self.data.stacks.len()
    }

    /// Returns the stack of an index, leaf first; empty for an index of another region. All
    /// addresses but the first are those that functions return to.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_nettrace::{Options, Reader};
    /// # let mut writer = chronosym_support::nettrace::NettraceWriter::v4();
    /// # let sample = writer.event_type("Microsoft-DotNETCore-SampleProfiler", 0, 0);
    /// # writer.event(sample, 200, 7, &[0x7f00_1010, 0x7f00_2020], &[2, 0, 0, 0]);
    /// # let trace = writer.finish();
    ///
    /// let mut reader = Reader::new(&trace[..], Options::default())?;
    /// let region = reader.next_region()?.unwrap();
    /// let record = region.record(0).unwrap();
    /// let stack = region.stack(record.stack.unwrap());
    /// assert_eq!(stack.iter().collect::<Vec<_>>(), [0x7f00_1010, 0x7f00_2020]); // leaf first
    /// # Ok::<(), chronosym_nettrace::Error>(())
    /// ```
    pub fn stack(&self, index: StackIndex) -> Addresses<'r> {
        Addresses::new(self.data.stacks.get(index.0), self.header.pointer_size)
    }

    /// Returns all stacks, by index.
    pub fn stacks(&self) -> impl ExactSizeIterator<Item = Addresses<'r>> + use<'r> {
        let pointer_size = self.header.pointer_size;
        let stacks = self.data.stacks.iter();
        stacks.map(move |bytes| Addresses::new(bytes, pointer_size))
    }

    /// Returns the trace's header.
    pub fn header(&self) -> &'r TraceHeader {
        self.header
    }

    /// Returns the event types defined so far, including those of this region.
    pub fn event_types(&self) -> &'r [EventType] {
        self.types.all()
    }

    /// Returns the type of a record.
    pub fn event_type(&self, index: EventTypeIndex) -> Option<&'r EventType> {
        self.types.all().get(index.index())
    }

    #[inline]
    fn record_of(&self, header: &EventHeader) -> Record<'r> {
        let context = self
            .data
            .contexts
            .get(header.context as usize)
            .unwrap_or(&Context::NONE);
        let mut thread_id = header.thread;
        let mut process_id = self.header.process_id;
        let mut thread = None;
        if let Some(threads) = self.threads {
            thread = threads.get(header.thread);
            thread_id = thread.and_then(|thread| thread.thread_id).unwrap_or(0);
            process_id = thread.and_then(|thread| thread.process_id).or(process_id);
        }
        let payload_at = header.payload_at as usize;
        Record {
            event_type: EventTypeIndex(header.event_type),
            time_ns: self.clock.ns(header.time),
            raw_time: header.time,
            thread_id,
            process_id,
            capture_thread: header.capture_thread,
            sequence: header.sequence,
            processor: (context.processor != UNKNOWN_PROCESSOR).then_some(context.processor),
            stack: (header.stack < EMPTY_BLOB).then_some(StackIndex(header.stack)),
            payload: self
                .bytes
                .get(payload_at..payload_at + header.payload_size as usize)
                .unwrap_or_default(),
            thread,
            context,
            labels: &self.data.labels,
        }
    }
}

/// Iterator over the records of a region.
#[derive(Clone)]
pub struct Records<'a> {
    region: Region<'a>,
    order: Option<&'a [u32]>,
    next: usize,
    end: usize,
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    #[inline]
    fn next(&mut self) -> Option<Record<'a>> {
        if self.next >= self.end {
            return None;
        }
        let position = match self.order {
            None => self.next,
            Some(order) => *order.get(self.next)? as usize,
        };
        self.next += 1;
        Some(
            self.region
                .record_of(self.region.data.headers.get(position)?),
        )
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.end - self.next;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Records<'_> {}
impl FusedIterator for Records<'_> {}

/// One event, its payload still in bytes.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Record<'a> {
    /// Its type.
    pub event_type: EventTypeIndex,
    /// Time in ns since the start of the trace; events from before it have 0.
    pub time_ns: u64,
    /// Time in ticks of the raw clock.
    pub raw_time: i64,
    /// OS id of the thread that the event is about; 0 if a V6 file does not state it.
    pub thread_id: u64,
    /// Process of the thread: in V6 from its entry, otherwise from the header.
    pub process_id: Option<u32>,
    /// Thread that wrote the event: an OS thread id, in V6 a thread index. Netperf has no such
    /// field: the thread's id.
    pub capture_thread: u64,
    /// Number of the event on its capture thread, from 1; 0 in netperf.
    pub sequence: u32,
    /// Processor that the event was written on.
    pub processor: Option<u32>,
    /// Its stack, if it has one.
    pub stack: Option<StackIndex>,
    /// The payload's bytes.
    pub payload: &'a [u8],
    thread: Option<&'a Thread>,
    context: &'a Context,
    labels: &'a BlobTable,
}

impl<'a> Record<'a> {
    /// Returns the thread's entry in a V6 file.
    pub fn thread(&self) -> Option<&'a Thread> {
        self.thread
    }

    /// Returns the activity in which the event was written; `None` if there was none.
    pub fn activity_id(&self) -> Option<Guid> {
        self.activity(self.context.activity_id, |label| match label {
            Label::ActivityId(id) => Some(id),
            _ => None,
        })
    }

    /// Returns the activity from which this one originates.
    pub fn related_activity_id(&self) -> Option<Guid> {
        self.activity(self.context.related_activity_id, |label| match label {
            Label::RelatedActivityId(id) => Some(id),
            _ => None,
        })
    }

    fn activity(&self, in_header: Guid, in_label: impl Fn(Label) -> Option<Guid>) -> Option<Guid> {
        if !in_header.is_zero() {
            return Some(in_header);
        }
        self.labels().find_map(in_label)
    }

    /// Returns the labels of a V6 event, some of which override its type's opcode, keywords, level
    /// or version.
    pub fn labels(&self) -> Labels<'a> {
        Labels::new(self.labels.get(self.context.labels))
    }

    /// Returns the version in a label, which overrides that of the event's type (V6).
    #[inline]
    pub fn version_override(&self) -> Option<u8> {
        if self.context.labels == NO_BLOB {
            return None;
        }
        self.labels().find_map(|label| match label {
            Label::Version(version) => Some(version),
            _ => None,
        })
    }
}

impl std::fmt::Debug for Record<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Record")
            .field("event_type", &self.event_type)
            .field("time_ns", &self.time_ns)
            .field("thread_id", &self.thread_id)
            .field("process_id", &self.process_id)
            .field("stack", &self.stack)
            .field("payload", &self.payload.len())
            .finish_non_exhaustive()
    }
}
