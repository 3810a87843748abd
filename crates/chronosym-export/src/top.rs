//! Where the time went: by method, module, thread, process, line or tier.

use std::cmp::Reverse;
use std::hash::Hash;
use std::io::{self, Write};

use chronosym_core::{Code, Frame, NameReason, Profile, ProfileEntry};
use chronosym_types::closed_list;
use chronosym_types::hash::HashMap;
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::function_groups::{FunctionGroups, Label};
use crate::missing::missing;
use crate::reasons::name_reason;
use crate::series::thread_label;
use crate::table::{Name, Table, TableOptions};
use crate::tables::Numbered;
use crate::weight::{Amount, Counts, WeightUnit, tally};

closed_list! {
    /// What rows of a table are of.
    #[derive(Default)]
    #[non_exhaustive]
    By {
        /// Functions; overloads apart.
        #[default]
        Method = "method",
        /// Modules and images, by their simple names.
        Module = "module",
        /// Threads.
        Thread = "thread",
        /// Processes.
        Process = "process",
        /// Source lines.
        Line = "line",
        /// How code was compiled.
        Tier = "tier",
    }
}

closed_list! {
    /// What rows are sorted by, the most first.
    #[derive(Default)]
    Sort {
        /// What is in it alone.
        #[default]
        Own = "self",
        /// What is in it and in what it calls.
        Total = "total",
    }
}

/// A row: what it is of, and what its samples come to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Hotspot {
    /// What it is of.
    #[serde(flatten)]
    pub label: Label,
    /// The source line that it is of or, of a method, the one where most of its own samples are.
    #[serde(flatten)]
    pub position: Option<SourcePosition>,
    /// What its samples come to. All samples of a thread or process are its own.
    #[serde(flatten)]
    pub counts: Counts,
}

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub struct SourcePosition {
    /// The file, as the symbols name it.
    pub file: String,
    /// From 1.
    pub line: u32,
}

impl SourcePosition {
    /// `Program.cs:12`.
    pub(crate) fn text(&self) -> String {
        format!("{}:{}", chronosym_core::file_name(&self.file), self.line)
    }
}

/// The rows of a profile; shares are to be of all its samples. Code without a name is a row for each image or, with
/// `addresses`, for each address.
pub fn hotspots(profile: &Profile, by: By, sort: Sort, addresses: bool) -> Vec<Hotspot> {
    let resolver = &profile.resolver;
    let timeline = resolver.timeline();
    let plain = |text: &str| Label::plain(text.to_owned());
    let names = || FunctionGroups::new(resolver, addresses);
    let mut rows = match by {
        By::Method => {
            let rows = names();
            let mut lines = hottest_lines(profile, &rows);
            let row = |frame: &Frame| rows.of_frame(frame);
            frame_rows(profile, row, |row| (rows.name(row), lines.remove(&row)))
        }
        By::Line => {
            let rows = names();
            let key = |frame: &Frame| (rows.of_frame(frame), position(frame));
            frame_rows(profile, key, |(row, position)| (rows.name(row), position))
        }
        By::Module => frame_rows(profile, module, |name| (plain(name), None)),
        By::Tier => frame_rows(profile, tier, |name| (plain(name), None)),
        By::Thread => {
            let label = |thread| {
                let thread = timeline.thread_view(thread)?;
                let process = timeline.process_view(thread.process)?;
                Some(format!("{} of {}", thread_label(&thread), process.label()))
            };
            entry_rows(profile, |entry| entry.thread, label)
        }
        By::Process => entry_rows(
            profile,
            |entry| timeline.thread_view(entry.thread).map(|t| t.process),
            |process| Some(timeline.process_view(process?)?.label()),
        ),
    };
    let unit = WeightUnit::of(profile);
    let key = |row: &Hotspot| {
        let own = row.counts.own.weight(unit);
        let total = row.counts.total.weight(unit);
        match sort {
            Sort::Own => (own, total),
            Sort::Total => (total, own),
        }
    };
    let name = |row: &Hotspot| (row.label.name.clone(), row.position.clone());
    rows.sort_by_cached_key(|row| (Reverse(key(row)), name(row)));
    rows
}

fn position(frame: &Frame) -> Option<SourcePosition> {
    frame.line.as_ref().ok().map(|line| SourcePosition {
        file: line.file.to_string(),
        line: line.line,
    })
}

/// Of each row the line where most of its own samples are; of lines with as many the first.
fn hottest_lines(profile: &Profile, rows: &FunctionGroups) -> FxHashMap<usize, SourcePosition> {
    let unit = WeightUnit::of(profile);
    let resolver = &profile.resolver;
    let mut lines: HashMap<(usize, &str, u32), Amount> = HashMap::default();
    for entry in &profile.entries {
        let leaf = resolver.frame(resolver.leaf(entry.stack));
        if let Ok(line) = &leaf.line {
            let key = (rows.of_frame(leaf), &*line.file, line.line);
            lines.entry(key).or_default().add(entry);
        }
    }
    let mut lines: Vec<_> = lines.into_iter().collect();
    lines.sort_by_key(|&((row, file, line), amount)| {
        (row, amount.weight(unit), Reverse((file, line)))
    });
    // Of those of one row the last is kept.
    let position = |((row, file, line), _): ((usize, &str, u32), Amount)| {
        let file = file.to_owned();
        (row, SourcePosition { file, line })
    };
    lines.into_iter().map(position).collect()
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
    mut row: impl FnMut(K) -> (Label, Option<SourcePosition>),
) -> Vec<Hotspot> {
    let mut keys: Numbered<K> = Numbered::default();
    let frames = profile.resolver.frames().iter();
    let of: Vec<usize> = frames.map(|frame| keys.insert_full(key(frame)).0).collect();
    let counts = tally(profile, keys.len(), |frame| Some(of[frame.index()]));
    let met = keys.into_iter().zip(counts);
    met.filter(|(_, counts)| counts.total.samples > 0)
        .map(|(key, counts)| {
            let (label, position) = row(key);
            Hotspot {
                label,
                position,
                counts,
            }
        })
        .collect()
}

fn entry_rows<K: Eq + Hash>(
    profile: &Profile,
    key: impl Fn(&ProfileEntry) -> K,
    label: impl Fn(K) -> Option<String>,
) -> Vec<Hotspot> {
    let mut amounts: FxHashMap<K, Amount> = FxHashMap::default();
    for entry in &profile.entries {
        amounts.entry(key(entry)).or_default().add(entry);
    }
    let row = |(key, amount)| Hotspot {
        label: Label::plain(label(key).unwrap_or_else(|| "[unknown]".to_owned())),
        position: None,
        counts: Counts {
            own: amount,
            total: amount,
        },
    };
    amounts.into_iter().map(row).collect()
}

/// Writes what the samples are, and rows; under methods, lines and modules also what share of self has no name, why, and what
/// to do.
///
/// # Errors
///
/// Those of `out`; so do all others that write tables.
pub fn write_top(
    profile: &Profile,
    by: By,
    rows: &[Hotspot],
    options: TableOptions,
    out: &mut impl Write,
) -> io::Result<()> {
    let Some(mut table) = Table::begin(profile, options, out)? else {
        return Ok(());
    };
    table.head(by.as_str())?;
    for row in rows.iter().take(options.most) {
        let text = row.label.text();
        let position = row.position.as_ref().map(SourcePosition::text);
        let (mut before, mut after) = (String::new(), String::new());
        match (by, position) {
            (By::Line, position) => {
                before = position.unwrap_or_else(|| "(no line)".to_owned()) + "  "
            }
            (_, Some(position)) => after = format!("  {position}"),
            _ => {}
        }
        let name = Name {
            before: &before,
            text: &text,
            after: &after,
            kind: row.label.kind,
        };
        let (cells, share) = (table.counts(&row.counts), table.share_of(&row.counts.own));
        table.row(&cells, share, name)?;
    }
    table.more(rows.len(), by.as_str())?;
    match by {
        By::Method | By::Module | By::Line => write_unnamed(profile, &mut table),
        By::Thread | By::Process | By::Tier => Ok(()),
    }
}

/// Writes what share of self has no name, why, and what to do.
fn write_unnamed(profile: &Profile, table: &mut Table<'_, impl Write>) -> io::Result<()> {
    let resolver = &profile.resolver;
    let mut guessed = Amount::default();
    for entry in &profile.entries {
        let leaf = resolver.frame(resolver.leaf(entry.stack));
        if leaf.is_guess() {
            guessed.add(entry);
        }
    }
    let share = |table: &Table<'_, _>, weight: u64| match table.share(weight) {
        s if s < 0.05 => "<0.1%".to_owned(),
        s => format!("{s:.1}%"),
    };
    if guessed.samples > 0 {
        let share = share(table, guessed.weight(table.unit));
        table.text(&format!("\n{share} of self has a name that is a guess (~)"))?;
    }
    let reasons = missing(profile, table.unit, |frame| frame.name().err());
    if reasons.is_empty() {
        return Ok(());
    }
    let all = reasons.iter().map(|r| r.weight);
    let all = share(table, all.fold(0, u64::saturating_add));
    table.text(&format!("\n{all} of self has no name:"))?;
    for row in &reasons {
        let share = share(table, row.weight);
        table.text(&format!("{share:>7}  {}", name_reason(row.reason).0))?;
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
    table.text(match reasons.first() {
        Some(row) if is_file(row.reason) => {
            "next: `chronosym symbols TRACE` says which symbol files are missing, --symbols DIR uses them"
        }
        _ => "next: `chronosym info TRACE` says what to record",
    })
}
