//! From a session to a timeline: for good, or as a snapshot of one that goes on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::ids::ProcessIndex;
use crate::machine::Machine;
use crate::markers::Markers;
use crate::process::Processes;
use crate::samples::SampleLog;
use crate::session::Session;
use crate::space::AddressSpace;
use crate::stacks::StackTable;
use crate::timeline::{AddressMask, Timeline};

impl Session {
    /// Freezes what is known into a timeline.
    pub fn finish(mut self) -> Arc<Timeline> {
        self.machine.close_ended();
        self.samples.join_classes();
        Arc::new(Timeline::freeze(self))
    }
}

impl Timeline {
    fn freeze(session: Session) -> Self {
        let Session {
            types,
            machine,
            stacks,
            samples,
            losses,
            markers,
            seen_addresses,
            ..
        } = session;
        let Machine {
            facts,
            counters,
            names,
            processes,
            states,
            ..
        } = machine;
        let spaces = processes
            .all
            .iter()
            .zip(states.into_states())
            .map(|(process, state)| AddressSpace::freeze(process, state))
            .collect();
        Timeline {
            snapshot: next_snapshot(),
            system: system_of(&processes),
            address_mask: AddressMask::of(&facts, &seen_addresses),
            types: types.all,
            names,
            processes,
            spaces,
            stacks,
            samples,
            losses,
            markers,
            counters,
            facts,
            watermark: u64::MAX,
            wall_times: OnceLock::new(),
            activities: OnceLock::new(),
        }
    }

    /// What a session that goes on knows now; without its samples.
    pub(crate) fn of(session: &mut Session, spaces: Vec<AddressSpace>, watermark: u64) -> Self {
        Timeline {
            snapshot: next_snapshot(),
            system: system_of(&session.machine.processes),
            address_mask: AddressMask::of(&session.machine.facts, &session.seen_addresses),
            types: session.types.all.clone(),
            names: session.machine.names.snapshot(),
            processes: session.machine.processes.snapshot(),
            spaces,
            stacks: StackTable::default(),
            samples: SampleLog::default(),
            losses: session.losses.clone(),
            markers: Markers::default(),
            counters: session.machine.counters.clone(),
            facts: session.machine.facts.clone(),
            watermark,
            wall_times: OnceLock::new(),
            activities: OnceLock::new(),
        }
    }
}

/// A pid that stands for the machine itself: Windows' System and idle processes, Linux's kernel.
fn is_system(pid: Option<u32>) -> bool {
    matches!(pid, Some(0 | 4))
}

fn next_snapshot() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn system_of(processes: &Processes) -> Vec<ProcessIndex> {
    let pids = processes.all.iter().enumerate();
    pids.filter(|(_, p)| is_system(p.pid))
        .map(|(i, _)| ProcessIndex(i as u32))
        .collect()
}
