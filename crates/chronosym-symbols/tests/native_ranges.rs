//! Functions in several ranges: the start of each range, and range lists that many entries share.

mod made;

use std::time::Duration;

use chronosym_support::growth::Stopwatch;
use chronosym_symbols::{Address, Answers, NativeSymbols, Query};
use made::{elf, with_length};

/// One unit without code of its own in `.debug_abbrev` 1 (root, children), with these entries after
/// the root.
fn unit(entries: &[u8]) -> Vec<u8> {
    let mut info = vec![5, 0, 1, 8, 0, 0, 0, 0];
    info.push(1);
    info.extend(0x1000u64.to_le_bytes());
    info.extend(0x1000u64.to_le_bytes());
    info.extend(entries);
    info.push(0);
    with_length(info)
}

/// 1: the root; 2: a function with ranges and a name; 3: the same with an entry; 4: a function with
/// two addresses and children; 5: inlined, with ranges; 6: a unit with ranges; 7: a unit with
/// nothing but lines.
fn abbreviations() -> Vec<u8> {
    [
        &[1, 0x11, 1, 0x11, 0x01, 0x12, 0x07, 0, 0][..],
        &[2, 0x2e, 0, 0x03, 0x08, 0x55, 0x17, 0, 0],
        &[3, 0x2e, 0, 0x03, 0x08, 0x52, 0x0b, 0x55, 0x17, 0, 0],
        &[4, 0x2e, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0],
        &[5, 0x1d, 0, 0x55, 0x17, 0, 0],
        &[6, 0x11, 0, 0x55, 0x17, 0x11, 0x01, 0, 0],
        &[7, 0x11, 0, 0x10, 0x17, 0, 0],
        &[0],
    ]
    .concat()
}

/// Returns a section of range lists, the first of which starts at [`LIST`].
fn lists(ranges: &[u8]) -> Vec<u8> {
    with_length([&[5, 0, 8, 0, 0, 0, 0, 0], ranges].concat())
}

const LIST: [u8; 4] = [12, 0, 0, 0];

/// A range of a list: DW_RLE_start_length.
fn range(start: u64, len: u8) -> Vec<u8> {
    [&[7][..], &start.to_le_bytes(), &[len]].concat()
}

fn program(info: Vec<u8>, lists: Vec<u8>, line: Vec<u8>) -> NativeSymbols {
    let bytes = elf(&[
        (".text", 1, 6, 0x1000, vec![0x90; 0x1000]),
        (".debug_abbrev", 1, 0, 0, abbreviations()),
        (".debug_info", 1, 0, 0, info),
        (".debug_rnglists", 1, 0, 0, lists),
        (".debug_line", 1, 0, 0, line),
    ]);
    NativeSymbols::open(&bytes[..]).unwrap()
}

/// Returns the start of the code that contains each address.
fn starts(symbols: &NativeSymbols, addresses: &[u64]) -> Vec<Option<u64>> {
    let asked: Vec<Address> = addresses
        .iter()
        .map(|&a| Address::VirtualAddress(a))
        .collect();
    let mut out = Answers::new();
    symbols.find_all(&asked, &Query::default(), &mut out);
    assert!(out.damage().is_empty(), "{:?}", out.damage());
    let start = |answer: chronosym_symbols::Answer<'_>| answer.frames().last()?.function_start();
    let all: Vec<_> = out.iter().map(start).collect();
    // One at a time they are answered in another way.
    for (address, together) in asked.iter().zip(&all) {
        symbols.find(*address, &Query::default(), &mut out);
        assert_eq!(out.get(0).and_then(start), *together, "{address:x?}");
    }
    all
}

#[test]
fn a_function_in_ranges_starts_with_its_first_range() {
    // The hot range is first in the list, the cold one has the lower address, another is beyond
    // both.
    let pieces = [range(0x1800, 0x40), range(0x1010, 8), range(0x1900, 8)].concat();
    let info = unit(&[&b"\x02split\0"[..], &LIST].concat());
    let symbols = program(info, lists(&[&pieces[..], &[0]].concat()), Vec::new());
    assert_eq!(
        starts(&symbols, &[0x1800, 0x183f, 0x1010, 0x1017, 0x1905, 0x1018]),
        [
            Some(0x1800),
            Some(0x1800),
            Some(0x1010),
            Some(0x1010),
            Some(0x1900),
            None
        ]
    );
}

#[test]
fn a_stated_entry_is_the_start_of_a_function() {
    // Eight bytes into the first range; addresses before it are relative to the range.
    let pieces = [range(0x1800, 0x40), range(0x1010, 8)].concat();
    let info = unit(&[&b"\x03split\0\x08"[..], &LIST].concat());
    let symbols = program(info, lists(&[&pieces[..], &[0]].concat()), Vec::new());
    assert_eq!(
        starts(&symbols, &[0x1808, 0x180a, 0x1807, 0x1012]),
        [Some(0x1808), Some(0x1808), Some(0x1800), Some(0x1010)]
    );
}

#[test]
fn pieces_that_overlap_count_once() {
    let pieces = [range(0x1800, 0x40), range(0x1810, 0x40), range(0x1800, 4)].concat();
    let first = [&b"\x02f\0"[..], &LIST].concat();
    // The walk continues with the next entry.
    let next = [
        &b"\x04next\0"[..],
        &0x1000u64.to_le_bytes(),
        &0x40u64.to_le_bytes(),
        &[0],
    ]
    .concat();
    let info = unit(&[first, next].concat());
    let symbols = program(info, lists(&[&pieces[..], &[0]].concat()), Vec::new());
    assert_eq!(
        starts(&symbols, &[0x1802, 0x1820, 0x1848, 0x1010]),
        [Some(0x1800), Some(0x1800), Some(0x1810), Some(0x1000)]
    );
}

/// GNU's linker makes the debug information of a dropped copy refer to the remaining copy, which is
/// the first; Clang, unlike GCC, omits its units from the table of addresses.
#[test]
fn the_linked_copy_is_found_even_if_its_unit_is_not_listed() {
    let function = |name: &str| {
        let place = [0x1000u64.to_le_bytes(), 0x40u64.to_le_bytes()].concat();
        unit(&[b"\x04", name.as_bytes(), b"\0", &place, b"\0"].concat())
    };
    let (kept, dropped) = (function("kept"), function("dropped"));
    let offset = kept.len() as u32;
    let addresses: Vec<u8> = [0x1000u64, 0x1000, 0, 0].map(u64::to_le_bytes).concat();
    let listed = [
        &[2, 0][..],
        &offset.to_le_bytes(),
        &[8, 0, 0, 0, 0, 0],
        &addresses,
    ];
    let named = |comment: &[u8]| {
        let bytes = elf(&[
            (".text", 1, 6, 0x1000, vec![0x90; 0x1000]),
            (".comment", 1, 0, 0, comment.to_vec()),
            (".debug_abbrev", 1, 0, 0, abbreviations()),
            (".debug_aranges", 1, 0, 0, with_length(listed.concat())),
            (".debug_info", 1, 0, 0, [&kept[..], &dropped].concat()),
        ]);
        let symbols = NativeSymbols::open(&bytes[..]).unwrap();
        let mut out = Answers::new();
        symbols.find(Address::VirtualAddress(0x1010), &Query::default(), &mut out);
        let frame = out.get(0).unwrap().frames().next().unwrap();
        frame.name().unwrap().to_owned()
    };
    assert_eq!(named(b"GCC: (GNU) 14.2.0\0clang version 19.1\0"), "kept");
    // GCC lists all units, so the units need not be searched.
    assert_eq!(named(b"GCC: (GNU) 14.2.0\0"), "dropped");
}

/// Resolves one address, alone and together with another, in a file crafted to take endless time.
/// Returns the reported damage.
fn asked_in_time(symbols: &NativeSymbols) -> Vec<String> {
    let watch = Stopwatch::start();
    let mut out = Answers::new();
    let address = Address::VirtualAddress;
    symbols.find_all(
        &[address(0x1000), address(0x1e00)],
        &Query::default(),
        &mut out,
    );
    let damage = out.damage().to_vec();
    symbols.find(address(0x1000), &Query::default(), &mut out);
    assert_eq!(out.damage(), damage);
    assert!(watch.used() < Duration::from_secs(20));
    damage
}

const MANY: usize = 30_000;

#[test]
fn functions_that_share_one_list_are_read_as_far_as_its_size_allows() {
    let list = [range(0x1800, 4).repeat(MANY), vec![0]].concat();
    let function = [&b"\x02f\0"[..], &LIST].concat();
    let first = [
        &b"\x04first\0"[..],
        &0x1000u64.to_le_bytes(),
        &0x40u64.to_le_bytes(),
        &[0],
    ]
    .concat();
    let info = unit(&[first, function.repeat(MANY)].concat());
    let symbols = program(info, lists(&list), Vec::new());
    let damage = asked_in_time(&symbols);
    assert!(damage[0].contains("share"), "{damage:?}");
    // Addresses before it are resolved.
    let mut out = Answers::new();
    symbols.find(Address::VirtualAddress(0x1000), &Query::default(), &mut out);
    let names: Vec<_> = out
        .iter()
        .flat_map(|a| a.frames())
        .map(|f| f.name())
        .collect();
    assert_eq!(names, [Some("first")]);
}

#[test]
fn inlined_functions_that_share_one_list_are_read_as_far_as_its_size_allows() {
    // Entries that set a base and hold no range are work as well: DW_RLE_base_address.
    let base = [&[5][..], &0x1000u64.to_le_bytes()].concat();
    for entry in [range(0x1000, 4), base] {
        let list = [entry.repeat(MANY), vec![0]].concat();
        let inlined = [&[5][..], &LIST].concat();
        let outer = [
            &b"\x04outer\0"[..],
            &0x1000u64.to_le_bytes(),
            &0x40u64.to_le_bytes(),
        ]
        .concat();
        let info = unit(&[outer, inlined.repeat(MANY), vec![0]].concat());
        let symbols = program(info, lists(&list), Vec::new());
        let damage = asked_in_time(&symbols);
        assert!(damage[0].contains("share"), "{damage:?}");
    }
}

#[test]
fn units_that_share_one_list_are_read_as_far_as_its_size_allows() {
    let list = [range(0x1800, 4).repeat(MANY), vec![0]].concat();
    let root = [&[5, 0, 1, 8, 0, 0, 0, 0, 6][..], &LIST, &0u64.to_le_bytes()].concat();
    let symbols = program(with_length(root).repeat(MANY), lists(&list), Vec::new());
    let damage = asked_in_time(&symbols);
    assert!(damage[0].contains("extents of the units"), "{damage:?}");
}

#[test]
fn units_that_share_one_line_table_are_read_as_far_as_its_size_allows() {
    let mut line = vec![4, 0];
    let mut header = vec![1, 1, 1, 0xfb, 14, 13];
    header.extend([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]);
    header.extend(b"\0unit.c\0\0\0\0\0");
    line.extend((header.len() as u32).to_le_bytes());
    line.extend(header);
    line.extend([0, 9, 2]);
    line.extend(0x1000u64.to_le_bytes());
    line.extend([0x20u8].repeat(MANY));
    line.extend([0, 1, 1]);
    let root = [5, 0, 1, 8, 0, 0, 0, 0, 7, 0, 0, 0, 0];
    let info = with_length(root.to_vec()).repeat(MANY);
    let symbols = program(info, Vec::new(), with_length(line));
    let damage = asked_in_time(&symbols);
    assert!(damage[0].contains("extents of the units"), "{damage:?}");
}
