//! The names of a batch of addresses.

use std::slice;

use super::pool::{Name, Pool};

/// The names of the rows of a batch.
#[derive(Default)]
pub struct Answers {
    pub pool: Pool,
    /// The only name of each row, or the first of several in `lists`; and their number.
    rows: Vec<(Name, u32)>,
    lists: Vec<Name>,
    /// Texts that only this batch has. Their numbers follow [`OWN`].
    own: Vec<Box<str>>,
    /// The number in the batch of each name of the pool, and of each text of its own.
    #[cfg(feature = "fleet")]
    numbers: Vec<u32>,
}

/// The first number of a text that is not in the pool.
const OWN: u32 = 1 << 31;

impl Answers {
    /// Makes room for the names of so many rows.
    pub fn clear(&mut self, rows: usize) {
        self.rows.clear();
        self.rows.resize(rows, (Name(0), 0));
        self.lists.clear();
        self.own.clear();
    }

    /// Sets the only name of a row.
    pub fn set(&mut self, row: u32, name: Name) {
        self.rows[row as usize] = (name, 1);
    }

    /// Sets the names of a row, innermost first.
    pub fn set_all(&mut self, row: u32, names: impl IntoIterator<Item = Name>) {
        let first = self.lists.len();
        self.lists.extend(names);
        self.rows[row as usize] = match self.lists[first..] {
            [only] => (only, 1),
            _ => (Name(first as u32), (self.lists.len() - first) as u32),
        };
    }

    /// Returns the name of a text that other batches do not have.
    pub fn own(&mut self, text: String) -> Name {
        self.own.push(text.into());
        Name(OWN + (self.own.len() - 1) as u32)
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// The names of a row, innermost first.
    pub fn of(&self, row: usize) -> &[Name] {
        match &self.rows[row] {
            (only, 1) => slice::from_ref(only),
            (first, count) => &self.lists[first.0 as usize..][..*count as usize],
        }
    }

    /// Returns the distinct texts of the batch, and for each row the numbers of its texts.
    #[cfg(feature = "fleet")]
    pub fn numbered(
        &mut self,
    ) -> (
        impl Iterator<Item = &str>,
        impl Iterator<Item = impl Iterator<Item = u32>>,
    ) {
        const NONE: u32 = u32::MAX;
        let pooled = self.pool.len();
        let position = move |name: Name| match name.0.checked_sub(OWN) {
            None => name.0 as usize,
            Some(own) => pooled + own as usize,
        };
        let mut numbers = std::mem::take(&mut self.numbers);
        numbers.clear();
        numbers.resize(pooled + self.own.len(), NONE);
        let mut used = Vec::new();
        for &name in (0..self.len()).flat_map(|row| self.of(row)) {
            let number = &mut numbers[position(name)];
            if *number == NONE {
                *number = used.len() as u32;
                used.push(name);
            }
        }
        self.numbers = numbers;
        let (all, numbers) = (&*self, &self.numbers);
        let texts = used.into_iter().map(|name| all.text(name));
        let rows = (0..all.len()).map(move |row| {
            let names = all.of(row).iter();
            names.map(move |&name| numbers[position(name)])
        });
        (texts, rows)
    }

    pub fn text(&self, name: Name) -> &str {
        match name.0.checked_sub(OWN) {
            None => self.pool.text(name),
            Some(own) => &self.own[own as usize],
        }
    }
}
