//! Samples: the layout that `sample_type` spells out.

#![expect(clippy::arithmetic_side_effects, reason = "one bit, less one")]

use crate::bytes::Words;
use crate::callchain::Callchain;

/// What a sample has beside the thread, time and processor of its [`Record`](crate::Record), as far as profiles are made of it. Which
/// fields there are was chosen when recording; a field that was not, or that stands behind a damaged one, is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sample<'a> {
    /// Where the processor stood.
    pub ip: Option<u64>,
    /// Events that this sample stands for; of the clocks, ns.
    pub period: Option<u64>,
    /// The frames, innermost first.
    pub callchain: Option<Callchain<'a>>,
    /// Registers of user space.
    pub user_registers: Option<Registers<'a>>,
    /// A copy of the user stack, from the stack pointer up: as much of it as there was.
    pub user_stack: Option<&'a [u8]>,
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
