//! The frozen state of one trace.

use std::ops::RangeInclusive;
use std::sync::{Arc, OnceLock};

use chronosym_events::OptimizationTier;
use chronosym_types::hash::HashSet;

use crate::activity::Activities;
use crate::activity_ids::{ActivityId, ActivityIds};
use crate::body::CodeBody;
use crate::budget::Budget;
use crate::counters::Counters;
use crate::diagnostic::Diagnostic;
use crate::event_types::EventTypeInfo;
use crate::ids::NameId;
use crate::ids::{ActivityIdIndex, BodyIndex, ProcessIndex, ThreadIndex};
use crate::kept::{KeptEvent, KeptEvents};
use crate::markers::{Marker, Markers};
use crate::names::NameTable;
use crate::process::{Process, Processes, Runtime, Thread};
use crate::recording::{Loss, TraceFacts};
use crate::samples::{SampleClass, SampleLog};
use crate::space::AddressSpace;
use crate::stacks::StackTable;
use crate::terms::Weight;
use crate::thread_time::ThreadTime;
use crate::ticks::WallTimes;
use chronosym_types::SparseVec;

/// The processes of a trace, their code and samples; immutable and [`Sync`].
///
/// Queries with an index of another trace, or of a later snapshot of a live session, return
/// nothing.
#[derive(Debug)]
pub struct Timeline {
    /// Unique among all timelines and snapshots in this process.
    pub(crate) snapshot: u64,
    /// The serial of its session.
    pub(crate) session: u64,
    pub(crate) types: Vec<EventTypeInfo>,
    pub(crate) names: NameTable,
    pub(crate) processes: Processes,
    pub(crate) spaces: SparseVec<Arc<AddressSpace>>,
    /// The processes whose images are in every address space (rule 10).
    pub(crate) system: Vec<ProcessIndex>,
    pub(crate) stacks: StackTable,
    /// The rest of it is for results derived from the timeline.
    pub(crate) budget: Budget,
    pub(crate) samples: SampleLog,
    pub(crate) losses: Vec<Loss>,
    pub(crate) markers: Markers,
    pub(crate) kept: KeptEvents,
    pub(crate) activity_ids: ActivityIds,
    /// Sorted.
    pub(crate) thread_times: Vec<(ThreadIndex, ThreadTime)>,
    pub(crate) counters: Counters,
    pub(crate) facts: TraceFacts,
    pub(crate) address_mask: AddressMask,
    pub(crate) watermark: u64,
    /// Derived from all samples, on first use.
    pub(crate) wall_times: OnceLock<WallTimes>,
    pub(crate) activities: OnceLock<Activities>,
}

/// The bits of a pointer that are not part of the address (rule 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressMask {
    None,
    /// arm32: bit 0 marks Thumb code.
    Thumb,
    /// arm64: the upper bits of a user address may hold authentication; those of kernel addresses
    /// are all set.
    PointerAuthentication,
}

impl AddressMask {
    pub(crate) fn of(facts: &TraceFacts, seen: &HashSet<u64>) -> Self {
        let architecture = facts.machine.as_deref().unwrap_or("").to_ascii_lowercase();
        match facts.pointer_size {
            Some(4) if architecture.contains("arm") || is_thumb(seen) => AddressMask::Thumb,
            Some(8) if architecture.contains("arm64") || architecture.contains("aarch64") => {
                AddressMask::PointerAuthentication
            }
            _ => AddressMask::None,
        }
    }

    pub(crate) fn apply(self, address: u64) -> u64 {
        const BITS: u64 = (1 << 48) - 1;
        match self {
            AddressMask::None => address,
            AddressMask::Thumb => address & !1,
            AddressMask::PointerAuthentication if address >> 55 & 1 == 1 => address | !BITS,
            AddressMask::PointerAuthentication => address & BITS,
        }
    }
}

/// Returns whether the addresses of stacks are Thumb code: many runtimes before .NET 5 do not state
/// the architecture. On 32-bit x86, odd and even addresses are equally likely; that 60 of 64 are
/// odd has a probability of 10^-13.
fn is_thumb(addresses: &HashSet<u64>) -> bool {
    const LEAST: usize = 64;
    let odd = addresses.iter().filter(|&address| address & 1 == 1).count();
    addresses.len() >= LEAST && odd >= addresses.len() / 16 * 15
}

impl Timeline {
    /// Returns the time up to which answers that name code are final, in ns since the trace began;
    /// `u64::MAX` if no event will follow.
    pub fn watermark(&self) -> u64 {
        self.watermark
    }

    /// Returns the memory budget of the recording, with what reading it has used.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// Returns the properties of the whole trace.
    pub fn facts(&self) -> &TraceFacts {
        &self.facts
    }

    /// Returns the event types with their counts.
    pub fn event_types(&self) -> &[EventTypeInfo] {
        &self.types
    }

    /// Returns diagnostics of unusable events and facts.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        self.counters
            .diagnostics(&self.types, self.unbound_il_maps())
    }

    /// Returns the losses of events.
    pub fn losses(&self) -> &[Loss] {
        &self.losses
    }

    /// Returns whether the memory budget left out events or stacks: others may be missing.
    pub fn is_cut_by_memory(&self) -> bool {
        self.counters.out_of_memory.is_some() || self.counters.stacks_dropped > 0
    }

    /// Returns the stored samples.
    pub fn samples(&self) -> &SampleLog {
        &self.samples
    }

    /// Returns runtime activities by time, if [`Options::markers`](crate::Options::markers)
    /// requests them. An end without a start is left out.
    pub fn markers(&self) -> Vec<Marker<'_>> {
        let process_of = |thread| self.thread(thread).process;
        let ticks = match self.markers.have_pauses() {
            true => self.wall_ticks(),
            false => Vec::new(),
        };
        let sampled = |process, times: RangeInclusive<u64>| {
            let from = ticks.partition_point(|tick| *tick < (process, *times.start()));
            let next = ticks.get(from);
            next.is_some_and(|&(of, time)| of == process && times.contains(&time))
        };
        let strings = &self.names.strings;
        self.markers.paired(strings, process_of, sampled)
    }

    /// Returns whether the samples that [`Options::times`](crate::Options::times) selects are as in
    /// a timeline with all samples. False if samples of a process arrived out of time order, or if
    /// the sampling interval changed: read the trace again without a selection of times.
    pub fn has_whole_window(&self) -> bool {
        self.samples.suffices()
    }

    /// Returns the times of the wall-clock samples of each process, sorted.
    fn wall_ticks(&self) -> Vec<(ProcessIndex, u64)> {
        let classes = self.samples.classes();
        let samples = self.samples.iter().filter_map(|(class, time)| {
            let class = &classes[class as usize];
            let process = self.thread(class.thread).process;
            class.kind.is_wall().then_some((process, time))
        });
        let mut ticks: Vec<_> = samples.collect();
        ticks.sort_unstable();
        ticks.dedup();
        ticks
    }

    /// Returns the time of threads according to context switches (rule 25), if
    /// [`Options::switches`](crate::Options::switches) requests it and there are any.
    pub fn thread_times(&self) -> &[(ThreadIndex, ThreadTime)] {
        &self.thread_times
    }

    /// Returns the number of marker events dropped because of the limit
    /// [`Options::markers`](crate::Options::markers).
    pub fn markers_left_out(&self) -> u64 {
        self.markers.left_out()
    }

    /// Returns the events of the types that [`Options::keep`](crate::Options::keep) selects, in
    /// order of arrival.
    pub fn kept_events(&self) -> impl Iterator<Item = KeptEvent<'_>> {
        self.kept.iter()
    }

    /// Returns the number of events dropped because of the limit
    /// [`Options::max_kept_bytes`](crate::Options::max_kept_bytes).
    pub fn kept_events_left_out(&self) -> u64 {
        self.kept.left_out
    }

    /// Returns the activity that a thread carried at a time (ns), by its id, if
    /// [`Options::activity_ids`](crate::Options::activity_ids) requests it: its last event before and
    /// its first one after that time state it, and no event was lost meanwhile.
    pub fn activity_id_at(&self, thread: ThreadIndex, time_ns: u64) -> Option<ActivityIdIndex> {
        let carried = self.activity_ids.at(thread, time_ns)?;
        // A loss of unknown time says nothing about any.
        let is_dated = |loss: &&Loss| loss.to_ns < u64::MAX;
        let mut losses = self.losses.iter().filter(is_dated);
        let is_lost = losses.any(|loss| loss.from_ns <= time_ns && time_ns <= loss.to_ns);
        (!is_lost).then_some(carried)
    }

    /// Returns an activity of this timeline.
    pub fn activity_id(&self, activity: ActivityIdIndex) -> Option<ActivityId> {
        self.activity_ids.get(activity)
    }

    /// Replaces weights of samples, before the timeline is shared: `weight` returns that of a
    /// sample of a class at a time (ns), or `None` to keep it.
    pub fn reweigh(&mut self, weight: impl FnMut(&SampleClass, u64) -> Option<Weight>) {
        self.samples.reweigh(weight);
        self.wall_times = OnceLock::new();
    }

    /// Returns the stacks of the samples.
    pub fn stacks(&self) -> &StackTable {
        &self.stacks
    }

    /// Returns file and line of an offset in a body, in bytes from its start, as stated by the
    /// compiler itself (jitdump).
    pub fn stated_line(
        &self,
        process: ProcessIndex,
        body: BodyIndex,
        offset: u32,
    ) -> Option<(&str, u32)> {
        let code = &self.space(process)?.state.code;
        let lines = code.bodies.get(body.index())?.lines()?;
        let &(_, (file, line)) = lines.upto(offset).last()?;
        Some((self.names.strings.get(file), line))
    }

    /// Returns the address space of a process of this timeline.
    pub(crate) fn space(&self, process: ProcessIndex) -> Option<&AddressSpace> {
        self.spaces.get(process.index()).map(Arc::as_ref)
    }

    pub(crate) fn process(&self, index: ProcessIndex) -> &Process {
        &self.processes.all[index.index()]
    }

    pub(crate) fn thread(&self, index: ThreadIndex) -> &Thread {
        &self.processes.threads[index.index()]
    }

    /// Returns whether a CLR runs in the process, as far as events state.
    pub(crate) fn is_managed(&self, process: ProcessIndex) -> bool {
        let code = &self.spaces[process.index()].state.code;
        self.process(process).is_managed
            || !self.process(process).runtimes.is_empty()
            || !code.bodies.is_empty()
            || !code.modules.is_empty()
            || (self.facts.process_id.is_some()
                && self.facts.process_id == self.process(process).pid)
    }

    /// Returns whether a runtime of the process completed a rundown.
    pub(crate) fn has_rundown(&self, process: ProcessIndex) -> bool {
        self.process(process).runtimes.iter().any(|r| r.rundown)
    }

    fn runtime(&self, process: ProcessIndex, clr_instance: u16) -> Option<&Runtime> {
        let mut runtimes = self.process(process).runtimes.iter();
        runtimes.find(|r| r.clr_instance == clr_instance)
    }

    /// Returns the tier of a body.
    pub(crate) fn tier(&self, process: ProcessIndex, body: &CodeBody) -> Option<OptimizationTier> {
        body.flags.tier().or_else(|| {
            let precompiled = body.is_precompiled() && body.name != NameId::NONE;
            precompiled.then(|| self.precompiled_tier(process, body.clr_instance))
        })
    }

    /// Before .NET Core precompiled code was NGEN's; since then it is ReadyToRun.
    pub(crate) fn precompiled_tier(
        &self,
        process: ProcessIndex,
        clr_instance: u16,
    ) -> OptimizationTier {
        const DESKTOP: u16 = 1;
        match self.runtime(process, clr_instance) {
            Some(runtime) if runtime.sku == DESKTOP => OptimizationTier::PreJIT,
            _ => OptimizationTier::ReadyToRun,
        }
    }

    /// Returns whether call offsets of inline trees are valid: .NET 10 leaves them uninitialised; 8
    /// and 9 fill them in.
    pub(crate) fn call_offsets_are_valid(&self, process: ProcessIndex, clr_instance: u16) -> bool {
        let runtime = self.runtime(process, clr_instance);
        runtime.is_some_and(|r| r.version[0] > 0 && r.version[0] < 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(
        machine: Option<&str>,
        pointer_size: u8,
        addresses: impl Iterator<Item = u64>,
    ) -> AddressMask {
        let facts = TraceFacts {
            machine: machine.map(str::to_owned),
            pointer_size: Some(pointer_size),
            ..TraceFacts::default()
        };
        AddressMask::of(&facts, &addresses.collect())
    }

    #[test]
    fn thumb_code_is_known_by_its_addresses() {
        let odd = |count: u64| (0..count).map(|i| 0x1_0001 + 6 * i);
        let mixed = || (0..1000).map(|i| 0x1_0001 + 5 * i);
        assert_eq!(mask(None, 4, odd(64)), AddressMask::Thumb);
        assert_eq!(mask(None, 4, odd(63)), AddressMask::None);
        assert_eq!(mask(None, 4, mixed()), AddressMask::None);
        assert_eq!(mask(None, 8, odd(64)), AddressMask::None);
        assert_eq!(mask(Some("Linux arm32"), 4, mixed()), AddressMask::Thumb);
        let arm64 = mask(Some("Linux arm64"), 8, odd(64));
        assert_eq!(arm64, AddressMask::PointerAuthentication);
        assert_eq!(AddressMask::Thumb.apply(0x1_0001), 0x1_0000);
    }
}
