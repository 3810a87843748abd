#![doc = include_str!("../README.md")]
#![deny(missing_docs)]

mod array;
mod catalog;
mod clr;
mod cursor;
mod describe;
mod error;
mod event;
#[cfg(feature = "manifest")]
mod event_source;
mod field;
mod guid;
mod inline_tree;
pub mod kernel;
mod layout;
mod manifest;
mod part;
mod provider;
mod schema;
mod text;
mod time;
mod tracelogging;
pub mod universal;
mod value;

pub use array::{Addresses, I32s, Ids, U32s};
pub use catalog::{CatalogEntry, CatalogField, catalog};
pub use clr::{
    AppDomain, Assembly, BulkType, ClrStackWalk, CodeSymbols, DomainModule, ExecutionCheckpoint,
    Extent, ILStubCacheHit, ILStubGenerated, ILToNativeMap, JitInliningFailed,
    JitInliningSucceeded, JitTailCallFailed, JitTailCallSucceeded, MarkerPhase,
    MemoryAllocatedForJitCode, MethodDetails, MethodEvent, MethodFlags, MethodJittingStarted,
    MethodNames, ModuleEvent, ModuleFlags, ModuleRange, OptimizationTier, PdbInfo, ProcessInfo,
    R2RGetEntryPoint, R2RGetEntryPointStart, RichDebugInfo, RundownMarker, RuntimeInformation,
    Text, ThreadDC, ThreadSampleType, TieredCompilationBackgroundJitStart,
    TieredCompilationBackgroundJitStop, TieredCompilationPause, TieredCompilationResume,
    TieredCompilationSettings, TypeDescription, TypeList,
};
pub use error::DecodeError;
pub use event::{Action, Event};
#[cfg(feature = "manifest")]
pub use event_source::{ManifestError, ManifestPieces};
pub use field::{Field, FieldType};
pub use guid::{Guid, ParseGuidError};
pub use inline_tree::{
    InlineFrame, InlineMapping, InlineNode, InlineTree, InlineTreeError, RichDebugChunks,
};
pub use kernel::KernelEvent;
pub use manifest::EventDescription;
pub use provider::Provider;
pub use schema::{EventKey, EventSchema, MANIFEST_EVENT_ID, PointerSize, RawEvent};
pub use text::{AStr, WStr};
pub use tracelogging::TraceLoggingSchema;
pub use universal::UniversalEvent;
pub use value::{FieldList, Value};
