//! The table of runtime functions (section 102, `RUNTIME_FUNCTION`): start and end of all code.

use crate::bytes;
use crate::pe::{Machine, PeImage};

/// The functions by index, in ascending order of address.
#[derive(Debug, Clone)]
pub(super) struct RuntimeFunctions<'d> {
    table: &'d [u8],
    machine: Machine,
}

impl<'d> RuntimeFunctions<'d> {
    pub(super) fn new(table: &'d [u8], machine: Machine) -> Self {
        Self { table, machine }
    }

    fn entry_size(&self) -> usize {
        if self.machine == Machine::X64 { 12 } else { 8 }
    }

    pub(super) fn count(&self) -> u32 {
        let count = self.table.len().checked_div(self.entry_size());
        count
            .and_then(|count| u32::try_from(count).ok())
            .unwrap_or(0)
    }

    fn field(&self, index: u32, field: usize) -> Option<u32> {
        bytes::u32(
            self.table,
            (index as usize)
                .checked_mul(self.entry_size())?
                .checked_add(field.checked_mul(4)?)?,
        )
    }

    /// RVA of the function's first byte (`BeginAddress`), without the Thumb bit.
    pub(super) fn start(&self, index: u32) -> Option<u32> {
        let start = self.field(index, 0)?;
        Some(if self.machine == Machine::Arm {
            start & !1
        } else {
            start
        })
    }

    /// RVA of the function's end: `EndAddress` on x64, from the unwind data elsewhere.
    pub(super) fn end(&self, index: u32, image: &PeImage<'_>) -> Option<u32> {
        if self.machine == Machine::X64 {
            return self.field(index, 1);
        }
        let unwind = bytes::u32(image.data_at(self.field(index, 1)?)?, 0)?;
        let length = match self.machine {
            Machine::Arm64 => (unwind & 0x3ffff) << 2,
            Machine::Arm => (unwind & 0x3ffff) << 1,
            _ => unwind,
        };
        self.start(index)?.checked_add(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chronosym_support::ecma::image;

    #[test]
    fn ends_come_from_the_table_or_the_unwind_record() {
        // An unwind record at RVA 0x1004; its upper bits are other fields.
        let bytes = image(
            &[[0; 4], (0xabc4_0000u32 | 0x30).to_le_bytes()].concat(),
            &[],
        );
        let image = PeImage::parse(&bytes).unwrap();
        for (machine, words, start, end) in [
            (
                Machine::X64,
                &[0x2000u32, 0x2040, 0x1004][..],
                0x2000,
                0x2040,
            ),
            (Machine::Arm64, &[0x2000, 0x1004], 0x2000, 0x2000 + 0x30 * 4),
            (Machine::Arm, &[0x2001, 0x1004], 0x2000, 0x2000 + 0x30 * 2),
        ] {
            let table: Vec<u8> = words.iter().flat_map(|field| field.to_le_bytes()).collect();
            let functions = RuntimeFunctions::new(&table, machine);
            assert_eq!(functions.count(), 1);
            assert_eq!(
                (functions.start(0), functions.end(0, &image)),
                (Some(start), Some(end))
            );
            assert_eq!((functions.start(1), functions.end(1, &image)), (None, None));
        }
        let table: Vec<u8> = [0x2000u32, 0x1000]
            .iter()
            .flat_map(|field| field.to_le_bytes())
            .collect();
        assert_eq!(
            RuntimeFunctions::new(&table, Machine::X86).end(0, &image),
            Some(0x2000)
        );
        // A record outside of the file.
        let table: Vec<u8> = [0x2000u32, 0x9000]
            .iter()
            .flat_map(|field| field.to_le_bytes())
            .collect();
        assert_eq!(
            RuntimeFunctions::new(&table, Machine::X86).end(0, &image),
            None
        );
    }
}
