//! The table of runtime functions (section 102): where every piece of code starts and ends.

use crate::bytes;
use crate::pe::{Machine, PeImage};

/// The functions by index, in ascending order of address.
#[derive(Debug, Clone)]
pub(super) struct Functions<'d> {
    table: &'d [u8],
    machine: Machine,
}

impl<'d> Functions<'d> {
    pub(super) fn new(table: &'d [u8], machine: Machine) -> Self {
        Self { table, machine }
    }

    fn entry_size(&self) -> usize {
        if self.machine == Machine::X64 { 12 } else { 8 }
    }

    pub(super) fn count(&self) -> u32 {
        (self.table.len() / self.entry_size()) as u32
    }

    fn word(&self, index: u32, word: usize) -> Option<u32> {
        bytes::u32(
            self.table,
            (index as usize).checked_mul(self.entry_size())? + word * 4,
        )
    }

    /// Where a function starts.
    pub(super) fn begin(&self, index: u32) -> Option<u32> {
        let begin = self.word(index, 0)?;
        Some(if self.machine == Machine::Arm {
            begin & !1
        } else {
            begin
        })
    }

    /// Where a function ends: in the table on x64, in the unwind record elsewhere.
    pub(super) fn end(&self, index: u32, image: &PeImage<'_>) -> Option<u32> {
        if self.machine == Machine::X64 {
            return self.word(index, 1);
        }
        let unwind = bytes::u32(image.data_at(self.word(index, 1)?)?, 0)?;
        let length = match self.machine {
            Machine::Arm64 => (unwind & 0x3ffff) * 4,
            Machine::Arm => (unwind & 0x3ffff) * 2,
            _ => unwind,
        };
        self.begin(index)?.checked_add(length)
    }
}
