//! MSF 7.00 files: pages of one size (LLVM: blocks), and streams as lists of page numbers.
//!
//! The superblock on page 0 has magic, page size, free page map, number of pages, directory size,
//! and the page of the directory's own page list. The directory has the number of streams, their
//! sizes, and the page numbers of each stream. [`Stream`] borrows from the file wherever pages are
//! adjacent and copies only across a gap.

use crate::{Error, Result, bytes};
use std::borrow::Cow;
use std::ops::Range;

pub(super) const MAGIC: &[u8; 32] = b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0";
const MSFZ: &[u8] = b"Microsoft MSFZ Container";
const MSF2: &[u8] = b"Microsoft C/C++ program database 2.00";
const PORTABLE: &[u8] = b"BSJB";
const NIL: u32 = u32::MAX;

/// An MSF file: the directory, and the offset of each stream's page list.
#[derive(Debug)]
pub(super) struct Msf<'a> {
    data: &'a [u8],
    page_shift: u32,
    pages: u32,
    directory: Cow<'a, [u8]>,
    /// For stream `i`, the directory offset of its page list; one more entry is the end of the
    /// last.
    lists: Box<[u32]>,
}

impl<'a> Msf<'a> {
    pub(super) fn open(data: &'a [u8]) -> Result<Self> {
        if !data.starts_with(MAGIC) {
            let what = if data.starts_with(MSFZ) {
                "MSF 7.00 file (it is a compressed MSFZ container, which is not supported)"
            } else if data.starts_with(MSF2) {
                "MSF 7.00 file (it is an MSF 2.00 file of Visual C++ 6 or older, which is not supported)"
            } else if data.starts_with(PORTABLE) {
                "Windows PDB (it is a portable PDB)"
            } else {
                "Windows PDB"
            };
            return Err(Error::NotA { what });
        }
        let what = "MSF superblock";
        let field = |at: usize| bytes::u32(data, at).ok_or(Error::truncated(what, at as u64, 4));
        let (page_size, pages) = (field(32)?, field(40)?);
        let (directory_size, block_map) = (field(44)?, field(52)?);
        if !page_size.is_power_of_two() || !(512..=65536).contains(&page_size) {
            return Err(Error::damaged(
                what,
                32,
                "the page size is not a power of two from 512 to 65536",
            ));
        }
        let want = u64::from(pages).saturating_mul(page_size.into());
        if (data.len() as u64) < want {
            return Err(Error::truncated(
                "PDB file",
                data.len() as u64,
                want.saturating_sub(data.len() as u64),
            ));
        }
        let mut msf = Self {
            data,
            page_shift: page_size.trailing_zeros(),
            pages,
            directory: Cow::Borrowed(&[]),
            lists: Box::default(),
        };
        // The list of the directory's pages is contiguous from `block_map` on.
        let page_count = directory_size.div_ceil(page_size) as usize;
        let list = usize::try_from(u64::from(block_map) << msf.page_shift)
            .ok()
            .and_then(|at| bytes::slice(data, at, page_count.saturating_mul(4)))
            .ok_or(Error::damaged(
                what,
                52,
                "the directory's page list lies outside the file",
            ))?;
        let view = Stream {
            data,
            page_shift: msf.page_shift,
            pages: list,
            len: directory_size,
            what: "MSF directory",
        };
        msf.directory = view.bytes(0, directory_size)?;
        msf.lists = msf.scan_directory()?;
        Ok(msf)
    }

    fn scan_directory(&self) -> Result<Box<[u32]>> {
        let what = "MSF directory";
        let short = |offset: usize| Error::truncated(what, offset as u64, 4);
        let directory = &*self.directory;
        let count = bytes::u32(directory, 0).ok_or(short(0))? as usize;
        let sizes = bytes::slice(
            directory,
            4,
            count.checked_mul(4).ok_or(short(directory.len()))?,
        )
        .ok_or(short(directory.len()))?;
        let mut at = sizes.len().saturating_add(4);
        let mut lists = Vec::with_capacity(count.saturating_add(1));
        let page_size = 1u32 << self.page_shift;
        let offset = |at: usize| u32::try_from(at).map_err(|_| short(directory.len()));
        for size in sizes.as_chunks().0 {
            lists.push(offset(at)?);
            let size = u32::from_le_bytes(*size);
            if size != NIL {
                let pages = size.div_ceil(page_size) as usize;
                at = at.saturating_add(pages.saturating_mul(4));
            }
            if at > directory.len() {
                return Err(short(directory.len()));
            }
        }
        lists.push(offset(at)?);
        Ok(lists.into())
    }

    /// Returns the stream `index`; `None` if it is absent or deleted.
    pub(super) fn stream(&self, index: u32, what: &'static str) -> Result<Option<Stream<'_, 'a>>> {
        let i = index as usize;
        let Some(&[start, end]) = self.lists.get(i..).and_then(<[u32]>::first_chunk) else {
            return Ok(None);
        };
        let len = bytes::u32(&self.directory, i.saturating_mul(4).saturating_add(4));
        let Some(len) = len.filter(|&len| len != NIL) else {
            return Ok(None);
        };
        // Repeated pages could claim far more bytes than the file has.
        if u64::from(len) > u64::from(self.pages) << self.page_shift {
            return Err(Error::damaged(
                what,
                u64::from(start),
                "the stream is larger than the file",
            ));
        }
        let pages = self.directory.get(start as usize..end as usize);
        Ok(Some(Stream {
            data: self.data,
            page_shift: self.page_shift,
            pages: pages.unwrap_or_default(),
            len,
            what,
        }))
    }

    /// As [`Msf::stream`], for a stream that the file must have.
    pub(super) fn required(&self, index: u32, what: &'static str) -> Result<Stream<'_, 'a>> {
        self.stream(index, what)?
            .ok_or(Error::damaged(what, 0, "the file has no such stream"))
    }
}

/// Returns a stream number in a field of 16 bits; `None` for 0xFFFF.
pub(super) fn stream_number(data: &[u8], at: usize) -> Option<u32> {
    let number = bytes::u16(data, at).filter(|&number| number != u16::MAX);
    number.map(u32::from)
}

/// A view of one stream; offsets are `u32`, as in the format.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stream<'s, 'a> {
    data: &'a [u8],
    page_shift: u32,
    pages: &'s [u8],
    len: u32,
    what: &'static str,
}

impl<'a> Stream<'_, 'a> {
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// Offset of byte `offset` in its page.
    fn within(&self, offset: u32) -> u32 {
        offset & !(u32::MAX << self.page_shift)
    }

    /// Returns the file offset of byte `offset` of the stream.
    fn file_offset(&self, offset: u32) -> Option<usize> {
        let page = bytes::u32(
            self.pages,
            ((offset >> self.page_shift) as usize).saturating_mul(4),
        )?;
        let within = u64::from(self.within(offset));
        usize::try_from(u64::from(page) << self.page_shift | within).ok()
    }

    /// `len` bytes from `offset` on: borrowed if they are contiguous in the file, else copied.
    pub(super) fn bytes(&self, offset: u32, len: u32) -> Result<Cow<'a, [u8]>> {
        let end = offset
            .checked_add(len)
            .filter(|&end| end <= self.len)
            .ok_or(Error::truncated(
                self.what,
                u64::from(offset),
                u64::from(len),
            ))?;
        if len == 0 {
            return Ok(Cow::Borrowed(&[]));
        }
        let (run, first) = self.run(offset, end)?;
        if run == end {
            return Ok(Cow::Borrowed(first));
        }
        let mut copy = Vec::with_capacity(len as usize);
        copy.extend_from_slice(first);
        let mut at = run;
        while at < end {
            let (next, part) = self.run(at, end)?;
            copy.extend_from_slice(part);
            at = next;
        }
        Ok(Cow::Owned(copy))
    }

    /// Returns the longest contiguous run of `at..end` from `at` on, and its end.
    fn run(&self, at: u32, end: u32) -> Result<(u32, &'a [u8])> {
        let outside = || Error::damaged(self.what, u64::from(at), "a page lies outside the file");
        let start = self.file_offset(at).ok_or_else(outside)?;
        let page_size = 1u32 << self.page_shift;
        let rest = page_size.saturating_sub(self.within(at));
        let mut next = at.saturating_add(rest);
        let mut expect = start.saturating_add(rest as usize);
        while next < end && self.file_offset(next) == Some(expect) {
            next = next.saturating_add(page_size);
            expect = expect.saturating_add(page_size as usize);
        }
        let stop = next.min(end);
        let bytes =
            bytes::slice(self.data, start, stop.saturating_sub(at) as usize).ok_or_else(outside)?;
        Ok((stop, bytes))
    }

    /// Returns the bytes of a range of offsets.
    pub(super) fn range(&self, range: &Range<u32>) -> Result<Cow<'a, [u8]>> {
        self.bytes(range.start, range.end.saturating_sub(range.start))
    }

    /// `N` bytes by value; `None` beyond the stream or the file.
    #[inline]
    pub(super) fn array<const N: usize>(&self, offset: u32) -> Option<[u8; N]> {
        let end = offset.checked_add(u32::try_from(N).ok()?)?;
        if end > self.len {
            return None;
        }
        let within = self.within(offset) as usize;
        if within.saturating_add(N) <= 1 << self.page_shift {
            return bytes::array(self.data, self.file_offset(offset)?);
        }
        let mut out = [0; N];
        for (byte, offset) in out.iter_mut().zip(offset..) {
            *byte = *self.data.get(self.file_offset(offset)?)?;
        }
        Some(out)
    }

    #[inline]
    pub(super) fn u32(&self, offset: u32) -> Option<u32> {
        self.array(offset).map(u32::from_le_bytes)
    }

    pub(super) fn u16(&self, offset: u32) -> Option<u16> {
        self.array(offset).map(u16::from_le_bytes)
    }

    /// Returns the error of a field beyond the stream.
    pub(super) fn short(&self, offset: u32, size: u32) -> Error {
        Error::truncated(self.what, u64::from(offset), u64::from(size))
    }

    /// Returns the error of a value that the format forbids.
    pub(super) fn damaged(&self, offset: u32, problem: &'static str) -> Error {
        Error::damaged(self.what, u64::from(offset), problem)
    }
}
