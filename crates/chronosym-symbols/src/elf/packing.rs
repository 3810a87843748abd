//! Decompression of sections and of whole files.

use std::io::{self, BufRead, Read};
use std::ops::Range;

use lzma_rust2::XzReader;
use object::read::CompressionFormat;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::error::{Error, Result};
use crate::mmap::FileData;
use crate::unpack_limit::unpack_limit;

/// Maximum decompressed size of a section or a file, in bytes.
const MAX_UNPACKED: u64 = 2 << 30;

/// Memory that xz may use, in KiB: its largest preset needs 64 MiB.
const MAX_WINDOW: u32 = 96 << 10;

/// Bytes of a mapped file after which the pages read are released.
const RELEASE: usize = 1 << 20;

/// Decompresses a range of a file.
///
/// # Errors
/// The compression format is unknown.
pub(crate) fn reader(
    data: &FileData,
    range: Range<usize>,
    format: CompressionFormat,
) -> io::Result<Box<dyn Read + Send>> {
    let input = Input {
        data: data.clone(),
        end: range.end.min(data.len()),
        at: range.start,
        released: range.start,
    };
    Ok(match format {
        CompressionFormat::Zlib => Box::new(flate2::bufread::ZlibDecoder::new(input)),
        CompressionFormat::Zstandard => Box::new(Zstd::new(input)),
        CompressionFormat::None => Box::new(input),
        _ => return Err(io::Error::other("its compression is unknown")),
    })
}

/// Returns the size to which `packed` bytes may decompress.
pub(crate) fn max_unpacked(packed: usize) -> u64 {
    unpack_limit(packed as u64).min(MAX_UNPACKED)
}

/// Decompresses a file that was compressed by gzip, xz or zstd, as kernel modules of Linux
/// distributions are; `None` for other files.
pub(crate) fn whole_file(data: &[u8]) -> Result<Option<FileData>> {
    let mut reader: Box<dyn Read> = match data {
        [0x1F, 0x8B, ..] => Box::new(flate2::bufread::MultiGzDecoder::new(data)),
        [0x28, 0xB5, 0x2F, 0xFD, ..] => Box::new(Zstd::new(data)),
        [0xFD, b'7', b'z', b'X', b'Z', 0, ..] => return xz(data, "the file").map(Some),
        _ => return Ok(None),
    };
    unpack(&mut reader, "the compressed file", max_unpacked(data.len())).map(Some)
}

/// Decompresses xz.
pub(crate) fn xz(packed: &[u8], what: &str) -> Result<FileData> {
    let mut reader = XzReader::new_mem_limit(packed, true, MAX_WINDOW);
    unpack(&mut reader, what, max_unpacked(packed.len()))
}

fn unpack(reader: &mut dyn Read, what: &str, limit: u64) -> Result<FileData> {
    let mut unpacked = Vec::new();
    let read = reader
        .take(limit.saturating_add(1))
        .read_to_end(&mut unpacked);
    let size = read.map_err(|error| Error::damaged(what, error))? as u64;
    if size > limit {
        return Err(Error::TooLarge {
            what: what.to_owned(),
            size,
            limit,
        });
    }
    Ok(FileData::from(unpacked))
}

/// A range of a file, read once from start to end.
struct Input {
    data: FileData,
    at: usize,
    end: usize,
    released: usize,
}

impl Read for Input {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(out)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Input {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let end = self.end.min(self.at.saturating_add(RELEASE));
        Ok(self.data.get(self.at..end).unwrap_or(&[]))
    }

    fn consume(&mut self, len: usize) {
        self.at = self.at.saturating_add(len);
        if self.at.saturating_sub(self.released) >= RELEASE {
            self.data.release(self.released..self.at);
            self.released = self.at;
        }
    }
}

/// Consecutive frames of zstd (RFC 8878, section 3): linkers compress fragments of a section in
/// parallel.
struct Zstd<R> {
    input: R,
    frame: FrameDecoder,
}

impl<R> Zstd<R> {
    fn new(input: R) -> Self {
        let frame = FrameDecoder::new();
        Self { input, frame }
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            while self.frame.can_collect() == 0 && !self.frame.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                let decoded = self.frame.decode_blocks(&mut self.input, one);
                decoded.map_err(io::Error::other)?;
            }
            if self.frame.can_collect() > 0 {
                return self.frame.read(out);
            }
            if self.input.fill_buf()?.is_empty() {
                return Ok(0);
            }
            use FrameDecoderError::ReadFrameHeaderError as Header;
            match self.frame.reset(&mut self.input) {
                Err(Header(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    io::copy(
                        &mut self.input.by_ref().take(length.into()),
                        &mut io::sink(),
                    )?;
                }
                other => other.map_err(io::Error::other)?,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        compress_to_vec(bytes, CompressionLevel::Fastest)
    }

    #[test]
    fn all_zstd_frames_are_read_except_skippable_ones() {
        let skipped = [0x50, 0x2A, 0x4D, 0x18, 3, 0, 0, 0, 1, 2, 3];
        let packed = [&zstd(b"first ")[..], &skipped, &zstd(b"second")].concat();
        let unpacked = whole_file(&packed).unwrap().unwrap();
        assert_eq!(&unpacked[..], b"first second");
    }

    #[test]
    fn a_file_that_ends_early_is_damaged() {
        let whole = zstd(&[7; 1000]);
        assert!(whole_file(&whole[..whole.len() - 3]).is_err());
        assert!(whole_file(b"\xFD7zXZ\0...").is_err());
        assert!(whole_file(b"\x1F\x8B...").is_err());
        assert!(whole_file(b"plain").unwrap().is_none());
    }
}
