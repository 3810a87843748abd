//! Events of the runtime's providers.

mod loader;
mod method;
mod runtime;
mod types;

pub use loader::{AppDomain, DomainModule, ModuleEvent, PdbInfo};
pub use method::{
    Extent, ILToNativeMap, MethodDetails, MethodEvent, MethodFlags, MethodJittingStarted,
    MethodNames, OptimizationTier, R2RGetEntryPoint, RichDebugInfo,
};
pub use runtime::{
    ClrStackWalk, CodeSymbols, ILStubCacheHit, ILStubGenerated, MarkerPhase, ProcessInfo,
    RundownMarker, RuntimeInformation, ThreadSampleType,
};
pub use types::{BulkType, TypeDescription, TypeList};
