//! V3 to V5: from object to object. V1 and V2: from event to event.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "positions and sizes in a region, which has at most 1 GiB, and counts of what was read"
)]

use std::io::Read;

use chronosym_types::GapCause;

use super::{Stage, Step, Walk};
use crate::fault::{Fault, Parsed};
use crate::framing::{Framing, LARGEST_BLOCK};
use crate::netperf::{self, MetadataForm};
use crate::objects::{Kind, block_start, end};

/// Netperf files are in time order: regions may have any size.
pub(crate) const NETPERF_REGION: usize = 1 << 20;

impl<R: Read> Walk<R> {
    pub(crate) fn object(&mut self) -> Step {
        self.mark();
        match self.block_start() {
            Ok((Kind::End, _)) => self.end_of_stream(),
            Ok((Kind::Events, size)) if self.framing == Framing::NetperfObjects => {
                if !self.may_be_block(size.into()) {
                    self.lose(GapCause::BadBlock);
                    return Step::Next;
                }
                self.stage = Stage::NetperfEvents(self.window.offset(self.at) + u64::from(size));
            }
            Ok((Kind::Events, size)) => self.open_blobs(size, false),
            Ok((Kind::Metadata, size)) => self.open_blobs(size, true),
            Ok((kind, size)) => return self.whole_block(kind, size),
            Err(Fault::Short) => self.cut(),
            Err(Fault::Bad) => self.lose(GapCause::BadBlock),
        }
        Step::Next
    }

    /// Reads the header of a block. If the block ends as blocks do only under another alignment,
    /// bytes before it are missing, and that is the alignment from here on.
    fn block_start(&mut self) -> Parsed<(Kind, u32)> {
        let start = self.at;
        let (kind, size) = self.read(block_start)?;
        if matches!(kind, Kind::End) || !self.is_no_block_end(size.into()) {
            return Ok((kind, size));
        }
        let (content, shift) = (self.at, self.decoder.shift);
        for turn in 1..4 {
            self.at = start;
            self.decoder.shift = (shift + turn) % 4;
            if self.read(block_start).is_ok() && self.is_block_end(size.into()) {
                self.decoder.lost();
                self.decoder.missing();
                self.decoder.diagnostics.misaligned_blocks += 1;
                return Ok((kind, size));
            }
        }
        (self.at, self.decoder.shift) = (content, shift);
        Ok((kind, size))
    }

    /// A block that is decoded as a whole.
    fn whole_block(&mut self, kind: Kind, size: u32) -> Step {
        if matches!(kind, Kind::Unknown) {
            self.unknown_block(u64::from(size));
            return Step::Next;
        }
        let mut step = Step::Next;
        self.with_block(size, |decoder, block| match kind {
            Kind::SequencePoint => {
                step = Step::RegionEnd;
                decoder.sequence_point(block).is_ok()
            }
            _ => decoder.stacks(block),
        });
        step
    }

    pub(crate) fn end_tag(&mut self) -> Step {
        self.mark();
        match self.read(|cursor, _| end(cursor)) {
            Ok(()) => self.stage = Stage::Between,
            Err(Fault::Short) => self.cut(),
            Err(Fault::Bad) => self.lose(GapCause::BadBlock),
        }
        Step::Next
    }

    /// The events of a V3 block that ends at the stream offset `block_end`.
    pub(crate) fn netperf_events(&mut self, block_end: u64) -> Step {
        self.mark();
        let offset = self.window.offset(self.at);
        if offset >= block_end {
            self.end_block();
            let enough = self.at >= NETPERF_REGION;
            return if enough {
                self.end_netperf_region()
            } else {
                Step::Next
            };
        }
        let left = block_end - offset;
        match self.read(|cursor, _| netperf::event_size(cursor)) {
            Ok(size) if size as u64 <= left => self.netperf_event(size, MetadataForm::Numbered),
            Ok(_) | Err(Fault::Bad) => {
                self.leave_block(left, GapCause::BadRecord);
                Step::Next
            }
            Err(Fault::Short) => {
                self.lose(GapCause::BadRecord);
                Step::Next
            }
        }
    }

    /// An event of V1 or V2, or the end of them all.
    pub(crate) fn bare_event(&mut self, form: MetadataForm) -> Step {
        self.mark();
        if self.read(netperf::end).is_ok() {
            self.end_of_stream();
            return Step::Next;
        }
        match self.read(|cursor, _| netperf::event_size(cursor)) {
            Ok(size) if size <= LARGEST_BLOCK as usize => self.netperf_event(size, form),
            Err(Fault::Short) => {
                self.cut();
                Step::Next
            }
            Ok(_) | Err(Fault::Bad) => {
                self.lose(GapCause::BadRecord);
                Step::Next
            }
        }
    }

    fn netperf_event(&mut self, size: usize, form: MetadataForm) -> Step {
        let end = self.at.saturating_add(size);
        if !self.window.fill_to(end) {
            // If the size is wrong, more events may follow.
            self.lose(GapCause::BadRecord);
            return Step::Next;
        }
        let offset = self.window.offset(self.at);
        if self
            .decoder
            .netperf_event(self.window.bytes(), self.at, end, offset, form)
            .is_err()
        {
            self.decoder.bad_record(offset, size);
        }
        self.at = end;
        if matches!(self.framing, Framing::Events(_)) && self.at >= NETPERF_REGION {
            return self.end_netperf_region();
        }
        Step::Next
    }

    fn end_netperf_region(&mut self) -> Step {
        self.decoder.end_tables();
        Step::RegionEnd
    }
}
