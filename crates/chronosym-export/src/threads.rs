//! The threads of a profile.

use std::cmp::Reverse;
use std::io::{self, Write};

use chronosym_core::{Activity, Filter, Profile, ThreadIndex, Timeline};
use chronosym_types::escape::terminal;
use rustc_hash::FxHashMap;
use serde::Serialize;
use serde_with::skip_serializing_none;

use crate::function_groups::{FunctionGroups, Label};
use crate::table::{Name, Table, TableOptions};
use crate::weight::{Amount, WeightUnit};

/// A thread and its samples. Absent fields are unknown.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HotThread {
    /// The process id.
    pub pid: Option<u32>,
    /// The process's name.
    pub process: Option<String>,
    /// The thread id.
    pub tid: u64,
    /// The thread's name.
    pub name: Option<String>,
    /// Its samples.
    #[serde(flatten)]
    pub amount: Amount,
    /// The samples in which it was on a processor or runnable, if the activity of wall-clock
    /// samples is known.
    pub running: Option<Amount>,
    /// The samples in which it was on a processor.
    pub on_cpu: Option<Amount>,
    /// The samples in which it was runnable.
    pub runnable: Option<Amount>,
    /// The samples in which it was blocked.
    pub blocked: Option<Amount>,
    /// The samples whose activity is unknown.
    pub unknown: Option<Amount>,
    /// The method with the largest self, if it has samples.
    pub hottest: Option<HottestMethod>,
    /// Its time in the whole recording, from context switches.
    pub switched: Option<SwitchedTime>,
}

/// The time of a thread according to context switches, with or without stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SwitchedTime {
    /// ns on processors.
    pub on_cpu_ns: u64,
    /// ns in which it was ready for a processor.
    pub runnable_ns: u64,
    /// ns in which it waited.
    pub blocked_ns: u64,
}

/// A method, with self in one thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HottestMethod {
    /// The method.
    #[serde(flatten)]
    pub label: Label,
    /// The samples of the thread whose leaf is this method.
    #[serde(rename = "self")]
    pub own: Amount,
}

/// Returns the threads of a profile, heaviest first.
pub fn hot_threads(profile: &Profile) -> Vec<HotThread> {
    #[derive(Default)]
    struct ThreadStats {
        amount: Amount,
        /// By activity.
        of: [Amount; Activity::ALL.len()],
        own: FxHashMap<usize, Amount>,
    }
    let resolver = &profile.resolver;
    let (timeline, unit) = (resolver.timeline(), WeightUnit::of(profile));
    let groups = FunctionGroups::new(resolver, false);
    let mut threads: FxHashMap<ThreadIndex, ThreadStats> = FxHashMap::default();
    for entry in &profile.entries {
        let seen = threads.entry(entry.thread).or_default();
        seen.amount.add(entry);
        seen.of[entry.activity as usize].add(entry);
        let group = groups.of_frame(resolver.frame(resolver.leaf(entry.stack)));
        seen.own.entry(group).or_default().add(entry);
    }
    let thread = |(index, seen): (ThreadIndex, ThreadStats)| {
        let view = timeline.thread_view(index)?;
        let process = timeline.process_view(view.process)?;
        let own = seen.own.into_iter();
        let hottest = own.map(|(group, own)| HottestMethod {
            label: groups.label(group),
            own,
        });
        let key = |m: &HottestMethod| (m.own.weight(unit), Reverse(m.label.name.clone()));
        let of = |activity: Activity| seen.of[activity as usize];
        let [on_cpu, runnable, blocked, unknown] = Activity::ALL.map(of);
        // CPU samples show no threads that are off the processors.
        let is_wall = on_cpu.samples < seen.amount.samples;
        let known = is_wall && unknown.samples < seen.amount.samples;
        Some(HotThread {
            pid: process.pid,
            process: process.name.map(str::to_owned),
            tid: view.tid,
            name: view.name.map(str::to_owned),
            amount: seen.amount,
            running: known.then(|| on_cpu.plus(&runnable)),
            on_cpu: (on_cpu.samples > 0).then_some(on_cpu),
            runnable: is_wall.then_some(runnable),
            blocked: is_wall.then_some(blocked),
            unknown: is_wall.then_some(unknown),
            hottest: hottest.max_by_key(key),
            switched: None,
        })
    };
    let mut threads: Vec<HotThread> = threads.into_iter().filter_map(thread).collect();
    threads.sort_by_key(|t| (Reverse(t.amount.weight(unit)), t.pid, t.tid));
    threads
}

/// Adds the times from context switches of the threads that a filter selects. Threads without
/// samples follow the others. A filter of times adds nothing, because the times are those of the
/// whole recording.
pub fn add_switched(threads: &mut Vec<HotThread>, timeline: &Timeline, filter: &Filter) {
    if filter.from_ns.is_some() || filter.to_ns.is_some() {
        return;
    }
    let rows: FxHashMap<_, _> = (threads.iter().enumerate())
        .map(|(row, thread)| ((thread.pid, thread.tid), row))
        .collect();
    for &(thread, time) in timeline.thread_times() {
        let Some(view) = timeline.thread_view(thread) else {
            continue;
        };
        let is_selected = filter.tid.is_none_or(|tid| tid == view.tid)
            && filter.has_process(timeline, view.process);
        let Some(process) = timeline.process_view(view.process).filter(|_| is_selected) else {
            continue;
        };
        let switched = Some(SwitchedTime {
            on_cpu_ns: time.on_cpu_ns,
            runnable_ns: time.runnable_ns,
            blocked_ns: time.blocked_ns,
        });
        match rows.get(&(process.pid, view.tid)) {
            Some(&row) => threads[row].switched = switched,
            None => threads.push(HotThread {
                pid: process.pid,
                process: process.name.map(str::to_owned),
                tid: view.tid,
                name: view.name.map(str::to_owned),
                amount: Amount::default(),
                running: None,
                on_cpu: None,
                runnable: None,
                blocked: None,
                unknown: None,
                hottest: None,
                switched,
            }),
        }
    }
}

/// The samples of a thread with one activity.
type Column = fn(&HotThread) -> Option<Amount>;

/// Writes the description of the samples and the threads, with their process if there are several.
///
/// # Errors
///
/// Errors of writing to `out`.
pub fn write_threads(
    profile: &Profile,
    threads: &[HotThread],
    options: TableOptions,
    out: &mut impl Write,
) -> io::Result<()> {
    write_sampled(profile, threads, options, out)?;
    write_switched(threads, options, out)
}

/// Writes the threads with samples.
fn write_sampled(
    profile: &Profile,
    threads: &[HotThread],
    options: TableOptions,
    out: &mut impl Write,
) -> io::Result<()> {
    let Some(mut table) = Table::start(profile, options, out)? else {
        return Ok(());
    };
    let without = |thread: &HotThread| thread.hottest.is_none();
    let sampled = (threads.iter()).position(without).unwrap_or(threads.len());
    let threads = &threads[..sampled];
    let several = threads.iter().any(|t| t.pid != threads[0].pid);
    let activities: Vec<(Activity, Column)> = [
        (Activity::OnCpu, (|t| t.on_cpu) as Column),
        (Activity::Runnable, |t| t.runnable),
        (Activity::Blocked, |t| t.blocked),
    ]
    .into_iter()
    .filter(|(_, of)| {
        threads
            .iter()
            .any(|t| t.blocked.is_some() && of(t).is_some())
    })
    .collect();
    let head = table.head_of_amount();
    let heads = activities.iter().map(|(activity, _)| {
        let name = match activity {
            Activity::OnCpu => "on-CPU",
            _ => activity.as_str(),
        };
        format!(" {name:>8}")
    });
    let (heads, thread) = (heads.collect::<String>(), "thread");
    writeln!(
        table.out,
        "\n{head}{heads} {thread:>9}  name, and its hottest method"
    )?;
    let unit = table.unit;
    for thread in threads.iter().take(options.max_lines) {
        let of_thread = |amount: &Amount| {
            let all = thread.amount.weight(unit).max(1);
            amount.weight(unit) as f64 * 100.0 / all as f64
        };
        let mut cells = table.amount(&thread.amount);
        for (_, of) in &activities {
            cells.push_str(&match of(thread) {
                Some(amount) => format!(" {:>7.1}%", of_thread(&amount)),
                None => format!(" {:>8}", "-"),
            });
        }
        cells.push_str(&format!(" {:>9}", thread.tid));
        let Some(hottest) = &thread.hottest else {
            continue;
        };
        let mut before = names(thread, several);
        before.push_str(&format!("{:.0}% ", of_thread(&hottest.own)));
        let text = hottest.label.text();
        let name = Name {
            before: &before,
            ..Name::of(&text, hottest.label.kind)
        };
        let share = table.share_of(&thread.amount);
        table.line(&cells, share, name)?;
    }
    table.more(threads.len(), "thread")
}

/// Returns the names of a thread, with its process if there are several.
fn names(thread: &HotThread, several: bool) -> String {
    let mut names = String::new();
    if several {
        let name = thread.process.as_deref().unwrap_or("process");
        let pid = thread.pid.map_or("?".to_owned(), |pid| pid.to_string());
        names.push_str(&format!("{name} ({pid})  "));
    }
    if let Some(name) = &thread.name {
        names.push_str(&format!("{name}  "));
    }
    names
}

/// Writes the times of threads from context switches, the longest first.
fn write_switched(
    threads: &[HotThread],
    options: TableOptions,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut rows: Vec<(&HotThread, SwitchedTime)> = (threads.iter())
        .filter_map(|thread| Some((thread, thread.switched?)))
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    rows.sort_by_key(|(_, time)| Reverse((time.on_cpu_ns, time.runnable_ns, time.blocked_ns)));
    let several = rows.iter().any(|(thread, _)| thread.pid != rows[0].0.pid);
    writeln!(
        out,
        "\nfrom context switches, with and without stacks:\n{:>11} {:>11} {:>11} {:>9}  name",
        "on-CPU ms", "runnable ms", "blocked ms", "thread"
    )?;
    for (thread, time) in rows.iter().take(options.max_lines) {
        let ms = |ns: u64| ns as f64 / 1e6;
        let SwitchedTime {
            on_cpu_ns,
            runnable_ns,
            blocked_ns,
        } = *time;
        writeln!(
            out,
            "{:>11.1} {:>11.1} {:>11.1} {:>9}  {}",
            ms(on_cpu_ns),
            ms(runnable_ns),
            ms(blocked_ns),
            thread.tid,
            terminal(names(thread, several).trim_end())
        )?;
    }
    match rows.len().saturating_sub(options.max_lines) {
        0 => Ok(()),
        more => writeln!(out, "{more} more"),
    }
}
