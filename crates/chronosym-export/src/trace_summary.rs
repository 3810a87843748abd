//! A summary of a trace in at most ten lines.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

use chronosym_core::{
    Activity, Diagnostics, EventTypeInfo, Filter, LineReason, MarkerKind, ProcessIndex, Profile,
    SampleKind, Timeline, WallFlag,
};
use chronosym_runtime::{Counters, SuspensionTotals};
use rustc_hash::FxHashMap;
use serde::{Serialize, Serializer};
use serde_with::skip_serializing_none;

use crate::fit::{fit, wrap};
use crate::function_groups::FunctionGroups;
use crate::header::beyond_memory;
use crate::reasons::{line_reason, needs_file};
use crate::units::{counted, show_count, show_span};
use crate::user_methods::{UserMethod, user_methods_in};
use crate::weight::{WeightUnit, add};
use chronosym_types::escape::terminal;

/// The main findings in a trace. Absent fields are unknown, or the trace has no such events.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct TraceSummary {
    /// The process with the most samples.
    pub process: Option<String>,
    /// Its id.
    pub pid: Option<u32>,
    /// Its runtimes.
    pub runtime: Option<String>,
    /// The number of other processes with samples.
    pub other_processes: usize,
    /// Duration of the trace in ns.
    pub duration_ns: u64,
    /// The number of processors of the machine.
    pub processors: Option<u32>,
    /// The share of all processors that the process used, in percent, by its counter `cpu-usage`.
    pub cpu_usage: Option<f64>,
    /// The share of the time that the process spent in collections, in percent, by its counter
    /// `time-in-gc`.
    pub time_in_gc: Option<f64>,
    /// The largest number of threads of its thread pool, by a counter.
    pub pool_threads: Option<u64>,
    /// The largest number of work items in the queue of its thread pool, by a counter.
    pub pool_queue: Option<u64>,
    /// The number of samples.
    pub samples: u64,
    /// The kind of samples: `cpu`, `wall`, or `event`.
    pub sample_kind: Option<&'static str>,
    /// From the first sample to the last, in ns.
    pub span_ns: u64,
    /// The time that all samples represent, in ns.
    pub sampled_ns: Option<u64>,
    /// The share of wall-clock samples in which threads were runnable, by weight.
    pub runnable: Option<f64>,
    /// The share of wall-clock samples in which threads were blocked, by weight.
    pub blocked: Option<f64>,
    /// The method in which most blocked time is spent.
    pub blocked_in: Option<String>,
    /// The share of samples in user code and framework code that it calls, without blocked threads.
    pub user_code: Option<f64>,
    /// The hottest user method.
    pub hottest: Option<UserMethod>,
    /// The share of its samples.
    pub hottest_share: Option<f64>,
    /// Why the source lines of the hottest user method are unknown.
    #[serde(serialize_with = "as_name")]
    pub no_lines: Option<LineReason>,
    /// The hottest method of all, if there is no user code.
    pub hottest_of_all: Option<String>,
    /// Garbage collections.
    pub collections: Option<u64>,
    /// The time in ns for which they suspended threads.
    pub collection_pause_ns: Option<u64>,
    /// Methods that were compiled.
    pub compiled: Option<u64>,
    /// The time of compilations in ns, of all threads.
    pub compilation_ns: Option<u64>,
    /// Exceptions that were thrown.
    pub exceptions: Option<u64>,
    /// The type that was thrown most often.
    pub exception_type: Option<String>,
    /// Waits for locks.
    pub contentions: Option<u64>,
    /// Their time in ns, of all threads.
    pub contention_ns: Option<u64>,
    /// Suspensions by the sampler.
    pub sampler_suspensions: Option<u64>,
    /// Their time in ns.
    pub sampler_ns: Option<u64>,
    /// The share of self without a name.
    pub unnamed: Option<f64>,
    /// The module with the most unnamed self.
    pub unnamed_module: Option<String>,
    /// Events that the recorder lost.
    pub lost_events: u64,
    /// Whether the runtime's flag distinguishes runnable threads.
    #[serde(skip)]
    flag_is_reliable: bool,
    /// Exceptions of `exception_type`.
    #[serde(skip)]
    of_that_type: Option<u64>,
    /// For a trace without samples: the type of events that has most stacks.
    #[serde(skip)]
    stacks_of: Option<String>,
    /// Whether the timeline was saved without samples, and whether it has no events.
    #[serde(skip)]
    saved_without: SavedWithout,
    /// What to add to a statement that something is missing.
    #[serde(skip)]
    beyond_memory: &'static str,
}

#[derive(Clone, Copy, Debug, Default)]
struct SavedWithout {
    samples: bool,
    events: bool,
}

impl TraceSummary {
    /// Summarizes the samples of a profile and the markers of its timeline.
    pub fn new(profile: &Profile, diagnostics: &Diagnostics) -> Self {
        let timeline = profile.resolver.timeline();
        let facts = timeline.facts();
        let mut summary = TraceSummary {
            duration_ns: facts.duration_ns,
            processors: facts.processors,
            samples: profile.samples(),
            span_ns: profile.times.end - profile.times.start,
            sampled_ns: profile.time_ns().filter(|&ns| ns > 0),
            lost_events: diagnostics.lost_events(),
            saved_without: SavedWithout {
                samples: facts.lacks_samples,
                events: facts.lacks_events,
            },
            beyond_memory: beyond_memory(timeline),
            ..TraceSummary::default()
        };
        summary.add_process(profile);
        summary.add_samples(profile);
        summary.add_markers(timeline);
        summary
    }

    fn add_process(&mut self, profile: &Profile) {
        let timeline = profile.resolver.timeline();
        let mut samples: BTreeMap<ProcessIndex, u64> = BTreeMap::new();
        for entry in &profile.entries {
            if let Some(thread) = timeline.thread_view(entry.thread) {
                *samples.entry(thread.process).or_default() += entry.samples;
            }
        }
        self.other_processes = samples.len().saturating_sub(1);
        let hottest = samples
            .iter()
            .max_by_key(|&(process, samples)| (*samples, Reverse(*process)));
        let managed = || timeline.processes().find(|view| view.is_managed);
        let process = match hottest {
            Some((&process, _)) => timeline.process_view(process),
            None => managed(),
        };
        self.flag_is_reliable = process
            .as_ref()
            .is_some_and(|view| timeline.wall_flag(view.index) == Some(WallFlag::Trusted));
        if let Some(view) = process {
            self.process = view.name.map(str::to_owned);
            self.pid = view.pid;
            let counters = Counters::new(timeline, &Filter::default());
            self.cpu_usage = counters.cpu_usage(view.index);
            self.time_in_gc = counters.time_in_gc(view.index);
            self.pool_threads = counters.most_pool_threads(view.index);
            self.pool_queue = counters.longest_queue(view.index);
            self.runtime = (!view.runtimes.is_empty()).then(|| view.runtimes.join(", "));
        }
    }

    fn add_samples(&mut self, profile: &Profile) {
        if self.samples == 0 {
            let most = with_most_stacks(profile.resolver.timeline());
            self.stacks_of = most.map(EventTypeInfo::label);
            return;
        }
        let unit = WeightUnit::of(profile);
        let groups = FunctionGroups::new(&profile.resolver, false);
        let all = unit.total(profile).max(1) as f64;
        let share = |weight: u64| weight as f64 / all;
        let kinds = |is: fn(SampleKind) -> bool| profile.entries.iter().all(|it| is(it.kind));
        self.sample_kind = if kinds(|kind| kind == SampleKind::Cpu) {
            Some("cpu")
        } else if kinds(SampleKind::is_wall) {
            Some("wall")
        } else {
            Some("event")
        };
        let of = |activity: Activity| {
            let entries = profile.entries.iter().filter(|it| it.activity == activity);
            entries.fold(0, |sum: u64, it| sum.saturating_add(unit.weight(it)))
        };
        if self.sample_kind == Some("wall") {
            self.runnable = Some(share(of(Activity::Runnable)));
            self.blocked = Some(share(of(Activity::Blocked)));
            let is_blocked = |activity| activity == Activity::Blocked;
            self.blocked_in = hottest_leaf(profile, &groups, is_blocked);
        }
        let methods = user_methods_in(profile, &groups);
        let user = methods.iter().map(|it| it.total.weight(unit));
        self.user_code = Some(share(user.fold(0, u64::saturating_add)));
        let hottest = methods.into_iter().next();
        let hottest = hottest.filter(|it| it.total.weight(unit) > 0);
        self.hottest_share = hottest.as_ref().map(|it| share(it.total.weight(unit)));
        if hottest.is_none() {
            self.hottest_of_all =
                hottest_leaf(profile, &groups, |activity| activity != Activity::Blocked);
        }
        if let Some(hottest) = hottest.as_ref().filter(|it| it.position.is_none()) {
            self.no_lines = why_no_lines(profile, &groups, &hottest.label.name);
        }
        self.hottest = hottest;
        let mut unnamed: BTreeMap<&str, u64> = BTreeMap::new();
        for entry in &profile.entries {
            let leaf = profile.resolver.frame(profile.resolver.leaf(entry.stack));
            if leaf.name().is_err() {
                add(
                    unnamed
                        .entry(leaf.module().unwrap_or_default())
                        .or_default(),
                    unit.weight(entry),
                );
            }
        }
        self.unnamed = Some(share(
            unnamed.values().fold(0, |sum, &it| sum.saturating_add(it)),
        ));
        let most = unnamed
            .iter()
            .max_by_key(|&(name, weight)| (*weight, Reverse(*name)));
        let most = most.map(|(name, _)| (*name).to_owned());
        self.unnamed_module = most.filter(|name| !name.is_empty());
    }

    fn add_markers(&mut self, timeline: &Timeline) {
        let mut counts: FxHashMap<MarkerKind, (u64, u64)> = FxHashMap::default();
        let mut thrown: BTreeMap<&str, u64> = BTreeMap::new();
        let markers = timeline.markers();
        for marker in &markers {
            let (count, ns) = counts.entry(marker.kind).or_default();
            *count += 1;
            let length = marker.end_ns.unwrap_or(marker.start_ns) - marker.start_ns;
            *ns += length;
            if let (MarkerKind::Exception, Some(text)) = (marker.kind, marker.text) {
                let name = text.split_once(": ").map_or(text, |(name, _)| name);
                *thrown.entry(name).or_default() += 1;
            }
        }
        let suspensions = SuspensionTotals::of(timeline, &markers);
        let suspended = |passes: fn(&SuspensionTotals) -> bool| {
            let those = suspensions.iter().filter(|it| passes(it));
            those.fold((0, 0), |(count, ns), it| {
                (count + it.count, ns + it.time_ns)
            })
        };
        let of = |kind| {
            counts
                .get(&kind)
                .copied()
                .filter(|_| timeline.markers_left_out() == 0)
        };
        if let Some((count, _)) = of(MarkerKind::Collection) {
            self.collections = Some(count);
            let (pauses, ns) = suspended(|it| !it.by_sampler && it.cause.contains("collection"));
            self.collection_pause_ns = (pauses > 0).then_some(ns);
        }
        if let Some((count, ns)) = of(MarkerKind::Compilation) {
            (self.compiled, self.compilation_ns) = (Some(count), Some(ns));
        }
        if let Some((count, _)) = of(MarkerKind::Exception) {
            self.exceptions = Some(count);
            let most = thrown
                .iter()
                .max_by_key(|&(name, count)| (*count, Reverse(*name)));
            self.of_that_type = most.map(|(_, &count)| count);
            self.exception_type = most.map(|(name, _)| (*name).to_owned());
        }
        if let Some((count, ns)) = of(MarkerKind::Contention) {
            (self.contentions, self.contention_ns) = (Some(count), Some(ns));
        }
        if let (count @ 1.., ns) = suspended(|it| it.by_sampler) {
            (self.sampler_suspensions, self.sampler_ns) = (Some(count), Some(ns));
        }
    }

    /// Returns the sentences that the trace supports, at most eight. `trace` is its path in the
    /// commands that they contain.
    pub fn sentences(&self, trace: &str) -> Vec<String> {
        let all = self.ranked(trace).into_iter();
        all.map(|(_, sentence)| sentence).collect()
    }

    /// Returns the sentences, each with its rank: those of the highest rank matter least.
    fn ranked(&self, trace: &str) -> Vec<(u8, String)> {
        let all = [
            (0, Some(self.what_ran())),
            (0, self.what_is_too_little()),
            (0, self.where_user_code_spends_time()),
            (1, self.what_blocks()),
            (2, self.what_the_runtime_did()),
            (3, self.what_sampling_costs()),
            (0, self.what_is_missing()),
            (0, Some(self.what_is_next(trace))),
        ];
        let supported = all.into_iter();
        supported
            .filter_map(|(rank, sentence)| Some((rank, sentence?)))
            .collect()
    }

    fn what_ran(&self) -> String {
        let process = match (&self.process, self.pid) {
            (Some(name), Some(pid)) => format!("{name} (pid {pid})"),
            (Some(name), None) => name.clone(),
            (None, Some(pid)) => format!("Process {pid}"),
            (None, None) if self.duration_ns == 0 => return "The trace has no times.".to_owned(),
            (None, None) => return format!("The recording lasts {}.", show_span(self.duration_ns)),
        };
        let others = match self.other_processes {
            0 => String::new(),
            1 => " and one other process".to_owned(),
            n => format!(" and {n} other processes"),
        };
        let runtime = self.runtime.as_ref();
        let runtime = runtime.map_or(String::new(), |it| format!(" on {it}"));
        let lasts = match self.duration_ns {
            0 => String::new(),
            ns => format!("; {} recorded", show_span(ns)),
        };
        let span = self.span_ns.max(1) as f64;
        let used = match (self.sample_kind, self.sampled_ns, self.processors) {
            _ if self.is_small() => String::new(),
            (Some("cpu"), Some(ns), Some(processors)) => {
                format!(", {:.2} of {processors} CPUs used", ns as f64 / span)
            }
            (Some("wall"), _, Some(processors)) if self.cpu_usage.is_some() => {
                let used = self.cpu_usage.unwrap_or_default() * f64::from(processors) / 100.0;
                format!(", {used:.2} of {processors} CPUs used")
            }
            (Some("wall"), Some(ns), processors) if self.flag_is_reliable => {
                let runnable = ns as f64 / span * self.runnable.unwrap_or_default();
                let of = processors.map_or(String::new(), |n| format!(" on {n} CPUs"));
                format!(", {runnable:.1} threads runnable{of}")
            }
            _ => String::new(),
        };
        format!("{process}{others} ran{runtime}{lasts}{used}.")
    }

    /// Whether shares of the samples are hardly better than guesses.
    fn is_small(&self) -> bool {
        self.samples < 100
    }

    fn what_is_too_little(&self) -> Option<String> {
        let few = self.is_small() && self.samples > 0;
        few.then(|| {
            let samples = counted(self.samples, "sample");
            format!("The trace has only {samples}, too few for reliable shares.")
        })
    }

    fn where_user_code_spends_time(&self) -> Option<String> {
        let of = match self.sample_kind {
            Some("wall") => "thread time",
            Some("cpu") => "CPU time",
            _ => "events",
        };
        let (Some(hottest), Some(share)) = (&self.hottest, self.hottest_share) else {
            let method = fit(self.hottest_of_all.as_ref()?, Some(NAME));
            return Some(format!(
                "No user code was found on the stacks; the hottest method is {method}."
            ));
        };
        let at = hottest.position.as_ref();
        let at = at.map_or(String::new(), |at| format!(" ({})", at.text()));
        let user = self.user_code.unwrap_or_default();
        let label = hottest.label.text();
        Some(format!(
            "User code and the framework code it calls take {} of {of}; hottest is {}{at} with {}.",
            percent(user),
            fit(&label, Some(NAME)),
            percent(share)
        ))
    }

    fn what_blocks(&self) -> Option<String> {
        let share = self.blocked.filter(|&share| share >= 0.01)?;
        let method = fit(self.blocked_in.as_ref()?, Some(NAME));
        Some(format!(
            "Threads are blocked for {}, mostly in {method}: `chronosym top --waiting`.",
            percent(share)
        ))
    }

    fn what_the_runtime_did(&self) -> Option<String> {
        let mut parts = Vec::new();
        if let Some(count) = self.collections {
            let pause = self.collection_pause_ns;
            let pause = pause.map_or(String::new(), |ns| format!(" ({} paused)", show_span(ns)));
            parts.push(format!("{}{pause}", counted(count, "collection")));
        }
        if let Some(percent) = self.time_in_gc.filter(|&percent| percent >= 0.1) {
            parts.push(format!("{percent:.1} % of the time in collections"));
        }
        if let (Some(queue @ 1..), Some(threads)) = (self.pool_queue, self.pool_threads) {
            parts.push(format!(
                "up to {} waiting for the thread pool of up to {}",
                counted(queue, "work item"),
                counted(threads, "thread")
            ));
        }
        if let (Some(count), Some(ns)) = (self.compiled, self.compilation_ns) {
            let methods = counted(count, "method");
            parts.push(format!("{methods} compiled in {}", show_span(ns)));
        }
        if let Some(count) = self.exceptions {
            let most = self.exception_type.as_ref();
            let all = if self.of_that_type == self.exceptions {
                ""
            } else {
                "mostly "
            };
            let most = most.map_or(String::new(), |name| {
                let name = name.rsplit('.').next().unwrap_or(name);
                format!(" ({all}{})", fit(name, Some(NAME)))
            });
            parts.push(format!("{}{most}", counted(count, "exception")));
        }
        if let (Some(count), Some(ns)) = (self.contentions, self.contention_ns) {
            let waits = counted(count, "lock wait");
            parts.push(format!("{waits} of {}", show_span(ns)));
        }
        let parts = (!parts.is_empty()).then(|| parts.join(", "))?;
        let more = match self.saved_without.events {
            true => "",
            false => ": `chronosym runtime`",
        };
        Some(format!("The runtime had {parts}{more}."))
    }

    fn what_sampling_costs(&self) -> Option<String> {
        let (count, ns) = (self.sampler_suspensions?, self.sampler_ns?);
        let share = ns as f64 * 100.0 / self.duration_ns.max(1) as f64;
        (share >= 1.0).then(|| {
            format!(
                "Sampling itself stopped all threads {} times, {share:.0} % of the time.",
                show_count(count),
            )
        })
    }

    fn what_is_missing(&self) -> Option<String> {
        let mut parts = Vec::new();
        if let Some(reason) = self.no_lines {
            let why = match needs_file(reason) {
                true => "`chronosym symbols`",
                false => line_reason(reason).0,
            };
            parts.push(format!("the hottest method's source lines ({why})"));
        }
        if let Some(share) = self.unnamed.filter(|&share| share >= 0.01) {
            let of = percent(share);
            parts.push(match &self.unnamed_module {
                Some(module) => {
                    let module = fit(module, Some(NAME));
                    format!("the names of {of} of self, mostly in {module} (`chronosym symbols`)")
                }
                None => format!("the names of {of} of self (`chronosym info`)"),
            });
        }
        if self.lost_events > 0 {
            let lost = counted(self.lost_events, "lost event");
            parts.push(format!("{lost}, so that names may be uncertain"));
        }
        if self.samples > 0 && !self.beyond_memory.is_empty() {
            parts.push("what follows the memory limit (--max-memory raises it)".to_owned());
        }
        (!parts.is_empty()).then(|| format!("Missing: {}.", parts.join("; ")))
    }

    fn what_is_next(&self, trace: &str) -> String {
        let limit = self.beyond_memory;
        match (&self.hottest, &self.stacks_of) {
            (Some(hottest), _) if hottest.position.is_some() => format!(
                "Next: `chronosym lines {trace} '{}'` shows the time of its lines.",
                hottest.label.name
            ),
            _ if self.samples > 0 => format!(
                "Next: `chronosym top {trace}` lists the methods; `stacks -o app.html` instead of `top` writes a report."
            ),
            _ if self.saved_without.samples => format!(
                "The timeline was saved without samples. Next: `chronosym methods {trace}` lists its code; to see where time goes, save it again with --with-samples."
            ),
            (_, Some(event)) => format!(
                "The trace has no profiler samples{limit}. Next: `chronosym stacks --event '{event}' {trace}` shows the stacks of its events."
            ),
            _ => format!(
                "The trace has neither profiler samples nor stacks{limit}. Next: `chronosym events {trace}` prints its events; record with a sample profiler to see where time goes."
            ),
        }
    }

    /// Writes the sentences, wrapped at `width` columns, in at most ten lines if those that matter
    /// most fit: in a narrow terminal, or with long names, others are left out.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, trace: &str, width: usize, out: &mut impl Write) -> io::Result<()> {
        let shown = self.ranked(trace).into_iter();
        let mut shown: Vec<(u8, String)> = shown
            .map(|(rank, sentence)| (rank, wrap(&terminal(&sentence), width, "  ")))
            .collect();
        let lines = |(_, text): &(u8, String)| text.lines().count();
        while shown.iter().map(lines).sum::<usize>() > MOST_LINES {
            let ranks = shown.iter().enumerate().map(|(at, (rank, _))| (*rank, at));
            match ranks.max() {
                Some((1.., least)) => drop(shown.remove(least)),
                _ => break,
            }
        }
        for (_, text) in shown {
            writeln!(out, "{text}")?;
        }
        Ok(())
    }
}

/// A screen shows them with the command line and a prompt.
const MOST_LINES: usize = 10;

/// The columns of a name in a sentence: with the rest of the sentence it fits into two lines.
const NAME: usize = 60;

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Returns the type of events with the most stacks, except those that list code at the end of a
/// recording.
pub(crate) fn with_most_stacks(timeline: &Timeline) -> Option<&EventTypeInfo> {
    let types = timeline.event_types().iter();
    let types = types.filter(|it| it.stacks > 0 && !it.schema.provider_name().ends_with("Rundown"));
    types.min_by_key(|it| Reverse(it.stacks))
}

/// Returns the reason that most frames of a method without a line have.
fn why_no_lines(profile: &Profile, groups: &FunctionGroups, name: &str) -> Option<LineReason> {
    let frames = profile.resolver.frames().iter();
    let of = frames.filter(|frame| groups.label(groups.of_frame(frame)).name == name);
    let mut counts: BTreeMap<LineReason, u64> = BTreeMap::new();
    for reason in of.filter_map(|frame| frame.line.as_ref().err()) {
        *counts.entry(*reason).or_default() += 1;
    }
    let most = counts
        .into_iter()
        .max_by_key(|&(reason, count)| (count, Reverse(reason)));
    most.map(|(reason, _)| reason)
}

fn as_name<S: Serializer>(reason: &Option<LineReason>, out: S) -> Result<S::Ok, S::Error> {
    reason.map(LineReason::as_str).serialize(out)
}

/// Returns the leaf with the most weight among samples of certain activities.
fn hottest_leaf(
    profile: &Profile,
    groups: &FunctionGroups,
    passes: impl Fn(Activity) -> bool,
) -> Option<String> {
    let resolver = &profile.resolver;
    let unit = WeightUnit::of(profile);
    let mut weights: FxHashMap<usize, u64> = FxHashMap::default();
    for entry in profile.entries.iter().filter(|it| passes(it.activity)) {
        let leaf = resolver.frame(resolver.leaf(entry.stack));
        *weights.entry(groups.of_frame(leaf)).or_default() += unit.weight(entry);
    }
    let hottest = weights.into_iter().filter(|&(_, weight)| weight > 0);
    let hottest =
        hottest.max_by_key(|&(group, weight)| (weight, Reverse(groups.label(group).name)));
    hottest.map(|(group, _)| groups.label(group).text())
}
