//! Fields of the runtime's events that have no typed decoder, as its manifest has them: EventPipe carries no description of them.

use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::Field;
use crate::Provider::{self, Private, Rundown, Runtime};
use crate::published::Type::{
    self, Ansi, Blob, Bool32, F64, Hex32, Hex64, I32, I64, Many, Pointer, Since, Structs, U8, U16,
    U32, U64, Utf16,
};
use crate::published::{Fields, newest};

/// The published fields of an event without a typed decoder. A version newer than those known has those of the newest.
pub(crate) fn fields_only(provider: &Provider, id: u32, version: u32) -> Option<Arc<[Field]>> {
    let provider = provider.canonical();
    let table = match provider {
        Runtime => RUNTIME,
        Rundown => RUNDOWN,
        Private => PRIVATE,
        _ => return None,
    };
    let alike = ALIKE
        .iter()
        .find(|(p, ids)| p == provider && ids.contains(&id));
    let id = alike.map_or(id, |(_, ids)| *ids.start());
    let rows = table.iter().filter(|row| row.0 == id);
    newest(rows.map(|row| (row.1, row.2)), version)
}

/// Events that follow each other with the same fields: the first stands for all in the tables.
#[rustfmt::skip]
static ALIKE: &[(Provider, RangeInclusive<u32>)] = &[
    (Runtime, 7..=8), (Runtime, 11..=12), (Runtime, 25..=28), (Runtime, 40..=43), (Runtime, 44..=47), (Runtime, 48..=49),
    (Runtime, 50..=53), (Runtime, 61..=62), (Runtime, 64..=65), (Runtime, 70..=71), (Runtime, 86..=87), (Runtime, 154..=155),
    (Runtime, 181..=182), (Runtime, 183..=184), (Runtime, 206..=207), (Rundown, 155..=156), (Rundown, 160..=161),
    (Private, 7..=10), (Private, 11..=19), (Private, 23..=24), (Private, 80..=123), (Private, 159..=176),
];

/// Id, first version with these fields, fields; sorted.
type Table = &'static [(u32, u32, Fields)];

const CLR: (&str, Type) = ("ClrInstanceID", U16);
const CLR_V1: (&str, Type) = ("ClrInstanceID", Since(1, &U16));

const INSTANCE: Fields = &[CLR];
const ROOTS: Fields = &[("HeapNum", U32), CLR];
const WORKERS: Fields = &[
    ("ActiveWorkerThreadCount", U32),
    ("RetiredWorkerThreadCount", U32),
    CLR,
];
const THREAD: Fields = &[("ID", Pointer), CLR];
const WORK: Fields = &[("WorkID", Pointer), CLR];
const HANDLER: Fields = &[
    ("EntryEIP", Hex64),
    ("MethodID", Hex64),
    ("MethodName", Utf16),
    CLR,
];
const ASSEMBLY: Fields = &[
    ("AssemblyID", Hex64),
    ("AppDomainID", Hex64),
    ("BindingID", Since(1, &Hex64)),
    ("AssemblyFlags", Hex32),
    ("FullyQualifiedAssemblyName", Utf16),
    CLR_V1,
];
const MODULE_RANGE: Fields = &[
    CLR,
    ("ModuleID", Hex64),
    ("RangeBegin", Hex32),
    ("RangeSize", U32),
    ("RangeType", U8),
];
const TIERING: Fields = &[CLR, ("Flags", Hex32)];
const CHECKPOINT: Fields = &[CLR, ("Name", Utf16), ("Timestamp", I64)];
const SAMPLED: Fields = &[
    ("Address", Pointer),
    ("TypeID", Pointer),
    ("ObjectCountForTypeSample", U32),
    ("TotalSizeForTypeSample", U64),
    CLR,
];

/// One generation in GCPerHeapHistory.
const GENERATION: Fields = &[
    ("SizeBefore", Pointer),
    ("FreeListBefore", Pointer),
    ("FreeObjBefore", Pointer),
    ("SizeAfter", Pointer),
    ("FreeListAfter", Pointer),
    ("FreeObjAfter", Pointer),
    ("In", Pointer),
    ("PinnedSurv", Pointer),
    ("NonePinnedSurv", Pointer),
    ("NewAllocation", Pointer),
];

#[rustfmt::skip]
static RUNTIME: Table = &[
    (1, 0, &[("Count", U32), ("Depth", Since(1, &U32)), ("Reason", U32), ("Type", Since(1, &U32)), CLR_V1,
        ("ClientSequenceNumber", Since(2, &U64))]),
    (2, 1, &[("Count", U32), ("Depth", U32), CLR]),
    (3, 1, INSTANCE),
    (4, 1, &[("GenerationSize0", U64), ("TotalPromotedSize0", U64), ("GenerationSize1", U64), ("TotalPromotedSize1", U64),
        ("GenerationSize2", U64), ("TotalPromotedSize2", U64), ("GenerationSize3", U64), ("TotalPromotedSize3", U64),
        ("FinalizationPromotedSize", U64), ("FinalizationPromotedCount", U64), ("PinnedObjectCount", U32), ("SinkBlockCount", U32),
        ("GCHandleCount", U32), CLR, ("GenerationSize4", Since(2, &U64)), ("TotalPromotedSize4", Since(2, &U64))]),
    (5, 1, &[("Address", Hex64), ("Size", U64), ("Type", U32), CLR]),
    (6, 1, &[("Address", Hex64), CLR]),
    (7, 1, INSTANCE),
    (9, 1, &[("Reason", U32), ("Count", U32), CLR]),
    (10, 1, &[("AllocationAmount", U32), ("AllocationKind", U32), CLR, ("AllocationAmount64", Since(2, &U64)),
        ("TypeID", Since(2, &Pointer)), ("TypeName", Since(2, &Utf16)), ("HeapIndex", Since(2, &U32)), ("Address", Since(3, &Pointer)),
        ("ObjectSize", Since(4, &U64))]),
    (11, 1, INSTANCE),
    (13, 1, &[("Count", U32), CLR]),
    (14, 1, INSTANCE),
    (16, 0, &[("Index", U32), ("Count", U32), CLR, ("Values", Structs(1, &[("RootedNodeAddress", Pointer), ("GCRootKind", U8),
        ("GCRootFlag", Hex32), ("GCRootID", Pointer)]))]),
    (17, 0, &[("Index", U32), ("Count", U32), CLR, ("Values", Structs(1, &[("GCKeyNodeID", Pointer), ("GCValueNodeID", Pointer),
        ("GCRootID", Pointer)]))]),
    (18, 0, &[("Index", U32), ("Count", U32), CLR, ("Values", Structs(1, &[("Address", Pointer), ("Size", U64), ("TypeID", Hex64),
        ("EdgeCount", U64)]))]),
    (19, 0, &[("Index", U32), ("Count", U32), CLR, ("Values", Structs(1, &[("Value", Pointer), ("ReferencingFieldID", U32)]))]),
    (20, 0, SAMPLED),
    (21, 0, &[("Index", U32), ("Count", U32), CLR, ("Values", Structs(1, &[("RangeBase", Pointer), ("RangeLength", U64)]))]),
    (22, 0, &[("Index", U32), ("Count", U32), CLR, ("Values", Structs(1, &[("OldRangeBase", Pointer), ("NewRangeBase", Pointer),
        ("RangeLength", U64)]))]),
    (23, 0, &[("Generation", U8), ("RangeStart", Pointer), ("RangeUsedLength", U64), ("RangeReservedLength", U64), CLR]),
    (25, 0, ROOTS),
    (29, 0, &[("TypeID", Pointer), ("ObjectID", Pointer), CLR]),
    (30, 0, &[("HandleID", Pointer), ("ObjectID", Pointer), ("Kind", U32), ("Generation", U32), ("AppDomainID", Hex64), CLR]),
    (31, 0, &[("HandleID", Pointer), CLR]),
    (32, 0, SAMPLED),
    (33, 0, &[("HandleID", Pointer), ("ObjectID", Pointer), ("ObjectSize", U64), ("TypeName", Utf16), CLR]),
    (35, 0, &[("Reason", U32), CLR]),
    (36, 0, &[("Count", U32), CLR, ("Values", Structs(0, &[("GCRootID", Hex64), ("ObjectID", Hex64), ("TypeID", Hex64),
        ("IUnknown", Hex64), ("RefCount", U32), ("PeggedRefCount", U32), ("Flags", Hex32)]))]),
    (37, 0, &[("Count", U32), CLR, ("Values", Structs(0, &[("ObjectID", Hex64), ("TypeID", Hex64), ("IUnk", Hex64), ("VTable", Hex64),
        ("RefCount", U32), ("Flags", Hex32)]))]),
    (38, 0, &[("Count", U32), ("AppDomainID", Hex64), CLR, ("Values", Structs(0, &[("GCRootID", Hex64), ("ObjectID", Hex64),
        ("TypeID", Hex64), ("Flags", Hex32), ("FieldName", Utf16)]))]),
    (39, 0, &[("Name", Utf16), ("DataSize", U32), ("Data", Blob(1)), CLR]),
    (40, 0, &[("WorkerThreadCount", U32), ("RetiredWorkerThreads", U32)]),
    (44, 0, &[("IOThreadCount", U32), ("RetiredIOThreads", U32), CLR_V1]),
    (48, 0, &[("ClrThreadID", U32), ("CpuUtilization", U32)]),
    (50, 0, WORKERS),
    (54, 0, &[("Throughput", F64), CLR]),
    (55, 0, &[("AverageThroughput", F64), ("NewWorkerThreadCount", U32), ("Reason", U32), CLR]),
    (56, 0, &[("Duration", F64), ("Throughput", F64), ("ThreadWave", F64), ("ThroughputWave", F64), ("ThroughputErrorEstimate", F64),
        ("AverageThroughputErrorEstimate", F64), ("ThroughputRatio", F64), ("Confidence", F64), ("NewControlSetting", F64),
        ("NewThreadWaveMagnitude", U16), CLR]),
    (57, 0, WORKERS),
    (58, 0, &[CLR, ("NsPerYield", F64), ("EstablishedNsPerYield", F64)]),
    (59, 0, &[("MinWorkerThreads", U16), ("MaxWorkerThreads", U16), ("MinIOCompletionThreads", U16), ("MaxIOCompletionThreads", U16), CLR]),
    (60, 0, &[("Count", U32), CLR]),
    (61, 0, WORK),
    (63, 0, &[("NativeOverlapped", Pointer), ("Overlapped", Pointer), ("MultiDequeues", Bool32), CLR]),
    (64, 0, &[("NativeOverlapped", Pointer), ("Overlapped", Pointer), CLR]),
    (70, 0, THREAD),
    (73, 0, &[("TypeLoadStartID", U32), CLR]),
    (74, 0, &[("TypeLoadStartID", U32), CLR, ("LoadLevel", U16), ("TypeID", Hex64), ("TypeName", Utf16)]),
    (80, 1, &[("ExceptionType", Utf16), ("ExceptionMessage", Utf16), ("ExceptionEIP", Pointer), ("ExceptionHRESULT", Hex32),
        ("ExceptionFlags", U16), CLR]),
    (81, 1, &[("ContentionFlags", U8), CLR, ("LockID", Since(2, &Pointer)), ("AssociatedObjectID", Since(2, &Pointer)),
        ("LockOwnerThreadID", Since(2, &U64))]),
    (83, 0, &[("AppDomainID", Hex64), ("Allocated", U64), CLR]),
    (84, 0, &[("AppDomainID", Hex64), ("Survived", U64), ("ProcessSurvived", U64), CLR]),
    (85, 0, &[("ManagedThreadID", Hex64), ("AppDomainID", Hex64), ("Flags", Hex32), ("ManagedThreadIndex", U32), ("OSThreadID", U32), CLR]),
    (86, 0, &[("ManagedThreadID", Hex64), ("AppDomainID", Hex64), CLR]),
    (90, 0, &[("LockID", Pointer), ("AssociatedObjectID", Pointer), CLR]),
    (91, 0, &[("ContentionFlags", U8), CLR, ("DurationNs", Since(1, &F64))]),
    (146, 0, &[("MethodID", Hex64), ("ModuleID", Hex64), ("JitHotCodeRequestSize", U64), ("JitRODataRequestSize", U64),
        ("AllocatedSizeForJitCode", U64), ("JitAllocFlag", Hex32), CLR]),
    (154, 0, ASSEMBLY),
    (158, 0, MODULE_RANGE),
    (160, 0, &[("MethodID", Hex64), CLR]),
    (181, 0, &[("VerificationFlags", U32), ("ErrorCode", Hex32), ("FullyQualifiedAssemblyName", Utf16), CLR_V1]),
    (183, 0, &[("VerificationFlags", U32), ("ErrorCode", Hex32), ("ModulePath", Utf16), CLR_V1]),
    (185, 0, &[("MethodBeingCompiledNamespace", Utf16), ("MethodBeingCompiledName", Utf16), ("MethodBeingCompiledNameSignature", Utf16),
        ("InlinerNamespace", Utf16), ("InlinerName", Utf16), ("InlinerNameSignature", Utf16), ("InlineeNamespace", Utf16),
        ("InlineeName", Utf16), ("InlineeNameSignature", Utf16), CLR]),
    (186, 0, &[("MethodBeingCompiledNamespace", Utf16), ("MethodBeingCompiledName", Utf16), ("MethodBeingCompiledNameSignature", Utf16),
        ("InlinerNamespace", Utf16), ("InlinerName", Utf16), ("InlinerNameSignature", Utf16), ("InlineeNamespace", Utf16),
        ("InlineeName", Utf16), ("InlineeNameSignature", Utf16), ("FailAlways", Bool32), ("FailReason", Ansi), CLR]),
    (188, 0, &[("MethodBeingCompiledNamespace", Utf16), ("MethodBeingCompiledName", Utf16), ("MethodBeingCompiledNameSignature", Utf16),
        ("CallerNamespace", Utf16), ("CallerName", Utf16), ("CallerNameSignature", Utf16), ("CalleeNamespace", Utf16),
        ("CalleeName", Utf16), ("CalleeNameSignature", Utf16), ("TailPrefix", Bool32), ("TailCallType", U32), CLR]),
    (189, 0, &[("MethodBeingCompiledNamespace", Utf16), ("MethodBeingCompiledName", Utf16), ("MethodBeingCompiledNameSignature", Utf16),
        ("CallerNamespace", Utf16), ("CallerName", Utf16), ("CallerNameSignature", Utf16), ("CalleeNamespace", Utf16),
        ("CalleeName", Utf16), ("CalleeNameSignature", Utf16), ("TailPrefix", Bool32), ("FailReason", Ansi), CLR]),
    (191, 0, &[("MethodBeingCompiledNamespace", Utf16), ("MethodBeingCompiledName", Utf16), ("MethodBeingCompiledNameSignature", Utf16),
        ("CallerNamespace", Utf16), ("CallerName", Utf16), ("CallerNameSignature", Utf16), ("CalleeNamespace", Utf16),
        ("CalleeName", Utf16), ("CalleeNameSignature", Utf16), ("TailPrefix", Bool32), ("FailReason", Utf16), CLR]),
    (192, 0, &[("MethodBeingCompiledNamespace", Utf16), ("MethodBeingCompiledName", Utf16), ("MethodBeingCompiledNameSignature", Utf16),
        ("InlinerNamespace", Utf16), ("InlinerName", Utf16), ("InlinerNameSignature", Utf16), ("InlineeNamespace", Utf16),
        ("InlineeName", Utf16), ("InlineeNameSignature", Utf16), ("FailAlways", Bool32), ("FailReason", Utf16), CLR]),
    (200, 0, &[("BytesAllocated", U64), CLR]),
    (201, 0, &[("BytesFreed", U64), CLR]),
    (202, 0, &[("HeapNum", U32), CLR, ("Type", U32), ("Bytes", U64)]),
    (203, 2, &[("Heap", U32), ("JoinTime", U32), ("JoinType", U32), CLR, ("JoinID", U32)]),
    (204, 3, &[CLR, ("FreeListAllocated", Pointer), ("FreeListRejected", Pointer), ("EndOfSegAllocated", Pointer),
        ("CondemnedAllocated", Pointer), ("PinnedAllocated", Pointer), ("PinnedAllocatedAdvance", Pointer),
        ("RunningFreeListEfficiency", U32), ("CondemnReasons0", U32), ("CondemnReasons1", U32), ("CompactMechanisms", Hex32),
        ("ExpandMechanisms", Hex32), ("HeapIndex", U32), ("ExtraGen0Commit", Pointer), ("Count", U32),
        ("Values", Structs(14, GENERATION))]),
    (205, 2, &[("FinalYoungestDesired", U64), ("NumHeaps", I32), ("CondemnedGeneration", U32), ("Gen0ReductionCount", U32),
        ("Reason", U32), ("GlobalMechanisms", Hex32), CLR, ("PauseMode", U32), ("MemoryPressure", U32),
        ("CondemnReasons0", Since(3, &U32)), ("CondemnReasons1", Since(3, &U32)), ("Count", Since(4, &U32)),
        ("Values", Since(4, &Many(11, &U32)))]),
    (206, 0, &[("Count", U32), CLR]),
    (208, 0, &[CLR, ("Count", U16), ("Values", Structs(1, &[("TimePlan", U32), ("TimeCompact", U32), ("TimeRelocate", U32),
        ("TotalRefs", Pointer), ("ZeroRefs", Pointer)]))]),
    (209, 0, &[CLR, ("BucketKind", U16), ("TotalSize", U64), ("Count", U16), ("Values", Structs(3, &[("Index", U16), ("Count", U32),
        ("Size", Pointer)]))]),
    (250, 0, HANDLER),
    (252, 0, HANDLER),
    (254, 0, HANDLER),
    (280, 0, TIERING),
    (281, 0, INSTANCE),
    (282, 0, &[CLR, ("NewMethodCount", U32)]),
    (283, 0, &[CLR, ("PendingMethodCount", U32)]),
    (284, 0, &[CLR, ("PendingMethodCount", U32), ("JittedMethodCount", U32)]),
    (290, 0, &[CLR, ("AssemblyName", Utf16), ("AssemblyPath", Utf16), ("RequestingAssembly", Utf16), ("AssemblyLoadContext", Utf16),
        ("RequestingAssemblyLoadContext", Utf16)]),
    (291, 0, &[CLR, ("AssemblyName", Utf16), ("AssemblyPath", Utf16), ("RequestingAssembly", Utf16), ("AssemblyLoadContext", Utf16),
        ("RequestingAssemblyLoadContext", Utf16), ("Success", Bool32), ("ResultAssemblyName", Utf16), ("ResultAssemblyPath", Utf16),
        ("Cached", Bool32)]),
    (292, 0, &[CLR, ("AssemblyName", Utf16), ("Stage", U16), ("AssemblyLoadContext", Utf16), ("Result", U16),
        ("ResultAssemblyName", Utf16), ("ResultAssemblyPath", Utf16), ("ErrorMessage", Utf16)]),
    (293, 0, &[CLR, ("AssemblyName", Utf16), ("HandlerName", Utf16), ("AssemblyLoadContext", Utf16), ("ResultAssemblyName", Utf16),
        ("ResultAssemblyPath", Utf16)]),
    (295, 0, &[CLR, ("AssemblyName", Utf16), ("IsTrackedLoad", Bool32), ("RequestingAssemblyPath", Utf16),
        ("ComputedRequestedAssemblyPath", Utf16)]),
    (296, 0, &[CLR, ("FilePath", Utf16), ("Source", U16), ("Result", I32)]),
    (300, 0, CHECKPOINT),
];

#[rustfmt::skip]
static RUNDOWN: Table = &[
    (10, 0, &[("HardLimit", U64), ("LOHThreshold", U64), ("PhysicalMemoryConfig", U64), ("Gen0MinBudgetConfig", U64),
        ("Gen0MaxBudgetConfig", U64), ("HighMemPercentConfig", U32), ("BitSettings", Hex32), CLR]),
    (155, 0, ASSEMBLY),
    (159, 0, &[("ManagedThreadID", Hex64), ("AppDomainID", Hex64), ("Flags", Hex32), ("ManagedThreadIndex", U32), ("OSThreadID", U32),
        CLR]),
    (160, 0, MODULE_RANGE),
    (280, 0, TIERING),
    (300, 0, CHECKPOINT),
];

/// Event 4, GCPerHeapHistory, is not here: .NET Framework writes a structure of its own that nothing describes.
#[rustfmt::skip]
static PRIVATE: Table = &[
    (1, 0, &[("DoCompact", Bool32), CLR_V1]),
    (2, 0, &[("SegmentSize", U64), ("LargeObjectSegmentSize", U64), ("ServerGC", Bool32), CLR_V1]),
    (3, 0, &[("DesiredAllocation", U64), ("NewAllocation", U64), ("GenerationNumber", U32), CLR_V1]),
    (5, 0, &[("FinalYoungestDesired", U64), ("NumHeaps", I32), ("CondemnedGeneration", U32), ("Gen0ReductionCount", U32), ("Reason", U32),
        ("GlobalMechanisms", Hex32), CLR_V1]),
    (6, 0, &[("Heap", U32), ("JoinTime", U32), ("JoinType", U32), CLR_V1]),
    (7, 0, &[("HeapNum", U32)]),
    (7, 1, ROOTS),
    (11, 0, INSTANCE),
    (20, 0, &[("Objects", U64), CLR]),
    (21, 0, &[("Pages", U64), ("Objects", U64), ("IsLarge", U32), CLR]),
    (22, 0, &[("Min", Hex64), ("Max", Hex64), ("Objects", U64), ("IsLarge", U32), CLR, ("GenNumber", Since(1, &U32))]),
    (23, 0, &[("Reason", U32), CLR]),
    (25, 0, &[("GenNumber", U32), ("IsAlloc", U32), CLR_V1]),
    (26, 0, &[("GenNumber", U32), CLR]),
    (80, 1, INSTANCE),
    (158, 0, &[CLR, ("ModuleID", Hex64), ("RangeBegin", Hex32), ("RangeSize", U32), ("RangeType", U8), ("IBCType", U8),
        ("VirtualSectionType", U16)]),
    (159, 0, &[("AppDomainID", U32), ("LoadContextID", U32), ("FromLoaderCache", U32), ("DynamicLoad", U32), ("AssemblyCodebase", Utf16),
        ("AssemblyName", Utf16), CLR]),
    (177, 0, &[("Type", U32), ("AppDomain", U32), ("ILImage", Utf16), CLR]),
    (178, 0, &[("Module", Utf16), ("AppDomainID", U32), CLR]),
    (179, 0, &[("Module", Utf16), ("AppDomainID", U32), ("IsAllCritical", Bool32), ("IsAllTransparent", Bool32), ("IsTreatAsSafe", Bool32),
        ("IsOpportunisticallyCritical", Bool32), ("SecurityRuleSet", U32), CLR]),
    (180, 0, &[("Type", Utf16), ("Module", Utf16), ("AppDomainID", U32), CLR]),
    (181, 0, &[("Type", Utf16), ("Module", Utf16), ("AppDomainID", U32), ("IsAllCritical", Bool32), ("IsAllTransparent", Bool32),
        ("IsCritical", Bool32), ("IsTreatAsSafe", Bool32), CLR]),
    (182, 0, &[("Method", Utf16), ("Module", Utf16), ("AppDomainID", U32), CLR]),
    (183, 0, &[("Method", Utf16), ("Module", Utf16), ("AppDomainID", U32), ("IsCritical", Bool32), ("IsTreatAsSafe", Bool32), CLR]),
    (184, 0, &[("Field", Utf16), ("Module", Utf16), ("AppDomainID", U32), CLR]),
    (185, 0, &[("Field", Utf16), ("Module", Utf16), ("AppDomainID", U32), ("IsCritical", Bool32), ("IsTreatAsSafe", Bool32), CLR]),
    (186, 0, &[("Token", Hex32), ("Module", Utf16), ("AppDomainID", U32), CLR]),
    (187, 0, &[("Token", Hex32), ("Module", Utf16), ("AppDomainID", U32), ("IsCritical", Bool32), ("IsTreatAsSafe", Bool32), CLR]),
    (188, 0, &[CLR, ("BindingID", Hex64), ("ReasonCode", U32), ("AssemblyName", Utf16)]),
    (191, 0, &[("FailFastUserMessage", Utf16), ("FailedEIP", Pointer), ("OSExitCode", Hex32), ("ClrExitCode", Hex32), CLR]),
    (192, 0, &[("TypeID", Pointer), ("ObjectID", Pointer), CLR, ("TypeName", Utf16)]),
    (193, 0, &[("HandleID", Pointer), ("ObjectID", Pointer), ("COMInterfacePointer", Pointer), ("NewRefCount", U32),
        ("AppDomainID", Hex64), ("ClassName", Ansi), ("NameSpace", Ansi), ("Operation", Utf16), CLR]),
    (194, 0, &[("HandleID", Pointer), ("ObjectID", Pointer), ("Kind", U32), ("Generation", U32), ("AppDomainID", Hex64), CLR]),
    (195, 0, &[("HandleID", Pointer), CLR]),
    (196, 0, &[CLR, ("Prepend", Bool32), ("Message", Utf16)]),
    (197, 0, &[CLR, ("Category", U32), ("ErrorCode", Hex32)]),
    (199, 0, &[("PlugStart", Pointer), ("PlugEnd", Pointer), ("GapBeforeSize", Pointer), CLR]),
    (200, 0, &[("HandleID", Pointer), ("ObjectID", Pointer), ("COMInterfacePointer", Pointer), ("NewRefCount", U32),
        ("AppDomainID", Hex64), ("ClassName", Utf16), ("NameSpace", Utf16), ("Operation", Utf16), CLR]),
    (310, 0, &[("LoaderHeapPtr", Pointer), ("MemoryAddress", Pointer), ("RequestSize", U32), ("Unused1", U32), ("Unused2", Hex64), CLR]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clr, rows};

    #[test]
    fn rows_are_sorted_and_of_events_that_have_a_name_and_no_decoder() {
        for (provider, table) in [
            (Provider::Runtime, RUNTIME),
            (Provider::Rundown, RUNDOWN),
            (Provider::Private, PRIVATE),
        ] {
            assert!(table.is_sorted_by(|a, b| (a.0, a.1) < (b.0, b.1)));
            for (id, _, _) in table {
                assert!(rows::manifest(&provider, *id).is_none(), "{provider}/{id}");
                assert!(clr::name_only(&provider, *id).is_some(), "{provider}/{id}");
            }
        }
    }

    #[test]
    fn the_newest_known_version_stands_for_newer_ones() {
        let fields = |version| fields_only(&Provider::NativeRuntime, 10, version).map(|f| f.len());
        assert_eq!(fields(0), None);
        assert_eq!(fields(1), Some(3));
        assert_eq!(fields(4), Some(9));
        assert_eq!(fields(99), Some(9));
        assert!(fields_only(&Provider::Stress, 10, 4).is_none());
    }

    #[test]
    fn events_of_one_kind_share_their_fields() {
        let private = |id, version| fields_only(&Provider::Private, id, version);
        assert_eq!(private(176, 0), private(159, 0));
        assert_eq!(private(123, 1), private(80, 1));
        assert_eq!(private(10, 0).map(|f| f.len()), Some(1));
        assert!(private(4, 2).is_none() && private(124, 1).is_none());
    }
}
