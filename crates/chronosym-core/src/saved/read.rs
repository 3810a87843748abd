//! Reads a saved timeline into a session.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::base::Base;
use super::error::SavedError;
use super::file::{SavedTimeline, Table};
use super::ranks::{NoTexts, TextSource, Unread};
use super::recording_rows::{self, RecordingRow};
use super::rows::{self, BodyRow, MethodRow, Of};
use super::texts::Texts;
use crate::body::{CodeBody, Module};
use crate::diagnostic::Diagnostics;
use crate::event_types::EventTypeInfo;
use crate::ids::{EventTypeId, ProcessIndex};
use crate::images::Image;
use crate::machine::Machine;
use crate::process::{Process, Thread};
use crate::selection::SampleSelection;
use crate::session::Session;
use crate::symbol_identity::InMemoryPdb;
use crate::terms::Position;
use crate::timeline::{AddressMask, Timeline};
use crate::untimed::UntimedSymbol;

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
        let recording = self.recording()?;
        session.machine.facts = recording.facts;
        session.machine.counters = recording.counters;
        session.losses = recording.losses;
        session.markers.left_out = recording.markers_left_out;
        session.see_thumb(recording.is_thumb);
        self.read_rows(session, &Base::default())?;
        Ok(recording.diagnostics)
    }

    /// Reads all rows except the recording's.
    pub(super) fn read_rows(&self, session: &mut Session, base: &Base) -> Result<(), SavedError> {
        let types = self.read_event_types(session)?;
        self.with_texts(session, |session, texts| {
            self.read_processes(&mut session.machine, texts, base)?;
            self.read_threads(&mut session.machine, texts, base)?;
            self.read_modules(&mut session.machine, texts, base)?;
            self.read_images(&mut session.machine, texts, base, None)?;
            self.read_bodies(&mut session.machine, texts, base)?;
            self.read_symbols(&mut session.machine, texts, base)?;
            self.read_details(&mut session.machine, texts, base)?;
            self.read_samples(session, texts, base, &types)
        })
    }

    /// Returns a timeline with the code at some addresses of the processes with an id, or of all
    /// processes, at a time in ns, or at any time; and the diagnostics of the trace. Reads a few
    /// blocks, and resolves only these addresses as the whole timeline does. `None` if a result
    /// depends on more, because one of the addresses has no jitted code.
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
    ) -> Result<Option<(Arc<Timeline>, Diagnostics)>, SavedError> {
        let mut session = Session::new(SampleSelection::None);
        let recording = self.recording()?;
        session.machine.facts = recording.facts;
        session.machine.counters = recording.counters;
        session.losses = recording.losses;
        session.see_thumb(recording.is_thumb);
        self.read_event_types(&mut session)?;
        let diagnostics = recording.diagnostics;
        let base = &Base::default();
        let mask = AddressMask::of(&session.machine.facts, &session.seen_addresses);
        let looked_up = addresses
            .iter()
            .map(|&it| position.looked_up(mask.apply(it)));
        let looked_up: BTreeSet<u64> = looked_up.collect();
        let (of_pid, is_jitted) = self.with_texts(&mut session, |session, texts| {
            let machine = &mut session.machine;
            self.read_processes(machine, texts, base)?;
            self.read_modules(machine, texts, base)?;
            let processes = machine.processes.all.indexed();
            let (mut of_pid, mut with_images) = (BTreeSet::new(), BTreeSet::new());
            for (index, process) in processes {
                let is_meant = pid.is_none() || process.pid == pid;
                of_pid.extend(is_meant.then_some(index as u32));
                let is_system = matches!(process.pid, Some(0 | 4));
                with_images.extend((is_meant || is_system).then_some(index as u32));
            }
            self.read_images(machine, texts, base, Some(&with_images))?;
            self.read_symbols_at(machine, texts, &of_pid, &looked_up)?;
            self.read_details(machine, texts, base)?;
            let is_jitted = self.read_bodies_at(machine, texts, &of_pid, &looked_up)?;
            Ok((of_pid, is_jitted))
        })?;
        if !is_jitted {
            return Ok(None);
        }
        let timeline = session.finish();
        // If no code is alive there, symbol files of any module may supply the name.
        let is_alive = |process: u32, address: u64| {
            let process = ProcessIndex(process);
            let lifetimes = timeline.lifetimes_of(process, address, position);
            let mut times = match time_ns {
                Some(time) => vec![time],
                None => lifetimes.iter().map(|lifetime| lifetime.from).collect(),
            };
            times.retain(|&time| timeline.body(process, address, time, position).is_none());
            times.is_empty() && !lifetimes.is_empty()
        };
        let are_alive = (of_pid.iter())
            .all(|&process| addresses.iter().all(|&address| is_alive(process, address)));
        Ok(are_alive.then_some((timeline, diagnostics)))
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
        base: &Base,
    ) -> Result<(), SavedError> {
        for mut process in self.read_all::<Process>(Table::Processes, texts, rows::process)? {
            base.times(process.start.iter_mut().chain(&mut process.end));
            machine.processes.restore(process);
        }
        machine.ensure_states();
        Ok(())
    }

    fn read_threads(
        &self,
        machine: &mut Machine,
        texts: &mut dyn TextSource,
        base: &Base,
    ) -> Result<(), SavedError> {
        for mut thread in self.read_all::<Thread>(Table::Threads, texts, rows::thread)? {
            thread.process = base.process(thread.process.0);
            base.times(thread.earlier.iter_mut().map(|(until, _)| until));
            if thread.process.index() >= machine.processes.all.end() {
                return Err(self.inconsistent(Table::Threads));
            }
            machine.processes.restore_thread(thread);
        }
        Ok(())
    }

    fn read_modules(
        &self,
        machine: &mut Machine,
        texts: &mut dyn TextSource,
        base: &Base,
    ) -> Result<(), SavedError> {
        let code = rows::of(self.rows(Table::Processes), rows::module);
        for mut row in self.read_all::<Of<Module>>(Table::Modules, texts, code)? {
            let state = machine.state(base.process(row.process));
            base.lifetime(&mut row.it.loaded, &mut row.it.end);
            state.code.add_module(row.it);
        }
        Ok(())
    }

    /// Reads the images of some processes, or of all.
    fn read_images(
        &self,
        machine: &mut Machine,
        texts: &mut dyn TextSource,
        base: &Base,
        processes: Option<&BTreeSet<u32>>,
    ) -> Result<(), SavedError> {
        let count = self.rows(Table::Processes);
        let blocks: BTreeSet<usize> = match processes {
            None => (0..self.blocks(Table::Images)).collect(),
            Some(all) => (all.iter())
                .flat_map(|&process| self.blocks_of_process(Table::Images, process))
                .collect(),
        };
        for block in blocks {
            let code = rows::of(count, rows::image);
            for mut row in self.read::<Of<Image>>(Table::Images, block, texts, code)? {
                if processes.is_none_or(|all| all.contains(&row.process)) {
                    base.lifetime(&mut row.it.loaded, &mut row.it.end);
                    base.times([&mut row.it.confirmed]);
                    let state = machine.state(base.process(row.process));
                    state.images.push(row.it);
                }
            }
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
        let mut bodies = Vec::new();
        for block in 0..self.blocks(Table::Bodies) {
            bodies.append(&mut self.read_body_block(block, texts)?);
        }
        self.add_bodies(machine, base, bodies)
    }

    /// Adds bodies in their order.
    fn add_bodies(
        &self,
        machine: &mut Machine,
        base: &Base,
        mut bodies: Vec<Of<BodyRow>>,
    ) -> Result<(), SavedError> {
        bodies.sort_by_key(|row| (row.process, row.number));
        let key = |row: &Of<BodyRow>| (row.process, row.number);
        let are_distinct = bodies.is_sorted_by(|a, b| key(a) < key(b));
        let fits = |row: &Of<BodyRow>| {
            let state = &machine.states[base.process(row.process).index()];
            let modules = state.code.modules.end();
            row.it
                .body
                .module
                .is_none_or(|module| module.index() < modules)
        };
        if !are_distinct || !bodies.iter().all(fits) {
            return Err(self.inconsistent(Table::Bodies));
        }
        for mut row in bodies {
            let state = machine.state(base.process(row.process));
            let body = &mut row.it.body;
            base.lifetime(&mut body.loaded, &mut body.end);
            base.times([&mut body.confirmed, &mut body.earliest]);
            state.code.restore_body(row.it.body, row.it.targets);
        }
        Ok(())
    }

    /// Reads the bodies at addresses, and those that name the inlinees there. Returns whether all
    /// addresses have jitted code.
    fn read_bodies_at(
        &self,
        machine: &mut Machine,
        texts: &mut dyn TextSource,
        processes: &BTreeSet<u32>,
        addresses: &BTreeSet<u64>,
    ) -> Result<bool, SavedError> {
        let mut read = Blocks::default();
        let mut are_jitted = true;
        let mut wanted = BTreeSet::new();
        let mut inlined = BTreeSet::new();
        let all = processes
            .iter()
            .flat_map(|&it| addresses.iter().map(move |&at| (it, at)));
        for (process, address) in all {
            let covers = |row: &&Of<BodyRow>| {
                let body = &row.it.body;
                row.process == process && (body.start..=body.last()).contains(&address)
            };
            let block = self.block_of_key(Table::Bodies, (process, address));
            let rows = block.map(|block| read.get(self, block)).transpose()?;
            let bodies: Vec<_> = rows.unwrap_or_default().iter().filter(covers).collect();
            wanted.extend(bodies.iter().map(|row| (row.process, row.number)));
            let bodies: Vec<&CodeBody> = bodies.iter().map(|row| &row.it.body).collect();
            let is_jitted = |body: &&CodeBody| body.flags.is_jitted() && !body.approximate;
            are_jitted &= !bodies.is_empty() && bodies.iter().all(is_jitted);
            for body in bodies {
                let nodes = body.inline_tree().map_or(&[][..], |tree| tree.0.nodes());
                inlined.extend(nodes.iter().map(|node| (process, node.method_id)));
            }
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
        let bodies = self.rows(Table::Bodies);
        for row in named {
            if row as usize >= bodies {
                return Err(self.inconsistent(Table::Methods));
            }
            let (block, first) = self.block_of_row(Table::Bodies, row as usize);
            let row = &read.get(self, block)?[row as usize - first];
            wanted.insert((row.process, row.number));
        }
        // Lifetimes can bound each other through other rows: keep the rows of a block together, and
        // read the texts of the wanted ones.
        let mut bodies: Vec<_> = read.rows.into_iter().flat_map(|(_, rows)| rows).collect();
        for row in &mut bodies {
            if wanted.contains(&(row.process, row.number)) {
                let read = row.it.read_texts(texts);
                read.ok_or_else(|| self.inconsistent(Table::Bodies))?;
            } else {
                row.it.drop_texts();
            }
        }
        self.add_bodies(machine, &Base::default(), bodies)?;
        Ok(are_jitted)
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
        processes: &BTreeSet<u32>,
        addresses: &BTreeSet<u64>,
    ) -> Result<(), SavedError> {
        let all = (processes.iter()).flat_map(|&it| addresses.iter().map(move |&at| (it, at)));
        let blocks = all.filter_map(|key| self.block_of_key(Table::Symbols, key));
        self.read_symbol_blocks(machine, texts, &Base::default(), blocks.collect())
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
    ) -> Result<(), SavedError> {
        let count = self.rows(Table::Processes);
        for row in self.read_all(Table::Details, texts, rows::of(count, rows::details))? {
            let rows::DetailsRow {
                method_id,
                time,
                details,
            } = row.it;
            let state = machine.state(base.process(row.process));
            state
                .clr
                .add_details(method_id, time.saturating_add(base.shift_ns), details);
        }
        for row in self.read_all(Table::Types, texts, rows::of(count, rows::type_name))? {
            let (type_id, name) = row.it;
            let state = machine.state(base.process(row.process));
            state.clr.name_type(0, type_id, name);
        }
        for row in self.read_all(Table::Pdbs, texts, rows::of(count, rows::pdb))? {
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
