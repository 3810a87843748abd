//! Records of the kernel: what happened.

use crate::bytes::Words;
use crate::callchain::Callchain;
use crate::raw::CpuMode;
use crate::sample::Sample;

/// One record, with what borrows from the reader until the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record<'a> {
    /// Number of the record's type, as the kernel counts them.
    pub kind: u32,
    /// ns on the clock of [`EventAttr::clock_id`](crate::EventAttr::clock_id). `None` if the record has no time, or describes what was there before
    /// the recording began.
    pub time_ns: Option<u64>,
    /// Process that was running.
    pub pid: Option<u32>,
    /// Thread that was running.
    pub tid: Option<u32>,
    /// Processor.
    pub cpu: Option<u32>,
    /// Position of the event in [`Reader::attrs`](crate::Reader::attrs).
    pub attr: Option<usize>,
    /// What the processor ran in; of mappings, whose they are.
    pub cpu_mode: CpuMode,
    /// What happened.
    pub event: Event<'a>,
}

/// What a record says. Names are bytes as the kernel has them, paths not being text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant)] // One at a time, on the stack.
pub enum Event<'a> {
    /// A sample was taken.
    Sample(Sample<'a>),
    /// A file or memory was mapped. It replaces what stood there; nothing says when a mapping goes.
    Mmap(Mmap<'a>),
    /// A thread has a name now.
    Comm(Comm<'a>),
    /// A thread or process began; a process has all mappings and the name of the one that it came from.
    Fork(Task),
    /// A thread ended; the process goes on while it has others.
    Exit(Task),
    /// The kernel had no room for so many records since the one before of the same buffer.
    Lost {
        /// Records missing.
        records: u64,
    },
    /// The kernel had no room for so many samples.
    LostSamples {
        /// Samples missing.
        samples: u64,
        /// A filter left them out: nothing is missing.
        filtered: bool,
    },
    /// Sampling of a counter paused, too many events having come, or goes on.
    Throttle {
        /// It goes on.
        ended: bool,
    },
    /// The namespaces of a thread.
    Namespaces {
        /// Process.
        pid: u32,
        /// Device and inode of each: net, uts, ipc, pid, user, mnt, cgroup.
        links: Words<'a>,
    },
    /// Code of the kernel that was made at run time came or went.
    KernelSymbol(KernelSymbol<'a>),
    /// Frames of user space that earlier samples of the thread left for later.
    DeferredCallchain {
        /// As in [`ChainPart::deferred`](crate::ChainPart::deferred).
        cookie: u64,
        /// The frames.
        callchain: Callchain<'a>,
    },
    /// Data of a hardware trace was written.
    Aux {
        /// 1 truncated, 2 overwritten, 4 with gaps, 8 collided.
        flags: u64,
    },
    /// Something else, or a record that cannot be what it claims: its bytes without header and trailer.
    Other(&'a [u8]),
}

/// Memory that was mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mmap<'a> {
    /// Process; `u32::MAX` is the kernel.
    pub pid: u32,
    /// First address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// Offset in the file, in bytes; of the kernel, the address of the symbol that it is named after. Without meaning
    /// for `//anon`.
    pub file_offset: u64,
    /// The file, if the record tells it.
    pub file: Option<MappedFile>,
    /// Build id of the file, if the record tells it.
    pub build_id: Option<BuildId>,
    /// No code: mapped without the right to run.
    pub is_data: bool,
    /// The path, or `//anon`, `[vdso]`, `[kernel.kallsyms]_text` and the like.
    pub name: &'a [u8],
}

/// Identity of a mapped file as the kernel has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MappedFile {
    /// Major number of the device.
    pub major: u32,
    /// Minor number of the device.
    pub minor: u32,
    /// Inode.
    pub inode: u64,
}

/// Build id of an ELF file: at most 20 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct BuildId {
    bytes: [u8; 20],
    length: u8,
}

impl BuildId {
    /// Of the first `length` of the bytes; `None` if there are none.
    pub(crate) fn new(bytes: &[u8; 20], length: usize) -> Option<Self> {
        let length = u8::try_from(length).unwrap_or(u8::MAX).min(20);
        let mut bytes = *bytes;
        bytes.get_mut(length.into()..)?.fill(0);
        (length > 0).then_some(Self { bytes, length })
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length.into()).unwrap_or_default()
    }
}

impl std::fmt::Debug for BuildId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (self.as_bytes().iter()).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The name of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Comm<'a> {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// It runs another program from now on: all mappings are gone.
    pub is_exec: bool,
    /// At most 15 bytes, any but NUL.
    pub name: &'a [u8],
}

/// A thread that begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Task {
    /// Process.
    pub pid: u32,
    /// Process that began it; `pid` itself if only a thread begins.
    pub parent_pid: u32,
    /// Thread.
    pub tid: u32,
    /// Thread that began it.
    pub parent_tid: u32,
}

/// Code of the kernel with a name and a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelSymbol<'a> {
    /// First address.
    pub address: u64,
    /// Bytes.
    pub size: u32,
    /// It is gone.
    pub is_unregistered: bool,
    /// Its name.
    pub name: &'a [u8],
}
