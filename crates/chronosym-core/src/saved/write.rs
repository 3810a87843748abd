//! Writes a timeline.

use std::collections::BTreeSet;
use std::io::{self, Write};

use rustc_hash::FxHashMap;

use super::coder::Coder;
use super::file::{BlockWriter, Key, Table};
use super::ranks::Ranks;
use super::recording_rows::{self, EventTypeRow, RecordingRow};
use super::rows::{self, BodyRow, DetailsRow, MethodRow, Of};
use super::sample_rows::{self, ClassRow, MarkerRow, SampleRow, StackRow};
use super::texts;
use crate::body::Module;
use crate::diagnostic::Diagnostics;
use crate::ids::{NameId, ProcessIndex, StackId, ThreadIndex};
use crate::samples::SampleClass;
use crate::space::AddressSpace;
use crate::timeline::{AddressMask, Timeline};

/// Number of rows in a block, unless rows overlap.
const ROWS: usize = 256;
/// Number of rows in a block of data that is read as a whole.
const MANY: usize = 1 << 14;

/// The parts of a timeline to save.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SaveOptions<'d> {
    /// Whether samples and markers are saved in addition to names.
    pub samples: bool,
    /// The diagnostics of the trace.
    pub diagnostics: Option<&'d Diagnostics>,
}

impl<'d> SaveOptions<'d> {
    /// Saves the data that names addresses.
    pub fn new() -> Self {
        SaveOptions::default()
    }

    /// Also saves all samples that the session kept.
    pub fn with_samples(self) -> Self {
        let samples = true;
        SaveOptions { samples, ..self }
    }

    /// Also saves the diagnostics of the trace.
    pub fn with_diagnostics(self, diagnostics: &'d Diagnostics) -> Self {
        let diagnostics = Some(diagnostics);
        SaveOptions {
            diagnostics,
            ..self
        }
    }
}

impl Timeline {
    /// Writes the timeline in its saved form, which [`SavedTimeline`](super::SavedTimeline) reads.
    /// Equal timelines are written as equal bytes.
    ///
    /// A timeline of a live session is saved as if no event followed.
    ///
    /// # Errors
    ///
    /// Errors of writing to `out`.
    pub fn save<W: Write>(&self, out: W, options: &SaveOptions<'_>) -> io::Result<W> {
        let mut saver = Saver {
            timeline: self,
            out: BlockWriter::new(out)?,
            ranks: Ranks::default(),
            processes: numbers(self.processes.all.indexed().map(|(index, _)| index)),
            threads: numbers(self.processes.threads.indexed().map(|(index, _)| index)),
        };
        saver.recording(options)?;
        saver.processes()?;
        saver.code()?;
        if options.samples {
            saver.samples()?;
        }
        texts::write(saver.ranks, &self.names, &mut saver.out)?;
        saver.out.finish()
    }
}

/// Numbers the elements that have not been dropped.
fn numbers(indices: impl Iterator<Item = usize>) -> FxHashMap<usize, u32> {
    indices.zip(0..).collect()
}

struct Saver<'t, W> {
    timeline: &'t Timeline,
    out: BlockWriter<W>,
    ranks: Ranks,
    /// The numbers of processes and threads in the file, by index.
    processes: FxHashMap<usize, u32>,
    threads: FxHashMap<usize, u32>,
}

impl<W: Write> Saver<'_, W> {
    fn rows<T>(
        &mut self,
        table: Table,
        rows: Vec<T>,
        mut code: impl FnMut(&mut Coder<'_>, &mut T),
    ) -> io::Result<()> {
        let mut rows = rows.into_iter();
        loop {
            let block: Vec<T> = rows.by_ref().take(MANY).collect();
            if block.is_empty() {
                return Ok(());
            }
            self.out
                .rows(table, (0, 0), block, &mut self.ranks, &mut code)?;
        }
    }

    fn recording(&mut self, options: &SaveOptions<'_>) -> io::Result<()> {
        let timeline = self.timeline;
        let mut counters = timeline.counters.clone();
        counters.of_saved = counters.of_events(&timeline.types).collect();
        let lone = timeline.spaces.iter();
        let lone = lone.map(|space| space.state.code.lone_maps.len() as u64);
        counters.unbound_il_maps = timeline.unbound_il_maps() - lone.sum::<u64>();
        let mut facts = timeline.facts.clone();
        facts.lacks_samples = !options.samples;
        let recording = RecordingRow {
            facts,
            losses: timeline.losses.clone(),
            counters,
            diagnostics: options.diagnostics.cloned().unwrap_or_default(),
            is_thumb: timeline.address_mask == AddressMask::Thumb,
            markers_left_out: timeline.markers.left_out,
        };
        self.rows(Table::Recording, vec![recording], recording_rows::recording)?;
        let types = timeline.types.iter().map(|info| EventTypeRow {
            schema: info.schema.clone(),
            count: info.count,
            stacks: info.stacks,
        });
        self.rows(
            Table::EventTypes,
            types.collect(),
            recording_rows::event_type,
        )
    }

    fn processes(&mut self) -> io::Result<()> {
        let timeline = self.timeline;
        let processes = timeline.processes.all.indexed().map(|(index, process)| {
            let index = ProcessIndex(index as u32);
            let space = timeline.space(index);
            let mut process = process.clone();
            process.is_managed = space.is_some() && timeline.is_managed(index);
            process.forgotten = space
                .map(|space| space.forgotten.clone())
                .unwrap_or_default();
            process
        });
        self.rows(Table::Processes, processes.collect(), rows::process)?;
        let threads = timeline.processes.threads.iter().map(|thread| {
            let mut thread = thread.clone();
            thread.process.0 = self.processes[&thread.process.index()];
            thread
        });
        let threads = threads.collect();
        self.rows(Table::Threads, threads, rows::thread)
    }

    fn code(&mut self) -> io::Result<()> {
        let count = self.processes.len();
        let timeline = self.timeline;
        let space = |process: usize| timeline.space(ProcessIndex(process as u32));
        let spaces = timeline.processes.all.indexed().zip(0..);
        let spaces: Vec<(u32, &AddressSpace)> = spaces
            .filter_map(|((index, _), number)| Some((number, space(index)?)))
            .collect();
        let modules = spaces.iter().flat_map(|&(process, space)| {
            let modules = space.state.code.modules.iter().zip(0..);
            modules.map(move |(module, number)| Of {
                process,
                number,
                it: Module::clone(module),
            })
        });
        self.keyed(
            Table::Modules,
            modules.collect(),
            rows::of(count, rows::module),
        )?;
        let images = spaces.iter().flat_map(|&(process, space)| {
            let images = space.state.images.iter().zip(0..);
            images.map(move |(image, number)| Of {
                process,
                number,
                it: image.clone(),
            })
        });
        self.keyed(
            Table::Images,
            images.collect(),
            rows::of(count, rows::image),
        )?;

        let mut row_of_body: FxHashMap<(u32, usize), u32> = FxHashMap::default();
        let mut precompiled: Vec<Of<u32>> = Vec::new();
        let mut pending = Pending::new(Table::Bodies, rows::of(count, rows::body));
        let mut row = 0u32;
        for &(process, space) in &spaces {
            let code = &space.state.code;
            let modules = numbers(code.modules.indexed().map(|(index, _)| index));
            let unknown = code.unknown_modules().filter(|&(_, id)| id != 0);
            let unknown: FxHashMap<usize, u64> =
                unknown.map(|(body, id)| (body.index(), id)).collect();
            let bodies: Vec<_> = code.bodies.indexed().zip(0..).collect();
            let groups = overlapping(&bodies, |((_, body), _)| (body.start, body.last()));
            for (first, group) in groups {
                let rows = group.into_iter().map(|&((index, body), number)| {
                    row_of_body.insert((process, index), row);
                    if body.module.is_some() && body.is_precompiled() {
                        precompiled.push(Of {
                            process,
                            number: precompiled.len() as u32,
                            it: row,
                        });
                    }
                    row += 1;
                    let mut body = body.clone();
                    if let Some(module) = &mut body.module {
                        module.0 = modules.get(&module.index()).copied().unwrap_or(0);
                    }
                    let targets = body.stub().and_then(|stub| code.stubs.get(stub as usize));
                    let it = BodyRow {
                        module_id: unknown.get(&index).copied(),
                        targets: targets.cloned(),
                        body,
                    };
                    Of {
                        process,
                        number,
                        it,
                    }
                });
                pending.add(self, (process, first), rows.collect())?;
            }
        }
        pending.flush(self)?;

        self.methods(&spaces, &row_of_body)?;
        self.keyed(
            Table::Precompiled,
            precompiled,
            rows::of(count, rows::precompiled),
        )?;
        let maps = spaces.iter().flat_map(|&(process, space)| {
            let maps = space.state.code.lone_maps.iter().cloned();
            maps.zip(0..).map(move |(it, number)| Of {
                process,
                number,
                it,
            })
        });
        self.keyed(
            Table::LoneMaps,
            maps.collect(),
            rows::of(count, rows::lone_map),
        )?;
        let mut pending = Pending::new(Table::Symbols, rows::of(count, rows::symbol));
        for &(process, space) in &spaces {
            let symbols: Vec<_> = space.state.untimed.symbols.iter().zip(0..).collect();
            for (first, group) in overlapping(&symbols, |(symbol, _)| (symbol.start, symbol.last)) {
                let rows = group.into_iter().map(|&(&it, number)| Of {
                    process,
                    number,
                    it,
                });
                pending.add(self, (process, first), rows.collect())?;
            }
        }
        pending.flush(self)?;
        self.details(&spaces)
    }

    /// Sorts rows by process.
    fn keyed<T>(
        &mut self,
        table: Table,
        rows: Vec<Of<T>>,
        mut code: impl FnMut(&mut Coder<'_>, &mut Of<T>),
    ) -> io::Result<()> {
        let mut rows = rows.into_iter().peekable();
        while let Some(first) = rows.peek() {
            let key = (first.process, u64::from(first.number));
            let block = rows.by_ref().take(ROWS).collect();
            self.out
                .rows(table, key, block, &mut self.ranks, &mut code)?;
        }
        Ok(())
    }

    /// Writes the bodies of inlined methods, whose names they supply.
    fn methods(
        &mut self,
        spaces: &[(u32, &AddressSpace)],
        row_of_body: &FxHashMap<(u32, usize), u32>,
    ) -> io::Result<()> {
        let mut all = Vec::new();
        for &(process, space) in spaces {
            for (method_id, clr_instance) in inlined(space) {
                let bodies = space.state.code.by_method.of((clr_instance, method_id));
                let bodies = bodies.filter_map(|body| row_of_body.get(&(process, body.index())));
                let bodies: Vec<u32> = bodies.copied().collect();
                if !bodies.is_empty() {
                    let method = MethodRow {
                        clr_instance,
                        method_id,
                        bodies,
                    };
                    all.push((process, method_id, method));
                }
            }
        }
        self.by_id(Table::Methods, all, rows::method)
    }

    /// Writes the runtime's records of methods without names and of their types, and in-memory
    /// PDBs.
    fn details(&mut self, spaces: &[(u32, &AddressSpace)]) -> io::Result<()> {
        let (mut details, mut types, mut pdbs) = (Vec::new(), Vec::new(), Vec::new());
        for &(process, space) in spaces {
            let (code, clr) = (&space.state.code, &space.state.clr);
            let unnamed = code.bodies.iter().filter(|body| body.name == NameId::NONE);
            let mut methods: BTreeSet<u64> = unnamed.map(|body| body.method_id).collect();
            methods.extend(inlined(space).into_iter().map(|(method, _)| method));
            let mut type_ids = BTreeSet::new();
            for method_id in methods {
                for (time, it) in clr.all_details(method_id) {
                    type_ids.insert(it.type_id);
                    let row = DetailsRow {
                        method_id,
                        time,
                        details: it,
                    };
                    details.push((process, method_id, row));
                }
            }
            let named = type_ids
                .into_iter()
                .filter_map(|id| Some((id, clr.type_name(id)?)));
            types.extend(named.map(|row| (process, row.0, row)));
            let mut of_process: Vec<_> = clr.pdbs().collect();
            of_process.sort_by_key(|(key, _)| *key);
            let of_process = of_process.into_iter().zip(0..);
            pdbs.extend(of_process.map(|(((clr, module), pdb), number)| Of {
                process,
                number,
                it: (clr, module, pdb.to_vec()),
            }));
        }
        self.by_id(Table::Details, details, rows::details)?;
        self.by_id(Table::Types, types, rows::type_name)?;
        let count = self.processes.len();
        for pdb in pdbs {
            let key = (pdb.process, u64::from(pdb.number));
            let code = rows::of(count, rows::pdb);
            self.out
                .rows(Table::Pdbs, key, vec![pdb], &mut self.ranks, code)?;
        }
        Ok(())
    }

    /// Sorts rows by process and id. Rows with equal ids are in one block.
    fn by_id<T>(
        &mut self,
        table: Table,
        rows: Vec<(u32, u64, T)>,
        code: impl Fn(&mut Coder<'_>, &mut T) + Copy,
    ) -> io::Result<()> {
        let mut pending = Pending::new(table, rows::of(self.processes.len(), code));
        let mut rows = rows.into_iter().zip(0..).peekable();
        while let Some(&((process, id, _), _)) = rows.peek() {
            let mut group = Vec::new();
            while let Some(((process, _, it), number)) =
                rows.next_if(|((p, i, _), _)| (*p, *i) == (process, id))
            {
                group.push(Of {
                    process,
                    number,
                    it,
                });
            }
            pending.add(self, (process, id), group)?;
        }
        pending.flush(self)
    }

    fn samples(&mut self) -> io::Result<()> {
        let timeline = self.timeline;
        let stacks = &timeline.stacks;
        let nodes = (0..stacks.len() as u32).filter_map(|node| {
            let (frame, caller) = stacks.split(StackId(node))?;
            Some(StackRow {
                frame,
                caller: caller.map_or(0, |caller| node - caller.0),
            })
        });
        self.rows(Table::Stacks, nodes.collect(), sample_rows::stack)?;
        let thread = |index: ThreadIndex| {
            ThreadIndex(self.threads.get(&index.index()).copied().unwrap_or(0))
        };
        let classes = timeline.samples.classes().iter();
        let classes = classes.map(|&class| {
            let thread = thread(class.thread);
            ClassRow(SampleClass { thread, ..class })
        });
        let classes = classes.collect();
        let markers = timeline.markers.seen.iter().map(|&seen| {
            let mut seen = seen;
            seen.thread = thread(seen.thread);
            MarkerRow(seen)
        });
        let markers = markers.collect();
        self.rows(Table::Classes, classes, sample_rows::class)?;
        let samples = timeline
            .samples
            .weighed()
            .map(|(class, time_ns, weight)| SampleRow {
                class,
                time_ns,
                weight: timeline.samples.weight(weight),
            });
        let mut samples = samples.peekable();
        while samples.peek().is_some() {
            let block = samples.by_ref().take(MANY).collect();
            self.rows(Table::Samples, block, sample_rows::sample)?;
        }
        self.rows(Table::Markers, markers, sample_rows::marker)
    }
}

/// Returns the methods inlined anywhere in a process: method id and runtime instance.
fn inlined(space: &AddressSpace) -> BTreeSet<(u64, u16)> {
    let bodies = space.state.code.bodies.iter();
    let trees = bodies.filter_map(|body| Some((body.clr_instance, body.inline_tree()?)));
    let methods = trees.flat_map(|(clr, tree)| {
        let inlinees = tree.0.nodes().iter().skip(1);
        inlinees.map(move |node| (node.method_id, clr))
    });
    methods.collect()
}

/// Groups elements that overlap, directly or through others, each group with its lowest address.
/// Keeps the order within a group.
fn overlapping<T>(all: &[T], range: impl Fn(&T) -> (u64, u64)) -> Vec<(u64, Vec<&T>)> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|&at| range(&all[at]).0);
    let mut groups: Vec<(u64, u64, Vec<usize>)> = Vec::new();
    for at in order {
        let (first, last) = range(&all[at]);
        match groups.last_mut().filter(|group| first <= group.1) {
            Some(group) => {
                group.1 = group.1.max(last);
                group.2.push(at);
            }
            None => groups.push((first, last, vec![at])),
        }
    }
    let group = |(first, _, mut members): (u64, u64, Vec<usize>)| {
        members.sort_unstable();
        (first, members.into_iter().map(|at| &all[at]).collect())
    };
    groups.into_iter().map(group).collect()
}

/// Rows of an incomplete block.
struct Pending<T, C> {
    table: Table,
    key: Key,
    rows: Vec<T>,
    code: C,
}

impl<T, C: FnMut(&mut Coder<'_>, &mut T)> Pending<T, C> {
    fn new(table: Table, code: C) -> Self {
        Pending {
            table,
            key: (0, 0),
            rows: Vec::new(),
            code,
        }
    }

    /// Adds rows that stay in one block.
    fn add<W: Write>(
        &mut self,
        saver: &mut Saver<'_, W>,
        key: Key,
        mut rows: Vec<T>,
    ) -> io::Result<()> {
        if self.rows.is_empty() {
            self.key = key;
        }
        self.rows.append(&mut rows);
        match self.rows.len() >= ROWS {
            true => self.flush(saver),
            false => Ok(()),
        }
    }

    fn flush<W: Write>(&mut self, saver: &mut Saver<'_, W>) -> io::Result<()> {
        let rows = std::mem::take(&mut self.rows);
        let (ranks, code) = (&mut saver.ranks, &mut self.code);
        saver.out.rows(self.table, self.key, rows, ranks, code)
    }
}
