//! The report of allocations.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use chronosym_runtime::{Allocation, AllocationEvent, AllocationKind, Allocations, Report};
use serde::ser::SerializeMap;

use super::context::{Context, Notes};
use super::grid::{Grid, sentence};
use super::sites::Site;
use crate::object::{Fields, Object};
use crate::table::TableOptions;
use crate::units::{show_count, show_rounded};

#[derive(Debug)]
pub(crate) struct AllocationsView {
    /// Sorted by bytes, descending.
    types: Vec<Group>,
    /// By type and call site.
    sites: Vec<Group>,
    kinds: BTreeMap<Option<AllocationKind>, Amount>,
    event: Option<AllocationEvent>,
    same_by_ticks: u64,
    total: Amount,
    notes: Notes,
}

#[derive(Debug)]
struct Group {
    type_name: Option<Arc<str>>,
    kind: Option<AllocationKind>,
    site: Option<Option<Site>>,
    amount: Amount,
}

#[derive(Clone, Copy, Debug, Default)]
struct Amount {
    events: u64,
    bytes: u64,
    /// Number of objects, estimated.
    objects: f64,
    largest: Option<u64>,
}

impl Amount {
    fn add(&mut self, allocation: &Allocation) {
        self.events += 1;
        self.bytes = self.bytes.saturating_add(allocation.bytes);
        if let Some(size) = allocation.object_size.filter(|&size| size > 0) {
            self.objects += allocation.bytes as f64 / size as f64;
            self.largest = self.largest.max(Some(size));
        }
    }
}

impl AllocationsView {
    pub fn new(context: &mut Context) -> Self {
        let all = Allocations::new(&context.timeline, &context.filter);
        let (mut types, mut sites) = (BTreeMap::new(), BTreeMap::new());
        let mut kinds: BTreeMap<Option<AllocationKind>, Amount> = BTreeMap::new();
        let mut total = Amount::default();
        for allocation in &all.allocations {
            let key = (allocation.type_name.clone(), allocation.kind);
            let time = allocation.time_ns;
            let site = context.site(allocation.process, allocation.stack, time);
            let of_type: &mut Amount = types.entry(key.clone()).or_default();
            of_type.add(allocation);
            let of_site: &mut Amount = sites.entry((key, site)).or_default();
            of_site.add(allocation);
            kinds.entry(allocation.kind).or_default().add(allocation);
            total.add(allocation);
        }
        let of_type = |((type_name, kind), amount)| Group {
            type_name,
            kind,
            site: None,
            amount,
        };
        let of_site = |(((type_name, kind), site), amount)| Group {
            type_name,
            kind,
            site: Some(site),
            amount,
        };
        let mut types: Vec<Group> = types.into_iter().map(of_type).collect();
        let mut sites: Vec<Group> = sites.into_iter().map(of_site).collect();
        for groups in [&mut types, &mut sites] {
            groups.sort_by_key(|group| Reverse(group.amount.bytes));
        }
        AllocationsView {
            types,
            sites,
            kinds,
            event: all.event,
            same_by_ticks: all.same_by_ticks,
            total,
            notes: context.notes(&all.unused),
        }
    }

    pub fn write(&self, options: TableOptions, out: &mut impl Write) -> io::Result<()> {
        let Some(event) = self.event else {
            sentence(&self.notes.nothing(Report::Allocations), options, out)?;
            return self.notes.write(options, out);
        };
        let how = match event {
            AllocationEvent::Tick => {
                "each represents the bytes that were allocated since the one before, with the type \
                 and stack of the last object"
            }
            AllocationEvent::Sampled => {
                "each byte was chosen with a probability of 1/102,400, and represents as many bytes"
            }
        };
        let text = format!(
            "{} bytes were allocated, estimated from {} {event} events: {how}",
            show_rounded(self.total.bytes),
            show_count(self.total.events),
        );
        sentence(&text, options, out)?;
        if self.same_by_ticks > 0 {
            let text = format!(
                "{} GCAllocationTick events represent the same allocations, and are not added",
                show_count(self.same_by_ticks)
            );
            sentence(&text, options, out)?;
        }
        let mut grid = Grid::new(["share", "bytes", "events", "heap"], usize::MAX);
        for (kind, amount) in &self.kinds {
            grid.row(|| {
                let [share, bytes, events] = self.cells(amount);
                [share, bytes, events, heap(*kind)]
            });
        }
        grid.write(options, out)?;
        let objects = |amount: &Amount| match amount.objects {
            0.0 => "?".to_owned(),
            objects => show_rounded(objects.round() as u64),
        };
        let mut grid = Grid::new(
            ["share", "bytes", "events", "objects", "heap", "type"],
            options.max_lines,
        );
        for group in &self.types {
            grid.row(|| {
                let [share, bytes, events] = self.cells(&group.amount);
                let objects = objects(&group.amount);
                [
                    share,
                    bytes,
                    events,
                    objects,
                    heap(group.kind),
                    group.type_name(),
                ]
            });
        }
        grid.write(options, out)?;
        let mut grid = Grid::new(
            [
                "share",
                "bytes",
                "events",
                "type, and where it was allocated",
            ],
            options.max_lines,
        );
        for group in &self.sites {
            grid.row(|| {
                let [share, bytes, events] = self.cells(&group.amount);
                let site = group.site.as_ref().map_or("?".to_owned(), Site::show);
                [
                    share,
                    bytes,
                    events,
                    format!("{} at {site}", group.type_name()),
                ]
            });
        }
        grid.write(options, out)?;
        self.notes.write(options, out)
    }

    fn cells(&self, amount: &Amount) -> [String; 3] {
        let share = amount.bytes as f64 * 100.0 / self.total.bytes.max(1) as f64;
        [
            format!("{share:.1}%"),
            show_rounded(amount.bytes),
            show_count(amount.events),
        ]
    }
}

/// Returns the heap in the terms of the collector.
fn heap(kind: Option<AllocationKind>) -> String {
    match kind {
        Some(AllocationKind(0)) => "SOH".to_owned(),
        Some(AllocationKind(1)) => "LOH".to_owned(),
        Some(AllocationKind(2)) => "POH".to_owned(),
        Some(kind) => kind.to_string(),
        None => "?".to_owned(),
    }
}

impl Group {
    fn type_name(&self) -> String {
        self.type_name.as_deref().unwrap_or("unknown").to_owned()
    }
}

impl Fields for AllocationsView {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        let record = self.event.is_none().then(|| Report::Allocations.provider());
        object
            .field("report", Report::Allocations.as_str())
            .some("record", record)
            .some("event", self.event.map(AllocationEvent::as_str))
            .fields_of(&self.total)
            .objects("heaps", self.kinds.iter().map(Heap))
            .objects("types", &self.types)
            .objects("sites", &self.sites)
            .object("unused", Some(&self.notes));
    }
}

impl Fields for Amount {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        object
            .field("events", self.events)
            .field("bytes", self.bytes)
            .some(
                "objects",
                (self.objects > 0.0).then_some(self.objects.round() as u64),
            )
            .some("largest_object", self.largest);
    }
}

struct Heap<'a>((&'a Option<AllocationKind>, &'a Amount));

impl Fields for Heap<'_> {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        let (kind, amount) = self.0;
        object
            .some("heap", kind.map(|kind| heap(Some(kind))))
            .fields_of(amount);
    }
}

impl Fields for Group {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        object
            .some("type", self.type_name.as_deref())
            .some("heap", self.kind.map(|kind| heap(Some(kind))))
            .object("site", self.site.as_ref().and_then(Option::as_ref))
            .fields_of(&self.amount);
    }
}
