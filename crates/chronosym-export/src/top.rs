//! Hot methods.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

use chronosym::{Certainty, NameReason, Profile};
use chronosym_types::escape::terminal;
use rustc_hash::FxHashMap;

use crate::header::{describe, meaning};
use crate::measure::{Measure, add};
use crate::rows::Rows;
use crate::text::write_line;

/// A method and its samples.
#[derive(Clone, Debug, PartialEq)]
pub struct HotMethod {
    /// `module!name`, with `~` before it where it is a guess; of overloads with what sets them apart. What has no name says what
    /// is known of it.
    pub label: String,
    /// What samples come to whose innermost frame it is.
    pub own: u64,
    /// What samples come to on whose stack it is, each counted once.
    pub total: u64,
    /// The source line where most of its own samples are: file, line.
    pub line: Option<(String, u32)>,
}

/// The methods of a profile, the one with the most of its own first. Overloads are apart, and so is code without a name:
/// by image or, with `addresses`, by address.
pub fn hot_methods(profile: &Profile, measure: Measure, addresses: bool) -> Vec<HotMethod> {
    let resolver = &profile.resolver;
    let rows = Rows::new(resolver, addresses);
    let count = rows.rows.len();
    let (mut own, mut total) = (vec![0; count], vec![0; count]);
    let mut lines: FxHashMap<(u32, &str, u32), u64> = FxHashMap::default();
    // The entry in which a row was seen last, counted from 1: each sample counts once.
    let mut seen = vec![0; count];
    for (entry, at) in profile.entries.iter().zip(1u64..) {
        let weight = measure.weight(entry);
        for (depth, frame) in resolver.stack(entry.stack).enumerate() {
            let frame = resolver.frame(frame);
            let row = rows.of[frame.function.id().index()];
            if depth == 0 {
                add(&mut own[row as usize], weight);
                if let Ok(line) = &frame.line {
                    let line = (row, &*line.file, line.line);
                    add(lines.entry(line).or_insert(0), weight);
                }
            }
            if std::mem::replace(&mut seen[row as usize], at) != at {
                add(&mut total[row as usize], weight);
            }
        }
    }
    type Line<'a> = (&'a str, u32);
    let mut hottest: Vec<Option<(u64, Reverse<Line<'_>>)>> = vec![None; count];
    for ((row, file, line), samples) in lines {
        let hottest = &mut hottest[row as usize];
        *hottest = (*hottest).max(Some((samples, Reverse((file, line)))));
    }
    let method = |row: usize| HotMethod {
        label: format!("{}{}", rows.rows[row].text(), rows.rows[row].signature),
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
    /// Frames without a name in one image are different rows.
    pub addresses: bool,
}

impl Default for TopOptions {
    fn default() -> Self {
        TopOptions {
            most: 30,
            width: None,
            color: false,
            addresses: false,
        }
    }
}

/// Writes what the samples are, and the hottest methods.
pub fn write_top(profile: &Profile, options: TopOptions, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", describe(profile))?;
    if profile.samples() == 0 {
        return Ok(());
    }
    let measure = Measure::of(profile);
    let methods = hot_methods(profile, measure, options.addresses);
    let all = measure.total(profile);
    let (own, total) = (measure.head("self"), measure.head("total"));
    writeln!(
        out,
        "\n{:>7} {own:>9} {:>7} {total:>9}  method",
        "self %", "total %"
    )?;
    for method in methods.iter().take(options.most) {
        let share = |n: u64| n as f64 * 100.0 / all as f64;
        let mut line = format!(
            "{:>6.1}% {:>9} {:>6.1}% {:>9}  {}",
            share(method.own),
            measure.show(method.own),
            share(method.total),
            measure.show(method.total),
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
        0 => {}
        1 => writeln!(out, "\n1 more method: see -n")?,
        more => writeln!(out, "\n{more} more methods: see -n")?,
    }
    write_unnamed(profile, measure, all, out)
}

/// Writes what share of self has no name, why, and what to do.
fn write_unnamed(
    profile: &Profile,
    measure: Measure,
    all: u64,
    out: &mut impl Write,
) -> io::Result<()> {
    let resolver = &profile.resolver;
    let mut unnamed: BTreeMap<NameReason, u64> = BTreeMap::new();
    let mut guessed = 0;
    for entry in &profile.entries {
        let leaf = resolver.frame(resolver.leaf(entry.stack));
        match leaf.name() {
            Err(reason) => add(unnamed.entry(reason).or_default(), measure.weight(entry)),
            Ok(_) if leaf.certainty == Some(Certainty::Approximate) => {
                add(&mut guessed, measure.weight(entry));
            }
            Ok(_) => {}
        }
    }
    let share = |n: u64| n as f64 * 100.0 / all.max(1) as f64;
    let share_text = |n: u64| match share(n) {
        s if s < 0.05 => "<0.1%".to_owned(),
        s => format!("{s:.1}%"),
    };
    if guessed > 0 {
        writeln!(
            out,
            "\n{} of self has a name that is a guess (~)",
            share_text(guessed)
        )?;
    }
    let sum = unnamed.values().copied().fold(0, u64::saturating_add);
    if sum == 0 {
        return Ok(());
    }
    writeln!(out, "\n{} of self has no name:", share_text(sum))?;
    let mut reasons: Vec<_> = unnamed.into_iter().collect();
    reasons.sort_by_key(|&(_, weight)| Reverse(weight));
    for (reason, weight) in &reasons {
        writeln!(out, "{:>7}  {}", share_text(*weight), meaning(*reason))?;
    }
    let is_file = |reason: NameReason| {
        matches!(
            reason,
            NameReason::NoSymbolFile
                | NameReason::SymbolFileMismatch
                | NameReason::SymbolFileDamaged
                | NameReason::PathNotTrusted
                | NameReason::Offline
        )
    };
    match reasons.first() {
        Some((reason, _)) if is_file(*reason) => writeln!(
            out,
            "next: `chronosym modules TRACE` says which symbol files are missing, --symbols DIR uses them"
        ),
        _ => writeln!(out, "next: `chronosym info TRACE` says what to record"),
    }
}
