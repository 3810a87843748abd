//! What each event type means to the engine: the one table.

use chronosym_events::kernel::classes;
use chronosym_events::{EventKey, EventSchema, MANIFEST_EVENT_ID, Provider};

/// What an event of a type is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// Says nothing that is wanted.
    Other,
    /// A tick of EventPipe's wall-clock profiler.
    ThreadSample,
    /// Says something of code, or of processes and threads.
    Code,
    /// As `Code`, or a CPU sample.
    CodeOrSample,
    /// A CPU sample of the Windows kernel's timer.
    TimerSample,
    /// A sample of a performance counter.
    CounterSample,
    /// How often samples are taken.
    SampleInterval,
    /// A stack of an earlier event, or a part of one.
    Stack,
    /// The stack of the runtime's event before it.
    ClrStack,
    /// Describes other events.
    Description,
}

impl Role {
    /// The role of a type.
    pub fn of(schema: &EventSchema) -> Self {
        match schema.key() {
            EventKey::Classic { class, opcode, .. } => match (*class, *opcode) {
                (classes::PERF_INFO, 46) => Role::TimerSample,
                (classes::PERF_INFO, 47) => Role::CounterSample,
                (classes::PERF_INFO, 72..=74) => Role::SampleInterval,
                (classes::STACK_WALK, _) => Role::Stack,
                (classes::EVENT_INFO, _) => Role::Description,
                // Context switches and readied threads come by the million, and say nothing that is wanted.
                (classes::THREAD, 36 | 50) => Role::Other,
                _ => Role::code_if_typed(schema),
            },
            EventKey::Manifest { provider, id, .. } => match (provider, *id) {
                (_, MANIFEST_EVENT_ID) => Role::Description,
                (Provider::SampleProfiler, 0) => Role::ThreadSample,
                (Provider::Runtime, 82) | (Provider::Private, 151) | (Provider::Rundown, 0) => {
                    Role::ClrStack
                }
                (Provider::EventTracing, 18) => Role::Stack,
                // Memory for code, inlining, tail calls, entry points that are looked for, background compilation.
                (
                    Provider::Runtime | Provider::NativeRuntime,
                    146 | 160 | 185 | 186 | 188 | 189 | 191 | 192 | 283 | 284,
                ) => Role::Other,
                // Assemblies, parts of modules, threads, settings, checkpoints: that a process was there follows from them.
                (
                    Provider::Runtime | Provider::NativeRuntime,
                    154 | 155 | 158 | 280..=282 | 300,
                )
                | (Provider::Rundown, 155 | 156 | 159..=161 | 280 | 300)
                | (Provider::Private, 158) => Role::Code,
                (Provider::UniversalSystem | Provider::UniversalEvents, _) if schema.is_typed() => {
                    Role::CodeOrSample
                }
                _ => Role::code_if_typed(schema),
            },
            EventKey::Named { .. } if schema.is_typed() => Role::CodeOrSample,
            EventKey::Named { .. } => Role::Other,
        }
    }

    fn code_if_typed(schema: &EventSchema) -> Self {
        if schema.is_typed() {
            Role::Code
        } else {
            Role::Other
        }
    }

    /// Whether the events must come in the order of their times.
    pub fn says_code(self) -> bool {
        matches!(self, Role::Code | Role::CodeOrSample)
    }
}
