//! Tables of a Firefox profile, stored by column.

use std::fmt;
use std::io::{self, Write};

use crate::json::write_list;
use crate::series::millis;

/// A value of a table.
pub(super) enum Cell {
    Null,
    No,
    Number(i128),
    Millis(u64),
    Object(String),
}

impl Cell {
    pub fn index(index: usize) -> Self {
        Cell::Number(index as i128)
    }

    pub fn or_null(number: Option<impl Into<i128>>) -> Self {
        number.map_or(Cell::Null, |number| Cell::Number(number.into()))
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Null => f.write_str("null"),
            Cell::No => f.write_str("false"),
            Cell::Number(number) => number.fmt(f),
            Cell::Millis(ns) => f.write_str(&millis(*ns)),
            Cell::Object(json) => f.write_str(json),
        }
    }
}

/// A column: its name, and the value of each element.
pub(super) type Column<'c, R> = (&'c str, &'c dyn Fn(&R) -> Cell);

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
        write_list(out, items, |out, item| write!(out, "{}", cell(item)))?;
        write!(out, "]")?;
    }
    Ok(())
}
