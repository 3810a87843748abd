//! Reads a saved timeline into a session.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::base::{Base, BaseProcess};
use super::coder::Coder;
use super::error::SavedError;
use super::file::{SavedTimeline, Table};
use super::ranks::{NoTexts, TextSource, Unread};
use super::recording_rows::{self, RecordingRow};
use super::rows::{self, BodyRow, DetailsRow, MethodRow, Of};
use super::same::{self, Candidates};
use super::texts::Texts;
use crate::code::join::{KnownModules, OtherBody};
use crate::diagnostic::Diagnostics;
use crate::event_types::EventTypeInfo;
use crate::ids::{EventTypeId, ProcessIndex};
use crate::images::Image;
use crate::machine::Machine;
use crate::process::{Process, Thread};
use crate::selection::SampleSelection;
use crate::session::Session;
use crate::state::ProcessState;
use crate::symbol_identity::InMemoryPdb;
use crate::terms::Position;
use crate::timeline::{AddressMask, Timeline};
use crate::untimed::UntimedSymbol;
use crate::views::ProcessView;

impl Timeline {
    /// Opens a saved timeline from its bytes, including its samples.
    ///
    /// # Errors
    ///
    /// [`SavedError`] if the bytes are not a complete saved timeline of a known version.
    pub fn open(bytes: &[u8]) -> Result<Arc<Timeline>, SavedError> {
        let mut session = Session::new(SampleSelection::All);
        SavedTimeline::open(bytes)?.read_into(&mut session)?;
        Ok(session.finish())
    }
}

impl SavedTimeline<'_> {
    /// Reads everything into an empty session; its options select the samples. Returns the
    /// diagnostics of the trace.
    ///
    /// # Errors
    ///
    /// [`SavedError`] if a part is damaged. The session is then unusable.
    pub fn read_into(&self, session: &mut Session) -> Result<Diagnostics, SavedError> {
        let diagnostics = self.read_recording(session)?;
        self.read_rows(session, &mut Base::default())?;
        Ok(diagnostics)
    }

    /// Reads the recording's row into an empty session. Returns the diagnostics of the trace.
    fn read_recording(&self, session: &mut Session) -> Result<Diagnostics, SavedError> {
        let recording = self.recording()?;
        session.machine.facts = recording.facts;
        session.machine.counters = recording.counters;
        session.losses = recording.losses;
        session.markers.left_out = recording.markers_left_out;
        session.see_thumb(recording.is_thumb);
        Ok(recording.diagnostics)
    }

    /// Reads all rows except the recording's.
    pub(super) fn read_rows(
        &self,
        session: &mut Session,
        base: &mut Base,
    ) -> Result<(), SavedError> {
        let types = self.read_event_types(session)?;
        self.with_texts(session, |session, texts| {
            let machine = &mut session.machine;
            self.read_processes(machine, texts, base)?;
            self.read_threads(machine, texts, base)?;
            self.read_modules(machine, texts, base, None)?;
            self.read_images(machine, texts, base, None)?;
            self.read_bodies(machine, texts, base)?;
            self.read_lone_maps(machine, base)?;
            self.read_symbols(machine, texts, base)?;
            self.read_details(machine, texts, base, None)?;
            self.read_samples(session, texts, base, &types)
        })
    }

    /// Returns a timeline with the code at some addresses of the processes with an id, or of all
    /// processes, and the diagnostics of the trace. It resolves these addresses as the whole
    /// timeline does, at a time in ns, or without a time. Reads a few blocks; of a file of version
    /// 1, which does not list precompiled code, all.
    ///
    /// # Errors
    ///
    /// The errors of [`read_into`](Self::read_into).
    pub fn timeline_of(
        &self,
        pid: Option<u32>,
        time_ns: Option<u64>,
        addresses: &[u64],
        position: Position,
    ) -> Result<(Arc<Timeline>, Diagnostics), SavedError> {
        if !self.lists_precompiled() {
            return self.whole();
        }
        let (timeline, diagnostics, is_complete) =
            self.part(pid, addresses, position, Precompiled::Unjitted)?;
        let has_code = |process: ProcessIndex, time: u64| {
            let mut all = addresses.iter();
            all.all(|&it| timeline.body(process, it, time, position).is_some())
        };
        let is_answered_at = |time| {
            let of_pid = |it: &ProcessView<'_>| pid.is_none() || it.pid == pid;
            let mut processes = timeline.processes().filter(of_pid);
            processes.all(|it| has_code(it.index, time))
        };
        if is_complete || time_ns.is_none_or(is_answered_at) {
            return Ok((timeline, diagnostics));
        }
        // Without code at the time, symbol files of modules may supply the name.
        let (timeline, diagnostics, _) =
            self.part(pid, addresses, position, Precompiled::Always)?;
        Ok((timeline, diagnostics))
    }

    /// Returns a timeline with the code bodies at some addresses, as [`timeline_of`](Self::timeline_of) does, but
    /// without what identifies the files of modules: names that events state are right, and lines
    /// of precompiled code are unknown.
    ///
    /// # Errors
    ///
    /// The errors of [`read_into`](Self::read_into).
    pub fn bodies_of(
        &self,
        pid: Option<u32>,
        addresses: &[u64],
        position: Position,
    ) -> Result<(Arc<Timeline>, Diagnostics), SavedError> {
        if !self.lists_precompiled() {
            return self.whole();
        }
        let (timeline, diagnostics, _) = self.part(pid, addresses, position, Precompiled::Never)?;
        Ok((timeline, diagnostics))
    }

    /// Returns the whole timeline without samples.
    fn whole(&self) -> Result<(Arc<Timeline>, Diagnostics), SavedError> {
        let mut session = Session::new(SampleSelection::None);
        let diagnostics = self.read_into(&mut session)?;
        Ok((session.finish(), diagnostics))
    }

    /// Returns a timeline with the code at some addresses; the last value states whether precompiled
    /// code is read.
    fn part(
        &self,
        pid: Option<u32>,
        addresses: &[u64],
        position: Position,
        precompiled: Precompiled,
    ) -> Result<(Arc<Timeline>, Diagnostics, bool), SavedError> {
        let mut session = Session::new(SampleSelection::None);
        let diagnostics = self.read_recording(&mut session)?;
        self.read_event_types(&mut session)?;
        // No address is answered by them.
        session.machine.counters.unbound_il_maps += self.rows(Table::LoneMaps) as u64;
        let base = &mut Base::default();
        let mask = AddressMask::of(&session.machine.facts, &session.seen_addresses);
        // Without a call before it, a return address is looked up itself.
        let own = addresses.iter().map(|&it| mask.apply(it));
        let called = own.clone().map(|it| position.looked_up(it));
        let looked_up: BTreeSet<u64> = own.chain(called.clone()).collect();
        let called = called.collect();
        let is_complete = self.with_texts(&mut session, |session, texts| {
            let machine = &mut session.machine;
            self.read_processes(machine, texts, base)?;
            let processes = machine.processes.all.indexed();
            let (mut of_pid, mut with_images) = (BTreeSet::new(), BTreeSet::new());
            for (index, process) in processes {
                let is_meant = pid.is_none() || process.pid == pid;
                of_pid.extend(is_meant.then_some(index as u32));
                let is_system = matches!(process.pid, Some(0 | 4));
                with_images.extend((is_meant || is_system).then_some(index as u32));
            }
            self.read_modules(machine, texts, base, Some(&of_pid))?;
            self.read_images(machine, texts, base, Some(&with_images))?;
            self.read_symbols_at(machine, texts, base, (&of_pid, &looked_up))?;
            self.read_details(machine, texts, base, Some(&of_pid))?;
            let unjitted = (&called, precompiled);
            self.read_bodies_at(machine, texts, base, (&of_pid, &looked_up), unjitted)
        })?;
        Ok((session.finish(), diagnostics, is_complete))
    }

    /// Calls `read` with the session's names moved out of it.
    fn with_texts<T>(
        &self,
        session: &mut Session,
        read: impl FnOnce(&mut Session, &mut Texts<'_>) -> Result<T, SavedError>,
    ) -> Result<T, SavedError> {
        let mut names = std::mem::take(&mut session.machine.names);
        let mut texts = Texts::new(self, &mut names);
        let read = read(session, &mut texts);
        // A block is invalid if a block that it refers to is.
        let cause = texts.error();
        session.machine.names = names;
        read.map_err(|error| cause.unwrap_or(error))
    }

    pub(super) fn recording(&self) -> Result<RecordingRow, SavedError> {
        let rows = self.read_all(Table::Recording, &mut NoTexts, recording_rows::recording)?;
        let recording = rows.into_iter().next();
        recording.ok_or_else(|| self.inconsistent(Table::Recording))
    }

    /// Reads the event types. Returns their ids; equal types of files read before are reused.
    fn read_event_types(&self, session: &mut Session) -> Result<Vec<EventTypeId>, SavedError> {
        let all = &mut session.types.all;
        let before = all.len();
        let rows = self.read_all(Table::EventTypes, &mut NoTexts, recording_rows::event_type)?;
        let add = |row: recording_rows::EventTypeRow| {
            let is_same = |info: &EventTypeInfo| {
                (info.schema.key(), info.schema.event_name())
                    == (row.schema.key(), row.schema.event_name())
            };
            let index = all[..before].iter().position(is_same);
            let index = index.unwrap_or_else(|| {
                all.push(EventTypeInfo::new(row.schema.clone(), &session.options));
                all.len() - 1
            });
            all[index].count += row.count;
            all[index].stacks += row.stacks;
            EventTypeId(index as u32)
        };
        Ok(rows.into_iter().map(add).collect())
    }

    fn read_processes(
        &self,
        machine: &mut Machine,
        texts: &mut dyn TextSource,
        base: &mut Base,
    ) -> Result<(), SavedError> {
        let mut rows = self.read_all::<Process>(Table::Processes, texts, rows::process)?;
        for process in &mut rows {
            base.times(process.start.iter_mut().chain(&mut process.end));
        }
        let same = match base.joins_within_ns {
            None => vec![None; rows.len()],
            Some(slack_ns) => {
                let candidates = Candidates {
                    processes: &rows,
                    modules: &self.read_of(Table::Modules, texts, None, rows::module)?,
                    images: &self.read_of(Table::Images, texts, None, rows::image)?,
                };
                candidates.find(machine, slack_ns)
            }
        };
        for (process, same) in rows.into_iter().zip(same) {
            let slack_ns = base.joins_within_ns.unwrap_or_default();
            let known = same.map(|index| KnownModules::of(&machine.state(index).code, slack_ns));
            let index = match same {
                None => machine.processes.restore(process),
                Some(index) => {
                    same::join_process(&mut machine.processes.all[index.index()], process);
                    index
                }
            };
            base.processes.push(BaseProcess {
                index,
                modules: Vec::new(),
                known,
            });
        }
        machine.ensure_states();
        Ok(())
    }

    fn read_threads(
        &self,
        machine: &mut Machine,
        texts: &mut dyn TextSource,
        base: &mut Base,
    ) -> Result<(), SavedError> {
        for mut thread in self.read_all::<Thread>(Table::Threads, texts, rows::thread)? {
            let process = base.processes.get(thread.process.index());
            let process = process.ok_or_else(|| self.inconsistent(Table::Threads))?;
            thread.process = process.index;
            base.times(thread.earlier.iter_mut().map(|(until, _)| until));
            let index = match process.known {
                None => machine.processes.restore_thread(thread),
                Some(_) => {
                    let index = machine.processes.thread(process.index, thread.tid);
                    let old = &mut machine.processes.threads[index.index()];
                    same::join_thread(old, &thread, base.shift_ns);
                    index
                }
            };
            base.threads.push(index);
        }
        Ok(())
    }

    /// Reads the rows of some processes, or of all.
    fn read_of<T: Default>(
        &self,
        table: Table,
        texts: &mut dyn TextSource,
        processes: Option<&BTreeSet<u32>>,
        code: impl Fn(&mut Coder<'_>, &mut T) + Copy,
    ) -> Result<Vec<Of<T>>, SavedError> {
        let blocks: BTreeSet<usize> = match processes {
            None => (0..self.blocks(table)).collect(),
            Some(all) => (all.iter())
                .flat_map(|&process| self.blocks_of_process(table, process))
                .collect(),
        };
        let mut rows = Vec::new();
        for block in blocks {
            let code = rows::of(self.rows(Table::Processes), code);
            self.read_onto::<Of<T>>(&mut rows, table, block, texts, code)?;
        }
        if let Some(all) = processes {
            rows.retain(|row| all.contains(&row.process));
        }
        Ok(rows)
    }

    fn read_modules(
        &self,
        machine: &mut Machine,
        texts: &mut dyn TextSource,
        base: &mut Base,
        processes: Option<&BTreeSet<u32>>,
    ) -> Result<(), SavedError> {
        for mut row in self.read_of(Table::Modules, texts, processes, rows::module)? {
            base.lifetime(&mut row.it.loaded, &mut row.it.end);
            base.times(&mut row.it.unloads);
            let process = &mut base.processes[row.process as usize];
            let code = &mut machine.state(process.index).code;
            let module = match &process.known {
                None => code.add_module(row.it),
                Some(known) => known.join(code, row.it),
            };
            process.modules.push(module);
        }
        Ok(())
    }

    fn read_images(
        &self,
        machine: &mut Machine,
        texts: &mut dyn TextSource,
        base: &Base,
        processes: Option<&BTreeSet<u32>>,
    ) -> Result<(), SavedError> {
        let mut others: BTreeMap<ProcessIndex, Vec<Image>> = BTreeMap::new();
        for mut row in self.read_of(Table::Images, texts, processes, rows::image)? {
            base.lifetime(&mut row.it.loaded, &mut row.it.end);
            base.times([&mut row.it.confirmed]);
            let process = &base.processes[row.process as usize];
            match process.known {
                None => {
                    machine.state(process.index).images.push(row.it);
                }
                Some(_) => others.entry(process.index).or_default().push(row.it),
            }
        }
        for (process, images) in others {
            let slack_ns = base.joins_within_ns.unwrap_or_default();
            same::join_images(machine.state(process), images, slack_ns);
        }
        Ok(())
    }

    fn read_body_block(
        &self,
        block: usize,
        texts: &mut dyn TextSource,
    ) -> Result<Vec<Of<BodyRow>>, SavedError> {
        let code = rows::of(self.rows(Table::Processes), rows::body);
        self.read(Table::Bodies, block, texts, code)
    }

    fn read_bodies(
        &self,
        machine: &mut Machine,
        texts: &mut dyn TextSource,
        base: &Base,
    ) -> Result<(), SavedError> {
        let code = rows::of(self.rows(Table::Processes), rows::body);
        let bodies = self.read_all(Table::Bodies, texts, code)?;
        self.add_bodies(machine, base, bodies)
    }

    /// Adds bodies in their order.
    fn add_bodies(
        &self,
        machine: &mut Machine,
        base: &Base,
        mut bodies: Vec<Of<BodyRow>>,
    ) -> Result<(), SavedError> {
        let key = |row: &Of<BodyRow>| u64::from(row.process) << 32 | u64::from(row.number);
        let mut order: Vec<(u64, usize)> = bodies.iter().map(key).zip(0..).collect();
        order.sort_unstable_by_key(|&(key, _)| key);
        let are_distinct = order.is_sorted_by(|(a, _), (b, _)| a < b);
        if !are_distinct {
            return Err(self.inconsistent(Table::Bodies));
        }
        let mut others: BTreeMap<ProcessIndex, Vec<OtherBody>> = BTreeMap::new();
        for (_, position) in order {
            // Large rows are moved once.
            let mut row: Of<BodyRow> = std::mem::take(&mut bodies[position]);
            let process = &base.processes[row.process as usize];
            let code = &mut machine.state(process.index).code;
            let body = &mut row.it.body;
            base.lifetime(&mut body.loaded, &mut body.end);
            base.times([&mut body.confirmed, &mut body.earliest]);
            if let Some(module) = &mut body.module {
                let counterpart = process.modules.get(module.index());
                *module = *counterpart.ok_or_else(|| self.inconsistent(Table::Bodies))?;
            }
            let BodyRow {
                body,
                module_id,
                targets,
            } = row.it;
            match &process.known {
                None => {
                    code.restore_body(body, targets, module_id);
                }
                Some(_) => others.entry(process.index).or_default().push(OtherBody {
                    body,
                    targets,
                    module_id,
                }),
            }
        }
        for process in base.processes.iter().filter(|it| it.known.is_some()) {
            let bodies = others.remove(&process.index).unwrap_or_default();
            let slack_ns = base.joins_within_ns.unwrap_or_default();
            let ProcessState { code, images, .. } = machine.state(process.index);
            code.join(bodies, images.iter(), slack_ns);
        }
        Ok(())
    }

    /// Reads the bodies at addresses, those that name the inlinees there, and the precompiled ones
    /// as required; `called` are the addresses that must have jitted code. Returns whether
    /// precompiled ones are read.
    fn read_bodies_at(
        &self,
        machine: &mut Machine,
        texts: &mut dyn TextSource,
        base: &Base,
        (processes, addresses): (&BTreeSet<u32>, &BTreeSet<u64>),
        (called, precompiled): (&BTreeSet<u64>, Precompiled),
    ) -> Result<bool, SavedError> {
        let mut are_jitted = !called.is_empty();
        let mut read = Blocks::default();
        let mut wanted = BTreeSet::new();
        let mut inlined = BTreeSet::new();
        let all = processes
            .iter()
            .flat_map(|&it| addresses.iter().map(move |&at| (it, at)));
        for (process, address) in all {
            let block = self.block_of_key(Table::Bodies, (process, address));
            let rows = block.map(|block| read.get(self, block)).transpose()?;
            let mut is_jitted = false;
            for row in rows.unwrap_or_default() {
                let body = &row.it.body;
                if row.process == process && (body.start..=body.last()).contains(&address) {
                    is_jitted = body.flags.is_jitted() && !body.approximate;
                    are_jitted &= is_jitted;
                    wanted.insert((process, row.number));
                    let nodes = body.inline_tree().map_or(&[][..], |tree| tree.0.nodes());
                    inlined.extend(nodes.iter().map(|node| (process, node.method_id)));
                }
            }
            are_jitted &= is_jitted || !called.contains(&address);
        }
        let mut blocks = BTreeSet::new();
        for &(process, method) in &inlined {
            blocks.extend(self.block_of_key(Table::Methods, (process, method)));
        }
        let mut named = BTreeSet::new();
        for block in blocks {
            let code = rows::of(self.rows(Table::Processes), rows::method);
            let methods = self.read::<Of<MethodRow>>(Table::Methods, block, texts, code)?;
            let is_inlined =
                |row: &Of<MethodRow>| inlined.contains(&(row.process, row.it.method_id));
            let methods = methods.into_iter().filter(is_inlined);
            named.extend(methods.flat_map(|row| row.it.bodies));
        }
        let are_read = match precompiled {
            Precompiled::Never => false,
            Precompiled::Unjitted => !are_jitted,
            Precompiled::Always => true,
        };
        if are_read {
            let code = rows::precompiled;
            let rows = self.read_of(Table::Precompiled, texts, Some(processes), code)?;
            named.extend(rows.into_iter().map(|row| row.it));
        }
        let bodies = self.rows(Table::Bodies);
        for row in named {
            if row as usize >= bodies {
                return Err(self.inconsistent(Table::Bodies));
            }
            let (block, first) = self.block_of_row(Table::Bodies, row as usize);
            let row = &read.get(self, block)?[row as usize - first];
            wanted.insert((row.process, row.number));
        }
        // Lifetimes can bound each other through other rows: keep the rows of a block together, and
        // read the texts of the wanted ones.
        let mut bodies: Vec<_> = read.rows.into_iter().flat_map(|(_, rows)| rows).collect();
        bodies.retain(|row| processes.contains(&row.process));
        for row in &mut bodies {
            if wanted.contains(&(row.process, row.number)) {
                let read = row.it.read_texts(texts);
                read.ok_or_else(|| self.inconsistent(Table::Bodies))?;
            } else {
                row.it.drop_texts();
            }
        }
        self.add_bodies(machine, base, bodies)?;
        Ok(are_read)
    }

    fn read_lone_maps(&self, machine: &mut Machine, base: &Base) -> Result<(), SavedError> {
        for mut row in self.read_of(Table::LoneMaps, &mut NoTexts, None, rows::lone_map)? {
            base.times([&mut row.it.time]);
            let state = machine.state(base.process(row.process));
            state.code.restore_map(row.it);
        }
        Ok(())
    }

    fn read_symbols(
        &self,
        machine: &mut Machine,
        texts: &mut dyn TextSource,
        base: &Base,
    ) -> Result<(), SavedError> {
        let blocks = (0..self.blocks(Table::Symbols)).collect();
        self.read_symbol_blocks(machine, texts, base, blocks)
    }

    fn read_symbols_at(
        &self,
        machine: &mut Machine,
        texts: &mut dyn TextSource,
        base: &Base,
        (processes, addresses): (&BTreeSet<u32>, &BTreeSet<u64>),
    ) -> Result<(), SavedError> {
        let all = (processes.iter()).flat_map(|&it| addresses.iter().map(move |&at| (it, at)));
        let blocks = all.filter_map(|key| self.block_of_key(Table::Symbols, key));
        self.read_symbol_blocks(machine, texts, base, blocks.collect())
    }

    fn read_symbol_blocks(
        &self,
        machine: &mut Machine,
        texts: &mut dyn TextSource,
        base: &Base,
        blocks: BTreeSet<usize>,
    ) -> Result<(), SavedError> {
        let mut symbols = Vec::new();
        for block in blocks {
            let code = rows::of(self.rows(Table::Processes), rows::symbol);
            let rows = self.read::<Of<UntimedSymbol>>(Table::Symbols, block, texts, code)?;
            symbols.extend(rows);
        }
        symbols.sort_by_key(|row| (row.process, row.number));
        for row in symbols {
            let state = machine.state(base.process(row.process));
            state.untimed.symbols.push(row.it);
        }
        Ok(())
    }

    fn read_details(
        &self,
        machine: &mut Machine,
        texts: &mut dyn TextSource,
        base: &Base,
        processes: Option<&BTreeSet<u32>>,
    ) -> Result<(), SavedError> {
        for row in self.read_of::<DetailsRow>(Table::Details, texts, processes, rows::details)? {
            let (it, state) = (row.it, machine.state(base.process(row.process)));
            let time = it.time.saturating_add(base.shift_ns);
            state.clr.add_details(it.method_id, time, it.details);
        }
        for row in self.read_of(Table::Types, texts, processes, rows::type_name)? {
            let (type_id, name) = row.it;
            let state = machine.state(base.process(row.process));
            state.clr.name_type(0, type_id, name);
        }
        for row in self.read_of(Table::Pdbs, texts, processes, rows::pdb)? {
            let (clr_instance, module, bytes) = row.it;
            let state = machine.state(base.process(row.process));
            let pdb = InMemoryPdb::new(bytes);
            state.clr.add_pdb((clr_instance, module), pdb);
        }
        Ok(())
    }

    /// Returns the error for parts that are inconsistent.
    pub(super) fn inconsistent(&self, table: Table) -> SavedError {
        SavedError::Damaged {
            part: table.as_str(),
            offset: self.offset(table),
        }
    }
}

/// When a part of a timeline has the precompiled code of its processes, which identifies the files
/// of modules.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Precompiled {
    Never,
    /// If an address has no jitted code.
    Unjitted,
    Always,
}

/// Blocks of bodies that were read, with ranks in place of names.
#[derive(Default)]
struct Blocks {
    rows: Vec<(usize, Vec<Of<BodyRow>>)>,
}

impl Blocks {
    fn get(
        &mut self,
        file: &SavedTimeline<'_>,
        block: usize,
    ) -> Result<&[Of<BodyRow>], SavedError> {
        let at = match self.rows.iter().position(|(index, _)| *index == block) {
            Some(at) => at,
            None => {
                let rows = file.read_body_block(block, &mut Unread)?;
                self.rows.push((block, rows));
                self.rows.len() - 1
            }
        };
        Ok(&self.rows[at].1)
    }
}
