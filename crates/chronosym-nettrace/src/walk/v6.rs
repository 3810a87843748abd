//! V6: from block to block.

use std::io::Read;

use chronosym_types::Cursor;

use super::{Step, Walk};
use crate::blocks::{BlockHeader, kind};
use crate::decoder::Decoder;

impl<R: Read> Walk<R> {
    pub(crate) fn block(&mut self) -> Step {
        self.mark();
        let header = match self.read(|cursor, _| BlockHeader::read(cursor)) {
            Ok(header) => header,
            Err(_) => {
                self.cut();
                return Step::Next;
            }
        };
        let size = header.size;
        let read: fn(&mut Decoder, &mut Cursor<'_>) -> bool = match header.kind {
            kind::END if size == 0 => {
                self.end_of_stream();
                return Step::Next;
            }
            kind::EVENTS => {
                self.open_blobs(size, false);
                return Step::Next;
            }
            kind::METADATA => |decoder, block| decoder.metadata_entries(block).is_ok(),
            kind::SEQUENCE_POINT => |decoder, block| decoder.sequence_point(block).is_ok(),
            kind::STACKS => Decoder::stacks,
            kind::THREADS => |decoder, block| decoder.thread_entrys(block).is_ok(),
            kind::REMOVED_THREADS => |decoder, block| decoder.removed_threads(block).is_ok(),
            kind::LABELS => |decoder, block| decoder.labels(block).is_ok(),
            _ => {
                self.unknown_block(u64::from(size));
                return Step::Next;
            }
        };
        self.with_block(size, read);
        if header.kind == kind::SEQUENCE_POINT {
            Step::RegionEnd
        } else {
            Step::Next
        }
    }
}
