//! Damaged object files: whatever is wrong, there is a reason or an answer, never a panic, and
//! never without end.

mod made;

use std::sync::OnceLock;

use chronosym_symbols::{Address, Answers, Missing, NativeSymbols, Query};
use made::{elf, with_length};
use proptest::prelude::*;

/// A small program with debug information, hand-made: one unit, one function with one inlined into
/// it, four lines.
fn program() -> &'static [u8] {
    static PROGRAM: OnceLock<Vec<u8>> = OnceLock::new();
    PROGRAM.get_or_init(|| elf(&made::program()))
}

fn answers(bytes: &[u8]) -> Option<Answers> {
    let symbols = NativeSymbols::open(bytes).ok()?;
    let mut asked: Vec<Address> = (0xff0..0x1060).map(Address::VirtualAddress).collect();
    asked.extend([0, 1 << 40, u64::MAX].map(Address::Rva));
    asked.extend([0, 64, u64::MAX].map(Address::FileOffset));
    let mut out = Answers::new();
    let mut query = Query::default();
    (query.declarations, query.skip_line_zero) = (true, true);
    symbols.find_all(&asked, &query, &mut out);
    assert_eq!(out.len(), asked.len());
    for address in [0xfff, 0x1000, 0x1010, 0x103f, 0x2000] {
        let _ = (symbols.locals(address), symbols.declaration(address));
    }
    // Reading every frame must be as safe as finding it.
    for answer in out.iter() {
        for frame in answer.frames() {
            let _ = (
                frame.demangled(),
                frame.file(),
                frame.line(),
                frame.function_start(),
                frame.declaration(),
            );
        }
    }
    Some(out)
}

/// Name and line of each frame at an address.
fn frames(out: &Answers, va: u64) -> Vec<(String, u32)> {
    let answer = out.get((va - 0xff0) as usize).expect("asked");
    answer
        .frames()
        .map(|f| {
            (
                f.name().unwrap_or("").to_owned(),
                f.line().map_or(0, |l| l.get()),
            )
        })
        .collect()
}

#[test]
fn the_program_is_sound_before_it_is_damaged() {
    let out = answers(program()).expect("an ELF file");
    assert_eq!(out.damage(), &[] as &[String]);
    assert_eq!(frames(&out, 0x1000), [("outer".into(), 1)]);
    assert_eq!(
        frames(&out, 0x1010),
        [("inner".into(), 11), ("outer".into(), 7)]
    );
    assert_eq!(
        frames(&out, 0x101f),
        [("inner".into(), 11), ("outer".into(), 7)]
    );
    assert_eq!(frames(&out, 0x1020), [("outer".into(), 3)]);
    assert_eq!(frames(&out, 0x1040), []);
    assert_eq!(frames(&out, 0xfff), []);
    let beyond = out.get((0x1040 - 0xff0) as usize).and_then(|a| a.missing());
    assert_eq!(beyond, Some(Missing::OutsideImage));
}

/// Returns the offset of a section's bytes in the program.
fn find(bytes: &[u8], what: &[u8]) -> usize {
    bytes
        .windows(what.len())
        .position(|w| w == what)
        .expect("it is there")
}

#[test]
fn an_origin_that_is_the_entry_itself_is_damage_not_a_name() {
    let mut bytes = program().to_vec();
    // `inner`'s entry becomes one more inlined function whose origin is itself.
    let origin = find(&bytes, b"\x04inner\0") - find(&bytes, b"unit.c\0") + 4 + 8;
    let inlined = find(&bytes, b"\x02outer\0") + 7 + 16;
    assert_eq!(bytes[inlined], 3);
    let own = (origin + (inlined - find(&bytes, b"\x04inner\0"))) as u32;
    bytes[inlined + 1..inlined + 5].copy_from_slice(&own.to_le_bytes());
    let out = answers(&bytes).expect("an ELF file");
    assert_eq!(frames(&out, 0x1010)[0].0, "");
    assert!(
        out.damage().iter().any(|d| d.contains("cycle")),
        "{:?}",
        out.damage()
    );
    // Answers that do not depend on it are complete.
    assert_eq!(frames(&out, 0x1000), [("outer".into(), 1)]);
}

#[test]
fn an_unknown_abbreviation_names_nothing() {
    let mut bytes = program().to_vec();
    let outer = find(&bytes, b"\x02outer\0");
    bytes[outer] = 0x55;
    let out = answers(&bytes).expect("an ELF file");
    let names: Vec<_> = frames(&out, 0x1000);
    assert!(names.iter().all(|(name, _)| name.is_empty()), "{names:?}");
    assert!(
        out.damage().iter().any(|d| d.contains("abbreviation")),
        "{:?}",
        out.damage()
    );
}

#[test]
fn a_table_of_sections_beyond_the_file_is_refused() {
    let mut bytes = program().to_vec();
    bytes[40..48].copy_from_slice(&(u64::MAX - 3).to_le_bytes());
    assert!(NativeSymbols::open(&bytes[..]).is_err());
    assert!(NativeSymbols::open(&b"\x7fELF"[..]).is_err());
    assert!(NativeSymbols::open(&b""[..]).is_err());
    assert!(NativeSymbols::open(&b"MZ"[..]).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn flipped_bits_never_panic(flips in prop::collection::vec((any::<prop::sample::Index>(), 0u8..8), 1..12)) {
        let mut bytes = program().to_vec();
        for (at, bit) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
        }
        let _ = answers(&bytes);
    }

    #[test]
    fn a_file_cut_short_never_panics(len in 0usize..2000) {
        let bytes = program();
        let _ = answers(&bytes[..len.min(bytes.len())]);
    }

    #[test]
    fn any_bytes_in_the_debug_sections_never_panic(
        abbrev in prop::collection::vec(any::<u8>(), 0..60),
        info in prop::collection::vec(any::<u8>(), 0..200),
        line in prop::collection::vec(any::<u8>(), 0..200),
        ranges in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        let aranges = [&0x2cu32.to_le_bytes()[..], &[2, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0],
            &0x1000u64.to_le_bytes(), &0x40u64.to_le_bytes(), &[0; 16]].concat();
        let info = with_length([&[4, 0, 0, 0, 0, 0, 8][..], &info].concat());
        let bytes = elf(&[
            (".text", 1, 6, 0x1000, vec![0x90; 0x40]),
            (".debug_abbrev", 1, 0, 0, abbrev),
            (".debug_aranges", 1, 0, 0, aranges),
            (".debug_info", 1, 0, 0, info),
            (".debug_line", 1, 0, 0, line),
            (".debug_ranges", 1, 0, 0, ranges),
        ]);
        let _ = answers(&bytes);
    }
}

#[test]
fn code_without_a_line_has_the_line_before_it_on_request() {
    let mut sections = made::program();
    let line = &mut sections[3].4;
    // Lines 1, 0 and 3.
    let at = find(line, &[3, 10, 1, 2, 16, 3, 0x78]);
    (line[at + 1], line[at + 6]) = (0x7f, 3);
    let bytes = elf(&sections);
    let symbols = NativeSymbols::open(&bytes[..]).expect("an ELF file");
    let addresses = [0x1000, 0x1010, 0x1018, 0x1020].map(Address::VirtualAddress);
    let lines = |query: &Query, addresses: &[Address]| {
        let mut out = Answers::new();
        symbols.find_all(addresses, query, &mut out);
        let inner = out.iter().filter_map(|answer| answer.frames().next());
        let lines = inner.map(|frame| {
            let line = frame.line().map_or(0, |line| line.get());
            (line, frame.line_approximate())
        });
        lines.collect::<Vec<_>>()
    };
    let mut query = Query::default();
    let exact = [(1, false), (0, false), (0, false), (3, false)];
    assert_eq!(lines(&query, &addresses), exact);
    query.skip_line_zero = true;
    let approximate = [(1, false), (1, true), (1, true), (3, false)];
    assert_eq!(lines(&query, &addresses), approximate);
    for (address, expected) in addresses.iter().zip(approximate) {
        assert_eq!(lines(&query, &[*address]), [expected]);
    }
}

/// A program with a variable and a parameter: `outer` has both, each of an array type.
fn with_variables() -> Vec<(&'static str, u32, u64, u64, Vec<u8>)> {
    let abbrev = [
        &[
            1, 0x11, 1, 0x03, 0x08, 0x10, 0x17, 0x11, 0x01, 0x12, 0x07, 0, 0,
        ][..],
        &[
            2, 0x2e, 1, 0x03, 0x08, 0x3a, 0x0b, 0x3b, 0x0b, 0x11, 0x01, 0x12, 0x07, 0x40, 0x18, 0,
            0,
        ],
        &[
            3, 0x34, 0, 0x03, 0x08, 0x3a, 0x0b, 0x3b, 0x0b, 0x49, 0x13, 0x02, 0x17, 0, 0,
        ],
        &[
            4, 0x05, 0, 0x03, 0x08, 0x3a, 0x0b, 0x3b, 0x0b, 0x49, 0x13, 0x02, 0x18, 0, 0,
        ],
        &[5, 0x24, 0, 0x0b, 0x0b, 0, 0],
        &[6, 0x01, 1, 0x49, 0x13, 0, 0],
        &[7, 0x21, 0, 0x2f, 0x0b, 0, 0],
        &[
            8, 0x34, 0, 0x03, 0x08, 0x3a, 0x0b, 0x3b, 0x0b, 0x49, 0x13, 0x02, 0x18, 0, 0,
        ],
        &[0],
    ]
    .concat();
    let mut info = vec![4, 0, 0, 0, 0, 0, 8];
    info.extend(b"\x01unit.c\0");
    info.extend(0u32.to_le_bytes());
    info.extend(0x1000u64.to_le_bytes());
    info.extend(0x40u64.to_le_bytes());
    let number = (info.len() as u32 + 4).to_le_bytes();
    info.extend([5, 4]);
    let array = (info.len() as u32 + 4).to_le_bytes();
    info.extend([&[6][..], &number, &[7, 2, 0]].concat());
    info.extend(
        [
            &b"\x08fixed\0\x01\x09"[..],
            &array,
            &[9, 3],
            &0x1020u64.to_le_bytes(),
        ]
        .concat(),
    );
    info.extend(b"\x02outer\0\x01\x05");
    info.extend(0x1000u64.to_le_bytes());
    info.extend(0x40u64.to_le_bytes());
    info.extend([1, 0x56]);
    info.extend([&b"\x04argument\0\x01\x06"[..], &number, &[2, 0x91, 0x70]].concat());
    info.extend([&b"\x03local\0\x01\x07"[..], &array, &0u32.to_le_bytes()].concat());
    info.extend([0, 0]);
    let locations = [
        &0u64.to_le_bytes()[..],
        &8u64.to_le_bytes(),
        &[2, 0, 0x91, 0x60],
        &[0; 16],
    ]
    .concat();
    let mut sections = made::program();
    for (name, bytes) in [
        (".debug_abbrev", abbrev),
        (".debug_info", with_length(info)),
    ] {
        let own = sections.iter_mut().find(|section| section.0 == name);
        own.expect("in the program").4 = bytes;
    }
    sections.push((".debug_loc", 1, 0, 0, locations));
    sections
}

#[test]
fn variables_cut_short_or_changed_are_no_panic() {
    let whole = elf(&with_variables());
    let symbols = NativeSymbols::open(&whole[..]).expect("an ELF file");
    let locals = symbols.locals(0x1004);
    let names: Vec<_> = locals.iter().filter_map(|l| l.name.as_deref()).collect();
    assert_eq!(names, ["argument", "local"]);
    assert_eq!(
        (locals[0].frame_offset, locals[0].size),
        (Some(-16), Some(4))
    );
    assert_eq!(
        (locals[1].frame_offset, locals[1].size),
        (Some(-32), Some(12))
    );
    assert_eq!(
        (locals[1].line, locals[1].function.as_deref()),
        (7, Some("outer"))
    );
    let declared = symbols.declaration(0x1024);
    assert_eq!(declared, Some(("unit.c".to_owned(), 9)));
    // Every length of each section, and every byte of it changed.
    for name in [".debug_abbrev", ".debug_info", ".debug_line", ".debug_loc"] {
        let at = |sections: &[(&str, u32, u64, u64, Vec<u8>)]| {
            sections.iter().position(|section| section.0 == name)
        };
        let index = at(&with_variables()).expect("in the program");
        let len = with_variables()[index].4.len();
        for cut in 0..len {
            let mut sections = with_variables();
            sections[index].4.truncate(cut);
            let _ = answers(&elf(&sections));
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut sections = with_variables();
                sections[index].4[cut] = value;
                let _ = answers(&elf(&sections));
            }
        }
    }
}

#[test]
fn a_function_that_the_linker_dropped_names_nothing() {
    // Its address became 0, its length still covers the whole code: the linker leaves such entries.
    let mut bytes = program().to_vec();
    let outer = find(&bytes, b"\x02outer\0") + 7;
    bytes[outer..outer + 8].copy_from_slice(&0u64.to_le_bytes());
    bytes[outer + 8..outer + 16].copy_from_slice(&0x2000u64.to_le_bytes());
    let out = answers(&bytes).expect("an ELF file");
    assert_eq!(frames(&out, 0x1000), [(String::new(), 1)]);
    assert_eq!(out.damage(), &[] as &[String]);
}

/// Units of one instruction each, all of which refer to one line table with many files.
fn sharing(units: u64) -> Vec<u8> {
    let abbrev = [
        &[1, 0x11, 0, 0x10, 0x17, 0x11, 0x01, 0x12, 0x07, 0, 0][..],
        &[0],
    ]
    .concat();
    let mut info = Vec::new();
    for unit in 0..units {
        let mut one = vec![4, 0, 0, 0, 0, 0, 8, 1];
        one.extend(0u32.to_le_bytes());
        one.extend((0x1000 + unit).to_le_bytes());
        one.extend(1u64.to_le_bytes());
        info.extend(with_length(one));
    }
    let mut header = vec![1, 1, 1, 0xfb, 14, 13];
    header.extend([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]);
    header.push(0);
    for file in 0..units {
        header.extend(format!("{file:x}.c\0\0\0\0").bytes());
    }
    header.push(0);
    let mut line = 4u16.to_le_bytes().to_vec();
    line.extend((header.len() as u32).to_le_bytes());
    line.extend(header);
    line.extend([0, 9, 2]);
    line.extend(0x1000u64.to_le_bytes());
    line.extend((0..units).flat_map(|_| [1, 2, 1]));
    line.extend([1, 0, 1, 1]);
    elf(&[
        (".text", 1, 6, 0x1000, vec![0x90; units as usize]),
        (".debug_abbrev", 1, 0, 0, abbrev),
        (".debug_info", 1, 0, 0, info),
        (".debug_line", 1, 0, 0, with_length(line)),
    ])
}

#[test]
fn a_line_table_that_all_units_share_is_not_read_for_each() {
    const UNITS: u64 = 18_000;
    let ask = |symbols: &NativeSymbols, addresses: &[Address]| {
        let mut out = Answers::new();
        symbols.find_all(addresses, &Query::default(), &mut out);
        out
    };
    let file = sharing(UNITS);
    let symbols = NativeSymbols::open(file.as_slice()).expect("an ELF file");
    let all: Vec<_> = (0x1000..0x1000 + UNITS)
        .map(Address::VirtualAddress)
        .collect();
    let watch = chronosym_support::growth::Stopwatch::start();
    let out = ask(&symbols, &all);
    assert_eq!(out.len(), all.len());
    let shared = |text: &String| text.contains("share the same line tables");
    assert!(out.damage().iter().any(shared), "{:?}", out.damage());
    // Nothing is known to be wrong: it is too much.
    let missing: Vec<_> = out.iter().filter_map(|answer| answer.missing()).collect();
    assert!(!missing.is_empty());
    assert!(
        missing
            .iter()
            .all(|&missing| missing == Missing::LimitReached)
    );
    // The limit is the asker's.
    let with_lines = |line_share| {
        let mut query = Query::default();
        query.line_share = line_share;
        let mut out = Answers::new();
        let symbols = NativeSymbols::open(file.as_slice()).expect("an ELF file");
        symbols.find_all(&all, &query, &mut out);
        let line = |answer: chronosym_symbols::Answer<'_>| answer.frames().next()?.line();
        out.iter().filter(|answer| line(*answer).is_some()).count()
    };
    let (few, more) = (with_lines(1), with_lines(8));
    assert!(few > 0 && few < more && more < 20, "{few}, {more}");
    // One by one, too.
    for address in all.iter().step_by(9) {
        ask(&symbols, &[*address]);
    }
    let took = watch.used();
    assert!(took.as_secs() < 20, "{took:?}");

    // A few units may share one, and may be resolved repeatedly.
    let file = sharing(4);
    let symbols = NativeSymbols::open(file.as_slice()).expect("an ELF file");
    for _ in 0..2_000 {
        let out = ask(&symbols, &all[..4]);
        assert_eq!(out.damage(), &[] as &[String]);
        let line = |i| out.get(i)?.frames().next()?.line();
        assert!((0..4).all(|i| line(i).is_some()));
    }
}
