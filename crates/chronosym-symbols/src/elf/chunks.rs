//! Decompresses a section on demand. Its parts (units, line tables) start with their lengths.
//!
//! A compressed stream has to be read from its start, but need not be kept. A single lookup keeps
//! the chunk that it leads to and drops those before. A lookup of an earlier chunk restarts the
//! stream, once, and then keeps all chunks, as do batches. So a section is decompressed three times
//! at most, and a single lookup uses the memory of one chunk.

use std::fmt;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use gimli::{EndianSlice, Reader, RunTimeEndian};
use object::read::CompressionFormat;

use super::packing;
use crate::mmap::FileData;

/// The size of a chunk in bytes: it holds the parts that start in it.
const CHUNK: usize = 1 << 20;

/// Bytes decompressed at a time: a file may have less data than it states.
const BLOCK: usize = 256 << 10;

/// A compressed section of parts.
pub(crate) struct Chunks {
    packed: Packed,
    /// By the offset of their first part, divided by [`CHUNK`].
    kept: Box<[OnceLock<Chunk>]>,
    keep_all: AtomicBool,
    stream: Mutex<Stream>,
    problem: OnceLock<String>,
}

/// Location of a section.
struct Packed {
    data: FileData,
    range: Range<usize>,
    format: CompressionFormat,
    /// Decompressed size in bytes.
    len: usize,
    endian: RunTimeEndian,
}

struct Chunk {
    start: usize,
    bytes: Vec<u8>,
}

/// The decompressor and its position.
struct Stream {
    reader: Option<Box<dyn Read + Send>>,
    at: usize,
    /// Offsets of the parts that were passed.
    starts: Vec<usize>,
    restarted: bool,
    /// Decompression failed.
    ended: bool,
    /// Memory of the chunk that was dropped last.
    spare: Vec<u8>,
}

impl Chunks {
    /// Decompresses nothing yet. `len` is the size that the section states; the caller limits it.
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
                restarted: false,
                ended: false,
                spare: Vec::new(),
            }),
            problem: OnceLock::new(),
        }
    }

    /// Decompressed size in bytes.
    pub(crate) fn len(&self) -> usize {
        self.packed.len
    }

    /// Keeps all chunks from now on.
    pub(crate) fn keep_all(&self) {
        self.keep_all.store(true, Ordering::Relaxed);
    }

    /// Returns why decompression failed, if it did.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.get().map(String::as_str)
    }

    /// Returns the bytes from the start of a part to its end or further; `None` if no part starts
    /// at the offset.
    pub(crate) fn from(&self, offset: usize) -> Option<&[u8]> {
        if offset >= self.packed.len {
            return None;
        }
        if let Some(bytes) = self.find(offset) {
            return Some(bytes);
        }
        if let Some(mut stream) = self.stream_before(offset) {
            while stream.at <= offset && self.advance(&mut stream, offset, |_, _| {}) {}
        }
        self.find(offset)
    }

    /// Calls `each` with the offset and the bytes of every part.
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

    /// Returns the number of the chunk of a part.
    pub(crate) fn chunk(offset: usize) -> usize {
        offset / CHUNK
    }

    /// The start of the part that covers an offset.
    pub(crate) fn start(&self, offset: usize) -> Option<usize> {
        let mut stream = self.lock();
        let is_passed = |stream: &Stream| stream.starts.last().is_some_and(|&last| last > offset);
        if !is_passed(&stream) {
            while stream.at <= offset && self.advance(&mut stream, usize::MAX, |_, _| {}) {}
        }
        let next = stream.starts.partition_point(|&start| start <= offset);
        stream.starts.get(next.checked_sub(1)?).copied()
    }

    fn lock(&self) -> MutexGuard<'_, Stream> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the stream, restarted if it is beyond an offset; `None` if the offset was kept
    /// meanwhile or starts no part.
    fn stream_before(&self, offset: usize) -> Option<MutexGuard<'_, Stream>> {
        let mut stream = self.lock();
        if stream.at > offset {
            // Another thread may have been faster.
            if stream.restarted || self.find(offset).is_some() {
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

    /// Decompresses the next chunk, and keeps it if it covers `wanted` or if all are kept. Returns
    /// false at the end.
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
        // The last part reaches beyond the chunk; unused memory is released later.
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
        let keep = stream.restarted || self.keep_all.load(Ordering::Relaxed);
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
    /// Length of the part at an offset. A part with an invalid length extends to the end of the
    /// section.
    fn part_len(&self, at: usize, head: &[u8]) -> usize {
        let left = self.len.saturating_sub(at);
        let stated = part_len(head, self.endian).filter(|&len| len <= left);
        stated.unwrap_or(left)
    }
}

impl Stream {
    fn rewind(&mut self) {
        (self.reader, self.at) = (None, 0);
        (self.restarted, self.ended) = (true, false);
    }

    /// Decompresses one part.
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
                    return Err(io::Error::other(
                        "its decompressed size is smaller than its header states",
                    ));
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

/// Length of a part, including its initial length field (DWARF 5, section 7.4).
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

    /// Parts with these lengths, compressed, and their offsets.
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
            for (lookup, i) in order.into_iter().enumerate() {
                let bytes = chunks.from(starts[i]).unwrap();
                assert_eq!(bytes[..4], LENS[i].to_le_bytes());
                assert_eq!(
                    bytes[4..][..LENS[i] as usize],
                    vec![i as u8; LENS[i] as usize]
                );
                assert!(lookup > 0 || kept(&chunks) == 1);
            }
            assert_eq!(chunks.problem(), None);
        }
    }

    #[test]
    fn parts_are_listed_and_found_by_their_content() {
        let (chunks, starts) = packed(&LENS);
        assert_eq!(chunks.start(starts[3] + 3_000_000), Some(starts[3]));
        assert_eq!(chunks.start(3), Some(0));
        assert_eq!(kept(&chunks), 0);
        let expected = starts.iter().copied().zip(LENS.map(|len| len as usize));
        let expected = expected.collect::<Vec<_>>();
        // With nothing kept, then with one chunk, then with all.
        for part in [None, Some(5), Some(0)] {
            if let Some(part) = part {
                assert!(chunks.from(starts[part]).is_some());
            }
            let mut listed = Vec::new();
            chunks.each(|at, part| listed.push((at, part.len() - 4)));
            assert_eq!(listed, expected);
        }
        assert_eq!(chunks.start(starts[6] + 8), Some(starts[6]));
    }

    #[test]
    fn data_before_damage_is_kept() {
        let plain = [&2_000_000_u32.to_le_bytes()[..], &vec![1; 2_000_000]].concat();
        // States more than there is.
        let more = [&plain[..], &9_u32.to_le_bytes(), &[2; 4]].concat();
        let chunks = chunks(&more, more.len() + 500);
        assert_eq!(chunks.from(0).unwrap()[..plain.len()], plain);
        assert!(chunks.from(plain.len()).is_some());
        assert!(chunks.from(more.len() + 20).is_none());
        assert!(
            chunks
                .problem()
                .is_some_and(|p| p.contains("smaller than its header"))
        );
        // Invalid offsets.
        assert!(chunks.from(usize::MAX).is_none() && chunks.from(more.len() + 500).is_none());
    }
}
