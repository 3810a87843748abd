//! The report of EventCounters.

use std::io::{self, Write};

use chronosym_runtime::{Counter, CounterKind, CounterValue, Counters, Report};
use serde::ser::SerializeMap;

use super::context::{Context, Notes};
use super::grid::{Grid, or_unknown, sentence};
use crate::counter_line::capacity;
use crate::object::{Fields, Object};
use crate::table::TableOptions;
use crate::units::counted;

#[derive(Debug)]
pub(crate) struct CountersView {
    rows: Vec<Row>,
    processors: Option<u32>,
    notes: Notes,
}

#[derive(Debug)]
struct Row {
    pid: Option<u32>,
    of: Counter,
}

impl CountersView {
    pub fn new(context: &mut Context) -> Self {
        let all = Counters::new(&context.timeline, &context.filter);
        let notes = context.notes(&all.unused);
        let rows = all.counters.into_iter().map(|of| Row {
            pid: context.pid(of.process),
            of,
        });
        CountersView {
            rows: rows.collect(),
            processors: context.timeline.facts().processors,
            notes,
        }
    }

    pub fn write(&self, options: TableOptions, out: &mut impl Write) -> io::Result<()> {
        if self.rows.is_empty() {
            sentence(&self.notes.nothing(Report::Counters), options, out)?;
            return self.notes.write(options, out);
        }
        let values: usize = self.rows.iter().map(|row| row.of.values.len()).sum();
        let text = format!(
            "{} with {}",
            counted(self.rows.len() as u64, "counter"),
            counted(values as u64, "value")
        );
        sentence(&text, options, out)?;
        for row in &self.rows {
            if let Some(text) = capacity(&row.of, self.processors) {
                let pid = row
                    .pid
                    .map_or(String::new(), |pid| format!("process {pid}: "));
                sentence(&format!("{pid}{text}"), options, out)?;
            }
        }
        let mut grid = Grid::new(
            ["mean", "least", "most", "values", "counter"],
            options.max_lines,
        );
        for row in &self.rows {
            let (least, most) = row.of.range().unwrap_or_default();
            grid.row(|| {
                let mean = or_unknown(row.of.mean(), show);
                let per_second = match row.of.kind {
                    CounterKind::Increment => "/s",
                    _ => "",
                };
                let unit = row.of.unit.as_ref();
                let unit = unit.map_or(String::new(), |unit| format!(" ({unit})"));
                [
                    format!("{mean}{per_second}"),
                    show(least),
                    show(most),
                    row.of.values.len().to_string(),
                    format!("{}/{}{unit}", row.of.provider, row.of.name),
                ]
            });
        }
        grid.write(options, out)?;
        self.notes.write(options, out)
    }
}

fn show(value: f64) -> String {
    match value.abs() {
        abs if abs >= 1e12 => format!("{value:.2e}"),
        abs if abs >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        _ => format!("{value:.2}"),
    }
}

impl Fields for CountersView {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        let record = self.rows.is_empty().then(|| Report::Counters.provider());
        object
            .field("report", Report::Counters.as_str())
            .some("record", record)
            .objects("counters", &self.rows)
            .object("unused", Some(&self.notes));
    }
}

impl Fields for Row {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        let kind = match self.of.kind {
            CounterKind::Increment => "increment",
            _ => "mean",
        };
        let range = self.of.range();
        object
            .some("pid", self.pid)
            .field("provider", &self.of.provider)
            .field("name", &self.of.name)
            .some("display_name", self.of.display_name.as_ref())
            .some("unit", self.of.unit.as_ref())
            .field("kind", kind)
            .some("mean", self.of.mean())
            .some("min", range.map(|(least, _)| least))
            .some("max", range.map(|(_, most)| most))
            .objects("values", &self.of.values);
    }
}

impl Fields for CounterValue {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        object
            .field("time_ns", self.time_ns)
            .field("interval_s", self.interval_s)
            .field("value", self.value);
    }
}
