//! Samples: the layout that `sample_type` spells out.

use crate::bytes::Words;
use crate::callchain::Callchain;

/// What a sample has beside the thread, time and processor of its [`Record`](crate::Record). Which fields there are was chosen when
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
    /// Counter values, laid out as [`EventAttr::read_format`](crate::EventAttr::read_format) says: value, enabled ns, running ns, id, lost of one
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
}
