//! Plain tables: cells are right-aligned, the last one left-aligned.

use std::io::{self, Write};

use chronosym_types::escape::terminal;

use crate::fit::{columns, fit};
use crate::table::{TableOptions, write_text};

/// Rows under a head.
pub(crate) struct Grid {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
    more: usize,
    max_rows: usize,
}

impl Grid {
    /// Creates a table with these columns that shows at most `max_rows` rows.
    pub fn new<const N: usize>(head: [&str; N], max_rows: usize) -> Self {
        Grid {
            head: head.map(str::to_owned).to_vec(),
            rows: Vec::new(),
            more: 0,
            max_rows,
        }
    }

    /// Adds a row. The cells are only formatted if the row is shown.
    pub fn row<const N: usize>(&mut self, cells: impl FnOnce() -> [String; N]) {
        match self.rows.len() < self.max_rows {
            true => self.rows.push(cells().to_vec()),
            false => self.more += 1,
        }
    }

    /// Writes the table after an empty line; nothing without rows.
    pub fn write(&self, options: TableOptions, out: &mut impl Write) -> io::Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let last = self.head.len() - 1;
        let widths: Vec<usize> = (0..last)
            .map(|column| {
                let cells = self.rows.iter().map(|row| columns(&row[column]));
                cells
                    .chain([columns(&self.head[column])])
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        writeln!(out)?;
        for row in [&self.head].into_iter().chain(&self.rows) {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(&format!("{:>width$}  ", terminal(cell), width = *width));
            }
            let room = options.width.map(|all| all.saturating_sub(columns(&line)));
            line.push_str(&fit(&terminal(&row[last]), room));
            writeln!(out, "{}", line.trim_end())?;
        }
        match self.more {
            0 => Ok(()),
            more => writeln!(out, "{more} more: see -n"),
        }
    }
}

/// Writes a sentence, wrapped between words.
pub(crate) fn sentence(text: &str, options: TableOptions, out: &mut impl Write) -> io::Result<()> {
    write_text(&terminal(text), options.width, out)
}

/// Formats a duration in milliseconds.
pub(crate) fn ms(ns: u64) -> String {
    format!("{:.3}", ns as f64 / 1e6)
}

/// Formats a value that may be unknown.
pub(crate) fn or_unknown<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "?".to_owned(), show)
}
