//! Tables for a terminal: numbers on the left, a shortened name on the right.

use std::io::{self, Write};

use chronosym_core::Profile;
use chronosym_types::escape::terminal;
use serde::Serialize;

use crate::fit::{columns, fit, start, wrap};
use crate::function_groups::Label;
use crate::header::{describe, no_samples};
use crate::kind::CodeKind;
use crate::weight::{Amount, Counts, WeightUnit};

/// The size and style of a table.
///
/// Closed: callers build it as a literal.
#[derive(Clone, Copy, Debug)]
pub struct TableOptions {
    /// The maximum number of lines.
    pub max_lines: usize,
    /// Columns of the terminal, to which names are shortened and text is wrapped; `None` for no
    /// limit.
    pub width: Option<usize>,
    /// Whether hot lines are emphasized and names coloured by the kind of their code.
    pub color: bool,
}

impl Default for TableOptions {
    fn default() -> Self {
        TableOptions {
            max_lines: 30,
            width: None,
            color: false,
        }
    }
}

/// The right part of a line. All of it is escaped when it is written.
#[derive(Clone, Copy, Default)]
pub(crate) struct Name<'a> {
    /// Never shortened.
    pub before: &'a str,
    /// Shortened if it is too long.
    pub text: &'a str,
    /// Omitted if it does not fit.
    pub after: &'a str,
    pub kind: Option<CodeKind>,
}

impl<'a> Name<'a> {
    pub fn of(text: &'a str, kind: Option<CodeKind>) -> Self {
        Name {
            text,
            kind,
            ..Name::default()
        }
    }
}

/// A table of weights and their percentages of one whole.
pub(crate) struct Table<'o, W> {
    pub out: &'o mut W,
    pub options: TableOptions,
    pub unit: WeightUnit,
    /// The weight of 100 %.
    pub all: u64,
    /// The percentage of the longest bar; 0 for a table without bars.
    pub longest: f64,
}

impl<'o, W: Write> Table<'o, W> {
    /// Writes the description of a profile's samples. Returns `None` if it has none.
    pub fn start(
        profile: &Profile,
        options: TableOptions,
        out: &'o mut W,
    ) -> io::Result<Option<Self>> {
        let unit = WeightUnit::of(profile);
        let mut table = Table {
            out,
            options,
            unit,
            all: unit.total(profile),
            longest: 0.0,
        };
        if profile.samples() == 0 {
            table.text(&no_samples(profile.resolver.timeline()))?;
            return Ok(None);
        }
        table.text(&describe(profile))?;
        Ok(Some(table))
    }

    /// Writes text, wrapped between words.
    pub fn text(&mut self, text: &str) -> io::Result<()> {
        write_text(text, self.options.width, self.out)
    }

    pub fn share(&self, weight: u64) -> f64 {
        weight as f64 * 100.0 / self.all.max(1) as f64
    }

    pub fn share_of(&self, amount: &Amount) -> f64 {
        self.share(amount.weight(self.unit))
    }

    /// Writes a title, unless it is empty, and the head of the columns of [`Table::counts`].
    pub fn head(&mut self, title: &str, what: &str) -> io::Result<()> {
        let (own, total) = (self.unit.head("self"), self.unit.head("total"));
        let (own_share, total_share) = ("self %", "total %");
        writeln!(self.out)?;
        if !title.is_empty() {
            writeln!(self.out, "{title}")?;
        }
        let width = self.unit.width();
        let cells = format!("{own_share:>7} {own:>width$} {total_share:>7} {total:>width$}");
        let bar = self.bar(&cells, 0.0);
        writeln!(self.out, "{cells}  {bar}{what}")
    }

    /// Returns the bar of a percentage and the blank after it. On a terminal, bars take a seventh
    /// of the columns next to the cells, but at most 20; fewer than 5 are none. A bar is long in
    /// proportion to the percentage, in steps of an eighth of a column.
    pub fn bar(&self, cells: &str, share: f64) -> String {
        let width = self.options.width.unwrap_or(0);
        let room = (width.saturating_sub(columns(cells)) / 7).min(20);
        if room < 5 || self.longest <= 0.0 {
            return String::new();
        }
        let eighths = (share / self.longest * 8.0 * room as f64).round() as usize;
        let eighths = eighths.clamp(usize::from(share > 0.0), 8 * room);
        let mut bar = "█".repeat(eighths / 8);
        bar.push_str(["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8]);
        let blank = " ".repeat(room + 1 - eighths.div_ceil(8));
        bar + &blank
    }

    /// Returns the head of the columns of [`Table::amount`].
    pub fn head_of_amount(&self) -> String {
        let unit = match self.unit {
            WeightUnit::Samples => "samples".to_owned(),
            unit => unit.head(""),
        };
        format!("{:>7} {unit:>width$}", "share", width = self.unit.width())
    }

    /// Returns the cells of self and total: percentage and weight.
    pub fn counts(&self, counts: &Counts) -> String {
        let (own, total) = (self.amount(&counts.own), self.amount(&counts.total));
        format!("{own} {total}")
    }

    /// Returns the cells of percentage and weight.
    pub fn amount(&self, amount: &Amount) -> String {
        let weight = amount.weight(self.unit);
        let (share, width) = (self.share(weight), self.unit.width());
        format!("{share:>6.1}% {:>width$}", self.unit.show(weight))
    }

    /// Writes a line, emphasized by its percentage, which its bar shows.
    pub fn line(&mut self, cells: &str, share: f64, name: Name<'_>) -> io::Result<()> {
        let Name {
            before,
            text,
            after,
            kind,
        } = name;
        let bar = self.bar(cells, share);
        let (before, text) = (terminal(before), terminal(text));
        let mut after = terminal(after);
        let room = self.options.width.map(|width| {
            let room = width.saturating_sub(columns(cells) + 2 + columns(&bar) + columns(&before));
            match room.checked_sub(columns(&after)) {
                Some(rest) if rest >= columns(&text).min(LEAST_NAME) => rest,
                _ => {
                    after = "".into();
                    room
                }
            }
        });
        let text = fit(&text, room);
        let (loud, off) = self.loudness(share);
        let (tint, tint_off) = match kind {
            Some(kind) if self.options.color => (tint(kind), "\x1b[0m"),
            _ => ("", ""),
        };
        // The code that ends a colour also ends the emphasis.
        let again = if tint.is_empty() || after.is_empty() {
            ""
        } else {
            loud
        };
        writeln!(
            self.out,
            "{loud}{cells}  {bar}{before}{tint}{text}{tint_off}{again}{after}{off}"
        )
    }

    /// Writes a line of source text, truncated at its end.
    pub fn source(&mut self, cells: &str, share: f64, text: &str) -> io::Result<()> {
        let line = format!("{cells}  {}", terminal(text));
        let (loud, off) = self.loudness(share);
        let width = self.options.width.unwrap_or(usize::MAX);
        match columns(&line) > width {
            true => writeln!(
                self.out,
                "{loud}{}…{off}",
                start(&line, width.saturating_sub(1))
            ),
            false => writeln!(self.out, "{loud}{}{off}", line.trim_end()),
        }
    }

    /// Writes the methods that match one name, the first of them with cells.
    pub fn methods(&mut self, cells: &str, methods: &[Label]) -> io::Result<()> {
        let blank = " ".repeat(columns(cells));
        for (at, method) in methods.iter().take(METHODS).enumerate() {
            let text = method.text();
            let cells = if at == 0 { cells } else { &blank };
            self.line(cells, 100.0, Name::of(&text, method.kind))?;
        }
        match methods.len().saturating_sub(METHODS) {
            0 => Ok(()),
            more => writeln!(self.out, "{blank}  and {more} more of that name"),
        }
    }

    /// Returns ECMA-48 SGR codes: bold, none or faint, and the code that ends them.
    fn loudness(&self, share: f64) -> (&'static str, &'static str) {
        match share {
            _ if !self.options.color => ("", ""),
            s if s >= 10.0 => ("\x1b[1m", "\x1b[0m"),
            s if s >= 1.0 => ("", ""),
            _ => ("\x1b[2m", "\x1b[0m"),
        }
    }

    /// Writes how many lines were left out.
    pub fn more(&mut self, count: usize, what: &str) -> io::Result<()> {
        self.more_than(count, self.options.max_lines, what)
    }

    /// Writes how many lines after the first `shown` were left out.
    pub fn more_than(&mut self, count: usize, shown: usize, what: &str) -> io::Result<()> {
        let many = match what.strip_suffix('y') {
            Some(stem) => format!("{stem}ies"),
            None if what.ends_with('s') => format!("{what}es"),
            None => format!("{what}s"),
        };
        match count.saturating_sub(shown) {
            0 => Ok(()),
            1 => writeln!(self.out, "\n1 more {what} (`-n {count}` shows it)"),
            more => writeln!(self.out, "\n{more} more {many} (`-n {count}` shows all)"),
        }
    }
}

/// The maximum number of methods that are listed for one name.
const METHODS: usize = 10;
/// Text after a name is omitted if the name would become shorter than this.
const LEAST_NAME: usize = 24;

/// Returns an ECMA-48 SGR colour that is readable on light and dark backgrounds.
fn tint(kind: CodeKind) -> &'static str {
    match kind {
        CodeKind::Managed => "\x1b[32m",
        CodeKind::Framework => "\x1b[36m",
        CodeKind::Runtime => "\x1b[35m",
        CodeKind::Native => "\x1b[33m",
        CodeKind::Kernel => "\x1b[31m",
        CodeKind::Stub | CodeKind::Unnamed => "\x1b[90m",
    }
}

/// Writes lines of text, each wrapped between words.
pub(crate) fn write_text(text: &str, width: Option<usize>, out: &mut impl Write) -> io::Result<()> {
    for line in text.lines() {
        match width {
            Some(width) => writeln!(out, "{}", wrap(line, width.max(20), "  "))?,
            None => writeln!(out, "{line}")?,
        }
    }
    Ok(())
}

/// The JSON object of a table: the sum of all samples, and the first elements.
#[derive(Debug, Serialize)]
pub struct TableObject<'a, T> {
    #[serde(flatten)]
    all: Amount,
    by: &'a str,
    rows: &'a [T],
    /// Number of omitted elements.
    more: usize,
}

impl<'a, T> TableObject<'a, T> {
    /// Returns a table of at most `max_lines` of these elements, which are grouped by `by`.
    pub fn new(profile: &Profile, by: &'a str, rows: &'a [T], max_lines: usize) -> Self {
        let (rows, more) = rows.split_at(rows.len().min(max_lines));
        TableObject {
            all: Amount::all(profile),
            by,
            rows,
            more: more.len(),
        }
    }
}
