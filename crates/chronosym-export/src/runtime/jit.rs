//! The report of compilations.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

use chronosym_runtime::{Jit, JittedMethod, Report, ThreadJit};
use serde::ser::SerializeMap;

use super::context::{Context, Durations, Notes, show_percentiles};
use super::grid::{Grid, ms, or_unknown, sentence};
use crate::object::{Fields, Object};
use crate::table::TableOptions;
use crate::units::{counted, show_count, show_time};

#[derive(Debug)]
pub(crate) struct JitView {
    /// Longest compilation first.
    methods: Vec<Method>,
    threads: Vec<Thread>,
    tiers: BTreeMap<String, TierTotals>,
    steady_ns: Option<u64>,
    jit: Jit,
    notes: Notes,
}

#[derive(Debug)]
struct Method {
    pid: Option<u32>,
    tid: u64,
    of: JittedMethod,
}

#[derive(Debug)]
struct Thread {
    tid: u64,
    name: Option<String>,
    of: ThreadJit,
}

#[derive(Debug, Default)]
struct TierTotals {
    methods: u64,
    il_size: u64,
    native_size: u64,
    duration_ns: u64,
    /// Bodies without a duration.
    untimed: u64,
}

impl JitView {
    pub fn new(context: &mut Context) -> Self {
        let mut jit = Jit::new(&context.timeline, &context.filter);
        let mut tiers: BTreeMap<String, TierTotals> = BTreeMap::new();
        for method in &jit.methods {
            let of = tiers.entry(tier(method)).or_default();
            of.methods += 1;
            of.il_size += u64::from(method.il_size.unwrap_or(0));
            of.native_size += u64::from(method.native_size);
            of.duration_ns += method.duration_ns.unwrap_or(0);
            of.untimed += u64::from(method.duration_ns.is_none());
        }
        let thread = |of: ThreadJit| Thread {
            tid: context.tid(of.thread),
            name: context
                .timeline
                .thread_view(of.thread)
                .and_then(|thread| thread.name.map(str::to_owned)),
            of,
        };
        let steady_ns = jit.steady_ns();
        let method = |of: JittedMethod| Method {
            pid: context.pid(of.process),
            tid: context.tid(of.thread),
            of,
        };
        let threads = std::mem::take(&mut jit.threads);
        let methods = std::mem::take(&mut jit.methods);
        let mut methods: Vec<Method> = methods.into_iter().map(method).collect();
        methods.sort_by_key(|it| Reverse(it.of.duration_ns));
        JitView {
            methods,
            threads: threads.into_iter().map(thread).collect(),
            tiers,
            steady_ns,
            notes: context.notes(&jit.unused),
            jit,
        }
    }

    fn duration_ns(&self) -> u64 {
        let known = self.methods.iter().filter_map(|it| it.of.duration_ns);
        known.fold(0, u64::saturating_add)
    }

    fn rejected(&self) -> usize {
        self.methods.iter().filter(|it| it.of.rejected).count()
    }

    fn is_empty(&self) -> bool {
        let lookups = &self.jit.lookups;
        self.methods.is_empty() && lookups.found + lookups.not_found == 0
    }

    pub fn write(&self, options: TableOptions, out: &mut impl Write) -> io::Result<()> {
        if self.is_empty() {
            sentence(&self.notes.nothing(Report::Jit), options, out)?;
            return self.notes.write(options, out);
        }
        let timed = self.methods.iter().filter(|it| it.of.duration_ns.is_some());
        let timed = timed.count();
        let mut text = format!(
            "{} compiled, {} with a known duration: {} ms in total",
            counted(self.methods.len() as u64, "method"),
            show_count(timed as u64),
            ms(self.duration_ns())
        );
        if timed == 0 {
            text = format!(
                "{} compiled; durations need MethodJittingStarted events: dotnet-trace collect \
                 --providers {}",
                counted(self.methods.len() as u64, "method"),
                Report::Jit.provider()
            );
        }
        sentence(&text, options, out)?;
        if let Some(steady) = self.steady_ns {
            let text = format!(
                "steady state after {}: 95% of the total JIT time in this trace",
                show_time(steady)
            );
            sentence(&text, options, out)?;
        }
        self.write_precompiled(options, out)?;
        let mut grid = Grid::new(
            [
                "methods",
                "ms",
                "untimed",
                "IL bytes",
                "native bytes",
                "tier",
            ],
            usize::MAX,
        );
        for (tier, of) in &self.tiers {
            grid.row(|| {
                [
                    show_count(of.methods),
                    ms(of.duration_ns),
                    show_count(of.untimed),
                    show_count(of.il_size),
                    show_count(of.native_size),
                    tier.clone(),
                ]
            });
        }
        grid.write(options, out)?;
        let mut grid = Grid::new(["methods", "ms", "thread", ""], options.max_lines.min(10));
        for thread in &self.threads {
            grid.row(|| {
                [
                    show_count(thread.of.methods),
                    ms(thread.of.duration_ns),
                    thread.tid.to_string(),
                    thread.name.clone().unwrap_or_default(),
                ]
            });
        }
        grid.write(options, out)?;
        let mut grid = Grid::new(
            ["ms", "IL", "native", "ready", "thread", "tier", "method"],
            options.max_lines,
        );
        for method in &self.methods {
            grid.row(|| {
                [
                    or_unknown(method.of.duration_ns, ms),
                    or_unknown(method.of.il_size, |it| it.to_string()),
                    method.of.native_size.to_string(),
                    show_time(method.of.load_ns),
                    method.tid.to_string(),
                    tier(&method.of),
                    name(&method.of),
                ]
            });
        }
        grid.write(options, out)?;
        self.notes.write(options, out)
    }

    fn write_precompiled(&self, options: TableOptions, out: &mut impl Write) -> io::Result<()> {
        let lookups = &self.jit.lookups;
        if lookups.found + lookups.not_found > 0 {
            let text = format!(
                "{} of ReadyToRun code: {} found, {} not",
                counted(lookups.found + lookups.not_found, "lookup"),
                show_count(lookups.found),
                show_count(lookups.not_found)
            );
            sentence(&text, options, out)?;
        }
        if let Some(of) = &lookups.durations {
            let text = format!(
                "{} of known duration, {} ms in total: {}",
                counted(of.count, "lookup"),
                ms(of.total_ns),
                show_percentiles(of)
            );
            sentence(&text, options, out)?;
        }
        match self.rejected() {
            0 => Ok(()),
            rejected => {
                let text = format!(
                    "{} compiled methods had precompiled code that was rejected",
                    show_count(rejected as u64)
                );
                sentence(&text, options, out)
            }
        }
    }
}

fn tier(method: &JittedMethod) -> String {
    match method.tier {
        Some(tier) => tier.to_string(),
        None if method.is_dynamic => "dynamic".to_owned(),
        None => "?".to_owned(),
    }
}

fn name(method: &JittedMethod) -> String {
    let name = method.name.as_deref();
    name.map_or_else(|| format!("method {:#x}", method.method_id), str::to_owned)
}

impl Fields for JitView {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        let lookups = &self.jit.lookups;
        object
            .field("report", Report::Jit.as_str())
            .some("record", self.is_empty().then(|| Report::Jit.provider()))
            .field("duration_ns", self.duration_ns())
            .some("steady_ns", self.steady_ns)
            .field("r2r_found", lookups.found)
            .field("r2r_not_found", lookups.not_found)
            .field("r2r_rejected", self.rejected())
            .object(
                "r2r_lookups",
                lookups.durations.as_ref().map(Durations).as_ref(),
            )
            .objects("tiers", self.tiers.iter().map(Tier))
            .objects("threads", &self.threads)
            .objects("methods", &self.methods)
            .object("unused", Some(&self.notes));
    }
}

struct Tier<'a>((&'a String, &'a TierTotals));

impl Fields for Tier<'_> {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        let (tier, of) = self.0;
        object
            .field("tier", tier)
            .field("methods", of.methods)
            .field("untimed", of.untimed)
            .field("duration_ns", of.duration_ns)
            .field("il_size", of.il_size)
            .field("native_size", of.native_size);
    }
}

impl Fields for Thread {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        object
            .field("tid", self.tid)
            .some("name", self.name.as_deref())
            .field("methods", self.of.methods)
            .field("duration_ns", self.of.duration_ns);
    }
}

impl Fields for Method {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        let of = &self.of;
        object
            .some("pid", self.pid)
            .field("tid", self.tid)
            .shown("method_id", format_args!("{:#x}", of.method_id))
            .some("name", of.name.as_deref())
            .some("signature", of.signature.as_deref())
            .some("tier", of.tier.map(|tier| tier.to_string()))
            .flag("dynamic", of.is_dynamic)
            .flag("rejected_precompiled", of.rejected)
            .some("il_size", of.il_size)
            .field("native_size", of.native_size)
            .field("load_ns", of.load_ns)
            .some("duration_ns", of.duration_ns);
    }
}
