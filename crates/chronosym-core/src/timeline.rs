//! The frozen answer machine of one trace.

use std::sync::OnceLock;

use chronosym_events::OptimizationTier;
use chronosym_types::hash::HashSet;

use crate::activity::Activities;
use crate::body::CodeBody;
use crate::counters::Counters;
use crate::diagnostic::Diagnostic;
use crate::event_types::EventTypeInfo;
use crate::ids::NameId;
use crate::ids::{BodyIndex, ProcessIndex, ThreadIndex};
use crate::markers::{Marker, Markers};
use crate::names::Names;
use crate::process::{Process, Processes, Runtime, Thread};
use crate::recording::{Loss, TraceFacts};
use crate::samples::SampleLog;
use crate::space::AddressSpace;
use crate::stacks::StackTable;

/// What a trace says of its processes, their code and its samples; immutable and [`Sync`].
///
/// An index that is not this timeline's, but of a later one of a live session or of another trace's, finds nothing.
#[derive(Debug)]
pub struct Timeline {
    /// No other timeline or snapshot of one in this process has the same.
    pub(crate) snapshot: u64,
    pub(crate) types: Vec<EventTypeInfo>,
    pub(crate) names: Names,
    pub(crate) processes: Processes,
    pub(crate) spaces: Vec<AddressSpace>,
    /// Whose images stand in every address space (rule 10).
    pub(crate) system: Vec<ProcessIndex>,
    pub(crate) stacks: StackTable,
    pub(crate) samples: SampleLog,
    pub(crate) losses: Vec<Loss>,
    pub(crate) markers: Markers,
    pub(crate) counters: Counters,
    pub(crate) facts: TraceFacts,
    pub(crate) address_mask: AddressMask,
    pub(crate) watermark: u64,
    /// What follows from all samples together, found when it is first asked for.
    pub(crate) wall_times: OnceLock<Vec<u64>>,
    pub(crate) activities: OnceLock<Activities>,
}

/// What of a pointer is no address (rule 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressMask {
    None,
    /// arm32: bit 0 says that the code is Thumb.
    Thumb,
    /// arm64: the upper bits of a user address can carry authentication; kernel addresses have them all set.
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

/// Whether the addresses of stacks say themselves that they are Thumb code: many runtimes before .NET 5 do not name their
/// processor. Instructions of a 32-bit x86 lie at odd and even addresses alike; of 64 there, 60 are odd once in 10^13.
fn is_thumb(addresses: &HashSet<u64>) -> bool {
    const LEAST: usize = 64;
    let odd = addresses.iter().filter(|&address| address & 1 == 1).count();
    addresses.len() >= LEAST && odd >= addresses.len() / 16 * 15
}

impl Timeline {
    /// Up to when answers that name code are final, ns since the trace began; `u64::MAX` if no event is to come.
    pub fn watermark(&self) -> u64 {
        self.watermark
    }

    /// What is known of the whole trace.
    pub fn facts(&self) -> &TraceFacts {
        &self.facts
    }

    /// The event types that came, with their counts.
    pub fn event_types(&self) -> &[EventTypeInfo] {
        &self.types
    }

    /// What of the events and facts could not be used.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        self.counters
            .diagnostics(&self.types, self.unbound_il_maps())
    }

    /// Events that the trace lost.
    pub fn losses(&self) -> &[Loss] {
        &self.losses
    }

    /// The samples that were kept.
    pub fn samples(&self) -> &SampleLog {
        &self.samples
    }

    /// What runtimes did, by time, as far as [`Options::markers`](crate::Options::markers) asked for it. An end without its
    /// start is left out.
    pub fn markers(&self) -> Vec<Marker<'_>> {
        let process_of = |thread| self.thread(thread).process;
        self.markers.paired(&self.names.strings, process_of)
    }

    /// Events that state what runtimes did and were left out, because there were more than
    /// [`Options::markers`](crate::Options::markers).
    pub fn markers_left_out(&self) -> u64 {
        self.markers.left_out()
    }

    /// The stacks of the samples.
    pub fn stacks(&self) -> &StackTable {
        &self.stacks
    }

    /// File and line of an offset in a body, in bytes from its start, where the compiler itself gave lines (jitdump).
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

    /// The address space of a process, if it is one of this timeline's.
    pub(crate) fn space(&self, process: ProcessIndex) -> Option<&AddressSpace> {
        self.spaces.get(process.index())
    }

    pub(crate) fn process(&self, index: ProcessIndex) -> &Process {
        &self.processes.all[index.index()]
    }

    pub(crate) fn thread(&self, index: ThreadIndex) -> &Thread {
        &self.processes.threads[index.index()]
    }

    /// Whether a CLR runs in the process, as far as events tell.
    pub(crate) fn is_managed(&self, process: ProcessIndex) -> bool {
        let code = &self.spaces[process.index()].state.code;
        !self.process(process).runtimes.is_empty()
            || !code.bodies.is_empty()
            || !code.modules.is_empty()
            || (self.facts.process_id.is_some()
                && self.facts.process_id == self.process(process).pid)
    }

    /// Whether a runtime of the process listed all that was alive.
    pub(crate) fn has_rundown(&self, process: ProcessIndex) -> bool {
        self.process(process).runtimes.iter().any(|r| r.rundown)
    }

    fn runtime(&self, process: ProcessIndex, clr_instance: u16) -> Option<&Runtime> {
        let mut runtimes = self.process(process).runtimes.iter();
        runtimes.find(|r| r.clr_instance == clr_instance)
    }

    /// How a body was compiled.
    pub(crate) fn tier(&self, process: ProcessIndex, body: &CodeBody) -> Option<OptimizationTier> {
        body.flags.tier().or_else(|| {
            let precompiled =
                !body.flags.is_jitted() && !body.flags.is_dynamic() && body.name != NameId::NONE;
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

    /// .NET 10 leaves the call offsets of inline trees uninitialised; 8 and 9 are known to fill them in.
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
