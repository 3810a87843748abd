//! The trace's header and the system's configuration.

use crate::WStr;
use crate::part::payload;

payload! {
    /// The header of a trace. Its pointers are as wide as the record says, whatever PointerSize says.
    EventTraceHeader<'a> {
        /// Bytes in a buffer of the session.
        buffer_size: u32 = "BufferSize",
        /// Version of Windows and of the layout, a byte each.
        version: u32 = "Version" as hex,
        /// Build of Windows.
        provider_version: u32 = "ProviderVersion",
        /// Number of processors.
        processors: u32 = "NumberOfProcessors",
        /// When the trace ended (FILETIME, UTC); 0 when it was not closed.
        end_time: u64 = "EndTime",
        /// Resolution of the timer in 100 ns.
        timer_resolution: u32 = "TimerResolution",
        /// Greatest size of the file in MiB.
        max_file_size: u32 = "MaxFileSize",
        /// How the session writes, as bits.
        log_file_mode: u32 = "LogFileMode" as hex,
        /// Buffers in the file; 0 when it was not closed.
        buffers_written: u32 = "BuffersWritten",
        /// How many buffers the header takes.
        start_buffers: u32 = "StartBuffers",
        /// The width of the system's pointers in bytes.
        pointer_size: u32 = "PointerSize",
        /// Events that were lost.
        events_lost: u32 = "EventsLost",
        /// Clock of the processor in MHz.
        cpu_speed: u32 = "CPUSpeed",
        /// Not a pointer that means anything in a file.
        logger_name: u64 = "LoggerName" as ptr,
        /// Not a pointer that means anything in a file.
        log_file_name: u64 = "LogFileName" as ptr,
        /// Minutes that local time is behind UTC.
        bias: i32 = "Bias",
        /// The rest of the time zone.
        time_zone: &'a [u8] = "TimeZoneInformation" as list(172),
        /// When the system started (FILETIME, UTC).
        boot_time: u64 = "BootTime",
        /// Ticks a second of the performance counter.
        perf_freq: u64 = "PerfFreq",
        /// When the trace began (FILETIME, UTC).
        start_time: u64 = "StartTime",
        /// Which clock the records have: 1 performance counter, 2 system time, 3 cycles.
        clock_type: u32 = "ReservedFlags",
        /// Buffers that were lost.
        buffers_lost: u32 = "BuffersLost",
        /// The session's name.
        session_name: Option<WStr<'a>> = "SessionNameString",
        /// The file that was written.
        log_file: Option<WStr<'a>> = "LogFileNameString",
    }
}

payload! {
    /// Which Windows this is.
    BuildInfo<'a> {
        /// When it was installed (FILETIME).
        install_date: u64 = "InstallDate",
        /// The build's full name.
        build_lab: WStr<'a> = "BuildLab",
        /// The product.
        product_name: WStr<'a> = "ProductName",
    }
}

payload! {
    /// Where Windows is installed.
    SystemPaths<'a> {
        /// The system directory.
        system_directory: WStr<'a> = "SystemDirectory",
        /// The Windows directory.
        windows_directory: WStr<'a> = "SystemWindowsDirectory",
    }
}

payload! {
    /// Which drive or folder an NT device path means.
    VolumeMapping<'a> {
        /// The NT path, such as `\Device\HarddiskVolume2`.
        nt_path: WStr<'a> = "NtPath",
        /// The path that programs know.
        dos_path: WStr<'a> = "DosPath",
    }
}

payload! {
    /// A volume without a drive.
    UnknownVolume<'a> {
        /// The NT path.
        nt_path: WStr<'a> = "NtPath",
    }
}
