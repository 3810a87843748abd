//! The event types that have a typed decoder: names, versions and layouts.

use crate::Provider::{self, EventPipe, EventTracing, Private, Rundown, Runtime, SampleProfiler};
use crate::cursor::Action::{DCEnd, DCStart, Load, Unload};
use crate::cursor::{Cursor, Form, Shape};
use crate::event::Event;
use crate::kernel::{KernelEvent, classes::*};
use crate::part::Part;
use crate::{DecodeError, Guid, published};

/// An event type with a typed decoder.
pub(crate) struct Layout {
    /// The published name.
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    /// The oldest known version.
    pub(crate) oldest: u32,
    /// The newest known version; newer ones append fields to it.
    pub(crate) newest: u32,
    pub(crate) decode: for<'a> fn(&mut Cursor<'a>) -> Result<Option<Event<'a>>, DecodeError>,
}

impl std::fmt::Debug for Layout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

macro_rules! layout {
    ($name:literal, $event:path, $action:ident, $oldest:literal..=$newest:literal) => {
        layout!($name, $event, $action Plain, $oldest..=$newest)
    };
    ($name:literal, $event:path, $action:ident $form:ident, $oldest:literal..=$newest:literal) => {
        Layout {
            name: $name,
            shape: Shape { action: $action, form: Form::$form },
            oldest: $oldest,
            newest: $newest,
            decode: |c| Ok(Some($event(Part::read(c)?).into())),
        }
    };
}

/// Events of manifest providers. Each provider numbers its own events: one id means different
/// events under the runtime and the rundown provider. Looked up once per event type.
#[rustfmt::skip]
pub(crate) static MANIFEST: &[(Provider, u32, Layout)] = &[
    (Runtime, 15, layout!("BulkType", Event::BulkType, Load, 0..=0)),
    (Runtime, 72, layout!("MethodDetails", Event::MethodDetails, Load, 0..=0)),
    (Runtime, 82, layout!("ClrStackWalk", Event::ClrStackWalk, Load, 0..=0)),
    (Runtime, 88, layout!("ILStubGenerated", Event::ILStubGenerated, Load, 0..=0)),
    (Runtime, 89, layout!("ILStubCacheHit", Event::ILStubCacheHit, Load, 0..=0)),
    (Runtime, 135, layout!("DCStartCompleteV2", Event::RundownMarker, DCStart, 0..=1)),
    (Runtime, 136, layout!("DCEndCompleteV2", Event::RundownMarker, DCEnd, 0..=1)),
    (Runtime, 137, layout!("MethodDCStartV2", Event::Method, DCStart, 0..=2)),
    (Runtime, 138, layout!("MethodDCEndV2", Event::Method, DCEnd, 0..=2)),
    (Runtime, 139, layout!("MethodDCStartVerboseV2", Event::Method, DCStart Verbose, 0..=2)),
    (Runtime, 140, layout!("MethodDCEndVerboseV2", Event::Method, DCEnd Verbose, 0..=2)),
    (Runtime, 141, layout!("MethodLoad", Event::Method, Load, 0..=2)),
    (Runtime, 142, layout!("MethodUnload", Event::Method, Unload, 0..=2)),
    (Runtime, 143, layout!("MethodLoadVerbose", Event::Method, Load Verbose, 0..=2)),
    (Runtime, 144, layout!("MethodUnloadVerbose", Event::Method, Unload Verbose, 0..=2)),
    (Runtime, 145, layout!("MethodJittingStarted", Event::MethodJittingStarted, Load, 0..=1)),
    (Runtime, 149, layout!("ModuleDCStartV2", Event::Module, DCStart, 0..=3)),
    (Runtime, 150, layout!("ModuleDCEndV2", Event::Module, DCEnd, 0..=3)),
    (Runtime, 151, layout!("DomainModuleLoad", Event::DomainModule, Load, 0..=1)),
    (Runtime, 152, layout!("ModuleLoad", Event::Module, Load, 0..=3)),
    (Runtime, 153, layout!("ModuleUnload", Event::Module, Unload, 0..=3)),
    (Runtime, 154, layout!("AssemblyLoad", Event::Assembly, Load, 0..=1)),
    (Runtime, 155, layout!("AssemblyUnload", Event::Assembly, Unload, 0..=1)),
    (Runtime, 156, layout!("AppDomainLoad", Event::AppDomain, Load, 0..=1)),
    (Runtime, 157, layout!("AppDomainUnload", Event::AppDomain, Unload, 0..=1)),
    (Runtime, 159, layout!("R2RGetEntryPoint", Event::R2RGetEntryPoint, Load, 0..=0)),
    (Runtime, 187, layout!("RuntimeInformationStart", Event::RuntimeInformation, Load, 0..=0)),
    (Runtime, 190, layout!("MethodILToNativeMap", Event::ILToNativeMap, Load, 0..=1)),
    (Runtime, 260, layout!("CodeSymbols", Event::CodeSymbols, Load, 0..=0)),
    (Rundown, 0, layout!("ClrStackWalk", Event::ClrStackWalk, Load, 0..=0)),
    (Rundown, 141, layout!("MethodDCStart", Event::Method, DCStart, 0..=2)),
    (Rundown, 142, layout!("MethodDCEnd", Event::Method, DCEnd, 0..=2)),
    (Rundown, 143, layout!("MethodDCStartVerbose", Event::Method, DCStart Verbose, 0..=2)),
    (Rundown, 144, layout!("MethodDCEndVerbose", Event::Method, DCEnd Verbose, 0..=2)),
    (Rundown, 145, layout!("DCStartComplete", Event::RundownMarker, DCStart, 0..=1)),
    (Rundown, 146, layout!("DCEndComplete", Event::RundownMarker, DCEnd, 0..=1)),
    (Rundown, 147, layout!("DCStartInit", Event::RundownMarker, DCStart Init, 0..=1)),
    (Rundown, 148, layout!("DCEndInit", Event::RundownMarker, DCEnd Init, 0..=1)),
    (Rundown, 149, layout!("MethodDCStartILToNativeMap", Event::ILToNativeMap, DCStart, 0..=1)),
    (Rundown, 150, layout!("MethodDCEndILToNativeMap", Event::ILToNativeMap, DCEnd, 0..=1)),
    (Rundown, 151, layout!("DomainModuleDCStart", Event::DomainModule, DCStart, 0..=1)),
    (Rundown, 152, layout!("DomainModuleDCEnd", Event::DomainModule, DCEnd, 0..=1)),
    (Rundown, 153, layout!("ModuleDCStart", Event::Module, DCStart, 0..=3)),
    (Rundown, 154, layout!("ModuleDCEnd", Event::Module, DCEnd, 0..=3)),
    (Rundown, 155, layout!("AssemblyDCStart", Event::Assembly, DCStart, 0..=1)),
    (Rundown, 156, layout!("AssemblyDCEnd", Event::Assembly, DCEnd, 0..=1)),
    (Rundown, 157, layout!("AppDomainDCStart", Event::AppDomain, DCStart, 0..=1)),
    (Rundown, 158, layout!("AppDomainDCEnd", Event::AppDomain, DCEnd, 0..=1)),
    (Rundown, 187, layout!("RuntimeInformationDCStart", Event::RuntimeInformation, DCStart, 0..=0)),
    (Rundown, 188, layout!("CodeSymbolsDCStart", Event::CodeSymbols, DCStart, 0..=0)),
    (Private, 151, layout!("ClrStackWalk", Event::ClrStackWalk, Load, 0..=0)),
    (Private, 189, layout!("JittedMethodRichDebugInfo", Event::RichDebugInfo, Load, 0..=0)),
    (SampleProfiler, 0, layout!("ThreadSample", Event::ThreadSample, Load, 0..=0)),
    (EventPipe, 1, layout!("ProcessInfo", Event::ProcessInfo, Load, 0..=1)),
    (EventTracing, 18, layout!("StackWalk/UserStack", KernelEvent::UserStack, Load, 0..=0)),
];

/// Classic events of the kernel by class and opcode.
#[rustfmt::skip]
pub(crate) static CLASSIC: &[(Guid, u8, Layout)] = &[
    (PROCESS, 1, layout!("Process/Start", KernelEvent::Process, Load, 1..=5)),
    (PROCESS, 2, layout!("Process/Stop", KernelEvent::Process, Unload, 1..=5)),
    (PROCESS, 3, layout!("Process/DCStart", KernelEvent::Process, DCStart, 1..=5)),
    (PROCESS, 4, layout!("Process/DCStop", KernelEvent::Process, DCEnd, 1..=5)),
    (PROCESS, 39, layout!("Process/Defunct", KernelEvent::Process, Unload Defunct, 1..=5)),
    (THREAD, 1, layout!("Thread/Start", KernelEvent::Thread, Load, 1..=4)),
    (THREAD, 2, layout!("Thread/Stop", KernelEvent::Thread, Unload, 1..=4)),
    (THREAD, 3, layout!("Thread/DCStart", KernelEvent::Thread, DCStart, 1..=4)),
    (THREAD, 4, layout!("Thread/DCStop", KernelEvent::Thread, DCEnd, 1..=4)),
    (THREAD, 36, layout!("Thread/CSwitch", KernelEvent::CSwitch, Load, 1..=5)),
    (THREAD, 50, layout!("Thread/ReadyThread", KernelEvent::ReadyThread, Load, 1..=5)),
    (THREAD, 72, layout!("Thread/SetName", KernelEvent::ThreadName, Load, 0..=2)),
    (IMAGE, 10, layout!("Image/Load", KernelEvent::Image, Load, 0..=4)),
    (IMAGE, 2, layout!("Image/Unload", KernelEvent::Image, Unload, 0..=4)),
    (IMAGE, 3, layout!("Image/DCStart", KernelEvent::Image, DCStart, 0..=4)),
    (IMAGE, 4, layout!("Image/DCStop", KernelEvent::Image, DCEnd, 0..=4)),
    (IMAGE, 34, layout!("Image/HypercallPage", KernelEvent::HypercallPage, Load, 0..=2)),
    (PERF_INFO, 46, layout!("PerfInfo/Sample", KernelEvent::SampledProfile, Load, 0..=2)),
    (PERF_INFO, 47, layout!("PerfInfo/PMCSample", KernelEvent::PmcInterrupt, Load, 0..=2)),
    (PERF_INFO, 72, layout!("PerfInfo/SetInterval", KernelEvent::SampleInterval, Load, 0..=3)),
    (PERF_INFO, 73, layout!("PerfInfo/CollectionStart", KernelEvent::SampleInterval, DCStart, 0..=3)),
    (PERF_INFO, 74, layout!("PerfInfo/CollectionEnd", KernelEvent::SampleInterval, DCEnd, 0..=3)),
    (STACK_WALK, 32, layout!("StackWalk/Stack", KernelEvent::StackWalk, Load, 0..=2)),
    (STACK_WALK, 34, layout!("StackWalk/KeyCreate", KernelEvent::StackKeyDefinition, Load, 0..=2)),
    (STACK_WALK, 35, layout!("StackWalk/KeyDelete", KernelEvent::StackKeyDefinition, Unload, 0..=2)),
    (STACK_WALK, 36, layout!("StackWalk/KeyRundown", KernelEvent::StackKeyDefinition, DCEnd, 0..=2)),
    (STACK_WALK, 37, layout!("StackWalk/StackKeyKernel", KernelEvent::StackKeyReference, Load, 0..=2)),
    (STACK_WALK, 38, layout!("StackWalk/StackKeyUser", KernelEvent::StackKeyReference, Load User, 0..=2)),
    (IMAGE_ID, 0, layout!("ImageID", KernelEvent::ImageId, Load, 0..=2)),
    (IMAGE_ID, 36, layout!("ImageID/DbgID_RSDS", KernelEvent::DbgIdRsds, Load, 0..=2)),
    (IMAGE_ID, 37, layout!("ImageID/DbgID_ILRSDS", KernelEvent::DbgIdRsds, Load Il, 0..=2)),
    (SYS_CONFIG, 33, layout!("SysConfig/SystemPaths", KernelEvent::SystemPaths, Load, 0..=2)),
    (SYS_CONFIG, 35, layout!("SysConfig/VolumeMapping", KernelEvent::VolumeMapping, Load, 0..=2)),
];

/// Returns the layout of a manifest event.
pub(crate) fn manifest(provider: &Provider, id: u32) -> Option<&'static Layout> {
    let provider = provider.canonical();
    let mut layouts = MANIFEST.iter();
    let (_, _, layout) = layouts.find(|(own, own_id, _)| *own_id == id && own == provider)?;
    Some(layout)
}

/// Returns the layout of a classic event.
pub(crate) fn classic(class: Guid, opcode: u8) -> Option<&'static Layout> {
    let mut layouts = CLASSIC.iter();
    let (_, _, layout) =
        layouts.find(|(own, own_opcode, _)| *own_opcode == opcode && *own == class)?;
    Some(layout)
}

/// Id and version of the event with a symbol of the CLR's manifest: the published name, then `_V`
/// and the version unless that is 0.
pub(crate) fn by_symbol(provider: &Provider, symbol: &str) -> Option<(u32, u32)> {
    let numbered = symbol
        .rsplit_once("_V")
        .and_then(|(name, version)| Some((name, version.parse().ok()?)));
    let (name, version) = numbered.unwrap_or((symbol, 0));
    let typed = MANIFEST
        .iter()
        .find(|(own, _, layout)| layout.name == name && own == provider);
    let id = typed.map(|(_, id, _)| *id);
    Some((
        id.or_else(|| published::manifest_id(provider, name))?,
        version,
    ))
}
