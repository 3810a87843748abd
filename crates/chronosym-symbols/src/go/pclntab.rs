//! The function table (`runtime.pclntab`): maps addresses to functions, files and lines.

use chronosym_types::{ByteOrder, bytes};

/// The longest name or path in bytes. Without a limit, overlapping texts could each be as long as
/// the file.
const LONGEST_TEXT: usize = 1 << 16;

/// The layouts, each named after the first release that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Layout {
    Go12,
    Go116,
    /// Functions are recorded as offsets from the start of the text.
    Go118,
    Go120,
}

impl Layout {
    /// By the low byte of the magic number, whose other bytes are 0xff.
    pub(super) fn of(magic: u8) -> Option<Self> {
        Some(match magic {
            0xfb => Self::Go12,
            0xfa => Self::Go116,
            0xf0 => Self::Go118,
            0xf1 => Self::Go120,
            _ => return None,
        })
    }
}

/// The header. Positions are offsets from its start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) layout: Layout,
    pub(super) order: ByteOrder,
    /// The size of a pointer: 4 or 8.
    pub(super) pointer: usize,
    /// The alignment of instructions, and the unit of distances between them.
    quantum: u64,
    functions: usize,
    /// Start of the text, if recorded: linkers of position-independent programs may leave it 0.
    pub(super) text: Option<u64>,
    pub(super) names: usize,
    units: usize,
    files: usize,
    values: usize,
    function_table: usize,
    /// The base of functions' offsets.
    function_data: usize,
}

impl Header {
    /// Parses the header; `None` unless the tables it names are within `table`, which starts with
    /// it.
    pub(super) fn parse(table: &[u8], order: ByteOrder) -> Option<Self> {
        let [a, b, c, d, 0, 0, quantum @ (1 | 2 | 4), pointer @ (4 | 8)] = bytes::array(table, 0)?
        else {
            return None;
        };
        let [0xff, 0xff, 0xff, magic] = order.u32([a, b, c, d]).to_be_bytes() else {
            return None;
        };
        let layout = Layout::of(magic)?;
        let pointer = usize::from(pointer);
        let word = |index: usize| {
            let at = index.checked_mul(pointer)?.checked_add(8)?;
            usize::try_from(integer(table, at, pointer, order)?).ok()
        };
        let mut header = Self {
            layout,
            order,
            pointer,
            quantum: u64::from(quantum),
            functions: word(0)?,
            text: None,
            names: 0,
            units: 0,
            files: 0,
            values: 0,
            function_table: 0,
            function_data: 0,
        };
        // The positions of the tables follow the number of functions and that of files.
        let first = match layout {
            Layout::Go12 => None,
            Layout::Go116 => Some(2),
            Layout::Go118 | Layout::Go120 => {
                header.text = word(2).map(|text| text as u64).filter(|&text| text > 0);
                Some(3usize)
            }
        };
        match first {
            Some(first) => {
                let table = |index: usize| word(first.checked_add(index)?);
                header.names = table(0)?;
                header.units = table(1)?;
                header.files = table(2)?;
                header.values = table(3)?;
                header.function_table = table(4)?;
                header.function_data = header.function_table;
            }
            None => {
                header.function_table = pointer.checked_add(8)?;
                let end = header.function_table_end()?;
                let files = integer(table, end, 4, order)?;
                header.files = usize::try_from(files).ok()?;
            }
        }
        let inside = [
            header.names,
            header.units,
            header.files,
            header.values,
            header.function_table_end()?,
        ];
        let is_inside = inside.iter().all(|&position| position < table.len());
        (is_inside && header.functions > 0).then_some(header)
    }

    /// Size of a number in the table of functions, in bytes.
    fn number(&self) -> usize {
        match self.layout >= Layout::Go118 {
            true => 4,
            false => self.pointer,
        }
    }

    fn function_table_end(&self) -> Option<usize> {
        let numbers = self.functions.checked_mul(2)?.checked_add(1)?;
        let size = numbers.checked_mul(self.number())?;
        self.function_table.checked_add(size)
    }

    /// Size of the description of a function without the lists at its end, in bytes.
    fn function_size(&self) -> usize {
        match self.layout {
            Layout::Go12 => self.pointer.saturating_add(32),
            Layout::Go116 => self.pointer.saturating_add(36),
            Layout::Go118 => 40,
            Layout::Go120 => 44,
        }
    }
}

/// Returns an unsigned integer of four or eight bytes.
pub(super) fn integer(data: &[u8], at: usize, size: usize, order: ByteOrder) -> Option<u64> {
    match size {
        4 => bytes::array(data, at).map(|number| order.u32(number).into()),
        _ => bytes::array(data, at).map(|number| order.u64(number)),
    }
}

/// The table and its header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pclntab<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) header: Header,
}

/// One function. Since Go 1.18, addresses are relative to the start of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) start: u64,
    /// The start of the next function.
    pub(super) end: u64,
    /// Offset of its description.
    description: usize,
}

/// A range of a function's code, up to `end` bytes after its start, and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ValueRange {
    pub(super) end: u64,
    pub(super) value: i32,
}

impl<'a> Pclntab<'a> {
    pub(super) fn len(&self) -> usize {
        self.header.functions
    }

    /// Returns the function with an address.
    pub(super) fn find(&self, address: u64) -> Option<Function> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.start(middle)? <= address {
                true => low = middle.checked_add(1)?,
                false => high = middle,
            }
        }
        let function = self.function(low.checked_sub(1)?)?;
        (address < function.end).then_some(function)
    }

    /// Returns true if the first function has a name and an end.
    pub(super) fn is_plausible(&self) -> bool {
        let first = self.function(0).filter(|first| first.start < first.end);
        let name = first.and_then(|first| self.text(self.name(&first)?));
        name.is_some_and(|name| !name.is_empty() && std::str::from_utf8(name).is_ok())
    }

    pub(super) fn function(&self, index: usize) -> Option<Function> {
        let number = self.header.number();
        let position = index.checked_mul(2)?.checked_add(1)?.checked_mul(number)?;
        let offset = self.integer(self.header.function_table.checked_add(position)?, number)?;
        let offset = usize::try_from(offset).ok()?;
        Some(Function {
            start: self.start(index)?,
            end: self.start(index.checked_add(1)?)?,
            description: self.header.function_data.checked_add(offset)?,
        })
    }

    fn start(&self, index: usize) -> Option<u64> {
        let number = self.header.number();
        let position = index.checked_mul(2)?.checked_mul(number)?;
        self.integer(self.header.function_table.checked_add(position)?, number)
    }

    /// Offset of a function's name.
    pub(super) fn name(&self, function: &Function) -> Option<usize> {
        self.name_at(self.field(function, 1)?)
    }

    /// Offset of the name at an offset in the table of names.
    pub(super) fn name_at(&self, offset: u32) -> Option<usize> {
        self.header.names.checked_add(usize::try_from(offset).ok()?)
    }

    /// Returns the file of each part of a function's code, as an index for [`Pclntab::file`].
    pub(super) fn files(&self, function: &Function) -> ValueRanges<'a> {
        self.values(self.field(function, 5))
    }

    /// Returns the line of each part of a function's code.
    pub(super) fn lines(&self, function: &Function) -> ValueRanges<'a> {
        self.values(self.field(function, 6))
    }

    /// Other values of each part of a function's code.
    pub(super) fn code_data(&self, function: &Function, index: u32) -> ValueRanges<'a> {
        let start = || {
            let count = self.field(function, 7)?;
            let start = self.lists(function)?;
            let position = usize::try_from(index).ok()?.checked_mul(4)?;
            let offset = self.u32(start.checked_add(position)?)?;
            (index < count).then_some(offset)
        };
        self.values(start())
    }

    /// Returns the location of other data of a function: since Go 1.18 an offset, before it an
    /// address.
    pub(super) fn function_data(&self, function: &Function, index: u8) -> Option<u64> {
        let start = self.lists(function)?;
        let count = *self.bytes.get(start.checked_sub(1)?)?;
        if index >= count {
            return None;
        }
        let code_data = usize::try_from(self.field(function, 7)?).ok()?;
        let start = start.checked_add(code_data.checked_mul(4)?)?;
        let size = self.header.number();
        // The table itself has the same alignment.
        let start = start.checked_next_multiple_of(size)?;
        let position = usize::from(index).checked_mul(size)?;
        let place = self.integer(start.checked_add(position)?, size)?;
        let none = match self.header.layout >= Layout::Go118 {
            true => u64::from(u32::MAX),
            false => 0,
        };
        (place != none).then_some(place)
    }

    /// Returns the offset of the path of a file, by an index from [`Pclntab::files`].
    pub(super) fn file(&self, function: &Function, index: i32) -> Option<usize> {
        let index = usize::try_from(index).ok()?;
        if self.header.layout == Layout::Go12 {
            let position = index.checked_mul(4).filter(|_| index > 0)?;
            let offset = self.u32(self.header.files.checked_add(position)?)?;
            return usize::try_from(offset).ok();
        }
        let unit = usize::try_from(self.field(function, 8)?).ok()?;
        let position = unit.checked_add(index)?.checked_mul(4)?;
        let offset = self.u32(self.header.units.checked_add(position)?)?;
        // Files of functions that the linker dropped.
        let offset = usize::try_from(offset)
            .ok()
            .filter(|_| offset != u32::MAX)?;
        self.header.files.checked_add(offset)
    }

    /// Returns the text from an offset to its NUL, if it is not too long.
    pub(super) fn text(&self, offset: usize) -> Option<&'a [u8]> {
        let rest = self.bytes.get(offset..)?;
        let near = rest.get(..LONGEST_TEXT).unwrap_or(rest);
        near.get(..memchr::memchr(0, near)?)
    }

    /// Field of a function's description, counted from its first, which is its start.
    fn field(&self, function: &Function, index: usize) -> Option<u32> {
        let position = index.checked_sub(1)?.checked_mul(4)?;
        let position = position.checked_add(self.header.number())?;
        self.u32(function.description.checked_add(position)?)
    }

    /// Returns the offset of the lists at the end of a function's description.
    fn lists(&self, function: &Function) -> Option<usize> {
        let size = self.header.function_size();
        function.description.checked_add(size)
    }

    fn values(&self, offset: Option<u32>) -> ValueRanges<'a> {
        let bytes = offset.filter(|&offset| offset > 0).and_then(|offset| {
            let offset = usize::try_from(offset).ok()?;
            self.bytes.get(self.header.values.checked_add(offset)?..)
        });
        ValueRanges {
            bytes: bytes.unwrap_or_default(),
            quantum: self.header.quantum,
            last: ValueRange { end: 0, value: -1 },
        }
    }

    fn u32(&self, at: usize) -> Option<u32> {
        bytes::array(self.bytes, at).map(|number| self.header.order.u32(number))
    }

    fn integer(&self, at: usize, size: usize) -> Option<u64> {
        integer(self.bytes, at, size, self.header.order)
    }
}

/// Decodes the ranges of a function that have the same value: pairs of a difference in value and a
/// distance in code, of variable length, up to a difference of 0 after the first.
#[derive(Debug)]
pub(super) struct ValueRanges<'a> {
    bytes: &'a [u8],
    quantum: u64,
    last: ValueRange,
}

impl Iterator for ValueRanges<'_> {
    type Item = ValueRange;

    #[inline]
    fn next(&mut self) -> Option<ValueRange> {
        let difference = variable(&mut self.bytes)?;
        if difference == 0 && self.last.end > 0 {
            self.bytes = &[];
            return None;
        }
        let distance = variable(&mut self.bytes)?;
        // Zigzag: the lowest bit is the sign.
        let difference = (difference >> 1) as i32 ^ ((difference & 1) as i32).wrapping_neg();
        // A range without code would make no progress.
        let distance = u64::from(distance).checked_mul(self.quantum)?;
        let end = self.last.end.checked_add(distance);
        let end = end.filter(|_| distance > 0)?;
        let value = self.last.value.wrapping_add(difference);
        self.last = ValueRange { end, value };
        Some(self.last)
    }
}

/// Decodes a number of seven bits per byte, the lowest first.
#[inline]
fn variable(bytes: &mut &[u8]) -> Option<u32> {
    let mut value = 0u32;
    for shift in [0, 7, 14, 21, 28] {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(bytes: &[u8], quantum: u64) -> Vec<(u64, i32)> {
        let ranges = ValueRanges {
            bytes,
            quantum,
            last: ValueRange { end: 0, value: -1 },
        };
        ranges.map(|range| (range.end, range.value)).collect()
    }

    #[test]
    fn values_are_differences_and_distances() {
        // +11, 4 instructions; -1, 2; +150, 300; the end; what follows is another table's.
        let bytes = [22, 4, 1, 2, 0xac, 2, 0xac, 2, 0, 9, 9];
        assert_eq!(ranges(&bytes, 1), [(4, 10), (6, 9), (306, 159)]);
        assert_eq!(ranges(&bytes, 4), [(16, 10), (24, 9), (1224, 159)]);
        // A first difference of 0 is not the end.
        assert_eq!(ranges(&[0, 3, 2, 1, 0], 1), [(3, -1), (4, 0)]);
    }

    #[test]
    fn values_end_with_their_bytes() {
        assert_eq!(ranges(&[22, 4, 1], 1), [(4, 10)]);
        assert_eq!(ranges(&[], 1), []);
        assert_eq!(ranges(&[22, 0, 2, 1], 1), [], "no progress");
        assert_eq!(ranges(&[0x80; 9], 1), [], "a number without end");
    }

    #[test]
    fn headers_are_checked() {
        let mut table = vec![0; 200];
        table[..8].copy_from_slice(&[0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8]);
        let words = [2u64, 1, 0x40_1000, 0x80, 0x90, 0xa0, 0xa8, 0xb0];
        for (at, word) in (8..).step_by(8).zip(words) {
            table[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        let header = Header::parse(&table, ByteOrder::Little).unwrap();
        assert_eq!(
            (header.layout, header.text),
            (Layout::Go120, Some(0x40_1000))
        );
        assert_eq!(header.function_table_end(), Some(0xb0 + 20));
        for len in 0..0xb0 + 20 {
            assert!(Header::parse(&table[..len], ByteOrder::Little).is_none());
        }
        assert!(Header::parse(&table, ByteOrder::Big).is_none());
        for (at, byte) in [
            (0, 0xf2),
            (2, 0xfe),
            (4, 1),
            (6, 3),
            (7, 2),
            (8, 0),
            (12, 1),
        ] {
            let mut other = table.clone();
            other[at] = byte;
            assert!(Header::parse(&other, ByteOrder::Little).is_none(), "{at}");
        }
    }
}
