//! Rows as columns of variable-length integers: one description of a row serves for writing and
//! reading.

use super::ranks::{Ranks, TextSource};
use crate::ids::NameId;
use crate::strings::StringId;
use chronosym_types::{Guid, unzigzag, zigzag};

/// The version of the rows that are written. Rows of earlier versions have fewer columns.
pub(super) const VERSION: u32 = 4;

/// One column of a block.
#[derive(Default)]
struct Column<'c> {
    written: Vec<u8>,
    unread: &'c [u8],
    /// The number to which the next one is relative.
    last: u64,
}

/// The direction of coding, with the texts that rows refer to.
pub(super) enum Side<'c> {
    Write(&'c mut Ranks),
    Read(&'c mut dyn TextSource),
}

/// Codes the rows of one block. Each call codes one value of a row, in the next column. A value
/// that is not valid makes the block invalid, and is zero.
pub(super) struct Coder<'c> {
    columns: Vec<Column<'c>>,
    /// The next column.
    at: usize,
    side: Side<'c>,
    is_valid: bool,
    /// The version of the file that is read.
    pub version: u32,
    /// The expected number of the next row.
    pub numbers: u64,
    /// The expected address of the next row.
    pub end: u64,
}

impl<'c> Coder<'c> {
    pub fn writer(ranks: &'c mut Ranks) -> Self {
        Coder {
            columns: Vec::new(),
            at: 0,
            side: Side::Write(ranks),
            is_valid: true,
            version: VERSION,
            numbers: 0,
            end: 0,
        }
    }

    /// Reads a block of the form that [`Coder::finish`] returns.
    pub fn reader(mut bytes: &'c [u8], texts: &'c mut dyn TextSource) -> Self {
        let mut take = || take_varint(&mut bytes);
        let count = take().filter(|&count| count <= MAX_COLUMNS).unwrap_or(0);
        let lengths: Option<Vec<u64>> = (0..count).map(|_| take()).collect();
        let columns = lengths.unwrap_or_default().into_iter().map(|length| {
            let (unread, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
            bytes = rest;
            Some(Column {
                unread,
                ..Column::default()
            })
        });
        let columns: Option<Vec<Column<'_>>> = columns.collect();
        Coder {
            is_valid: columns.is_some() && bytes.is_empty(),
            columns: columns.unwrap_or_default(),
            at: 0,
            side: Side::Read(texts),
            version: VERSION,
            numbers: 0,
            end: 0,
        }
    }

    pub fn reads(&self) -> bool {
        matches!(self.side, Side::Read(_))
    }

    /// Starts the next row.
    pub fn row(&mut self) {
        self.at = 0;
    }

    /// Returns whether all values so far are valid.
    pub fn is_valid(&self) -> bool {
        self.is_valid
    }

    /// Makes the block invalid unless a condition holds.
    pub fn check(&mut self, is_valid: bool) {
        self.is_valid &= is_valid;
    }

    /// Returns whether the block is valid and was read to its end.
    pub fn is_complete(&self) -> bool {
        self.is_valid && self.columns.iter().all(|column| column.unread.is_empty())
    }

    /// Returns the number of columns, their lengths in bytes, and the columns.
    pub fn finish(self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.columns.len() as u64);
        for column in &self.columns {
            put_varint(&mut out, column.written.len() as u64);
        }
        for column in &self.columns {
            out.extend_from_slice(&column.written);
        }
        out
    }

    fn column(&mut self) -> usize {
        let at = self.at;
        self.at += 1;
        if at >= self.columns.len() {
            // All columns that any row of a block has must be read.
            self.is_valid &= !self.reads();
            self.columns.resize_with(at + 1, Column::default);
        }
        at
    }

    /// Codes a number in the next column.
    #[inline]
    fn code(&mut self, value: u64) -> u64 {
        // Most numbers are read, and have one byte.
        if let Side::Read(_) = self.side
            && let Some(column) = self.columns.get_mut(self.at)
            && let Some((&byte, rest)) = column.unread.split_first()
            && byte < 0x80
        {
            self.at += 1;
            column.unread = rest;
            return byte.into();
        }
        self.code_any(value)
    }

    #[inline(never)]
    fn code_any(&mut self, value: u64) -> u64 {
        let column = self.column();
        let Column {
            written, unread, ..
        } = &mut self.columns[column];
        match self.side {
            Side::Write(_) => {
                put_varint(written, value);
                value
            }
            Side::Read(_) => take_varint(unread).unwrap_or_else(|| {
                self.is_valid = false;
                0
            }),
        }
    }

    /// Returns the number that the next one in a column is relative to.
    #[inline]
    fn last(&self, column: usize) -> u64 {
        self.columns.get(column).map_or(0, |column| column.last)
    }

    /// Sets the number that the next one in a column, which was coded, is relative to.
    #[inline]
    fn set_last(&mut self, column: usize, last: u64) {
        if let Some(column) = self.columns.get_mut(column) {
            column.last = last;
        }
    }

    /// Codes a number unchanged.
    #[inline]
    pub fn number<T: Copy + Default + TryFrom<u64> + TryInto<u64>>(&mut self, value: &mut T) {
        let coded = self.code((*value).try_into().unwrap_or(0));
        self.store(value, coded);
    }

    #[inline]
    fn store<T: Default + TryFrom<u64>>(&mut self, value: &mut T, coded: u64) {
        if self.reads() {
            let stored = T::try_from(coded);
            self.is_valid &= stored.is_ok();
            *value = stored.unwrap_or_default();
        }
    }

    /// Codes a number as the difference to that of the preceding row.
    #[inline]
    pub fn delta<T: Copy + Default + TryFrom<u64> + TryInto<u64>>(&mut self, value: &mut T) {
        let at = self.at;
        let last = self.last(at);
        self.relative(value, last);
        self.set_last(at, (*value).try_into().unwrap_or(0));
    }

    /// Codes a number as the difference to another that is already coded.
    #[inline]
    pub fn relative<T>(&mut self, value: &mut T, base: u64)
    where
        T: Copy + Default + TryFrom<u64> + TryInto<u64>,
    {
        let number: u64 = (*value).try_into().unwrap_or(0);
        let coded = self.code(zigzag(number.wrapping_sub(base)));
        self.store(value, base.wrapping_add(unzigzag(coded)));
    }

    /// Codes a rank: most are one more than the largest before.
    fn rank(&mut self, rank: u32) -> u32 {
        let at = self.at;
        let next = self.last(at);
        let coded = self.code(zigzag(u64::from(rank).wrapping_sub(next)));
        let rank = u32::try_from(next.wrapping_add(unzigzag(coded)));
        self.is_valid &= rank.is_ok();
        let rank = rank.unwrap_or(0);
        self.set_last(at, next.max(u64::from(rank) + 1));
        rank
    }

    /// Skips columns that the row does not use.
    pub fn skip(&mut self, columns: usize) {
        self.at += columns;
    }

    /// Codes a GUID in two columns.
    pub fn guid(&mut self, value: &mut Guid) {
        let number = value.to_u128();
        let (mut high, mut low) = ((number >> 64) as u64, number as u64);
        self.number(&mut high);
        self.number(&mut low);
        *value = Guid::from_u128(u128::from(high) << 64 | u128::from(low));
    }

    /// Codes a flag.
    pub fn flag(&mut self, value: &mut bool) {
        let mut number = u8::from(*value);
        self.number(&mut number);
        self.check(number <= 1);
        *value = number == 1;
    }

    /// Codes a member of a list.
    pub fn member<T: Copy + PartialEq>(&mut self, all: &[T], value: &mut T) {
        let mut index = all.iter().position(|member| member == value).unwrap_or(0);
        self.number(&mut index);
        match all.get(index) {
            Some(&member) => *value = member,
            None => self.is_valid = false,
        }
    }

    /// Codes an index less than `count`.
    pub fn index(&mut self, value: &mut u32, count: usize) {
        self.delta(value);
        self.check((*value as usize) < count);
    }

    /// Codes a string of the timeline.
    pub fn string(&mut self, value: &mut StringId) {
        let rank = match &mut self.side {
            Side::Write(ranks) => ranks.string(*value),
            Side::Read(_) => 0,
        };
        let rank = self.rank(rank);
        if let Side::Read(texts) = &mut self.side {
            let string = texts.string(rank);
            self.is_valid &= string.is_some();
            *value = string.unwrap_or(StringId::EMPTY);
        }
    }

    /// Codes a name of the timeline.
    pub fn name(&mut self, value: &mut NameId) {
        let rank = match &mut self.side {
            Side::Write(ranks) => ranks.name(*value),
            Side::Read(_) => 0,
        };
        let rank = self.rank(rank);
        if let Side::Read(texts) = &mut self.side {
            let name = texts.name(rank);
            self.is_valid &= name.is_some();
            *value = name.unwrap_or(NameId::NONE);
        }
    }

    /// Codes any number of bytes in two columns.
    pub fn bytes(&mut self, value: &mut Vec<u8>) {
        if self.reads() {
            *value = self.take_bytes().unwrap_or_default().to_vec();
            return;
        }
        self.number(&mut value.len());
        let column = self.column();
        self.columns[column].written.extend_from_slice(value);
    }

    /// Reads what [`bytes`](Self::bytes) wrote.
    pub fn take_bytes(&mut self) -> Option<&'c [u8]> {
        let mut length = 0;
        self.number(&mut length);
        let column = self.column();
        let unread = &mut self.columns[column].unread;
        let taken = unread.split_off(..length);
        self.is_valid &= taken.is_some();
        taken
    }

    /// Codes text that no other row has, in two columns.
    pub fn text(&mut self, value: &mut String) {
        let mut bytes = std::mem::take(value).into_bytes();
        self.bytes(&mut bytes);
        match String::from_utf8(bytes) {
            Ok(text) => *value = text,
            Err(_) => self.is_valid = false,
        }
    }

    /// Codes a value that may be absent, in one column and `columns` more.
    pub fn option<T: Default>(
        &mut self,
        value: &mut Option<T>,
        columns: usize,
        code: impl FnOnce(&mut Self, &mut T),
    ) {
        let mut is_some = value.is_some();
        self.flag(&mut is_some);
        let next = self.at + columns;
        if self.reads() {
            *value = is_some.then(T::default);
        }
        if let Some(value) = value {
            code(self, value);
            debug_assert_eq!(self.at, next, "columns of an option");
        }
        self.at = next;
    }

    /// Codes any number of values: their number in one column, and each value in `columns` more.
    pub fn list<T: Default>(
        &mut self,
        values: &mut Vec<T>,
        columns: usize,
        mut code: impl FnMut(&mut Self, &mut T),
    ) {
        let mut count = values.len();
        self.number(&mut count);
        let first = self.at;
        if self.reads() {
            values.clear();
        }
        for index in 0..count {
            if self.reads() {
                if !self.is_valid {
                    break;
                }
                values.push(T::default());
            }
            self.at = first;
            code(self, &mut values[index]);
            debug_assert_eq!(self.at, first + columns, "columns of a list");
        }
        self.at = first + columns;
    }
}

/// Maximum number of columns; no row has as many.
const MAX_COLUMNS: u64 = 256;

pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads at most ten bytes.
pub(super) fn take_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for (at, &byte) in rest.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            *rest = &rest[at + 1..];
            return Some(value);
        }
    }
    None
}
