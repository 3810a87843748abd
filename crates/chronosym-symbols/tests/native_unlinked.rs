//! Objects, whose code has no addresses yet, and sections that are compressed: made by hand, sound
//! and damaged.

mod made;

use std::io::Write;

use chronosym_symbols::{Address, Answers, NativeSymbols, Query};
use proptest::prelude::*;

type Section = (&'static str, u32, u64, u64, Vec<u8>);

const CODE: u64 = 0x1000;

/// `R_X86_64_64` against the symbol 1.
fn relocation(offset: usize, addend: u64) -> Vec<u8> {
    let info = 1_u64 << 32 | 1;
    [offset as u64, info, addend].map(u64::to_le_bytes).concat()
}

/// The program before it was linked: each address of its code is 0, with a relocation that states
/// the address.
fn unlinked() -> Vec<Section> {
    let mut sections = Vec::new();
    for (name, kind, flags, _, mut bytes) in made::program() {
        let mut relocations = Vec::new();
        let mut at = 0;
        while at + 8 <= bytes.len() {
            let value = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
            if name.starts_with(".debug") && (CODE..CODE + 0x40).contains(&value) {
                relocations.extend(relocation(at, value - CODE));
                bytes[at..at + 8].fill(0);
                at += 7;
            }
            at += 1;
        }
        sections.push((name, kind, flags, 0, bytes));
        let relocated = match name {
            ".debug_info" => ".rela.debug_info",
            ".debug_line" => ".rela.debug_line",
            _ => continue,
        };
        assert!(!relocations.is_empty(), "{name}");
        sections.push((relocated, 4, 0, 0, relocations));
    }
    const SECTION: u8 = 3;
    let symbols = [vec![0; 24], made::symbol(0, SECTION, 0, 0)].concat();
    sections.push((".symtab", 2, 0, 0, symbols));
    sections.push((".strtab", 3, 0, 0, vec![0]));
    sections
}

fn object(sections: &[Section]) -> Vec<u8> {
    let mut file = made::elf(sections);
    file[16] = 1;
    file
}

/// Names and lines, from `from` on.
fn frames(bytes: &[u8], from: u64) -> (Vec<Vec<(String, u32)>>, Vec<String>) {
    let symbols = NativeSymbols::open(bytes).expect("an ELF file");
    let asked: Vec<Address> = (from..from + 0x48).map(Address::VirtualAddress).collect();
    let mut out = Answers::new();
    symbols.find_all(&asked, &Query::default(), &mut out);
    let frames = out.iter().map(|answer| {
        let frame = |f: chronosym_symbols::Frame<'_>| {
            let name = f.name().unwrap_or_default().to_owned();
            (name, f.line().map_or(0, |line| line.get()))
        };
        answer.frames().map(frame).collect()
    });
    (frames.collect(), out.damage().to_vec())
}

/// Compresses a section and adds the header of compressed sections (`Elf64_Chdr`).
fn compressed(bytes: &[u8], stated: u64) -> Vec<u8> {
    let level = flate2::Compression::fast();
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), level);
    zlib.write_all(bytes).unwrap();
    let mut out = [1_u64, stated, 1].map(u64::to_le_bytes).concat();
    out.extend(zlib.finish().unwrap());
    out
}

/// The debug sections compressed, stating `more` than they hold.
fn packed(sections: Vec<Section>, more: u64) -> Vec<Section> {
    const COMPRESSED: u64 = 0x800;
    let pack = |(name, kind, flags, address, bytes): Section| {
        if !name.starts_with(".debug") {
            return (name, kind, flags, address, bytes);
        }
        let packed = compressed(&bytes, bytes.len() as u64 + more);
        (name, kind, flags | COMPRESSED, address, packed)
    };
    sections.into_iter().map(pack).collect()
}

#[test]
fn an_object_resolves_like_the_linked_program() {
    let expected = frames(&made::elf(&made::program()), CODE);
    assert!(expected.1.is_empty() && expected.0[0x10].len() == 2);
    assert_eq!(frames(&object(&unlinked()), 0), expected);
    assert_eq!(
        frames(&made::elf(&packed(made::program(), 0)), CODE),
        expected
    );
    assert_eq!(frames(&object(&packed(unlinked(), 0)), 0), expected);
}

#[test]
fn decompressed_bytes_are_counted() {
    let unpacked = |file: Vec<u8>| NativeSymbols::open(file).unwrap().unpacked_bytes();
    let debug = made::program()
        .into_iter()
        .filter(|s| s.0.starts_with(".debug"));
    let sizes: u64 = debug.map(|section| section.4.len() as u64).sum();
    assert_eq!(unpacked(made::elf(&made::program())), 0);
    assert_eq!(unpacked(made::elf(&packed(made::program(), 0))), sizes);
}

#[test]
fn sections_that_hold_less_than_they_state_are_damaged() {
    let (_, damage) = frames(&made::elf(&packed(made::program(), 5)), CODE);
    let less = |text: &String| text.contains("smaller than its header states");
    assert!(damage.iter().any(less), "{damage:?}");
    // Too much to be believed.
    let (_, damage) = frames(&made::elf(&packed(made::program(), 1 << 40)), CODE);
    assert!(
        damage.iter().any(|text| text.contains("the limit is")),
        "{damage:?}"
    );
}

#[test]
fn unknown_relocations_are_reported() {
    let mut sections = unlinked();
    for (name, _, _, _, bytes) in &mut sections {
        if name.starts_with(".rela") {
            bytes.chunks_mut(24).for_each(|one| one[8] = 0xC8);
        }
    }
    let (_, damage) = frames(&object(&sections), 0);
    let told = |text: &String| text.contains("its relocations are not known");
    assert!(damage.iter().any(told), "{damage:?}");
}

proptest! {
    #[test]
    fn any_relocations_and_symbols_never_panic(
        relocations in prop::collection::vec(any::<u8>(), 0..100),
        symbols in prop::collection::vec(any::<u8>(), 0..80),
        kind in 0_u8..12,
    ) {
        let mut sections = unlinked();
        for (name, _, _, _, bytes) in &mut sections {
            match *name {
                ".rela.debug_info" => bytes.extend(&relocations),
                ".rela.debug_line" => {
                    bytes.clone_from(&relocations);
                    bytes.chunks_mut(24).filter(|one| one.len() > 8).for_each(|one| one[8] = kind);
                }
                ".symtab" => bytes.extend(&symbols[..symbols.len() / 24 * 24]),
                _ => {}
            }
        }
        frames(&object(&sections), 0);
    }

    #[test]
    fn flipped_bits_never_panic(flips in prop::collection::vec((any::<prop::sample::Index>(), 0u8..8), 1..12)) {
        for sections in [unlinked(), packed(unlinked(), 0), packed(made::program(), 0)] {
            let mut bytes = object(&sections);
            for (at, bit) in &flips {
                let at = at.index(bytes.len());
                bytes[at] ^= 1 << bit;
            }
            if let Ok(symbols) = NativeSymbols::open(bytes) {
                let asked: Vec<Address> = (0..0x60).map(Address::VirtualAddress).collect();
                let mut out = Answers::new();
                symbols.find_all(&asked, &Query::default(), &mut out);
                symbols.find(asked[0x10], &Query::default(), &mut out);
            }
        }
    }
}
