//! Decodes records.

#![expect(clippy::arithmetic_side_effects, reason = "bits that were counted")]

use crate::attr::{EventAttr, sample_type as bit};
use crate::bytes::{Cursor, Words, until_nul};
use crate::callchain::Callchain;
use crate::kind::record;
use crate::raw::{CpuMode, RawRecord, misc};
use chronosym_types::FileNumber;

use crate::record::{BuildId, Comm, Event, KernelSymbol, Mmap, Record, Task};
use crate::sample::{CallStack, Registers, Sample};

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
            attr: attr.map(|(index, _)| index),
            cpu_mode: CpuMode::of(self.flags),
            event: Event::Other(self.body),
        };
        let time = attr.and_then(|(_, attr)| attr.time(self.kind, self.body, self.order));
        record.time_ns = time.filter(|&time| time != 0);
        let at = Cursor::new(self.body, self.order);
        if let (record::SAMPLE, Some((_, attr))) = (self.kind, attr) {
            let mut sample = Sample::default();
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
        match self.event(Cursor::new(body, self.order)) {
            Some(event) => {
                record.event = event;
                (record, true)
            }
            None => (record, false),
        }
    }

    fn event(&self, mut at: Cursor<'a>) -> Option<Event<'a>> {
        let flag = |bit| self.flags & bit != 0;
        Some(match self.kind {
            record::MMAP | record::MMAP2 => Event::Mmap(self.mmap(at)?),
            record::LOST => Event::Lost {
                id: at.u64()?,
                records: at.u64()?,
            },
            record::COMM => Event::Comm(Comm {
                pid: at.u32()?,
                tid: at.u32()?,
                is_exec: flag(misc::DATA_EXEC_OUT),
                name: at.text(),
            }),
            record::EXIT | record::FORK => {
                let task = Task {
                    pid: at.u32()?,
                    parent_pid: at.u32()?,
                    tid: at.u32()?,
                    parent_tid: at.u32()?,
                };
                let variant = if self.kind == record::FORK {
                    Event::Fork
                } else {
                    Event::Exit
                };
                variant(task)
            }
            record::THROTTLE | record::UNTHROTTLE => {
                at.take(24)?;
                Event::Throttle {
                    ended: self.kind == record::UNTHROTTLE,
                }
            }
            record::AUX => {
                at.take(16)?;
                Event::Aux { flags: at.u64()? }
            }
            record::LOST_SAMPLES => Event::LostSamples {
                samples: at.u64()?,
                filtered: flag(1 << 15),
            },
            record::NAMESPACES => {
                let (pid, _tid, count) = (at.u32()?, at.u32()?, at.u64()?);
                let links = at.words(count.checked_mul(2)?)?;
                Event::Namespaces { pid, links }
            }
            record::KSYMBOL => {
                let (address, size, _kind) = (at.u64()?, at.u32()?, at.u16()?);
                Event::KernelSymbol(KernelSymbol {
                    address,
                    size,
                    is_unregistered: at.u16()? & 1 != 0,
                    name: at.text(),
                })
            }
            // PERF_RECORD_SWITCH_CPU_WIDE also states the other thread, whose own record follows.
            record::SWITCH | record::SWITCH_CPU_WIDE => Event::Switch {
                out: flag(misc::DATA_EXEC_OUT),
                preempted: flag(misc::BUILD_ID_PREEMPT),
            },
            record::CALLCHAIN_DEFERRED => {
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
        let (pid, _tid) = (at.u32()?, at.u32()?);
        let mut mmap = Mmap {
            pid,
            address: at.u64()?,
            size: at.u64()?,
            file_offset: at.u64()?,
            file: None,
            build_id: None,
            is_data: self.flags & misc::DATA_EXEC_OUT != 0,
            name: &[],
        };
        if self.kind == record::MMAP2 {
            let mut identity = Cursor::new(at.take(24)?, self.order);
            if self.flags & misc::BUILD_ID_PREEMPT != 0 {
                let (&[length, ..], id) = identity.rest().split_first_chunk::<4>()?;
                mmap.build_id = BuildId::new(id.first_chunk()?, length.into());
            } else {
                mmap.file = Some(FileNumber {
                    device: (identity.u32()?, identity.u32()?),
                    inode: identity.u64()?,
                    generation: identity.u64()?,
                });
            }
            // Protection and flags.
            at.u64()?;
        }
        mmap.name = until_nul(at.rest());
        Some(mmap)
    }
}

/// Reads thread and time.
fn read_thread(at: &mut Cursor<'_>, attr: &EventAttr, record: &mut Record<'_>) -> Option<()> {
    if attr.has(bit::TID) {
        (record.pid, record.tid) = (Some(at.u32()?), Some(at.u32()?));
    }
    at.u64_if(attr.has(bit::TIME)).map(drop)
}

/// Reads the processor, after the event's ids.
fn read_origin(at: &mut Cursor<'_>, attr: &EventAttr, record: &mut Record<'_>) -> Option<()> {
    at.u64_if(attr.has(bit::ID))?;
    at.u64_if(attr.has(bit::STREAM_ID))?;
    if attr.has(bit::CPU) {
        record.cpu = Some(at.u32()?);
        at.u32()?;
    }
    Some(())
}

/// Reads the trailer of all records except samples.
fn read_trailer(mut at: Cursor<'_>, attr: &EventAttr, record: &mut Record<'_>) -> Option<()> {
    read_thread(&mut at, attr, record)?;
    read_origin(&mut at, attr, record)
}

/// Reads the fields of a sample in the kernel's order, up to the last one used; `None` if one does
/// not fit.
fn read_sample<'a>(
    mut at: Cursor<'a>,
    attr: &EventAttr,
    sample: &mut Sample<'a>,
    record: &mut Record<'_>,
) -> Option<()> {
    let at = &mut at;
    at.u64_if(attr.has(bit::IDENTIFIER))?;
    sample.ip = at.u64_if(attr.has(bit::IP))?;
    read_thread(at, attr, record)?;
    at.u64_if(attr.has(bit::ADDR))?;
    read_origin(at, attr, record)?;
    sample.period = at.u64_if(attr.has(bit::PERIOD))?;
    if attr.has(bit::READ) {
        counters(at, attr.read_format)?;
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
        const CALL_STACK: u64 = 1 << 11;
        const HW_INDEX: u64 = 1 << 17;
        const COUNTERS: u64 = 1 << 19;
        let is = |bit| attr.branch_sample_type & bit != 0;
        let count = at.u64()?;
        at.u64_if(is(HW_INDEX))?;
        let branches = at.words(count.checked_mul(3)?)?;
        sample.call_stack = is(CALL_STACK).then_some(CallStack(branches));
        at.words(if is(COUNTERS) { count } else { 0 })?;
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
    Some(())
}

fn registers<'a>(at: &mut Cursor<'a>, mask: u64) -> Option<Registers<'a>> {
    let abi = at.u64()?;
    let count = if abi == 0 { 0 } else { mask.count_ones() };
    let values = at.words(count.into())?;
    Some(Registers { abi, mask, values })
}

/// Reads counter values in the layout of `read_format`.
fn counters<'a>(at: &mut Cursor<'a>, read_format: u64) -> Option<Words<'a>> {
    let times = u64::from((read_format & 0b11).count_ones());
    let each = u64::from(1 + (read_format & 0b1_0100).count_ones());
    let count = if read_format & 0b1000 == 0 {
        times + each
    } else {
        // The count itself is one of the values.
        let counters = Cursor::u64(&mut at.clone())?;
        counters.checked_mul(each)?.checked_add(times + 1)?
    };
    at.words(count)
}
