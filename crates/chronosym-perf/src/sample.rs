//! Samples, in the layout of `sample_type`.

#![expect(clippy::arithmetic_side_effects, reason = "one bit, less one")]

use crate::bytes::Words;
use crate::callchain::Callchain;

/// The fields of a sample that profiles use, in addition to the thread, time and processor of its
/// [`Record`](crate::Record). Which fields are present is chosen when recording; a field that is
/// not, or that follows a damaged one, is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sample<'a> {
    /// Instruction pointer.
    pub ip: Option<u64>,
    /// Events that the sample represents; of clocks, ns.
    pub period: Option<u64>,
    /// The frames, innermost first.
    pub callchain: Option<Callchain<'a>>,
    /// The fields of a tracepoint, in the layout that `/sys/kernel/tracing/events` describes.
    pub raw: Option<&'a [u8]>,
    /// The calls of user space that the processor's branch records contain (`--call-graph lbr`).
    pub call_stack: Option<CallStack<'a>>,
    /// Registers of user space.
    pub user_registers: Option<Registers<'a>>,
    /// A copy of the user stack, from the stack pointer up.
    pub user_stack: Option<&'a [u8]>,
}

/// Branch records that the processor kept as a call stack (`PERF_SAMPLE_BRANCH_CALL_STACK`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallStack<'a>(pub(crate) Words<'a>);

impl<'a> CallStack<'a> {
    /// Addresses of the call instructions, innermost first. Each is in the caller of the function
    /// before it.
    pub fn calls(&self) -> impl Iterator<Item = u64> + use<'a> {
        // Source, target and flags of each branch.
        let sources = self.0.iter().step_by(3);
        sources.take_while(|&source| source != 0)
    }
}

/// Values of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Registers<'a> {
    /// 0 none, 1 of a 32-bit, 2 of a 64-bit program (`PERF_SAMPLE_REGS_ABI_*`).
    pub abi: u64,
    /// Bit mask of the registers, numbered as in the kernel's `perf_regs.h` of the processor.
    pub mask: u64,
    /// Their values, lowest number first.
    pub values: Words<'a>,
}

impl Registers<'_> {
    /// Returns the value of a register.
    pub fn get(&self, number: u32) -> Option<u64> {
        let own = 1u64.checked_shl(number)?;
        let before = (self.mask & (own - 1)).count_ones() as usize;
        (self.mask & own != 0).then(|| self.values.get(before))?
    }
}
