use crate::clr::*;
use crate::kernel::KernelEvent;
use crate::part::{Style, events};
use crate::universal::UniversalEvent;
use crate::value::FieldList;

events! {
    /// A decoded event.
    Event {
        Method(MethodEvent<'a>),
        MethodJittingStarted(MethodJittingStarted<'a>),
        R2RGetEntryPoint(R2RGetEntryPoint<'a>),
        ILToNativeMap(ILToNativeMap<'a>),
        MethodDetails(MethodDetails<'a>),
        RichDebugInfo(RichDebugInfo<'a>),
        Module(ModuleEvent<'a>),
        Assembly(Assembly<'a>),
        DomainModule(DomainModule<'a>),
        AppDomain(AppDomain<'a>),
        ILStubGenerated(ILStubGenerated<'a>),
        ILStubCacheHit(ILStubCacheHit<'a>),
        BulkType(BulkType<'a>),
        CodeSymbols(CodeSymbols<'a>),
        RuntimeInformation(RuntimeInformation<'a>),
        RundownMarker(RundownMarker),
        ClrStackWalk(ClrStackWalk<'a>),
        ThreadSample(ThreadSampleType),
        ProcessInfo(ProcessInfo<'a>),
        Universal(UniversalEvent<'a>),
        Kernel(KernelEvent<'a>),
    }
}

impl<'a> Event<'a> {
    /// Returns the event's fields by their published names, in the order of the payload.
    pub fn fields(&self) -> FieldList<'a> {
        // As many as most events have.
        let mut out = FieldList::with_capacity(12);
        self.list("", Style::Plain, &mut out);
        out
    }
}

impl<'a> From<KernelEvent<'a>> for Event<'a> {
    fn from(event: KernelEvent<'a>) -> Self {
        Self::Kernel(event)
    }
}
