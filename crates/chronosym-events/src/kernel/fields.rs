//! Fields of kernel events that have no typed decoder, as Microsoft publishes their classes (`wmicore.mof`).

use std::sync::Arc;

use super::names::classes::{
    DISK_IO, EVENT_TRACE, FILE_IO, IMAGE, IMAGE_ID, PAGE_FAULT, PERF_INFO, PROCESS, REGISTRY,
    SYS_CONFIG, SYSTEM_CONFIG, TCP_IP, THREAD, UDP_IP,
};
use crate::published::Type::{
    self, Ansi, Bytes, Guid as Id, Hex16, Hex32, Hex64, I8, I32, Ipv4, Ipv6, Many, Pointer, Port,
    Since, Text, U8, U16, U32, U64, Utf16,
};
use crate::published::{Fields, newest};
use crate::{Field, Guid};

/// The published fields of an event without a typed decoder. A version newer than those known has those of the newest.
pub(crate) fn fields_only(class: Guid, opcode: u8, version: u16) -> Option<Arc<[Field]>> {
    let rows = ROWS
        .iter()
        .filter(|row| row.0 == class && row.1.contains(&opcode));
    newest(rows.map(|row| (row.2, row.3)), version.into())
}

/// Class, opcodes, first version with these fields, fields.
#[rustfmt::skip]
static ROWS: &[(Guid, &[u8], u32, Fields)] = &[
    // Its pointers are as wide as the record says, whatever PointerSize says.
    (EVENT_TRACE, &[0], 0, &[("BufferSize", U32), ("Version", Hex32), ("ProviderVersion", U32), ("NumberOfProcessors", U32),
        ("EndTime", U64), ("TimerResolution", U32), ("MaxFileSize", U32), ("LogFileMode", Hex32), ("BuffersWritten", U32),
        ("StartBuffers", U32), ("PointerSize", U32), ("EventsLost", U32), ("CPUSpeed", U32), ("LoggerName", Pointer),
        ("LogFileName", Pointer), ("Bias", I32), ("TimeZoneInformation", Bytes(172)), ("BootTime", U64), ("PerfFreq", U64),
        ("StartTime", U64), ("ReservedFlags", U32), ("BuffersLost", U32), ("SessionNameString", Utf16), ("LogFileNameString", Utf16)]),
    (EVENT_TRACE, &[5, 32], 2, &[("GroupMask1", Hex32), ("GroupMask2", Hex32), ("GroupMask3", Hex32), ("GroupMask4", Hex32),
        ("GroupMask5", Hex32), ("GroupMask6", Hex32), ("GroupMask7", Hex32), ("GroupMask8", Hex32), ("KernelEventVersion", U32)]),
    (PROCESS, &[11], 2, &[("ProcessId", U32)]),
    (PROCESS, &[32, 33], 2, &[("ProcessId", U32), ("PageFaultCount", U32), ("HandleCount", U32), ("Reserved", U32),
        ("PeakVirtualSize", Pointer), ("PeakWorkingSetSize", Pointer), ("PeakPagefileUsage", Pointer), ("QuotaPeakPagedPoolUsage", Pointer),
        ("QuotaPeakNonPagedPoolUsage", Pointer), ("VirtualSize", Pointer), ("WorkingSetSize", Pointer), ("PagefileUsage", Pointer),
        ("QuotaPagedPoolUsage", Pointer), ("QuotaNonPagedPoolUsage", Pointer), ("PrivatePageCount", Pointer)]),
    (THREAD, &[50], 0, &[("TThreadId", U32), ("AdjustReason", I8), ("AdjustIncrement", I8), ("Flag", I8), ("Reserved", I8)]),
    (IMAGE, &[33, 34], 0, &[("ImageBase", Pointer)]),
    (IMAGE_ID, &[32, 40], 0, &[("ImageBase", Pointer), ("ProcessId", U32)]),
    (IMAGE_ID, &[38], 0, &[("ImageBase", Pointer), ("ProcessId", U32), ("TimeDateStamp", Hex32), ("MajorVersion", U16),
        ("MinorVersion", Hex16)]),
    (IMAGE_ID, &[64], 0, &[("ImageSize", U32), ("TimeDateStamp", Hex32), ("OrigFileName", Utf16), ("FileDescription", Utf16),
        ("FileVersion", Utf16), ("BinFileVersion", Utf16), ("VerLanguage", Utf16), ("ProductName", Utf16), ("CompanyName", Utf16),
        ("ProductVersion", Utf16), ("FileId", Utf16), ("ProgramId", Utf16)]),
    (SYS_CONFIG, &[32], 0, &[("InstallDate", U64), ("BuildLab", Utf16), ("ProductName", Utf16)]),
    (SYS_CONFIG, &[34], 0, &[("NtPath", Utf16)]),
    (DISK_IO, &[10, 11], 2, &[("DiskNumber", U32), ("IrpFlags", Hex32), ("TransferSize", U32), ("Reserved", U32), ("ByteOffset", U64),
        ("FileObject", Pointer), ("Irp", Pointer), ("HighResResponseTime", U64), ISSUER]),
    (DISK_IO, &[12, 13, 15], 2, &[("Irp", Pointer), ISSUER]),
    (DISK_IO, &[14], 2, &[("DiskNumber", U32), ("IrpFlags", Hex32), ("HighResResponseTime", U64), ("Irp", Pointer), ISSUER]),
    (PAGE_FAULT, &[10, 11, 12, 13, 14, 15], 2, &[("VirtualAddress", Pointer), ("ProgramCounter", Pointer)]),
    (PAGE_FAULT, &[32], 2, &[("InitialTime", U64), ("ReadOffset", U64), ("VirtualAddress", Pointer), ("FileObject", Pointer),
        ("TThreadId", U32), ("ByteCount", U32)]),
    (PAGE_FAULT, &[98, 99], 2, &[("BaseAddress", Pointer), ("RegionSize", Pointer), ("ProcessId", U32), ("Flags", Hex32)]),
    (FILE_IO, &[0, 32, 35, 36], 2, &[("FileObject", Pointer), ("FileName", Utf16)]),
    (FILE_IO, &[64], 2, &[("IrpPtr", Pointer), ("TTID", Pointer), ("FileObject", Pointer), ("CreateOptions", Hex32), ("FileAttributes", Hex32),
        ("ShareAccess", Hex32), ("OpenPath", Utf16)]),
    (FILE_IO, &[64], 3, &[("IrpPtr", Pointer), ("FileObject", Pointer), ("TTID", U32), ("CreateOptions", Hex32), ("FileAttributes", Hex32),
        ("ShareAccess", Hex32), ("OpenPath", Utf16)]),
    (FILE_IO, &[65, 66, 73], 2, &[("IrpPtr", Pointer), ("TTID", Pointer), ("FileObject", Pointer), ("FileKey", Pointer)]),
    (FILE_IO, &[65, 66, 73], 3, &[("IrpPtr", Pointer), ("FileObject", Pointer), ("FileKey", Pointer), ("TTID", U32)]),
    (FILE_IO, &[67, 68], 2, &[("Offset", U64), ("IrpPtr", Pointer), ("TTID", Pointer), ("FileObject", Pointer), ("FileKey", Pointer),
        ("IoSize", U32), ("IoFlags", Hex32)]),
    (FILE_IO, &[67, 68], 3, &[("Offset", U64), ("IrpPtr", Pointer), ("FileObject", Pointer), ("FileKey", Pointer), ("TTID", U32),
        ("IoSize", U32), ("IoFlags", Hex32)]),
    (FILE_IO, &[69, 70, 71, 74, 75], 2, &[("IrpPtr", Pointer), ("TTID", Pointer), ("FileObject", Pointer), ("FileKey", Pointer),
        ("ExtraInfo", Pointer), ("InfoClass", U32)]),
    (FILE_IO, &[69, 70, 71, 74, 75], 3, &[("IrpPtr", Pointer), ("FileObject", Pointer), ("FileKey", Pointer), ("ExtraInfo", Pointer),
        ("TTID", U32), ("InfoClass", U32)]),
    (FILE_IO, &[72, 77], 2, &[("IrpPtr", Pointer), ("TTID", Pointer), ("FileObject", Pointer), ("FileKey", Pointer), ("Length", U32),
        ("InfoClass", U32), ("FileIndex", U32), ("FileName", Utf16)]),
    (FILE_IO, &[72, 77], 3, &[("IrpPtr", Pointer), ("FileObject", Pointer), ("FileKey", Pointer), ("TTID", U32), ("Length", U32),
        ("InfoClass", U32), ("FileIndex", U32), ("FileName", Utf16)]),
    (FILE_IO, &[76], 2, &[("IrpPtr", Pointer), ("ExtraInfo", Pointer), ("NtStatus", Hex32)]),
    (TCP_IP, &[10], 2, &[("PID", U32), ("size", U32), ("daddr", Ipv4), ("saddr", Ipv4), ("dport", Port), ("sport", Port), ("startime", U32),
        ("endtime", U32), ("seqnum", U32), ("connid", Pointer)]),
    (TCP_IP, &[11, 13, 14, 16, 18], 2, DATAGRAM_V4),
    (TCP_IP, &[12, 15], 2, &[("PID", U32), ("size", U32), ("daddr", Ipv4), ("saddr", Ipv4), ("dport", Port), ("sport", Port), ("mss", U16),
        ("sackopt", U16), ("tsopt", U16), ("wsopt", U16), ("rcvwin", U32), ("rcvwinscale", U16), ("sndwinscale", U16), ("seqnum", U32),
        ("connid", Pointer)]),
    (TCP_IP, &[26], 2, &[("PID", U32), ("size", U32), ("daddr", Ipv6), ("saddr", Ipv6), ("dport", Port), ("sport", Port), ("startime", U32),
        ("endtime", U32), ("seqnum", U32), ("connid", Pointer)]),
    (TCP_IP, &[27, 29, 30, 32, 34], 2, DATAGRAM_V6),
    (TCP_IP, &[28, 31], 2, &[("PID", U32), ("size", U32), ("daddr", Ipv6), ("saddr", Ipv6), ("dport", Port), ("sport", Port), ("mss", U16),
        ("sackopt", U16), ("tsopt", U16), ("wsopt", U16), ("rcvwin", U32), ("rcvwinscale", U16), ("sndwinscale", U16), ("seqnum", U32),
        ("connid", Pointer)]),
    (TCP_IP, &[17], 2, &[("Proto", U16), ("FailureCode", U16)]),
    (UDP_IP, &[10, 11], 2, DATAGRAM_V4),
    (UDP_IP, &[17], 2, &[("Proto", U16), ("FailureCode", U16)]),
    (UDP_IP, &[26, 27], 2, DATAGRAM_V6),
    (REGISTRY, &[10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27], 2, &[("InitialTime", U64), ("Status", Hex32),
        ("Index", U32), ("KeyHandle", Pointer), ("KeyName", Utf16)]),
    (PERF_INFO, &[51], 2, &[("SysCallAddress", Pointer)]),
    (PERF_INFO, &[52], 2, &[("SysCallNtStatus", Hex32)]),
    (PERF_INFO, &[66, 68, 69], 2, &[("InitialTime", U64), ("Routine", Pointer)]),
    (SYSTEM_CONFIG, &[10], 3, &[("MHz", U32), ("NumberOfProcessors", U32), ("MemSize", U32), ("PageSize", U32), ("AllocationGranularity", U32),
        ("ComputerName", Text(256)), ("DomainName", Text(134)), ("HyperThreadingFlag", Pointer), ("HighestUserAddress", Pointer),
        ("ProcessorArchitecture", U16), ("ProcessorLevel", U16), ("ProcessorRevision", U16), ("PaeEnabled", U8), ("NxEnabled", U8),
        ("MemorySpeed", U32)]),
    (SYSTEM_CONFIG, &[11], 2, &[("DiskNumber", U32), ("BytesPerSector", U32), ("SectorsPerTrack", U32), ("TracksPerCylinder", U32),
        ("Cylinders", U64), ("SCSIPort", U32), ("SCSIPath", U32), ("SCSITarget", U32), ("SCSILun", U32), ("Manufacturer", Text(256)),
        ("PartitionCount", U32), ("WriteCacheEnabled", U8), ("Pad", U8), ("BootDriveLetter", Text(3)), ("Spare", Text(2))]),
    (SYSTEM_CONFIG, &[12], 2, &[("StartOffset", U64), ("PartitionSize", U64), ("DiskNumber", U32), ("Size", U32), ("DriveType", U32),
        ("DriveLetterString", Text(4)), ("Pad1", U32), ("PartitionNumber", U32), ("SectorsPerCluster", U32), ("BytesPerSector", U32),
        ("Pad2", U32), ("NumberOfFreeClusters", U64), ("TotalNumberOfClusters", U64), ("FileSystem", Text(16)), ("VolumeExt", U32),
        ("Pad3", U32)]),
    (SYSTEM_CONFIG, &[13], 2, &[("PhysicalAddr", U64), ("PhysicalAddrLen", U32), ("Ipv4Index", U32), ("Ipv6Index", U32),
        ("NICDescription", Utf16), ("IpAddresses", Utf16), ("DnsServerAddresses", Utf16)]),
    (SYSTEM_CONFIG, &[14], 2, &[("MemorySize", U32), ("XResolution", U32), ("YResolution", U32), ("BitsPerPixel", U32), ("VRefresh", U32),
        ("ChipType", Text(256)), ("DACType", Text(256)), ("AdapterString", Text(256)), ("BiosString", Text(256)), ("DeviceId", Text(256)),
        ("StateFlags", Hex32)]),
    (SYSTEM_CONFIG, &[15], 2, &[("ServiceName", Text(34)), ("DisplayName", Text(256)), ("ProcessName", Text(34)), ("ProcessId", U32)]),
    (SYSTEM_CONFIG, &[15], 3, &[("ProcessId", U32), ("ServiceState", U32), ("SubProcessTag", U32), ("ServiceName", Utf16),
        ("DisplayName", Utf16), ("ProcessName", Utf16), ("LoadOrderGroup", Utf16), ("SvchostGroup", Utf16)]),
    (SYSTEM_CONFIG, &[16], 2, &[("S1", U8), ("S2", U8), ("S3", U8), ("S4", U8), ("S5", U8), ("Pad", Bytes(3))]),
    (SYSTEM_CONFIG, &[17], 2, &[("TcbTablePartitions", U32), ("MaxHashTableSize", U32), ("MaxUserPort", U32), ("TcpTimedWaitDelay", U32)]),
    (SYSTEM_CONFIG, &[18], 2, &[("DiskNumber", U16), ("BusType", U16), ("DeviceType", U16), ("MediaType", U16), ("StartingOffset", U64),
        ("Size", U64), ("NumberOfFreeBlocks", U64), ("TotalNumberOfBlocks", U64), ("NextWritableAddress", U64), ("NumberOfSessions", U32),
        ("NumberOfTracks", U32), ("BytesPerSector", U32), ("DiscStatus", U16), ("LastSessionStatus", U16), ("DriveLetter", Utf16),
        ("FileSystemName", Utf16), ("DeviceName", Ansi), ("ManufacturerName", Ansi)]),
    (SYSTEM_CONFIG, &[21], 2, &[("IRQAffinity", Hex64), ("IRQNum", U32), ("DeviceDescriptionLen", U32), ("DeviceDescription", Utf16)]),
    (SYSTEM_CONFIG, &[21], 3, &[("IRQAffinity", Hex64), ("IRQGroup", U16), ("Reserved", U16), ("IRQNum", U32), ("DeviceDescriptionLen", U32),
        ("DeviceDescription", Utf16)]),
    (SYSTEM_CONFIG, &[22], 2, &[("IDLength", U32), ("DescriptionLength", U32), ("FriendlyNameLength", U32), ("DeviceID", Utf16),
        ("DeviceDescription", Utf16), ("FriendlyName", Utf16)]),
    (SYSTEM_CONFIG, &[22], 3, &[("IDLength", U32), ("DescriptionLength", U32), ("FriendlyNameLength", U32), ("PdoNameLength", U32),
        ("ServiceNameLength", U32), ("DeviceID", Utf16), ("DeviceDescription", Utf16), ("FriendlyName", Utf16), ("PdoName", Utf16),
        ("ServiceName", Utf16)]),
    (SYSTEM_CONFIG, &[22], 4, &[("ClassGuid", Id), ("UpperFiltersCount", U32), ("LowerFiltersCount", U32), ("DeviceID", Utf16),
        ("DeviceDescription", Utf16), ("FriendlyName", Utf16), ("PdoName", Utf16), ("ServiceName", Utf16),
        ("UpperFilters", Many(1, &Utf16)), ("LowerFilters", Many(2, &Utf16))]),
    (SYSTEM_CONFIG, &[22], 5, &[("ClassGuid", Id), ("UpperFiltersCount", U32), ("LowerFiltersCount", U32), ("DevStatus", Hex32),
        ("DevProblem", U32), ("DeviceID", Utf16), ("DeviceDescription", Utf16), ("FriendlyName", Utf16), ("PdoName", Utf16),
        ("ServiceName", Utf16), ("UpperFilters", Many(1, &Utf16)), ("LowerFilters", Many(2, &Utf16))]),
    (SYSTEM_CONFIG, &[23], 2, &[("TargetId", U32), ("DeviceType", U32), ("DeviceTimingMode", U32), ("LocationInformationLen", U32),
        ("LocationInformation", Utf16)]),
    (SYSTEM_CONFIG, &[24], 2, &[("NodeCount", U32), ("NodeMap", Many(0, &Hex64))]),
    (SYSTEM_CONFIG, &[25], 2, &[("SystemManufacturer", Utf16), ("SystemProductName", Utf16), ("BiosDate", Utf16), ("BiosVersion", Utf16)]),
    (SYSTEM_CONFIG, &[28], 2, &[("MachineDPI", U32), ("UserDPI", U32)]),
];

const ISSUER: (&str, Type) = ("IssuingThreadId", Since(3, &U32));
/// What a datagram or a segment says of itself.
#[rustfmt::skip]
const DATAGRAM_V4: Fields = &[("PID", U32), ("size", U32), ("daddr", Ipv4), ("saddr", Ipv4), ("dport", Port), ("sport", Port),
    ("seqnum", U32), ("connid", Pointer)];
#[rustfmt::skip]
const DATAGRAM_V6: Fields = &[("PID", U32), ("size", U32), ("daddr", Ipv6), ("saddr", Ipv6), ("dport", Port), ("sport", Port),
    ("seqnum", U32), ("connid", Pointer)];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::classic;

    #[test]
    fn rows_are_of_events_without_a_decoder_and_sorted_by_version() {
        for (at, (class, opcodes, version, _)) in ROWS.iter().enumerate() {
            for &opcode in *opcodes {
                assert!(classic(*class, opcode).is_none(), "{class}/{opcode}");
                let earlier = ROWS[..at]
                    .iter()
                    .rfind(|row| row.0 == *class && row.1.contains(&opcode));
                assert!(
                    earlier.is_none_or(|row| row.2 < *version),
                    "{class}/{opcode}"
                );
            }
        }
    }
}
