//! Function tables of Go, made by hand in each layout, whole and damaged.

#[path = "made/go.rs"]
mod made;

use std::path::Path;

use chronosym_symbols::{Address, Answers, Frame, NativeSymbols, Query};
use proptest::prelude::*;

/// Function, file and line of each frame at each address of the code and around it.
fn frames(bytes: &[u8], query: &Query) -> Option<Vec<Vec<String>>> {
    let symbols = NativeSymbols::open(bytes).ok()?;
    let addresses: Vec<_> = (0xff0..0x1090).map(Address::VirtualAddress).collect();
    let mut out = Answers::new();
    symbols.find_all(&addresses, query, &mut out);
    assert_eq!(out.len(), addresses.len());
    let all = out.iter().map(|answer| {
        let frames = answer.frames().map(print);
        frames.collect()
    });
    Some(all.collect())
}

fn print(frame: Frame<'_>) -> String {
    let line = frame.line().map_or(0, |line| line.get());
    let file = frame.file().unwrap_or("?");
    format!("{} {file}:{line}", frame.name().unwrap_or("?"))
}

fn at(all: &[Vec<String>], address: usize) -> Vec<&str> {
    all[address - 0xff0].iter().map(String::as_str).collect()
}

#[test]
fn each_layout_is_resolved_with_sections_and_without() {
    for magic in made::LAYOUTS {
        for with_sections in [true, false] {
            let program = made::program(magic, with_sections);
            let all = frames(&program, &Query::default()).expect("an ELF file");
            let case = format!("{magic:x} {with_sections}");
            assert_eq!(at(&all, 0xfff), [""; 0], "{case}");
            assert_eq!(at(&all, 0x1000), ["main.outer app/a.go:1"], "{case}");
            assert_eq!(at(&all, 0x100f), ["main.outer app/a.go:7"], "{case}");
            for inlined in [0x1010, 0x101f] {
                let expected = ["main.inner app/b.go:11", "main.outer app/a.go:7"];
                assert_eq!(at(&all, inlined), expected, "{case}");
            }
            assert_eq!(at(&all, 0x1020), ["main.outer app/a.go:3"], "{case}");
            assert_eq!(at(&all, 0x105f), ["main.leaf app/b.go:20"], "{case}");
            // Padding after the last function, and code of C after it.
            assert_eq!(at(&all, 0x1060), [""; 0], "{case}");
            assert_eq!(at(&all, 0x1070), [""; 0], "{case}");
        }
    }
}

/// Go 1.27 does not state the start of the text in the function table.
#[test]
fn a_program_of_go_1_27_is_resolved() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/go");
    let symbols = NativeSymbols::open_path(&folder.join("tiny-1.27.elf.xz")).expect("a program");
    let expected = std::fs::read_to_string(folder.join("tiny-1.27.tsv")).expect("answers");
    let rows = expected.lines().map(|line| {
        let (address, frames) = line.split_once('\t').expect("an address and frames");
        let address = u64::from_str_radix(&address[2..], 16).expect("a number");
        (Address::VirtualAddress(address), frames)
    });
    let (addresses, expected): (Vec<_>, Vec<_>) = rows.unzip();
    let mut out = Answers::new();
    symbols.find_all(&addresses, &Query::default(), &mut out);
    for ((answer, expected), address) in out.iter().zip(expected).zip(&addresses) {
        let frames: Vec<_> = answer.frames().map(print).collect();
        let expected: Vec<_> = expected.split('\t').filter(|&frame| frame != "-").collect();
        assert_eq!(frames, expected, "{address:x?}");
    }
    assert!(out.len() > 400 && out.damage().is_empty());
}

#[test]
fn a_query_without_inlined_calls_or_lines_gets_none() {
    let program = made::program(0xf1, true);
    let mut query = Query::default();
    query.inlines = false;
    let all = frames(&program, &query).expect("an ELF file");
    assert_eq!(at(&all, 0x1010), ["main.outer app/b.go:11"]);
    query.lines = false;
    let all = frames(&program, &query).expect("an ELF file");
    assert_eq!(at(&all, 0x1010), ["main.outer ?:0"]);
}

#[test]
fn a_go_binary_is_not_stripped() {
    let program = made::program(0xf1, true);
    let symbols = NativeSymbols::open(&program[..]).expect("an ELF file");
    assert!(symbols.has_lines() && !symbols.is_stripped());
    let mut renamed = program;
    let at = renamed
        .windows(10)
        .rposition(|name| name == b".gopclntab")
        .expect("a name");
    renamed[at..at + 10].copy_from_slice(b".other_tab");
    let symbols = NativeSymbols::open(&renamed[..]).expect("an ELF file");
    assert!(!symbols.has_lines() && symbols.is_stripped());
}

#[test]
fn a_position_that_does_not_end_is_cut_off() {
    // The caller of the inlined call is the call itself.
    let (table, mut tree) = made::table(0xf1);
    tree[8] = 0x10;
    let program = made::program_of(&table, &tree, true);
    let all = frames(&program, &Query::default()).expect("an ELF file");
    let own = at(&all, 0x1010);
    assert_eq!(own.last(), Some(&"main.outer app/b.go:11"));
    assert!(own.len() <= 257, "{}", own.len());
}

#[test]
fn invalid_trees_yield_no_inlined_calls() {
    let (table, tree) = made::table(0xf1);
    // A name that starts within another, an offset beyond the function.
    for (at, byte) in [(4, 3), (9, 1), (4, 0xff)] {
        let mut tree = tree.clone();
        tree[at] = byte;
        let program = made::program_of(&table, &tree, true);
        let all = frames(&program, &Query::default()).expect("an ELF file");
        assert_eq!(self::at(&all, 0x1010), ["main.outer app/b.go:11"]);
    }
}

#[test]
fn tables_cut_short_never_panic() {
    for magic in made::LAYOUTS {
        let (table, tree) = made::table(magic);
        for len in 0..table.len() {
            let program = made::program_of(&table[..len], &tree, true);
            frames(&program, &Query::default());
        }
        for len in 0..tree.len() {
            let program = made::program_of(&table, &tree[..len], false);
            frames(&program, &Query::default());
        }
        let program = made::program(magic, true);
        for len in (0..program.len()).step_by(7) {
            frames(&program[..len], &Query::default());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn flipped_bits_never_panic(
        layout in 0..made::LAYOUTS.len(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0u8..8), 1..12),
    ) {
        let mut bytes = made::program(made::LAYOUTS[layout], true);
        for (at, bit) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
        }
        frames(&bytes, &Query::default());
    }
}
