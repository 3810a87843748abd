//! Symbol files of Breakpad, whole and damaged.

use chronosym_symbols::{Address, Answers, Frame, Missing, NativeSymbols, Query};
use proptest::prelude::*;

const FILE: &str = "\
MODULE Linux x86_64 9D4B3B1A2C8F00D1838ED98914E9B7FF0 libapp.so
INFO CODE_ID 1A3B4B9D8F2CD100838ED98914E9B7FF01234567
FILE 0 /src/app/a.cc
FILE 7 /src/app/b with space.h
INLINE_ORIGIN 0 inner(int, char)
INLINE_ORIGIN 3 innermost()
PUBLIC f00 0 _start
FUNC 1000 40 0 outer(int)
INLINE 0 7 0 0 1010 10 1030 8
INLINE 1 12 7 3 1018 4 1034 2
1000 10 5 0
1010 10 11 7
1020 20 9 0
FUNC m 1040 8 0 shared
1040 8 20 0
PUBLIC m 1080 0 tail
STACK CFI INIT 1000 40 .cfa: $rsp 8 +
";

/// Function, file and line of each frame at an address.
fn frames(text: &[u8], address: u64, query: &Query) -> Vec<String> {
    let symbols = NativeSymbols::open(text).expect("a symbol file");
    let mut out = Answers::new();
    symbols.find(Address::Rva(address), query, &mut out);
    assert_eq!(out.damage(), &[] as &[String]);
    let answer = out.get(0).expect("an answer");
    let print = |frame: Frame<'_>| {
        let line = frame.line().map_or(0, |line| line.get());
        let file = frame.file().unwrap_or("?");
        format!("{} {file}:{line}", frame.name().unwrap_or("?"))
    };
    answer.frames().map(print).collect()
}

#[test]
fn functions_lines_and_inlined_calls_are_resolved() {
    let at = |address| frames(FILE.as_bytes(), address, &Query::default());
    let (a, b) = ("/src/app/a.cc", "/src/app/b with space.h");
    assert_eq!(at(0x1000), [format!("outer(int) {a}:5")]);
    let inner = [
        format!("inner(int, char) {b}:11"),
        format!("outer(int) {a}:7"),
    ];
    assert_eq!(at(0x1010), inner);
    let innermost = [
        format!("innermost() {b}:11"),
        format!("inner(int, char) {b}:12"),
        format!("outer(int) {a}:7"),
    ];
    assert_eq!(at(0x1018), innermost);
    assert_eq!(at(0x101c), inner);
    assert_eq!(at(0x1020), [format!("outer(int) {a}:9")]);
    assert_eq!(at(0x1035).len(), 3);
    assert_eq!(at(0x1036)[0], format!("inner(int, char) {a}:9"));
    assert_eq!(at(0x103f), [format!("outer(int) {a}:9")]);
    assert_eq!(at(0x1047), [format!("shared {a}:20")]);
    assert_eq!(at(0x1048), [""; 0]);
    assert_eq!(at(0xeff), [""; 0]);
    assert_eq!(at(0xf10), ["_start ?:0"]);
    assert_eq!(at(0x2000), ["tail ?:0"]);
}

#[test]
fn line_endings_of_windows_and_compression_do_not_matter() {
    let text = FILE.replace('\n', "\r\n");
    let expected = frames(FILE.as_bytes(), 0x1018, &Query::default());
    assert_eq!(frames(text.as_bytes(), 0x1018, &Query::default()), expected);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, FILE.as_bytes()).expect("memory");
    let packed = packed.finish().expect("memory");
    assert_eq!(frames(&packed, 0x1018, &Query::default()), expected);
}

#[test]
fn a_query_without_inlined_calls_or_lines_gets_none() {
    let mut query = Query::default();
    query.inlines = false;
    let at = |query: &Query| frames(FILE.as_bytes(), 0x1018, query);
    assert_eq!(at(&query), ["outer(int) /src/app/b with space.h:11"]);
    query.lines = false;
    assert_eq!(at(&query), ["outer(int) ?:0"]);
}

#[test]
fn the_module_and_what_it_has_are_known() {
    let symbols = NativeSymbols::open(FILE.as_bytes()).expect("a symbol file");
    let id = symbols.build_id().map(ToString::to_string);
    assert_eq!(
        id.as_deref(),
        Some("1a3b4b9d8f2cd100838ed98914e9b7ff01234567")
    );
    assert!(symbols.has_lines() && !symbols.is_stripped() && !symbols.has_offsets());
    assert_eq!(symbols.base(), 0);
    let mut out = Answers::new();
    symbols.find(Address::FileOffset(0x1000), &Query::default(), &mut out);
    assert_eq!(
        out.get(0).and_then(|answer| answer.missing()),
        Some(Missing::NoSegment)
    );
    symbols.find(Address::Rva(0x1048), &Query::default(), &mut out);
    assert_eq!(
        out.get(0).and_then(|answer| answer.missing()),
        Some(Missing::NoName)
    );
}

#[test]
fn records_that_make_no_sense_are_skipped() {
    let text = format!(
        "{FILE}FUNC zz 1 0 f\nFUNC 3000\nFUNC 4000 10 0 \n4000 10 x 0\n\
        FUNC 5000 10 0 deep\nINLINE 4294967295 1 0 0 5000 10\nINLINE 0 1 9 9 5000 10\n5000 10 1 9\n"
    );
    let at = |address| frames(text.as_bytes(), address, &Query::default());
    assert_eq!(at(0x4000), ["? ?:0"]);
    assert_eq!(at(0x5000), ["? ?:1", "deep ?:1"]);
}

#[test]
fn files_cut_short_never_panic() {
    for len in 0..FILE.len() {
        let Ok(symbols) = NativeSymbols::open(&FILE.as_bytes()[..len]) else {
            assert!(len < 61, "{len}");
            continue;
        };
        let addresses: Vec<_> = (0xf00..0x1100).step_by(4).map(Address::Rva).collect();
        symbols.find_all(&addresses, &Query::default(), &mut Answers::new());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn changed_bytes_never_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12)) {
        let mut bytes = FILE.as_bytes().to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(symbols) = NativeSymbols::open(&bytes[..]) {
            let addresses: Vec<_> = (0xf00..0x1100).step_by(4).map(Address::Rva).collect();
            symbols.find_all(&addresses, &Query::default(), &mut Answers::new());
        }
    }
}
