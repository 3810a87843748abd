//! Fields of the runtime's events that have no typed decoder, as its manifest has them: EventPipe carries no description of them.

use std::sync::Arc;

use crate::published::Type::{
    self, Ansi, Blob, Bool32, F64, Hex32, Hex64, I32, Many, Pointer, Structs, U8, U16, U32, U64,
    Utf16,
};
use crate::published::{Fields, newest};
use crate::{Field, Provider};

/// The published fields of an event without a typed decoder. A version newer than those known has those of the newest.
pub(crate) fn fields_only(provider: &Provider, id: u32, version: u32) -> Option<Arc<[Field]>> {
    let (table, id) = match provider.canonical() {
        Provider::Runtime => (RUNTIME, id),
        Provider::Rundown => (RUNDOWN, id),
        Provider::Private => (PRIVATE, first_of_its_kind(id)),
        _ => return None,
    };
    let rows = table.iter().filter(|row| row.0 == id);
    newest(rows.map(|row| (row.1, row.2)), version)
}

/// Many events of the private provider have the same fields: the row of the first stands for all.
fn first_of_its_kind(id: u32) -> u32 {
    match id {
        7..=10 => 7,
        11..=19 => 11,
        23..=24 => 23,
        80..=123 => 80,
        159..=176 => 159,
        _ => id,
    }
}

/// Id, first version with these fields, fields; sorted.
type Table = &'static [(u32, u32, Fields)];

const CLR: (&str, Type) = ("ClrInstanceID", U16);

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
    (1, 0, &[("Count", U32), ("Reason", U32)]),
    (1, 1, &[("Count", U32), ("Depth", U32), ("Reason", U32), ("Type", U32), CLR]),
    (1, 2, &[("Count", U32), ("Depth", U32), ("Reason", U32), ("Type", U32), CLR, ("ClientSequenceNumber", U64)]),
    (2, 1, &[("Count", U32), ("Depth", U32), CLR]),
    (3, 1, INSTANCE),
    (4, 1, &[("GenerationSize0", U64), ("TotalPromotedSize0", U64), ("GenerationSize1", U64), ("TotalPromotedSize1", U64),
        ("GenerationSize2", U64), ("TotalPromotedSize2", U64), ("GenerationSize3", U64), ("TotalPromotedSize3", U64),
        ("FinalizationPromotedSize", U64), ("FinalizationPromotedCount", U64), ("PinnedObjectCount", U32), ("SinkBlockCount", U32),
        ("GCHandleCount", U32), CLR]),
    (4, 2, &[("GenerationSize0", U64), ("TotalPromotedSize0", U64), ("GenerationSize1", U64), ("TotalPromotedSize1", U64),
        ("GenerationSize2", U64), ("TotalPromotedSize2", U64), ("GenerationSize3", U64), ("TotalPromotedSize3", U64),
        ("FinalizationPromotedSize", U64), ("FinalizationPromotedCount", U64), ("PinnedObjectCount", U32), ("SinkBlockCount", U32),
        ("GCHandleCount", U32), CLR, ("GenerationSize4", U64), ("TotalPromotedSize4", U64)]),
    (5, 1, &[("Address", Hex64), ("Size", U64), ("Type", U32), CLR]),
    (6, 1, &[("Address", Hex64), CLR]),
    (7, 1, INSTANCE),
    (8, 1, INSTANCE),
    (9, 1, &[("Reason", U32), ("Count", U32), CLR]),
    (10, 1, &[("AllocationAmount", U32), ("AllocationKind", U32), CLR]),
    (10, 2, &[("AllocationAmount", U32), ("AllocationKind", U32), CLR, ("AllocationAmount64", U64), ("TypeID", Pointer), ("TypeName", Utf16),
        ("HeapIndex", U32)]),
    (10, 3, &[("AllocationAmount", U32), ("AllocationKind", U32), CLR, ("AllocationAmount64", U64), ("TypeID", Pointer), ("TypeName", Utf16),
        ("HeapIndex", U32), ("Address", Pointer)]),
    (10, 4, &[("AllocationAmount", U32), ("AllocationKind", U32), CLR, ("AllocationAmount64", U64), ("TypeID", Pointer), ("TypeName", Utf16),
        ("HeapIndex", U32), ("Address", Pointer), ("ObjectSize", U64)]),
    (11, 1, INSTANCE),
    (12, 1, INSTANCE),
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
    (26, 0, ROOTS),
    (27, 0, ROOTS),
    (28, 0, ROOTS),
    (29, 0, &[("TypeID", Pointer), ("ObjectID", Pointer), CLR]),
    (30, 0, &[("HandleID", Pointer), ("ObjectID", Pointer), ("Kind", U32), ("Generation", U32), ("AppDomainID", Hex64), CLR]),
    (31, 0, &[("HandleID", Pointer), CLR]),
    (32, 0, SAMPLED),
    (33, 0, &[("HandleID", Pointer), ("ObjectID", Pointer), ("ObjectSize", U64), ("TypeName", Utf16), CLR]),
    (35, 0, &[("Reason", U32), CLR]),
    (36, 0, &[("Count", U32), CLR, ("Values", Structs(0, &[("GCRootID", Hex64), ("ObjectID", Hex64), ("TypeID", Hex64), ("IUnknown", Hex64),
        ("RefCount", U32), ("PeggedRefCount", U32), ("Flags", Hex32)]))]),
    (37, 0, &[("Count", U32), CLR, ("Values", Structs(0, &[("ObjectID", Hex64), ("TypeID", Hex64), ("IUnk", Hex64), ("VTable", Hex64),
        ("RefCount", U32), ("Flags", Hex32)]))]),
    (38, 0, &[("Count", U32), ("AppDomainID", Hex64), CLR, ("Values", Structs(0, &[("GCRootID", Hex64), ("ObjectID", Hex64), ("TypeID", Hex64),
        ("Flags", Hex32), ("FieldName", Utf16)]))]),
    (39, 0, &[("Name", Utf16), ("DataSize", U32), ("Data", Blob(1)), CLR]),
    (40, 0, &[("WorkerThreadCount", U32), ("RetiredWorkerThreads", U32)]),
    (41, 0, &[("WorkerThreadCount", U32), ("RetiredWorkerThreads", U32)]),
    (42, 0, &[("WorkerThreadCount", U32), ("RetiredWorkerThreads", U32)]),
    (43, 0, &[("WorkerThreadCount", U32), ("RetiredWorkerThreads", U32)]),
    (44, 0, &[("IOThreadCount", U32), ("RetiredIOThreads", U32)]),
    (44, 1, &[("IOThreadCount", U32), ("RetiredIOThreads", U32), CLR]),
    (45, 0, &[("IOThreadCount", U32), ("RetiredIOThreads", U32)]),
    (45, 1, &[("IOThreadCount", U32), ("RetiredIOThreads", U32), CLR]),
    (46, 0, &[("IOThreadCount", U32), ("RetiredIOThreads", U32)]),
    (46, 1, &[("IOThreadCount", U32), ("RetiredIOThreads", U32), CLR]),
    (47, 0, &[("IOThreadCount", U32), ("RetiredIOThreads", U32)]),
    (47, 1, &[("IOThreadCount", U32), ("RetiredIOThreads", U32), CLR]),
    (48, 0, &[("ClrThreadID", U32), ("CpuUtilization", U32)]),
    (49, 0, &[("ClrThreadID", U32), ("CpuUtilization", U32)]),
    (50, 0, WORKERS),
    (51, 0, WORKERS),
    (52, 0, WORKERS),
    (53, 0, WORKERS),
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
    (62, 0, WORK),
    (63, 0, &[("NativeOverlapped", Pointer), ("Overlapped", Pointer), ("MultiDequeues", Bool32), CLR]),
    (64, 0, &[("NativeOverlapped", Pointer), ("Overlapped", Pointer), CLR]),
    (65, 0, &[("NativeOverlapped", Pointer), ("Overlapped", Pointer), CLR]),
    (70, 0, THREAD),
    (71, 0, THREAD),
    (73, 0, &[("TypeLoadStartID", U32), CLR]),
    (74, 0, &[("TypeLoadStartID", U32), CLR, ("LoadLevel", U16), ("TypeID", Hex64), ("TypeName", Utf16)]),
    (80, 1, &[("ExceptionType", Utf16), ("ExceptionMessage", Utf16), ("ExceptionEIP", Pointer), ("ExceptionHRESULT", Hex32),
        ("ExceptionFlags", U16), CLR]),
    (81, 1, &[("ContentionFlags", U8), CLR]),
    (81, 2, &[("ContentionFlags", U8), CLR, ("LockID", Pointer), ("AssociatedObjectID", Pointer), ("LockOwnerThreadID", U64)]),
    (83, 0, &[("AppDomainID", Hex64), ("Allocated", U64), CLR]),
    (84, 0, &[("AppDomainID", Hex64), ("Survived", U64), ("ProcessSurvived", U64), CLR]),
    (85, 0, &[("ManagedThreadID", Hex64), ("AppDomainID", Hex64), ("Flags", Hex32), ("ManagedThreadIndex", U32), ("OSThreadID", U32), CLR]),
    (86, 0, &[("ManagedThreadID", Hex64), ("AppDomainID", Hex64), CLR]),
    (87, 0, &[("ManagedThreadID", Hex64), ("AppDomainID", Hex64), CLR]),
    (90, 0, &[("LockID", Pointer), ("AssociatedObjectID", Pointer), CLR]),
    (91, 0, &[("ContentionFlags", U8), CLR]),
    (91, 1, &[("ContentionFlags", U8), CLR, ("DurationNs", F64)]),
    (181, 0, &[("VerificationFlags", U32), ("ErrorCode", Hex32), ("FullyQualifiedAssemblyName", Utf16)]),
    (181, 1, &[("VerificationFlags", U32), ("ErrorCode", Hex32), ("FullyQualifiedAssemblyName", Utf16), CLR]),
    (182, 0, &[("VerificationFlags", U32), ("ErrorCode", Hex32), ("FullyQualifiedAssemblyName", Utf16)]),
    (182, 1, &[("VerificationFlags", U32), ("ErrorCode", Hex32), ("FullyQualifiedAssemblyName", Utf16), CLR]),
    (183, 0, &[("VerificationFlags", U32), ("ErrorCode", Hex32), ("ModulePath", Utf16)]),
    (183, 1, &[("VerificationFlags", U32), ("ErrorCode", Hex32), ("ModulePath", Utf16), CLR]),
    (184, 0, &[("VerificationFlags", U32), ("ErrorCode", Hex32), ("ModulePath", Utf16)]),
    (184, 1, &[("VerificationFlags", U32), ("ErrorCode", Hex32), ("ModulePath", Utf16), CLR]),
    (200, 0, &[("BytesAllocated", U64), CLR]),
    (201, 0, &[("BytesFreed", U64), CLR]),
    (202, 0, &[("HeapNum", U32), CLR, ("Type", U32), ("Bytes", U64)]),
    (203, 2, &[("Heap", U32), ("JoinTime", U32), ("JoinType", U32), CLR, ("JoinID", U32)]),
    (204, 3, &[CLR, ("FreeListAllocated", Pointer), ("FreeListRejected", Pointer), ("EndOfSegAllocated", Pointer),
        ("CondemnedAllocated", Pointer), ("PinnedAllocated", Pointer), ("PinnedAllocatedAdvance", Pointer),
        ("RunningFreeListEfficiency", U32), ("CondemnReasons0", U32), ("CondemnReasons1", U32), ("CompactMechanisms", Hex32),
        ("ExpandMechanisms", Hex32), ("HeapIndex", U32), ("ExtraGen0Commit", Pointer), ("Count", U32), ("Values", Structs(14, GENERATION))]),
    (205, 2, &[("FinalYoungestDesired", U64), ("NumHeaps", I32), ("CondemnedGeneration", U32), ("Gen0ReductionCount", U32), ("Reason", U32),
        ("GlobalMechanisms", Hex32), CLR, ("PauseMode", U32), ("MemoryPressure", U32)]),
    (205, 3, &[("FinalYoungestDesired", U64), ("NumHeaps", I32), ("CondemnedGeneration", U32), ("Gen0ReductionCount", U32), ("Reason", U32),
        ("GlobalMechanisms", Hex32), CLR, ("PauseMode", U32), ("MemoryPressure", U32),
        ("CondemnReasons0", U32), ("CondemnReasons1", U32)]),
    (205, 4, &[("FinalYoungestDesired", U64), ("NumHeaps", I32), ("CondemnedGeneration", U32), ("Gen0ReductionCount", U32), ("Reason", U32),
        ("GlobalMechanisms", Hex32), CLR, ("PauseMode", U32), ("MemoryPressure", U32),
        ("CondemnReasons0", U32), ("CondemnReasons1", U32), ("Count", U32), ("Values", Many(11, &U32))]),
    (206, 0, &[("Count", U32), CLR]),
    (207, 0, &[("Count", U32), CLR]),
    (208, 0, &[CLR, ("Count", U16), ("Values", Structs(1, &[("TimePlan", U32), ("TimeCompact", U32), ("TimeRelocate", U32), ("TotalRefs", Pointer),
        ("ZeroRefs", Pointer)]))]),
    (209, 0, &[CLR, ("BucketKind", U16), ("TotalSize", U64), ("Count", U16), ("Values", Structs(3, &[("Index", U16), ("Count", U32),
        ("Size", Pointer)]))]),
    (250, 0, HANDLER),
    (252, 0, HANDLER),
    (254, 0, HANDLER),
    (290, 0, &[CLR, ("AssemblyName", Utf16), ("AssemblyPath", Utf16), ("RequestingAssembly", Utf16), ("AssemblyLoadContext", Utf16),
        ("RequestingAssemblyLoadContext", Utf16)]),
    (291, 0, &[CLR, ("AssemblyName", Utf16), ("AssemblyPath", Utf16), ("RequestingAssembly", Utf16), ("AssemblyLoadContext", Utf16),
        ("RequestingAssemblyLoadContext", Utf16), ("Success", Bool32), ("ResultAssemblyName", Utf16), ("ResultAssemblyPath", Utf16),
        ("Cached", Bool32)]),
    (292, 0, &[CLR, ("AssemblyName", Utf16), ("Stage", U16), ("AssemblyLoadContext", Utf16), ("Result", U16), ("ResultAssemblyName", Utf16),
        ("ResultAssemblyPath", Utf16), ("ErrorMessage", Utf16)]),
    (293, 0, &[CLR, ("AssemblyName", Utf16), ("HandlerName", Utf16), ("AssemblyLoadContext", Utf16), ("ResultAssemblyName", Utf16),
        ("ResultAssemblyPath", Utf16)]),
    (295, 0, &[CLR, ("AssemblyName", Utf16), ("IsTrackedLoad", Bool32), ("RequestingAssemblyPath", Utf16),
        ("ComputedRequestedAssemblyPath", Utf16)]),
    (296, 0, &[CLR, ("FilePath", Utf16), ("Source", U16), ("Result", I32)]),
];

#[rustfmt::skip]
static RUNDOWN: Table = &[
    (10, 0, &[("HardLimit", U64), ("LOHThreshold", U64), ("PhysicalMemoryConfig", U64), ("Gen0MinBudgetConfig", U64),
        ("Gen0MaxBudgetConfig", U64), ("HighMemPercentConfig", U32), ("BitSettings", Hex32), CLR]),
];

/// Event 4, GCPerHeapHistory, is not here: .NET Framework writes a structure of its own that nothing describes.
#[rustfmt::skip]
static PRIVATE: Table = &[
    (1, 0, &[("DoCompact", Bool32)]),
    (1, 1, &[("DoCompact", Bool32), CLR]),
    (2, 0, &[("SegmentSize", U64), ("LargeObjectSegmentSize", U64), ("ServerGC", Bool32)]),
    (2, 1, &[("SegmentSize", U64), ("LargeObjectSegmentSize", U64), ("ServerGC", Bool32), CLR]),
    (3, 0, &[("DesiredAllocation", U64), ("NewAllocation", U64), ("GenerationNumber", U32)]),
    (3, 1, &[("DesiredAllocation", U64), ("NewAllocation", U64), ("GenerationNumber", U32), CLR]),
    (5, 0, &[("FinalYoungestDesired", U64), ("NumHeaps", I32), ("CondemnedGeneration", U32), ("Gen0ReductionCount", U32), ("Reason", U32),
        ("GlobalMechanisms", Hex32)]),
    (5, 1, &[("FinalYoungestDesired", U64), ("NumHeaps", I32), ("CondemnedGeneration", U32), ("Gen0ReductionCount", U32), ("Reason", U32),
        ("GlobalMechanisms", Hex32), CLR]),
    (6, 0, &[("Heap", U32), ("JoinTime", U32), ("JoinType", U32)]),
    (6, 1, &[("Heap", U32), ("JoinTime", U32), ("JoinType", U32), CLR]),
    (7, 0, &[("HeapNum", U32)]),
    (7, 1, ROOTS),
    (11, 0, INSTANCE),
    (20, 0, &[("Objects", U64), CLR]),
    (21, 0, &[("Pages", U64), ("Objects", U64), ("IsLarge", U32), CLR]),
    (22, 0, &[("Min", Hex64), ("Max", Hex64), ("Objects", U64), ("IsLarge", U32), CLR]),
    (22, 1, &[("Min", Hex64), ("Max", Hex64), ("Objects", U64), ("IsLarge", U32), CLR, ("GenNumber", U32)]),
    (23, 0, &[("Reason", U32), CLR]),
    (25, 0, &[("GenNumber", U32), ("IsAlloc", U32)]),
    (25, 1, &[("GenNumber", U32), ("IsAlloc", U32), CLR]),
    (26, 0, &[("GenNumber", U32), CLR]),
    (80, 1, INSTANCE),
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
    (193, 0, &[("HandleID", Pointer), ("ObjectID", Pointer), ("COMInterfacePointer", Pointer), ("NewRefCount", U32), ("AppDomainID", Hex64),
        ("ClassName", Ansi), ("NameSpace", Ansi), ("Operation", Utf16), CLR]),
    (194, 0, &[("HandleID", Pointer), ("ObjectID", Pointer), ("Kind", U32), ("Generation", U32), ("AppDomainID", Hex64), CLR]),
    (195, 0, &[("HandleID", Pointer), CLR]),
    (196, 0, &[CLR, ("Prepend", Bool32), ("Message", Utf16)]),
    (197, 0, &[CLR, ("Category", U32), ("ErrorCode", Hex32)]),
    (199, 0, &[("PlugStart", Pointer), ("PlugEnd", Pointer), ("GapBeforeSize", Pointer), CLR]),
    (200, 0, &[("HandleID", Pointer), ("ObjectID", Pointer), ("COMInterfacePointer", Pointer), ("NewRefCount", U32), ("AppDomainID", Hex64),
        ("ClassName", Utf16), ("NameSpace", Utf16), ("Operation", Utf16), CLR]),
    (310, 0, &[("LoaderHeapPtr", Pointer), ("MemoryAddress", Pointer), ("RequestSize", U32), ("Unused1", U32), ("Unused2", Hex64), CLR]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clr;

    #[test]
    fn rows_are_sorted_and_of_events_that_have_a_name_and_no_decoder() {
        for (provider, table) in [
            (Provider::Runtime, RUNTIME),
            (Provider::Rundown, RUNDOWN),
            (Provider::Private, PRIVATE),
        ] {
            assert!(table.is_sorted_by(|a, b| (a.0, a.1) < (b.0, b.1)));
            for (id, _, _) in table {
                assert!(clr::find(&provider, *id).is_none(), "{provider}/{id}");
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
