//! The blocks of netperf V3 and nettrace files.

use std::io::Cursor;

use chronosym_nettrace::{Options, Reader};
use chronosym_support::netperf::NetperfWriter;
use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::trace::{EventSpec, TraceInfo};
use libtest_mimic::Failed;

/// A file as a list of blocks.
pub struct Blocks {
    head: Vec<u8>,
    list: Vec<Block>,
    tail: Vec<u8>,
    /// Whether blocks are objects, whose content starts at offsets divisible by four.
    is_objects: bool,
}

struct Block {
    header: Vec<u8>,
    content: Vec<u8>,
    has_events: bool,
}

fn number(bytes: &[u8], at: usize) -> usize {
    let bytes: [u8; 4] = bytes[at..at + 4].try_into().expect("four bytes");
    u32::from_le_bytes(bytes) as usize
}

impl Blocks {
    pub fn of(bytes: &[u8]) -> Self {
        match bytes.starts_with(b"Nettrace\0\0\0\0") {
            true => Blocks::of_v6(bytes),
            false => Blocks::of_objects(bytes),
        }
    }

    /// V3 to V5: objects of the FastSerialization container.
    fn of_objects(bytes: &[u8]) -> Self {
        const BEGIN: std::ops::RangeInclusive<u8> = 4..=5;
        let head = if bytes.starts_with(b"Nettrace") {
            32
        } else {
            24
        };
        // The first object is the header of the trace.
        let name = number(bytes, head + 11);
        let mut at = head + 15 + name + 1 + 48 + 1;
        let head = bytes[..at].to_vec();
        let mut list = Vec::new();
        while BEGIN.contains(&bytes[at]) {
            let name_at = at + 15;
            let name_end = name_at + number(bytes, at + 11);
            let name = &bytes[name_at..name_end];
            let header = bytes[at..name_end + 1].to_vec();
            let size = number(bytes, name_end + 1);
            let content = (name_end + 5).next_multiple_of(4);
            let end = content + size;
            list.push(Block {
                header,
                content: bytes[content..end].to_vec(),
                has_events: name == b"EventBlock" || name == b"StackBlock",
            });
            assert_eq!(bytes[end], 6, "the end of an object");
            at = end + 1;
        }
        Blocks {
            head,
            list,
            tail: bytes[at..].to_vec(),
            is_objects: true,
        }
    }

    fn of_v6(bytes: &[u8]) -> Self {
        const TRACE: u8 = 1;
        const EVENTS: u8 = 2;
        const STACKS: u8 = 5;
        let (mut at, mut head, mut list) = (20, bytes[..20].to_vec(), Vec::new());
        loop {
            let (size, kind) = (number(bytes, at) & 0xff_ffff, bytes[at + 3]);
            let (content, end) = (at + 4, at + 4 + size);
            match kind {
                0 => break,
                TRACE => head.extend_from_slice(&bytes[at..end]),
                _ => list.push(Block {
                    header: bytes[at..content].to_vec(),
                    content: bytes[content..end].to_vec(),
                    has_events: kind == EVENTS || kind == STACKS,
                }),
            }
            at = end;
        }
        Blocks {
            head,
            list,
            tail: bytes[at..].to_vec(),
            is_objects: false,
        }
    }

    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// The file without the blocks that `drop` selects by number, and whether it has events or
    /// stacks.
    pub fn without(&self, drop: impl Fn(usize, bool) -> bool) -> Vec<u8> {
        let mut bytes = self.head.clone();
        for (number, block) in self.list.iter().enumerate() {
            if drop(number, block.has_events) {
                continue;
            }
            bytes.extend_from_slice(&block.header);
            if self.is_objects {
                bytes.extend((block.content.len() as u32).to_le_bytes());
                bytes.resize(bytes.len().next_multiple_of(4), 0);
            }
            bytes.extend_from_slice(&block.content);
            if self.is_objects {
                bytes.push(6);
            }
        }
        bytes.extend_from_slice(&self.tail);
        bytes
    }
}

/// The version in which a trace is written again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Version {
    NetperfV3,
    V6,
}

/// Writes the events of a trace in another version, in regions as before.
pub fn rewritten(bytes: &[u8], version: Version) -> Result<Vec<u8>, Failed> {
    let mut reader = Reader::new(Cursor::new(bytes), Options::default())?;
    let header = reader.header();
    let info = TraceInfo {
        qpc_start: header.qpc_start,
        pointer_size: header.pointer_size.bytes() as u8,
        process_id: header.process_id.unwrap_or_default(),
        ..TraceInfo::default()
    };
    let mut netperf = NetperfWriter::v3().info(info.clone());
    let mut nettrace = NettraceWriter::v6().info(info).block_size(30_000);
    let mut types = Vec::new();
    while let Some(region) = reader.next_region()? {
        for event_type in &region.event_types()[types.len()..] {
            let (provider, id, version) =
                (&*event_type.provider, event_type.id, event_type.version);
            types.push((
                netperf.event_type(provider, id, version),
                nettrace.event_type(provider, id, version),
            ));
        }
        for record in region.in_time_order() {
            let stack: Vec<u64> = match record.stack {
                Some(stack) => region.stack(stack).iter().collect(),
                None => Vec::new(),
            };
            let (of_netperf, of_nettrace) = types[record.event_type.index()];
            let spec = |event_type| {
                EventSpec::new(event_type, record.time_ns as i64, record.thread_id)
                    .stack(&stack)
                    .payload(record.payload)
            };
            match version {
                Version::NetperfV3 => {
                    netperf.record(&spec(of_netperf));
                    if record.time_ns % 16 == 0 {
                        netperf.flush();
                    }
                }
                Version::V6 => nettrace.record(&spec(of_nettrace)),
            }
        }
        match version {
            Version::NetperfV3 => netperf.flush(),
            Version::V6 => nettrace.sequence_point(),
        }
    }
    Ok(match version {
        Version::NetperfV3 => netperf.finish(),
        Version::V6 => nettrace.finish(),
    })
}
