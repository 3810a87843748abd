//! Assigns addresses to the sections of files that are not linked (objects and kernel modules), and
//! relocates their debug information accordingly.

use std::ops::Range;

use object::read::{Object, ObjectSection, ObjectSymbol, Relocation, RelocationTarget};
use object::{
    Architecture, ObjectKind, RelocationFlags, RelocationKind, SectionFlags, SectionIndex,
    SymbolSection, elf,
};

/// An address for every section that is loaded.
///
/// `.text` comes first, then other code, then data, each in the order of the file and with its
/// alignment. Linux lays modules out like this, so an address in a running module minus the
/// module's start is an address here.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    /// Addresses by section index; `None` for sections that are not loaded.
    ranges: Vec<Option<Range<u64>>>,
}

/// Ranks of sections in memory.
const CODE: u8 = 1;
const DATA: u8 = 2;
/// Linux puts sections that it frees after loading elsewhere.
const INIT: u8 = 3;

impl Layout {
    /// Returns the layout of a file, if it is not linked.
    pub(crate) fn of(file: &object::File<'_>) -> Option<Self> {
        if file.kind() != ObjectKind::Relocatable {
            return None;
        }
        let mut order: Vec<(u8, usize, u64, u64)> = Vec::new();
        for section in file.sections() {
            let SectionFlags::Elf { sh_flags, .. } = section.flags() else {
                continue;
            };
            if !sh_flags.contains(elf::SHF_ALLOC) {
                continue;
            }
            let code = sh_flags.contains(elf::SHF_EXECINSTR);
            let rank = match section.name_bytes() {
                Ok(b".text") => 0,
                Ok(name) if name.starts_with(b".init") => INIT,
                _ if code => CODE,
                _ => DATA,
            };
            order.push((rank, section.index().0, section.size(), section.align()));
        }
        order.sort_unstable();
        let mut ranges = Vec::new();
        let mut end = 0u64;
        for (_, index, size, align) in order {
            let align = align.clamp(1, 1 << 20);
            let start = end.checked_next_multiple_of(align)?;
            end = start.checked_add(size)?;
            if ranges.len() <= index {
                ranges.resize(index.checked_add(1)?, None);
            }
            *ranges.get_mut(index)? = Some(start..end);
        }
        Some(Self { ranges })
    }

    /// Addresses of a section, if it is loaded.
    pub(crate) fn range(&self, section: SectionIndex) -> Option<Range<u64>> {
        self.ranges.get(section.0)?.clone()
    }

    /// Applies the relocations of a section of debug information.
    ///
    /// # Errors
    /// One of its relocations, if none is supported.
    pub(crate) fn relocate(
        &self,
        file: &object::File<'_>,
        section: SectionIndex,
        bytes: &mut [u8],
    ) -> Result<(), RelocationFlags> {
        let Ok(section) = file.section_by_index(section) else {
            return Ok(());
        };
        let (big, machine) = (!file.is_little_endian(), file.architecture());
        let (mut applied, mut unknown) = (false, None);
        for (offset, relocation) in section.relocations() {
            // Some relocations, such as those of thread-local variables, do not matter.
            let Some((change, width)) = effect(machine, &relocation) else {
                unknown.get_or_insert(relocation.flags());
                continue;
            };
            let Some(value) = self.value(file, &relocation) else {
                continue;
            };
            let start = usize::try_from(offset).ok();
            let field = start.and_then(|start| bytes.get_mut(start..start.checked_add(width)?));
            if let Some(field @ [_, ..]) = field {
                let own = number(field, big);
                let changed = match change {
                    Change::Set if relocation.has_implicit_addend() => own.wrapping_add(value),
                    Change::Set => value,
                    Change::Add => own.wrapping_add(value),
                    Change::Subtract => own.wrapping_sub(value),
                };
                put(field, changed, big);
                applied = true;
            }
        }
        match unknown {
            Some(kind) if !applied => Err(kind),
            _ => Ok(()),
        }
    }

    fn value(&self, file: &object::File<'_>, relocation: &Relocation) -> Option<u64> {
        let start = |index| self.range(index).map_or(0, |range| range.start);
        let target = match relocation.target() {
            RelocationTarget::Symbol(index) => {
                let symbol = file.symbol_by_index(index).ok()?;
                match symbol.section() {
                    SymbolSection::Section(index) => start(index).wrapping_add(symbol.address()),
                    SymbolSection::Absolute => symbol.address(),
                    // A symbol of another file.
                    _ => return None,
                }
            }
            RelocationTarget::Section(index) => start(index),
            RelocationTarget::Absolute => 0,
            _ => return None,
        };
        Some(target.wrapping_add_signed(relocation.addend()))
    }
}

/// How a relocation changes its field.
#[derive(Clone, Copy)]
enum Change {
    Set,
    Add,
    Subtract,
}

/// Returns the effect of a relocation and the size of its field in bytes.
fn effect(machine: Architecture, relocation: &Relocation) -> Option<(Change, usize)> {
    if relocation.kind() == RelocationKind::Absolute {
        return Some((Change::Set, usize::from(relocation.size() / 8)));
    }
    // With linker relaxation, distances in code are sums of relocations (RISC-V ELF psABI, section
    // 8.4.1).
    let RelocationFlags::Elf { r_type } = relocation.flags() else {
        return None;
    };
    if !matches!(machine, Architecture::Riscv32 | Architecture::Riscv64) {
        return None;
    }
    Some(match r_type {
        elf::R_RISCV_SET8 => (Change::Set, 1),
        elf::R_RISCV_SET16 => (Change::Set, 2),
        elf::R_RISCV_SET32 => (Change::Set, 4),
        elf::R_RISCV_ADD8 => (Change::Add, 1),
        elf::R_RISCV_ADD16 => (Change::Add, 2),
        elf::R_RISCV_ADD32 => (Change::Add, 4),
        elf::R_RISCV_ADD64 => (Change::Add, 8),
        elf::R_RISCV_SUB8 => (Change::Subtract, 1),
        elf::R_RISCV_SUB16 => (Change::Subtract, 2),
        elf::R_RISCV_SUB32 => (Change::Subtract, 4),
        elf::R_RISCV_SUB64 => (Change::Subtract, 8),
        _ => return None,
    })
}

/// Returns a number of at most eight bytes.
fn number(bytes: &[u8], big: bool) -> u64 {
    let join = |sum: u64, &byte: &u8| sum << 8 | u64::from(byte);
    match big {
        true => bytes.iter().fold(0, join),
        false => bytes.iter().rev().fold(0, join),
    }
}

fn put(bytes: &mut [u8], value: u64, big: bool) {
    let (little, len) = (value.to_le_bytes(), bytes.len());
    for (i, byte) in bytes.iter_mut().enumerate() {
        let from = if big {
            len.saturating_sub(i).saturating_sub(1)
        } else {
            i
        };
        *byte = little.get(from).copied().unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_put_as_they_are_read() {
        for big in [false, true] {
            let mut four = [0; 4];
            put(&mut four, 0xFFFF_FFFF_1234_5678, big);
            assert_eq!(number(&four, big), 0x1234_5678);
            assert_eq!(four[0], if big { 0x12 } else { 0x78 });
        }
    }
}
