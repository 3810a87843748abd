//! Events of the runtime's providers: which (provider, id) is what, and in which shape.

mod fields;
mod loader;
mod method;
mod names;
mod runtime;
mod types;

pub use loader::{
    AppDomain, Assembly, DomainModule, ModuleEvent, ModuleFlags, ModuleRange, PdbInfo, ThreadDC,
};
pub use method::{
    Extent, ILToNativeMap, JitInliningFailed, JitInliningSucceeded, JitTailCallFailed,
    JitTailCallSucceeded, MemoryAllocatedForJitCode, MethodDetails, MethodEvent, MethodFlags,
    MethodJittingStarted, MethodNames, OptimizationTier, R2RGetEntryPoint, R2RGetEntryPointStart,
    RichDebugInfo, Text,
};
pub use runtime::{
    ClrStackWalk, CodeSymbols, ExecutionCheckpoint, ILStubCacheHit, ILStubGenerated, MarkerPhase,
    ProcessInfo, RundownMarker, RuntimeInformation, ThreadSampleType,
    TieredCompilationBackgroundJitStart, TieredCompilationBackgroundJitStop,
    TieredCompilationPause, TieredCompilationResume, TieredCompilationSettings,
};
pub use types::{BulkType, TypeDescription, TypeList};

pub(crate) use fields::fields_only;
pub(crate) use names::name_only;

use crate::Action::{self, DCEnd, DCStart, Load, Unload};
use crate::EventKey;
use crate::Provider::{self, EventPipe, Private, Rundown, Runtime, SampleProfiler};
use crate::cursor::Shape;
use crate::event::Event;
use crate::layout::{Layout, layout};

/// One event of a manifest provider.
pub(crate) struct Row {
    pub(crate) provider: Provider,
    pub(crate) id: u32,
    pub(crate) name: &'static str,
    pub(crate) layout: Layout,
}

const fn row(provider: Provider, id: u32, name: &'static str, layout: Layout) -> Row {
    Row {
        provider,
        id,
        name,
        layout,
    }
}

const fn of(action: Action) -> Shape {
    Shape::new(action)
}

/// Every event of these providers that has a typed decoder. Ids are the provider's own: the same number means different
/// events under the runtime and the rundown provider. Sorted by nothing; looked up once an event type.
#[rustfmt::skip]
pub(crate) static ROWS: &[Row] = &[
    row(Runtime, 15, "BulkType", layout!(Event::BulkType, BulkType<'_>, of(Load), 0)),
    row(Runtime, 72, "MethodDetails", layout!(Event::MethodDetails, MethodDetails<'_>, of(Load), 0)),
    row(Runtime, 82, "ClrStackWalk", layout!(Event::ClrStackWalk, ClrStackWalk<'_>, of(Load), 0)),
    row(Runtime, 88, "ILStubGenerated", layout!(Event::ILStubGenerated, ILStubGenerated<'_>, of(Load), 0)),
    row(Runtime, 89, "ILStubCacheHit", layout!(Event::ILStubCacheHit, ILStubCacheHit<'_>, of(Load), 0)),
    row(Runtime, 135, "DCStartCompleteV2", layout!(Event::RundownMarker, RundownMarker, of(DCStart), 1)),
    row(Runtime, 136, "DCEndCompleteV2", layout!(Event::RundownMarker, RundownMarker, of(DCEnd), 1)),
    row(Runtime, 137, "MethodDCStartV2", layout!(Event::Method, MethodEvent<'_>, of(DCStart), 2)),
    row(Runtime, 138, "MethodDCEndV2", layout!(Event::Method, MethodEvent<'_>, of(DCEnd), 2)),
    row(Runtime, 139, "MethodDCStartVerboseV2", layout!(Event::Method, MethodEvent<'_>, of(DCStart).verbose(), 2)),
    row(Runtime, 140, "MethodDCEndVerboseV2", layout!(Event::Method, MethodEvent<'_>, of(DCEnd).verbose(), 2)),
    row(Runtime, 141, "MethodLoad", layout!(Event::Method, MethodEvent<'_>, of(Load), 2)),
    row(Runtime, 142, "MethodUnload", layout!(Event::Method, MethodEvent<'_>, of(Unload), 2)),
    row(Runtime, 143, "MethodLoadVerbose", layout!(Event::Method, MethodEvent<'_>, of(Load).verbose(), 2)),
    row(Runtime, 144, "MethodUnloadVerbose", layout!(Event::Method, MethodEvent<'_>, of(Unload).verbose(), 2)),
    row(Runtime, 145, "MethodJittingStarted", layout!(Event::MethodJittingStarted, MethodJittingStarted<'_>, of(Load), 1)),
    row(Runtime, 146, "MemoryAllocatedForJitCode", layout!(Event::MemoryAllocatedForJitCode, MemoryAllocatedForJitCode, of(Load), 0)),
    row(Runtime, 149, "ModuleDCStartV2", layout!(Event::Module, ModuleEvent<'_>, of(DCStart), 3)),
    row(Runtime, 150, "ModuleDCEndV2", layout!(Event::Module, ModuleEvent<'_>, of(DCEnd), 3)),
    row(Runtime, 151, "DomainModuleLoad", layout!(Event::DomainModule, DomainModule<'_>, of(Load), 1)),
    row(Runtime, 152, "ModuleLoad", layout!(Event::Module, ModuleEvent<'_>, of(Load), 3)),
    row(Runtime, 153, "ModuleUnload", layout!(Event::Module, ModuleEvent<'_>, of(Unload), 3)),
    row(Runtime, 154, "AssemblyLoad", layout!(Event::Assembly, Assembly<'_>, of(Load), 1)),
    row(Runtime, 155, "AssemblyUnload", layout!(Event::Assembly, Assembly<'_>, of(Unload), 1)),
    row(Runtime, 156, "AppDomainLoad", layout!(Event::AppDomain, AppDomain<'_>, of(Load), 1)),
    row(Runtime, 157, "AppDomainUnload", layout!(Event::AppDomain, AppDomain<'_>, of(Unload), 1)),
    row(Runtime, 158, "ModuleRangeLoad", layout!(Event::ModuleRange, ModuleRange, of(Load), 0)),
    row(Runtime, 159, "R2RGetEntryPoint", layout!(Event::R2RGetEntryPoint, R2RGetEntryPoint<'_>, of(Load), 0)),
    row(Runtime, 160, "R2RGetEntryPointStart", layout!(Event::R2RGetEntryPointStart, R2RGetEntryPointStart, of(Load), 0)),
    row(Runtime, 185, "MethodJitInliningSucceeded", layout!(Event::JitInliningSucceeded, JitInliningSucceeded<'_>, of(Load), 0)),
    row(Runtime, 186, "MethodJitInliningFailedAnsi", layout!(Event::JitInliningFailed, JitInliningFailed<'_>, of(Load).ansi(), 0)),
    row(Runtime, 187, "RuntimeInformationStart", layout!(Event::RuntimeInformation, RuntimeInformation<'_>, of(Load), 0)),
    row(Runtime, 188, "MethodJitTailCallSucceeded", layout!(Event::JitTailCallSucceeded, JitTailCallSucceeded<'_>, of(Load), 0)),
    row(Runtime, 189, "MethodJitTailCallFailedAnsi", layout!(Event::JitTailCallFailed, JitTailCallFailed<'_>, of(Load).ansi(), 0)),
    row(Runtime, 190, "MethodILToNativeMap", layout!(Event::ILToNativeMap, ILToNativeMap<'_>, of(Load), 1)),
    row(Runtime, 191, "MethodJitTailCallFailed", layout!(Event::JitTailCallFailed, JitTailCallFailed<'_>, of(Load), 0)),
    row(Runtime, 192, "MethodJitInliningFailed", layout!(Event::JitInliningFailed, JitInliningFailed<'_>, of(Load), 0)),
    row(Runtime, 260, "CodeSymbols", layout!(Event::CodeSymbols, CodeSymbols<'_>, of(Load), 0)),
    row(Runtime, 280, "TieredCompilationSettings", layout!(Event::TieredCompilationSettings, TieredCompilationSettings, of(Load), 0)),
    row(Runtime, 281, "TieredCompilationPause", layout!(Event::TieredCompilationPause, TieredCompilationPause, of(Load), 0)),
    row(Runtime, 282, "TieredCompilationResume", layout!(Event::TieredCompilationResume, TieredCompilationResume, of(Load), 0)),
    row(Runtime, 283, "TieredCompilationBackgroundJitStart", layout!(Event::TieredCompilationBackgroundJitStart, TieredCompilationBackgroundJitStart, of(Load), 0)),
    row(Runtime, 284, "TieredCompilationBackgroundJitStop", layout!(Event::TieredCompilationBackgroundJitStop, TieredCompilationBackgroundJitStop, of(Load), 0)),
    row(Runtime, 300, "ExecutionCheckpoint", layout!(Event::ExecutionCheckpoint, ExecutionCheckpoint<'_>, of(Load), 0)),
    row(Rundown, 0, "ClrStackWalk", layout!(Event::ClrStackWalk, ClrStackWalk<'_>, of(Load), 0)),
    row(Rundown, 141, "MethodDCStart", layout!(Event::Method, MethodEvent<'_>, of(DCStart), 2)),
    row(Rundown, 142, "MethodDCEnd", layout!(Event::Method, MethodEvent<'_>, of(DCEnd), 2)),
    row(Rundown, 143, "MethodDCStartVerbose", layout!(Event::Method, MethodEvent<'_>, of(DCStart).verbose(), 2)),
    row(Rundown, 144, "MethodDCEndVerbose", layout!(Event::Method, MethodEvent<'_>, of(DCEnd).verbose(), 2)),
    row(Rundown, 145, "DCStartComplete", layout!(Event::RundownMarker, RundownMarker, of(DCStart), 1)),
    row(Rundown, 146, "DCEndComplete", layout!(Event::RundownMarker, RundownMarker, of(DCEnd), 1)),
    row(Rundown, 147, "DCStartInit", layout!(Event::RundownMarker, RundownMarker, of(DCStart).init(), 1)),
    row(Rundown, 148, "DCEndInit", layout!(Event::RundownMarker, RundownMarker, of(DCEnd).init(), 1)),
    row(Rundown, 149, "MethodDCStartILToNativeMap", layout!(Event::ILToNativeMap, ILToNativeMap<'_>, of(DCStart), 1)),
    row(Rundown, 150, "MethodDCEndILToNativeMap", layout!(Event::ILToNativeMap, ILToNativeMap<'_>, of(DCEnd), 1)),
    row(Rundown, 151, "DomainModuleDCStart", layout!(Event::DomainModule, DomainModule<'_>, of(DCStart), 1)),
    row(Rundown, 152, "DomainModuleDCEnd", layout!(Event::DomainModule, DomainModule<'_>, of(DCEnd), 1)),
    row(Rundown, 153, "ModuleDCStart", layout!(Event::Module, ModuleEvent<'_>, of(DCStart), 3)),
    row(Rundown, 154, "ModuleDCEnd", layout!(Event::Module, ModuleEvent<'_>, of(DCEnd), 3)),
    row(Rundown, 155, "AssemblyDCStart", layout!(Event::Assembly, Assembly<'_>, of(DCStart), 1)),
    row(Rundown, 156, "AssemblyDCEnd", layout!(Event::Assembly, Assembly<'_>, of(DCEnd), 1)),
    row(Rundown, 157, "AppDomainDCStart", layout!(Event::AppDomain, AppDomain<'_>, of(DCStart), 1)),
    row(Rundown, 158, "AppDomainDCEnd", layout!(Event::AppDomain, AppDomain<'_>, of(DCEnd), 1)),
    row(Rundown, 159, "ThreadDC", layout!(Event::ThreadDC, ThreadDC, of(DCEnd), 0)),
    row(Rundown, 160, "ModuleRangeDCStart", layout!(Event::ModuleRange, ModuleRange, of(DCStart), 0)),
    row(Rundown, 161, "ModuleRangeDCEnd", layout!(Event::ModuleRange, ModuleRange, of(DCEnd), 0)),
    row(Rundown, 187, "RuntimeInformationDCStart", layout!(Event::RuntimeInformation, RuntimeInformation<'_>, of(DCStart), 0)),
    row(Rundown, 188, "CodeSymbolsDCStart", layout!(Event::CodeSymbols, CodeSymbols<'_>, of(DCStart), 0)),
    row(Rundown, 280, "TieredCompilationSettingsDCStart", layout!(Event::TieredCompilationSettings, TieredCompilationSettings, of(DCStart), 0)),
    row(Rundown, 300, "ExecutionCheckpointDCEnd", layout!(Event::ExecutionCheckpoint, ExecutionCheckpoint<'_>, of(DCEnd), 0)),
    row(Private, 151, "ClrStackWalk", layout!(Event::ClrStackWalk, ClrStackWalk<'_>, of(Load), 0)),
    row(Private, 158, "ModuleRangeLoadPrivate", layout!(Event::ModuleRange, ModuleRange, of(Load).private(), 0)),
    row(Private, 189, "JittedMethodRichDebugInfo", layout!(Event::RichDebugInfo, RichDebugInfo<'_>, of(Load), 0)),
    row(SampleProfiler, 0, "ThreadSample", layout!(Event::ThreadSample, ThreadSampleType, of(Load), 0)),
    row(EventPipe, 1, "ProcessInfo", layout!(Event::ProcessInfo, ProcessInfo<'_>, of(Load), 1)),
];

/// The typed event of this key.
pub(crate) fn find(provider: &Provider, id: u32) -> Option<&'static Row> {
    let provider = provider.canonical();
    ROWS.iter().find(|r| r.id == id && r.provider == *provider)
}

/// The event that the runtime's manifest calls `symbol`: its published name, and the version behind `_V` unless that is 0.
pub(crate) fn by_symbol(provider: &Provider, symbol: &str) -> Option<EventKey> {
    let numbered = symbol
        .rsplit_once("_V")
        .and_then(|(name, version)| Some((name, version.parse().ok()?)));
    let (name, version) = numbered.unwrap_or((symbol, 0));
    let row = ROWS
        .iter()
        .find(|row| row.name == name && row.provider == *provider);
    let id = row
        .map(|row| row.id)
        .or_else(|| names::id_only(provider, name))?;
    Some(EventKey::Manifest {
        provider: provider.clone(),
        id,
        version,
    })
}
