use chronosym_events::{EventKey, Provider};
use chronosym_support::payload::{self, ILMap, Method, Module, Names};

use super::Case;

const NAMES: Names<'_> = ("N.T", "M", "void ()");
const TARGET: Names<'_> = ("I.T", "P", "int32 (int32)");

macro_rules! clr {
    ($provider:ident $id:literal $name:literal, $versions:expr, $encode:expr, $fields:expr) => {
        Case {
            key: |version| EventKey::Manifest {
                provider: Provider::$provider,
                id: $id,
                version,
            },
            name: $name,
            versions: $versions,
            encode: $encode,
            fields: $fields,
            may_end: |_, _| Vec::new(),
        }
    };
}

fn method(names: bool) -> Method<'static> {
    Method {
        id: 0x7f01,
        module: 0x7f02,
        start: 0x7fff_1000,
        size: 99,
        token: 0x0600_0003,
        flags: 0x1000_0188,
        names: names.then_some(NAMES),
        clr: 9,
        code_version: 0x11,
    }
}

fn method_fields(version: u32, names: bool) -> String {
    let mut text =
        "MethodID=0x7f01, ModuleID=0x7f02, MethodStartAddress=0x7fff1000, MethodSize=99, \
                    MethodToken=0x6000003, MethodFlags=0x10000188"
            .to_owned();
    if names {
        text += ", MethodNameSpace=N.T, MethodName=M, MethodSignature=void ()";
    }
    text += ["", ", ClrInstanceID=9", ", ClrInstanceID=9, ReJITID=0x11"][version as usize];
    text
}

macro_rules! method {
    ($provider:ident $id:literal $name:literal) => {
        clr!($provider $id $name, 0..=2, |v, _| method(false).encode(v), |v| method_fields(v, false))
    };
    ($provider:ident $id:literal $name:literal verbose) => {
        clr!($provider $id $name, 0..=2, |v, _| method(true).encode(v), |v| method_fields(v, true))
    };
}

fn module(version: u32) -> Vec<u8> {
    Module {
        id: 0xa1,
        assembly: 0xa2,
        flags: 0x28,
        il_path: "/a/b.dll",
        native_path: "",
        clr: 9,
        managed_pdb: ([1; 16], 1, "b.pdb"),
        native_pdb: ([2; 16], 2, "b.ni.pdb"),
        build_id: "beef",
    }
    .encode(version)
}

fn module_fields(version: u32) -> String {
    let parts = [
        "ModuleID=0xa1, AssemblyID=0xa2, ModuleFlags=0x28, Reserved1=0, ModuleILPath=/a/b.dll, ModuleNativePath=",
        ", ClrInstanceID=9",
        ", ManagedPdbSignature=01010101-0101-0101-0101-010101010101, ManagedPdbAge=1, ManagedPdbBuildPath=b.pdb, \
         NativePdbSignature=02020202-0202-0202-0202-020202020202, NativePdbAge=2, NativePdbBuildPath=b.ni.pdb",
        ", NativeBuildID=beef",
    ];
    parts[..=version as usize].concat()
}

macro_rules! module {
    ($provider:ident $id:literal $name:literal) => {
        clr!($provider $id $name, 0..=3, |v, _| module(v), module_fields)
    };
}

fn il_map(version: u32) -> Vec<u8> {
    let entries = &[(-2, 0), (0, 4), (-3, 40)];
    ILMap {
        id: 0x7f01,
        code_version: 5,
        extent: 0,
        entries,
        clr: 9,
        il_version: 6,
    }
    .encode(version)
}

fn il_map_fields(version: u32) -> String {
    let base = "MethodID=0x7f01, ReJITID=0x5, MethodExtent=0, CountOfMapEntries=3, ILOffsets=[-2, 0, -3], \
                NativeOffsets=[0, 4, 40], ClrInstanceID=9";
    format!(
        "{base}{}",
        if version > 0 { ", ILVersionID=0x6" } else { "" }
    )
}

macro_rules! il_map {
    ($provider:ident $id:literal $name:literal) => {
        clr!($provider $id $name, 0..=1, |v, _| il_map(v), il_map_fields)
    };
}

macro_rules! domain_module {
    ($provider:ident $id:literal $name:literal) => {
        clr!(
            $provider $id $name, 0..=1,
            |v, _| payload::domain_module(v, 1, 2, 3, 8, ("a.dll", "a.ni.dll"), 9),
            |v| {
                let clr = if v > 0 { ", ClrInstanceID=9" } else { "" };
                format!("ModuleID=0x1, AssemblyID=0x2, AppDomainID=0x3, ModuleFlags=0x8, Reserved1=0, \
                         ModuleILPath=a.dll, ModuleNativePath=a.ni.dll{clr}")
            }
        )
    };
}

macro_rules! assembly {
    ($provider:ident $id:literal $name:literal) => {
        clr!(
            $provider $id $name, 0..=1,
            |v, _| payload::assembly(v, 1, 2, 3, 8, "A, Version=1.0", 9),
            |v| if v == 0 {
                "AssemblyID=0x1, AppDomainID=0x2, AssemblyFlags=0x8, FullyQualifiedAssemblyName=A, Version=1.0".into()
            } else {
                "AssemblyID=0x1, AppDomainID=0x2, BindingID=0x3, AssemblyFlags=0x8, \
                 FullyQualifiedAssemblyName=A, Version=1.0, ClrInstanceID=9".into()
            }
        )
    };
}

macro_rules! app_domain {
    ($provider:ident $id:literal $name:literal) => {
        clr!(
            $provider $id $name, 0..=1,
            |v, _| payload::app_domain(v, 1, 2, "main", 3, 9),
            |v| {
                let more = if v > 0 { ", AppDomainIndex=3, ClrInstanceID=9" } else { "" };
                format!("AppDomainID=0x1, AppDomainFlags=0x2, AppDomainName=main{more}")
            }
        )
    };
}

macro_rules! module_range {
    ($provider:ident $id:literal $name:literal) => {
        clr!(
            $provider $id $name, 0..=0,
            |_, _| payload::module_range(9, 1, 0x20, 3, 4, None),
            |_| "ClrInstanceID=9, ModuleID=0x1, RangeBegin=0x20, RangeSize=3, RangeType=4".into()
        )
    };
}

macro_rules! marker {
    ($provider:ident $id:literal $name:literal) => {
        clr!(
            $provider $id $name, 0..=1,
            |v, _| payload::Payload::new().when(v > 0, |p| p.u16(9)).finish(),
            |v| if v > 0 { "ClrInstanceID=9".into() } else { String::new() }
        )
    };
}

macro_rules! runtime_information {
    ($provider:ident $id:literal $name:literal) => {
        clr!(
            $provider $id $name, 0..=0,
            |_, _| payload::runtime_information(9, 2, [10, 0, 12, 1], "app x", "/r/libcoreclr.so"),
            |_| "ClrInstanceID=9, Sku=2, BclMajorVersion=10, BclMinorVersion=0, BclBuildNumber=12, BclQfeNumber=1, \
                 VMMajorVersion=10, VMMinorVersion=0, VMBuildNumber=12, VMQfeNumber=1, StartupFlags=0x11, StartupMode=1, \
                 CommandLine=app x, ComObjectGuid=5a5a5a5a-5a5a-5a5a-5a5a-5a5a5a5a5a5a, RuntimeDllPath=/r/libcoreclr.so".into()
        )
    };
}

macro_rules! stack_walk {
    ($provider:ident $id:literal) => {
        clr!(
            $provider $id "ClrStackWalk", 0..=0,
            |_, width| payload::clr_stack_walk(9, width, &[0x1111, 0x2222]),
            |_| "ClrInstanceID=9, Reserved1=0, Reserved2=0, FrameCount=2, Stack=[0x1111, 0x2222]".into()
        )
    };
}

macro_rules! code_symbols {
    ($provider:ident $id:literal $name:literal) => {
        clr!(
            $provider $id $name, 0..=0,
            |_, _| payload::code_symbols(1, 2, 1, b"\xbe\xef", 9),
            |_| "ModuleId=0x1, TotalChunks=2, ChunkNumber=1, ChunkLength=2, Chunk=beef, ClrInstanceID=9".into()
        )
    };
}

macro_rules! simple {
    ($provider:ident $id:literal $name:literal, $write:expr, $fields:literal) => {
        clr!($provider $id $name, 0..=0, |_, _| $write(payload::Payload::new().u16(9)).finish(), |_| $fields.into())
    };
}

/// The nine names of inlining and tail call events.
fn nine(p: payload::Payload) -> payload::Payload {
    p.names(("A", "b", "c"))
        .names(("D", "e", "f"))
        .names(("G", "h", "i"))
}

const INLINING: &str = "MethodBeingCompiledNamespace=A, MethodBeingCompiledName=b, MethodBeingCompiledNameSignature=c, \
                        InlinerNamespace=D, InlinerName=e, InlinerNameSignature=f, \
                        InlineeNamespace=G, InlineeName=h, InlineeNameSignature=i";
const TAIL_CALL: &str = "MethodBeingCompiledNamespace=A, MethodBeingCompiledName=b, MethodBeingCompiledNameSignature=c, \
                         CallerNamespace=D, CallerName=e, CallerNameSignature=f, \
                         CalleeNamespace=G, CalleeName=h, CalleeNameSignature=i";

macro_rules! jit {
    ($id:literal $name:literal, $write:expr, $names:ident, $fields:literal) => {
        clr!(
            Runtime $id $name, 0..=0,
            |_, _| $write(nine(payload::Payload::new())).u16(9).finish(),
            |_| format!("{}, {}, ClrInstanceID=9", $names, $fields).replace(", ,", ",")
        )
    };
}

pub fn cases() -> Vec<Case> {
    use chronosym_support::payload::Payload as P;
    let mut cases = vec![
        method!(Runtime 137 "MethodDCStartV2"),
        method!(Runtime 138 "MethodDCEndV2"),
        method!(Runtime 139 "MethodDCStartVerboseV2" verbose),
        method!(Runtime 140 "MethodDCEndVerboseV2" verbose),
        method!(Runtime 141 "MethodLoad"),
        method!(Runtime 142 "MethodUnload"),
        method!(Runtime 143 "MethodLoadVerbose" verbose),
        method!(Runtime 144 "MethodUnloadVerbose" verbose),
        method!(NativeRuntime 143 "MethodLoadVerbose" verbose),
        method!(Rundown 141 "MethodDCStart"),
        method!(Rundown 142 "MethodDCEnd"),
        method!(Rundown 143 "MethodDCStartVerbose" verbose),
        method!(Rundown 144 "MethodDCEndVerbose" verbose),
        module!(Runtime 149 "ModuleDCStartV2"),
        module!(Runtime 150 "ModuleDCEndV2"),
        module!(Runtime 152 "ModuleLoad"),
        module!(Runtime 153 "ModuleUnload"),
        module!(Rundown 153 "ModuleDCStart"),
        module!(Rundown 154 "ModuleDCEnd"),
        il_map!(Runtime 190 "MethodILToNativeMap"),
        il_map!(Rundown 149 "MethodDCStartILToNativeMap"),
        il_map!(Rundown 150 "MethodDCEndILToNativeMap"),
        domain_module!(Runtime 151 "DomainModuleLoad"),
        domain_module!(Rundown 151 "DomainModuleDCStart"),
        domain_module!(Rundown 152 "DomainModuleDCEnd"),
        assembly!(Runtime 154 "AssemblyLoad"),
        assembly!(Runtime 155 "AssemblyUnload"),
        assembly!(Rundown 155 "AssemblyDCStart"),
        assembly!(Rundown 156 "AssemblyDCEnd"),
        app_domain!(Runtime 156 "AppDomainLoad"),
        app_domain!(Runtime 157 "AppDomainUnload"),
        app_domain!(Rundown 157 "AppDomainDCStart"),
        app_domain!(Rundown 158 "AppDomainDCEnd"),
        module_range!(Runtime 158 "ModuleRangeLoad"),
        module_range!(Rundown 160 "ModuleRangeDCStart"),
        module_range!(Rundown 161 "ModuleRangeDCEnd"),
        marker!(Runtime 135 "DCStartCompleteV2"),
        marker!(Runtime 136 "DCEndCompleteV2"),
        marker!(Rundown 145 "DCStartComplete"),
        marker!(Rundown 146 "DCEndComplete"),
        marker!(Rundown 147 "DCStartInit"),
        marker!(Rundown 148 "DCEndInit"),
        runtime_information!(Runtime 187 "RuntimeInformationStart"),
        runtime_information!(Rundown 187 "RuntimeInformationDCStart"),
        stack_walk!(Runtime 82),
        stack_walk!(Rundown 0),
        stack_walk!(Private 151),
        code_symbols!(Runtime 260 "CodeSymbols"),
        code_symbols!(Rundown 188 "CodeSymbolsDCStart"),
    ];
    cases.extend([
        clr!(
            Private 158 "ModuleRangeLoadPrivate", 0..=0,
            |_, _| payload::module_range(9, 1, 0x20, 3, 4, Some((5, 6))),
            |_| "ClrInstanceID=9, ModuleID=0x1, RangeBegin=0x20, RangeSize=3, RangeType=4, IBCType=5, VirtualSectionType=6".into()
        ),
        clr!(
            Rundown 159 "ThreadDC", 0..=0,
            |_, _| P::new().u64(1).u64(2).u32(4).u32(5).u32(6).u16(9).finish(),
            |_| "ManagedThreadID=0x1, AppDomainID=0x2, Flags=0x4, ManagedThreadIndex=5, OSThreadID=6, ClrInstanceID=9".into()
        ),
        clr!(
            Runtime 145 "MethodJittingStarted", 0..=1,
            |v, _| payload::jitting_started(v, 1, 2, 0x0600_0001, 33, NAMES, 9),
            |v| {
                let clr = if v > 0 { ", ClrInstanceID=9" } else { "" };
                format!("MethodID=0x1, ModuleID=0x2, MethodToken=0x6000001, MethodILSize=33, \
                         MethodNameSpace=N.T, MethodName=M, MethodSignature=void (){clr}")
            }
        ),
        clr!(
            Runtime 146 "MemoryAllocatedForJitCode", 0..=0,
            |_, _| P::new().u64(1).u64(2).u64(3).u64(4).u64(5).u32(6).u16(9).finish(),
            |_| "MethodID=0x1, ModuleID=0x2, JitHotCodeRequestSize=3, JitRODataRequestSize=4, \
                 AllocatedSizeForJitCode=5, JitAllocFlag=0x6, ClrInstanceID=9".into()
        ),
        clr!(
            Runtime 159 "R2RGetEntryPoint", 0..=0,
            |_, _| payload::r2r_entry_point(1, NAMES, 0x7fff, 9),
            |_| "MethodID=0x1, MethodNamespace=N.T, MethodName=M, MethodSignature=void (), EntryPoint=0x7fff, ClrInstanceID=9".into()
        ),
        clr!(
            Runtime 160 "R2RGetEntryPointStart", 0..=0,
            |_, _| payload::r2r_entry_point_start(1, 9),
            |_| "MethodID=0x1, ClrInstanceID=9".into()
        ),
        clr!(
            Runtime 88 "ILStubGenerated", 0..=0,
            |_, _| payload::il_stub_generated(9, 1, 2, 0x40, 0x0600_0004, TARGET, ("unmanaged", "stub", "ldarg.0")),
            |_| "ClrInstanceID=9, ModuleID=0x1, StubMethodID=0x2, StubFlags=0x40, ManagedInteropMethodToken=0x6000004, \
                 ManagedInteropMethodNamespace=I.T, ManagedInteropMethodName=P, ManagedInteropMethodSignature=int32 (int32), \
                 NativeMethodSignature=unmanaged, StubMethodSignature=stub, StubMethodILCode=ldarg.0".into()
        ),
        clr!(
            Runtime 89 "ILStubCacheHit", 0..=0,
            |_, _| payload::il_stub_cache_hit(9, 1, 2, 0x0600_0004, TARGET),
            |_| "ClrInstanceID=9, ModuleID=0x1, StubMethodID=0x2, ManagedInteropMethodToken=0x6000004, \
                 ManagedInteropMethodNamespace=I.T, ManagedInteropMethodName=P, ManagedInteropMethodSignature=int32 (int32)".into()
        ),
        clr!(
            Runtime 72 "MethodDetails", 0..=0,
            |_, _| payload::method_details(1, 2, 0x0600_0004, 5, &[0x66, 0x77]),
            |_| "MethodID=0x1, TypeID=0x2, MethodToken=0x6000004, TypeParameterCount=2, LoaderModuleID=0x5, \
                 TypeParameters=[0x66, 0x77]".into()
        ),
        clr!(
            Runtime 15 "BulkType", 0..=0,
            |_, _| payload::bulk_type(9, &[(1, 2, "A", &[]), (3, 4, "B`1", &[1])]),
            |_| "Count=2, ClrInstanceID=9, Values=[\
                 {TypeID=0x1, ModuleID=0x2, TypeNameID=0x2000001, Flags=0x8, CorElementType=0x12, Name=A, TypeParameterCount=0, TypeParameters=[]}, \
                 {TypeID=0x3, ModuleID=0x4, TypeNameID=0x2000001, Flags=0x8, CorElementType=0x12, Name=B`1, TypeParameterCount=1, TypeParameters=[0x1]}]".into()
        ),
        clr!(
            Private 189 "JittedMethodRichDebugInfo", 0..=0,
            |_, _| payload::rich_debug_info(9, 1, 2, b"\xbe\xef", 2).remove(0),
            |_| "ClrInstanceID=9, MethodID=0x1, ReJITID=0x2, ILVersionID=0x1, ChunkIndex=0x80000000, ChunkLength=2, Data=beef".into()
        ),
        clr!(SampleProfiler 0 "ThreadSample", 0..=0, |_, _| payload::thread_sample(2), |_| "Type=Managed".into()),
        clr!(
            EventPipe 1 "ProcessInfo", 0..=1,
            |v, _| P::new().wide("app x").when(v > 0, |p| p.wide("Linux").wide("x64")).finish(),
            |v| {
                let more = if v > 0 { ", OSInformation=Linux, ArchInformation=x64" } else { "" };
                format!("CommandLine=app x{more}")
            }
        ),
        simple!(Runtime 280 "TieredCompilationSettings", |p: P| p.u32(3), "ClrInstanceID=9, Flags=0x3"),
        simple!(Rundown 280 "TieredCompilationSettingsDCStart", |p: P| p.u32(3), "ClrInstanceID=9, Flags=0x3"),
        simple!(Runtime 281 "TieredCompilationPause", |p: P| p, "ClrInstanceID=9"),
        simple!(Runtime 282 "TieredCompilationResume", |p: P| p.u32(7), "ClrInstanceID=9, NewMethodCount=7"),
        simple!(Runtime 283 "TieredCompilationBackgroundJitStart", |p: P| p.u32(7), "ClrInstanceID=9, PendingMethodCount=7"),
        simple!(
            Runtime 284 "TieredCompilationBackgroundJitStop", |p: P| p.u32(7).u32(8),
            "ClrInstanceID=9, PendingMethodCount=7, JittedMethodCount=8"
        ),
        simple!(Runtime 300 "ExecutionCheckpoint", |p: P| p.wide("main").u64(5), "ClrInstanceID=9, Name=main, Timestamp=5"),
        simple!(Rundown 300 "ExecutionCheckpointDCEnd", |p: P| p.wide("main").u64(5), "ClrInstanceID=9, Name=main, Timestamp=5"),
        jit!(185 "MethodJitInliningSucceeded", |p: P| p, INLINING, ""),
        jit!(186 "MethodJitInliningFailedAnsi", |p: P| p.u32(1).narrow("big"), INLINING, "FailAlways=true, FailReason=big"),
        jit!(192 "MethodJitInliningFailed", |p: P| p.u32(0).wide("big"), INLINING, "FailAlways=false, FailReason=big"),
        jit!(188 "MethodJitTailCallSucceeded", |p: P| p.u32(1).u32(2), TAIL_CALL, "TailPrefix=true, TailCallType=2"),
        jit!(189 "MethodJitTailCallFailedAnsi", |p: P| p.u32(0).narrow("no"), TAIL_CALL, "TailPrefix=false, FailReason=no"),
        jit!(191 "MethodJitTailCallFailed", |p: P| p.u32(0).wide("no"), TAIL_CALL, "TailPrefix=false, FailReason=no"),
    ]);
    cases
}
