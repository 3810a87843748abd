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
    /// Time in ticks and position of the records about code, which must be applied in time order.
    ordered: Vec<(i64, u32)>,
    payloads: Vec<u8>,
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
    thread_id: u64,
    capture_thread: u64,
    process_id: Option<u32>,
    event_type: TypeNumber,
    stack: Option<u32>,
    payload_at: u32,
    payload_size: u32,
}

/// The number of an event type in the trace.
#[derive(Clone, Copy, PartialEq, Eq)]
struct TypeNumber {
    number: u32,
    /// Whether its events are about code.
    states_code: bool,
}

impl TypeNumber {
    fn index(self) -> usize {
        self.number as usize
    }
}

impl Batch {
    fn payload(&self, record: &BatchRecord) -> &[u8] {
        &self.payloads[record.payload_at as usize..][..record.payload_size as usize]
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
#[derive(Default)]
pub(super) struct Filler {
    /// The number of each of the reader's types.
    numbers: OfTypes<TypeNumber>,
    types: u32,
    /// Whether activity ids are wanted.
    pub(super) activity_ids: bool,
}

impl Filler {
    /// Replaces the content of a batch by the next events of a region.
    pub(super) fn fill(&mut self, cursor: &mut RegionCursor<'_>, batch: &mut Batch) {
        let first = !std::mem::replace(&mut cursor.has_started, true);
        let region = cursor.region;
        batch.types.clear();
        batch.counted.clear();
        batch.records.clear();
        batch.ordered.clear();
        batch.payloads.clear();
        batch.activities.clear();
        let mut number = |schema| {
            let event_type = TypeNumber {
                number: self.types,
                states_code: Role::of(&schema).states_code(),
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
            let payload_at = batch.payloads.len() as u32;
            batch.payloads.extend_from_slice(record.payload);
            batch.records.push(BatchRecord {
                time_ns: record.time_ns,
                thread_id: record.thread_id,
                capture_thread: record.capture_thread,
                process_id: record.process_id,
                event_type,
                stack: record.stack.map(|row| row.0),
                payload_at,
                payload_size: record.payload.len() as u32,
            });
            if batch.records.len() >= MAX_RECORDS || batch.payloads.len() >= MAX_BYTES {
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
    /// Samples of ticks by thread and stack.
    repeatable: Vec<Option<Repeatable>>,
    /// The number of batches so far.
    batches: u64,
}

/// A sample of a tick: others differ in their times only.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Repeatable {
    batch: u64,
    stack: u32,
    thread_id: u64,
    process_id: Option<u32>,
    event_type: TypeNumber,
    /// The kind of code that it is in.
    payload: [u8; 4],
    class: ClassIndex,
}

/// Number of samples that [`Importer::repeatable`] holds; a power of two.
const REPEATABLE: usize = 1 << 12;

impl Repeatable {
    /// A sample that a record may be, of a class; `None` if it has no stack, or another payload.
    #[inline]
    fn of(record: &BatchRecord, payload: &[u8], batch: u64, class: ClassIndex) -> Option<Self> {
        Some(Repeatable {
            batch,
            stack: record.stack?,
            thread_id: record.thread_id,
            process_id: record.process_id,
            event_type: record.event_type,
            payload: payload.try_into().ok()?,
            class,
        })
    }

    fn slot(&self) -> usize {
        let thread = (self.thread_id as usize).wrapping_mul(0x9e37_79b9);
        (self.stack as usize ^ thread) % REPEATABLE
    }
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
            repeatable: Vec::new(),
            batches: 0,
        }
    }

    /// Converts a time of the trace to the session's; earlier times become 0.
    pub(super) fn at(&self, time_ns: u64) -> u64 {
        time_ns.saturating_add_signed(self.began_ns)
    }

    fn at_of(&self, record: &BatchRecord) -> At {
        let process = match record.process_id {
            own if own == self.own_id => self.process,
            other => other.or(self.process),
        };
        At::new(self.at(record.time_ns))
            .of(process, Some(record.thread_id))
            .written_by(record.capture_thread)
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
        self.batches += 1;
        for &(position, activity) in &batch.activities {
            let record = &batch.records[position];
            let id = self.types[record.event_type.index()];
            let payload = batch.payload(record);
            session.event_activity(id, self.at_of(record), activity, payload);
        }
        // Only events about code must be applied in time order.
        for chunk in batch.records.chunks(CHUNK) {
            let has_room = session.has_room(chunk.len());
            for record in chunk.iter().filter(|record| !record.event_type.states_code) {
                if has_room && !self.push_again(batch, record, session) {
                    self.push(batch, record, session);
                }
            }
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

    /// Pushes a record that differs from one before it in the batch in its time only.
    #[inline]
    fn push_again(&self, batch: &Batch, record: &BatchRecord, session: &mut Session) -> bool {
        let sample = Repeatable::of(record, batch.payload(record), self.batches, 0);
        let Some(sample) = sample.filter(|_| !self.repeatable.is_empty()) else {
            return false;
        };
        let before = &self.repeatable[sample.slot()];
        let class = before.as_ref().map_or(0, |before| before.class);
        let is_same = *before == Some(Repeatable { class, ..sample });
        if is_same {
            let id = self.types[record.event_type.index()];
            session.push_again(id, class, self.at(record.time_ns));
        }
        is_same
    }

    fn push(&mut self, batch: &Batch, record: &BatchRecord, session: &mut Session) {
        let id = self.types[record.event_type.index()];
        if !self.ticks && session.role(id) == Role::ThreadSample && !session.is_selected(id) {
            session.count(id, 1, u64::from(record.stack.is_some()), 0);
            return;
        }
        let stack = match record.stack {
            None => None,
            Some(row) if session.wants_stack(id) => {
                let id = &mut self.interned[row as usize];
                let leaf_first = || self.stacks.stack(row).iter().copied();
                *id.get_or_insert_with(|| session.intern_whole(leaf_first()))
            }
            Some(_) => None,
        };
        if stack.is_none() && record.stack.is_some() {
            session.count(id, 0, 1, 0);
        }
        let at = self.at_of(record);
        let payload = Payload {
            pointer_size: self.pointer_size,
            bytes: batch.payload(record),
        };
        let class = session.push(id, at, payload, stack);
        let sample = |class| Repeatable::of(record, payload.bytes, self.batches, class);
        if let Some(sample) = class.and_then(sample) {
            self.repeatable.resize(REPEATABLE, None);
            self.repeatable[sample.slot()] = Some(sample);
        }
    }
}
