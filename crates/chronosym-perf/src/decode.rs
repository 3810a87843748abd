//! From the bytes of a record to what it says.

use crate::attr::{EventAttr, sample_type as bit};
use crate::bytes::{Cursor, Words, until_nul};
use crate::callchain::Callchain;
use crate::raw::{CpuMode, RawRecord, kind, misc};
use crate::record::{BuildId, Comm, Event, KernelSymbol, MappedFile, Mmap, Record, Task};
use crate::sample::{Registers, Sample};

impl<'a> RawRecord<'a> {
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
            let mut sample = Sample {
                is_exact: self.flags & misc::EXACT_IP != 0,
                ..Sample::default()
            };
            let whole = read_sample(at, attr, &mut sample, &mut record).is_some();
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

/// The thread that a record is of, where its fields begin.
fn read_thread(at: &mut Cursor<'_>, attr: &EventAttr, record: &mut Record<'_>) -> Option<()> {
    if attr.has(bit::TID) {
        (record.pid, record.tid) = (Some(at.u32()?), Some(at.u32()?));
    }
    at.u64_if(attr.has(bit::TIME)).map(drop)
}

/// The counter and the processor that a record is of.
fn read_origin(at: &mut Cursor<'_>, attr: &EventAttr, record: &mut Record<'_>) -> Option<()> {
    record.id = at.u64_if(attr.has(bit::ID))?.or(record.id);
    record.stream_id = at.u64_if(attr.has(bit::STREAM_ID))?;
    if attr.has(bit::CPU) {
        record.cpu = Some(at.u32()?);
        at.u32()?;
    }
    Some(())
}

/// What stands behind all records but samples.
fn read_trailer(mut at: Cursor<'_>, attr: &EventAttr, record: &mut Record<'_>) -> Option<()> {
    read_thread(&mut at, attr, record)?;
    read_origin(&mut at, attr, record)?;
    record.id = at.u64_if(attr.has(bit::IDENTIFIER))?.or(record.id);
    Some(())
}

/// The fields of a sample in the kernel's order; `None` if one does not fit.
fn read_sample<'a>(
    mut at: Cursor<'a>,
    attr: &EventAttr,
    sample: &mut Sample<'a>,
    record: &mut Record<'_>,
) -> Option<()> {
    let at = &mut at;
    record.id = at.u64_if(attr.has(bit::IDENTIFIER))?;
    sample.ip = at.u64_if(attr.has(bit::IP))?;
    read_thread(at, attr, record)?;
    sample.address = at.u64_if(attr.has(bit::ADDR))?;
    read_origin(at, attr, record)?;
    sample.period = at.u64_if(attr.has(bit::PERIOD))?;
    if attr.has(bit::READ) {
        sample.counters = Some(counters(at, attr.read_format)?);
    }
    if attr.has(bit::CALLCHAIN) {
        let count = at.u64()?;
        sample.callchain = Some(Callchain {
            words: at.words(count)?,
            mode: record.cpu_mode,
        });
    }
    if attr.has(bit::RAW) {
        let size = at.u32()?;
        sample.raw = Some(at.take(size as usize)?);
    }
    if attr.has(bit::BRANCH_STACK) {
        const HW_INDEX: u64 = 1 << 17;
        let count = at.u64()?;
        if attr.branch_sample_type & HW_INDEX != 0 {
            sample.branch_hw_index = Some(at.u64()?);
        }
        sample.branches = Some(at.words(count.checked_mul(3)?)?);
    }
    if attr.has(bit::REGS_USER) {
        sample.user_registers = Some(registers(at, attr.sample_regs_user)?);
    }
    if attr.has(bit::STACK_USER) {
        let room = at.u64()?;
        let copied = at.take_u64(room)?;
        let used = if room == 0 { 0 } else { at.u64()? };
        sample.user_stack = Some(copied.get(..usize::try_from(used).ok()?)?);
    }
    if attr.has(bit::WEIGHT) {
        sample.weight = Some(at.u64()?);
    } else if attr.has(bit::WEIGHT_STRUCT) {
        let (low, middle, high) = (at.u32()?, at.u16()?, at.u16()?);
        sample.weight = Some(u64::from(low) | u64::from(middle) << 32 | u64::from(high) << 48);
    }
    sample.data_source = at.u64_if(attr.has(bit::DATA_SRC))?;
    sample.transaction = at.u64_if(attr.has(bit::TRANSACTION))?;
    if attr.has(bit::REGS_INTR) {
        sample.interrupt_registers = Some(registers(at, attr.sample_regs_intr)?);
    }
    sample.physical_address = at.u64_if(attr.has(bit::PHYS_ADDR))?;
    sample.cgroup = at.u64_if(attr.has(bit::CGROUP))?;
    sample.data_page_size = at.u64_if(attr.has(bit::DATA_PAGE_SIZE))?;
    sample.code_page_size = at.u64_if(attr.has(bit::CODE_PAGE_SIZE))?;
    if attr.has(bit::AUX) {
        let size = at.u64()?;
        sample.aux = Some(at.take_u64(size)?);
    }
    Some(())
}

fn registers<'a>(at: &mut Cursor<'a>, mask: u64) -> Option<Registers<'a>> {
    let abi = at.u64()?;
    let count = if abi == 0 { 0 } else { mask.count_ones() };
    let values = at.words(count.into())?;
    Some(Registers { abi, mask, values })
}

/// Counter values in the shape of `read_format`.
fn counters<'a>(at: &mut Cursor<'a>, read_format: u64) -> Option<Words<'a>> {
    let times = u64::from((read_format & 0b11).count_ones());
    let each = u64::from(1 + (read_format & 0b1_0100).count_ones());
    let count = if read_format & 0b1000 == 0 {
        times + each
    } else {
        // The number itself is one of the values.
        let counters = Cursor::u64(&mut at.clone())?;
        counters.checked_mul(each)?.checked_add(times + 1)?
    };
    at.words(count)
}
