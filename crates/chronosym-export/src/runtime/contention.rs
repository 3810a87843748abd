//! The report of waits for locks.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

use chronosym_core::ProcessIndex;
use chronosym_runtime::{Contention, Percentiles, Report, Wait};
use serde::ser::SerializeMap;

use super::context::{Context, Durations, Notes, show_percentiles};
use super::grid::{Grid, ms, or_unknown, sentence};
use super::sites::Site;
use crate::object::{Fields, Object};
use crate::table::TableOptions;
use crate::units::{counted, show_count, show_time};

#[derive(Debug)]
pub(crate) struct ContentionView {
    /// Sorted by time, descending.
    locks: Vec<Lock>,
    /// Sorted by start.
    waits: Vec<Row>,
    durations: Option<Percentiles>,
    notes: Notes,
}

/// The waits for one lock at one call site.
#[derive(Debug)]
struct Lock {
    pid: Option<u32>,
    lock_id: Option<u64>,
    site: Option<Site>,
    waits: u64,
    duration_ns: u64,
    max_ns: u64,
}

#[derive(Debug)]
struct Row {
    pid: Option<u32>,
    tid: u64,
    site: Option<Site>,
    of: Wait,
}

impl ContentionView {
    pub fn new(context: &mut Context) -> Self {
        let all = Contention::new(&context.timeline, &context.filter);
        let mut locks: BTreeMap<(ProcessIndex, Option<u64>, Option<Site>), Lock> = BTreeMap::new();
        let mut waits = Vec::new();
        let notes = context.notes(&all.unused);
        let durations = Percentiles::new(all.waits.iter().filter_map(|wait| wait.duration_ns));
        for of in all.waits {
            let site = context.site(of.process, of.stack, of.start_ns);
            let pid = context.pid(of.process);
            let key = (of.process, of.lock_id, site.clone());
            let lock = locks.entry(key).or_insert_with(|| Lock {
                pid,
                lock_id: of.lock_id,
                site: site.clone(),
                waits: 0,
                duration_ns: 0,
                max_ns: 0,
            });
            let duration = of.duration_ns.unwrap_or(0);
            lock.waits += 1;
            lock.duration_ns = lock.duration_ns.saturating_add(duration);
            lock.max_ns = lock.max_ns.max(duration);
            waits.push(Row {
                pid,
                tid: context.tid(of.waiter),
                site,
                of,
            });
        }
        let mut locks: Vec<Lock> = locks.into_values().collect();
        locks.sort_by_key(|lock| Reverse((lock.duration_ns, lock.waits)));
        ContentionView {
            locks,
            waits,
            durations,
            notes,
        }
    }

    pub fn write(&self, options: TableOptions, out: &mut impl Write) -> io::Result<()> {
        if self.waits.is_empty() {
            sentence(&self.notes.nothing(Report::Contention), options, out)?;
            return self.notes.write(options, out);
        }
        let mut text = counted(self.waits.len() as u64, "lock wait");
        if let Some(of) = &self.durations {
            text.push_str(&format!(
                ": {} ms in total; {}",
                ms(of.total_ns),
                show_percentiles(of)
            ));
        }
        sentence(&text, options, out)?;
        if self.waits.iter().all(|row| row.of.lock_id.is_none()) {
            let text = "locks and owners are unknown: runtimes record them since .NET 7";
            sentence(text, options, out)?;
        }
        let lock_id = |id: Option<u64>| or_unknown(id, |id| format!("{id:#x}"));
        let mut grid = Grid::new(
            ["ms", "longest ms", "waits", "lock", "waited at"],
            options.max_lines,
        );
        for lock in &self.locks {
            grid.row(|| {
                [
                    ms(lock.duration_ns),
                    ms(lock.max_ns),
                    show_count(lock.waits),
                    lock_id(lock.lock_id),
                    Site::show(&lock.site),
                ]
            });
        }
        grid.write(options, out)?;
        let mut grid = Grid::new(
            ["start", "ms", "waiter", "owner", "lock", "waited at"],
            options.max_lines,
        );
        for row in &self.waits {
            grid.row(|| {
                [
                    show_time(row.of.start_ns),
                    or_unknown(row.of.duration_ns, ms),
                    row.tid.to_string(),
                    or_unknown(row.of.owner_tid, |tid| tid.to_string()),
                    lock_id(row.of.lock_id),
                    Site::show(&row.site),
                ]
            });
        }
        grid.write(options, out)?;
        self.notes.write(options, out)
    }
}

impl Fields for ContentionView {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        let record = self.waits.is_empty().then(|| Report::Contention.provider());
        object
            .field("report", Report::Contention.as_str())
            .some("record", record)
            .object("durations", self.durations.as_ref().map(Durations).as_ref())
            .objects("locks", &self.locks)
            .objects("waits", &self.waits)
            .object("unused", Some(&self.notes));
    }
}

fn hex(id: Option<u64>) -> Option<String> {
    id.map(|id| format!("{id:#x}"))
}

impl Fields for Lock {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        object
            .some("pid", self.pid)
            .some("lock_id", hex(self.lock_id))
            .object("site", self.site.as_ref())
            .field("waits", self.waits)
            .field("duration_ns", self.duration_ns)
            .field("max_ns", self.max_ns);
    }
}

impl Fields for Row {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        object
            .some("pid", self.pid)
            .field("tid", self.tid)
            .field("start_ns", self.of.start_ns)
            .some("duration_ns", self.of.duration_ns)
            .some("kind", self.of.kind.map(|kind| kind.to_string()))
            .some("lock_id", hex(self.of.lock_id))
            .some("object", hex(self.of.object))
            .some("owner_tid", self.of.owner_tid)
            .object("site", self.site.as_ref());
    }
}
