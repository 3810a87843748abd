//! Payloads of classic kernel events and of those that merging adds, for both pointer widths (4 or
//! 8).

use super::Payload;

/// A process event: key, id, parent, session, exit status, page table, flags, image name, command
/// line, package, application.
#[derive(Clone, Copy, Debug, Default)]
pub struct Process<'a> {
    /// UniqueProcessKey.
    pub key: u64,
    /// ProcessId.
    pub id: u32,
    /// ParentId.
    pub parent: u32,
    /// SessionId.
    pub session: u32,
    /// ExitStatus.
    pub exit: i32,
    /// DirectoryTableBase.
    pub table: u64,
    /// Flags.
    pub flags: u32,
    /// The SID's own bytes; none writes four zero bytes.
    pub sid: &'a [u8],
    /// ImageFileName.
    pub image: &'a str,
    /// CommandLine.
    pub command_line: &'a str,
    /// PackageFullName and ApplicationId.
    pub package: (&'a str, &'a str),
}

impl Process<'_> {
    /// The payload of this version.
    #[must_use]
    pub fn encode(&self, version: u32, width: usize) -> Vec<u8> {
        let sid = |p: Payload| match self.sid {
            [] => p.u32(0),
            sid => p.pointer(width, 0xffff_a001).pointer(width, 0).bytes(sid),
        };
        let p = Payload::new()
            .pointer(width, self.key)
            .u32(self.id)
            .u32(self.parent)
            .u32(self.session)
            .u32(self.exit as u32)
            .when(version >= 3, |p| p.pointer(width, self.table))
            .when(version >= 4, |p| p.u32(self.flags));
        sid(p)
            .narrow(self.image)
            .when(version >= 2, |p| p.wide(self.command_line))
            .when(version >= 4, |p| {
                p.wide(self.package.0).wide(self.package.1)
            })
            .finish()
    }
}

/// A thread event; `name` is what newer systems append to version 3.
#[must_use]
pub fn thread(version: u32, width: usize, pid: u32, tid: u32, name: Option<&str>) -> Vec<u8> {
    let places = |p: Payload| {
        (1..=7)
            .fold(p, |p, n| p.pointer(width, 0x1000 * n))
            .u32(0x51)
    };
    let p = Payload::new()
        .u32(pid)
        .u32(tid)
        .when(version >= 2, places)
        .when(version >= 3, |p| p.u32(0x0102_0508));
    match name {
        Some(name) => p.wide(name).finish(),
        None => p.finish(),
    }
}

/// An image event.
#[derive(Clone, Copy, Debug, Default)]
pub struct Image<'a> {
    /// ImageBase.
    pub base: u64,
    /// ImageSize.
    pub size: u64,
    /// ProcessId.
    pub pid: u32,
    /// ImageChecksum.
    pub checksum: u32,
    /// TimeDateStamp.
    pub stamp: u32,
    /// DefaultBase.
    pub default_base: u64,
    /// FileName.
    pub file: &'a str,
}

impl Image<'_> {
    /// The payload of this version.
    #[must_use]
    pub fn encode(&self, version: u32, width: usize) -> Vec<u8> {
        let p = Payload::new().pointer(width, self.base);
        let p = if version == 0 {
            p.u32(self.size as u32)
        } else {
            p.pointer(width, self.size).u32(self.pid)
        };
        p.when(version >= 2, |p| {
            let p = p.u32(self.checksum).u32(self.stamp);
            let p = if version >= 3 {
                p.u8(6).u8(3).u16(0)
            } else {
                p.u32(0)
            };
            p.pointer(width, self.default_base)
                .u32(0)
                .u32(0)
                .u32(0)
                .u32(0)
        })
        .wide(self.file)
        .finish()
    }
}

/// KernelTraceControl ImageID.
#[must_use]
pub fn image_id(width: usize, base: u64, size: u64, pid: u32, stamp: u32, name: &str) -> Vec<u8> {
    Payload::new()
        .pointer(width, base)
        .pointer(width, size)
        .u32(pid)
        .u32(stamp)
        .wide(name)
        .finish()
}

/// DbgID_RSDS and DbgID_ILRSDS.
#[must_use]
pub fn rsds(width: usize, base: u64, pid: u32, guid: [u8; 16], age: u32, path: &str) -> Vec<u8> {
    Payload::new()
        .pointer(width, base)
        .u32(pid)
        .bytes(&guid)
        .u32(age)
        .narrow(path)
        .finish()
}

/// PerfInfo SampledProfile.
#[must_use]
pub fn sampled_profile(
    width: usize,
    ip: u64,
    tid: u32,
    count: u16,
    flags: u8,
    rank: u8,
) -> Vec<u8> {
    Payload::new()
        .pointer(width, ip)
        .u32(tid)
        .u16(count)
        .u8(flags)
        .u8(rank)
        .finish()
}

/// StackWalk Stack.
#[must_use]
pub fn stack_walk(width: usize, time: u64, pid: u32, tid: u32, frames: &[u64]) -> Vec<u8> {
    let p = Payload::new().u64(time).u32(pid).u32(tid);
    frames.iter().fold(p, |p, a| p.pointer(width, *a)).finish()
}

/// StackWalk StackKeyKernel and StackKeyUser.
#[must_use]
pub fn stack_key(width: usize, time: u64, pid: u32, tid: u32, key: u64) -> Vec<u8> {
    Payload::new()
        .u64(time)
        .u32(pid)
        .u32(tid)
        .pointer(width, key)
        .finish()
}

/// StackWalk KeyCreate, KeyDelete and KeyRundown.
#[must_use]
pub fn stack_definition(width: usize, key: u64, frames: &[u64]) -> Vec<u8> {
    let p = Payload::new().pointer(width, key);
    frames.iter().fold(p, |p, a| p.pointer(width, *a)).finish()
}

/// Thread CSwitch.
#[must_use]
pub fn cswitch(new_tid: u32, old_tid: u32) -> Vec<u8> {
    let p = Payload::new().u32(new_tid).u32(old_tid).u8(8).u8(9);
    p.u8(1)
        .u8(0)
        .u8(15)
        .u8(1)
        .u8(5)
        .u8(0xff)
        .u32(77)
        .u32(0)
        .finish()
}

/// The header of a trace: `frequency` ticks a second, session and file name.
#[must_use]
pub fn header(width: usize, frequency: u64, session: &str, file: &str) -> Vec<u8> {
    let p = Payload::new()
        .u32(65536)
        .bytes(&[10, 0, 1, 5])
        .u32(19045)
        .u32(8)
        .u64(1111);
    let p = p
        .u32(156_250)
        .u32(500)
        .u32(0x0001_0000)
        .u32(12)
        .u32(1)
        .u32(8)
        .u32(3)
        .u32(3592);
    let p = p
        .pointer(width, 0)
        .pointer(width, 0)
        .u32(-60i32 as u32)
        .bytes(&[7; 168])
        .u32(0);
    p.u64(2222)
        .u64(frequency)
        .u64(3333)
        .u32(1)
        .u32(4)
        .wide(session)
        .wide(file)
        .finish()
}
