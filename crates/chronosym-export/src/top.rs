//! Hot methods.

use std::cmp::Reverse;
use std::io::{self, Write};

use chronosym::Profile;
use chronosym_types::escape::terminal;
use rustc_hash::FxHashMap;

use crate::rows::Rows;
use crate::text::{describe, write_line};

/// A method and its samples.
#[derive(Clone, Debug, PartialEq)]
pub struct HotMethod {
    /// `module!name`, `module!+0xrva` or an address; of overloads with what sets them apart.
    pub label: String,
    /// Samples whose innermost frame it is.
    pub own: u64,
    /// Samples on whose stack it is, each counted once.
    pub total: u64,
    /// The source line where most of its own samples are: file, line.
    pub line: Option<(String, u32)>,
}

/// The methods of a profile, the one with the most own samples first. Overloads are apart.
pub fn hot_methods(profile: &Profile) -> Vec<HotMethod> {
    let resolver = &profile.resolver;
    let rows = Rows::new(resolver);
    let count = rows.rows.len();
    let (mut own, mut total) = (vec![0; count], vec![0; count]);
    let mut lines: FxHashMap<(u32, &str, u32), u64> = FxHashMap::default();
    // The entry in which a row was seen last, counted from 1: each sample counts once.
    let mut seen = vec![0; count];
    for (entry, at) in profile.entries.iter().zip(1u64..) {
        for (depth, frame) in resolver.stack(entry.stack).enumerate() {
            let frame = resolver.frame(frame);
            let row = rows.of[frame.function.id().index()];
            if depth == 0 {
                own[row as usize] += entry.samples;
                if let Ok(line) = &frame.line {
                    let line = (row, &*line.file, line.line);
                    *lines.entry(line).or_insert(0) += entry.samples;
                }
            }
            if std::mem::replace(&mut seen[row as usize], at) != at {
                total[row as usize] += entry.samples;
            }
        }
    }
    // Of lines with as many samples the first.
    let mut hottest = vec![None; count];
    for ((row, file, line), samples) in lines {
        let known = &mut hottest[row as usize];
        *known = (*known).max(Some((samples, Reverse((file, line)))));
    }
    let method = |row: usize| HotMethod {
        label: format!(
            "{}{}",
            rows.rows[row].function.label(),
            rows.rows[row].signature
        ),
        own: own[row],
        total: total[row],
        line: hottest[row].map(|(_, Reverse((file, line)))| (file.to_owned(), line)),
    };
    let met = (0..count).filter(|&row| total[row] > 0);
    let mut methods: Vec<HotMethod> = met.map(method).collect();
    methods.sort_by(|a, b| (b.own, b.total, &a.label).cmp(&(a.own, a.total, &b.label)));
    methods
}

/// How much of a table is shown.
#[derive(Clone, Copy, Debug)]
pub struct TopOptions {
    /// At most this many methods.
    pub most: usize,
    /// Columns of the terminal; longer lines are cut. `None`: no limit.
    pub width: Option<usize>,
    /// Whether hot lines stand out in colour.
    pub color: bool,
}

impl Default for TopOptions {
    fn default() -> Self {
        TopOptions {
            most: 30,
            width: None,
            color: false,
        }
    }
}

/// Writes what the samples are, and the hottest methods.
pub fn write_top(profile: &Profile, options: TopOptions, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", describe(profile))?;
    let methods = hot_methods(profile);
    let all = profile.samples();
    if all == 0 {
        return Ok(());
    }
    writeln!(
        out,
        "\n{:>7} {:>9} {:>7} {:>9}  method",
        "self %", "self", "total %", "total"
    )?;
    for method in methods.iter().take(options.most) {
        let share = |n: u64| n as f64 * 100.0 / all as f64;
        let mut line = format!(
            "{:>6.1}% {:>9} {:>6.1}% {:>9}  {}",
            share(method.own),
            method.own,
            share(method.total),
            method.total,
            terminal(&method.label)
        );
        if let Some((file, number)) = &method.line {
            line.push_str(&format!(
                "  {}:{number}",
                terminal(chronosym::file_name(file))
            ));
        }
        write_line(out, &line, share(method.own), options.width, options.color)?;
    }
    match methods.len().saturating_sub(options.most) {
        0 => Ok(()),
        1 => writeln!(out, "\n1 more method: see -n"),
        more => writeln!(out, "\n{more} more methods: see -n"),
    }
}
