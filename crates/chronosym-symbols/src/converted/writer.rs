//! Writes converted symbols.

use std::hash::Hash;

use chronosym_types::hash::HashMap;

use super::key::Key;
use super::layout::{BLOCK, Counts, Header, checksum};
use super::rows;
use crate::answer::{Answers, StoredFrame, Strings};

/// Distinct rows, numbered from 1 in the order in which they were added.
#[derive(Debug)]
struct Rows<T> {
    rows: Vec<T>,
    numbers: HashMap<T, u32>,
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            numbers: HashMap::default(),
        }
    }
}

impl<T: Hash + Eq + Clone> Rows<T> {
    /// Returns the number of a row; `None` beyond 32 bits.
    fn add(&mut self, row: T) -> Option<u32> {
        if let Some(&number) = self.numbers.get(&row) {
            return Some(number);
        }
        let number = u32::try_from(self.rows.len().checked_add(1)?).ok()?;
        self.rows.push(row.clone());
        self.numbers.insert(row, number);
        Some(number)
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
    scopes: Rows<[u32; 3]>,
    functions: Rows<[u32; 5]>,
    locations: Rows<[u32; 4]>,
    texts: Rows<Box<[u8]>>,
    text_bytes: u64,
}

/// Numbers of the texts of a batch, by their ids there; 0 for those that were not added yet.
type Numbers = Vec<u32>;

impl TableWriter {
    /// Adds the answers to virtual addresses, which are those of ranges' starts. Each range is added
    /// once; the batches may come in any order.
    ///
    /// `None` if they cannot be stored.
    pub(crate) fn add(&mut self, base: u64, answers: &Answers) -> Option<()> {
        let mut names: Numbers = vec![0; answers.names.len()];
        let mut files: Numbers = vec![0; answers.files.len()];
        for answer in &answers.answers {
            let start = answer.start as usize;
            let frames = start..start.checked_add(answer.len as usize)?;
            let frames = answers.frames.get(frames)?;
            let (mut scope, mut location) = (0, 0);
            for frame in frames.iter().rev() {
                let function = self.function(frame, &answers.names, &mut names)?;
                scope = self.scopes.add([function, scope, location])?;
                location = self.location(frame, &answers.files, &mut files)?;
            }
            let at = u32::try_from(answer.address.checked_sub(base)?).ok()?;
            self.ranges.push([at, scope, location]);
        }
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
            let text = texts.get(id).as_bytes();
            let before = self.texts.rows.len();
            *number = self.texts.add(text.into())?;
            if self.texts.rows.len() > before {
                self.text_bytes = self.text_bytes.checked_add(text.len() as u64)?;
            }
        }
        Some(*number)
    }

    /// Returns the file with answers for `len` bytes from `base` on; `None` if it would be too
    /// large.
    pub(crate) fn finish(mut self, key: &Key, base: u64, len: u64) -> Option<Vec<u8>> {
        self.ranges.sort_unstable();
        self.ranges.dedup_by(|next, kept| next[1..] == kept[1..]);
        let counts = Counts {
            ranges: u32::try_from(self.ranges.len()).ok()?,
            scopes: self.scopes.count()?,
            functions: self.functions.count()?,
            locations: self.locations.count()?,
            texts: self.texts.count()?,
            text_bytes: u32::try_from(self.text_bytes).ok()?,
        };
        let mut file = vec![0; BLOCK];
        file.reserve_exact(
            usize::try_from(counts.file_len())
                .ok()?
                .checked_sub(BLOCK)?,
        );
        columns(&self.ranges, &mut file);
        columns(&self.scopes.rows, &mut file);
        columns(&self.functions.rows, &mut file);
        columns(&self.locations.rows, &mut file);
        let mut end = 0_u32;
        for text in &self.texts.rows {
            end = end.checked_add(u32::try_from(text.len()).ok()?)?;
            file.extend(end.to_le_bytes());
        }
        for text in &self.texts.rows {
            file.extend_from_slice(text);
        }
        file.resize(file.len().next_multiple_of(BLOCK), 0);
        let blocks = file.get(BLOCK..)?.chunks(BLOCK);
        let checksums: Vec<u8> = blocks
            .flat_map(|block| checksum(block).to_le_bytes())
            .collect();
        let header = Header {
            key: *key.bytes(),
            base,
            len,
            counts,
            checksums: checksum(&checksums),
        };
        file.get_mut(..BLOCK)?.copy_from_slice(&header.write());
        file.extend(checksums);
        Some(file)
    }
}

/// Appends the columns of rows.
fn columns<const N: usize>(rows: &[[u32; N]], out: &mut Vec<u8>) {
    for column in 0..N {
        let values = rows.iter().filter_map(|row| row.get(column));
        out.extend(values.flat_map(|value| value.to_le_bytes()));
    }
}

fn halves(value: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = value.to_le_bytes();
    [[a, b, c, d], [e, f, g, h]].map(u32::from_le_bytes)
}
