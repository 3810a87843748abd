//! The layout of a file of converted symbols.
//!
//! All numbers are little-endian. The file has three parts, each a multiple of [`BLOCK`] bytes but
//! for the last:
//!
//! 1. the header: [`Header`], padded with zeros;
//! 2. the body: tables in the order of [`TableKind`], whose rows are values of 32 bits, then the text;
//! 3. the checksums (CRC-32): one for each block of the body.
//!
//! The header has a checksum of the third part and of itself. A reader checks a block when it first
//! reads from it, so a lookup reads a few blocks of a large file.

use flate2::Crc;

/// Changes whenever the layout does, or the answers of a reader: older files are then not used.
pub(crate) const VERSION: u32 = 2;

pub(crate) const MAGIC: [u8; 8] = *b"chronsym";

/// Bytes that one checksum covers.
pub(crate) const BLOCK: usize = 4096;

/// A table. References to rows are numbers from 1; 0 stands for none.
///
/// Closed: the layout has these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableKind {
    /// Start, as bytes from the base, ascending: a range extends to the next one. Scope and
    /// location of the innermost frame.
    Ranges,
    /// Scopes, each a function in the chain of the functions around it: the function; the scope
    /// around it, an earlier row; the location of the frame around it.
    Scopes,
    /// Name and symbol, as texts; low and high half of the virtual address of the start; flags, see
    /// [`super::rows`].
    Functions,
    /// Path, as a text; line, column, discriminator.
    Locations,
    /// The end of a text in the text; it starts where the one before ends.
    Texts,
}

/// The number of rows of each table, and the bytes of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) ranges: u32,
    pub(crate) scopes: u32,
    pub(crate) functions: u32,
    pub(crate) locations: u32,
    pub(crate) texts: u32,
    pub(crate) text_bytes: u32,
}

impl Counts {
    /// Returns the number of rows of each table, and that of their values.
    fn rows(&self) -> [(u32, u64); 5] {
        [
            (self.ranges, 3),
            (self.scopes, 3),
            (self.functions, 5),
            (self.locations, 4),
            (self.texts, 1),
        ]
    }

    /// Returns the offset of each table in the body, and that of the text, in bytes.
    pub(crate) fn starts(&self) -> [u64; 6] {
        let mut starts = [0; 6];
        let mut end = 0_u64;
        for (start, (rows, values)) in starts.iter_mut().skip(1).zip(self.rows()) {
            end = end.saturating_add(u64::from(rows).saturating_mul(values).saturating_mul(4));
            *start = end;
        }
        starts
    }

    /// Returns the number of blocks of the body.
    pub(crate) fn blocks(&self) -> u64 {
        let [.., text] = self.starts();
        let bytes = text.saturating_add(self.text_bytes.into());
        bytes.div_ceil(BLOCK as u64)
    }

    /// Returns the length of the file in bytes.
    pub(crate) fn file_len(&self) -> u64 {
        let blocks = self.blocks();
        let body = blocks.saturating_add(1).saturating_mul(BLOCK as u64);
        body.saturating_add(blocks.saturating_mul(4))
    }
}

/// The header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The key of the file: see [`super::key`].
    pub(crate) key: [u8; 32],
    /// The virtual addresses for which the file has answers: from here,
    pub(crate) base: u64,
    /// this many bytes.
    pub(crate) len: u64,
    pub(crate) counts: Counts,
    /// The checksum of the checksums.
    pub(crate) checksums: u32,
}

impl Header {
    /// Bytes in the file.
    const BYTES: usize = 92;

    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend(VERSION.to_le_bytes());
        out.extend(self.key);
        out.extend(self.base.to_le_bytes());
        out.extend(self.len.to_le_bytes());
        let Counts {
            ranges,
            scopes,
            functions,
            locations,
            texts,
            text_bytes,
        } = self.counts;
        let words = [
            ranges,
            scopes,
            functions,
            locations,
            texts,
            text_bytes,
            self.checksums,
        ];
        out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        out.resize(Self::BYTES.saturating_sub(4), 0);
        out.extend(checksum(&out).to_le_bytes());
        out.resize(BLOCK, 0);
        out
    }

    /// Returns the header of a file; `None` if it is of another version or damaged.
    pub(crate) fn read(data: &[u8]) -> Option<Self> {
        let (bytes, sum) = data.get(..Self::BYTES)?.split_last_chunk()?;
        if checksum(bytes) != u32::from_le_bytes(*sum) {
            return None;
        }
        let (magic, rest) = bytes.split_first_chunk::<8>()?;
        let (version, rest) = rest.split_first_chunk::<4>()?;
        let (key, rest) = rest.split_first_chunk::<32>()?;
        let (base, rest) = rest.split_first_chunk::<8>()?;
        let (len, rest) = rest.split_first_chunk::<8>()?;
        if *magic != MAGIC || u32::from_le_bytes(*version) != VERSION {
            return None;
        }
        let mut words = rest.as_chunks::<4>().0.iter();
        let mut word = || words.next().map(|word| u32::from_le_bytes(*word));
        Some(Self {
            key: *key,
            base: u64::from_le_bytes(*base),
            len: u64::from_le_bytes(*len),
            counts: Counts {
                ranges: word()?,
                scopes: word()?,
                functions: word()?,
                locations: word()?,
                texts: word()?,
                text_bytes: word()?,
            },
            checksums: word()?,
        })
    }
}

pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}
