//! The recorded events of a recording, and which of them a record belongs to.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "places of the words of a sample, of which there are at most 64"
)]

use chronosym_types::ByteOrder;
use chronosym_types::hash::HashMap;

use crate::buffers::Buffers;
use crate::bytes::Cursor;
use crate::kind::{event_type, record};

/// Bits of `sample_type`: which fields a sample has.
pub(crate) mod sample_type {
    pub(crate) const IP: u64 = 1;
    pub(crate) const TID: u64 = 1 << 1;
    pub(crate) const TIME: u64 = 1 << 2;
    pub(crate) const ADDR: u64 = 1 << 3;
    pub(crate) const READ: u64 = 1 << 4;
    pub(crate) const CALLCHAIN: u64 = 1 << 5;
    pub(crate) const ID: u64 = 1 << 6;
    pub(crate) const CPU: u64 = 1 << 7;
    pub(crate) const PERIOD: u64 = 1 << 8;
    pub(crate) const STREAM_ID: u64 = 1 << 9;
    pub(crate) const RAW: u64 = 1 << 10;
    pub(crate) const BRANCH_STACK: u64 = 1 << 11;
    pub(crate) const REGS_USER: u64 = 1 << 12;
    pub(crate) const STACK_USER: u64 = 1 << 13;
    pub(crate) const IDENTIFIER: u64 = 1 << 16;

    /// Fields in the trailer of other records.
    pub(crate) const TRAILER: u64 = TID | TIME | ID | STREAM_ID | CPU | IDENTIFIER;
}

/// Bits of an attribute's flags that request records of processes, mappings or generated code:
/// mmap, comm, task, mmap_data, mmap2, namespaces, ksymbol, bpf_event, text_poke.
const DESCRIPTIONS: u64 =
    1 << 8 | 1 << 9 | 1 << 13 | 1 << 17 | 1 << 23 | 1 << 28 | 1 << 29 | 1 << 30 | 1 << 33;

const FREQUENCY: u64 = 1 << 10;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const USE_CLOCK_ID: u64 = 1 << 25;

/// One recorded event: `perf_event_attr`, its name and its ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventAttr {
    /// `cpu-clock`, `cycles:u`, `sched:sched_switch`: as the recorder names it, or by type and
    /// config if it does not.
    pub name: Option<String>,
    /// Its type, as [`event_type`] numbers them.
    pub kind: u32,
    /// The event within its type.
    pub config: u64,
    /// Events between two samples; `None` if a frequency was requested.
    pub period: Option<u64>,
    /// Requested samples per second.
    pub frequency: Option<u64>,
    /// Bits `PERF_SAMPLE_*`: the fields of a sample.
    pub sample_type: u64,
    /// Bits `PERF_FORMAT_*`: the layout of counter values.
    pub read_format: u64,
    /// The flags of the attribute, `disabled` being bit 0.
    pub flags: u64,
    /// Bits `PERF_SAMPLE_BRANCH_*`.
    pub branch_sample_type: u64,
    /// Bit mask of the user-space registers in a sample.
    pub sample_regs_user: u64,
    /// The clock of all times, as `clock_gettime` numbers it (1 is `CLOCK_MONOTONIC`); `None` is
    /// the kernel's own `sched_clock`, which no other program can read.
    pub clock_id: Option<i32>,
    /// The ids by which records refer to this event.
    pub ids: Vec<u64>,
}

impl EventAttr {
    /// Reads an attribute. Older writers have fewer fields; missing ones are 0. Also returns the
    /// rest of the bytes.
    pub(crate) fn read<'a>(bytes: &'a [u8], order: ByteOrder) -> Option<(Self, Cursor<'a>)> {
        let stated = {
            let mut at = Cursor::new(bytes.get(4..)?, order);
            at.u32()? as usize
        };
        // Size 0 is the first published layout.
        let size = if stated == 0 { 64 } else { stated };
        let (own, rest) = bytes.split_at_checked(size)?;
        let mut at = Cursor::new(own, order);
        let kind = at.u32()?;
        at.u32()?;
        let config = at.u64()?;
        let every = at.u64()?;
        let mut attr = Self {
            name: default_name(kind, config).map(str::to_owned),
            kind,
            config,
            sample_type: at.u64()?,
            read_format: at.u64()?,
            flags: at.u64()?,
            ..Self::default()
        };
        if attr.flags & FREQUENCY == 0 {
            attr.period = Some(every);
        } else {
            attr.frequency = Some(every);
        }
        // Wake-up, breakpoint type, two more words of config.
        at.take(24)?;
        attr.branch_sample_type = at.u64().unwrap_or(0);
        attr.sample_regs_user = at.u64().unwrap_or(0);
        // Bytes of the stack.
        at.u32();
        let clock = at.u32().map(|id| id as i32);
        attr.clock_id = clock.filter(|_| attr.flags & USE_CLOCK_ID != 0);
        Some((attr, Cursor::new(rest, order)))
    }

    /// Returns whether the kernel describes processes, mappings or generated code in records of
    /// this event.
    pub(crate) fn describes_processes(&self) -> bool {
        self.flags & DESCRIPTIONS != 0
    }

    /// Returns whether samples have the field of a bit.
    #[inline]
    pub(crate) fn has(&self, bit: u64) -> bool {
        self.sample_type & bit != 0
    }

    /// Offset in a sample of a field that only 8-byte fields precede.
    fn sample_offset(&self, before: u64) -> usize {
        (self.sample_type & before).count_ones() as usize * 8
    }

    /// Bytes of the trailer of all kernel records except samples.
    pub(crate) fn trailer_size(&self) -> usize {
        if self.flags & SAMPLE_ID_ALL == 0 {
            return 0;
        }
        self.sample_offset(sample_type::TRAILER)
    }

    /// Returns the time of a record, by its body.
    #[inline]
    pub(crate) fn time(&self, record_kind: u32, body: &[u8], order: ByteOrder) -> Option<u64> {
        use sample_type::{IDENTIFIER, IP, TID, TIME};
        let trailer = self.trailer_size();
        let at = match record_kind {
            _ if self.sample_type & TIME == 0 => None,
            record::SAMPLE => Some(self.sample_offset(IDENTIFIER | IP | TID)),
            _ if trailer == 0 => None,
            _ => (body.len().checked_sub(trailer)).map(|start| start + self.sample_offset(TID)),
        };
        let at = at.or(match record_kind {
            record::FORK | record::EXIT => Some(16),
            _ => None,
        })?;
        Cursor::new(body.get(at..)?, order).u64()
    }
}

/// Returns the names of generic events.
fn default_name(kind: u32, config: u64) -> Option<&'static str> {
    let names: &[&str] = match kind {
        event_type::HARDWARE => &[
            "cycles",
            "instructions",
            "cache-references",
            "cache-misses",
            "branches",
            "branch-misses",
            "bus-cycles",
            "stalled-cycles-frontend",
            "stalled-cycles-backend",
            "ref-cycles",
        ],
        event_type::SOFTWARE => &[
            "cpu-clock",
            "task-clock",
            "page-faults",
            "context-switches",
            "cpu-migrations",
            "minor-faults",
            "major-faults",
            "alignment-faults",
            "emulation-faults",
            "dummy",
            "bpf-output",
            "cgroup-switches",
        ],
        _ => &[],
    };
    names.get(usize::try_from(config).ok()?).copied()
}

/// The location of an event's id in a record.
#[derive(Clone, Copy, Default)]
enum IdLocation {
    /// Records have no id.
    #[default]
    None,
    /// First in a sample, last in other records.
    Identifier,
    /// The same position in all samples.
    Field,
    /// Layouts differ and cannot be distinguished.
    Nowhere,
}

/// All events of a recording.
#[derive(Clone, Default)]
pub(crate) struct Attrs {
    list: Vec<EventAttr>,
    by_id: HashMap<u64, usize>,
    id_location: IdLocation,
    pub(crate) buffers: Buffers,
    /// Fields in the samples of all events, and those in the samples of any event.
    in_all: u64,
    in_some: u64,
}

impl Attrs {
    pub(crate) fn all(&self) -> &[EventAttr] {
        &self.list
    }

    pub(crate) fn push(&mut self, attr: EventAttr) {
        for &id in &attr.ids {
            self.by_id.insert(id, self.list.len());
        }
        let own = attr.sample_type;
        if self.list.is_empty() {
            (self.in_all, self.in_some) = (own, own);
        }
        self.in_all &= own;
        self.in_some |= own;
        self.list.push(attr);
        self.id_location = if self.in_all & sample_type::IDENTIFIER != 0 {
            IdLocation::Identifier
        } else if self.in_all != self.in_some {
            IdLocation::Nowhere
        } else if own & sample_type::ID != 0 {
            IdLocation::Field
        } else {
            IdLocation::None
        };
    }

    /// Names the event with one of these ids, or at `index`.
    pub(crate) fn name(&mut self, index: Option<usize>, ids: &[u64], name: String) {
        let index_of_id = ids.iter().find_map(|id| self.by_id.get(id).copied());
        if let Some(attr) = index_of_id.or(index).and_then(|at| self.list.get_mut(at)) {
            attr.name = Some(name);
        }
    }

    /// Returns the event of a record and its index. Records synthesized by the recorder have id 0.
    #[inline]
    pub(crate) fn of(
        &self,
        record_kind: u32,
        body: &[u8],
        order: ByteOrder,
    ) -> Option<(usize, &EventAttr)> {
        let index = self.index_of(record_kind, body, order)?;
        Some((index, self.list.get(index)?))
    }

    #[inline]
    fn index_of(&self, record_kind: u32, body: &[u8], order: ByteOrder) -> Option<usize> {
        let first = self.list.first()?;
        match self.id_location {
            IdLocation::None => return Some(0),
            _ if self.list.len() == 1 => return Some(0),
            IdLocation::Nowhere => return None,
            _ if record_kind != record::SAMPLE && first.trailer_size() == 0 => return Some(0),
            _ => {}
        }
        match self.id_of(record_kind, body, order)? {
            0 => Some(0),
            id => self.by_id.get(&id).copied(),
        }
    }

    /// Returns the id of the event that wrote a record.
    #[inline]
    pub(crate) fn id_of(&self, record_kind: u32, body: &[u8], order: ByteOrder) -> Option<u64> {
        use sample_type::{ADDR, CPU, IDENTIFIER, IP, STREAM_ID, TID, TIME};
        let first = self.list.first()?;
        let is_sample = record_kind == record::SAMPLE;
        let at = match self.id_location {
            IdLocation::None | IdLocation::Nowhere => return None,
            _ if !is_sample && first.trailer_size() == 0 => return None,
            IdLocation::Identifier if is_sample => 0,
            IdLocation::Identifier => body.len().checked_sub(8)?,
            IdLocation::Field if is_sample => {
                first.sample_offset(IDENTIFIER | IP | TID | TIME | ADDR)
            }
            IdLocation::Field => {
                let from_end = first.sample_offset(sample_type::ID | STREAM_ID | CPU | IDENTIFIER);
                body.len().checked_sub(from_end)?
            }
        };
        Cursor::new(body.get(at..)?, order).u64()
    }
}
