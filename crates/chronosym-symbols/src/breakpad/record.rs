//! The records of a symbol file: one per line, with fields separated by spaces.

use std::ops::Range;

/// Removes the next field from a record; `None` at its end.
pub(super) fn field<'a>(record: &mut &'a [u8]) -> Option<&'a [u8]> {
    let start = record.iter().position(|&byte| byte != b' ')?;
    let rest = record.get(start..)?;
    let end = memchr::memchr(b' ', rest).unwrap_or(rest.len());
    let (field, rest) = rest.split_at(end);
    *record = rest.get(1..).unwrap_or_default();
    Some(field)
}

/// A hexadecimal number: addresses and sizes.
pub(super) fn hex(record: &mut &[u8]) -> Option<u64> {
    let digits = field(record)?;
    if digits.len() > 16 {
        return None;
    }
    digits.iter().try_fold(0, |number: u64, &digit| {
        let digit = char::from(digit).to_digit(16)?;
        Some(number << 4 | u64::from(digit))
    })
}

/// Parses a decimal number: lines and indices.
pub(super) fn decimal(record: &mut &[u8]) -> Option<u32> {
    let digits = field(record)?;
    digits.iter().try_fold(0, |number: u32, &digit| {
        let digit = char::from(digit).to_digit(10)?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// The records of a file from an offset on, each with the offset of its start. Empty lines are
/// skipped.
#[derive(Clone, Debug)]
pub(super) struct Records<'a> {
    data: &'a [u8],
    next: usize,
}

impl<'a> Records<'a> {
    pub(super) fn from(data: &'a [u8], offset: usize) -> Self {
        Self { data, next: offset }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = (usize, &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let start = self.next;
            let rest = self.data.get(start..).filter(|rest| !rest.is_empty())?;
            let len = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            self.next = start.saturating_add(len).saturating_add(1);
            let line = rest.get(..len)?;
            let record = line.strip_suffix(b"\r").unwrap_or(line);
            if !record.is_empty() {
                return Some((start, record));
            }
        }
    }
}

/// The start of a function or public symbol: its address, size (0 if unknown) and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Symbol<'a> {
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) name: &'a [u8],
}

impl<'a> Symbol<'a> {
    /// Parses the fields after `FUNC` or `PUBLIC`: `m` if several names have this code, the
    /// address, the size (functions only), the size of the arguments, and the name.
    pub(super) fn parse(mut fields: &'a [u8], is_function: bool) -> Option<Self> {
        if let Some(rest) = fields.strip_prefix(b"m ") {
            fields = rest;
        }
        let address = hex(&mut fields)?;
        let size = match is_function {
            true => hex(&mut fields)?,
            false => 0,
        };
        hex(&mut fields)?;
        Some(Self {
            address,
            size,
            name: fields,
        })
    }
}

/// A line of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) line: u32,
    pub(super) file: u32,
}

impl Line {
    pub(super) fn parse(mut record: &[u8]) -> Option<Self> {
        let start = hex(&mut record)?;
        let size = hex(&mut record)?;
        Some(Self {
            start,
            end: start.checked_add(size)?,
            line: decimal(&mut record)?,
            file: decimal(&mut record)?,
        })
    }
}

/// An inlined call: its location, and the inlined function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Inline {
    /// The number of enclosing calls.
    pub(super) depth: u32,
    pub(super) line: u32,
    pub(super) file: u32,
    pub(super) origin: u32,
}

impl Inline {
    /// Parses the fields after `INLINE`; `each` gets the ranges of the code.
    pub(super) fn parse(mut fields: &[u8], mut each: impl FnMut(Range<u64>)) -> Option<Self> {
        let inline = Self {
            depth: decimal(&mut fields)?,
            line: decimal(&mut fields)?,
            file: decimal(&mut fields)?,
            origin: decimal(&mut fields)?,
        };
        while !fields.is_empty() {
            let start = hex(&mut fields)?;
            let size = hex(&mut fields)?;
            each(start..start.checked_add(size)?);
        }
        Some(inline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_between_spaces() {
        let mut record = &b"1f  12 name with spaces"[..];
        assert_eq!(hex(&mut record), Some(0x1f));
        assert_eq!(decimal(&mut record), Some(12));
        assert_eq!(record, b"name with spaces");
        assert_eq!(hex(&mut &b"1g"[..]), None);
        assert_eq!(hex(&mut &b"11112222333344445"[..]), None);
        assert_eq!(decimal(&mut &b"4294967296"[..]), None);
        assert_eq!(decimal(&mut &b""[..]), None);
    }

    #[test]
    fn records_end_with_either_line_ending() {
        let records: Vec<_> = Records::from(b"a\r\n\nbc\nd", 0).collect();
        assert_eq!(records, [(0, &b"a"[..]), (4, b"bc"), (7, b"d")]);
    }

    #[test]
    fn symbols_may_be_marked_as_shared() {
        let expected = Symbol {
            address: 0x10,
            size: 0x20,
            name: b"f(int, char)",
        };
        assert_eq!(Symbol::parse(b"10 20 0 f(int, char)", true), Some(expected));
        assert_eq!(
            Symbol::parse(b"m 10 20 0 f(int, char)", true),
            Some(expected)
        );
        let public = Symbol::parse(b"m 10 4 f", false);
        assert_eq!(
            public.map(|symbol| (symbol.size, symbol.name)),
            Some((0, &b"f"[..]))
        );
        assert_eq!(Symbol::parse(b"10", false), None);
    }

    #[test]
    fn inlined_calls_may_have_several_ranges() {
        let mut ranges = Vec::new();
        let inline = Inline::parse(b"1 7 2 3 1000 10 2000 8", |range| ranges.push(range));
        assert_eq!(
            inline,
            Some(Inline {
                depth: 1,
                line: 7,
                file: 2,
                origin: 3
            })
        );
        assert_eq!(ranges, [0x1000..0x1010, 0x2000..0x2008]);
        assert_eq!(Inline::parse(b"1 7 2 3 1000", |_| ()), None);
    }
}
