//! The names of a batch of addresses.

#[cfg(feature = "fleet")]
use std::ops::Range;
use std::slice;

#[cfg(feature = "fleet")]
use chronosym_fleet::NameRows;

use super::pool::{List, Name, Pool};

/// The names of an address, innermost first.
#[derive(Clone, Copy, Debug)]
pub enum Answer {
    Only(Name),
    /// Of the pool.
    All(List),
    /// A range of names of this batch.
    Own {
        first: u32,
        count: u32,
    },
}

/// The names of the rows of a batch.
#[derive(Default)]
pub struct Answers {
    pub pool: Pool,
    rows: Vec<Answer>,
    /// Lists with names that only this batch has.
    lists: Vec<Name>,
    /// Texts that only this batch has. Their numbers follow [`OWN`].
    own: Vec<Box<str>>,
    /// The number among some rows of each name of the pool, and of each text of the batch.
    #[cfg(feature = "fleet")]
    numbers: Vec<u32>,
}

/// The first number of a text that is not in the pool.
const OWN: u32 = 1 << 31;

impl Answers {
    /// Makes room for the names of so many rows.
    pub fn clear(&mut self, rows: usize) {
        self.rows.clear();
        self.rows.resize(rows, Answer::Own { first: 0, count: 0 });
        self.lists.clear();
        self.own.clear();
    }

    /// Sets the names of a row.
    #[inline]
    pub fn set(&mut self, row: u32, answer: Answer) {
        self.rows[row as usize] = answer;
    }

    /// Returns an answer of these names. It holds in later batches, too, if all are of the pool.
    pub fn answer(&mut self, names: &[Name]) -> Answer {
        match names {
            [only] => Answer::Only(*only),
            _ if names.iter().all(|name| name.0 < OWN) => Answer::All(self.pool.list(names)),
            _ => {
                let (first, count) = (self.lists.len() as u32, names.len() as u32);
                self.lists.extend(names);
                Answer::Own { first, count }
            }
        }
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
    #[inline]
    pub fn of(&self, row: usize) -> &[Name] {
        match &self.rows[row] {
            Answer::Only(name) => slice::from_ref(name),
            Answer::All(list) => self.pool.names(*list),
            Answer::Own { first, count } => &self.lists[*first as usize..][..*count as usize],
        }
    }

    /// Returns the distinct texts of some rows, and the numbers of the texts of each row.
    #[cfg(feature = "fleet")]
    pub fn numbered(&mut self, range: Range<usize>) -> (impl Iterator<Item = &str>, NameRows) {
        const NONE: u32 = u32::MAX;
        let pooled = self.pool.len();
        let mut numbers = std::mem::take(&mut self.numbers);
        numbers.clear();
        numbers.resize(pooled + self.own.len(), NONE);
        let mut used = Vec::new();
        let mut number = |name: Name| {
            let number = &mut numbers[match name.0.checked_sub(OWN) {
                None => name.0 as usize,
                Some(own) => pooled + own as usize,
            }];
            if *number == NONE {
                *number = used.len() as u32;
                used.push(name);
            }
            *number
        };
        let mut rows = NameRows::with_capacity(range.len());
        for row in range {
            match self.rows[row] {
                Answer::Only(name) => rows.push_row([number(name)]),
                _ => rows.push_row(self.of(row).iter().map(|&name| number(name))),
            }
        }
        self.numbers = numbers;
        let all = &*self;
        (used.into_iter().map(|name| all.text(name)), rows)
    }

    #[inline]
    pub fn text(&self, name: Name) -> &str {
        match name.0.checked_sub(OWN) {
            None => self.pool.text(name),
            Some(own) => &self.own[own as usize],
        }
    }
}
