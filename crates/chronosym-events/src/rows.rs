//! The typed decoder of each event that has one, and the shape in which it reads.

use crate::Provider::{self, EventPipe, EventTracing, Private, Rundown, Runtime, SampleProfiler};
use crate::cursor::Action::{DCEnd, DCStart, Load, Unload};
use crate::cursor::{Cursor, Form, Shape};
use crate::event::Event;
use crate::kernel::{KernelEvent, classes::*};
use crate::part::Part;
use crate::{DecodeError, Guid, published};

/// What one event type is called, and how its payload is laid out.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    /// The oldest version whose layout is known.
    pub(crate) oldest: u32,
    /// The newest version whose layout is known; newer ones append to it.
    pub(crate) newest: u32,
    pub(crate) decode: for<'a> fn(&mut Cursor<'a>) -> Result<Option<Event<'a>>, DecodeError>,
}

impl std::fmt::Debug for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

macro_rules! row {
    ($name:literal, $event:path, $action:ident, $oldest:literal..=$newest:literal) => {
        row!($name, $event, $action Plain, $oldest..=$newest)
    };
    ($name:literal, $event:path, $action:ident $form:ident, $oldest:literal..=$newest:literal) => {
        Row {
            name: $name,
            shape: Shape { action: $action, form: Form::$form },
            oldest: $oldest,
            newest: $newest,
            decode: |c| Ok(Some($event(Part::read(c)?).into())),
        }
    };
}

/// Events of manifest providers. Ids are the provider's own: the same number means different events under the runtime and
/// the rundown provider. Looked up once an event type.
#[rustfmt::skip]
pub(crate) static MANIFEST: &[(Provider, u32, Row)] = &[
    (Runtime, 15, row!("BulkType", Event::BulkType, Load, 0..=0)),
    (Runtime, 72, row!("MethodDetails", Event::MethodDetails, Load, 0..=0)),
    (Runtime, 82, row!("ClrStackWalk", Event::ClrStackWalk, Load, 0..=0)),
    (Runtime, 88, row!("ILStubGenerated", Event::ILStubGenerated, Load, 0..=0)),
    (Runtime, 89, row!("ILStubCacheHit", Event::ILStubCacheHit, Load, 0..=0)),
    (Runtime, 135, row!("DCStartCompleteV2", Event::RundownMarker, DCStart, 0..=1)),
    (Runtime, 136, row!("DCEndCompleteV2", Event::RundownMarker, DCEnd, 0..=1)),
    (Runtime, 137, row!("MethodDCStartV2", Event::Method, DCStart, 0..=2)),
    (Runtime, 138, row!("MethodDCEndV2", Event::Method, DCEnd, 0..=2)),
    (Runtime, 139, row!("MethodDCStartVerboseV2", Event::Method, DCStart Verbose, 0..=2)),
    (Runtime, 140, row!("MethodDCEndVerboseV2", Event::Method, DCEnd Verbose, 0..=2)),
    (Runtime, 141, row!("MethodLoad", Event::Method, Load, 0..=2)),
    (Runtime, 142, row!("MethodUnload", Event::Method, Unload, 0..=2)),
    (Runtime, 143, row!("MethodLoadVerbose", Event::Method, Load Verbose, 0..=2)),
    (Runtime, 144, row!("MethodUnloadVerbose", Event::Method, Unload Verbose, 0..=2)),
    (Runtime, 145, row!("MethodJittingStarted", Event::MethodJittingStarted, Load, 0..=1)),
    (Runtime, 149, row!("ModuleDCStartV2", Event::Module, DCStart, 0..=3)),
    (Runtime, 150, row!("ModuleDCEndV2", Event::Module, DCEnd, 0..=3)),
    (Runtime, 151, row!("DomainModuleLoad", Event::DomainModule, Load, 0..=1)),
    (Runtime, 152, row!("ModuleLoad", Event::Module, Load, 0..=3)),
    (Runtime, 153, row!("ModuleUnload", Event::Module, Unload, 0..=3)),
    (Runtime, 156, row!("AppDomainLoad", Event::AppDomain, Load, 0..=1)),
    (Runtime, 157, row!("AppDomainUnload", Event::AppDomain, Unload, 0..=1)),
    (Runtime, 159, row!("R2RGetEntryPoint", Event::R2RGetEntryPoint, Load, 0..=0)),
    (Runtime, 187, row!("RuntimeInformationStart", Event::RuntimeInformation, Load, 0..=0)),
    (Runtime, 190, row!("MethodILToNativeMap", Event::ILToNativeMap, Load, 0..=1)),
    (Runtime, 260, row!("CodeSymbols", Event::CodeSymbols, Load, 0..=0)),
    (Rundown, 0, row!("ClrStackWalk", Event::ClrStackWalk, Load, 0..=0)),
    (Rundown, 141, row!("MethodDCStart", Event::Method, DCStart, 0..=2)),
    (Rundown, 142, row!("MethodDCEnd", Event::Method, DCEnd, 0..=2)),
    (Rundown, 143, row!("MethodDCStartVerbose", Event::Method, DCStart Verbose, 0..=2)),
    (Rundown, 144, row!("MethodDCEndVerbose", Event::Method, DCEnd Verbose, 0..=2)),
    (Rundown, 145, row!("DCStartComplete", Event::RundownMarker, DCStart, 0..=1)),
    (Rundown, 146, row!("DCEndComplete", Event::RundownMarker, DCEnd, 0..=1)),
    (Rundown, 147, row!("DCStartInit", Event::RundownMarker, DCStart Init, 0..=1)),
    (Rundown, 148, row!("DCEndInit", Event::RundownMarker, DCEnd Init, 0..=1)),
    (Rundown, 149, row!("MethodDCStartILToNativeMap", Event::ILToNativeMap, DCStart, 0..=1)),
    (Rundown, 150, row!("MethodDCEndILToNativeMap", Event::ILToNativeMap, DCEnd, 0..=1)),
    (Rundown, 151, row!("DomainModuleDCStart", Event::DomainModule, DCStart, 0..=1)),
    (Rundown, 152, row!("DomainModuleDCEnd", Event::DomainModule, DCEnd, 0..=1)),
    (Rundown, 153, row!("ModuleDCStart", Event::Module, DCStart, 0..=3)),
    (Rundown, 154, row!("ModuleDCEnd", Event::Module, DCEnd, 0..=3)),
    (Rundown, 157, row!("AppDomainDCStart", Event::AppDomain, DCStart, 0..=1)),
    (Rundown, 158, row!("AppDomainDCEnd", Event::AppDomain, DCEnd, 0..=1)),
    (Rundown, 187, row!("RuntimeInformationDCStart", Event::RuntimeInformation, DCStart, 0..=0)),
    (Rundown, 188, row!("CodeSymbolsDCStart", Event::CodeSymbols, DCStart, 0..=0)),
    (Private, 151, row!("ClrStackWalk", Event::ClrStackWalk, Load, 0..=0)),
    (Private, 189, row!("JittedMethodRichDebugInfo", Event::RichDebugInfo, Load, 0..=0)),
    (SampleProfiler, 0, row!("ThreadSample", Event::ThreadSample, Load, 0..=0)),
    (EventPipe, 1, row!("ProcessInfo", Event::ProcessInfo, Load, 0..=1)),
    (EventTracing, 18, row!("StackWalk/UserStack", KernelEvent::UserStack, Load, 0..=0)),
];

/// Classic events of the kernel, by class and opcode.
#[rustfmt::skip]
pub(crate) static CLASSIC: &[(Guid, u8, Row)] = &[
    (PROCESS, 1, row!("Process/Start", KernelEvent::Process, Load, 1..=5)),
    (PROCESS, 2, row!("Process/Stop", KernelEvent::Process, Unload, 1..=5)),
    (PROCESS, 3, row!("Process/DCStart", KernelEvent::Process, DCStart, 1..=5)),
    (PROCESS, 4, row!("Process/DCStop", KernelEvent::Process, DCEnd, 1..=5)),
    (PROCESS, 39, row!("Process/Defunct", KernelEvent::Process, Unload Defunct, 1..=5)),
    (THREAD, 1, row!("Thread/Start", KernelEvent::Thread, Load, 1..=4)),
    (THREAD, 2, row!("Thread/Stop", KernelEvent::Thread, Unload, 1..=4)),
    (THREAD, 3, row!("Thread/DCStart", KernelEvent::Thread, DCStart, 1..=4)),
    (THREAD, 4, row!("Thread/DCStop", KernelEvent::Thread, DCEnd, 1..=4)),
    (THREAD, 36, row!("Thread/CSwitch", KernelEvent::CSwitch, Load, 1..=5)),
    (THREAD, 72, row!("Thread/SetName", KernelEvent::ThreadName, Load, 0..=2)),
    (IMAGE, 10, row!("Image/Load", KernelEvent::Image, Load, 0..=4)),
    (IMAGE, 2, row!("Image/Unload", KernelEvent::Image, Unload, 0..=4)),
    (IMAGE, 3, row!("Image/DCStart", KernelEvent::Image, DCStart, 0..=4)),
    (IMAGE, 4, row!("Image/DCStop", KernelEvent::Image, DCEnd, 0..=4)),
    (PERF_INFO, 46, row!("PerfInfo/Sample", KernelEvent::SampledProfile, Load, 0..=2)),
    (PERF_INFO, 47, row!("PerfInfo/PMCSample", KernelEvent::PmcInterrupt, Load, 0..=2)),
    (PERF_INFO, 72, row!("PerfInfo/SetInterval", KernelEvent::SampleInterval, Load, 0..=3)),
    (PERF_INFO, 73, row!("PerfInfo/CollectionStart", KernelEvent::SampleInterval, DCStart, 0..=3)),
    (PERF_INFO, 74, row!("PerfInfo/CollectionEnd", KernelEvent::SampleInterval, DCEnd, 0..=3)),
    (STACK_WALK, 32, row!("StackWalk/Stack", KernelEvent::StackWalk, Load, 0..=2)),
    (STACK_WALK, 34, row!("StackWalk/KeyCreate", KernelEvent::StackKeyDefinition, Load, 0..=2)),
    (STACK_WALK, 35, row!("StackWalk/KeyDelete", KernelEvent::StackKeyDefinition, Unload, 0..=2)),
    (STACK_WALK, 36, row!("StackWalk/KeyRundown", KernelEvent::StackKeyDefinition, DCEnd, 0..=2)),
    (STACK_WALK, 37, row!("StackWalk/StackKeyKernel", KernelEvent::StackKeyReference, Load, 0..=2)),
    (STACK_WALK, 38, row!("StackWalk/StackKeyUser", KernelEvent::StackKeyReference, Load User, 0..=2)),
    (IMAGE_ID, 0, row!("ImageID", KernelEvent::ImageId, Load, 0..=2)),
    (IMAGE_ID, 36, row!("ImageID/DbgID_RSDS", KernelEvent::DbgIdRsds, Load, 0..=2)),
    (IMAGE_ID, 37, row!("ImageID/DbgID_ILRSDS", KernelEvent::DbgIdRsds, Load Il, 0..=2)),
    (SYS_CONFIG, 33, row!("SysConfig/SystemPaths", KernelEvent::SystemPaths, Load, 0..=2)),
    (SYS_CONFIG, 35, row!("SysConfig/VolumeMapping", KernelEvent::VolumeMapping, Load, 0..=2)),
];

/// The typed event of a manifest provider.
pub(crate) fn manifest(provider: &Provider, id: u32) -> Option<&'static Row> {
    let provider = provider.canonical();
    let found = MANIFEST.iter().find(|r| r.1 == id && r.0 == *provider);
    found.map(|(_, _, row)| row)
}

/// The typed event of a class and opcode.
pub(crate) fn classic(class: Guid, opcode: u8) -> Option<&'static Row> {
    let found = CLASSIC.iter().find(|r| r.1 == opcode && r.0 == class);
    found.map(|(_, _, row)| row)
}

/// Id and version of the event that the runtime's manifest calls `symbol`: its published name, and the version behind `_V` unless
/// that is 0.
pub(crate) fn by_symbol(provider: &Provider, symbol: &str) -> Option<(u32, u32)> {
    let numbered = symbol
        .rsplit_once("_V")
        .and_then(|(name, version)| Some((name, version.parse().ok()?)));
    let (name, version) = numbered.unwrap_or((symbol, 0));
    let typed = MANIFEST
        .iter()
        .find(|(p, _, row)| row.name == name && p == provider);
    let id = typed.map(|(_, id, _)| *id);
    Some((
        id.or_else(|| published::manifest_id(provider, name))?,
        version,
    ))
}
