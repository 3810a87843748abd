//! Hotspots: weights by method, module, thread, process, line, tier or activity.

use std::cmp::Reverse;
use std::hash::Hash;
use std::io::{self, Write};

use chronosym_core::{Code, Frame, NameReason, Profile, ProfileEntry};
use chronosym_types::closed_list;
use chronosym_types::hash::HashMap;
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::activities::activity_label;
use crate::function_groups::{FunctionGroups, Label};
use crate::missing::missing;
use crate::reasons::name_reason;
use crate::series::thread_label;
use crate::source_position::SourcePosition;
use crate::table::{Name, Table, TableObject, TableOptions};
use crate::tables::Numbered;
use crate::user_methods::{UserMethod, are_part, write_user_methods};
use crate::weight::{Amount, Counts, WeightUnit, tally};

closed_list! {
    /// The grouping of samples.
    #[derive(Default)]
    #[non_exhaustive]
    By {
        /// Functions; overloads are distinguished.
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
        /// Optimization tiers.
        Tier = "tier",
        /// Activities of EventSources, such as requests, by the ids of events.
        Activity = "activity",
    }
}

closed_list! {
    /// The order of hotspots, heaviest first.
    #[derive(Default)]
    Sort {
        /// The weight of samples whose leaf it is.
        #[default]
        Own = "self",
        /// The weight of samples whose stack contains it.
        Total = "total",
    }
}

/// A group of samples with self and total.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Hotspot {
    /// The label of the group.
    #[serde(flatten)]
    pub label: Label,
    /// The source line of the group; for a method, the line with the largest self.
    #[serde(flatten)]
    pub position: Option<SourcePosition>,
    /// Self and total. They are equal for a thread or process.
    #[serde(flatten)]
    pub counts: Counts,
}

/// Groups the samples of a profile; percentages are of all its samples. Unnamed code is grouped by
/// image or, with `addresses`, by address.
///
/// # Examples
///
/// ```
/// # use chronosym_core::facts::{At, Method, Sample};
/// # use chronosym_core::{Action, Filter, Options, Session};
/// # let mut session = Session::new(Options::default());
/// # let at = At::new(0).process(42).thread(7);
/// # session.apply(at, Method::new(Action::Load, 1, 0x1000, 64).named("Ns.Type", "Run", ""));
/// # session.apply(at, Method::new(Action::Load, 2, 0x2000, 64).named("Ns.Type", "Main", ""));
/// # session.sample(at.at(100), &[0x1010, 0x2020], Sample::cpu());
/// # let timeline = session.finish();
/// use chronosym_export::{By, Sort, hotspots};
///
/// let profile = timeline.profile(&Filter::default(), None);
/// let hotspots = hotspots(&profile, By::Method, Sort::Own, false);
/// assert_eq!(hotspots[0].label.text(), "Ns.Type.Run");
/// ```
pub fn hotspots(profile: &Profile, by: By, sort: Sort, addresses: bool) -> Vec<Hotspot> {
    let resolver = &profile.resolver;
    let timeline = resolver.timeline();
    let plain = |text: &str| Label::plain(text.to_owned());
    let groups = || FunctionGroups::new(resolver, addresses);
    let mut hotspots = match by {
        By::Method => {
            let groups = groups();
            let mut lines = hottest_lines(profile, &groups);
            let group = |frame: &Frame| groups.of_frame(frame);
            hotspots_by_frame(profile, group, |group| {
                (groups.label(group), lines.remove(&group))
            })
        }
        By::Line => {
            let groups = groups();
            let key = |frame: &Frame| (groups.of_frame(frame), position(frame));
            hotspots_by_frame(profile, key, |(group, position)| {
                (groups.label(group), position)
            })
        }
        By::Module => hotspots_by_frame(profile, module, |name| (plain(name), None)),
        By::Tier => hotspots_by_frame(profile, tier, |name| (plain(name), None)),
        By::Thread => {
            let label = |thread| {
                let thread = timeline.thread_view(thread)?;
                let process = timeline.process_view(thread.process)?;
                Some(format!("{} of {}", thread_label(&thread), process.label()))
            };
            hotspots_by_entry(profile, |entry| entry.thread, label)
        }
        By::Process => hotspots_by_entry(
            profile,
            |entry| timeline.thread_view(entry.thread).map(|t| t.process),
            |process| Some(timeline.process_view(process?)?.label()),
        ),
        By::Activity => hotspots_by_entry(
            profile,
            |entry| entry.activity_id,
            |activity| Some(activity_label(timeline, activity)),
        ),
    };
    let unit = WeightUnit::of(profile);
    let key = |it: &Hotspot| {
        let own = it.counts.own.weight(unit);
        let total = it.counts.total.weight(unit);
        match sort {
            Sort::Own => (own, total),
            Sort::Total => (total, own),
        }
    };
    let name = |it: &Hotspot| (it.label.name.clone(), it.position.clone());
    hotspots.sort_by_cached_key(|it| (Reverse(key(it)), name(it)));
    hotspots
}

fn position(frame: &Frame) -> Option<SourcePosition> {
    frame.line.as_ref().ok().map(|line| SourcePosition {
        file: line.file.to_string(),
        line: line.line,
    })
}

/// Returns the line with the largest self of each function; the first of equal ones.
fn hottest_lines(profile: &Profile, groups: &FunctionGroups) -> FxHashMap<usize, SourcePosition> {
    let unit = WeightUnit::of(profile);
    let resolver = &profile.resolver;
    let mut lines: HashMap<(usize, &str, u32), Amount> = HashMap::default();
    for entry in &profile.entries {
        let leaf = resolver.frame(resolver.leaf(entry.stack));
        if let Ok(line) = &leaf.line {
            let key = (groups.of_frame(leaf), &*line.file, line.line);
            lines.entry(key).or_default().add(entry);
        }
    }
    let mut lines: Vec<_> = lines.into_iter().collect();
    lines.sort_by_key(|&((group, file, line), amount)| {
        (group, amount.weight(unit), Reverse((file, line)))
    });
    // The last line of a function replaces the others.
    let position = |((group, file, line), _): ((usize, &str, u32), Amount)| {
        let file = file.to_owned();
        (group, SourcePosition { file, line })
    };
    lines.into_iter().map(position).collect()
}

/// Returns the module of a frame, or that it has none.
fn module(frame: &Frame) -> &str {
    frame.module().unwrap_or("[no module]")
}

/// Returns the tier of a frame, or why it has none.
fn tier(frame: &Frame) -> &'static str {
    match (frame.tier, frame.code) {
        (Some(tier), _) => tier.name(),
        (None, Code::Image { .. }) => "[native code]",
        (None, Code::Nothing) => "[no code known]",
        (None, _) => "[unknown tier]",
    }
}

fn hotspots_by_frame<'p, K: Eq + Hash>(
    profile: &'p Profile,
    key: impl Fn(&'p Frame) -> K,
    mut label: impl FnMut(K) -> (Label, Option<SourcePosition>),
) -> Vec<Hotspot> {
    let mut keys: Numbered<K> = Numbered::default();
    let frames = profile.resolver.frames().iter();
    let of: Vec<usize> = frames.map(|frame| keys.insert_full(key(frame)).0).collect();
    let counts = tally(profile, keys.len(), |frame| Some(of[frame.index()]));
    let met = keys.into_iter().zip(counts);
    met.filter(|(_, counts)| counts.total.samples > 0)
        .map(|(key, counts)| {
            let (label, position) = label(key);
            Hotspot {
                label,
                position,
                counts,
            }
        })
        .collect()
}

fn hotspots_by_entry<K: Eq + Hash>(
    profile: &Profile,
    key: impl Fn(&ProfileEntry) -> K,
    label: impl Fn(K) -> Option<String>,
) -> Vec<Hotspot> {
    let mut amounts: FxHashMap<K, Amount> = FxHashMap::default();
    for entry in &profile.entries {
        amounts.entry(key(entry)).or_default().add(entry);
    }
    let hotspot = |(key, amount)| Hotspot {
        label: Label::plain(label(key).unwrap_or_else(|| "[unknown]".to_owned())),
        position: None,
        counts: Counts {
            own: amount,
            total: amount,
        },
    };
    amounts.into_iter().map(hotspot).collect()
}

/// The JSON object of a table of hotspots.
#[derive(Debug, Serialize)]
pub struct TopObject<'a> {
    #[serde(flatten)]
    table: TableObject<'a, Hotspot>,
    /// The first user methods.
    #[serde(skip_serializing_if = "<[UserMethod]>::is_empty")]
    user_code: &'a [UserMethod],
}

impl<'a> TopObject<'a> {
    /// Returns a table of at most `max_lines` of these hotspots and user methods.
    pub fn new(
        profile: &Profile,
        by: By,
        hotspots: &'a [Hotspot],
        user_code: &'a [UserMethod],
        max_lines: usize,
    ) -> Self {
        TopObject {
            table: TableObject::new(profile, by.as_str(), hotspots, max_lines),
            user_code: &user_code[..user_code.len().min(max_lines)],
        }
    }
}

/// The maximum number of user methods above a table of all methods.
const USER_METHODS: usize = 10;

/// Writes the description of the samples, a table of user methods, if they call framework code, and
/// a table of hotspots. Below methods, lines and modules it writes the percentage of self without a
/// name, why, and what to do. On a terminal, bars compare the percentages by which each table is
/// sorted.
///
/// # Errors
///
/// Errors of writing to `out`.
pub fn write_top(
    profile: &Profile,
    (by, sort): (By, Sort),
    hotspots: &[Hotspot],
    user_code: &[UserMethod],
    options: TableOptions,
    out: &mut impl Write,
) -> io::Result<()> {
    let Some(mut table) = Table::start(profile, options, out)? else {
        return Ok(());
    };
    let title = if are_part(profile, user_code) {
        write_user_methods(user_code, options.max_lines.min(USER_METHODS), &mut table)?;
        "all code"
    } else {
        ""
    };
    let share = |table: &Table<'_, _>, it: &Hotspot| match sort {
        Sort::Own => table.share_of(&it.counts.own),
        Sort::Total => table.share_of(&it.counts.total),
    };
    table.longest = hotspots.first().map_or(0.0, |it| share(&table, it));
    table.head(title, by.as_str())?;
    for hotspot in hotspots.iter().take(options.max_lines) {
        let text = hotspot.label.text();
        let position = hotspot.position.as_ref().map(SourcePosition::text);
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
            kind: hotspot.label.kind,
        };
        let (cells, share) = (table.counts(&hotspot.counts), share(&table, hotspot));
        table.line(&cells, share, name)?;
    }
    table.more(hotspots.len(), by.as_str())?;
    match by {
        By::Method | By::Module | By::Line => write_unnamed(profile, &mut table),
        By::Thread | By::Process | By::Tier | By::Activity => Ok(()),
    }
}

/// Writes the percentage of self without a name, why, and what to do.
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
    table.text(&format!("\n{all} of self is unnamed:"))?;
    for missing in &reasons {
        let share = share(table, missing.weight);
        table.text(&format!("{share:>7}  {}", name_reason(missing.reason).0))?;
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
        Some(missing) if !is_file(missing.reason) && missing.reason != NameReason::NoName => {
            table.text(&format!("to name them: {}", name_reason(missing.reason).1))
        }
        _ => table.text("next: `chronosym symbols TRACE` lists missing symbol files, with the commands that get them"),
    }
}
