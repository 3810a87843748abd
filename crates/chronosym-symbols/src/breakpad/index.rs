//! An index of the functions, files and inlined functions of a symbol file, built in one pass.

use super::record::{Records, Symbol};

/// The number of functions before an address that are checked for covering it.
const MAX_STEPS_BACK: usize = 32;

/// A function or public symbol.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexedSymbol {
    pub(super) start: u64,
    /// The end of a function; of a public symbol its start, because its size is unknown.
    pub(super) end: u64,
    /// Offset of its record in the file.
    pub(super) record: usize,
    pub(super) is_function: bool,
}

/// Functions by address, and texts by their numbers.
#[derive(Debug, Default)]
pub(super) struct Index {
    symbols: Vec<IndexedSymbol>,
    pub(super) files: Texts,
    /// Names of inlined functions.
    pub(super) origins: Texts,
}

/// Offsets of the records that define texts, by number.
#[derive(Debug, Default)]
pub(super) struct Texts(Vec<(u32, usize)>);

impl Index {
    pub(super) fn read(data: &[u8]) -> Self {
        let mut index = Self::default();
        for (offset, record) in Records::from(data, 0) {
            match record {
                [b'F', b'U', b'N', b'C', b' ', fields @ ..] => index.add(offset, fields, true),
                [b'P', b'U', b'B', b'L', b'I', b'C', b' ', fields @ ..] => {
                    index.add(offset, fields, false);
                }
                [b'F', b'I', b'L', b'E', b' ', fields @ ..] => index.files.add(offset, fields),
                _ => {
                    if let Some(fields) = record.strip_prefix(b"INLINE_ORIGIN ") {
                        index.origins.add(offset, fields);
                    }
                }
            }
        }
        // Prefer functions to public symbols at one address, and the first in the file.
        index
            .symbols
            .sort_by_key(|symbol| (symbol.start, !symbol.is_function));
        index.symbols.dedup_by_key(|symbol| symbol.start);
        index.files.sort();
        index.origins.sort();
        index
    }

    /// Returns the symbol with an address: a function that covers it, or the public symbol before
    /// it if no function is between them.
    pub(super) fn find(&self, address: u64) -> Option<&IndexedSymbol> {
        let next = self
            .symbols
            .partition_point(|symbol| symbol.start <= address);
        let before = self
            .symbols
            .get(next.saturating_sub(MAX_STEPS_BACK)..next)?;
        let last = before.last()?;
        if !last.is_function {
            // A function may contain a public symbol.
            let around = before
                .iter()
                .rev()
                .find(|s| s.is_function && address < s.end);
            return around.or(Some(last));
        }
        before
            .iter()
            .rev()
            .find(|symbol| symbol.is_function && address < symbol.end)
    }

    fn add(&mut self, record: usize, fields: &[u8], is_function: bool) {
        if let Some(symbol) = Symbol::parse(fields, is_function) {
            self.symbols.push(IndexedSymbol {
                start: symbol.address,
                end: symbol.address.saturating_add(symbol.size),
                record,
                is_function,
            });
        }
    }
}

impl Texts {
    /// Offset of the record that defines a number.
    pub(super) fn record(&self, number: u32) -> Option<usize> {
        let found = self.0.binary_search_by_key(&number, |&(number, _)| number);
        self.0.get(found.ok()?).map(|&(_, record)| record)
    }

    fn add(&mut self, record: usize, mut fields: &[u8]) {
        self.0
            .extend(super::record::decimal(&mut fields).map(|number| (number, record)));
    }

    fn sort(&mut self) {
        // The sort is stable: the first text with a number is used.
        self.0.sort_by_key(|&(number, _)| number);
        self.0.dedup_by_key(|&mut (number, _)| number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str, address: u64) -> Option<usize> {
        let index = Index::read(text.as_bytes());
        let record = index.find(address)?.record;
        Some(text[..record].matches('\n').count())
    }

    #[test]
    fn public_symbols_end_at_the_next_function() {
        let text = "PUBLIC 1000 0 a\nFUNC 1100 10 0 b\nPUBLIC 1200 0 c\n";
        let expected = [(0xfff, None), (0x1000, Some(0)), (0x10ff, Some(0))];
        for (address, line) in expected {
            assert_eq!(find(text, address), line, "{address:x}");
        }
        let expected = [
            (0x1100, Some(1)),
            (0x1110, None),
            (0x1200, Some(2)),
            (0x9999, Some(2)),
        ];
        for (address, line) in expected {
            assert_eq!(find(text, address), line, "{address:x}");
        }
    }

    #[test]
    fn functions_count_before_public_symbols_and_the_first_of_several() {
        let text = "PUBLIC 1000 0 a\nFUNC m 1000 20 0 b\nFUNC m 1000 20 0 c\nPUBLIC 1010 0 d\n";
        assert_eq!(find(text, 0x1000), Some(1));
        assert_eq!(find(text, 0x1015), Some(1));
        assert_eq!(find(text, 0x1020), Some(3));
    }

    #[test]
    fn functions_may_be_within_functions() {
        let text = "FUNC 1000 100 0 a\nFUNC 1010 10 0 b\n";
        assert_eq!(find(text, 0x1018), Some(1));
        assert_eq!(find(text, 0x1020), Some(0));
    }
}
