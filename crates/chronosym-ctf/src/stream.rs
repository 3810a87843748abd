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

/// Bytes in which the header of a packet has to end.
const MOST_HEADER: usize = 4096;

/// What every packet begins with.
const MAGIC: [u8; 4] = 0xc1fc_1fc1_u32.to_le_bytes();

/// A packet in memory, as far as it is content.
#[derive(Debug, Default)]
struct Packet {
    /// Bytes of the whole, its padding included.
    size: u64,
    /// Bytes that hold something.
    content: usize,
    /// Where the next event begins, in bits.
    at: u64,
    /// Whether the stream ends before the content does.
    is_cut: bool,
    stream_id: u64,
    cpu: Option<u32>,
    end_time: Option<u64>,
}

/// What is counted from packet to packet.
#[derive(Clone, Copy, Debug)]
struct Counts {
    number: Option<u64>,
    discarded: Option<u64>,
    end_time: u64,
}

/// A stream, read from front to back.
#[derive(Debug)]
pub(crate) struct Stream<R> {
    /// On the packet.
    pub window: Window<R>,
    packet: Packet,
    before: Option<Counts>,
    /// The time of the event that was read last, in ticks.
    pub time: u64,
    /// That event: its type, by its place in the metadata.
    pub event: usize,
    decoded: Decoded,
    /// The items of the decoded event: those of its context, those of its fields.
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

    /// The UUID of the trace that it belongs to, which stands behind the magic number.
    pub fn uuid(&mut self) -> Option<[u8; 16]> {
        let (magic, uuid) = self.window.peek(20)?.split_at(4);
        let mut reversed = MAGIC;
        reversed.reverse();
        (magic == MAGIC || magic == reversed).then(|| uuid.try_into().ok())?
    }

    /// Gives and takes back room for the numbers that others depend on, which only one stream needs at a time.
    pub fn swap_registers(&mut self, registers: &mut Vec<i128>) {
        std::mem::swap(&mut self.decoded.registers, registers);
    }

    pub fn cpu(&self) -> Option<u32> {
        self.packet.cpu
    }

    /// The content of the packet that the event lies in.
    pub fn content(&self) -> &[u8] {
        &self.window.bytes()[..self.packet.content]
    }

    pub fn context(&self) -> &[crate::value::Item] {
        &self.decoded.items[self.context_at..self.fields_at]
    }

    pub fn fields(&self) -> &[crate::value::Item] {
        &self.decoded.items[self.fields_at..]
    }

    /// Reads the next event; false at the end of the stream.
    pub fn advance(&mut self, metadata: &Metadata, limit: usize, found: &mut Diagnostics) -> bool {
        loop {
            let end = self.packet.content as u64 * 8;
            if self.packet.at >= end {
                match self.next_packet(metadata, limit, found) {
                    true => continue,
                    false => return false,
                }
            }
            if self.next_event(metadata).is_ok() {
                return true;
            }
            found.bad_packets += u64::from(!self.packet.is_cut);
            found.bytes_skipped += (end - self.packet.at).div_ceil(8);
            self.packet.at = end;
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
        self.context_at = decoded.items.len();
        read(decoded, &mut bits, stream.event_context.as_deref())?;
        read(decoded, &mut bits, event_type.context_type.as_deref())?;
        self.fields_at = decoded.items.len();
        read(decoded, &mut bits, event_type.fields_type.as_deref())?;
        if bits.at == packet.at {
            return Err(Fault::Unknown);
        }
        (self.event, self.time, self.packet.at) = (event, time, bits.at);
        Ok(())
    }

    /// Goes on to the next packet; false if there is none.
    fn next_packet(&mut self, metadata: &Metadata, limit: usize, found: &mut Diagnostics) -> bool {
        let before = std::mem::take(&mut self.packet);
        self.window.drop_bytes(0, before.size);
        let is_ending = !self.window.fill_to(MOST_HEADER);
        if self.window.bytes().is_empty() {
            return false;
        }
        found.packets += 1;
        let Ok(header) = self.header(metadata) else {
            // Without its size there is no way to the next one. Of a stream that was cut the header is missing.
            match is_ending && self.window.bytes().len() < 96 {
                true => found.cut_streams += 1,
                false => found.bad_packets += 1,
            }
            found.bytes_skipped += self.window.drop_bytes(0, u64::MAX);
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
        found.cut_streams += u64::from(is_cut);
        found.bad_packets += u64::from(!is_sound || content > limit as u64);
        if is_sound {
            found.bytes_skipped += content - readable as u64;
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
                .filter(|&end| end >= header.begin_time.unwrap_or(0)),
        };
        self.decoded.begin(self.packet.content);
        self.count(&header, metadata, found);
        if let Some(begin) = header.begin_time {
            self.time = begin;
        }
        true
    }

    /// Reads what stands at the begin of a packet.
    fn header(&mut self, metadata: &Metadata) -> Result<Header, Fault> {
        let mut bits = Bits {
            bytes: self.window.bytes(),
            at: 0,
            order: metadata.order,
        };
        let decoded = &mut self.decoded;
        decoded.clear(metadata);
        decoded.begin(bits.bytes.len());
        read(decoded, &mut bits, metadata.packet_header.as_deref())?;
        let number =
            |decoded: &Decoded, from, name| decoded.number(from, metadata.names.find(name));
        if number(decoded, 0, "magic").is_some_and(|magic| magic != 0xc1fc_1fc1) {
            return Err(Fault::Unknown);
        }
        let stream_id = number(decoded, 0, "stream_id").unwrap_or(0);
        let from = decoded.items.len();
        // Of an unknown stream at least the size is wanted, which all streams of a trace have at one place.
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
            begin_time: context("timestamp_begin"),
            end_time: context("timestamp_end"),
            number: context("packet_seq_num"),
            discarded: context("events_discarded"),
        })
    }

    /// What was lost since the packet before.
    fn count(&mut self, header: &Header, metadata: &Metadata, found: &mut Diagnostics) {
        let end_time = header.end_time.or(header.begin_time).unwrap_or(self.time);
        let begin_time = header.begin_time.unwrap_or(end_time);
        // Before the first packet of a recording nothing was lost; of later ones it is not known.
        let before = self.before.unwrap_or(Counts {
            number: None,
            discarded: header
                .discarded
                .filter(|_| header.number.is_some_and(|it| it > 0)),
            end_time: begin_time,
        });
        let since = |now: Option<u64>, then: u64| now.and_then(|now| now.checked_sub(then));
        let events = since(header.discarded, before.discarded.unwrap_or(0)).unwrap_or(0);
        let expected = before.number.map(|number| number.saturating_add(1));
        let packets = expected
            .and_then(|expected| since(header.number, expected))
            .unwrap_or(0);
        found.lost_events = found.lost_events.saturating_add(events);
        found.lost_packets = found.lost_packets.saturating_add(packets);
        let clock = metadata.clock();
        let mut lost = |to, events| {
            found.losses.push(Loss {
                from_ns: clock.ns(before.end_time),
                to_ns: clock.ns(to),
                events,
            });
        };
        if packets > 0 {
            lost(begin_time, None);
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

/// The begin of a packet; sizes in bits, times in ticks.
struct Header {
    end: u64,
    size: u64,
    content: u64,
    stream_id: u64,
    cpu: Option<u32>,
    begin_time: Option<u64>,
    end_time: Option<u64>,
    number: Option<u64>,
    discarded: Option<u64>,
}

fn read(decoded: &mut Decoded, bits: &mut Bits<'_>, ty: Option<&Type>) -> Result<(), Fault> {
    // Nothing is called by the name of the whole.
    const WHOLE: NameId = NameId(0);
    ty.map_or(Ok(()), |ty| decoded.read(bits, ty, WHOLE))
}

/// The time whose low bits are these, and which is not before the last one.
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
