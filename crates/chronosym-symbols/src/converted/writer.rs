//! Writes converted symbols.

use std::hash::BuildHasher;
use std::io::{self, BufWriter, Seek, Write};

use chronosym_types::hash::RandomState;
use hashbrown::HashTable;

use super::key::Key;
use super::layout::{BLOCK, Counts, Header, checksum};
use super::rows;
use crate::answer::{Answers, StoredFrame, Strings};

/// Distinct rows, numbered from 1 in the order in which they were added.
#[derive(Debug)]
struct Rows<const N: usize> {
    rows: Vec<[u32; N]>,
    /// Indices of rows.
    known: HashTable<u32>,
    hash: RandomState,
}

impl<const N: usize> Default for Rows<N> {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            known: HashTable::new(),
            hash: RandomState::default(),
        }
    }
}

impl<const N: usize> Rows<N> {
    /// Returns the number of a row; `None` beyond 32 bits.
    fn add(&mut self, row: [u32; N]) -> Option<u32> {
        let Self { rows, known, hash } = self;
        let is_same = |&index: &u32| rows.get(index as usize) == Some(&row);
        let digest = hash.hash_one(row);
        if let Some(&index) = known.find(digest, is_same) {
            return index.checked_add(1);
        }
        let index = u32::try_from(rows.len()).ok()?;
        rows.push(row);
        let digest_of = |&index: &u32| rows.get(index as usize).map_or(0, |row| hash.hash_one(row));
        known.insert_unique(digest, index, digest_of);
        index.checked_add(1)
    }

    /// Forgets the rows that were added: the same ones get other numbers from now on.
    fn forget(&mut self) {
        self.known.clear();
    }

    fn count(&self) -> Option<u32> {
        u32::try_from(self.rows.len()).ok()
    }
}

/// Collects the answers of all ranges.
#[derive(Debug, Default)]
pub(crate) struct TableWriter {
    /// Start from the base, scope, location.
    ranges: Vec<[u32; 3]>,
    scopes: Rows<3>,
    functions: Rows<5>,
    locations: Rows<4>,
    texts: Strings,
    /// The frames of the last answer, outermost first, with scope and location.
    last: Vec<(StoredFrame, u32, u32)>,
}

/// Converted symbols, complete.
#[derive(Debug)]
pub(crate) struct Table {
    key: Key,
    base: u64,
    len: u64,
    counts: Counts,
    rows: TableWriter,
}

/// Numbers of the texts of a batch, by their ids there; 0 for those that were not added yet.
type Numbers = Vec<u32>;

impl TableWriter {
    /// Adds the answers to virtual addresses, which are those of ranges' starts. Each range is added
    /// once; the batches may come in any order, but the answers of a function should be in one.
    ///
    /// `None` if they cannot be stored.
    pub(crate) fn add(&mut self, base: u64, answers: &Answers) -> Option<()> {
        let mut names: Numbers = vec![0; answers.names.len()];
        let mut files: Numbers = vec![0; answers.files.len()];
        self.last.clear();
        for answer in &answers.answers {
            let start = answer.start as usize;
            let frames = start..start.checked_add(answer.len as usize)?;
            let frames = answers.frames.get(frames)?;
            // Successive addresses have most frames in common.
            let pairs = frames.iter().rev().zip(&self.last);
            let common = pairs.take_while(|(frame, last)| **frame == last.0).count();
            self.last.truncate(common);
            let (mut scope, mut location) = match self.last.last() {
                Some(&(_, scope, location)) => (scope, location),
                None => (0, 0),
            };
            for frame in frames.iter().rev().skip(common) {
                let function = self.function(frame, &answers.names, &mut names)?;
                scope = self.scopes.add([function, scope, location])?;
                location = self.location(frame, &answers.files, &mut files)?;
                self.last.push((*frame, scope, location));
            }
            let at = u32::try_from(answer.address.checked_sub(base)?).ok()?;
            self.ranges.push([at, scope, location]);
        }
        // They have the address of the function.
        self.scopes.forget();
        self.functions.forget();
        Some(())
    }

    fn function(
        &mut self,
        frame: &StoredFrame,
        names: &Strings,
        numbers: &mut Numbers,
    ) -> Option<u32> {
        let flags = rows::flags(frame)?;
        let mut number = |id: Option<crate::answer::NonZeroId>| {
            id.map_or(Some(0), |id| self.texts_of(id.get(), names, numbers))
        };
        let (name, symbol) = (number(frame.name)?, number(frame.symbol)?);
        let [low, high] = halves(frame.function);
        self.functions.add([name, symbol, low, high, flags])
    }

    /// Returns 0 for no location.
    fn location(
        &mut self,
        frame: &StoredFrame,
        files: &Strings,
        numbers: &mut Numbers,
    ) -> Option<u32> {
        let file = match frame.file {
            Some(id) => self.texts_of(id.get(), files, numbers)?,
            None => 0,
        };
        match [file, frame.line, frame.column, frame.discriminator] {
            [0, 0, 0, 0] => Some(0),
            row => self.locations.add(row),
        }
    }

    /// Returns the number of a text of a batch.
    fn texts_of(&mut self, id: u32, texts: &Strings, numbers: &mut Numbers) -> Option<u32> {
        let number = numbers.get_mut(id as usize)?;
        if *number == 0 {
            let id = self.texts.intern(texts.get(id).as_bytes())?;
            *number = id.get().checked_add(1)?;
        }
        Some(*number)
    }

    /// Returns the table of answers for `len` bytes from `base` on; `None` if it would be too large.
    pub(crate) fn finish(mut self, key: &Key, base: u64, len: u64) -> Option<Table> {
        self.ranges.sort_unstable();
        self.ranges.dedup_by(|next, kept| next[1..] == kept[1..]);
        let counts = Counts {
            ranges: u32::try_from(self.ranges.len()).ok()?,
            scopes: self.scopes.count()?,
            functions: self.functions.count()?,
            locations: self.locations.count()?,
            texts: u32::try_from(self.texts.len()).ok()?,
            text_bytes: u32::try_from(self.texts.text().len()).ok()?,
        };
        Some(Table {
            key: *key,
            base,
            len,
            counts,
            rows: self,
        })
    }
}

impl Table {
    /// Returns the number of bytes of the file.
    pub(crate) fn file_len(&self) -> u64 {
        self.counts.file_len()
    }

    /// Writes the file.
    pub(crate) fn write(&self, out: &mut (impl Write + Seek)) -> io::Result<()> {
        out.write_all(&[0; BLOCK])?;
        let mut body = Body {
            out: BufWriter::with_capacity(64 * BLOCK, &mut *out),
            block: Vec::with_capacity(BLOCK),
            checksums: Vec::new(),
        };
        let Self { rows, .. } = self;
        body.rows(&rows.ranges)?;
        body.rows(&rows.scopes.rows)?;
        body.rows(&rows.functions.rows)?;
        body.rows(&rows.locations.rows)?;
        (rows.texts.ends().iter()).try_for_each(|end| body.write(&end.to_le_bytes()))?;
        body.write(rows.texts.text().as_bytes())?;
        let checksums = body.finish()?;
        out.write_all(&checksums)?;
        let header = Header {
            key: *self.key.bytes(),
            base: self.base,
            len: self.len,
            counts: self.counts,
            checksums: checksum(&checksums),
        };
        out.rewind()?;
        out.write_all(&header.write())
    }
}

/// Writes the body, and computes the checksums of its blocks.
struct Body<W: Write> {
    out: BufWriter<W>,
    /// The last block, which is not full.
    block: Vec<u8>,
    checksums: Vec<u8>,
}

impl<W: Write> Body<W> {
    fn rows<const N: usize>(&mut self, rows: &[[u32; N]]) -> io::Result<()> {
        let bytes = |row: &[u32; N]| row.map(u32::to_le_bytes);
        (rows.iter()).try_for_each(|row| self.write(bytes(row).as_flattened()))
    }

    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let room = BLOCK.saturating_sub(self.block.len());
            let (here, rest) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
            self.block.extend_from_slice(here);
            if self.block.len() == BLOCK {
                self.end_block()?;
            }
            bytes = rest;
        }
        Ok(())
    }

    fn end_block(&mut self) -> io::Result<()> {
        self.checksums.extend(checksum(&self.block).to_le_bytes());
        self.out.write_all(&self.block)?;
        self.block.clear();
        Ok(())
    }

    /// Fills the last block, and returns all checksums.
    fn finish(mut self) -> io::Result<Vec<u8>> {
        if !self.block.is_empty() {
            self.block.resize(BLOCK, 0);
            self.end_block()?;
        }
        self.out.flush()?;
        Ok(self.checksums)
    }
}

fn halves(value: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = value.to_le_bytes();
    [[a, b, c, d], [e, f, g, h]].map(u32::from_le_bytes)
}
