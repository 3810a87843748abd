//! Reads runs of events of V4 to V6 that need no check.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "positions and sizes in a region, which has at most 1 GiB, and counts of what was read"
)]

use chronosym_types::Cursor;

use crate::blob::{LONGEST_HEAD, flag};
use crate::blob_table::NO_BLOB;
use crate::decoder::{Decoder, EventBlock};
use crate::event_type::NO_TYPE;
use crate::thread::NO_THREAD;

impl Decoder {
    /// Reads the events from `start` on that need no check: those that give no activity or labels,
    /// name known objects and continue the numbers of their capture threads. Returns the position
    /// of the first other one, which may have set fields of the header that it gives, but neither
    /// sequence number nor time.
    #[inline(never)]
    pub(crate) fn plain_events(
        &mut self,
        block: &mut EventBlock,
        bytes: &[u8],
        start: usize,
        max_headers: usize,
    ) -> usize {
        if block.thread == NO_THREAD || block.stack == NO_BLOB && block.header.stack_id != 0 {
            return start;
        }
        let mut at = start;
        while let Some(end) = self.plain_event(block, bytes, at, max_headers) {
            at = end;
        }
        at
    }

    /// Reads an event and returns its end, or `None` if it needs a check.
    #[inline]
    fn plain_event(
        &mut self,
        block: &mut EventBlock,
        bytes: &[u8],
        at: usize,
        max_headers: usize,
    ) -> Option<usize> {
        let header = &mut block.header;
        // The length is constant, so the bytes of numbers need not be counted.
        let head: &[u8; LONGEST_HEAD] = bytes.get(at..)?.first_chunk()?;
        let [flags, ..] = *head;
        if flags & flag::IDS != 0 {
            return None;
        }
        let mut cursor = Cursor::starting_at(head, 1);
        if flags & flag::METADATA_ID != 0 {
            header.metadata_id = cursor.short_varint()?;
        }
        let mut sequence = header.sequence.wrapping_add(1);
        if flags & flag::CAPTURE != 0 {
            sequence = sequence.wrapping_add(cursor.long_varint()?);
            header.capture_thread = cursor.short_varint()?.into();
            header.processor = cursor.short_varint()?;
        }
        if flags & flag::THREAD != 0 {
            header.thread = cursor.short_varint()?.into();
            block.thread = self.thread_of(header.thread);
            if block.thread == NO_THREAD {
                return None;
            }
        }
        if flags & flag::STACK != 0 {
            header.stack_id = cursor.short_varint()?;
            block.stack = self.stack_of(header.stack_id);
            if block.stack == NO_BLOB && header.stack_id != 0 {
                return None;
            }
        }
        let time = header.time.wrapping_add(cursor.short_varint()?.into());
        if flags & flag::PAYLOAD_SIZE != 0 {
            header.payload_size = cursor.short_varint()?;
        }
        let payload_at = at + cursor.position();
        let end = payload_at + header.payload_size as usize;
        let type_choice = self.types.find(header.metadata_id);
        if end > bytes.len() || header.metadata_id == 0 || type_choice.event_type == NO_TYPE {
            return None;
        }
        let is_counted = self.is_counted(block, type_choice, time);
        // The event may come with a context.
        if !is_counted && self.region.records() + 2 >= max_headers {
            return None;
        }
        if flags & flag::CAPTURE != 0 {
            let thread = block.header.capture_thread;
            if !self.sequences.continues(thread, sequence, time) {
                return None;
            }
            block.set_processor();
        }
        self.sequences.next(sequence, time);
        block.header.time = time;
        block.header.sequence = sequence;
        self.deliver(block, type_choice, is_counted, payload_at);
        Some(end)
    }
}
