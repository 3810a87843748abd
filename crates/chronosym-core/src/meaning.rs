//! The meaning of each event type to the engine.
//!
//! Ids are those of the CLR's manifest, `ClrEtwAll.man`, and of the kernel's classes,
//! `wmicore.mof`.

use chronosym_events::Provider::{
    self, EventTracing, NativeRuntime, Private, Rundown, Runtime, SampleProfiler, UniversalEvents,
    UniversalSystem,
};
use chronosym_events::kernel::classes::{EVENT_INFO, PERF_INFO, STACK_WALK, THREAD};
use chronosym_events::{EventKey, EventSchema, Guid, MANIFEST_EVENT_ID};

use crate::marker_kind::MarkerKind::{self, Collection, Compilation, Contention, Exception, Pause};
use crate::marker_kind::{Mark, Phase};

/// The role of an event type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// Not used.
    Other,
    /// A tick of EventPipe's wall-clock profiler.
    ThreadSample,
    /// A statement about code, processes or threads.
    Code,
    /// As `Code`, or a CPU sample.
    CodeOrSample,
    /// A CPU sample of the Windows kernel's timer.
    TimerSample,
    /// A sample of a performance counter.
    CounterSample,
    /// A sampling interval.
    SampleInterval,
    /// A context switch, whose stack is that of the new thread.
    ContextSwitch,
    /// A thread becomes ready for a processor.
    Wakeup,
    /// The stack of an earlier event, or a part of one.
    Stack,
    /// The stack of the thread's previous event of the CLR.
    ClrStack,
    /// A description of other events.
    Description,
}

impl Role {
    /// Returns the role of an event type.
    pub fn of(schema: &EventSchema) -> Self {
        Meaning::of(schema).role
    }

    /// Returns whether the events state code, so that they must be pushed in time order.
    pub fn states_code(self) -> bool {
        matches!(self, Role::Code | Role::CodeOrSample)
    }
}

/// The meaning of an event type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meaning {
    pub role: Role,
    pub mark: Option<Mark>,
    /// The allocated bytes, which are the weight of these events; others weigh one each.
    pub bytes: Option<Number>,
}

/// A number at an offset of the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    U32(usize),
    U64(usize),
    /// The bytes that an AllocationSampled of version 0 represents, computed from ObjectSize and
    /// SampledByteOffset at its end: each byte is sampled with a probability of 1/102,400, and
    /// represents the bytes up to it and the rest of its object.
    Sampled,
}

impl Number {
    /// Reads the number; `None` if the payload ends before.
    pub fn read(self, payload: &[u8]) -> Option<u64> {
        match self {
            Number::U32(offset) => {
                let bytes = payload.get(offset..)?.first_chunk()?;
                Some(u32::from_le_bytes(*bytes).into())
            }
            Number::U64(offset) => {
                let bytes = payload.get(offset..)?.first_chunk()?;
                Some(u64::from_le_bytes(*bytes))
            }
            Number::Sampled => {
                let (rest, offset) = payload.split_last_chunk()?;
                let (_, size) = rest.split_last_chunk()?;
                let [size, offset] = [size, offset].map(|bytes| u64::from_le_bytes(*bytes));
                Some(size.saturating_sub(offset).saturating_add(102_400))
            }
        }
    }
}

impl From<Role> for Meaning {
    fn from(role: Role) -> Self {
        Meaning {
            role,
            mark: None,
            bytes: None,
        }
    }
}

impl Meaning {
    /// Returns the meaning of a type. Typed events that are not listed state code.
    pub fn of(schema: &EventSchema) -> Self {
        let role = match schema.key() {
            _ if !schema.is_typed() => Role::Other,
            EventKey::Named { .. } => Role::CodeOrSample,
            EventKey::Manifest {
                provider: UniversalSystem | UniversalEvents,
                ..
            } => Role::CodeOrSample,
            _ => Role::Code,
        };
        let default = Meaning::from(role);
        match schema.key() {
            EventKey::Classic { class, opcode, .. } => default.of_classic(*class, *opcode),
            EventKey::Manifest {
                provider,
                id,
                version,
            } => default.of_manifest(provider, *id, *version),
            EventKey::Named { .. } => default,
        }
    }

    fn of_classic(self, class: Guid, opcode: u8) -> Self {
        match (class, opcode) {
            (PERF_INFO, 46) => Role::TimerSample.into(),
            (PERF_INFO, 47) => Role::CounterSample.into(),
            (PERF_INFO, 72..=74) => Role::SampleInterval.into(),
            (STACK_WALK, _) => Role::Stack.into(),
            (EVENT_INFO, _) => Role::Description.into(),
            // CSwitch.
            (THREAD, 36) => Role::ContextSwitch.into(),
            // ReadyThread.
            (THREAD, 50) => Role::Wakeup.into(),
            _ => self,
        }
    }

    fn of_manifest(self, provider: &Provider, id: u32, version: u32) -> Self {
        match (provider, id) {
            (_, MANIFEST_EVENT_ID) => Role::Description.into(),
            (SampleProfiler, 0) => Role::ThreadSample.into(),
            // StackWalk/UserStack.
            (EventTracing, 18) => Role::Stack.into(),
            // ClrStackWalk.
            (Runtime, 82) | (Rundown, 0) | (Private, 151) => Role::ClrStack.into(),
            // GCStart, GCEnd.
            (Runtime, 1) => self.starts(Collection),
            (Runtime, 2) => self.ends(Collection),
            // GCSuspendEEBegin, GCRestartEEEnd.
            (Runtime, 9) => self.starts(Pause),
            (Runtime, 3) => self.ends(Pause),
            // GCAllocationTick: AllocationAmount, and AllocationAmount64, which does not overflow.
            (Runtime, 10) if version < 2 => self.allocates(Number::U32(0)),
            (Runtime, 10) => self.allocates(Number::U64(10)),
            // AllocationSampled.
            (Runtime, 303) if version == 0 => self.allocates(Number::Sampled),
            // ExceptionThrown.
            (Runtime, 80) => self.marks(Exception, Phase::Instant),
            // ContentionStart, ContentionStop.
            (Runtime, 81) => self.starts(Contention),
            (Runtime, 91) => self.ends(Contention),
            // MethodJittingStarted, MethodLoad, MethodLoadVerbose.
            (Runtime, 145) => self.starts(Compilation),
            (Runtime, 141 | 143) => self.ends(Compilation),
            // Module ranges, threads, tiered compilation and checkpoints: the process
            // exists.
            (Runtime | NativeRuntime, 158 | 280..=282 | 300)
            | (Rundown, 159..=161 | 280 | 300)
            | (Private, 158) => Role::Code.into(),
            _ => self,
        }
    }

    fn marks(self, kind: MarkerKind, phase: Phase) -> Self {
        let mark = Some(Mark { kind, phase });
        Meaning { mark, ..self }
    }

    fn starts(self, kind: MarkerKind) -> Self {
        self.marks(kind, Phase::Start)
    }

    fn ends(self, kind: MarkerKind) -> Self {
        self.marks(kind, Phase::End)
    }

    fn allocates(self, bytes: Number) -> Self {
        let bytes = Some(bytes);
        Meaning { bytes, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_those_of_the_named_events() {
        for (id, name, kind, phase) in [
            (1, "GCStart", Collection, Phase::Start),
            (2, "GCEnd", Collection, Phase::End),
            (3, "GCRestartEEEnd", Pause, Phase::End),
            (9, "GCSuspendEEBegin", Pause, Phase::Start),
            (80, "ExceptionThrown", Exception, Phase::Instant),
            (81, "ContentionStart", Contention, Phase::Start),
            (91, "ContentionStop", Contention, Phase::End),
            (141, "MethodLoad", Compilation, Phase::End),
            (143, "MethodLoadVerbose", Compilation, Phase::End),
            (145, "MethodJittingStarted", Compilation, Phase::Start),
        ] {
            let schema = EventSchema::new(EventKey::Manifest {
                provider: Runtime,
                id,
                version: 2,
            });
            assert_eq!(schema.name(), name);
            let meaning = Meaning::of(&schema);
            assert_eq!(meaning.mark, Some(Mark { kind, phase }));
            assert_eq!(meaning.role.states_code(), schema.is_typed(), "{name}");
        }
    }
}
