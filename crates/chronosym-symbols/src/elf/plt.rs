//! Stubs of the procedure linkage table, each of which jumps to the address in a slot that a
//! dynamic relocation fills.
//!
//! Sources: the System V psABI of x86-64, section 5.2.4, and that of AArch64, section 9.3.

use chronosym_types::hash::HashMap;
use object::read::elf::{ElfFile, FileHeader, Rela, SectionHeader};
use object::read::{Object, ObjectSection};
use object::{Architecture, SymbolIndex};

/// A stub and the function that it calls.
pub(super) struct Stub {
    pub(super) start: u64,
    pub(super) size: u64,
    /// Index in the dynamic symbol table.
    pub(super) symbol: SymbolIndex,
}

/// `endbr64` of x86-64 and `bti c` of AArch64: they precede a jump that indirect branches may
/// target.
const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
const BTI_C: u32 = 0xd503_245f;

/// Returns the stubs of a file.
pub(super) fn stubs(file: &object::File<'_>) -> Vec<Stub> {
    let decode = match file.architecture() {
        Architecture::X86_64 => x86_64,
        Architecture::Aarch64 => aarch64,
        _ => return Vec::new(),
    };
    let sections = [".plt", ".plt.sec", ".plt.got"];
    let sections = sections.map(|name| file.section_by_name(name));
    let jumps: Vec<(u64, Jump)> = (sections.into_iter().flatten())
        .flat_map(|section| {
            let (address, bytes) = (section.address(), section.data().unwrap_or_default());
            let jumps = decode(address, bytes).into_iter();
            jumps.map(move |jump| (address.wrapping_add(jump.start as u64), jump))
        })
        .collect();
    if jumps.is_empty() {
        return Vec::new();
    }
    // Few of a file's relocations fill slots.
    let mut slots: HashMap<u64, Option<SymbolIndex>> =
        jumps.iter().map(|(_, jump)| (jump.slot, None)).collect();
    match file {
        object::File::Elf32(elf) => fill(elf, &mut slots),
        object::File::Elf64(elf) => fill(elf, &mut slots),
        _ => {}
    }
    let stub = |(start, jump): (u64, Jump)| {
        let symbol = (*slots.get(&jump.slot)?)?;
        Some(Stub {
            start,
            size: jump.size,
            symbol,
        })
    };
    jumps.into_iter().filter_map(stub).collect()
}

/// Sets the symbols of the slots by the dynamic relocations, which have addends on these
/// architectures.
fn fill<'data, Elf: FileHeader>(
    elf: &ElfFile<'data, Elf>,
    slots: &mut HashMap<u64, Option<SymbolIndex>>,
) {
    let endian = elf.endian();
    let symbols = elf.elf_dynamic_symbol_table().section();
    for section in elf.elf_section_table().iter() {
        let relocations = section.rela(endian, elf.data()).ok().flatten();
        let relocations = relocations.filter(|&(_, table)| table == symbols);
        for relocation in relocations.map_or(&[][..], |(relocations, _)| relocations) {
            // Most relocations of a file only add its base.
            let symbol = relocation.r_sym(endian, false);
            if symbol > 0
                && let Some(slot) = slots.get_mut(&relocation.r_offset(endian).into())
            {
                *slot = Some(SymbolIndex(symbol as usize));
            }
        }
    }
}

/// A jump to the address in a slot.
struct Jump {
    /// Offset of its stub in the section.
    start: usize,
    /// Size of its stub in bytes.
    size: u64,
    /// Address of the slot.
    slot: u64,
}

/// `[endbr64] [bnd] jmp *slot(%rip)`, in stubs of 16 bytes or, without the rest, of 8.
fn x86_64(address: u64, bytes: &[u8]) -> Vec<Jump> {
    let jump = |at: usize| {
        let next = at.checked_add(6)?;
        let distance = i32::from_le_bytes(*bytes.get(at.checked_add(2)?..next)?.first_chunk()?);
        let slot = address
            .wrapping_add(next as u64)
            .wrapping_add_signed(distance.into());
        let before = bytes.get(..at)?;
        let before = before.strip_suffix(&[0xf2]).unwrap_or(before);
        let before = before.strip_suffix(&ENDBR64).unwrap_or(before);
        // Stubs of 8 bytes end with a `nop` of two.
        let is_short = before.len() == at && bytes.get(next..)?.starts_with(&[0x66, 0x90]);
        Some(Jump {
            start: before.len(),
            size: if is_short { 8 } else { 16 },
            slot,
        })
    };
    let jumps = memchr::memmem::find_iter(bytes, &[0xff, 0x25]);
    jumps.filter_map(jump).collect()
}

/// `[bti c]; adrp x16, page; ldr x17, [x16, offset]; …`, of 16 or 24 bytes.
fn aarch64(address: u64, bytes: &[u8]) -> Vec<Jump> {
    let words: Vec<u32> = bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|&word| u32::from_le_bytes(word))
        .collect();
    let jump = |(index, pair): (usize, &[u32])| {
        let &[adrp, ldr] = pair else { return None };
        if adrp & 0x9f00_001f != 0x9000_0010 || ldr & 0xffc0_03ff != 0xf940_0211 {
            return None;
        }
        // A signed number of 21 bits, its lowest two apart.
        let pages = (adrp >> 5 & 0x7_ffff) << 2 | adrp >> 29 & 3;
        let distance = i64::from((pages << 11) as i32 >> 11) << 12;
        let at = index.saturating_mul(4);
        let page = address.wrapping_add(at as u64) & !0xfff;
        let offset = u64::from(ldr >> 10 & 0xfff).saturating_mul(8);
        let before = index.checked_sub(1).and_then(|before| words.get(before));
        let is_marked = before == Some(&BTI_C);
        Some(Jump {
            start: if is_marked { at.saturating_sub(4) } else { at },
            size: if is_marked { 24 } else { 16 },
            slot: page.wrapping_add_signed(distance).wrapping_add(offset),
        })
    };
    words.windows(2).enumerate().filter_map(jump).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_of_x86_64() {
        let plain = [
            0xff, 0x25, 0xfa, 0x0f, 0, 0, 0x68, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0,
        ];
        let marked = [
            0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0xf5, 0x0f, 0, 0, 0x0f, 0x1f, 0x44, 0, 0,
        ];
        let short = [0xff, 0x25, 0xda, 0x0f, 0, 0, 0x66, 0x90];
        let bytes = [&plain[..], &marked, &short].concat();
        let jumps = x86_64(0x1000, &bytes);
        let jumps: Vec<_> = jumps.iter().map(|j| (j.start, j.size, j.slot)).collect();
        assert_eq!(jumps, [(0, 16, 0x2000), (16, 16, 0x2010), (32, 8, 0x2000)]);
        for len in 0..bytes.len() {
            assert!(x86_64(u64::MAX, &bytes[..len]).len() <= 3);
        }
    }

    #[test]
    fn jumps_of_aarch64() {
        let words = [
            0xb000_0010_u32, // adrp x16, 0x11000
            0xf947_fe11,     // ldr x17, [x16, #0xff8]
            0x913f_e210,
            0xd61f_0220,
            BTI_C,
            0xd000_0010, // adrp x16, 0x12000
            0xf940_0211, // ldr x17, [x16]
        ];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let jumps = aarch64(0x1_0000, &bytes);
        let jumps: Vec<_> = jumps.iter().map(|j| (j.start, j.size, j.slot)).collect();
        assert_eq!(jumps, [(0, 16, 0x1_1ff8), (16, 24, 0x1_2000)]);
        for len in 0..bytes.len() {
            assert!(aarch64(u64::MAX, &bytes[..len]).len() <= 2);
        }
    }
}
