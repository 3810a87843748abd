//! Copies of the events of a region of an EventPipe trace: while a session imports them, a reader
//! on another thread continues with the next region.

use std::ops::Range;
use std::sync::Arc;

use chronosym_events::{EventSchema, PointerSize};
use chronosym_nettrace::{Count, Records, Region};

use super::types::OfTypes;
use chronosym_core::facts::At;
use chronosym_core::{ClassIndex, EventActivity, EventTypeId, Payload, Role, Session, StackId};

/// Limits of a batch: records, and approximately bytes of payload. A larger region takes several
/// batches, so that their memory stays small.
const MAX_RECORDS: usize = 1 << 18;
const MAX_BYTES: usize = 16 << 20;

/// Records between two checks of the session's memory.
const CHUNK: usize = 256;

/// The relevant events of a region, or of a part of it, and the number of other events.
#[derive(Default)]
pub(super) struct Batch {
    /// Event types that are new in this batch. They are numbered across all batches.
    types: Vec<Arc<EventSchema>>,
    counted: Vec<(TypeNumber, Count)>,
    last_ns: u64,
    records: Vec<BatchRecord>,
    heads: Heads,
    /// Time in ticks and position of the records about code, which must be applied in time order.
    ordered: Vec<(i64, u32)>,
    /// The activity ids of records by position, if they are wanted.
    activities: Vec<(usize, EventActivity)>,
    /// Whether this is the first batch of its region, which holds the stacks of all of them.
    starts_region: bool,
    stacks: Stacks,
}

/// The stacks of a region.
#[derive(Default)]
struct Stacks {
    addresses: Vec<u64>,
    /// The end of each stack in `addresses`.
    ends: Vec<usize>,
}

struct BatchRecord {
    time_ns: u64,
    stack: Option<u32>,
    /// Position in [`Heads`].
    head: u32,
    /// Whether it is about code: then it is in [`Batch::ordered`].
    states_code: bool,
}

/// What records state apart from time and stack. The samples of a thread share it.
#[derive(Default)]
struct Heads {
    all: Vec<Head>,
    payloads: Vec<u8>,
}

struct Head {
    thread_id: u64,
    capture_thread: u64,
    process_id: Option<u32>,
    event_type: TypeNumber,
    payload_at: u32,
    payload_size: u32,
}

/// The number of an event type in the trace.
#[derive(Clone, Copy, PartialEq, Eq)]
struct TypeNumber {
    number: u32,
    /// Whether its events are about code.
    states_code: bool,
    /// Whether its events are samples of ticks, most of which differ in time and stack only.
    is_tick: bool,
}

impl TypeNumber {
    fn index(self) -> usize {
        self.number as usize
    }
}

impl Heads {
    fn clear(&mut self) {
        self.all.clear();
        self.payloads.clear();
    }

    fn of(&self, record: &BatchRecord) -> &Head {
        &self.all[record.head as usize]
    }

    fn payload(&self, head: &Head) -> &[u8] {
        &self.payloads[head.payload_at as usize..][..head.payload_size as usize]
    }

    /// Returns whether a tick's head is the one at a position.
    #[inline]
    fn is_tick_at(&self, position: u32, head: &Head, payload: &[u8]) -> bool {
        let (Some(before), Ok(payload)) = (
            self.all.get(position as usize),
            <[u8; 4]>::try_from(payload),
        ) else {
            return false;
        };
        before.thread_id == head.thread_id
            && before.capture_thread == head.capture_thread
            && before.process_id == head.process_id
            && before.event_type == head.event_type
            && *self.payload(before) == payload
    }

    /// Adds a head; returns its position.
    #[inline]
    fn push(&mut self, head: Head, payload: &[u8]) -> u32 {
        self.all.push(head);
        self.payloads.extend_from_slice(payload);
        self.all.len() as u32 - 1
    }
}

impl Stacks {
    fn clear(&mut self) {
        self.addresses.clear();
        self.ends.clear();
    }

    fn push(&mut self, stack: impl Iterator<Item = u64>) {
        self.addresses.extend(stack);
        self.ends.push(self.addresses.len());
    }

    fn stack(&self, row: u32) -> &[u64] {
        let row = row as usize;
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.addresses[start..self.ends[row]]
    }
}

/// Reads a region batch by batch.
pub(super) struct RegionCursor<'r> {
    region: &'r Region<'r>,
    records: Records<'r>,
    has_started: bool,
}

impl<'r> RegionCursor<'r> {
    pub(super) fn of(region: &'r Region<'r>) -> Self {
        // Events that must be in time order are sorted within each batch, so batches of one region
        // must not overlap in time.
        let several = region.len() > MAX_RECORDS || region.bytes_held() > MAX_BYTES;
        let records = if several {
            region.in_time_order()
        } else {
            region.records()
        };
        RegionCursor {
            region,
            records,
            has_started: false,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.has_started && self.records.len() == 0
    }
}

/// Fills batches from the regions of one trace.
pub(super) struct Filler {
    /// The number of each of the reader's types.
    numbers: OfTypes<TypeNumber>,
    types: u32,
    /// Positions of heads by thread: those of the latest samples of ticks.
    recent: Box<[u32; RECENT]>,
    /// Whether activity ids are wanted.
    pub(super) activity_ids: bool,
}

impl Default for Filler {
    fn default() -> Self {
        Filler {
            numbers: OfTypes::default(),
            types: 0,
            recent: Box::new([0; RECENT]),
            activity_ids: false,
        }
    }
}

/// Number of threads whose latest head is found.
const RECENT: usize = 1 << 12;

impl Filler {
    /// Replaces the content of a batch by the next events of a region.
    pub(super) fn fill(&mut self, cursor: &mut RegionCursor<'_>, batch: &mut Batch) {
        let first = !std::mem::replace(&mut cursor.has_started, true);
        let region = cursor.region;
        batch.types.clear();
        batch.counted.clear();
        batch.heads.clear();
        batch.records.clear();
        batch.ordered.clear();
        batch.activities.clear();
        let mut number = |schema| {
            let role = Role::of(&schema);
            let event_type = TypeNumber {
                number: self.types,
                states_code: role.states_code(),
                is_tick: role == Role::ThreadSample,
            };
            batch.types.push(Arc::new(schema));
            self.types += 1;
            event_type
        };
        let types = region.event_types();
        self.numbers.add(types, &mut number);
        batch.last_ns = region.last_time_ns();
        for record in cursor.records.by_ref() {
            let event_type = *self.numbers.of(types, &record, &mut number);
            if self.activity_ids {
                let activity = EventActivity {
                    id: record.activity_id(),
                    related: record.related_activity_id(),
                };
                batch.activities.push((batch.records.len(), activity));
            }
            if event_type.states_code {
                // Several times in ticks can fall into one ns, or precede the start of the trace.
                let position = batch.records.len() as u32;
                batch.ordered.push((record.raw_time, position));
            }
            let head = Head {
                thread_id: record.thread_id,
                capture_thread: record.capture_thread,
                process_id: record.process_id,
                event_type,
                payload_at: batch.heads.payloads.len() as u32,
                payload_size: record.payload.len() as u32,
            };
            let (heads, payload) = (&mut batch.heads, record.payload);
            let recent = &mut self.recent[record.thread_id as usize % RECENT];
            let head = match event_type.is_tick && heads.is_tick_at(*recent, &head, payload) {
                true => *recent,
                false => heads.push(head, payload),
            };
            if event_type.is_tick {
                *recent = head;
            }
            batch.records.push(BatchRecord {
                time_ns: record.time_ns,
                stack: record.stack.map(|row| row.0),
                head,
                states_code: event_type.states_code,
            });
            if batch.records.len() >= MAX_RECORDS || batch.heads.payloads.len() >= MAX_BYTES {
                break;
            }
        }
        // The sort is stable: events of one thread are in order already, and events of equal times
        // keep the order of the file.
        batch.ordered.sort_by_key(|&(time, _)| time);
        if first {
            let counted = region.counted();
            batch
                .counted
                .extend(counted.map(|(index, count)| (*self.numbers.of_type(index), count)));
            batch.stacks.clear();
            // The architecture is inferred from all stacks of a 32-bit machine.
            if !region.is_empty() || region.header().pointer_size == PointerSize::Four {
                for stack in region.stacks() {
                    batch.stacks.push(stack.iter());
                }
            }
        }
        batch.starts_region = first;
    }
}

/// Pushes batches into a session.
pub(super) struct Importer {
    pointer_size: PointerSize,
    /// Start of the trace in ns since the session's time 0.
    began_ns: i64,
    /// The traced process's own id, and the process in the session.
    pub(super) own_id: Option<u32>,
    pub(super) process: Option<u32>,
    /// Whether wall-clock samples are wanted.
    pub(super) ticks: bool,
    /// Time of the last event in the session.
    pub(super) reached_ns: u64,
    types: Vec<EventTypeId>,
    /// The stacks of the current region.
    stacks: Stacks,
    /// The id of each stack in the session; the outer `None` if it is not interned yet, the inner
    /// if the session does not keep it.
    interned: Vec<Option<Option<StackId>>>,
    /// For each head of the batch its samples, if they differ in time and stack only.
    of_head: Vec<Option<Ticks>>,
    /// Samples whose class is known, to be pushed: event type, class and time.
    known: Vec<(EventTypeId, ClassIndex, u64)>,
}

/// Samples that differ in time and stack only.
#[derive(Clone, Copy)]
struct Ticks {
    /// The class of the first one.
    first: ClassIndex,
    /// The stack of the latest one, and its class.
    stack: StackId,
    class: ClassIndex,
}

impl Importer {
    /// Creates an importer. `pointer_size` is that of the trace's header, `began_ns` its start in
    /// ns since the session's time 0.
    pub(super) fn new(pointer_size: PointerSize, began_ns: i64) -> Self {
        Importer {
            pointer_size,
            began_ns,
            own_id: None,
            process: None,
            ticks: true,
            reached_ns: 0,
            types: Vec::new(),
            stacks: Stacks::default(),
            interned: Vec::new(),
            of_head: Vec::new(),
            known: Vec::new(),
        }
    }

    /// Converts a time of the trace to the session's; earlier times become 0.
    pub(super) fn at(&self, time_ns: u64) -> u64 {
        time_ns.saturating_add_signed(self.began_ns)
    }

    fn at_of(&self, record: &BatchRecord, head: &Head) -> At {
        let process = match head.process_id {
            own if own == self.own_id => self.process,
            other => other.or(self.process),
        };
        At::new(self.at(record.time_ns))
            .of(process, Some(head.thread_id))
            .written_by(head.capture_thread)
    }

    /// Converts times of the session to the trace's.
    pub(super) fn own_times(&self, times: &Range<u64>) -> Range<u64> {
        let own = |ns: u64| match ns {
            0 => 0,
            ns => ns.saturating_add_signed(self.began_ns.saturating_neg()),
        };
        own(times.start)..own(times.end)
    }

    /// Pushes the events of a batch; returns the latest of their times.
    pub(super) fn take(&mut self, batch: &mut Batch, session: &mut Session) -> u64 {
        self.reached_ns = self.reached_ns.max(self.at(batch.last_ns));
        for schemas in batch.types.chunks(CHUNK) {
            if !session.has_room(schemas.len()) {
                return self.at(batch.last_ns);
            }
            let ids = schemas.iter().map(|it| session.event_type(it.clone()));
            self.types.extend(ids);
        }
        for &(event_type, count) in &batch.counted {
            let id = self.types[event_type.index()];
            session.count(id, count.events, count.stacks, self.at(batch.last_ns));
        }
        if batch.starts_region {
            std::mem::swap(&mut self.stacks, &mut batch.stacks);
            self.interned.clear();
            self.interned.resize(self.stacks.ends.len(), None);
            session.see_addresses(self.stacks.addresses.iter().copied());
        }
        self.of_head.clear();
        self.of_head.resize(batch.heads.all.len(), None);
        for &(position, activity) in &batch.activities {
            let record = &batch.records[position];
            let head = batch.heads.of(record);
            let id = self.types[head.event_type.index()];
            let at = self.at_of(record, head);
            session.event_activity(id, at, activity, batch.heads.payload(head));
        }
        // Only events about code must be applied in time order.
        for chunk in batch.records.chunks(CHUNK) {
            let has_room = session.has_room(chunk.len());
            // The classes are looked up one after the other: while one waits for memory, so do the
            // next ones.
            for record in chunk.iter().filter(|it| has_room && !it.states_code) {
                if let Some(class) = self.known_class(record, session) {
                    let id = self.types[batch.heads.of(record).event_type.index()];
                    self.known.push((id, class, self.at(record.time_ns)));
                } else {
                    self.push_known(session);
                    self.push(batch, record, session);
                }
            }
            self.push_known(session);
        }
        for chunk in batch.ordered.chunks(CHUNK) {
            if !session.has_room_for_code(chunk.len()) {
                break;
            }
            for &(_, position) in chunk {
                self.push(batch, &batch.records[position as usize], session);
            }
        }
        self.at(batch.last_ns)
    }

    /// Returns the class of a sample that differs from one before it in the batch in time and stack
    /// only.
    #[inline]
    fn known_class(&mut self, record: &BatchRecord, session: &mut Session) -> Option<ClassIndex> {
        let ticks = self.of_head[record.head as usize]?;
        let stack = self.stack(record.stack?, session)?;
        if stack == ticks.stack {
            return Some(ticks.class);
        }
        let class = session.class_with_stack(ticks.first, stack);
        self.of_head[record.head as usize] = Some(Ticks {
            stack,
            class,
            ..ticks
        });
        Some(class)
    }

    fn push_known(&mut self, session: &mut Session) {
        for (id, class, time_ns) in self.known.drain(..) {
            session.push_again(id, class, time_ns);
        }
    }

    /// Returns the id of a stack of the region.
    #[inline]
    fn stack(&mut self, row: u32, session: &mut Session) -> Option<StackId> {
        let id = &mut self.interned[row as usize];
        let leaf_first = || self.stacks.stack(row).iter().copied();
        *id.get_or_insert_with(|| session.intern_whole(leaf_first()))
    }

    fn push(&mut self, batch: &Batch, record: &BatchRecord, session: &mut Session) {
        let head = batch.heads.of(record);
        let id = self.types[head.event_type.index()];
        if !self.ticks && session.role(id) == Role::ThreadSample && !session.is_selected(id) {
            session.count(id, 1, u64::from(record.stack.is_some()), 0);
            return;
        }
        let stack = (record.stack)
            .filter(|_| session.wants_stack(id))
            .and_then(|row| self.stack(row, session));
        if stack.is_none() && record.stack.is_some() {
            session.count(id, 0, 1, 0);
        }
        let payload = Payload {
            pointer_size: self.pointer_size,
            bytes: batch.heads.payload(head),
        };
        let class = session.push(id, self.at_of(record, head), payload, stack);
        self.of_head[record.head as usize] = class.zip(stack).map(|(class, stack)| Ticks {
            first: class,
            stack,
            class,
        });
    }
}

#[cfg(test)]
mod tests {
    use chronosym_nettrace::{Options, Reader};
    use chronosym_support::nettrace::NettraceWriter;

    use super::*;

    #[test]
    fn samples_of_a_thread_share_what_they_have_in_common() {
        let mut writer = NettraceWriter::v4();
        let sample = writer.event_type("Microsoft-DotNETCore-SampleProfiler", 0, 0);
        let other = writer.event_type("P", 1, 0);
        let kinds = [(1, 2), (2, 2), (1, 2), (2, 1), (1, 2), (2, 1)];
        for (time, (thread, kind)) in (0i64..).zip(kinds) {
            let stack = [0x1000 + time.unsigned_abs()];
            writer.event(sample, time, thread, &stack, &[kind, 0, 0, 0]);
            writer.event(other, time, thread, &stack, &[7, 0, 0, 0]);
        }
        let bytes = writer.finish();
        let mut reader = Reader::new(&bytes[..], Options::default()).expect("a trace");
        let region = reader.next_region().expect("no error").expect("a region");
        let mut batch = Batch::default();
        Filler::default().fill(&mut RegionCursor::of(&region), &mut batch);
        assert_eq!(batch.records.len(), 12);
        let heads = batch.heads.all.len();
        assert_eq!(
            heads,
            3 + 6,
            "threads and kinds of samples, and other events"
        );
        for (record, of) in region.records().zip(&batch.records) {
            let head = batch.heads.of(of);
            let payload = batch.heads.payload(head);
            assert_eq!(
                (head.thread_id, payload),
                (record.thread_id, record.payload)
            );
            assert_eq!(of.stack, record.stack.map(|stack| stack.0));
        }
    }
}
