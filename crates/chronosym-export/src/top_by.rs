//! Where the samples are: by method, module, thread, process, line or tier.

use std::hash::Hash;
use std::io::{self, Write};

use chronosym::{Code, Frame, Profile};
use chronosym_types::escape::terminal;
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::fit::fit;
use crate::header::describe;
use crate::rows::Rows;
use crate::text::write_line;
use crate::top::TopOptions;

/// What rows of a table are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum By {
    /// Functions; overloads apart.
    Method,
    /// Modules and images, by their simple names.
    Module,
    /// Threads.
    Thread,
    /// Processes.
    Process,
    /// Source lines.
    Line,
    /// How code was compiled.
    Tier,
}

impl By {
    /// The spelling in JSON and in the head of a table.
    pub const fn as_str(self) -> &'static str {
        match self {
            By::Method => "method",
            By::Module => "module",
            By::Thread => "thread",
            By::Process => "process",
            By::Line => "line",
            By::Tier => "tier",
        }
    }
}

/// What rows are sorted by, the most first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Own samples.
    #[default]
    Own,
    /// Samples on whose stack it is.
    Total,
}

/// A row: what it is of, and its samples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HotRow {
    /// What it is of.
    #[serde(rename = "name")]
    pub label: String,
    /// Samples whose innermost frame it has; all samples of a thread or process.
    #[serde(rename = "self")]
    pub own: u64,
    /// Samples on whose stack it is, each counted once.
    pub total: u64,
}

/// The rows of a profile.
pub fn hot_rows(profile: &Profile, by: By, sort: Sort) -> Vec<HotRow> {
    let resolver = &profile.resolver;
    let timeline = resolver.timeline();
    let mut rows = match by {
        By::Method => {
            let rows = Rows::new(resolver, false);
            let row = |frame: &Frame| rows.of[frame.function.id().index()];
            frame_rows(profile, row, |&row| rows.label(row))
        }
        By::Module => frame_rows(profile, module, |label| (*label).to_owned()),
        By::Tier => frame_rows(profile, tier, |label| (*label).to_owned()),
        By::Line => {
            let rows = Rows::new(resolver, false);
            let key = |frame: &Frame| {
                let line = frame.line.as_ref().ok();
                let line = line.map(|line| (line.file.clone(), line.line));
                (rows.of[frame.function.id().index()], line)
            };
            frame_rows(profile, key, |(row, line)| match line {
                Some((file, line)) => {
                    let file = chronosym::file_name(file);
                    format!("{file}:{line}  {}", rows.label(*row))
                }
                None => format!("(no line)  {}", rows.label(*row)),
            })
        }
        By::Thread => entry_rows(
            profile,
            |entry| entry.thread,
            |&thread| {
                let thread = timeline.thread_view(thread)?;
                let process = timeline.process_view(thread.process)?;
                let name = thread.name.unwrap_or("thread");
                Some(format!("{name} ({}) of {}", thread.tid, process.label()))
            },
        ),
        By::Process => entry_rows(
            profile,
            |entry| timeline.thread_view(entry.thread).map(|t| t.process),
            |process| Some(timeline.process_view((*process)?)?.label()),
        ),
    };
    let key = |row: &HotRow| match sort {
        Sort::Own => (row.own, row.total),
        Sort::Total => (row.total, row.own),
    };
    rows.sort_by(|a, b| key(b).cmp(&key(a)).then_with(|| a.label.cmp(&b.label)));
    rows
}

/// The module of a frame, or that it has none.
fn module(frame: &Frame) -> &str {
    frame.module().unwrap_or("[no module]")
}

/// How the code of a frame was compiled, as far as that is known.
fn tier(frame: &Frame) -> &'static str {
    match (frame.tier, frame.code) {
        (Some(tier), _) => tier.name(),
        (None, Code::Image { .. }) => "[native code]",
        (None, Code::Nothing) => "[no code known]",
        (None, _) => "[tier not known]",
    }
}

fn frame_rows<'p, K: Eq + Hash>(
    profile: &'p Profile,
    key: impl Fn(&'p Frame) -> K,
    label: impl Fn(&K) -> String,
) -> Vec<HotRow> {
    let resolver = &profile.resolver;
    let mut index: FxHashMap<K, usize> = FxHashMap::default();
    let of: Vec<usize> = resolver
        .frames()
        .iter()
        .map(|frame| {
            let next = index.len();
            *index.entry(key(frame)).or_insert(next)
        })
        .collect();
    let mut counts = vec![(0, 0); index.len()];
    // The entry in which a row was seen last, counted from 1: each sample counts once.
    let mut seen = vec![0; index.len()];
    for (entry, at) in profile.entries.iter().zip(1u64..) {
        for (depth, frame) in resolver.stack(entry.stack).enumerate() {
            let row = of[frame.index()];
            if depth == 0 {
                counts[row].0 += entry.samples;
            }
            if std::mem::replace(&mut seen[row], at) != at {
                counts[row].1 += entry.samples;
            }
        }
    }
    let met = index.iter().filter(|&(_, &row)| counts[row].1 > 0);
    met.map(|(key, &row)| HotRow {
        label: label(key),
        own: counts[row].0,
        total: counts[row].1,
    })
    .collect()
}

fn entry_rows<K: Eq + Hash>(
    profile: &Profile,
    key: impl Fn(&chronosym::ProfileEntry) -> K,
    label: impl Fn(&K) -> Option<String>,
) -> Vec<HotRow> {
    let mut counts: FxHashMap<K, u64> = FxHashMap::default();
    for entry in &profile.entries {
        *counts.entry(key(entry)).or_default() += entry.samples;
    }
    let row = |(key, samples)| HotRow {
        label: label(&key).unwrap_or_else(|| "[unknown]".to_owned()),
        own: samples,
        total: samples,
    };
    counts.into_iter().map(row).collect()
}

/// Writes what the samples are, and rows, of which shares are of all samples of the profile.
pub fn write_rows(
    profile: &Profile,
    by: By,
    rows: &[HotRow],
    options: TopOptions,
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(out, "{}", describe(profile))?;
    let all = profile.samples();
    if all == 0 {
        return Ok(());
    }
    let share = |n: u64| n as f64 * 100.0 / all as f64;
    writeln!(
        out,
        "\n{:>7} {:>9} {:>7} {:>9}  {}",
        "self %",
        "self",
        "total %",
        "total",
        by.as_str()
    )?;
    let room = options.width.map(|width| width.saturating_sub(39));
    for row in rows.iter().take(options.most) {
        let line = format!(
            "{:>6.1}% {:>9} {:>6.1}% {:>9}  {}",
            share(row.own),
            row.own,
            share(row.total),
            row.total,
            fit(&terminal(&row.label), room)
        );
        write_line(out, &line, share(row.own), options.width, options.color)?;
    }
    write_more(rows.len(), options.most, by.as_str(), out)
}

/// Says how many rows are not shown.
pub(crate) fn write_more(
    rows: usize,
    most: usize,
    what: &str,
    out: &mut impl Write,
) -> io::Result<()> {
    let plural = if what.ends_with('s') { "es" } else { "s" };
    match rows.saturating_sub(most) {
        0 => Ok(()),
        1 => writeln!(out, "\n1 more {what}: see -n"),
        more => writeln!(out, "\n{more} more {what}{plural}: see -n"),
    }
}

/// The object of a table: all samples of the profile, and the first `most` of its rows.
#[derive(Serialize)]
struct TableObject<'a, T> {
    samples: u64,
    by: &'a str,
    rows: &'a [T],
    /// How many rows are left out.
    more: usize,
}

/// Writes a table as one JSON object.
pub fn write_rows_json<T: Serialize>(
    profile: &Profile,
    by: &str,
    rows: &[T],
    most: usize,
    out: &mut impl Write,
) -> io::Result<()> {
    let shown = rows.len().min(most);
    let object = TableObject {
        samples: profile.samples(),
        by,
        rows: &rows[..shown],
        more: rows.len() - shown,
    };
    chronosym_types::json::to_writer(&mut *out, &object)?;
    writeln!(out)
}
