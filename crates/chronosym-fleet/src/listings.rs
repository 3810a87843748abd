//! The tables `processes`, `modules` and `diagnostics`.

use chronosym_core::{
    Diagnostic, DiagnosticKind, End, Host, ImageView, ModuleView, PdbReference, ProcessView, Start,
    Timeline,
};

use crate::columns::{
    flag, flags, number, numbers, same_text, some_number, some_numbers, text, texts,
};
use crate::error::Error;
use crate::table::{Layout, Table};
use crate::trace::Trace;

/// The recording of rows, and its machine.
pub(crate) struct Owner<'a> {
    pub trace: &'a str,
    pub host: Option<&'a Host>,
}

impl<'a> Owner<'a> {
    /// The machine's name, if known.
    pub fn name(&self) -> Option<&'a str> {
        self.host
            .map(|host| &*host.name)
            .filter(|it| !it.is_empty())
    }

    /// The id of the boot, if known.
    pub fn boot(&self) -> Option<&'a str> {
        self.host
            .map(|host| &*host.boot_id)
            .filter(|it| !it.is_empty())
    }
}

/// Maps times of a timeline to ns since 1970-01-01 UTC.
#[derive(Clone, Copy)]
pub struct Clock {
    start: i128,
}

impl Clock {
    /// Times count from the start of a recording that does not state when that was.
    pub fn of(timeline: &Timeline) -> Self {
        Clock {
            start: timeline.facts().start_unix_ns.unwrap_or(0),
        }
    }

    pub fn unix(self, time_ns: u64) -> i64 {
        let unix = self.start.saturating_add(time_ns.into());
        let bounds = i128::from(i64::MIN)..=i128::from(i64::MAX);
        unix.clamp(*bounds.start(), *bounds.end()) as i64
    }
}

pub fn processes() -> Layout {
    Layout {
        name: "processes",
        fields: vec![
            text("trace"),
            text("host"),
            text("boot"),
            some_number("pid"),
            some_number("start"),
            some_number("end"),
            text("name"),
            text("command_line"),
            text("runtime"),
            flag("managed"),
            flag("rundown"),
        ],
        sorted_by: None,
        ids: &[],
        varying: &[],
    }
}

pub fn write_processes(
    trace: &Trace<'_>,
    owner: &Owner<'_>,
    table: &mut Table,
) -> Result<(), Error> {
    let clock = Clock::of(trace.timeline);
    let rows: Vec<ProcessView<'_>> = selected(trace).collect();
    let runtimes: Vec<String> = rows.iter().map(|it| it.runtimes.join(", ")).collect();
    let all = |of: fn(&ProcessView<'_>) -> Option<u64>| {
        let times = rows.iter().map(|row| of(row).map(|ns| clock.unix(ns)));
        some_numbers(times.collect())
    };
    table.write(vec![
        same_text(Some(owner.trace), rows.len()),
        same_text(owner.name(), rows.len()),
        same_text(owner.boot(), rows.len()),
        some_numbers(rows.iter().map(|row| row.pid.map(i64::from)).collect()),
        all(|row| row.start_ns),
        all(|row| row.end_ns),
        texts(rows.iter().map(|row| row.name)),
        texts(rows.iter().map(|row| row.command_line)),
        texts(runtimes.iter().map(|runtime| Some(&**runtime))),
        flags(rows.iter().map(|row| row.is_managed)),
        flags(rows.iter().map(|row| row.has_rundown)),
    ])
}

fn selected<'t>(trace: &'t Trace<'_>) -> impl Iterator<Item = ProcessView<'t>> {
    let timeline = trace.timeline;
    let all = timeline.processes();
    all.filter(|process| trace.filter.has_process(timeline, process.index))
}

pub fn modules() -> Layout {
    Layout {
        name: "modules",
        fields: vec![
            text("trace"),
            text("host"),
            text("boot"),
            some_number("pid"),
            some_number("start"),
            text("kind"),
            text("name"),
            text("path"),
            text("native_path"),
            text("identity"),
            text("native_identity"),
            some_number("base"),
            some_number("size"),
            some_number("loaded"),
            some_number("unloaded"),
        ],
        sorted_by: None,
        ids: &[],
        varying: &[],
    }
}

/// A CLR module or an image.
struct Module<'t> {
    pid: Option<i64>,
    start: Option<i64>,
    kind: &'static str,
    name: &'t str,
    path: &'t str,
    native_path: &'t str,
    identity: Option<String>,
    native_identity: Option<String>,
    mapping: Option<(u64, u64)>,
    loaded: Option<u64>,
    unloaded: Option<u64>,
}

/// The key of a PDB in symbol stores.
fn key(pdb: Option<&PdbReference>) -> Option<String> {
    pdb.map(|pdb| format!("{:#}", pdb.id))
}

impl<'t> Module<'t> {
    fn of_module(view: &ModuleView<'t>) -> Self {
        Module {
            pid: None,
            start: None,
            kind: "module",
            name: view.name,
            path: view.module.il_path,
            native_path: view.module.native_path,
            identity: key(view.module.managed_pdb),
            native_identity: key(view.module.native_pdb),
            mapping: None,
            loaded: match view.start {
                Start::At(time) => Some(time),
                _ => None,
            },
            unloaded: match view.end {
                End::At(time) => Some(time),
                _ => None,
            },
        }
    }

    fn of_image(view: &ImageView<'t>) -> Self {
        let image = &view.image;
        let lifetime = &view.lifetime;
        Module {
            pid: None,
            start: None,
            kind: "image",
            name: view.name,
            path: image.path,
            native_path: "",
            identity: image.build_id.map(str::to_owned).or_else(|| key(image.pdb)),
            native_identity: key(image.il_pdb),
            mapping: Some((image.base, image.size)),
            loaded: lifetime.from_known.then_some(lifetime.from),
            unloaded: lifetime.to_known.then_some(lifetime.to),
        }
    }
}

pub fn write_modules(trace: &Trace<'_>, owner: &Owner<'_>, table: &mut Table) -> Result<(), Error> {
    let timeline = trace.timeline;
    let clock = Clock::of(timeline);
    let unix = |time: Option<u64>| time.map(|ns| clock.unix(ns));
    for process in selected(trace) {
        let modules = timeline
            .modules(process.index)
            .map(|it| Module::of_module(&it));
        let images = timeline
            .images(process.index)
            .map(|it| Module::of_image(&it));
        let rows = modules.chain(images).map(|module| Module {
            pid: process.pid.map(i64::from),
            start: unix(process.start_ns),
            ..module
        });
        let rows: Vec<Module<'_>> = rows.collect();
        if rows.is_empty() {
            continue;
        }
        let all =
            |of: &dyn Fn(&Module<'_>) -> Option<i64>| some_numbers(rows.iter().map(of).collect());
        table.write(vec![
            same_text(Some(owner.trace), rows.len()),
            same_text(owner.name(), rows.len()),
            same_text(owner.boot(), rows.len()),
            all(&|row| row.pid),
            all(&|row| row.start),
            texts(rows.iter().map(|row| Some(row.kind))),
            texts(rows.iter().map(|row| Some(row.name))),
            texts(rows.iter().map(|row| Some(row.path))),
            texts(rows.iter().map(|row| Some(row.native_path))),
            texts(rows.iter().map(|row| row.identity.as_deref())),
            texts(rows.iter().map(|row| row.native_identity.as_deref())),
            all(&|row| row.mapping.map(|it| it.0 as i64)),
            all(&|row| row.mapping.map(|it| it.1 as i64)),
            all(&|row| unix(row.loaded)),
            all(&|row| unix(row.unloaded)),
        ])?;
    }
    Ok(())
}

pub fn diagnostics() -> Layout {
    Layout {
        name: "diagnostics",
        fields: vec![
            text("trace"),
            text("host"),
            text("kind"),
            number("count"),
            text("file"),
            text("text"),
        ],
        sorted_by: None,
        ids: &[],
        varying: &[],
    }
}

/// The name of a kind in the table.
fn kind(kind: DiagnosticKind) -> &'static str {
    match kind {
        DiagnosticKind::LostEvents => "lost_events",
        DiagnosticKind::Loss => "loss",
        DiagnosticKind::CutShort => "cut_short",
        DiagnosticKind::Damage => "damage",
        DiagnosticKind::Limit => "limit",
        DiagnosticKind::Unused => "unused",
        _ => "other",
    }
}

pub fn write_diagnostics(
    owner: &Owner<'_>,
    all: &[Diagnostic],
    table: &mut Table,
) -> Result<(), Error> {
    if all.is_empty() {
        return Ok(());
    }
    let counts = all
        .iter()
        .map(|it| i64::try_from(it.count).unwrap_or(i64::MAX));
    table.write(vec![
        same_text(Some(owner.trace), all.len()),
        same_text(owner.name(), all.len()),
        texts(all.iter().map(|it| Some(kind(it.kind)))),
        numbers(counts.collect()),
        texts(all.iter().map(|it| it.file.as_deref())),
        texts(all.iter().map(|it| Some(&*it.text))),
    ])
}
