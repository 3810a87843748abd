//! Samples: the layout that `sample_type` spells out.

use crate::attr::{EventAttr, sample_type as bit};
use crate::bytes::{Cursor, Words};
use crate::callchain::Callchain;
use crate::record::{Record, misc};

/// What a sample has beside the thread, time and processor of its [`Record`]. Which fields there are was chosen when
/// recording; a field that was not, or that stands behind a damaged one, is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sample<'a> {
    /// Where the processor stood.
    pub ip: Option<u64>,
    /// Whether the processor vouches for `ip` being that of the instruction that caused the event.
    pub is_exact: bool,
    /// The data address that the event is about.
    pub address: Option<u64>,
    /// Events that this sample stands for; of the clocks, ns.
    pub period: Option<u64>,
    /// Counter values, laid out as [`EventAttr::read_format`] says: value, enabled ns, running ns, id, lost of one
    /// counter; of a group their number, enabled, running, then value, id, lost of each.
    pub counters: Option<Words<'a>>,
    /// The frames, innermost first.
    pub callchain: Option<Callchain<'a>>,
    /// The payload of a tracepoint.
    pub raw: Option<&'a [u8]>,
    /// Branches taken, latest first: from, to, flags of each.
    pub branches: Option<Words<'a>>,
    /// Where the hardware's own list of branches stood.
    pub branch_hw_index: Option<u64>,
    /// Registers of user space.
    pub user_registers: Option<Registers<'a>>,
    /// A copy of the user stack, from the stack pointer up: as much of it as there was.
    pub user_stack: Option<&'a [u8]>,
    /// Cost of the event, in units of the hardware; where the kernel splits it, 32, 16 and 16 bits, lowest first.
    pub weight: Option<u64>,
    /// Bits `PERF_MEM_*`: where the data came from.
    pub data_source: Option<u64>,
    /// Bits `PERF_TXN_*` of a hardware transaction.
    pub transaction: Option<u64>,
    /// Registers at the interrupt.
    pub interrupt_registers: Option<Registers<'a>>,
    /// The physical address of `address`.
    pub physical_address: Option<u64>,
    /// Id of the control group, as [`Event::Cgroup`](crate::Event::Cgroup) names it.
    pub cgroup: Option<u64>,
    /// Bytes of the page of `address`.
    pub data_page_size: Option<u64>,
    /// Bytes of the page of `ip`.
    pub code_page_size: Option<u64>,
    /// A piece of a hardware trace.
    pub aux: Option<&'a [u8]>,
}

/// Values of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Registers<'a> {
    /// 0 there are none, 1 of a 32-bit, 2 of a 64-bit program.
    pub abi: u64,
    /// Which registers were asked for: a bit each, numbered as the kernel does for the processor.
    pub mask: u64,
    /// Their values, lowest number first.
    pub values: Words<'a>,
}

impl Registers<'_> {
    /// The value of a register by its number.
    pub fn get(&self, number: u32) -> Option<u64> {
        let own = 1u64.checked_shl(number)?;
        let before = (self.mask & (own - 1)).count_ones() as usize;
        (self.mask & own != 0).then(|| self.values.get(before))?
    }

    fn read<'a>(at: &mut Cursor<'a>, mask: u64) -> Option<Registers<'a>> {
        let abi = at.u64()?;
        let count = if abi == 0 { 0 } else { mask.count_ones() };
        let values = at.words(count.into())?;
        Some(Registers { abi, mask, values })
    }
}

/// Counter values in the shape of `read_format`.
pub(crate) fn counters<'a>(at: &mut Cursor<'a>, read_format: u64) -> Option<Words<'a>> {
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

impl<'a> Sample<'a> {
    /// The fields in the kernel's order, thread and time into the `record`; false if one does not fit.
    pub(crate) fn read(
        &mut self,
        mut at: Cursor<'a>,
        attr: &EventAttr,
        flags: u16,
        record: &mut Record<'_>,
    ) -> bool {
        self.is_exact = flags & misc::EXACT_IP != 0;
        self.read_fields(&mut at, attr, record).is_some()
    }

    fn read_fields(
        &mut self,
        at: &mut Cursor<'a>,
        attr: &EventAttr,
        record: &mut Record<'_>,
    ) -> Option<()> {
        let has = |bit| attr.sample_type & bit != 0;
        record.id = at.u64_if(has(bit::IDENTIFIER))?;
        self.ip = at.u64_if(has(bit::IP))?;
        if has(bit::TID) {
            (record.pid, record.tid) = (Some(at.u32()?), Some(at.u32()?));
        }
        at.u64_if(has(bit::TIME))?;
        self.address = at.u64_if(has(bit::ADDR))?;
        record.id = at.u64_if(has(bit::ID))?.or(record.id);
        record.stream_id = at.u64_if(has(bit::STREAM_ID))?;
        if has(bit::CPU) {
            record.cpu = Some(at.u32()?);
            at.u32()?;
        }
        self.period = at.u64_if(has(bit::PERIOD))?;
        if has(bit::READ) {
            self.counters = Some(counters(at, attr.read_format)?);
        }
        if has(bit::CALLCHAIN) {
            let count = at.u64()?;
            self.callchain = Some(Callchain {
                words: at.words(count)?,
                mode: record.cpu_mode,
            });
        }
        if has(bit::RAW) {
            let size = at.u32()?;
            self.raw = Some(at.take(size as usize)?);
        }
        if has(bit::BRANCH_STACK) {
            const HW_INDEX: u64 = 1 << 17;
            let count = at.u64()?;
            if attr.branch_sample_type & HW_INDEX != 0 {
                self.branch_hw_index = Some(at.u64()?);
            }
            self.branches = Some(at.words(count.checked_mul(3)?)?);
        }
        if has(bit::REGS_USER) {
            self.user_registers = Some(Registers::read(at, attr.sample_regs_user)?);
        }
        if has(bit::STACK_USER) {
            let room = at.u64()?;
            let copied = at.take_u64(room)?;
            let used = if room == 0 { 0 } else { at.u64()? };
            self.user_stack = Some(copied.get(..usize::try_from(used).ok()?)?);
        }
        if has(bit::WEIGHT) {
            self.weight = Some(at.u64()?);
        } else if has(bit::WEIGHT_STRUCT) {
            let (low, middle, high) = (at.u32()?, at.u16()?, at.u16()?);
            self.weight = Some(u64::from(low) | u64::from(middle) << 32 | u64::from(high) << 48);
        }
        self.data_source = at.u64_if(has(bit::DATA_SRC))?;
        self.transaction = at.u64_if(has(bit::TRANSACTION))?;
        if has(bit::REGS_INTR) {
            self.interrupt_registers = Some(Registers::read(at, attr.sample_regs_intr)?);
        }
        self.physical_address = at.u64_if(has(bit::PHYS_ADDR))?;
        self.cgroup = at.u64_if(has(bit::CGROUP))?;
        self.data_page_size = at.u64_if(has(bit::DATA_PAGE_SIZE))?;
        self.code_page_size = at.u64_if(has(bit::CODE_PAGE_SIZE))?;
        if has(bit::AUX) {
            let size = at.u64()?;
            self.aux = Some(at.take_u64(size)?);
        }
        Some(())
    }
}
