//! The report of garbage collections.

use std::collections::BTreeMap;
use std::io::{self, Write};

use chronosym_runtime::{Collection, Collections, GenerationTotals, Percentiles, Report};
use serde::ser::SerializeMap;

use super::context::{Context, Durations, Notes, show_percentiles};
use super::grid::{Grid, ms, or_unknown, sentence};
use super::sites::Site;
use crate::object::{Fields, Object};
use crate::table::TableOptions;
use crate::units::{counted, show_count, show_rounded, show_time};

#[derive(Debug)]
pub(crate) struct GcView {
    rows: Vec<Row>,
    generations: BTreeMap<Option<u32>, GenerationTotals>,
    pauses: Option<Percentiles>,
    suspending_ns: u64,
    waited_ns: u64,
    /// By reason.
    others: BTreeMap<String, Percentiles>,
    duration_ns: u64,
    notes: Notes,
}

#[derive(Debug)]
struct Row {
    of: Collection,
    pid: Option<u32>,
    trigger: Option<Site>,
}

impl GcView {
    pub fn new(context: &mut Context) -> Self {
        let gc = Collections::new(&context.timeline, &context.filter);
        let (generations, notes) = (gc.generations(), context.notes(&gc.unused));
        let mut others: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for suspension in &gc.others.list {
            let reason = suspension
                .reason
                .map_or("?".to_owned(), |it| it.to_string());
            others
                .entry(reason)
                .or_default()
                .push(suspension.duration_ns());
        }
        let others = others.into_iter();
        let row = |of: Collection| Row {
            pid: context.pid(of.process),
            trigger: context.site(
                of.process,
                of.trigger_stack,
                of.trigger_ns.unwrap_or(of.start_ns),
            ),
            of,
        };
        GcView {
            generations,
            pauses: gc.pauses.percentiles(),
            suspending_ns: gc.pauses.suspending_ns(),
            waited_ns: gc.pauses.waited_ns(),
            others: others
                .filter_map(|(reason, ns)| Some((reason, Percentiles::new(ns)?)))
                .collect(),
            rows: gc.collections.into_iter().map(row).collect(),
            duration_ns: context.timeline.facts().duration_ns,
            notes,
        }
    }

    pub fn write(&self, options: TableOptions, out: &mut impl Write) -> io::Result<()> {
        match &self.pauses {
            _ if self.rows.is_empty() => sentence(&self.notes.nothing(Report::Gc), options, out)?,
            None => {
                let count = counted(self.rows.len() as u64, "garbage collection");
                let text =
                    format!("{count}; the trace has no suspension events, so pauses are unknown");
                sentence(&text, options, out)?;
            }
            Some(pauses) => {
                let share = pauses.total_ns as f64 * 100.0 / self.duration_ns.max(1) as f64;
                let text = format!(
                    "{}, {} of {} ms in total: {share:.1}% of the trace; {} ms of that until all \
                     threads were suspended",
                    counted(self.rows.len() as u64, "garbage collection"),
                    counted(pauses.count, "pause"),
                    ms(pauses.total_ns),
                    ms(self.suspending_ns),
                );
                sentence(&text, options, out)?;
                let text = format!("pauses: {} (nearest rank)", show_percentiles(pauses));
                sentence(&text, options, out)?;
            }
        }
        if let Some(text) = self.server_heaps() {
            sentence(&text, options, out)?;
        }
        if self.waited_ns > 0 {
            let text = format!(
                "before that, collections waited {} ms for suspensions of others to end",
                ms(self.waited_ns)
            );
            sentence(&text, options, out)?;
        }
        for (reason, of) in &self.others {
            let text = format!(
                "suspended for another reason: {} {reason}, {} ms in total",
                counted(of.count, "time"),
                ms(of.total_ns)
            );
            sentence(&text, options, out)?;
        }
        let mut grid = Grid::new(
            [
                "gen",
                "count",
                "background",
                "induced",
                "pause ms",
                "longest ms",
                "promoted",
            ],
            usize::MAX,
        );
        for (generation, of) in &self.generations {
            grid.row(|| {
                [
                    or_unknown(*generation, |it| it.to_string()),
                    show_count(of.count),
                    show_count(of.background),
                    show_count(of.induced),
                    ms(of.pause_ns),
                    ms(of.max_pause_ns),
                    show_rounded(of.promoted),
                ]
            });
        }
        grid.write(options, out)?;
        let mut grid = Grid::new(
            [
                "start",
                "number",
                "gen",
                "pause ms",
                "suspend ms",
                "promoted",
                "heap after",
                "gen0",
                "gen1",
                "gen2",
                "LOH",
                "POH",
                "type",
                "reason, and where it was triggered",
            ],
            options.max_lines,
        );
        for row in &self.rows {
            grid.row(|| row.cells());
        }
        grid.write(options, out)?;
        self.notes.write(options, out)
    }

    /// Returns a sentence on the heaps of server GC; `None` if no collection has several.
    fn server_heaps(&self) -> Option<String> {
        let mut last = self.rows.iter().rev();
        let of = &last.find(|row| row.of.heaps > Some(1))?.of;
        let heaps = counted(of.heaps?.into(), "heap");
        let least = of.heap_sizes.iter().min().zip(of.heap_sizes.iter().max());
        let sizes = least.map_or(String::new(), |(&least, &most)| {
            let [least, most] = [least, most].map(show_rounded);
            format!(
                ", of {least} to {most} bytes after collection {}",
                of.number
            )
        });
        Some(format!("server GC: {heaps}{sizes}"))
    }
}

impl Row {
    fn cells(&self) -> [String; 14] {
        let of = &self.of;
        let heap = |of_heap: &dyn Fn(&chronosym_runtime::HeapStats) -> u64| {
            or_unknown(of.heap.as_ref(), |heap| show_rounded(of_heap(heap)))
        };
        let mut reason = or_unknown(of.reason, |it| it.to_string());
        if self.trigger.is_some() {
            reason.push_str(&format!(", {}", Site::show(&self.trigger)));
        }
        [
            show_time(of.start_ns),
            of.number.to_string(),
            or_unknown(of.generation, |it| it.to_string()),
            or_unknown(of.pause_ns, ms),
            or_unknown(of.suspending_ns, ms),
            heap(&|heap| heap.total_promoted()),
            heap(&|heap| heap.size()),
            heap(&|heap| heap.sizes[0]),
            heap(&|heap| heap.sizes[1]),
            heap(&|heap| heap.sizes[2]),
            heap(&|heap| heap.sizes[3]),
            heap(&|heap| heap.sizes[4]),
            or_unknown(of.kind, |it| it.to_string()),
            reason,
        ]
    }
}

impl Fields for GcView {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        object
            .field("report", Report::Gc.as_str())
            .some(
                "record",
                self.rows.is_empty().then(|| Report::Gc.provider()),
            )
            .object("pauses", self.pauses.as_ref().map(Durations).as_ref())
            .some("suspending_ns", self.pauses.map(|_| self.suspending_ns))
            .some("waited_ns", self.pauses.map(|_| self.waited_ns));
        object
            .objects("other_suspensions", self.others.iter().map(Other))
            .objects("generations", self.generations.iter().map(Generation))
            .objects("collections", &self.rows)
            .object("unused", Some(&self.notes));
    }
}

struct Other<'a>((&'a String, &'a Percentiles));

impl Fields for Other<'_> {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        object
            .field("reason", self.0.0)
            .fields_of(&Durations(self.0.1));
    }
}

struct Generation<'a>((&'a Option<u32>, &'a GenerationTotals));

impl Fields for Generation<'_> {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        let (generation, of) = self.0;
        object
            .some("generation", *generation)
            .field("count", of.count)
            .field("background", of.background)
            .field("induced", of.induced)
            .field("pause_ns", of.pause_ns)
            .field("max_pause_ns", of.max_pause_ns)
            .field("without_pause", of.without_pause)
            .field("promoted", of.promoted);
    }
}

impl Fields for Row {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        let of = &self.of;
        object
            .some("pid", self.pid)
            .field("number", of.number)
            .some("generation", of.generation)
            .some("reason", of.reason.map(|it| it.to_string()))
            .some("type", of.kind.map(|it| it.to_string()))
            .field("start_ns", of.start_ns)
            .some("end_ns", of.end_ns)
            .some("pause_ns", of.pause_ns)
            .some("suspending_ns", of.suspending_ns)
            .some("promoted", of.heap.map(|heap| heap.total_promoted()))
            .some("heap_size", of.heap.map(|heap| heap.size()))
            .some("sizes", of.heap.map(|heap| heap.sizes))
            .some("heaps", of.heaps)
            .some(
                "heap_sizes",
                Some(&of.heap_sizes).filter(|sizes| !sizes.is_empty()),
            )
            .some("pinned_objects", of.heap.map(|heap| heap.pinned_objects))
            .some("handles", of.heap.map(|heap| heap.handles))
            .some("trigger_reason", of.trigger.map(|it| it.to_string()))
            .object("trigger", self.trigger.as_ref());
    }
}
