//! Shared by commands that use samples.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};
use chronosym::runtime::{
    JitDecisions, keep_counters, keep_for_durations, keep_tasks, weigh_by_duration,
};
use chronosym::symbols::Symbolizer;
use chronosym::{Filter, LimitReached, Options, Profile, Resolver, SampleSelection};
use chronosym_export::{
    AsyncStacks, CallTree, CandidateInlinees, Granularity, JsonStacks, Pattern, Series, Shape,
    TableOptions, TreeOptions, Wakers, WeightUnit, to_record,
};

use chronosym_symbols::store::SearchLocation;

use crate::args::{ActivityChoice, Filters, InfoFormat, OfTrace, Selection, Symbols};
use crate::load::{self, Loaded};
use crate::{absent, emptied, limits, output, progress, symbolizer};

const NO_CANDIDATES: &str = "no event of the JIT states inlined methods that call others; record with `chronosym record --profile inlining` (docs/runtime.md)";

/// The samples of traces: filter, shape and symbols.
pub struct Sampled {
    pub loaded: Loaded,
    pub symbols: Arc<Symbolizer>,
    pub filter: Filter,
    pub shape: Shape,
    selection: Selection,
    /// Whether symbol servers may be queried.
    may_fetch: bool,
    /// Set once patterns without effect were reported.
    noted: OnceCell<()>,
    /// Whether unknown callers of async methods were reported.
    async_noted: OnceCell<()>,
}

impl Sampled {
    /// Reads traces of one recording with at most `markers` marker events, and reports diagnostics.
    pub fn read(
        traces: &[PathBuf],
        symbols: &Symbols,
        selection: &Selection,
        markers: usize,
    ) -> Result<Self> {
        let mut options = Options::default();
        options.markers = markers;
        let sampled = Self::read_with(traces, symbols, selection, options)?;
        sampled.check_samples()?;
        Ok(sampled)
    }

    /// Rejects a timeline that was saved without samples.
    pub fn check_samples(&self) -> Result<()> {
        if self.loaded.timeline.facts().lacks_samples {
            bail!("the timeline was saved without samples: save it again with --with-samples");
        }
        Ok(())
    }

    /// As [`Sampled::read`], with options whose samples are those of the selection.
    pub fn read_with(
        traces: &[PathBuf],
        symbols: &Symbols,
        selection: &Selection,
        mut options: Options,
    ) -> Result<Self> {
        let mut shape = selection.shaping.shape()?;
        let (filters, samples) = (&selection.filters, &selection.samples);
        absent::refuse_empty_span(&filters.processes)?;
        if samples.managed_only {
            progress::hint("--managed-only is deprecated: use --running");
        }
        options.samples = match filters.event.as_slice() {
            [] => SampleSelection::Profilers,
            events => SampleSelection::Events(events.to_vec()),
        };
        options.switches = samples.activity.is_some();
        options.activity_ids = samples.activity_ids;
        keep_for_durations(&mut options);
        keep_counters(&mut options);
        if samples.async_chains {
            keep_tasks(&mut options);
        }
        if selection.shaping.approximate_inlines {
            JitDecisions::keep(&mut options);
        }
        options.times = stored_times(traces, &filters.processes, &options);
        options.skip_outside &= is_filtered_by_time_only(selection);
        let mut loaded = load::load(traces, options.clone(), symbols)?;
        // Why there is no sample may depend on those outside.
        let is_empty = || loaded.timeline.samples().iter().next().is_none();
        if !loaded.timeline.has_whole_window() || options.skip_outside && is_empty() {
            options.times = None;
            loaded = load::load(traces, options, symbols)?;
        }
        if let (false, Some(timeline)) =
            (filters.event.is_empty(), Arc::get_mut(&mut loaded.timeline))
            && let Some(report) = weigh_by_duration(timeline)
        {
            progress::hint(&format!(
                "the trace has no events that end what the selected ones start, so that durations are unknown; to record them: {}",
                to_record(report, timeline)
            ));
        }
        progress::notes(&loaded.diagnostics.list);
        absent::refuse(filters, &loaded.timeline)?;
        let may_fetch = crate::symbols::config(symbols)?.may_fetch();
        let symbols = symbolizer::open(symbols, &loaded)?;
        let mut filter = load::filter(&filters.processes, &loaded.timeline)?;
        filter.tid = filters.tid;
        filter.activity = samples.activity();
        filter.idle = samples.idle;
        if selection.shaping.approximate_inlines {
            let candidates = CandidateInlinees::new(&loaded.timeline, &filter);
            if candidates.is_empty() {
                progress::hint(NO_CANDIDATES);
            }
            shape = shape.candidate_inlinees(candidates);
        }
        Ok(Sampled {
            loaded,
            symbols,
            filter,
            shape,
            selection: selection.clone(),
            may_fetch,
            noted: OnceCell::new(),
            async_noted: OnceCell::new(),
        })
    }

    /// Returns whether the thread of any sample carried an activity.
    pub fn has_activities(&self) -> bool {
        let (timeline, mut found) = (&self.loaded.timeline, false);
        timeline.for_each_sample(&self.filter, |class, time_ns| {
            found |= timeline.activity_id_at(class.thread, time_ns).is_some();
        });
        found
    }

    /// States which filter leaves no sample.
    pub fn note_empty(&self) {
        let timeline = &self.loaded.timeline;
        progress::hint(&emptied::reason(&self.selection, &self.filter, timeline));
    }

    /// Returns the profile.
    pub fn profile(&self) -> Profile {
        let symbols = self.symbols.clone();
        let timeline = &self.loaded.timeline;
        let mut async_stacks = self.async_stacks();
        let mut profile = match &mut async_stacks {
            Some(stacks) => stacks.profile(timeline, &self.filter, Some(symbols)),
            None => timeline.profile(&self.filter, Some(symbols)),
        };
        self.note_async(async_stacks.as_ref());
        note_limit(profile.resolver.limit());
        if self.may_fetch {
            self.note_servers(&profile);
        }
        self.note_unmatched(&profile.resolver);
        self.shape.apply(&mut profile);
        profile
    }

    /// Reports patterns of modules that match none.
    fn note_unmatched(&self, resolver: &Resolver) {
        self.noted.get_or_init(|| {
            for pattern in self.shape.unmatched_modules(resolver) {
                progress::note(&format!(
                    "no module on a stack matches --my-modules {pattern}; `chronosym top --by module TRACE` lists them"
                ));
            }
        });
    }

    /// Returns the logical callers of async methods, if they are requested.
    fn async_stacks(&self) -> Option<AsyncStacks> {
        let events = &self.selection.filters.event;
        let is_selected = |schema: &_| events.iter().any(|event| event.matches(schema));
        self.selection
            .samples
            .async_chains
            .then(|| AsyncStacks::new(&self.loaded.timeline, is_selected))
    }

    /// Reports once what is unknown of logical callers.
    fn note_async(&self, stacks: Option<&AsyncStacks>) {
        let Some(stacks) = stacks else { return };
        self.async_noted.get_or_init(|| {
            if !stacks.has_tasks() {
                progress::hint(
                    "the trace has no events about tasks, so that callers of resumed async methods are unknown; record with `chronosym record --profile async`",
                );
            }
            let of = stacks.joined + stacks.without_caller + stacks.contradicted;
            for (count, what) in [
                (stacks.without_caller, "have no recorded caller"),
                (
                    stacks.contradicted,
                    "do not show the task that their thread executed",
                ),
            ] {
                if count > 0 {
                    progress::note(&format!("{count} of {of} samples of tasks {what}"));
                }
            }
        });
    }

    /// Writes the samples as JSON lines; returns their number.
    pub fn write_json_lines(&self, stacks: JsonStacks, out: &mut impl Write) -> io::Result<u64> {
        let mut async_stacks = self.async_stacks();
        let written = chronosym_export::write_json_lines(
            &self.loaded.timeline,
            &self.filter,
            Some(self.symbols.clone()),
            &self.shape,
            stacks,
            async_stacks.as_mut(),
            out,
        );
        self.note_async(async_stacks.as_ref());
        written
    }

    /// Reports symbol servers that failed, once each.
    fn note_servers(&self, profile: &Profile) {
        let mut reported = BTreeSet::new();
        for missing in self.symbols.missing(profile) {
            for attempt in missing.file.attempts {
                let (SearchLocation::Url(url), Some(why)) =
                    (attempt.location, attempt.result.trouble())
                else {
                    continue;
                };
                let host = url
                    .match_indices('/')
                    .nth(2)
                    .map_or(url.len(), |(at, _)| at);
                let server = &url[..host];
                if reported.insert(server.to_owned()) {
                    progress::note(&format!(
                        "the symbol server {server} failed: {why}; `chronosym symbols TRACE` lists the files that are missing"
                    ));
                }
            }
        }
    }

    /// Returns the profile as text and pictures present it, unless `raw`: without plumbing of async
    /// methods, and with time in which threads wait for a suspension as their callers'. A note states
    /// how much that is.
    pub fn presented(&self, raw: bool) -> (Profile, Option<String>) {
        let mut profile = self.profile();
        if raw {
            return (profile, None);
        }
        let unit = WeightUnit::of(&profile);
        let charged = chronosym_export::charge_helpers(&mut profile).weight(unit);
        chronosym_export::fold_plumbing(&mut profile);
        let share = charged as f64 * 100.0 / unit.total(&profile).max(1) as f64;
        let note = format!(
            "{share:.1}% of self was spent waiting for suspensions (Thread.PollGC) and is charged to the callers; --raw shows it separately"
        );
        (profile, (share >= 0.1).then_some(note))
    }

    /// Returns the wake-ups that ended waits of a method, and a note on waits without one.
    fn wakers(&self, method: &Pattern, raw: bool) -> (Profile, Option<String>) {
        let symbols = self.symbols.clone();
        let wakers = Wakers::of(&self.loaded.timeline, &self.filter, Some(symbols), method);
        let Wakers {
            mut profile,
            waits,
            wait_ns,
            ..
        } = wakers;
        note_limit(profile.resolver.limit());
        let (woken, woken_ns) = (profile.samples(), profile.time_ns().unwrap_or(0));
        let has_switches = !self.loaded.timeline.thread_times().is_empty();
        if woken == 0 {
            progress::hint(&match (has_switches, waits) {
                (false, _) => {
                    "the trace has no context switches; docs/time.md says how to record them"
                        .to_owned()
                }
                (true, 0) => format!(
                    "no wait has a method that matches '{method}'; `chronosym top --activity blocked TRACE` lists the methods"
                ),
                (true, _) => format!(
                    "no wake-up with a stack is recorded for {waits} waits ({}); record sched:sched_waking or ReadyThread with stacks",
                    ms(wait_ns)
                ),
            });
        }
        self.shape.apply(&mut profile);
        if !raw {
            chronosym_export::fold_plumbing(&mut profile);
        }
        let missing = (woken > 0 && waits > woken).then(|| {
            format!(
                "{} of {waits} waits ({} of {}) have no recorded wake-up",
                waits - woken,
                ms(wait_ns.saturating_sub(woken_ns)),
                ms(wait_ns)
            )
        });
        (profile, missing)
    }

    /// Returns the profile of numbers of samples, without times and bytes.
    pub fn counts(&self) -> Profile {
        let symbols = self.symbols.clone();
        let mut profile = self.loaded.timeline.counts(&self.filter, Some(symbols));
        note_limit(profile.resolver.limit());
        self.note_unmatched(&profile.resolver);
        self.shape.apply(&mut profile);
        profile
    }

    /// Returns the samples in time order.
    pub fn series(&self, granularity: Granularity) -> Series {
        let mut async_stacks = self.async_stacks();
        let series = Series::new(
            &self.loaded.timeline,
            &self.filter,
            Some(self.symbols.clone()),
            &self.shape,
            granularity,
            async_stacks.as_mut(),
        );
        self.note_async(async_stacks.as_ref());
        self.note_unmatched(&series.resolver);
        series
    }
}

/// Reports that no sample has an activity by the ids of events.
pub fn note_no_activities() {
    progress::hint(
        "no sample was taken between events of its thread that state the same activity id; record an EventSource that starts and stops activities, and events about tasks, such as `chronosym record --profile async --providers Microsoft-AspNetCore-Hosting` (docs/time.md)",
    );
}

/// Returns the times whose samples suffice, if a part of them does. Markers need all samples, and so
/// do durations of events; a pipe cannot be read again if the times do not suffice.
fn stored_times(traces: &[PathBuf], filters: &Filters, options: &Options) -> Option<Range<u64>> {
    let is_limited = filters.from.is_some() || filters.to.is_some();
    let of_profilers = matches!(options.samples, SampleSelection::Profilers);
    let is_kept = |path: &PathBuf| path.is_file() || path.is_dir();
    let suffices = is_limited && of_profilers && options.markers == 0;
    (suffices && traces.iter().all(is_kept))
        .then(|| filters.from.unwrap_or(0)..filters.to.unwrap_or(u64::MAX))
}

/// Returns whether samples are selected by their time and stack only.
fn is_filtered_by_time_only(selection: &Selection) -> bool {
    let (filters, samples) = (&selection.filters, &selection.samples);
    let by_process = filters.processes.pid.is_some() || filters.processes.process.is_some();
    !by_process && filters.tid.is_none() && samples.activity().is_none()
}

/// Returns a time in ms.
fn ms(ns: u64) -> String {
    format!("{:.1} ms", ns as f64 / 1e6)
}

/// Reports that frames were left out.
pub fn note_limit(limit: Option<LimitReached>) {
    if let Some(limit) = limit {
        progress::note(&format!(
            "{limit}: frames beyond it are `[left out: --max-memory]`"
        ));
    }
}

/// Returns the call tree of a profile, and reports what was left out.
pub fn tree(profile: &Profile, mut options: TreeOptions) -> CallTree {
    options.max_nodes = limits::get().tree_nodes;
    let tree = CallTree::new(profile, options);
    if let Some(limit) = tree.limit() {
        let (count, all) = (tree.left_out(), profile.samples());
        progress::note(&format!(
            "{limit}: the innermost frames of {count} of {all} samples are left out"
        ));
    }
    tree
}

/// Returns the profile of a trace, its symbols, and a note on how it is presented.
pub fn profile(args: &OfTrace) -> Result<(Profile, Arc<Symbolizer>, Option<String>)> {
    profile_of(args, &args.selection)
}

/// As [`profile`], of these samples.
pub fn profile_of(
    args: &OfTrace,
    selection: &Selection,
) -> Result<(Profile, Arc<Symbolizer>, Option<String>)> {
    let input = &args.input;
    let raw = args.selection.samples.raw || args.format != InfoFormat::Text;
    let symbols = input.symbols.spelled(!raw);
    if let Some(method) = &args.wakers {
        let mut selection = args.selection.clone();
        selection.samples.activity = Some(ActivityChoice::Blocked);
        let sampled = Sampled::read(&input.traces, &symbols, &selection, 0)?;
        let (profile, note) = sampled.wakers(method, raw);
        return Ok((profile, sampled.symbols, note));
    }
    let sampled = Sampled::read(&input.traces, &symbols, selection, 0)?;
    let (profile, note) = sampled.presented(raw);
    if profile.entries.is_empty() {
        sampled.note_empty();
    }
    Ok((profile, sampled.symbols, note))
}

/// Returns the size and style of a table.
pub fn shown(max_lines: usize, output: Option<&Path>) -> TableOptions {
    TableOptions {
        max_lines,
        width: output::width(output),
        color: output::is_coloured(output),
    }
}

/// Writes a note below a table, wrapped at `width` columns.
pub fn write_note(
    note: Option<&str>,
    width: Option<usize>,
    out: &mut impl Write,
) -> io::Result<()> {
    match (note, width) {
        (None, _) => Ok(()),
        (Some(note), Some(width)) => {
            writeln!(
                out,
                "\n{}",
                chronosym_export::wrap(note, width.max(20), "  ")
            )
        }
        (Some(note), None) => writeln!(out, "\n{note}"),
    }
}
