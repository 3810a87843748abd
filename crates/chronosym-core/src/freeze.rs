//! Freezes a session into a timeline: the final one, or a snapshot of a live session.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::activity_ids::ActivityIds;
use crate::budget::Budget;
use crate::ids::ProcessIndex;
use crate::kept::KeptEvents;
use crate::machine::Machine;
use crate::markers::Markers;
use crate::process::Processes;
use crate::samples::SampleLog;
use crate::session::Session;
use crate::space::AddressSpace;
use crate::stacks::StackTable;
use crate::ticks::WallTimes;
use crate::timeline::{AddressMask, Timeline};
use chronosym_types::SparseVec;

impl Session {
    /// Freezes the session into a timeline.
    pub fn finish(mut self) -> Arc<Timeline> {
        self.machine.close_ended();
        let end_ns = self.machine.facts.duration_ns;
        self.thread_times.finish(end_ns, &mut self.samples);
        self.samples.join_classes();
        self.has_room(usize::MAX);
        let on_cpu = std::mem::take(&mut self.on_cpu);
        let mut timeline = Timeline::freeze(self);
        on_cpu.mark(&mut timeline);
        Arc::new(timeline)
    }
}

impl Timeline {
    fn freeze(session: Session) -> Self {
        let Session {
            options,
            serial,
            types,
            machine,
            stacks,
            mut samples,
            losses,
            markers,
            kept,
            mut activity_ids,
            thread_times,
            seen_addresses,
            kernel,
            ..
        } = session;
        let Machine {
            facts,
            mut counters,
            names,
            mut processes,
            states,
            budget,
            ..
        } = machine;
        activity_ids.finish();
        counters.unpaired_switches += thread_times.unpaired;
        let thread_times = thread_times.sorted(|tid| {
            let process = kernel.owner_before(tid.try_into().ok()?)?;
            Some(processes.thread(process, tid))
        });
        let spaces = (processes.all.iter().zip(states.into_states()))
            .map(|(process, state)| AddressSpace::freeze(process, state, options.few_lookups))
            .map(Arc::new)
            .collect();
        let wall_times = match samples.window() {
            Some(window) => OnceLock::from(WallTimes::Ticks(window.finish())),
            None => OnceLock::new(),
        };
        Timeline {
            snapshot: next_snapshot(),
            session: serial,
            system: system_of(&processes),
            address_mask: AddressMask::of(&facts, &seen_addresses),
            types: types.all,
            names,
            processes,
            spaces,
            stacks: stacks.frozen(),
            budget,
            samples,
            losses,
            markers,
            kept,
            activity_ids,
            thread_times,
            counters,
            facts,
            watermark: u64::MAX,
            wall_times,
            activities: OnceLock::new(),
        }
    }

    /// Returns a snapshot of a live session, without its samples.
    pub(crate) fn of(
        session: &mut Session,
        spaces: SparseVec<Arc<AddressSpace>>,
        watermark: u64,
    ) -> Self {
        Timeline {
            snapshot: next_snapshot(),
            session: session.serial,
            system: system_of(&session.machine.processes),
            address_mask: AddressMask::of(&session.machine.facts, &session.seen_addresses),
            types: session.types.all.clone(),
            names: session.machine.names.snapshot(),
            processes: session.machine.processes.snapshot(),
            spaces,
            stacks: StackTable::default(),
            budget: Budget::UNLIMITED,
            samples: SampleLog::default(),
            losses: session.losses.clone(),
            markers: Markers::default(),
            kept: KeptEvents::default(),
            activity_ids: ActivityIds::default(),
            thread_times: Vec::new(),
            counters: session.machine.counters.clone(),
            facts: session.machine.facts.clone(),
            watermark,
            wall_times: OnceLock::new(),
            activities: OnceLock::new(),
        }
    }
}

fn next_snapshot() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Returns the processes that represent the machine itself: Windows' idle and System processes,
/// Linux's kernel.
fn system_of(processes: &Processes) -> Vec<ProcessIndex> {
    let pids = [0, 4].into_iter();
    let mut system: Vec<_> = pids
        .flat_map(|pid| processes.incarnations(Some(pid)))
        .collect();
    system.sort_unstable();
    system
}
