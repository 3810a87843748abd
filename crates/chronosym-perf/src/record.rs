//! Records of the kernel: what happened.

use crate::attr::{EventAttr, sample_type as bit};
use crate::bytes::{ByteOrder, Cursor, Words, until_nul};
use crate::callchain::Callchain;
use crate::sample::{Sample, counters};

/// Numbers of records, those of the recorder itself from 64 up.
pub(crate) mod kind {
    pub(crate) const EXIT: u32 = 4;
    pub(crate) const FORK: u32 = 7;
    pub(crate) const SAMPLE: u32 = 9;
    pub(crate) const LAST_KNOWN: u32 = 22;
    pub(crate) const FIRST_OWN: u32 = 64;
}

/// Bits of a record header's `misc`, whose meaning depends on the record.
pub(crate) mod misc {
    pub(crate) const CUT_MAPS: u16 = 1 << 12;
    pub(crate) const DATA_EXEC_OUT: u16 = 1 << 13;
    pub(crate) const EXACT_IP: u16 = 1 << 14;
    pub(crate) const BUILD_ID: u16 = 1 << 14;
    pub(crate) const PREEMPTED: u16 = 1 << 14;
}

/// What a processor ran in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CpuMode {
    /// Not stated.
    #[default]
    Unknown,
    /// The kernel.
    Kernel,
    /// A program.
    User,
    /// The hypervisor.
    Hypervisor,
    /// The kernel of a guest: its addresses are another machine's.
    GuestKernel,
    /// A program of a guest: its addresses are another machine's.
    GuestUser,
}

impl CpuMode {
    pub(crate) fn of(flags: u16) -> Self {
        match flags & 7 {
            1 => Self::Kernel,
            2 => Self::User,
            3 => Self::Hypervisor,
            4 => Self::GuestKernel,
            5 => Self::GuestUser,
            _ => Self::Unknown,
        }
    }
}

/// One record, with what borrows from the reader until the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record<'a> {
    /// Number of the record's type, as the kernel counts them.
    pub kind: u32,
    /// ns on the clock of [`EventAttr::clock_id`]. `None` if the record has no time, or describes what was there before
    /// the recording began.
    pub time_ns: Option<u64>,
    /// Process that was running.
    pub pid: Option<u32>,
    /// Thread that was running.
    pub tid: Option<u32>,
    /// Processor.
    pub cpu: Option<u32>,
    /// The counter, as in [`EventAttr::ids`].
    pub id: Option<u64>,
    /// The counter itself, where `id` stands for its group.
    pub stream_id: Option<u64>,
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
        /// The counter.
        id: u64,
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
        /// The counter's group.
        id: u64,
        /// The counter.
        stream_id: u64,
    },
    /// Values of a thread's counters at its end, laid out as [`Sample::counters`].
    Counters(Words<'a>),
    /// The thread of the record began or stopped running.
    Switch {
        /// It stopped.
        out: bool,
        /// It stopped though it could have gone on.
        preempted: bool,
        /// Process and thread that ran before, or run next.
        other: Option<(u32, u32)>,
    },
    /// The namespaces of a thread.
    Namespaces {
        /// Process.
        pid: u32,
        /// Thread.
        tid: u32,
        /// Device and inode of each: net, uts, ipc, pid, user, mnt, cgroup.
        links: Words<'a>,
    },
    /// Code of the kernel that was made at run time came or went.
    KernelSymbol(KernelSymbol<'a>),
    /// An eBPF program was loaded or unloaded.
    Bpf {
        /// It was unloaded.
        unloaded: bool,
        /// Id of the program.
        id: u32,
        /// Hash of its instructions.
        tag: &'a [u8],
    },
    /// A control group has a path.
    Cgroup {
        /// Id of the group.
        id: u64,
        /// Its path.
        path: &'a [u8],
    },
    /// The kernel changed its own code.
    TextPoke {
        /// Where.
        address: u64,
        /// What stood there.
        old: &'a [u8],
        /// What stands there now.
        new: &'a [u8],
    },
    /// Frames of user space that earlier samples of the thread left for later.
    DeferredCallchain {
        /// As in [`ChainPart::deferred`](crate::ChainPart::deferred).
        cookie: u64,
        /// The frames.
        callchain: Callchain<'a>,
    },
    /// Data of a hardware trace was written.
    Aux {
        /// Where it begins in the trace.
        offset: u64,
        /// Bytes.
        size: u64,
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
    /// Thread that asked for it.
    pub tid: u32,
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
    /// `PROT_*`; `None` in records of old kernels.
    pub protection: Option<u32>,
    /// `MAP_*`; `None` in records of old kernels.
    pub flags: Option<u32>,
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
    /// Generation of the inode.
    pub generation: u64,
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
    /// 1 an eBPF program, 2 code out of line.
    pub kind: u16,
    /// It is gone.
    pub is_unregistered: bool,
    /// Its name.
    pub name: &'a [u8],
}

/// A record still in bytes.
#[derive(Clone, Copy)]
pub(crate) struct RawRecord<'a> {
    pub(crate) kind: u32,
    pub(crate) flags: u16,
    pub(crate) body: &'a [u8],
    pub(crate) order: ByteOrder,
}

impl<'a> RawRecord<'a> {
    pub(crate) const HEADER: usize = 8;

    /// From a whole record, header included.
    pub(crate) fn new(bytes: &'a [u8], order: ByteOrder) -> Option<Self> {
        let mut at = Cursor::new(bytes, order);
        let (kind, flags, _) = (at.u32()?, at.u16()?, at.u16()?);
        Some(Self {
            kind,
            flags,
            body: at.rest(),
            order,
        })
    }

    /// The size that the header at the front of `bytes` states.
    pub(crate) fn size(bytes: &[u8], order: ByteOrder) -> Option<usize> {
        Cursor::new(bytes.get(6..)?, order).u16().map(usize::from)
    }

    /// Decodes it as a record of the event `attr`; false if its content does not fit.
    #[inline]
    pub(crate) fn decode(&self, attr: Option<(usize, &EventAttr)>) -> (Record<'a>, bool) {
        let mut record = Record {
            kind: self.kind,
            time_ns: None,
            pid: None,
            tid: None,
            cpu: None,
            id: None,
            stream_id: None,
            attr: attr.map(|(index, _)| index),
            cpu_mode: CpuMode::of(self.flags),
            event: Event::Other(self.body),
        };
        let time = attr.and_then(|(_, attr)| attr.time(self.kind, self.body, self.order));
        record.time_ns = time.filter(|&time| time != 0);
        let at = Cursor::new(self.body, self.order);
        if let (kind::SAMPLE, Some((_, attr))) = (self.kind, attr) {
            let mut sample = Sample::default();
            let whole = sample.read(at, attr, self.flags, &mut record);
            record.event = Event::Sample(sample);
            return (record, whole);
        }
        let trailer = attr.map_or(0, |(_, attr)| attr.trailer_size());
        let Some(body) = self.body.len().checked_sub(trailer) else {
            return (record, false);
        };
        let (body, trailer) = self.body.split_at(body);
        if let Some((_, attr)) = attr.filter(|_| !trailer.is_empty()) {
            read_trailer(Cursor::new(trailer, self.order), attr, &mut record);
        }
        record.event = Event::Other(body);
        let read_format = attr.map_or(0, |(_, attr)| attr.read_format);
        match self.event(Cursor::new(body, self.order), read_format) {
            Some(event) => {
                record.event = event;
                (record, true)
            }
            None => (record, false),
        }
    }

    fn event(&self, mut at: Cursor<'a>, read_format: u64) -> Option<Event<'a>> {
        let flag = |bit| self.flags & bit != 0;
        Some(match self.kind {
            1 | 10 => Event::Mmap(self.mmap(at)?),
            2 => Event::Lost {
                id: at.u64()?,
                records: at.u64()?,
            },
            3 => Event::Comm(Comm {
                pid: at.u32()?,
                tid: at.u32()?,
                is_exec: flag(misc::DATA_EXEC_OUT),
                name: at.text(),
            }),
            kind::EXIT | kind::FORK => {
                let task = Task {
                    pid: at.u32()?,
                    parent_pid: at.u32()?,
                    tid: at.u32()?,
                    parent_tid: at.u32()?,
                };
                let variant = if self.kind == kind::FORK {
                    Event::Fork
                } else {
                    Event::Exit
                };
                variant(task)
            }
            5 | 6 => {
                at.u64()?;
                Event::Throttle {
                    ended: self.kind == 6,
                    id: at.u64()?,
                    stream_id: at.u64()?,
                }
            }
            8 => {
                at.u64()?;
                Event::Counters(counters(&mut at, read_format)?)
            }
            11 => Event::Aux {
                offset: at.u64()?,
                size: at.u64()?,
                flags: at.u64()?,
            },
            13 => Event::LostSamples {
                samples: at.u64()?,
                filtered: flag(1 << 15),
            },
            14 | 15 => Event::Switch {
                out: flag(misc::DATA_EXEC_OUT),
                preempted: flag(misc::PREEMPTED),
                other: match self.kind {
                    14 => None,
                    _ => Some((at.u32()?, at.u32()?)),
                },
            },
            16 => {
                let (pid, tid, count) = (at.u32()?, at.u32()?, at.u64()?);
                let links = at.words(count.checked_mul(2)?)?;
                Event::Namespaces { pid, tid, links }
            }
            17 => Event::KernelSymbol(KernelSymbol {
                address: at.u64()?,
                size: at.u32()?,
                kind: at.u16()?,
                is_unregistered: at.u16()? & 1 != 0,
                name: at.text(),
            }),
            18 => {
                let (what, _, id) = (at.u16()?, at.u16()?, at.u32()?);
                let (unloaded, tag) = (what == 2, at.take(8)?);
                Event::Bpf { unloaded, id, tag }
            }
            19 => Event::Cgroup {
                id: at.u64()?,
                path: at.text(),
            },
            20 => {
                let (address, old, new) = (at.u64()?, at.u16()?, at.u16()?);
                Event::TextPoke {
                    address,
                    old: at.take(old.into())?,
                    new: at.take(new.into())?,
                }
            }
            22 => {
                let (cookie, count) = (at.u64()?, at.u64()?);
                let callchain = Callchain {
                    words: at.words(count)?,
                    mode: CpuMode::User,
                };
                Event::DeferredCallchain { cookie, callchain }
            }
            _ => Event::Other(at.rest()),
        })
    }

    fn mmap(&self, mut at: Cursor<'a>) -> Option<Mmap<'a>> {
        let mut mmap = Mmap {
            pid: at.u32()?,
            tid: at.u32()?,
            address: at.u64()?,
            size: at.u64()?,
            file_offset: at.u64()?,
            file: None,
            build_id: None,
            protection: None,
            flags: None,
            is_data: self.flags & misc::DATA_EXEC_OUT != 0,
            name: &[],
        };
        if self.kind == 10 {
            let mut identity = Cursor::new(at.take(24)?, self.order);
            if self.flags & misc::BUILD_ID != 0 {
                let (&[length, ..], id) = identity.rest().split_first_chunk::<4>()?;
                mmap.build_id = BuildId::new(id.first_chunk()?, length.into());
            } else {
                mmap.file = Some(MappedFile {
                    major: identity.u32()?,
                    minor: identity.u32()?,
                    inode: identity.u64()?,
                    generation: identity.u64()?,
                });
            }
            mmap.protection = Some(at.u32()?);
            mmap.flags = Some(at.u32()?);
        }
        mmap.name = until_nul(at.rest());
        Some(mmap)
    }
}

/// Who was running when a record was written.
fn read_trailer(mut at: Cursor<'_>, attr: &EventAttr, record: &mut Record<'_>) -> Option<()> {
    let has = |bit| attr.sample_type & bit != 0;
    if has(bit::TID) {
        (record.pid, record.tid) = (Some(at.u32()?), Some(at.u32()?));
    }
    at.u64_if(has(bit::TIME))?;
    record.id = at.u64_if(has(bit::ID))?;
    record.stream_id = at.u64_if(has(bit::STREAM_ID))?;
    if has(bit::CPU) {
        record.cpu = Some(at.u32()?);
        at.u32()?;
    }
    record.id = at.u64_if(has(bit::IDENTIFIER))?.or(record.id);
    Some(())
}
