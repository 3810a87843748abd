//! Fields of the runtime's events that have no typed decoder, as its manifest has them: EventPipe carries no description of them.

use std::sync::Arc;

use crate::FieldType::{self, Bool32, F64, Hex32, Hex64, I32, Pointer, U8, U16, U32, U64, Utf16};
use crate::{Field, Provider};

/// The published fields of an event without a typed decoder. A version newer than those known has those of the newest.
pub(crate) fn fields_only(provider: &Provider, id: u32, version: u32) -> Option<Arc<[Field]>> {
    if *provider.canonical() != Provider::Runtime {
        return None;
    }
    let (_, _, fields) = RUNTIME
        .iter()
        .rfind(|row| row.0 == id && row.1 <= version)?;
    let field = |(name, ty): &(&'static str, FieldType)| Field::new(*name, ty.clone());
    Some(fields.iter().map(field).collect())
}

type Fields = &'static [(&'static str, FieldType)];

const CLR: (&str, FieldType) = ("ClrInstanceID", U16);

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

/// Id, first version with these fields, fields.
#[rustfmt::skip]
static RUNTIME: &[(u32, u32, Fields)] = &[
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
    (20, 0, SAMPLED),
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
    (60, 0, &[("Count", U32), CLR]),
    (61, 0, WORK),
    (62, 0, WORK),
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
    (90, 0, &[("LockID", Pointer), ("AssociatedObjectID", Pointer), CLR]),
    (91, 0, &[("ContentionFlags", U8), CLR]),
    (91, 1, &[("ContentionFlags", U8), CLR, ("DurationNs", F64)]),
    (200, 0, &[("BytesAllocated", U64), CLR]),
    (201, 0, &[("BytesFreed", U64), CLR]),
    (202, 0, &[("HeapNum", U32), CLR, ("Type", U32), ("Bytes", U64)]),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clr;

    #[test]
    fn rows_are_sorted_and_of_events_that_have_a_name_and_no_decoder() {
        assert!(RUNTIME.is_sorted_by(|a, b| (a.0, a.1) < (b.0, b.1)));
        for (id, _, _) in RUNTIME {
            assert!(clr::find(&Provider::Runtime, *id).is_none(), "{id}");
            assert!(clr::name_only(&Provider::Runtime, *id).is_some(), "{id}");
        }
    }

    #[test]
    fn the_newest_known_version_stands_for_newer_ones() {
        let fields = |version| fields_only(&Provider::NativeRuntime, 10, version).map(|f| f.len());
        assert_eq!(fields(0), None);
        assert_eq!(fields(1), Some(3));
        assert_eq!(fields(4), Some(9));
        assert_eq!(fields(99), Some(9));
        assert!(fields_only(&Provider::Rundown, 10, 4).is_none());
    }
}
