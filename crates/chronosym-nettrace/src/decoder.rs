//! Decodes blocks of V3 to V6 into the tables of the region.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "positions and sizes in a region, which has at most 1 GiB, and counts of what was read"
)]

use chronosym_types::{Cursor, Gap, GapCause, PointerSize};

use crate::blob::{self, Blob, BlobHeader, flag};
use crate::blob_table::{EMPTY_BLOB, NO_BLOB};
use crate::clock::Clock;
use crate::diagnostics::{Diagnostics, LossWindow};
use crate::event_type::{EventTypes, NO_TYPE, TypeChoice};
use crate::fault::{Fault, Parsed};
use crate::region::{Context, EventHeader, RegionData};
use crate::sequence::{Seen, Sequences};
use crate::thread::{NO_THREAD, Threads};
use crate::{label, stack};

pub(crate) struct Decoder {
    pub(crate) types: EventTypes,
    pub(crate) region: RegionData,
    pub(crate) threads: Threads,
    pub(crate) diagnostics: Diagnostics,
    pub(crate) pointer_size: PointerSize,
    pub(crate) v6: bool,
    /// Bytes that the stacks or labels of a region may take, and its events.
    pub(crate) limit: usize,
    /// Bytes modulo four that are missing from the file: alignments count from its original start.
    pub(crate) shift: u64,
    clock: Clock,
    pub(crate) sequences: Sequences,
    clear_tables: bool,
    /// The latest time of any event or sequence point before this region.
    last_time: i64,
    /// The time after which events may be missing: parts of the region were skipped.
    missing_from: Option<i64>,
}

/// Why [`Decoder::events`] returned.
pub(crate) enum Stop {
    /// At the end of the block.
    Done,
    /// Before an event whose end has not been read yet.
    NeedMore,
    /// Before an event that cannot be read; nothing after it in the block can.
    Bad,
    /// The region has reached its limit.
    Full,
}

/// An event or metadata block of V4 to V6 that is being read.
pub(crate) struct EventBlock {
    /// Stream offset after the block.
    pub(crate) end: u64,
    compressed: bool,
    metadata: bool,
    pub(crate) header: BlobHeader,
    /// The objects that the ids of `header` name, looked up when they change.
    pub(crate) stack: u32,
    pub(crate) thread: u64,
    pub(crate) context: Context,
    context_index: Option<u32>,
    labels_missing: bool,
    /// Whether the next event without a capture-thread field continues the previous event's
    /// sequence numbers.
    follows: bool,
    /// Whether the file has those events twice.
    is_repeated: bool,
    /// Whether [`Decoder::plain_events`] may read the next events.
    is_plain: bool,
}

impl Decoder {
    pub(crate) fn new(clock: Clock, pointer_size: PointerSize, v6: bool, limit: usize) -> Self {
        Self {
            types: EventTypes::default(),
            region: RegionData::default(),
            threads: Threads::default(),
            diagnostics: Diagnostics::default(),
            pointer_size,
            v6,
            limit,
            shift: 0,
            clock,
            sequences: Sequences::new(clock),
            clear_tables: false,
            last_time: i64::MIN,
            missing_from: None,
        }
    }

    /// Frees memory for the next region.
    pub(crate) fn begin_region(&mut self) {
        self.last_time = self.last_time.max(self.region.last_time);
        self.region.clear_events();
        if std::mem::take(&mut self.clear_tables) {
            self.region.clear_tables();
        }
        self.threads.begin_region();
    }

    /// Ends a region. If parts of it were skipped, the lost events had the times of the region.
    pub(crate) fn end_region(&mut self) {
        let Some(from) = self.missing_from.take() else {
            return;
        };
        let (clock, to) = (self.clock, self.last_time.max(self.region.last_time));
        self.diagnostics.add_window(LossWindow {
            capture_thread: None,
            from_ns: clock.ns(from),
            to_ns: clock.ns(to),
            events: 0,
        });
    }

    /// Records that events of this region cannot be read.
    pub(crate) fn missing(&mut self) {
        self.missing_from.get_or_insert(self.last_time);
    }

    /// Reads the header of an event or metadata block.
    pub(crate) fn open_block(
        &self,
        cursor: &mut Cursor<'_>,
        size: u32,
        end: u64,
        metadata: bool,
    ) -> Parsed<EventBlock> {
        const LEAST_HEADER: u16 = 20;
        const COMPRESSED: u16 = 1;
        let header_size = cursor.u16()?;
        if header_size < LEAST_HEADER || u32::from(header_size) > size {
            return Err(Fault::Bad);
        }
        let flags = cursor.u16()?;
        cursor.take(usize::from(header_size) - 4)?;
        Ok(EventBlock {
            end,
            compressed: flags & COMPRESSED != 0,
            metadata,
            header: BlobHeader::default(),
            stack: NO_BLOB,
            thread: if self.v6 { self.threads.find(0) } else { 0 },
            context: Context {
                processor: 0,
                ..Context::NONE
            },
            context_index: None,
            labels_missing: false,
            follows: false,
            is_repeated: false,
            is_plain: false,
        })
    }

    /// Reads the blobs in `bytes` from `at` on. `whole` states that `bytes` ends with the block;
    /// `base` is the stream offset of `bytes`. Returns the position after the last complete blob.
    pub(crate) fn events(
        &mut self,
        block: &mut EventBlock,
        bytes: &[u8],
        mut at: usize,
        whole: bool,
        base: u64,
    ) -> (usize, Stop) {
        let max_headers = self.limit / size_of::<EventHeader>();
        let readable = bytes.len().min(self.limit + 1);
        block.follows &= block.is_repeated;
        block.is_plain = false;
        loop {
            if block.is_plain && block.compressed {
                let bytes = bytes.get(..readable).unwrap_or_default();
                at = self.plain_events(block, bytes, at, max_headers);
            }
            if at >= readable {
                return match bytes.len() {
                    len if at < len => (at, Stop::Full),
                    len => (len, if whole { Stop::Done } else { Stop::NeedMore }),
                };
            }
            let before = (!whole).then_some(block.header);
            let read = if block.compressed {
                blob::compressed(bytes, at, &mut block.header, self.v6)
            } else {
                self.uncompressed(bytes, at, &mut block.header, base)
            };
            match read {
                Ok(blob) => {
                    at = blob.end;
                    let is_kept = self.blob(block, &blob, bytes);
                    if is_kept && self.region.records() >= max_headers {
                        return (at, Stop::Full);
                    }
                }
                Err(Fault::Short) if !whole => {
                    block.header = before.unwrap_or_default();
                    return (at, Stop::NeedMore);
                }
                Err(_) => {
                    self.sequences.damaged();
                    if block.compressed {
                        return (at, Stop::Bad);
                    }
                    let Some(end) = blob::uncompressed_end(bytes, at, self.v6) else {
                        return (at, Stop::Bad);
                    };
                    let end = self.padded(end, base).min(bytes.len());
                    self.bad_record(base + at as u64, end - at);
                    at = end;
                }
            }
        }
    }

    fn uncompressed(
        &self,
        bytes: &[u8],
        at: usize,
        header: &mut BlobHeader,
        base: u64,
    ) -> Parsed<Blob> {
        let mut blob = blob::uncompressed(bytes, at, header, self.v6)?;
        blob.end = self.padded(blob.end, base).min(bytes.len());
        Ok(blob)
    }

    /// Returns the start of the blob after an uncompressed one: those of V4 start at stream offsets
    /// divisible by four, whether or not their size includes the padding.
    fn padded(&self, end: usize, base: u64) -> usize {
        if self.v6 {
            return end;
        }
        match (base + self.shift + end as u64) & 3 {
            0 => end,
            1 => end + 3,
            2 => end + 2,
            _ => end + 1,
        }
    }

    /// Records that a part of the trace that may have held events was skipped.
    pub(crate) fn damaged(&mut self) {
        self.sequences.damaged();
    }

    /// Blocks may be missing. If one was a sequence point, ids have been reassigned.
    pub(crate) fn lost(&mut self) {
        self.damaged();
        self.region.forget_ids();
    }

    /// A record with a plausible size is invalid.
    pub(crate) fn bad_record(&mut self, offset: u64, size: usize) {
        let gap = Gap::new(offset, size as u64, GapCause::BadRecord);
        self.diagnostics.gaps.add(gap);
        self.missing();
    }

    /// Takes an event; true if it became a record.
    fn blob(&mut self, block: &mut EventBlock, blob: &Blob, bytes: &[u8]) -> bool {
        let flags = blob.flags;
        let type_choice = self.types.find(block.header.metadata_id);
        if flags & flag::STACK != 0 {
            block.stack = self.stack_of(block.header.stack_id);
        }
        if flags & flag::THREAD != 0 {
            block.thread = self.thread_of(block.header.thread);
        }
        if flags & (flag::CAPTURE | flag::IDS) != 0 {
            self.change_context(block, blob, bytes);
        }
        if !self.check(block, blob, bytes, type_choice) {
            return false;
        }
        let is_counted = self.is_counted(block, type_choice, block.header.time);
        self.deliver(block, type_choice, is_counted, blob.payload_at);
        !is_counted
    }

    /// Returns whether an event at a time is only counted.
    #[inline]
    pub(crate) fn is_counted(&self, block: &EventBlock, choice: TypeChoice, time: i64) -> bool {
        // A label can make another event of it.
        self.types.is_counted(choice, time) && block.context.labels == NO_BLOB
    }

    /// Counts the event of the block's header, or makes it a record.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a region has at most 1 GiB"
    )]
    pub(crate) fn deliver(
        &mut self,
        block: &mut EventBlock,
        type_choice: TypeChoice,
        is_counted: bool,
        payload_at: usize,
    ) {
        let (header, region) = (&block.header, &mut self.region);
        let event_type = type_choice.event_type;
        self.diagnostics.events += 1;
        region.last_time = region.last_time.max(header.time);
        if is_counted {
            return region.count(event_type, block.stack < EMPTY_BLOB);
        }
        let context = *(block.context_index).get_or_insert_with(|| region.context(&block.context));
        region.headers.push(EventHeader {
            time: header.time,
            thread: block.thread,
            capture_thread: header.capture_thread,
            payload_at: payload_at as u32,
            payload_size: header.payload_size,
            event_type,
            stack: block.stack,
            sequence: header.sequence,
            context,
        });
    }

    /// Checks an event that may be the first one of its thread, incomplete or a definition; false if
    /// it is none to be delivered.
    fn check(
        &mut self,
        block: &mut EventBlock,
        blob: &Blob,
        bytes: &[u8],
        type_choice: TypeChoice,
    ) -> bool {
        let header = &block.header;
        if block.metadata || header.metadata_id == 0 && !self.v6 {
            let payload = bytes.get(blob.payload_at..).unwrap_or_default();
            let payload = payload
                .get(..header.payload_size as usize)
                .unwrap_or_default();
            self.diagnostics.metadata_records += 1;
            if self
                .types
                .define_v3(payload, &mut self.diagnostics)
                .is_err()
            {
                self.diagnostics.bad_records += 1;
            }
            return false;
        }
        if block.follows && !block.is_repeated {
            self.sequences.next(header.sequence, header.time);
        } else if !block.follows {
            let seen = self.seen(header.capture_thread, header.time);
            block.is_repeated =
                !self
                    .sequences
                    .event(&seen, header.sequence, &mut self.diagnostics);
            block.follows = true;
        }
        if block.is_repeated {
            self.diagnostics.repeated_events += 1;
            return false;
        }
        if type_choice.event_type == NO_TYPE {
            self.diagnostics.unknown_metadata += 1;
            self.missing();
            return false;
        }
        if block.stack == NO_BLOB && header.stack_id != 0 {
            self.diagnostics.unknown_stacks += 1;
        }
        if block.thread == NO_THREAD && self.v6 {
            self.diagnostics.unknown_threads += 1;
        }
        self.diagnostics.unknown_labels += u64::from(block.labels_missing);
        block.is_plain = !block.labels_missing;
        true
    }

    /// The thread of an event: an OS thread id, or in V6 a slot or [`NO_THREAD`].
    #[inline]
    pub(crate) fn thread_of(&self, thread: u64) -> u64 {
        if self.v6 {
            self.threads.find(thread)
        } else {
            thread
        }
    }

    /// The stack of an event, or [`NO_BLOB`] if it has none or an unknown one.
    #[inline]
    pub(crate) fn stack_of(&self, stack_id: u32) -> u32 {
        if stack_id == 0 {
            NO_BLOB
        } else {
            self.region.stacks.find(stack_id)
        }
    }

    /// Takes processor, activity ids and labels from a blob that gives any of them.
    #[cold]
    fn change_context(&mut self, block: &mut EventBlock, blob: &Blob, bytes: &[u8]) {
        block.is_plain = false;
        block.follows &= blob.flags & flag::CAPTURE == 0;
        block.set_processor();
        let before = block.context;
        let context = &mut block.context;
        let mut ids = Cursor::starting_at(bytes, blob.ids_at);
        if self.v6 {
            if blob.flags & flag::ACTIVITY != 0 {
                let index = if block.compressed {
                    ids.var_u32()
                } else {
                    ids.u32()
                }
                .unwrap_or(0);
                context.labels = if index == 0 {
                    NO_BLOB
                } else {
                    self.region.labels.find(index)
                };
                block.labels_missing = index != 0 && context.labels == NO_BLOB;
            }
        } else {
            if blob.flags & flag::ACTIVITY != 0 {
                context.activity_id = ids.guid().unwrap_or_default();
            }
            if blob.flags & flag::RELATED_ACTIVITY != 0 {
                context.related_activity_id = ids.guid().unwrap_or_default();
            }
        }
        if before != block.context {
            block.context_index = None;
        }
    }

    fn seen(&self, capture_thread: u64, time: i64) -> Seen {
        let thread_id = if self.v6 {
            self.threads.thread_id(capture_thread)
        } else {
            Some(capture_thread)
        };
        Seen {
            capture_thread,
            thread_id,
            time,
        }
    }

    /// Ends the validity of stack ids with this region (at a sequence point that says so, or if the
    /// format has none).
    pub(crate) fn end_tables(&mut self) {
        self.clear_tables = true;
    }

    /// A stack block; false if only a part of it could be read.
    pub(crate) fn stacks(&mut self, block: &mut Cursor<'_>) -> bool {
        let (stacks, read) = (&mut self.region.stacks, &mut self.diagnostics.stacks);
        stack::read_block(stacks, block, self.pointer_size, self.limit, read).is_ok()
    }

    /// A sequence point: the region ends here.
    pub(crate) fn sequence_point(&mut self, cursor: &mut Cursor<'_>) -> Parsed<()> {
        self.diagnostics.sequence_points += 1;
        // Even a damaged one ends the scope of stack ids.
        self.end_tables();
        let time = cursor.i64()?;
        self.last_time = self.last_time.max(time);
        let flags = if self.v6 { cursor.u32()? } else { 0 };
        for _ in 0..cursor.u32()? {
            let (capture_thread, sequence) = if self.v6 {
                (cursor.var_u64()?, cursor.var_u32()?)
            } else {
                (cursor.u64()?, cursor.u32()?)
            };
            self.sequences.point(
                &self.seen(capture_thread, time),
                sequence,
                &mut self.diagnostics,
            );
        }
        const FORGET_THREADS: u32 = 1;
        const FORGET_METADATA: u32 = 2;
        if flags & FORGET_THREADS != 0 {
            self.threads.clear_later();
            self.sequences.clear();
        }
        if flags & FORGET_METADATA != 0 {
            self.types.forget_ids();
        }
        Ok(())
    }

    /// A V6 metadata block: a header and entries with a size each.
    pub(crate) fn metadata_entries(&mut self, cursor: &mut Cursor<'_>) -> Parsed<()> {
        let header = cursor.u16()?;
        cursor.take(usize::from(header))?;
        while !cursor.is_at_end() {
            let size = cursor.u16()?;
            let entry = cursor.take(usize::from(size))?;
            self.diagnostics.metadata_records += 1;
            if self.types.define_v6(entry, &mut self.diagnostics).is_err() {
                self.diagnostics.bad_records += 1;
            }
        }
        Ok(())
    }

    /// A V6 thread block: entries with a size each.
    pub(crate) fn thread_entrys(&mut self, cursor: &mut Cursor<'_>) -> Parsed<()> {
        while !cursor.is_at_end() {
            let size = cursor.u16()?;
            let entry = cursor.take(usize::from(size))?;
            if self
                .threads
                .read_entry(entry, &mut self.diagnostics)
                .is_err()
            {
                self.diagnostics.bad_records += 1;
            }
        }
        Ok(())
    }

    /// A V6 block of threads that are gone, each with the number of its last event.
    pub(crate) fn removed_threads(&mut self, cursor: &mut Cursor<'_>) -> Parsed<()> {
        // The block has no time of its own: the threads existed until now.
        let last_time = self.last_time.max(self.region.last_time);
        while !cursor.is_at_end() {
            let (index, sequence) = (cursor.var_u64()?, cursor.var_u32()?);
            self.sequences.point(
                &self.seen(index, last_time),
                sequence,
                &mut self.diagnostics,
            );
            self.sequences.remove(index);
            self.threads.remove(index);
        }
        Ok(())
    }

    /// A V6 label list block.
    pub(crate) fn labels(&mut self, block: &mut Cursor<'_>) -> Parsed<()> {
        label::read_block(&mut self.region.labels, block, self.limit)
    }
}

impl EventBlock {
    /// Takes the processor of the header into the context.
    #[inline]
    pub(crate) fn set_processor(&mut self) {
        if self.context.processor != self.header.processor {
            self.context.processor = self.header.processor;
            self.context_index = None;
        }
    }

    /// The region that its values were kept in is gone.
    pub(crate) fn begin_region(&mut self) {
        self.context_index = None;
    }
}
