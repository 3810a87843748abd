//! Saved timelines: blocks of any content, with correct lengths and checksums.

use std::io::{Read, Write};

use chronosym::facts::{Action, At, IlMap, Image, Method, Module, Process, Sample, Symbol};
use chronosym::{
    DeltaReader, Options, Position, SaveOptions, SavedTimeline, Session, Timeline, When,
};
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

/// Tables of a file.
const TABLES: usize = 20;
const HEADER: &[u8] = b"chronos\0\x04\0\0\0";

/// A block: key, number of rows, content.
#[derive(Default)]
struct Block {
    process: u8,
    key: u64,
    rows: u16,
    content: Vec<u8>,
}

/// Reads a saved timeline with these blocks: for each table their number, and for each block the
/// process, the key (8 bytes), the number of rows (2) and the length of the content (2) and the
/// content.
pub fn any(data: &[u8]) {
    let _ = SavedTimeline::open(data);
    let _ = DeltaReader::new().read(data, &mut Session::new(Options::default()));
    let bytes = assemble(&blocks(data));
    let Ok(saved) = SavedTimeline::open(&bytes) else {
        return;
    };
    let addresses = [0x1010, 0x5000, u64::MAX];
    for position in [Position::Exact, Position::Return] {
        let parts = [
            saved.timeline_of(None, None, &addresses[..1], position),
            saved.bodies_of(None, &addresses[..1], position),
        ];
        for (part, _) in parts.into_iter().flatten() {
            look(&part, &addresses);
        }
    }
    let mut session = Session::new(Options::default());
    if saved.read_into(&mut session).is_err() {
        return;
    }
    let timeline = session.finish();
    look(&timeline, &addresses);
    let options = SaveOptions::new().with_samples();
    let again = timeline.save(Vec::new(), &options).expect("memory");
    let again = SavedTimeline::open(&again).expect("what was saved");
    let read = again.read_into(&mut Session::new(Options::default()));
    assert!(read.is_ok(), "{read:?}");
}

fn look(timeline: &Timeline, addresses: &[u64]) {
    for process in timeline.processes().take(4) {
        let bodies = timeline
            .bodies(process.index)
            .take(4)
            .map(|body| body.start);
        let all: Vec<u64> = bodies.chain(addresses.iter().copied()).collect();
        for address in all {
            for when in [When::Unknown, When::At(2_000)] {
                let answer = timeline.resolve(process.index, address, when, Position::Exact, None);
                std::hint::black_box(answer);
            }
        }
        std::hint::black_box(timeline.modules(process.index).count());
        std::hint::black_box(timeline.images(process.index).count());
    }
    std::hint::black_box(timeline.diagnostics());
}

fn blocks(data: &[u8]) -> Vec<Vec<Block>> {
    let mut data = data;
    let mut take = |length: usize| {
        let (head, rest) = data.split_at(length.min(data.len()));
        data = rest;
        let mut number = [0; 8];
        number[..head.len().min(8)].copy_from_slice(&head[..head.len().min(8)]);
        (u64::from_le_bytes(number), head.to_vec())
    };
    let mut block = || {
        let (process, key, rows) = (take(1).0 as u8, take(8).0, take(2).0 as u16);
        let length = take(2).0 as usize;
        let content = take(length).1;
        Block {
            process,
            key,
            rows,
            content,
        }
    };
    let mut tables = Vec::new();
    for _ in 0..TABLES {
        // The number of blocks is the process of one without content.
        let count = block().process % 8;
        tables.push((0..count).map(|_| block()).collect());
    }
    tables
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn read_varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    while let Some((&byte, rest)) = bytes.split_first() {
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            break;
        }
    }
    value
}

fn zigzag(difference: u64) -> u64 {
    difference << 1 ^ ((difference as i64 >> 63) as u64)
}

fn packed(bytes: &[u8]) -> (Vec<u8>, u32) {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory");
    let packed = encoder.finish().expect("memory");
    let mut crc = flate2::Crc::new();
    crc.update(&packed);
    (packed, crc.sum())
}

/// The file that `docs/chrono.md` describes.
fn assemble(tables: &[Vec<Block>]) -> Vec<u8> {
    let mut file = HEADER.to_vec();
    let mut columns: [Vec<u8>; 7] = Default::default();
    let (mut process, mut key) = (0, 0);
    for blocks in tables {
        varint(&mut columns[0], blocks.len() as u64);
        for block in blocks {
            let (stored, crc) = packed(&block.content);
            file.extend(&stored);
            let next = (u64::from(block.process), block.key);
            varint(&mut columns[1], zigzag(next.0.wrapping_sub(process)));
            varint(&mut columns[2], zigzag(next.1.wrapping_sub(key)));
            (process, key) = next;
            varint(&mut columns[3], block.rows.into());
            varint(&mut columns[4], stored.len() as u64);
            varint(&mut columns[5], block.content.len() as u64);
            varint(&mut columns[6], crc.into());
        }
    }
    let mut directory = Vec::new();
    varint(&mut directory, columns.len() as u64);
    columns
        .iter()
        .for_each(|column| varint(&mut directory, column.len() as u64));
    directory.extend(columns.concat());
    let (stored, crc) = packed(&directory);
    let mut trailer = (file.len() as u64).to_le_bytes().to_vec();
    trailer.extend((stored.len() as u32).to_le_bytes());
    trailer.extend((directory.len() as u32).to_le_bytes());
    trailer.extend(crc.to_le_bytes());
    let mut crc = flate2::Crc::new();
    crc.update(&trailer);
    trailer.extend(crc.sum().to_le_bytes());
    file.extend(stored);
    file.extend(trailer);
    file
}

/// The blocks of a small session.
pub fn seed() -> Vec<u8> {
    let mut session = Session::new(Options::default());
    let at = At::new(1_000).process(7).thread(1);
    session.apply(at, Process::new(Action::Load, "app"));
    session.apply(at, Module::new(Action::Load, 1, "/app/a.dll"));
    session.apply(at, Image::new(Action::Load, 0x5000, 0x1000, "/lib/libc.so"));
    let method = Method::new(Action::Load, 1, 0x1000, 64).in_module(1, 0x600_0001);
    session.apply(at, method.named("N.T", "M", "void ()"));
    session.apply(
        at,
        IlMap::new(Action::Load, 1, &[(0, 0), (5, 16), (-3, 60)]),
    );
    session.apply(at, Symbol::new(0x3000, 0x3fff, "stub"));
    session.sample(at.at(2_000), &[0x1010, 0x5004], Sample::cpu());
    let options = SaveOptions::new().with_samples();
    let file = session.finish().save(Vec::new(), &options).expect("memory");
    // The directory has the offsets of blocks.
    let trailer = &file[file.len() - 24..];
    let number = |at: usize| u32::from_le_bytes(trailer[at..at + 4].try_into().expect("four"));
    let start = number(0) as usize;
    let unpack = |bytes: &[u8]| {
        let mut content = Vec::new();
        DeflateDecoder::new(bytes)
            .read_to_end(&mut content)
            .expect("what was saved");
        content
    };
    let directory = unpack(&file[start..start + number(8) as usize]);
    let mut rest = directory.as_slice();
    let count = read_varint(&mut rest);
    let lengths: Vec<usize> = (0..count)
        .map(|_| read_varint(&mut rest) as usize)
        .collect();
    let mut columns: Vec<&[u8]> = Vec::new();
    for length in lengths {
        let (column, after) = rest.split_at(length);
        columns.push(column);
        rest = after;
    }
    let mut out = Vec::new();
    let unzigzag = |value: u64| value >> 1 ^ (value & 1).wrapping_neg();
    let (mut process, mut key, mut offset) = (0u64, 0u64, HEADER.len());
    for _ in 0..TABLES {
        let blocks = read_varint(&mut columns[0]);
        out.push(blocks as u8);
        out.extend([0; 12]);
        for _ in 0..blocks {
            let mut next = |column: usize| read_varint(&mut columns[column]);
            process = process.wrapping_add(unzigzag(next(1)));
            key = key.wrapping_add(unzigzag(next(2)));
            let (rows, stored) = (next(3) as u16, next(4) as usize);
            next(5);
            next(6);
            let content = unpack(&file[offset..offset + stored]);
            offset += stored;
            out.push(process as u8);
            out.extend(key.to_le_bytes());
            out.extend(rows.to_le_bytes());
            out.extend((content.len() as u16).to_le_bytes());
            out.extend(content);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_is_a_saved_timeline() {
        let bytes = assemble(&blocks(&seed()));
        let mut session = Session::new(Options::default());
        let saved = SavedTimeline::open(&bytes).expect("as it was saved");
        saved.read_into(&mut session).expect("as it was saved");
        let timeline = session.finish();
        let process = timeline.find_process(7, None).expect("the process");
        let frames = timeline.frames(process, 0x1010, 2_000, Position::Exact, None);
        assert_eq!(frames[0].name(), Ok("N.T.M"));
    }
}
