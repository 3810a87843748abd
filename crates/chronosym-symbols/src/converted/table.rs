//! Answers from converted symbols.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use chronosym_types::hash::HashMap;

use super::key::Key;
use super::layout::{BLOCK, Counts, Header, TableKind, checksum};
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
    /// The offset of each table in the body, and of the text.
    starts: [usize; 6],
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
        // They are within the file.
        let starts = (counts.starts()).map(|start| usize::try_from(start).unwrap_or(usize::MAX));
        let table = Self {
            key: header.key,
            base: header.base,
            len: header.len,
            starts,
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
        let is_before = |range: u32| {
            let [start, ..]: [u32; 3] = self.row(TableKind::Ranges, range)?;
            Ok::<_, Damaged>(start <= at)
        };
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

    /// Returns the values of a row, counted from 0.
    #[inline]
    fn row<const N: usize>(&self, table: TableKind, row: u32) -> Result<[u32; N], Damaged> {
        let Some(&[start, end, ..]) = self.starts.get(table as usize..) else {
            return Err(Damaged);
        };
        let size = size_of::<[u32; N]>();
        let at = (row as usize).saturating_mul(size).saturating_add(start);
        let values = at..at.saturating_add(size);
        if values.end > end {
            return Err(Damaged);
        }
        let bytes = self.bytes(values)?;
        let (words, _) = bytes.as_chunks();
        let word = |at: usize| words.get(at).map_or(0, |&word| u32::from_le_bytes(word));
        Ok(std::array::from_fn(word))
    }

    /// Returns a text by its number from 0.
    fn text(&self, text: u32) -> Result<&[u8], Damaged> {
        let end_of = |text| self.row(TableKind::Texts, text).map(|[end]: [u32; 1]| end);
        let start = match text.checked_sub(1) {
            Some(before) => end_of(before)?,
            None => 0,
        };
        let [.., all] = self.starts;
        let at = |of: u32| all.checked_add(of as usize).ok_or(Damaged);
        self.bytes(at(start)?..at(end_of(text)?)?)
    }

    /// Returns bytes of the body, whose blocks are checked on first use.
    #[inline]
    fn bytes(&self, at: Range<usize>) -> Result<&[u8], Damaged> {
        for block in at.start / BLOCK..at.end.div_ceil(BLOCK) {
            let bits = self.checked.get(block / 64).ok_or(Damaged)?;
            if bits.load(Relaxed) & 1 << (block % 64) == 0 {
                self.check(block)?;
            }
        }
        self.body().get(at).ok_or(Damaged)
    }

    fn body(&self) -> &[u8] {
        self.data.get(BLOCK..).unwrap_or_default()
    }

    fn checksums(&self) -> Option<&[u8]> {
        let blocks = usize::try_from(self.counts.blocks()).ok()?;
        self.data.get(blocks.checked_add(1)?.checked_mul(BLOCK)?..)
    }

    #[cold]
    fn check(&self, block: usize) -> Result<(), Damaged> {
        let start = block.checked_mul(BLOCK).ok_or(Damaged)?;
        let bytes = self.body().get(start..start.saturating_add(BLOCK));
        let sums = self.checksums().unwrap_or_default().as_chunks::<4>().0;
        let (bytes, sum) = bytes.zip(sums.get(block)).ok_or(Damaged)?;
        if checksum(bytes) != u32::from_le_bytes(*sum) {
            return Err(Damaged);
        }
        let bits = self.checked.get(block / 64).ok_or(Damaged)?;
        bits.fetch_or(1 << (block % 64), Relaxed);
        Ok(())
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
        let [_, mut scope, mut location] = table.row(TableKind::Ranges, range)?;
        for _ in 0..MAX_FRAMES {
            let Some(row) = scope.checked_sub(1) else {
                return Ok(());
            };
            let [function, parent, call] = table.row(TableKind::Scopes, row)?;
            self.frame(function, location, out)?;
            location = call;
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
        let [name, symbol, low, high, flags] = table.row(TableKind::Functions, row)?;
        let start = u64::from(high) << 32 | u64::from(low);
        let mut frame = rows::frame(flags, start).ok_or(Damaged)?;
        let mut interned_name = |text| {
            let intern = |text: &[u8]| out.names.intern(text);
            interned(table, &mut self.names, text, intern)
        };
        frame.name = interned_name(name)?;
        frame.symbol = interned_name(symbol)?;
        if let Some(row) = location.checked_sub(1) {
            let [file, line, column, discriminator] = table.row(TableKind::Locations, row)?;
            let intern = |text: &[u8]| out.files.intern(text);
            frame.file = interned(table, &mut self.files, file, intern)?;
            (frame.line, frame.column, frame.discriminator) = (line, column, discriminator);
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
