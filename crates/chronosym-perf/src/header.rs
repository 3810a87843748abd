//! The header of a file, and the sections that it points to.

use std::io::Read;

use chronosym_types::{ByteOrder, Window};

use crate::bytes::Cursor;
use crate::error::Error;

pub(crate) const FORMAT: &str = "perf.data";
/// Maximum size in bytes of sections outside the samples, which are held in memory.
pub(crate) const MAX_SECTION_BYTES: u64 = 64 << 20;

/// Offset and size of a section in bytes.
#[derive(Clone, Copy)]
pub(crate) struct Section {
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

impl Section {
    fn read(at: &mut Cursor<'_>) -> Option<Self> {
        let (offset, size) = (at.u64()?, at.u64()?);
        Some(Self { offset, size })
    }

    /// Its bytes within `bytes`, which start at offset `base`.
    pub(crate) fn of<'a>(&self, bytes: &'a [u8], base: u64) -> Option<&'a [u8]> {
        let start = usize::try_from(self.offset.checked_sub(base)?).ok()?;
        let end = start.checked_add(usize::try_from(self.size).ok()?)?;
        bytes.get(start..end)
    }
}

pub(crate) struct Header {
    pub(crate) order: ByteOrder,
    /// `None` in pipe form, which has records only.
    pub(crate) file: Option<FileHeader>,
}

pub(crate) struct FileHeader {
    /// Bytes of an attribute, including the section of its ids.
    pub(crate) attr_size: u64,
    pub(crate) attrs: Section,
    /// Size 0 if the recorder was killed.
    pub(crate) data: Section,
    /// A bit per feature.
    pub(crate) features: [u64; 4],
}

fn damaged(what: &'static str) -> Error {
    let format = FORMAT;
    Error::DamagedHeader { format, what }
}

impl Header {
    /// Reads the header at the start of the source. In file form it stays in the window, where
    /// offsets count from.
    pub(crate) fn read<R: Read>(window: &mut Window<R>) -> Result<Self, Error> {
        let Some(start) = window.peek(16) else {
            return Err(Error::wrong_format(FORMAT, window.bytes()));
        };
        let (magic, sizes) = start.split_at(8);
        let order = match magic {
            b"PERFILE2" => ByteOrder::Little,
            b"2ELIFREP" => ByteOrder::Big,
            // Version 1, whose magic does not show the byte order.
            b"PERFFILE" if sizes.first() != Some(&0) => ByteOrder::Little,
            b"PERFFILE" => ByteOrder::Big,
            _ if start.starts_with(b"SIMPLEPERF") => return Err(Error::SimpleperfReport),
            _ => return Err(Error::wrong_format(FORMAT, start)),
        };
        let size = Cursor::new(sizes, order).u64().unwrap_or(0);
        if size == 16 {
            window.discard(16);
            return Ok(Self { order, file: None });
        }
        let size = size.min(104) as usize;
        let bytes = window.peek(size).ok_or(damaged("it is cut short"))?;
        let file = FileHeader::parse(bytes, order).ok_or(damaged("it is too small"))?;
        if file.attr_size < 80 {
            return Err(damaged("its events have no room"));
        }
        if file.data.offset > MAX_SECTION_BYTES {
            return Err(damaged("its samples begin too far into the file"));
        }
        let file = Some(file);
        Ok(Self { order, file })
    }
}

impl FileHeader {
    fn parse(bytes: &[u8], order: ByteOrder) -> Option<Self> {
        let mut at = Cursor::new(bytes.get(16..)?, order);
        let attr_size = at.u64()?;
        let (attrs, data) = (Section::read(&mut at)?, Section::read(&mut at)?);
        Section::read(&mut at)?;
        // Older headers end here.
        let features = std::array::from_fn(|_| at.u64().unwrap_or(0));
        Some(Self {
            attr_size,
            attrs,
            data,
            features,
        })
    }

    /// Offset of the end of the samples; `None` if the recorder was killed.
    pub(crate) fn data_end(&self) -> Option<u64> {
        (self.data.size != 0).then(|| self.data.offset.saturating_add(self.data.size))
    }

    /// Returns the features and their sections, by the table after the samples.
    pub(crate) fn features(&self, tail: &[u8], order: ByteOrder) -> Vec<(u32, Option<Section>)> {
        let mut table = Cursor::new(tail, order);
        let words = self.features.iter();
        let bits = words.flat_map(|word| (0..64).map(move |bit| word >> bit & 1 != 0));
        (0..256u32)
            .zip(bits)
            .filter(|(_, is_there)| *is_there)
            .map(|(number, _)| (number, Section::read(&mut table)))
            .collect()
    }
}
