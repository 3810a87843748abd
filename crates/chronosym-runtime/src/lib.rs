//! Reports from the events that a .NET runtime logs about itself.
//!
//! A [`Report`] states which events it reads. [`Report::options`] makes a session keep them, and
//! each type of report is built from the resulting timeline; [`Collections`] has an example.
//!
//! All times are in ns since the trace began. Definitions and arithmetic are in `docs/runtime.md`.
#![deny(missing_docs)]

mod advice;
mod allocations;
mod contention;
mod counters;
mod decisions;
mod durations;
mod events;
mod exceptions;
mod gc;
mod inlined_callers;
mod jit;
mod numbers;
mod percentiles;
mod report;
mod stacks;
mod suspensions;
mod tail_callers;
mod tasks;
mod texts;
mod threadpool;
mod unused;

pub use advice::advice;
pub use allocations::{Allocation, AllocationEvent, Allocations};
pub use contention::{Contention, Wait};
pub use counters::{Counter, CounterKind, CounterValue, Counters, keep_counters};
pub use decisions::{CompiledBody, InlinedCall, JitDecisions, RejectedCall, TailCall};
pub use durations::{keep_for_durations, weigh_by_duration};
pub use exceptions::{Exceptions, Thrown};
pub use gc::{Collection, Collections, GenerationTotals, HeapStats};
pub use jit::{EntryPointLookups, Jit, JittedMethod, ThreadJit};
pub use numbers::{
    AdjustmentReason, AllocationKind, ContentionKind, GcReason, GcType, SuspensionReason,
    TailCallType,
};
pub use percentiles::Percentiles;
pub use report::Report;
pub use suspensions::{Suspension, SuspensionTotals, Suspensions};
pub use tail_callers::TailCallers;
pub use tasks::{Task, TaskEvent, TaskIndex, Tasks, is_of_tasks, keep_tasks};
pub use threadpool::{Adjustment, QueueLatency, QueuedItem, ThreadPool, WorkerCount};
pub use unused::Unused;
