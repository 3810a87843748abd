//! One stream of a trace: its packets, and the events in them.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "places in a packet that was read in full, and counts of what was read"
)]

use std::io::Read;

use chronosym_types::Window;

use crate::bits::Bits;
use crate::decode::{Decoded, Fault};
use crate::diagnostics::{Diagnostics, Loss};
use crate::metadata::Metadata;
use crate::types::{NameId, Type};

/// Most bytes of a packet's header.
const MAX_HEADER: usize = 4096;

/// The start of every packet.
const MAGIC: [u8; 4] = 0xc1fc_1fc1_u32.to_le_bytes();

/// The content of a packet in memory.
#[derive(Debug, Default)]
struct Packet {
    /// Bytes of the packet, including padding.
    size: u64,
    /// Bytes of content.
    content: usize,
    /// Start of the next event, in bits.
    at: u64,
    /// Whether the stream ends before the content does.
    is_cut: bool,
    stream_id: u64,
    cpu: Option<u32>,
    end_time: Option<u64>,
}

/// Counters that continue from packet to packet.
#[derive(Clone, Copy, Debug)]
struct Counts {
    number: Option<u64>,
    discarded: Option<u64>,
    end_time: u64,
}

/// A stream, read from front to back.
#[derive(Debug)]
pub(crate) struct Stream<R> {
    /// Positioned at the packet.
    pub window: Window<R>,
    packet: Packet,
    before: Option<Counts>,
    /// Time of the last event, in ticks.
    pub time: u64,
    /// Index of its type in the metadata.
    pub event: usize,
    decoded: Decoded,
    /// Start of its context and of its own fields among the decoded fields.
    context_at: usize,
    fields_at: usize,
}

impl<R: Read> Stream<R> {
    pub fn new(source: R) -> Self {
        Stream {
            window: Window::new(source),
            packet: Packet::default(),
            before: None,
            time: 0,
            event: 0,
            decoded: Decoded::default(),
            context_at: 0,
            fields_at: 0,
        }
    }

    /// Returns the UUID of its trace, which follows the magic number.
    pub fn uuid(&mut self) -> Option<[u8; 16]> {
        let (magic, uuid) = self.window.peek(20)?.split_at(4);
        let mut reversed = MAGIC;
        reversed.reverse();
        (magic == MAGIC || magic == reversed).then(|| uuid.try_into().ok())?
    }

    /// Lends or takes back the memory of registers, which only one stream needs at a time.
    pub fn swap_registers(&mut self, registers: &mut Vec<i128>) {
        std::mem::swap(&mut self.decoded.registers, registers);
    }

    pub fn cpu(&self) -> Option<u32> {
        self.packet.cpu
    }

    /// Returns the content of the event's packet.
    pub fn content(&self) -> &[u8] {
        &self.window.bytes()[..self.packet.content]
    }

    pub fn context(&self) -> &[crate::value::DecodedField] {
        &self.decoded.fields[self.context_at..self.fields_at]
    }

    pub fn fields(&self) -> &[crate::value::DecodedField] {
        &self.decoded.fields[self.fields_at..]
    }

    /// Reads the next event; false at the end of the stream.
    pub fn advance(
        &mut self,
        metadata: &Metadata,
        limit: usize,
        diagnostics: &mut Diagnostics,
    ) -> bool {
        loop {
            let end = self.packet.content as u64 * 8;
            if self.packet.at >= end {
                match self.next_packet(metadata, limit, diagnostics) {
                    true => continue,
                    false => return false,
                }
            }
            if self.next_event(metadata).is_ok() {
                return true;
            }
            diagnostics.bad_packets += u64::from(!self.packet.is_cut);
            diagnostics.bytes_skipped += (end - self.packet.at).div_ceil(8);
            self.packet.at = end;
            // Nothing follows a packet that is cut, and times beyond its end are wrong.
            let is_known = |&end: &u64| !self.packet.is_cut && end > self.time;
            let end_time = self.packet.end_time.filter(is_known);
            self.unreadable(self.time, end_time, metadata, diagnostics);
        }
    }

    fn next_event(&mut self, metadata: &Metadata) -> Result<(), Fault> {
        let packet = &self.packet;
        let stream = metadata
            .streams
            .get(&packet.stream_id)
            .ok_or(Fault::Unknown)?;
        let mut bits = Bits {
            bytes: &self.window.bytes()[..packet.content],
            at: packet.at,
            order: metadata.order,
        };
        let decoded = &mut self.decoded;
        decoded.clear(metadata);
        read(decoded, &mut bits, stream.event_header.as_deref())?;
        let id = decoded.number(0, metadata.id_name).unwrap_or(0);
        let time = match decoded.clock() {
            Some((scalar, value)) => later(self.time, value, scalar.bits).ok_or(Fault::Unknown)?,
            None => self.time,
        };
        if packet.end_time.is_some_and(|end| time > end) {
            return Err(Fault::Unknown);
        }
        let event = *metadata
            .by_id
            .get(&(packet.stream_id, id))
            .ok_or(Fault::Unknown)?;
        let event_type = &metadata.event_types()[event];
        self.context_at = decoded.fields.len();
        read(decoded, &mut bits, stream.event_context.as_deref())?;
        read(decoded, &mut bits, event_type.context_type.as_deref())?;
        self.fields_at = decoded.fields.len();
        read(decoded, &mut bits, event_type.fields_type.as_deref())?;
        if bits.at == packet.at {
            return Err(Fault::Unknown);
        }
        (self.event, self.time, self.packet.at) = (event, time, bits.at);
        Ok(())
    }

    /// Continues with the next packet; false if there is none.
    fn next_packet(
        &mut self,
        metadata: &Metadata,
        limit: usize,
        diagnostics: &mut Diagnostics,
    ) -> bool {
        let before = std::mem::take(&mut self.packet);
        self.window.drop_bytes(0, before.size);
        let is_ending = !self.window.fill_to(MAX_HEADER);
        if self.window.bytes().is_empty() {
            return false;
        }
        diagnostics.packets += 1;
        let Ok(header) = self.header(metadata) else {
            // Without its size the next one cannot be diagnostics. A stream that was cut lacks the
            // header.
            match is_ending && self.window.bytes().len() < 96 {
                true => diagnostics.cut_streams += 1,
                false => diagnostics.bad_packets += 1,
            }
            diagnostics.bytes_skipped += self.window.drop_bytes(0, u64::MAX);
            self.unreadable(self.time, None, metadata, diagnostics);
            return false;
        };
        let bytes = |bits: u64| bits.div_ceil(8);
        let (size, content) = (bytes(header.size), bytes(header.content));
        let is_sound = header.content <= header.size && header.content >= header.end;
        let readable = match is_sound {
            true => content.min(limit as u64) as usize,
            false => bytes(header.end) as usize,
        };
        let is_cut = !self.window.fill_to(readable);
        diagnostics.cut_streams += u64::from(is_cut);
        diagnostics.bad_packets += u64::from(!is_sound || content > limit as u64);
        if is_sound {
            diagnostics.bytes_skipped += content - readable as u64;
        }
        self.packet = Packet {
            size,
            content: readable.min(self.window.bytes().len()),
            at: header.end,
            is_cut,
            stream_id: header.stream_id,
            cpu: header.cpu,
            end_time: header
                .end_time
                .filter(|&end| end >= header.start_time.unwrap_or(0)),
        };
        self.decoded.start_packet(self.packet.content);
        self.count(&header, metadata, diagnostics);
        if !is_sound || content > limit as u64 {
            let from = header.start_time.unwrap_or(self.time);
            self.unreadable(from, self.packet.end_time, metadata, diagnostics);
        }
        if let Some(start) = header.start_time {
            self.time = start;
        }
        true
    }

    /// Adds the loss of events that cannot be read, after one time and up to another, or to the end.
    fn unreadable(
        &self,
        from: u64,
        to: Option<u64>,
        metadata: &Metadata,
        diagnostics: &mut Diagnostics,
    ) {
        let clock = metadata.clock();
        diagnostics.losses.push(Loss {
            from_ns: clock.ns(from),
            to_ns: to.map_or(u64::MAX, |to| clock.ns(to.max(from))),
            events: None,
        });
    }

    /// Decodes the header and context of a packet.
    fn header(&mut self, metadata: &Metadata) -> Result<Header, Fault> {
        let mut bits = Bits {
            bytes: self.window.bytes(),
            at: 0,
            order: metadata.order,
        };
        let decoded = &mut self.decoded;
        decoded.clear(metadata);
        decoded.start_packet(bits.bytes.len());
        read(decoded, &mut bits, metadata.packet_header.as_deref())?;
        let number =
            |decoded: &Decoded, from, name| decoded.number(from, metadata.names.find(name));
        if number(decoded, 0, "magic").is_some_and(|magic| magic != 0xc1fc_1fc1) {
            return Err(Fault::Unknown);
        }
        let stream_id = number(decoded, 0, "stream_id").unwrap_or(0);
        let from = decoded.fields.len();
        // For an unknown stream the size suffices, which is at the same position in all streams of
        // a trace.
        let mut streams = metadata.streams.values();
        let stream = metadata.streams.get(&stream_id).or_else(|| streams.next());
        read(
            decoded,
            &mut bits,
            stream.and_then(|it| it.packet_context.as_deref()),
        )?;
        let context = |name| number(decoded, from, name);
        let size = context("packet_size").unwrap_or(u64::MAX);
        if size < bits.at {
            return Err(Fault::Unknown);
        }
        Ok(Header {
            end: bits.at,
            size,
            content: context("content_size").unwrap_or(size),
            stream_id,
            cpu: context("cpu_id").and_then(|cpu| cpu.try_into().ok()),
            start_time: context("timestamp_begin"),
            end_time: context("timestamp_end"),
            number: context("packet_seq_num"),
            discarded: context("events_discarded"),
        })
    }

    /// Counts losses since the previous packet.
    fn count(&mut self, header: &Header, metadata: &Metadata, diagnostics: &mut Diagnostics) {
        let end_time = header.end_time.or(header.start_time).unwrap_or(self.time);
        let start_time = header.start_time.unwrap_or(end_time);
        // Nothing was lost before the first packet of a recording; before a later one it is
        // unknown.
        let before = self.before.unwrap_or(Counts {
            number: None,
            discarded: header
                .discarded
                .filter(|_| header.number.is_some_and(|it| it > 0)),
            end_time: start_time,
        });
        let since = |now: Option<u64>, then: u64| now.and_then(|now| now.checked_sub(then));
        let events = since(header.discarded, before.discarded.unwrap_or(0)).unwrap_or(0);
        let expected = before.number.map(|number| number.saturating_add(1));
        let packets = expected
            .and_then(|expected| since(header.number, expected))
            .unwrap_or(0);
        diagnostics.lost_events = diagnostics.lost_events.saturating_add(events);
        diagnostics.lost_packets = diagnostics.lost_packets.saturating_add(packets);
        let clock = metadata.clock();
        let mut lost = |to, events| {
            diagnostics.losses.push(Loss {
                from_ns: clock.ns(before.end_time),
                to_ns: clock.ns(to),
                events,
            });
        };
        if packets > 0 {
            lost(start_time, None);
        }
        if events > 0 {
            lost(end_time, Some(events));
        }
        self.before = Some(Counts {
            number: header.number,
            discarded: header.discarded,
            end_time,
        });
    }
}

/// The header and context of a packet; sizes in bits, times in ticks.
struct Header {
    end: u64,
    size: u64,
    content: u64,
    stream_id: u64,
    cpu: Option<u32>,
    start_time: Option<u64>,
    end_time: Option<u64>,
    number: Option<u64>,
    discarded: Option<u64>,
}

fn read(decoded: &mut Decoded, bits: &mut Bits<'_>, ty: Option<&Type>) -> Result<(), Fault> {
    // The outermost type has no name.
    const WHOLE: NameId = NameId(0);
    ty.map_or(Ok(()), |ty| decoded.read(bits, ty, WHOLE))
}

/// Returns the earliest time with these low bits that is not before the last one.
fn later(last: u64, low: u64, bits: u32) -> Option<u64> {
    let Some(span) = 1u64.checked_shl(bits) else {
        return Some(low);
    };
    let time = last & !(span - 1) | low;
    if time < last {
        time.checked_add(span)
    } else {
        Some(time)
    }
}
