//! Reads runs of events of V4 to V6 that differ from the one before in few fields.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "positions and sizes in a region, which has at most 1 GiB, and counts of what was read"
)]

use chronosym_types::Cursor;

use crate::blob::{LONGEST_HEAD, flag};
use crate::blob_table::{EMPTY_BLOB, NO_BLOB};
use crate::decoder::{Decoder, EventBlock};
use crate::event_type::NO_TYPE;
use crate::region::EventHeader;
use crate::thread::NO_THREAD;

impl Decoder {
    /// Reads the events from `start` on that need no check: those that differ from the one before
    /// in type, thread, stack, time and payload alone and name known objects. Returns the position
    /// of the first other one, which may have set the fields of the header that it gives.
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
        if at > start {
            (self.sequences).next(block.header.sequence, block.header.time);
        }
        at
    }

    /// Reads an event and returns its end, or `None` if it needs a check.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a region has at most 1 GiB"
    )]
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
        if flags & flag::RARE != 0 {
            return None;
        }
        let mut cursor = Cursor::starting_at(head, 1);
        if flags & flag::METADATA_ID != 0 {
            header.metadata_id = cursor.short_varint()?;
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
        let sequence = header.sequence.wrapping_add(1);
        // A label can make another event of one that is only counted.
        if self.types.is_counted(type_choice, time) && block.context.labels == NO_BLOB {
            self.region
                .count(type_choice.event_type, block.stack < EMPTY_BLOB);
        } else {
            let records = self.region.headers.len() + self.region.contexts.len();
            self.region.headers.push(EventHeader {
                time,
                thread: block.thread,
                capture_thread: header.capture_thread,
                payload_at: payload_at as u32,
                payload_size: header.payload_size,
                event_type: type_choice.event_type,
                stack: block.stack,
                sequence,
                context: block.context_index.filter(|_| records + 1 < max_headers)?,
            });
        }
        header.time = time;
        header.sequence = sequence;
        self.diagnostics.events += 1;
        self.region.last_time = self.region.last_time.max(time);
        Some(end)
    }
}
