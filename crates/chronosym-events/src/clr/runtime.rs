//! Interop stubs, the runtime's own properties, stacks and samples.

use super::method::MethodNames;
use crate::cursor::{Cursor, Form};
use crate::part::{Part, Style, payload, shape_part};
use crate::value::{FieldList, Value};
use crate::{Action, Addresses, DecodeError, Guid, WStr};

payload! {
    /// An IL stub between managed and native code.
    ILStubGenerated<'a> {
        /// The runtime instance in the process.
        clr_instance_id: u16 = "ClrInstanceID",
        /// The module's id.
        module_id: u64 = "ModuleID" as hex,
        /// The id of the stub's method.
        stub_method_id: u64 = "StubMethodID" as hex,
        /// 1 reverse interop, 2 COM, 4 from a native image, 8 delegate, 0x10 vararg, 0x20 unmanaged
        /// callee, 0x40 struct.
        flags: u32 = "StubFlags" as hex,
        /// The metadata token of the stub's target method.
        target_token: u32 = "ManagedInteropMethodToken" as hex,
        /// The stub's target method.
        target: MethodNames<'a> = "ManagedInteropMethodNamespace",
        /// The native signature.
        native_signature: WStr<'a> = "NativeMethodSignature",
        /// The stub's own signature.
        stub_signature: WStr<'a> = "StubMethodSignature",
        /// The stub's IL as text.
        stub_il: WStr<'a> = "StubMethodILCode",
    }

    /// An existing stub is used for another method.
    ILStubCacheHit<'a> {
        /// The runtime instance in the process.
        clr_instance_id: u16 = "ClrInstanceID",
        /// The module's id.
        module_id: u64 = "ModuleID" as hex,
        /// The id of the stub's method.
        stub_method_id: u64 = "StubMethodID" as hex,
        /// The metadata token of the stub's target method.
        target_token: u32 = "ManagedInteropMethodToken" as hex,
        /// The stub's target method.
        target: MethodNames<'a> = "ManagedInteropMethodNamespace",
    }

    /// A chunk of the PDB of a module that exists in memory only.
    CodeSymbols<'a> {
        /// The module's id.
        module_id: u64 = "ModuleId" as hex,
        /// The number of chunks.
        total_chunks: u16 = "TotalChunks",
        /// The chunk's number from 0.
        chunk_number: u16 = "ChunkNumber",
        /// The chunk's length in bytes.
        length: u32 = "ChunkLength",
        /// The chunk.
        chunk: &'a [u8] = "Chunk" as list(length),
        /// The runtime instance in the process.
        clr_instance_id: u16 = "ClrInstanceID",
    }

    /// The runtime: RuntimeInformationStart, and RuntimeInformationDCStart of the rundown.
    RuntimeInformation<'a> {
        /// Load for the live event.
        action: Action = "",
        /// The runtime instance in the process.
        clr_instance_id: u16 = "ClrInstanceID",
        /// 1 .NET Framework, 2 CoreCLR, 4 Mono.
        sku: u16 = "Sku",
        /// The version of the base class library: the major number.
        bcl_major: u16 = "BclMajorVersion",
        /// Its second number.
        bcl_minor: u16 = "BclMinorVersion",
        /// Its third number.
        bcl_build: u16 = "BclBuildNumber",
        /// Its fourth number.
        bcl_qfe: u16 = "BclQfeNumber",
        /// The version of the runtime: the major number.
        vm_major: u16 = "VMMajorVersion",
        /// Its second number.
        vm_minor: u16 = "VMMinorVersion",
        /// Its third number.
        vm_build: u16 = "VMBuildNumber",
        /// Its fourth number.
        vm_qfe: u16 = "VMQfeNumber",
        /// The startup flags.
        startup_flags: u32 = "StartupFlags" as hex,
        /// 1 managed program, 2 hosted, 4 C++/CLI, 8 COM, 0x10 other.
        startup_mode: u8 = "StartupMode",
        /// The command line of the process.
        command_line: WStr<'a> = "CommandLine",
        /// The GUID of the COM object that started the runtime.
        com_object_guid: Guid = "ComObjectGuid",
        /// The path of the runtime library.
        runtime_dll_path: WStr<'a> = "RuntimeDllPath",
    }

    /// The call stack of the previous runtime event of the thread (ETW only).
    ClrStackWalk<'a> {
        /// The runtime instance in the process.
        clr_instance_id: u16 = "ClrInstanceID",
        /// Always 0.
        reserved1: u8 = "Reserved1",
        /// Always 0.
        reserved2: u8 = "Reserved2",
        /// The number of frames.
        frame_count: u32 = "FrameCount",
        /// The addresses, leaf first.
        frames: Addresses<'a> = "Stack" as list(frame_count),
    }

    /// The rundown starts or ends: DCStartInit, DCStartComplete, DCEndInit, DCEndComplete.
    RundownMarker {
        /// DCStart or DCEnd.
        action: Action = "",
        /// Start or end.
        phase: MarkerPhase = "",
        /// The runtime instance in the process.
        clr_instance_id: u16 = "ClrInstanceID" if since 1,
    }
}

/// The end of a rundown that a marker denotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MarkerPhase {
    /// The rundown starts.
    Init,
    /// The rundown is complete.
    Complete,
}

shape_part! {
    MarkerPhase: shape => match shape.form {
        Form::Init => Self::Init,
        _ => Self::Complete,
    };
}

payload! {
    /// The process, as EventPipe describes it.
    ProcessInfo<'a> {
        /// The command line.
        command_line: WStr<'a> = "CommandLine",
        /// The operating system.
        os: WStr<'a> = "OSInformation" if since 1,
        /// The processor architecture.
        arch: WStr<'a> = "ArchInformation" if since 1,
    }
}

/// The state of a thread in a sample of EventPipe's SampleProfiler, which samples wall-clock time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ThreadSampleType {
    /// The sample failed.
    Error,
    /// Outside managed code: blocked, or in native code.
    External,
    /// In managed code.
    Managed,
    /// An undefined value.
    Unknown(u32),
}

impl<'a> Part<'a> for ThreadSampleType {
    #[inline]
    fn read(c: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        Ok(match c.u32()? {
            0 => Self::Error,
            1 => Self::External,
            2 => Self::Managed,
            other => Self::Unknown(other),
        })
    }

    fn list(&self, _: &'static str, _: Style, out: &mut FieldList<'a>) {
        let text = match self {
            Self::Error => "Error",
            Self::External => "External",
            Self::Managed => "Managed",
            Self::Unknown(n) => return out.push("Type", Value::U64((*n).into())),
        };
        out.push("Type", Value::Text(text.into()));
    }
}
