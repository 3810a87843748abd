use crate::cursor::Cursor;
use crate::kernel::KernelEvent;
use crate::part::{FieldSpec, Part, Style};
use crate::universal::UniversalEvent;
use crate::value::FieldList;
use crate::{DecodeError, clr};

/// What an event says of its subject's life. Events without a life have `Load`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Action {
    /// It begins now.
    #[default]
    Load,
    /// It ends now.
    Unload,
    /// Rundown at the begin of a session: it is alive and began before.
    DCStart,
    /// Rundown at the end of a session: it is alive and ends after.
    DCEnd,
}

impl<'a> Part<'a> for Action {
    fn read(c: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        Ok(c.shape.action)
    }
    fn list(&self, _: &'static str, _: Style, _: &mut FieldList<'a>) {}
    fn spec(_: &'static str, _: &str, _: &mut Vec<FieldSpec>) {}
}

macro_rules! events {
    (
        $($(#[$meta:meta])* $variant:ident($ty:ty),)*
        @groups
        $($(#[$gmeta:meta])* $group:ident($gty:ty),)*
    ) => {
        /// A decoded event.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum Event<'a> {
            $($(#[$meta])* $variant($ty),)*
            $($(#[$gmeta])* $group($gty),)*
        }

        impl<'a> Event<'a> {
            /// The event's fields by their published names, in the order of the payload.
            #[must_use]
            pub fn fields(&self) -> FieldList<'a> {
                let mut out = FieldList::default();
                match self {
                    $(Self::$variant(event) => Part::list(event, "", Style::Plain, &mut out),)*
                    $(Self::$group(event) => event.list(&mut out),)*
                }
                out
            }
        }
    };
}

events! {
    /// A native body of a method.
    Method(clr::MethodEvent<'a>),
    /// The JIT starts on a method.
    MethodJittingStarted(clr::MethodJittingStarted<'a>),
    /// Precompiled code was found for a method.
    R2RGetEntryPoint(clr::R2RGetEntryPoint<'a>),
    /// Precompiled code of a method is looked for.
    R2RGetEntryPointStart(clr::R2RGetEntryPointStart),
    /// The IL-to-native map of a body.
    ILToNativeMap(clr::ILToNativeMap<'a>),
    /// Type and generic arguments of a method.
    MethodDetails(clr::MethodDetails<'a>),
    /// Memory for one body.
    MemoryAllocatedForJitCode(clr::MemoryAllocatedForJitCode),
    /// A call was inlined.
    JitInliningSucceeded(clr::JitInliningSucceeded<'a>),
    /// A call was not inlined.
    JitInliningFailed(clr::JitInliningFailed<'a>),
    /// A tail call was made.
    JitTailCallSucceeded(clr::JitTailCallSucceeded<'a>),
    /// A tail call was not made.
    JitTailCallFailed(clr::JitTailCallFailed<'a>),
    /// A piece of an inline tree.
    RichDebugInfo(clr::RichDebugInfo<'a>),
    /// A module.
    Module(clr::ModuleEvent<'a>),
    /// A module in an app domain.
    DomainModule(clr::DomainModule<'a>),
    /// An assembly.
    Assembly(clr::Assembly<'a>),
    /// An app domain.
    AppDomain(clr::AppDomain<'a>),
    /// A part of a module's image.
    ModuleRange(clr::ModuleRange),
    /// A managed thread that is alive.
    ThreadDC(clr::ThreadDC),
    /// An interop stub.
    ILStubGenerated(clr::ILStubGenerated<'a>),
    /// An interop stub used again.
    ILStubCacheHit(clr::ILStubCacheHit<'a>),
    /// Types and their names.
    BulkType(clr::BulkType<'a>),
    /// A piece of a module's PDB.
    CodeSymbols(clr::CodeSymbols<'a>),
    /// Which runtime this is.
    RuntimeInformation(clr::RuntimeInformation<'a>),
    /// A rundown begins or ends.
    RundownMarker(clr::RundownMarker),
    /// A point in the runtime's start-up.
    ExecutionCheckpoint(clr::ExecutionCheckpoint<'a>),
    /// The stack of the runtime event before it.
    ClrStackWalk(clr::ClrStackWalk<'a>),
    /// How tiered compilation is set up.
    TieredCompilationSettings(clr::TieredCompilationSettings),
    /// Tier 1 waits.
    TieredCompilationPause(clr::TieredCompilationPause),
    /// Tier 1 goes on.
    TieredCompilationResume(clr::TieredCompilationResume),
    /// Background compilation begins.
    TieredCompilationBackgroundJitStart(clr::TieredCompilationBackgroundJitStart),
    /// Background compilation pauses.
    TieredCompilationBackgroundJitStop(clr::TieredCompilationBackgroundJitStop),
    /// What a thread did at a tick of EventPipe's SampleProfiler.
    ThreadSample(clr::ThreadSampleType),
    /// The process, as EventPipe describes it.
    ProcessInfo(clr::ProcessInfo<'a>),
    @groups
    /// Processes, mappings, symbols and samples of nettrace V6 recorders.
    Universal(UniversalEvent<'a>),
    /// Events of the Windows kernel and those that merging a trace adds.
    Kernel(KernelEvent<'a>),
}
