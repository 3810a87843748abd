use chronosym_events::EventKey;
use chronosym_events::kernel::classes::*;
use chronosym_support::payload::Payload;
use chronosym_support::payload::kernel::{self, Image, Process};

use super::Case;

macro_rules! kernel {
    ($class:ident $opcode:literal $name:literal, $versions:expr, $encode:expr, $fields:expr) => {
        kernel!($class $opcode $name, $versions, $encode, $fields, |_, _| Vec::new())
    };
    ($class:ident $opcode:literal $name:literal, $versions:expr, $encode:expr, $fields:expr, $may_end:expr) => {
        Case {
            key: |version| EventKey::Classic { class: $class, opcode: $opcode, version: version as u16 },
            name: $name,
            versions: $versions,
            encode: $encode,
            fields: $fields,
            may_end: $may_end,
        }
    };
}

const SID: &[u8] = &[1, 2, 0, 0, 0, 0, 0, 5, 0x20, 0, 0, 0, 0x20, 2, 0, 0];

fn process(version: u32, width: usize) -> Vec<u8> {
    Process {
        key: 0xffff_a000,
        id: 7,
        parent: 4,
        session: 1,
        exit: 259,
        table: 0x1000,
        flags: 2,
        sid: SID,
        image: "app.exe",
        command_line: "app x",
        package: ("pkg", "id"),
    }
    .encode(version, width)
}

fn process_fields(version: u32) -> String {
    let mut text =
        "UniqueProcessKey=0xffffa000, ProcessId=7, ParentId=4, SessionId=1, ExitStatus=259"
            .to_owned();
    if version >= 3 {
        text += ", DirectoryTableBase=0x1000";
    }
    if version >= 4 {
        text += ", Flags=0x2";
    }
    text += ", UserSID=S-1-5-32-544, ImageFileName=app.exe";
    if version >= 2 {
        text += ", CommandLine=app x";
    }
    if version >= 4 {
        text += ", PackageFullName=pkg, ApplicationId=id";
    }
    text
}

macro_rules! process {
    ($opcode:literal $name:literal) => {
        kernel!(PROCESS $opcode $name, 1..=5, process, process_fields)
    };
}

fn thread_fields(version: u32) -> String {
    let mut text = "ProcessId=7, TThreadId=8".to_owned();
    if version >= 2 {
        text += ", StackBase=0x1000, StackLimit=0x2000, UserStackBase=0x3000, UserStackLimit=0x4000, \
                 Affinity=0x5000, Win32StartAddr=0x6000, TebBase=0x7000, SubProcessTag=81";
    }
    if version >= 3 {
        text += ", Priorities=0x1020508, ThreadName=worker";
    }
    text
}

macro_rules! thread {
    ($opcode:literal $name:literal) => {
        kernel!(
            THREAD $opcode $name, 1..=3,
            |v, w| kernel::thread(v, w, 7, 8, (v >= 3).then_some("worker")),
            thread_fields,
            // The name was added without a new version.
            |v, w| if v >= 3 { vec![kernel::thread(v, w, 7, 8, None).len()] } else { Vec::new() }
        )
    };
}

fn image(version: u32, width: usize) -> Vec<u8> {
    Image {
        base: 0x7ff0_0000,
        size: 0x2000,
        pid: 7,
        checksum: 0xabc,
        stamp: 0xdef,
        default_base: 0x40_0000,
        file: r"\D\a.dll",
    }
    .encode(version, width)
}

fn image_fields(version: u32) -> String {
    let mut text = "ImageBase=0x7ff00000, ImageSize=0x2000".to_owned();
    if version >= 1 {
        text += ", ProcessId=7";
    }
    if version >= 2 {
        let (level, kind) = if version >= 3 { (6, 3) } else { (0, 0) };
        text += &format!(
            ", ImageChecksum=0xabc, TimeDateStamp=0xdef, SignatureLevel={level}, SignatureType={kind}, Reserved0=0, \
             DefaultBase=0x400000, Reserved1=00000000000000000000000000000000"
        );
    }
    text + r", FileName=\D\a.dll"
}

macro_rules! image {
    ($opcode:literal $name:literal) => {
        kernel!(IMAGE $opcode $name, 0..=4, image, image_fields)
    };
}

macro_rules! base {
    ($opcode:literal $name:literal) => {
        kernel!(IMAGE $opcode $name, 2..=2, |_, w| Payload::new().pointer(w, 0xf000_1000).finish(), |_| "ImageBase=0xf0001000".into())
    };
}

macro_rules! interval {
    ($opcode:literal $name:literal) => {
        kernel!(
            PERF_INFO $opcode $name, 3..=3,
            |_, _| Payload::new().u32(0).u32(10_000).u32(20_000).wide("Timer").finish(),
            |_| "Source=0, NewInterval=10000, OldInterval=20000, SourceName=Timer".into(),
            |_, _| vec![12]
        )
    };
}

macro_rules! definition {
    ($opcode:literal $name:literal) => {
        kernel!(
            STACK_WALK $opcode $name, 2..=2,
            |_, w| kernel::stack_definition(w, 0xaa, &[0x1111, 0x2222]),
            |_| "StackKey=0xaa, Stack=[0x1111, 0x2222]".into(),
            |_, w| (w..3 * w).collect()
        )
    };
}

macro_rules! reference {
    ($opcode:literal $name:literal) => {
        kernel!(
            STACK_WALK $opcode $name, 2..=2,
            |_, w| kernel::stack_key(w, 99, 7, 8, 0xaa),
            |_| "EventTimeStamp=99, StackProcess=7, StackThread=8, StackKey=0xaa".into()
        )
    };
}

macro_rules! rsds {
    ($opcode:literal $name:literal) => {
        kernel!(
            IMAGE_ID $opcode $name, 2..=2,
            |_, w| kernel::rsds(w, 0x1000, 7, [0x22; 16], 3, "C:\\ü.pdb"),
            |_| "ImageBase=0x1000, ProcessId=7, GuidSig=22222222-2222-2222-2222-222222222222, Age=3, PdbFileName=C:\\ü.pdb".into()
        )
    };
}

macro_rules! base_and_pid {
    ($opcode:literal $name:literal) => {
        kernel!(
            IMAGE_ID $opcode $name, 2..=2,
            |_, w| Payload::new().pointer(w, 0x1000).u32(7).finish(),
            |_| "ImageBase=0x1000, ProcessId=7".into()
        )
    };
}

pub fn cases() -> Vec<Case> {
    vec![
        process!(1 "Process/Start"),
        process!(2 "Process/Stop"),
        process!(3 "Process/DCStart"),
        process!(4 "Process/DCStop"),
        kernel!(
            PROCESS 39 "Process/Defunct", 5..=5,
            |v, w| Payload::new().bytes(&process(v, w)).u64(77).finish(),
            |v| process_fields(v) + ", ExitTime=77"
        ),
        thread!(1 "Thread/Start"),
        thread!(2 "Thread/Stop"),
        thread!(3 "Thread/DCStart"),
        thread!(4 "Thread/DCStop"),
        kernel!(
            THREAD 36 "Thread/CSwitch", 2..=4, |_, _| kernel::cswitch(7, 8),
            |_| "NewThreadId=7, OldThreadId=8, NewThreadPriority=8, OldThreadPriority=9, PreviousCState=1, SpareByte=0, \
                 OldThreadWaitReason=15, OldThreadWaitMode=1, OldThreadState=5, OldThreadWaitIdealProcessor=-1, \
                 NewThreadWaitTime=77, Reserved=0".into(),
            |_, _| vec![20]
        ),
        kernel!(
            THREAD 50 "Thread/ReadyThread", 2..=2,
            |_, _| Payload::new().u32(7).u8(1).u8(0xff).u8(2).u8(0).finish(),
            |_| "TThreadId=7, AdjustReason=1, AdjustIncrement=-1, Flag=2, Reserved=0".into()
        ),
        kernel!(
            THREAD 72 "Thread/SetName", 2..=2,
            |_, _| Payload::new().u32(7).u32(8).wide("worker").finish(),
            |_| "ProcessId=7, ThreadId=8, ThreadName=worker".into()
        ),
        image!(10 "Image/Load"),
        image!(2 "Image/Unload"),
        image!(3 "Image/DCStart"),
        image!(4 "Image/DCStop"),
        base!(33 "Image/KernelBase"),
        base!(34 "Image/HypercallPage"),
        kernel!(
            PERF_INFO 46 "PerfInfo/Sample", 2..=2,
            |_, w| kernel::sampled_profile(w, 0x7fff, 8, 1, 0x41, 2),
            |_| "InstructionPointer=0x7fff, ThreadId=8, Count=1, Flags=0x41, Rank=2".into()
        ),
        kernel!(
            PERF_INFO 47 "PerfInfo/PMCSample", 2..=2,
            |_, w| Payload::new().pointer(w, 0x7fff).u32(8).u16(3).u16(0).finish(),
            |_| "InstructionPointer=0x7fff, ThreadId=8, ProfileSource=3, Reserved=0".into()
        ),
        interval!(72 "PerfInfo/SetInterval"),
        interval!(73 "PerfInfo/CollectionStart"),
        interval!(74 "PerfInfo/CollectionEnd"),
        kernel!(
            STACK_WALK 32 "StackWalk/Stack", 2..=2,
            |_, w| kernel::stack_walk(w, 99, 7, 8, &[0x1111, 0x2222]),
            |_| "EventTimeStamp=99, StackProcess=7, StackThread=8, Stack=[0x1111, 0x2222]".into(),
            |_, w| (16..16 + 2 * w).collect()
        ),
        definition!(34 "StackWalk/KeyCreate"),
        definition!(35 "StackWalk/KeyDelete"),
        definition!(36 "StackWalk/KeyRundown"),
        reference!(37 "StackWalk/StackKeyKernel"),
        reference!(38 "StackWalk/StackKeyUser"),
        kernel!(
            IMAGE_ID 0 "ImageID", 2..=2,
            |_, w| kernel::image_id(w, 0x1000, 0x2000, 0, 0xdef, "a.dll"),
            |_| "ImageBase=0x1000, ImageSize=0x2000, ProcessId=0, TimeDateStamp=0xdef, OriginalFileName=a.dll".into()
        ),
        base_and_pid!(32 "ImageID/None"),
        rsds!(36 "ImageID/DbgID_RSDS"),
        rsds!(37 "ImageID/DbgID_ILRSDS"),
        kernel!(
            IMAGE_ID 38 "ImageID/DbgPPDB", 2..=2,
            |_, w| Payload::new().pointer(w, 0x1000).u32(7).u32(0xdef).u16(256).u16(0x504d).finish(),
            |_| "ImageBase=0x1000, ProcessId=7, TimeDateStamp=0xdef, MajorVersion=256, MinorVersion=0x504d".into()
        ),
        base_and_pid!(40 "ImageID/DbgDeterm"),
        kernel!(
            IMAGE_ID 64 "ImageID/FileVersion", 2..=2,
            |_, _| ["o", "d", "f", "b", "v", "p", "c", "w", "i", "g"]
                .iter()
                .fold(Payload::new().u32(0x2000).u32(0xdef), |p, t| p.wide(t))
                .finish(),
            |_| "ImageSize=8192, TimeDateStamp=0xdef, OrigFileName=o, FileDescription=d, FileVersion=f, BinFileVersion=b, \
                 VerLanguage=v, ProductName=p, CompanyName=c, ProductVersion=w, FileId=i, ProgramId=g".into(),
            |_, _| vec![8 + 8 * 4, 8 + 9 * 4]
        ),
        kernel!(
            SYS_CONFIG 32 "SysConfig/BuildInfo", 2..=2,
            |_, _| Payload::new().u64(5).wide("9200.x").wide("Windows 8").finish(),
            |_| "InstallDate=5, BuildLab=9200.x, ProductName=Windows 8".into()
        ),
        kernel!(
            SYS_CONFIG 33 "SysConfig/SystemPaths", 2..=2,
            |_, _| Payload::new().wide("C:\\W\\s").wide("C:\\W").finish(),
            |_| "SystemDirectory=C:\\W\\s, SystemWindowsDirectory=C:\\W".into()
        ),
        kernel!(
            SYS_CONFIG 34 "SysConfig/UnknownVolume", 2..=2, |_, _| Payload::new().wide("\\D\\V").finish(), |_| "NtPath=\\D\\V".into()
        ),
        kernel!(
            SYS_CONFIG 35 "SysConfig/VolumeMapping", 2..=2,
            |_, _| Payload::new().wide("\\D\\V").wide("C:\\").finish(),
            |_| "NtPath=\\D\\V, DosPath=C:\\".into()
        ),
        kernel!(
            EVENT_TRACE 0 "EventTrace", 2..=2,
            |_, w| kernel::header(w, 10_000_000, "session", "a.etl"),
            |_| format!(
                "BufferSize=65536, Version=0x501000a, ProviderVersion=19045, NumberOfProcessors=8, EndTime=1111, \
                 TimerResolution=156250, MaxFileSize=500, LogFileMode=0x10000, BuffersWritten=12, StartBuffers=1, PointerSize=8, \
                 EventsLost=3, CPUSpeed=3592, LoggerName=0x0, LogFileName=0x0, Bias=-60, TimeZoneInformation={}00000000, \
                 BootTime=2222, PerfFreq=10000000, StartTime=3333, ReservedFlags=1, BuffersLost=4, SessionNameString=session, \
                 LogFileNameString=a.etl",
                "07".repeat(168)
            ),
            |_, w| vec![264 + 2 * w, 264 + 2 * w + 16]
        ),
        Case {
            key: |version| EventKey::Manifest {
                provider: chronosym_events::Provider::EventTracing,
                id: 18,
                version,
            },
            name: "StackWalk/UserStack",
            versions: 0..=0,
            encode: |_, _| vec![0xbe, 0xef],
            fields: |_| "Data=beef".into(),
            may_end: |_, _| vec![0, 1],
        },
    ]
}
