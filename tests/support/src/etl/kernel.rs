//! Kernel payloads.

use std::io::{self, Write};

use super::{At, EtlWriter, guid, put_pointer, utf16};

const PROCESS: u8 = 0x03;
const THREAD: u8 = 0x05;
const PERF_INFO: u8 = 0x0f;
const IMAGE: u8 = 0x14;
const STACK_WALK: u8 = 0x18;

/// Events that merging adds: identities of images.
const IMAGE_ID: [u8; 16] = guid(0xb3e675d7, 0x2554, 0x4f18, 0x830b_2762732560de);
/// Events that merging adds: the system.
const SYSTEM_CONFIG_EX: [u8; 16] = guid(0x9b79ee91, 0xb5fd, 0x41c0, 0xa243_4248e266e9d0);

/// An action on a process, thread or image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Process or thread start.
    Start,
    /// Process or thread end.
    Stop,
    /// Image load.
    Load,
    /// Image unload.
    Unload,
    /// Was there when the trace began.
    DCStart,
    /// Was there when the trace ended.
    DCStop,
}

impl Op {
    fn opcode(self) -> u8 {
        match self {
            Self::Load => 10,
            Self::Start => 1,
            Self::Stop | Self::Unload => 2,
            Self::DCStart => 3,
            Self::DCStop => 4,
        }
    }
}

/// Payload of a process event (version 4).
#[derive(Clone, Copy, Debug, Default)]
pub struct Process<'a> {
    /// Process id.
    pub pid: u32,
    /// Parent's process id.
    pub parent: u32,
    /// Exit status.
    pub exit_status: i32,
    /// 2: a 32-bit process on a 64-bit system; 4 protected; 8 packaged.
    pub flags: u32,
    /// Binary SID, up to 68 bytes; empty for none.
    pub sid: &'a [u8],
    /// File name of its image.
    pub image: &'a str,
    /// Command line.
    pub command_line: &'a str,
}

/// Payload of an image event (version 3).
#[derive(Clone, Copy, Debug, Default)]
pub struct Image<'a> {
    /// Address of the first byte.
    pub base: u64,
    /// Bytes.
    pub size: u64,
    /// Process; 0 for the kernel's images.
    pub pid: u32,
    /// Checksum in the PE header.
    pub checksum: u32,
    /// TimeDateStamp in the PE header; often 0 in real traces.
    pub timestamp: u32,
    /// Path as the kernel has it.
    pub path: &'a str,
}

/// A call stack that belongs to an event.
#[derive(Clone, Copy, Debug)]
pub struct Stack<'a> {
    /// When that event was logged (only its time counts).
    pub event: At,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Addresses, innermost first.
    pub addresses: &'a [u64],
}

/// The part of a stack that a key identifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackMode {
    /// The kernel's frames.
    Kernel,
    /// The user's frames.
    User,
}

impl<W: Write> EtlWriter<W> {
    /// Builds a payload with `fill`, which gets whether pointers are wide, and passes it to
    /// `write`.
    fn with_payload(
        &mut self,
        fill: impl FnOnce(&mut Vec<u8>, bool),
        write: impl FnOnce(&mut Self, &[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut payload = std::mem::take(&mut self.payload);
        payload.clear();
        fill(&mut payload, self.options.wide);
        let done = write(self, &payload);
        self.payload = payload;
        done
    }

    /// Process event: [`Op::Start`], `Stop`, `DCStart`, `DCStop`.
    pub fn process(&mut self, at: At, op: Op, process: &Process<'_>) -> io::Result<()> {
        let fill = |p: &mut Vec<u8>, wide: bool| {
            put_pointer(p, 0xffff_fa80_0000_0000 | u64::from(process.pid) << 8, wide);
            for word in [process.pid, process.parent, 1, process.exit_status as u32] {
                p.extend_from_slice(&word.to_le_bytes());
            }
            put_pointer(p, 0x18_7000, wide);
            p.extend_from_slice(&process.flags.to_le_bytes());
            if process.sid.is_empty() {
                p.extend_from_slice(&[0; 4]);
            } else {
                // TOKEN_USER: a pointer and attributes, never zero, before the SID.
                put_pointer(p, 0xffff_f8a0_0000_1000, wide);
                put_pointer(p, 0, wide);
                p.extend_from_slice(process.sid);
            }
            p.extend_from_slice(process.image.as_bytes());
            p.push(0);
            p.extend_from_slice(&utf16(process.command_line));
            p.extend_from_slice(&[0; 4]);
        };
        self.with_payload(fill, |w, p| w.system(at, PROCESS, op.opcode(), 4, p))
    }

    /// Thread event: [`Op::Start`], `Stop`, `DCStart`, `DCStop`.
    pub fn thread(&mut self, at: At, op: Op, pid: u32, tid: u32) -> io::Result<()> {
        let fill = |p: &mut Vec<u8>, wide: bool| {
            p.extend_from_slice(&pid.to_le_bytes());
            p.extend_from_slice(&tid.to_le_bytes());
            for _ in 0..7 {
                put_pointer(p, 0x1000, wide);
            }
            p.extend_from_slice(&[0, 0, 0, 0, 8, 5, 2, 0]);
        };
        self.with_payload(fill, |w, p| w.system(at, THREAD, op.opcode(), 3, p))
    }

    /// Image event: [`Op::Load`], `Unload`, `DCStart`, `DCStop`. Loads go into the group of
    /// processes, as the kernel has it.
    pub fn image(&mut self, at: At, op: Op, image: &Image<'_>) -> io::Result<()> {
        let fill = |p: &mut Vec<u8>, wide: bool| {
            put_pointer(p, image.base, wide);
            put_pointer(p, image.size, wide);
            for word in [image.pid, image.checksum, image.timestamp, 0] {
                p.extend_from_slice(&word.to_le_bytes());
            }
            put_pointer(p, image.base, wide);
            p.extend_from_slice(&[0; 16]);
            p.extend_from_slice(&utf16(image.path));
        };
        let group = if op == Op::Load { PROCESS } else { IMAGE };
        self.with_payload(fill, |w, p| w.system(at, group, op.opcode(), 3, p))
    }

    /// ImageID event, which merging adds at the very time of the image event; its process is that
    /// of `at`.
    pub fn image_id(
        &mut self,
        at: At,
        base: u64,
        size: u64,
        timestamp: u32,
        name: &str,
    ) -> io::Result<()> {
        let pid = if at.pid == u32::MAX { 0 } else { at.pid };
        let fill = |p: &mut Vec<u8>, wide: bool| {
            put_pointer(p, base, wide);
            put_pointer(p, size, wide);
            p.extend_from_slice(&pid.to_le_bytes());
            p.extend_from_slice(&timestamp.to_le_bytes());
            p.extend_from_slice(&utf16(name));
        };
        self.with_payload(fill, |w, p| w.classic(at, IMAGE_ID, 0, 2, p))
    }

    /// DbgID_RSDS event: PDB identity of the image at `base`, added at the very time of the image
    /// event.
    pub fn rsds(
        &mut self,
        at: At,
        base: u64,
        pid: u32,
        signature: [u8; 16],
        age: u32,
        pdb: &str,
    ) -> io::Result<()> {
        let fill = |p: &mut Vec<u8>, wide: bool| {
            put_pointer(p, base, wide);
            p.extend_from_slice(&pid.to_le_bytes());
            p.extend_from_slice(&signature);
            p.extend_from_slice(&age.to_le_bytes());
            p.extend_from_slice(pdb.as_bytes());
            p.push(0);
        };
        self.with_payload(fill, |w, p| w.classic(at, IMAGE_ID, 36, 2, p))
    }

    /// Writes a VolumeMapping event: a device path's prefix, and its replacement.
    pub fn volume_mapping(&mut self, at: At, nt: &str, dos: &str) -> io::Result<()> {
        let fill = |p: &mut Vec<u8>, _: bool| {
            p.extend_from_slice(&utf16(nt));
            p.extend_from_slice(&utf16(dos));
        };
        self.with_payload(fill, |w, p| w.classic(at, SYSTEM_CONFIG_EX, 35, 0, p))
    }

    /// CPU sample of a thread, taken outside DPCs and interrupts.
    pub fn sample(&mut self, at: At, ip: u64, tid: u32) -> io::Result<()> {
        self.sample_with(at, ip, tid, 0)
    }

    /// CPU sample; flags 1: in a DPC, 2: in an interrupt.
    pub fn sample_with(&mut self, at: At, ip: u64, tid: u32, flags: u8) -> io::Result<()> {
        let fill = |p: &mut Vec<u8>, wide: bool| {
            put_pointer(p, ip, wide);
            p.extend_from_slice(&tid.to_le_bytes());
            p.extend_from_slice(&[1, 0, flags, 0]);
        };
        self.with_payload(fill, |w, p| w.perfinfo(at, PERF_INFO, 46, 2, p))
    }

    /// Writes the sampling interval in 100 ns units, at the start of sampling (opcode 73) or when
    /// it changes (72).
    pub fn sample_interval(&mut self, at: At, opcode: u8, new: u32, old: u32) -> io::Result<()> {
        let fill = |p: &mut Vec<u8>, _: bool| {
            for word in [0, new, old] {
                p.extend_from_slice(&word.to_le_bytes());
            }
            p.extend_from_slice(&utf16("Timer"));
        };
        self.with_payload(fill, |w, p| w.perfinfo(at, PERF_INFO, opcode, 3, p))
    }

    /// StackWalk event with the addresses in it.
    pub fn stack(&mut self, at: At, stack: &Stack<'_>) -> io::Result<()> {
        let event = self.raw(stack.event.ns);
        let fill = |p: &mut Vec<u8>, wide: bool| {
            put_stack_owner(p, event, stack.pid, stack.tid);
            for address in stack.addresses {
                put_pointer(p, *address, wide);
            }
        };
        self.with_payload(fill, |w, p| w.perfinfo(at, STACK_WALK, 32, 2, p))
    }

    /// StackWalk event that names a stack by its key: a definition follows later.
    pub fn stack_key(
        &mut self,
        at: At,
        mode: StackMode,
        event: At,
        pid: u32,
        tid: u32,
        key: u64,
    ) -> io::Result<()> {
        let event = self.raw(event.ns);
        let fill = |p: &mut Vec<u8>, wide: bool| {
            put_stack_owner(p, event, pid, tid);
            put_pointer(p, key, wide);
        };
        let opcode = if mode == StackMode::Kernel { 37 } else { 38 };
        self.with_payload(fill, |w, p| w.perfinfo(at, STACK_WALK, opcode, 2, p))
    }

    /// Writes the definition of a stack key: opcode 35 when the key is released, 36 at the end of
    /// the session, 34 when it is created.
    pub fn stack_definition(
        &mut self,
        at: At,
        opcode: u8,
        key: u64,
        addresses: &[u64],
    ) -> io::Result<()> {
        let fill = |p: &mut Vec<u8>, wide: bool| {
            put_pointer(p, key, wide);
            for address in addresses {
                put_pointer(p, *address, wide);
            }
        };
        self.with_payload(fill, |w, p| w.perfinfo(at, STACK_WALK, opcode, 2, p))
    }

    /// Context switch; the old thread waits.
    pub fn cswitch(&mut self, at: At, new_tid: u32, old_tid: u32) -> io::Result<()> {
        self.cswitch_from(at, new_tid, old_tid, 5)
    }

    /// Context switch; the old thread is in this state.
    pub fn cswitch_from(
        &mut self,
        at: At,
        new_tid: u32,
        old_tid: u32,
        state: u8,
    ) -> io::Result<()> {
        let fill = |p: &mut Vec<u8>, _: bool| {
            p.extend_from_slice(&new_tid.to_le_bytes());
            p.extend_from_slice(&old_tid.to_le_bytes());
            p.extend_from_slice(&[8, 8, 0, 0, 6, 1, state, 0]);
            p.extend_from_slice(&[0; 8]);
        };
        self.with_payload(fill, |w, p| w.perfinfo(at, THREAD, 36, 2, p))
    }

    /// Writes that a thread becomes runnable.
    pub fn ready_thread(&mut self, at: At, tid: u32) -> io::Result<()> {
        let fill = |p: &mut Vec<u8>, _: bool| {
            p.extend_from_slice(&tid.to_le_bytes());
            p.extend_from_slice(&[1, 0, 0, 0]);
        };
        self.with_payload(fill, |w, p| w.perfinfo(at, THREAD, 50, 2, p))
    }
}

fn put_stack_owner(p: &mut Vec<u8>, event: i64, pid: u32, tid: u32) {
    p.extend_from_slice(&event.to_le_bytes());
    p.extend_from_slice(&pid.to_le_bytes());
    p.extend_from_slice(&tid.to_le_bytes());
}
