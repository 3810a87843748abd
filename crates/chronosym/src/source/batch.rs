//! What a session needs of a region of an EventPipe trace, in memory of its own: a reader on another thread can go on to
//! the next region meanwhile.

use std::ops::Range;
use std::sync::Arc;

use chronosym_events::{EventSchema, PointerSize, RawEvent};
use chronosym_nettrace::{Count, Region};

use super::nettrace::{OfTypes, pointer_size};
use crate::session::{EventTypeId, Session};
use crate::stacks::StackId;

/// The events of a region that matter, and how many others there were.
#[derive(Default)]
pub(super) struct Batch {
    /// Event types that were new; they are numbered through all batches.
    types: Vec<Arc<EventSchema>>,
    counted: Vec<(u32, Count)>,
    last_ns: u64,
    records: Vec<Kept>,
    payloads: Vec<u8>,
    addresses: Vec<u64>,
    /// Where in `addresses` each stack ends.
    stack_ends: Vec<usize>,
}

struct Kept {
    time_ns: u64,
    thread_id: u64,
    capture_thread: u64,
    process_id: Option<u32>,
    processor: Option<u32>,
    /// Number of its type.
    event_type: u32,
    stack: Option<u32>,
    payload: Range<usize>,
}

impl Batch {
    fn clear(&mut self) {
        self.types.clear();
        self.counted.clear();
        self.records.clear();
        self.payloads.clear();
        self.addresses.clear();
        self.stack_ends.clear();
    }

    fn stack(&self, row: u32) -> &[u64] {
        let row = row as usize;
        let start = row
            .checked_sub(1)
            .map_or(0, |before| self.stack_ends[before]);
        &self.addresses[start..self.stack_ends[row]]
    }
}

/// Fills batches from the regions of one trace.
#[derive(Default)]
pub(super) struct Filler {
    /// The numbers of the reader's types.
    numbers: OfTypes<u32>,
    types: u32,
}

impl Filler {
    /// Replaces what is in a batch by the events of a region.
    pub(super) fn fill(&mut self, region: &Region<'_>, batch: &mut Batch) {
        batch.clear();
        let mut number = |schema| {
            batch.types.push(Arc::new(schema));
            self.types += 1;
            self.types - 1
        };
        let types = region.event_types();
        self.numbers.add(types, &mut number);
        let counted = region.counted();
        batch
            .counted
            .extend(counted.map(|(index, count)| (*self.numbers.of_type(index), count)));
        batch.last_ns = region.last_time_ns();
        for record in region.records() {
            let event_type = *self.numbers.of(types, &record, &mut number);
            let start = batch.payloads.len();
            batch.payloads.extend_from_slice(record.payload);
            batch.records.push(Kept {
                time_ns: record.time_ns,
                thread_id: record.thread_id,
                capture_thread: record.capture_thread,
                process_id: record.process_id,
                processor: record.processor,
                event_type,
                stack: record.stack.map(|row| row.0),
                payload: start..batch.payloads.len(),
            });
        }
        for stack in region.stacks() {
            batch.addresses.extend(stack.addresses());
            batch.stack_ends.push(batch.addresses.len());
        }
    }
}

/// Pushes batches into a session.
pub(super) struct Feed {
    pointer_size: PointerSize,
    /// When the trace began, in ns since the session's time 0.
    began_ns: i64,
    types: Vec<(EventTypeId, Arc<EventSchema>)>,
    /// For each stack of the batch at hand whether it was looked up, and its id where the session keeps it.
    stacks: Vec<Option<Option<StackId>>>,
    /// Time and position of the records whose order matters.
    ordered: Vec<(u64, u32)>,
}

impl Feed {
    /// `pointer_bytes` as the trace's header says; `began_ns`: when it began, since the session's time 0.
    pub(super) fn new(pointer_bytes: u8, began_ns: i64) -> Self {
        Feed {
            pointer_size: pointer_size(pointer_bytes),
            began_ns,
            types: Vec::new(),
            stacks: Vec::new(),
            ordered: Vec::new(),
        }
    }

    /// A time of the trace in the session; what lies before its time 0 is at 0.
    pub(super) fn at(&self, time_ns: u64) -> u64 {
        time_ns.saturating_add_signed(self.began_ns)
    }

    /// Pushes the events of a batch; returns the latest of their times.
    pub(super) fn take(&mut self, batch: &Batch, session: &mut Session) -> u64 {
        for schema in &batch.types {
            let id = session.event_type(schema.clone());
            self.types.push((id, schema.clone()));
        }
        for &(event_type, count) in &batch.counted {
            let id = self.types[event_type as usize].0;
            session.counted(id, count.events, count.stacks, self.at(batch.last_ns));
        }
        session.see_addresses(&batch.addresses);
        self.stacks.clear();
        self.stacks.resize(batch.stack_ends.len(), None);
        // Only what speaks of code has to come in the order of time.
        let mut ordered = std::mem::take(&mut self.ordered);
        ordered.clear();
        for (record, position) in batch.records.iter().zip(0..) {
            if session.needs_order(self.types[record.event_type as usize].0) {
                ordered.push((record.time_ns, position));
            } else {
                self.push(batch, record, session);
            }
        }
        // Those of one thread stand in order already. Positions keep the order of the file within one time.
        ordered.sort();
        for &(_, position) in &ordered {
            self.push(batch, &batch.records[position as usize], session);
        }
        self.ordered = ordered;
        self.at(batch.last_ns)
    }

    fn push(&mut self, batch: &Batch, record: &Kept, session: &mut Session) {
        let (id, schema) = &self.types[record.event_type as usize];
        let stack = match record.stack {
            None => None,
            Some(row) if session.wants_stack(*id) => {
                let known = &mut self.stacks[row as usize];
                let leaf_first = || batch.stack(row).iter().copied();
                *known.get_or_insert_with(|| session.stacks().intern(leaf_first()))
            }
            Some(_) => None,
        };
        if record.stack.is_some() && stack.is_none() {
            session.has_stack(*id);
        }
        let raw = RawEvent {
            time_ns: self.at(record.time_ns),
            process_id: record.process_id,
            thread_id: Some(record.thread_id),
            processor: record.processor,
            pointer_size: self.pointer_size,
            schema,
            payload: &batch.payloads[record.payload.clone()],
        };
        session.push(*id, &raw, Some(record.capture_thread), stack);
    }
}
