//! Answers from converted symbols.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use chronosym_types::hash::HashMap;

use super::key::Key;
use super::layout::{BLOCK, Counts, Field, Header, checksum};
use super::rows;
use crate::answer::{Answers, NonZeroId, StoredAnswer};
use crate::mmap::FileData;

/// A file of converted symbols is damaged, or of another version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("damaged, or of another version")]
#[non_exhaustive]
pub struct Damaged;

/// The number of frames of one address, at most: that of every reader.
const MAX_FRAMES: usize = 260;

/// The answers in a file of converted symbols. Threads may share them.
///
/// [`NativeSymbols`](crate::NativeSymbols) and [`PdbSymbols`](crate::PdbSymbols) use them by
/// themselves; this type is for tools that look into a cache. Every number of the file is checked
/// when it is used.
#[derive(Debug)]
pub struct Converted {
    key: [u8; 32],
    data: FileData,
    base: u64,
    len: u64,
    counts: Counts,
    /// A bit for each block that was checked.
    checked: Box<[AtomicU64]>,
}

impl Converted {
    /// Opens a file. Reads its header and its checksums.
    ///
    /// # Errors
    /// It is no such file.
    pub fn open(data: impl Into<FileData>) -> Result<Self, Damaged> {
        let data = data.into();
        let header = Header::read(&data).ok_or(Damaged)?;
        let counts = header.counts;
        if counts.file_len() != data.len() as u64 {
            return Err(Damaged);
        }
        let blocks = usize::try_from(counts.blocks()).map_err(|_| Damaged)?;
        let table = Self {
            key: header.key,
            base: header.base,
            len: header.len,
            counts,
            checked: (0..blocks.div_ceil(64))
                .map(|_| AtomicU64::new(0))
                .collect(),
            data,
        };
        match checksum(table.checksums().ok_or(Damaged)?) == header.checksums {
            true => Ok(table),
            false => Err(Damaged),
        }
    }

    /// Returns true if the answers are those of a key.
    pub(crate) fn is_of(&self, key: &Key) -> bool {
        self.key == *key.bytes()
    }

    /// Returns the virtual addresses for which the file has answers.
    pub fn addresses(&self) -> std::ops::Range<u64> {
        self.base..self.base.saturating_add(self.len)
    }

    /// Resolves virtual addresses, in the order given, and replaces the content of `out`.
    ///
    /// # Errors
    /// A part of the file that the answers need is damaged; `out` is then empty.
    pub fn find_all(&self, addresses: &[u64], out: &mut Answers) -> Result<(), Damaged> {
        out.clear();
        (out.lines, out.answers) = (true, Vec::new());
        let mut sorted: Vec<u64> = addresses.to_vec();
        sorted.retain(|&va| self.covers(va));
        sorted.sort_unstable();
        sorted.dedup();
        let mut found = Vec::with_capacity(sorted.len());
        let resolved = self.resolve(sorted.iter().copied(), out, |out, va, start| {
            found.push(StoredAnswer::since(start, va, out));
        });
        if resolved.is_err() {
            out.clear();
            return resolved;
        }
        out.answers.extend(addresses.iter().map(|&va| {
            let at = sorted.binary_search(&va).ok();
            let answer = at.and_then(|at| found.get(at)).copied();
            answer.unwrap_or(StoredAnswer::outside(va))
        }));
        out.seal();
        Ok(())
    }

    /// Returns true if the file has the answer to a virtual address.
    pub(crate) fn covers(&self, va: u64) -> bool {
        let at = va.checked_sub(self.base);
        at.is_some_and(|at| at < self.len)
    }

    /// Resolves virtual addresses that the file covers, sorted. Appends their frames to `out`, and
    /// calls `each` with each address and the index of the first of its frames.
    ///
    /// # Errors
    /// The file is damaged. Then `out` has frames of no use.
    pub(crate) fn resolve(
        &self,
        wanted: impl Iterator<Item = u64>,
        out: &mut Answers,
        mut each: impl FnMut(&Answers, u64, usize),
    ) -> Result<(), Damaged> {
        let mut lookup = Lookup {
            table: self,
            names: Texts::default(),
            files: Texts::default(),
        };
        let mut after = 0;
        for va in wanted {
            let at = va.checked_sub(self.base).ok_or(Damaged)?;
            let at = u32::try_from(at).map_err(|_| Damaged)?;
            after = self.ranges_until(after, at)?;
            let start = out.frames.len();
            if let Some(range) = after.checked_sub(1) {
                lookup.frames(range, out)?;
            }
            each(out, va, start);
        }
        Ok(())
    }

    /// Returns the number of ranges that start at or before `at`; at least `from` do.
    fn ranges_until(&self, from: u32, at: u32) -> Result<u32, Damaged> {
        let is_before = |range: u32| Ok::<_, Damaged>(self.get(Field::RangeStart, range)? <= at);
        // The next address is likely near.
        let (mut low, mut step) = (from, 1_u32);
        let mut high = loop {
            let probe = low.saturating_add(step).saturating_sub(1);
            if probe >= self.counts.ranges {
                break self.counts.ranges;
            }
            if !is_before(probe)? {
                break probe;
            }
            low = probe.saturating_add(1);
            step = step.saturating_mul(2);
        };
        while low < high {
            let middle = low.midpoint(high);
            match is_before(middle)? {
                true => low = middle.saturating_add(1),
                false => high = middle,
            }
        }
        Ok(low)
    }

    /// Returns the value of a column in a row, counted from 0.
    fn get(&self, column: Field, row: u32) -> Result<u32, Damaged> {
        if row >= self.counts.of(column) {
            return Err(Damaged);
        }
        let at = self
            .counts
            .start(column)
            .saturating_add(u64::from(row).saturating_mul(4));
        let at = usize::try_from(at).map_err(|_| Damaged)?;
        // Columns are aligned: a value is within a block.
        let block = self.block(at / BLOCK)?;
        let value = block.get(at % BLOCK..).and_then(<[u8]>::first_chunk);
        value.map(|value| u32::from_le_bytes(*value)).ok_or(Damaged)
    }

    /// Returns a text by its number from 0.
    fn text(&self, text: u32) -> Result<&[u8], Damaged> {
        let start = match text.checked_sub(1) {
            Some(before) => self.get(Field::TextEnd, before)?,
            None => 0,
        };
        let end = self.get(Field::TextEnd, text)?;
        let all = usize::try_from(self.counts.text()).map_err(|_| Damaged)?;
        let at = |of: u32| all.checked_add(of as usize).ok_or(Damaged);
        let (start, end) = (at(start)?, at(end)?);
        for block in start / BLOCK..end.div_ceil(BLOCK) {
            self.block(block)?;
        }
        self.body().get(start..end).ok_or(Damaged)
    }

    fn body(&self) -> &[u8] {
        self.data.get(BLOCK..).unwrap_or_default()
    }

    fn checksums(&self) -> Option<&[u8]> {
        let blocks = usize::try_from(self.counts.blocks()).ok()?;
        self.data.get(blocks.checked_add(1)?.checked_mul(BLOCK)?..)
    }

    /// Returns a block of the body, which is checked on first use.
    fn block(&self, block: usize) -> Result<&[u8], Damaged> {
        let start = block.checked_mul(BLOCK).ok_or(Damaged)?;
        let bytes = self.body().get(start..start.saturating_add(BLOCK));
        let bytes = bytes.ok_or(Damaged)?;
        let bits = self.checked.get(block / 64).ok_or(Damaged)?;
        let bit = 1 << (block % 64);
        if bits.load(Relaxed) & bit == 0 {
            let sums = self.checksums().unwrap_or_default().as_chunks::<4>().0;
            let sum = sums.get(block).ok_or(Damaged)?;
            if checksum(bytes) != u32::from_le_bytes(*sum) {
                return Err(Damaged);
            }
            bits.fetch_or(bit, Relaxed);
        }
        Ok(bytes)
    }
}

/// Interned texts of a batch, by their number in the file.
type Texts = HashMap<u32, Option<NonZeroId>>;

/// A batch.
struct Lookup<'t> {
    table: &'t Converted,
    names: Texts,
    files: Texts,
}

impl Lookup<'_> {
    /// Appends the frames of a range.
    fn frames(&mut self, range: u32, out: &mut Answers) -> Result<(), Damaged> {
        let table = self.table;
        let mut scope = table.get(Field::RangeScope, range)?;
        let mut location = table.get(Field::RangeLocation, range)?;
        for _ in 0..MAX_FRAMES {
            let Some(row) = scope.checked_sub(1) else {
                return Ok(());
            };
            self.frame(table.get(Field::ScopeFunction, row)?, location, out)?;
            location = table.get(Field::ScopeCall, row)?;
            let parent = table.get(Field::ScopeParent, row)?;
            if parent >= scope {
                return Err(Damaged);
            }
            scope = parent;
        }
        Err(Damaged)
    }

    fn frame(&mut self, function: u32, location: u32, out: &mut Answers) -> Result<(), Damaged> {
        let table = self.table;
        let row = function.checked_sub(1).ok_or(Damaged)?;
        let low = table.get(Field::FunctionLow, row)?;
        let high = table.get(Field::FunctionHigh, row)?;
        let start = u64::from(high) << 32 | u64::from(low);
        let mut frame = rows::frame(table.get(Field::FunctionFlags, row)?, start).ok_or(Damaged)?;
        let mut name = |column| {
            let text = table.get(column, row)?;
            interned(table, &mut self.names, text, |text| out.names.intern(text))
        };
        frame.name = name(Field::FunctionName)?;
        frame.symbol = name(Field::FunctionSymbol)?;
        if let Some(row) = location.checked_sub(1) {
            let file = table.get(Field::LocationFile, row)?;
            let intern = |text: &[u8]| out.files.intern(text);
            frame.file = interned(table, &mut self.files, file, intern)?;
            frame.line = table.get(Field::LocationLine, row)?;
            frame.column = table.get(Field::LocationColumn, row)?;
            frame.discriminator = table.get(Field::LocationDiscriminator, row)?;
        }
        out.frames.push(frame);
        Ok(())
    }
}

/// Returns the id of the text with a number from 1.
fn interned(
    table: &Converted,
    texts: &mut Texts,
    text: u32,
    intern: impl FnOnce(&[u8]) -> Option<NonZeroId>,
) -> Result<Option<NonZeroId>, Damaged> {
    let Some(number) = text.checked_sub(1) else {
        return Ok(None);
    };
    if let Some(&id) = texts.get(&text) {
        return Ok(id);
    }
    let id = intern(table.text(number)?);
    texts.insert(text, id);
    Ok(id)
}
