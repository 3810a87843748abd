//! A compressed section whose parts state their lengths (units, line tables), unpacked as far as its parts are asked for.
//!
//! What is compressed has to be read from its begin, but need not be kept. One question keeps the chunk it leads to and
//! drops those before; whoever goes back begins anew, once, and keeps all that passes, as do batches. So a section is
//! unpacked three times at most, and one answer takes the memory of one chunk.

use std::fmt;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use gimli::{EndianSlice, Reader, RunTimeEndian};
use object::read::CompressionFormat;

use super::packing;
use crate::mmap::FileData;

/// The parts that begin within so many bytes of the section are one chunk.
const CHUNK: usize = 1 << 20;

/// So much is unpacked at a time, in bytes: what a file states to be there need not be.
const BLOCK: usize = 256 << 10;

/// A section of parts.
pub(crate) struct Chunks {
    packed: Packed,
    /// By where their first part begins, in [`CHUNK`]s.
    kept: Box<[OnceLock<Chunk>]>,
    keep_all: AtomicBool,
    stream: Mutex<Stream>,
    problem: OnceLock<String>,
}

/// Where a section lies.
struct Packed {
    data: FileData,
    range: Range<usize>,
    format: CompressionFormat,
    /// Unpacked, in bytes.
    len: usize,
    endian: RunTimeEndian,
}

struct Chunk {
    start: usize,
    bytes: Vec<u8>,
}

/// How far the section is read.
struct Stream {
    reader: Option<Box<dyn Read + Send>>,
    at: usize,
    /// Where the parts begin that were met so far.
    starts: Vec<usize>,
    anew: bool,
    /// Nothing more can be unpacked.
    ended: bool,
    /// What was dropped last.
    spare: Vec<u8>,
}

impl Chunks {
    /// Nothing is unpacked yet. `len` is the size that the section states; the caller holds it to a limit.
    pub(crate) fn new(
        data: FileData,
        range: Range<usize>,
        format: CompressionFormat,
        len: usize,
        endian: RunTimeEndian,
    ) -> Self {
        Self {
            packed: Packed {
                data,
                range,
                format,
                len,
                endian,
            },
            kept: (0..=len / CHUNK).map(|_| OnceLock::new()).collect(),
            keep_all: AtomicBool::new(false),
            stream: Mutex::new(Stream {
                reader: None,
                at: 0,
                starts: Vec::new(),
                anew: false,
                ended: false,
                spare: Vec::new(),
            }),
            problem: OnceLock::new(),
        }
    }

    /// Unpacked, in bytes.
    pub(crate) fn len(&self) -> usize {
        self.packed.len
    }

    /// From now on all that is unpacked is kept.
    pub(crate) fn keep_all(&self) {
        self.keep_all.store(true, Ordering::Relaxed);
    }

    /// Why the rest could not be unpacked, if so.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.get().map(String::as_str)
    }

    /// The bytes from a part's begin on, to its end or further; nothing where none begins.
    pub(crate) fn from(&self, offset: usize) -> Option<&[u8]> {
        if offset >= self.packed.len {
            return None;
        }
        if let Some(found) = self.find(offset) {
            return Some(found);
        }
        if let Some(mut stream) = self.stream_before(offset) {
            while stream.at <= offset && self.advance(&mut stream, offset, |_, _| {}) {}
        }
        self.find(offset)
    }

    /// Calls `each` with every part and where it begins.
    pub(crate) fn each(&self, mut each: impl FnMut(usize, &[u8])) {
        let mut at = 0_usize;
        loop {
            while let Some(from) = self.find(at) {
                let part = from.get(..self.packed.part_len(at, from));
                let part = part.unwrap_or(from);
                each(at, part);
                at = at.saturating_add(part.len());
            }
            let Some(mut stream) = self.stream_before(at) else {
                match self.find(at) {
                    Some(_) => continue,
                    None => return,
                }
            };
            let unpacked = self.advance(&mut stream, usize::MAX, |start, part| {
                if start == at {
                    each(at, part);
                    at = at.saturating_add(part.len());
                }
            });
            if !unpacked {
                return;
            }
        }
    }

    /// Which parts are unpacked together: equal for those that are.
    pub(crate) fn chunk(offset: usize) -> usize {
        offset / CHUNK
    }

    /// Where the part begins that has an offset.
    pub(crate) fn start(&self, offset: usize) -> Option<usize> {
        let mut stream = self.lock();
        let known = |stream: &Stream| stream.starts.last().is_some_and(|&last| last > offset);
        if !known(&stream) {
            while stream.at <= offset && self.advance(&mut stream, usize::MAX, |_, _| {}) {}
        }
        let next = stream.starts.partition_point(|&start| start <= offset);
        stream.starts.get(next.checked_sub(1)?).copied()
    }

    fn lock(&self) -> MutexGuard<'_, Stream> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stream, begun anew if it is beyond an offset; nothing where that came to be kept, or is no part's begin.
    fn stream_before(&self, offset: usize) -> Option<MutexGuard<'_, Stream>> {
        let mut stream = self.lock();
        if stream.at > offset {
            // Another thread may have come first.
            if stream.anew || self.find(offset).is_some() {
                return None;
            }
            stream.rewind();
        }
        Some(stream)
    }

    fn find(&self, offset: usize) -> Option<&[u8]> {
        // A part may be longer than a chunk.
        let before = self.kept.get(..=offset / CHUNK)?.iter().rev();
        let chunk = before.filter_map(OnceLock::get).next()?;
        let from = chunk.bytes.get(offset.checked_sub(chunk.start)?..)?;
        (!from.is_empty()).then_some(from)
    }

    /// Unpacks the next chunk, kept where all are or where it holds what is `wanted`. False at the end.
    fn advance(
        &self,
        stream: &mut Stream,
        wanted: usize,
        mut each: impl FnMut(usize, &[u8]),
    ) -> bool {
        if stream.ended || stream.at >= self.packed.len {
            return false;
        }
        let start = stream.at;
        let slot = start / CHUNK;
        let end = slot.saturating_add(1).saturating_mul(CHUNK);
        let mut bytes = std::mem::take(&mut stream.spare);
        bytes.clear();
        // The last part reaches beyond the end; what is not needed is given back.
        bytes.reserve(self.packed.len.saturating_sub(start).min(2 * CHUNK));
        while stream.at < end.min(self.packed.len) {
            let from = bytes.len();
            let read = stream.part(&self.packed, &mut bytes);
            let part = bytes.get(from..).unwrap_or_default();
            if !part.is_empty() {
                if stream.starts.last().is_none_or(|&last| last < stream.at) {
                    stream.starts.push(stream.at);
                }
                each(stream.at, part);
                stream.at = stream.at.saturating_add(part.len());
            }
            if let Err(error) = read {
                let _ = self.problem.set(error.to_string());
                stream.ended = true;
                break;
            }
        }
        let keep = stream.anew || self.keep_all.load(Ordering::Relaxed);
        if keep || (start..stream.at).contains(&wanted) {
            bytes.shrink_to_fit();
            if let Some(slot) = self.kept.get(slot) {
                let _ = slot.set(Chunk { start, bytes });
            }
        } else {
            stream.spare = bytes;
        }
        true
    }
}

impl Packed {
    /// How long the part at an offset is. What states no length that can be is one part to the end.
    fn part_len(&self, at: usize, head: &[u8]) -> usize {
        let left = self.len.saturating_sub(at);
        let stated = part_len(head, self.endian).filter(|&len| len <= left);
        stated.unwrap_or(left)
    }
}

impl Stream {
    fn rewind(&mut self) {
        (self.reader, self.at) = (None, 0);
        (self.anew, self.ended) = (true, false);
    }

    /// Unpacks one part.
    fn part(&mut self, packed: &Packed, out: &mut Vec<u8>) -> io::Result<()> {
        let reader = match &mut self.reader {
            Some(reader) => reader,
            None => {
                let new = packing::reader(&packed.data, packed.range.clone(), packed.format)?;
                self.reader.insert(new)
            }
        };
        let from = out.len();
        let left = packed.len.saturating_sub(self.at);
        let mut take = |len: usize, out: &mut Vec<u8>| {
            let end = out.len().saturating_add(len);
            while out.len() < end {
                let at = out.len();
                out.resize(end.min(at.saturating_add(BLOCK)), 0);
                let read = reader.read(out.get_mut(at..).unwrap_or_default());
                let len = read.as_ref().map_or(0, |&len| len);
                out.truncate(at.saturating_add(len));
                if read? == 0 {
                    return Err(io::Error::other("it unpacks to less than its header says"));
                }
            }
            Ok(())
        };
        take(left.min(4), out)?;
        if out.get(from..) == Some(&[0xFF; 4]) {
            take(left.saturating_sub(4).min(8), out)?;
        }
        let head = out.get(from..).unwrap_or_default();
        let rest = packed.part_len(self.at, head).saturating_sub(head.len());
        take(rest, out)
    }
}

/// How long a part is, with the length that it begins with (DWARF 5, section 7.4).
fn part_len(bytes: &[u8], endian: RunTimeEndian) -> Option<usize> {
    let mut head = EndianSlice::new(bytes, endian);
    let (len, format) = head.read_initial_length().ok()?;
    len.checked_add(usize::from(format.initial_length_size()))
}

impl fmt::Debug for Chunks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chunks({} bytes)", self.packed.len)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Parts of so many bytes each, packed, and where each begins.
    fn packed(lens: &[u32]) -> (Chunks, Vec<usize>) {
        let (mut plain, mut starts) = (Vec::new(), Vec::new());
        for (i, &len) in lens.iter().enumerate() {
            starts.push(plain.len());
            plain.extend_from_slice(&len.to_le_bytes());
            plain.resize(plain.len() + len as usize, i as u8);
        }
        (chunks(&plain, plain.len()), starts)
    }

    fn chunks(plain: &[u8], stated: usize) -> Chunks {
        let level = flate2::Compression::fast();
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
        encoder.write_all(plain).unwrap();
        let data = encoder.finish().unwrap();
        let range = 0..data.len();
        let data = FileData::from(data);
        Chunks::new(
            data,
            range,
            CompressionFormat::Zlib,
            stated,
            RunTimeEndian::Little,
        )
    }

    fn kept(chunks: &Chunks) -> usize {
        chunks.kept.iter().filter(|c| c.get().is_some()).count()
    }

    const LENS: [u32; 7] = [100, 900_000, 400_000, 3_500_000, 20, 700_000, 5];

    #[test]
    fn each_part_is_found_in_any_order_and_one_keeps_one_chunk() {
        for order in [
            [5, 6, 1, 0, 3, 2, 4],
            [0, 1, 2, 3, 4, 5, 6],
            [6, 5, 4, 3, 2, 1, 0],
        ] {
            let (chunks, starts) = packed(&LENS);
            for (asked, i) in order.into_iter().enumerate() {
                let found = chunks.from(starts[i]).unwrap();
                assert_eq!(found[..4], LENS[i].to_le_bytes());
                assert_eq!(
                    found[4..][..LENS[i] as usize],
                    vec![i as u8; LENS[i] as usize]
                );
                assert!(asked > 0 || kept(&chunks) == 1);
            }
            assert_eq!(chunks.problem(), None);
        }
    }

    #[test]
    fn parts_are_listed_and_found_by_what_lies_in_them() {
        let (chunks, starts) = packed(&LENS);
        assert_eq!(chunks.start(starts[3] + 3_000_000), Some(starts[3]));
        assert_eq!(chunks.start(3), Some(0));
        assert_eq!(kept(&chunks), 0);
        let expected = starts.iter().copied().zip(LENS.map(|len| len as usize));
        let expected = expected.collect::<Vec<_>>();
        // Where nothing is kept, then what one question keeps, then all.
        for asked in [None, Some(5), Some(0)] {
            if let Some(asked) = asked {
                assert!(chunks.from(starts[asked]).is_some());
            }
            let mut listed = Vec::new();
            chunks.each(|at, part| listed.push((at, part.len() - 4)));
            assert_eq!(listed, expected);
        }
        assert_eq!(chunks.start(starts[6] + 8), Some(starts[6]));
    }

    #[test]
    fn what_is_read_before_the_damage_stays() {
        let plain = [&2_000_000_u32.to_le_bytes()[..], &vec![1; 2_000_000]].concat();
        // It states more than there is.
        let more = [&plain[..], &9_u32.to_le_bytes(), &[2; 4]].concat();
        let chunks = chunks(&more, more.len() + 500);
        assert_eq!(chunks.from(0).unwrap()[..plain.len()], plain);
        assert!(chunks.from(plain.len()).is_some());
        assert!(chunks.from(more.len() + 20).is_none());
        assert!(
            chunks
                .problem()
                .is_some_and(|p| p.contains("less than its header"))
        );
        // Offsets out of nowhere.
        assert!(chunks.from(usize::MAX).is_none() && chunks.from(more.len() + 500).is_none());
    }
}
