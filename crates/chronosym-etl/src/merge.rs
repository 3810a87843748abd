//! The time-ordered merge of all buffers.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "slots, of which there are fewer than 2^32, and buffers are named by places of their lists, which never shrink"
)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem;
use std::sync::Arc;

use chronosym_types::{Gap, GapCause};

use crate::buffer::{Buffer, Index};
use crate::{Error, ReadAt};

/// The buffers of a recording and the files that hold them.
pub(crate) struct Files<S> {
    pub(crate) sources: Vec<S>,
    /// In the order in which they are needed.
    pub(crate) buffers: Vec<Buffer>,
    /// Most decompressed bytes in open buffers; at the limit the next buffer waits.
    pub(crate) max_open_bytes: u64,
}

/// Merges the buffers of a recording.
pub(crate) struct Merge<S> {
    files: Arc<Files<S>>,
    next_buffer: usize,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Slots whose last records are in the current batch.
    done: Vec<u32>,
    /// Next record of each open buffer except the current one.
    heap: BinaryHeap<Reverse<Key>>,
    current: Option<u32>,
    /// The current buffer's records come first up to here.
    limit: Key,
    open_bytes: u64,
    compressed: Vec<u8>,
    /// Memory of buffers that is reused.
    spare: Vec<Vec<u8>>,
}

/// The records of an open buffer.
#[derive(Default)]
struct Slot {
    index: Index,
    next: usize,
    rank: u32,
    size: u64,
}

/// Consecutive records of the merge.
#[derive(Default)]
pub(crate) struct Batch {
    /// Buffers that are opened before its first record.
    pub(crate) opened: Vec<Opened>,
    pub(crate) positions: Vec<Position>,
    pub(crate) unordered_buffers: u64,
    pub(crate) gaps: Vec<Gap>,
    /// Why the buffer after these records cannot be read.
    pub(crate) failure: Option<Error>,
    pub(crate) is_last: bool,
}

/// A buffer that takes a slot.
pub(crate) struct Opened {
    pub(crate) slot: u32,
    pub(crate) file: u32,
    pub(crate) cpu: u16,
    pub(crate) bytes: Vec<u8>,
}

/// The position of a record: its buffer's slot and the offset in the buffer.
#[derive(Clone, Copy)]
pub(crate) struct Position {
    pub(crate) raw_time: i64,
    pub(crate) slot: u32,
    pub(crate) offset: u32,
}

/// Most records of a batch.
const MAX_RECORDS: usize = 2048;
/// Bytes of finished buffers after which a batch ends: they stay in memory up to its end.
const MAX_DONE_BYTES: u64 = 4 << 20;

/// Total order of the next records of buffers: raw time, then the buffer's position in the files,
/// as one number. The slot of the buffer is in its lowest bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key(i128);

impl Key {
    fn new(time: i64, rank: u32, slot: u32) -> Self {
        let position = u64::from(rank) << 32 | u64::from(slot);
        Key(i128::from(time) << 64 | i128::from(position))
    }

    fn slot(self) -> u32 {
        self.0 as u32
    }
}

const NO_LIMIT: Key = Key(i128::MAX);

impl Batch {
    /// Removes everything except for memory that can be reused.
    fn clear(&mut self) {
        self.positions.clear();
        self.unordered_buffers = 0;
        self.gaps.clear();
        self.failure = None;
        self.is_last = false;
    }
}

impl<S: ReadAt> Merge<S> {
    pub(crate) fn new(files: Arc<Files<S>>) -> Self {
        Merge {
            files,
            next_buffer: 0,
            slots: Vec::new(),
            free: Vec::new(),
            done: Vec::new(),
            heap: BinaryHeap::new(),
            current: None,
            limit: NO_LIMIT,
            open_bytes: 0,
            compressed: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Replaces a batch, whose records are no longer needed, by the next one.
    pub(crate) fn next(&mut self, batch: &mut Batch) {
        let used = batch.opened.drain(..);
        self.spare.extend(used.map(|opened| opened.bytes));
        batch.clear();
        self.free.append(&mut self.done);
        let mut done_bytes = 0;
        while batch.positions.len() < MAX_RECORDS && done_bytes < MAX_DONE_BYTES {
            let Some(current) = self.current else {
                match self.choose(batch) {
                    Ok(true) => continue,
                    Ok(false) => batch.is_last = true,
                    Err(error) => batch.failure = Some(error),
                }
                return;
            };
            done_bytes += self.take_records(current, &mut batch.positions);
        }
    }

    /// Takes records of the current buffer up to the limit, and chooses the next buffer there.
    /// Returns the size of the buffer if it has no more.
    fn take_records(&mut self, current: u32, positions: &mut Vec<Position>) -> u64 {
        let slot = &mut self.slots[current as usize];
        let room = MAX_RECORDS.saturating_sub(positions.len());
        let records = slot.index.records.get(slot.next..).unwrap_or_default();
        for &(raw_time, offset) in records.iter().take(room) {
            let key = Key::new(raw_time, slot.rank, current);
            if key > self.limit {
                self.exchange(key);
                return 0;
            }
            slot.next += 1;
            positions.push(Position {
                raw_time,
                slot: current,
                offset,
            });
        }
        if slot.next < slot.index.records.len() {
            return 0;
        }
        self.open_bytes -= slot.size;
        self.done.push(current);
        self.current = None;
        slot.size
    }

    /// Makes the buffer with the first record the current one, in place of one whose next record is
    /// beyond the limit.
    fn exchange(&mut self, key: Key) {
        let limit = self.limit;
        let first = self.heap.peek_mut().filter(|first| first.0 <= limit);
        // Swaps the two.
        let first = first.map(|mut first| mem::replace(&mut *first, Reverse(key)).0);
        self.current = first.map(Key::slot);
        if self.current.is_some() {
            self.limit = self.next_limit();
        } else {
            self.heap.push(Reverse(key));
        }
    }

    /// Makes the buffer that has the next record the current one; false if there is none.
    fn choose(&mut self, batch: &mut Batch) -> Result<bool, Error> {
        while let Some(key) = self.unopened() {
            if self.heap.peek().is_some_and(|Reverse(open)| *open < key) {
                break;
            }
            self.next_buffer += 1;
            self.open_buffer(self.next_buffer - 1, batch)?;
        }
        self.current = self.heap.pop().map(|Reverse(key)| key.slot());
        self.limit = self.next_limit();
        Ok(self.current.is_some())
    }

    /// Up to where the current buffer's records come first.
    fn next_limit(&self) -> Key {
        let open = self.heap.peek().map_or(NO_LIMIT, |Reverse(key)| *key);
        self.unopened().map_or(open, |key| open.min(key))
    }

    /// Returns the position of the first record of the next unopened buffer in the order of
    /// records.
    fn unopened(&self) -> Option<Key> {
        let buffer = self.files.buffers.get(self.next_buffer)?;
        let wait = self.open_bytes > self.files.max_open_bytes && !self.heap.is_empty();
        (!wait).then(|| Key::new(buffer.first_time, buffer.rank, 0))
    }

    /// Reads a buffer into a free slot and puts it on the heap, unless nothing in it can be read.
    /// Buffers are opened in their order.
    fn open_buffer(&mut self, number: usize, batch: &mut Batch) -> Result<(), Error> {
        let buffer = self.files.buffers[number];
        let mut bytes = self.spare.pop().unwrap_or_default();
        let source = &self.files.sources[buffer.file as usize];
        if let Err(source) = buffer.read(source, &mut self.compressed, &mut bytes) {
            self.spare.push(bytes);
            batch.gaps.push(buffer.gap(0, GapCause::Unreadable));
            let offset = buffer.offset;
            return Err(Error::Io { offset, source });
        }
        let at = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        let Slot {
            index,
            next,
            rank,
            size,
        } = &mut self.slots[at as usize];
        index.build(&bytes, buffer.first_time);
        (*next, *rank, *size) = (0, buffer.rank, bytes.len() as u64);
        batch.unordered_buffers += u64::from(index.unordered);
        let used = bytes.len() - index.dropped;
        let is_short = bytes.len() < buffer.valid as usize;
        if buffer.cut || is_short || index.dropped > 0 {
            let cause = match buffer.compressed && is_short {
                _ if buffer.cut => GapCause::CutShort,
                true => GapCause::BadCompression,
                false => GapCause::BadRecord,
            };
            batch.gaps.push(buffer.gap(used, cause));
        }
        let Some(&(time, _)) = index.records.first() else {
            self.free.push(at);
            self.spare.push(bytes);
            return Ok(());
        };
        self.open_bytes += *size;
        self.heap.push(Reverse(Key::new(time, buffer.rank, at)));
        batch.opened.push(Opened {
            slot: at,
            file: buffer.file,
            cpu: buffer.cpu,
            bytes,
        });
        Ok(())
    }
}
