//! The threads of a profile.

use std::io::{self, Write};

use chronosym::{Profile, SampleKind, ThreadIndex};
use chronosym_types::escape::terminal;
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::fit::fit;
use crate::header::describe;
use crate::rows::Rows;
use crate::text::write_line;
use crate::top::TopOptions;
use crate::top_by::write_more;

/// A thread and its samples. What is absent is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HotThread {
    /// The process id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The process's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
    /// The thread id.
    pub tid: u64,
    /// The thread's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its samples.
    pub samples: u64,
    /// How many of them found it in managed code, where the samples tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed: Option<u64>,
    /// The method with the most own samples in it.
    pub hottest: String,
    /// How many those are.
    pub hottest_self: u64,
}

/// The threads of a profile, the one with the most samples first.
pub fn hot_threads(profile: &Profile) -> Vec<HotThread> {
    #[derive(Default)]
    struct Counts {
        samples: u64,
        managed: Option<u64>,
        own: FxHashMap<u32, u64>,
    }
    let resolver = &profile.resolver;
    let timeline = resolver.timeline();
    let rows = Rows::new(resolver, false);
    let mut threads: FxHashMap<ThreadIndex, Counts> = FxHashMap::default();
    for entry in &profile.entries {
        let counts = threads.entry(entry.thread).or_default();
        counts.samples += entry.samples;
        match entry.kind {
            SampleKind::WallManaged => *counts.managed.get_or_insert(0) += entry.samples,
            SampleKind::WallExternal => *counts.managed.get_or_insert(0) += 0,
            _ => {}
        }
        let leaf = resolver.frame(resolver.leaf(entry.stack));
        let row = rows.of[leaf.function.id().index()];
        *counts.own.entry(row).or_default() += entry.samples;
    }
    let thread = |(index, counts): (ThreadIndex, Counts)| {
        let view = timeline.thread_view(index)?;
        let process = timeline.process_view(view.process)?;
        let own = counts.own.into_iter();
        let labelled = own.map(|(row, own)| (own, rows.label(row)));
        let (hottest_self, hottest) =
            labelled.max_by(|a, b| a.0.cmp(&b.0).then_with(|| b.1.cmp(&a.1)))?;
        Some(HotThread {
            pid: process.pid,
            process: process.name.map(str::to_owned),
            tid: view.tid,
            name: view.name.map(str::to_owned),
            samples: counts.samples,
            managed: counts.managed,
            hottest,
            hottest_self,
        })
    };
    let mut threads: Vec<HotThread> = threads.into_iter().filter_map(thread).collect();
    let place = |t: &HotThread| (t.pid, t.tid);
    threads.sort_by(|a, b| (b.samples, place(a)).cmp(&(a.samples, place(b))));
    threads
}

/// Writes what the samples are, and the threads: in which process, if there are several.
pub fn write_threads(
    profile: &Profile,
    threads: &[HotThread],
    options: TopOptions,
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(out, "{}", describe(profile))?;
    let all = profile.samples();
    if all == 0 {
        return Ok(());
    }
    let share = |n: u64, all: u64| n as f64 * 100.0 / all as f64;
    let several = threads.iter().any(|t| t.pid != threads[0].pid);
    let managed = threads.iter().any(|t| t.managed.is_some());
    let head = if managed { " managed" } else { "" };
    writeln!(
        out,
        "\n{:>7} {:>9}{head} {:>9}  name, and its hottest method",
        "share", "samples", "thread"
    )?;
    for thread in threads.iter().take(options.most) {
        let of_all = share(thread.samples, all);
        let mut line = format!("{of_all:>6.1}% {:>9}", thread.samples);
        if let Some(managed) = thread.managed {
            line.push_str(&format!("{:>7.1}%", share(managed, thread.samples)));
        } else if managed {
            line.push_str(&format!("{:>8}", "?"));
        }
        line.push_str(&format!(" {:>9}  ", thread.tid));
        if several {
            let name = thread.process.as_deref().unwrap_or("process");
            let pid = thread.pid.map_or("?".to_owned(), |pid| pid.to_string());
            line.push_str(&format!("{} ({pid})  ", terminal(name)));
        }
        if let Some(name) = &thread.name {
            line.push_str(&format!("{}  ", terminal(name)));
        }
        let hottest = share(thread.hottest_self, thread.samples);
        line.push_str(&format!("{hottest:.0}% "));
        let before = line.chars().count();
        let room = options.width.map(|width| width.saturating_sub(before));
        line.push_str(&fit(&terminal(&thread.hottest), room));
        write_line(out, &line, of_all, options.width, options.color)?;
    }
    write_more(threads.len(), options.most, "thread", out)
}
