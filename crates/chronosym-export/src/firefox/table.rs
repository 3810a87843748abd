//! Tables of a Firefox profile, stored by column.

use std::io::{self, Write};

use chronosym_types::append;

use crate::json::write_parts;

/// A value of a table.
pub(super) enum Cell<'a> {
    Null,
    No,
    Number(u64),
    /// -1: an index of nothing.
    NoIndex,
    /// A time in ns, which is written in ms.
    Millis(u64),
    /// An object with a type and a text.
    Typed(&'static str, Option<&'a str>),
}

impl Cell<'_> {
    pub fn index(index: usize) -> Self {
        Cell::Number(index as u64)
    }

    pub fn or_null(number: Option<impl Into<u64>>) -> Self {
        number.map_or(Cell::Null, |number| Cell::Number(number.into()))
    }

    /// Appends its JSON. Tables have millions of cells, so no format string is used.
    fn append(&self, out: &mut Vec<u8>) {
        match *self {
            Cell::Null => out.extend_from_slice(b"null"),
            Cell::No => out.extend_from_slice(b"false"),
            Cell::Number(number) => append::number(out, number),
            Cell::NoIndex => out.extend_from_slice(b"-1"),
            Cell::Millis(ns) => append::millionths(out, ns),
            Cell::Typed(kind, text) => {
                // A kind has no character that needs an escape.
                out.extend_from_slice(br#"{"type":""#);
                out.extend_from_slice(kind.as_bytes());
                out.push(b'"');
                if let Some(text) = text {
                    out.extend_from_slice(br#","text":"#);
                    append::text(out, text);
                }
                out.push(b'}');
            }
        }
    }
}

/// A column: its name, and the value of each element.
pub(super) type Column<'c, R> = (&'c str, &'c dyn Fn(&R) -> Cell<'_>);

/// Writes the columns of a table; the caller closes the object.
pub(super) fn begin_table<'r, R: 'r, I: IntoIterator<Item = &'r R> + Copy>(
    out: &mut impl Write,
    name: &str,
    items: I,
    columns: &[Column<'_, R>],
) -> io::Result<()> {
    let length = items.into_iter().count();
    write!(out, ",\n\"{name}\":{{\"length\":{length}")?;
    for (column, cell) in columns {
        write!(out, ",\"{column}\":[")?;
        write_parts(out, items, |part, item| cell(item).append(part))?;
        out.write_all(b"]")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_json() {
        let json = |cell: Cell<'_>| {
            let mut out = Vec::new();
            cell.append(&mut out);
            String::from_utf8(out).unwrap()
        };
        for number in [0, 7, 10, u64::MAX] {
            assert_eq!(json(Cell::Number(number)), number.to_string());
        }
        assert_eq!(json(Cell::NoIndex), "-1");
        assert_eq!(json(Cell::Millis(0)), "0.000000");
        assert_eq!(json(Cell::Millis(12_034_567)), "12.034567");
        assert_eq!(json(Cell::Millis(u64::MAX)), "18446744073709.551615");
        assert_eq!(json(Cell::Typed("GC", None)), r#"{"type":"GC"}"#);
        let text = Cell::Typed("GC", Some("a\"\u{1b}"));
        assert_eq!(json(text), r#"{"type":"GC","text":"a\"\u001b"}"#);
        assert_eq!(json(Cell::or_null(None::<u32>)), "null");
    }
}
