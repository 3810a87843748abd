//! Drops state of a live session, so that memory follows what is alive and what ended recently
//! rather than everything that ever existed.

use rustc_hash::FxHashSet;

use crate::code::ProcessCode;
use crate::ids::{NameId, ProcessIndex};
use crate::recording::Loss;
use crate::session::Session;
use crate::state::ProcessState;
use crate::strings::StringId;

/// Ids of names and strings that are in use.
#[derive(Default)]
struct Used {
    names: FxHashSet<NameId>,
    strings: FxHashSet<StringId>,
}

impl Session {
    /// Drops the processes that ended by `horizon_ns` with all their state; returns them with their
    /// states.
    pub(crate) fn forget_processes(
        &mut self,
        horizon_ns: u64,
    ) -> Vec<(ProcessIndex, ProcessState)> {
        let machine = &mut self.machine;
        let ended = machine.processes.ended_by(horizon_ns);
        machine.processes.forget(&ended);
        let states = ended.into_iter().filter_map(|process| {
            let state = machine.states.remove(process)?;
            machine.counters.unbound_il_maps += state.code.unbound_maps;
            Some((process, state))
        });
        states.collect()
    }

    /// Drops names, strings and adapters' references that no process uses any more. Merges losses
    /// before `horizon_ns`: when code started between them no longer matters for later times.
    pub(crate) fn forget_unused(&mut self, horizon_ns: u64) {
        self.kernel.forget(&self.machine.processes);
        self.universal.forget(&self.machine, horizon_ns);
        let (old, kept): (Vec<_>, Vec<_>) = self
            .losses
            .iter()
            .partition(|loss| loss.to_ns <= horizon_ns);
        let joined = old.into_iter().reduce(Loss::join);
        self.losses = joined.into_iter().chain(kept).collect();
        if let Some(room) = &mut self.room {
            // Memory was freed, and losses have other indices.
            (room.unmeasured, room.loss) = (0, None);
        }

        let strings = &self.machine.names.strings;
        // Visit each string only a few times.
        if strings.count() < self.strings_after_sweep + self.strings_after_sweep / 8 {
            return;
        }
        let mut used = Used::default();
        for state in self.machine.states.iter() {
            used.add(state);
        }
        let processes = self.machine.processes.all.iter();
        used.strings
            .extend(processes.flat_map(|it| [it.name, it.command_line]));
        for thread in self.machine.processes.threads.iter() {
            let earlier = thread.earlier.iter().map(|&(_, name)| name);
            used.strings.extend(earlier.chain([thread.name]));
        }
        used.strings.extend(self.universal.strings());
        self.machine.names.retain(&used.names, used.strings);
        self.strings_after_sweep = self.machine.names.strings.count();
    }
}

impl Used {
    fn add(&mut self, state: &ProcessState) {
        let ProcessState {
            code,
            images,
            untimed,
            clr,
            ..
        } = state;
        self.add_code(code);
        for image in images.iter() {
            self.strings
                .extend([image.path, image.simple_name, image.build_id]);
        }
        for symbol in untimed.symbols.iter() {
            self.names.insert(symbol.name);
            self.strings.insert(symbol.module);
        }
        self.strings.extend(clr.strings());
    }

    fn add_code(&mut self, code: &ProcessCode) {
        for body in code.bodies.iter() {
            self.names.insert(body.name);
            let lines = body.lines().map_or(&[][..], |lines| lines.upto(u32::MAX));
            self.strings
                .extend(lines.iter().map(|&(_, (file, _))| file));
        }
        for module in code.modules.iter() {
            self.strings
                .extend([module.il_path, module.native_path, module.simple_name]);
        }
        self.names.extend(code.stubs.iter().flatten());
        self.names
            .extend(code.entry_points.values().map(|point| point.name));
    }
}
