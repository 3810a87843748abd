//! Symbol tables without debug information.

mod made;

use chronosym_symbols::demangle::Dialect;
use chronosym_symbols::style::{Printer, Style};
use chronosym_symbols::{Address, Answers, DebugFileSearch, Error, NativeSymbols, Query};
use made::{elf, symbol};

#[test]
fn labels_that_assemblers_keep_for_the_linker_name_nothing() {
    const LOCAL: u8 = 0;
    const GLOBAL: u8 = 0x10;
    const FUNCTION: u8 = 2;
    let names = b"\0main\0.L0 \0.Lentry\0.Lfunction\0label\0".to_vec();
    let at = |name: &[u8]| names.windows(name.len()).position(|w| w == name).unwrap() as u32;
    let table = [
        vec![0; 24],
        symbol(at(b"main"), GLOBAL | FUNCTION, 0x1000, 0x20),
        symbol(at(b".L0 "), LOCAL, 0x1008, 0),
        symbol(at(b".L0 "), LOCAL, 0x1028, 0),
        symbol(at(b"label"), LOCAL, 0x1030, 0),
        // A function that was given this name on purpose.
        symbol(at(b".Lentry"), GLOBAL, 0x1034, 0),
        symbol(at(b".Lfunction"), LOCAL | FUNCTION, 0x1038, 4),
    ]
    .concat();
    let bytes = elf(&[
        (".text", 1, 6, 0x1000, vec![0x90; 0x40]),
        (".symtab", 2, 0, 0, table),
        (".strtab", 3, 0, 0, names),
    ]);
    let symbols = NativeSymbols::open(&bytes[..]).unwrap();
    let asked = [0x1000, 0x1010, 0x1028, 0x1030, 0x1034, 0x1038].map(Address::VirtualAddress);
    let mut out = Answers::new();
    symbols.find_all(&asked, &Query::default(), &mut out);
    let names: Vec<_> = out
        .iter()
        .map(|a| a.frames().next().and_then(|f| f.name()))
        .collect();
    let expected = ["main", "main", "", "label", ".Lentry", ".Lfunction"];
    assert_eq!(names, expected.map(|n| (!n.is_empty()).then_some(n)));
}

/// The name that replaces that of the debug information, and the one that LLVM's and GNU's tools
/// choose.
#[test]
fn aliases_have_the_name_that_programs_use_and_inner_labels_are_ignored() {
    const LOCAL: u8 = 0;
    const GLOBAL: u8 = 0x10;
    const WEAK: u8 = 0x20;
    const FUNCTION: u8 = 2;
    let names =
        b"\0malloc\0__libc_malloc\0__GI___libc_malloc\0open\0open@@V1\0inner\0last\0".to_vec();
    let at = |name: &[u8]| {
        let name = [name, b"\0"].concat();
        names.windows(name.len()).position(|w| w == name).unwrap() as u32
    };
    let table = [
        vec![0; 24],
        symbol(at(b"malloc"), GLOBAL | FUNCTION, 0x1000, 0x20),
        symbol(at(b"__libc_malloc"), GLOBAL | FUNCTION, 0x1000, 0x20),
        symbol(at(b"__GI___libc_malloc"), LOCAL | FUNCTION, 0x1000, 0x20),
        symbol(at(b"inner"), LOCAL, 0x1008, 0),
        symbol(at(b"open"), WEAK | FUNCTION, 0x1020, 8),
        symbol(at(b"open@@V1"), GLOBAL | FUNCTION, 0x1020, 8),
        symbol(at(b"last"), LOCAL, 0x1030, 0),
    ]
    .concat();
    let bytes = elf(&[
        (".text", 1, 6, 0x1000, vec![0x90; 0x40]),
        (".symtab", 2, 0, 0, table),
        (".strtab", 3, 0, 0, names.clone()),
    ]);
    let symbols = NativeSymbols::open(&bytes[..]).unwrap();
    let addresses = [0x1000, 0x1010, 0x1024, 0x1034].map(Address::VirtualAddress);
    let mut out = Answers::new();
    let mut query = Query::default();
    query.symbol_names = Some(Dialect::Llvm);
    symbols.find_all(&addresses, &query, &mut out);
    let frames = out.iter().flat_map(|answer| answer.frames());
    let names: Vec<_> = frames
        .map(|frame| {
            let symbol = frame.symbol_id().map(|id| out.name(id).to_owned());
            (frame.name().unwrap(), symbol.unwrap())
        })
        .collect();
    let expected = [
        ("malloc", "__GI___libc_malloc"),
        ("malloc", "__GI___libc_malloc"),
        ("open", "open@@V1"),
        ("last", "last"),
    ];
    assert_eq!(
        names,
        expected.map(|(name, symbol)| (name, symbol.to_owned()))
    );
}

#[test]
fn a_local_symbol_is_of_the_file_named_before_it() {
    const GLOBAL: u8 = 0x10;
    const FUNCTION: u8 = 2;
    const FILE: u8 = 4;
    let table = [
        vec![0; 24],
        symbol(1, FILE, 0, 0),
        symbol(9, FUNCTION, 0x1000, 0x10),
        symbol(5, FILE, 0, 0),
        symbol(9, FUNCTION, 0x1010, 0x10),
        // The linker's own come after a file without a name.
        symbol(0, FILE, 0, 0),
        symbol(9, FUNCTION, 0x1020, 0x10),
        symbol(1, FILE, 0, 0),
        symbol(9, GLOBAL | FUNCTION, 0x1030, 0x10),
    ]
    .concat();
    let bytes = elf(&[
        (".text", 1, 6, 0x1000, vec![0x90; 0x40]),
        (".symtab", 2, 0, 0, table),
        (".strtab", 3, 0, 0, b"\0a.c\0b.c\0f\0".to_vec()),
    ]);
    let symbols = NativeSymbols::open(&bytes[..]).unwrap();
    let files = |lines| {
        let mut query = Query::default();
        query.lines = lines;
        let mut out = Answers::new();
        let asked = [0x1000, 0x1010, 0x1020, 0x1030].map(Address::VirtualAddress);
        symbols.find_all(&asked, &query, &mut out);
        let frames = out.iter().flat_map(|answer| answer.frames());
        let files = frames.map(|frame| (frame.file().map(str::to_owned), frame.line()));
        files.collect::<Vec<_>>()
    };
    let named = |name: &str| (Some(name.to_owned()), None);
    let nothing = (None, None);
    assert_eq!(
        files(true),
        [named("a.c"), named("b.c"), nothing.clone(), nothing.clone()]
    );
    assert_eq!(files(false), vec![nothing; 4]);
}

/// An ELF file with one function at 0x1000, of 0x20 bytes.
fn elf_of_one_function(name: &str) -> Vec<u8> {
    elf(&[
        (".text", 1, 6, 0x1000, vec![0x90; 0x40]),
        (
            ".symtab",
            2,
            0,
            0,
            [[0; 24], symbol(1, 2, 0x1000, 0x20).try_into().unwrap()].concat(),
        ),
        (".strtab", 3, 0, 0, format!("\0{name}\0").into_bytes()),
    ])
}

#[test]
fn a_name_that_is_too_long_is_truncated_and_json_reports_it() {
    let name = format!("_Z{}", "9".repeat(20_000));
    let bytes = elf_of_one_function(&name);
    let symbols = NativeSymbols::open(&bytes[..]).unwrap();
    let mut out = Answers::new();
    symbols.find(Address::VirtualAddress(0x1000), &Query::default(), &mut out);
    let print = |demangle| {
        let mut text = Vec::new();
        let printer = Printer::new(Style::Json, &out).demangle(demangle);
        printer.print_all(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    };
    let cut = print(true);
    assert!(cut.contains(&format!("\"{}\"", &name[..4096])), "{cut}");
    assert!(cut.contains(r#""name_reason":"LimitReached""#), "{cut}");
    assert!(print(false).contains(&name) && !print(false).contains("name_reason"));
}

/// Even `--no-demangle` truncates a plain name: every address in the function repeats it.
#[test]
fn a_plain_name_of_megabytes_is_cut_with_a_mark() {
    let name = "x".repeat(2 << 20);
    let bytes = elf_of_one_function(&name);
    let symbols = NativeSymbols::open(&bytes[..]).unwrap();
    let addresses: Vec<_> = (0x1000..0x1020).map(Address::VirtualAddress).collect();
    let mut query = Query::default();
    query.symbol_names = Some(Dialect::Llvm);
    let mut out = Answers::new();
    symbols.find_all(&addresses, &query, &mut out);
    for style in [Style::Text, Style::Json, Style::Llvm, Style::Gnu] {
        for demangle in [true, false] {
            let mut text = Vec::new();
            let printer = Printer::new(style, &out).demangle(demangle);
            printer.print_all(&mut text).unwrap();
            assert!(text.len() < 32 * 5000, "{style:?}: {}", text.len());
            let text = String::from_utf8(text).unwrap();
            assert!(text.contains(&format!("{}…", &name[..4096])), "{style:?}");
            let says_so = text.contains(r#""name_reason":"LimitReached""#);
            assert_eq!(says_so, style == Style::Json && demangle);
        }
    }
}

#[test]
fn unsupported_symbol_formats_are_named() {
    let unsupported = |bytes: &[u8]| match NativeSymbols::open(bytes) {
        Err(Error::Unsupported { what }) => Some(what),
        _ => None,
    };
    // A file of macOS in four forms, and a universal one, truncated; Java's classes have the same
    // magic.
    let damaged = |bytes: &[u8]| matches!(NativeSymbols::open(bytes), Err(Error::Damaged { .. }));
    for magic in [0xFEED_FACE_u32, 0xFEED_FACF] {
        for mut bytes in [magic.to_le_bytes().to_vec(), magic.to_be_bytes().to_vec()] {
            bytes.resize(24, 0);
            assert!(damaged(&bytes));
        }
    }
    let universal = |count| {
        [
            0xCA, 0xFE, 0xBA, 0xBE, 0, 0, 0, count, 0, 0, 0, 0, 0, 0, 0, 0,
        ]
    };
    assert!(damaged(&universal(2)));
    assert!(!damaged(&universal(61)));
    let coff = unsupported(&[0x64, 0x86, 2, 0, 0, 0, 0, 0]);
    assert_eq!(coff, Some("a COFF object file"));
    let cache = unsupported(b"SYMC\x09\0\0\0");
    assert_eq!(cache, Some("a SymCache of symbolic"));
    assert_eq!(
        unsupported(b"!<arch>\n"),
        Some("an archive of object files")
    );
}

#[test]
fn stubs_are_named_after_the_functions_that_they_call() {
    // endbr64; bnd jmp *0x2000(%rip), then a jump to a slot without a relocation.
    let stub = |distance: u32| {
        let jump = [0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25];
        [
            &jump[..],
            &distance.to_le_bytes(),
            &[0x0f, 0x1f, 0x44, 0, 0],
        ]
        .concat()
    };
    let relocation = [0x2000_u64, 1 << 32 | 7, 0].map(u64::to_le_bytes).concat();
    let bytes = elf(&[
        (
            ".plt.sec",
            1,
            6,
            0x1000,
            [stub(0xff5), stub(0x2000)].concat(),
        ),
        (
            ".dynsym",
            11,
            2,
            0x3000,
            [vec![0; 24], symbol(1, 0x12, 0, 0)].concat(),
        ),
        (".dynstr", 3, 2, 0x4000, b"\0puts\0".to_vec()),
        (".rela.plt", 4, 2, 0x5000, relocation),
    ]);
    let symbols = NativeSymbols::open(&bytes[..]).unwrap();
    let mut out = Answers::new();
    let addresses = [0x1000, 0x100f, 0x1010].map(Address::VirtualAddress);
    symbols.find_all(&addresses, &Query::default(), &mut out);
    let names: Vec<_> = out
        .iter()
        .map(|answer| answer.frames().next().and_then(|frame| frame.name()))
        .collect();
    assert_eq!(names, [Some("puts@plt"), Some("puts@plt"), None]);
    let mut text = Vec::new();
    Printer::new(Style::Llvm, &out)
        .print_all(&mut text)
        .unwrap();
    assert_eq!(text, b"??\n??:0:0\n\n".repeat(3));
}

/// Distributions keep supplementary files in a folder for each architecture.
#[test]
fn supplementary_files_are_found_in_a_copy_of_the_folder_of_debug_files() {
    let id = [0xab, 0xcd, 0xef, 1];
    let note = [
        &4_u32.to_le_bytes()[..],
        &4_u32.to_le_bytes(),
        &3_u32.to_le_bytes(),
        b"GNU\0",
        &id,
    ];
    let supplement = elf(&[(".note.gnu.build-id", 7, 2, 0x100, note.concat())]);
    let link = [&b"/usr/lib/debug/.dwz/x86_64-linux-gnu/a.debug\0"[..], &id].concat();
    let program = elf(&[
        (".text", 1, 6, 0x1000, vec![0x90; 0x40]),
        (".gnu_debugaltlink", 1, 0, 0, link),
    ]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program");
    std::fs::write(&path, program).unwrap();
    let is_missing = |root: &std::path::Path| {
        let mut search = DebugFileSearch::default();
        search.folders.push(root.to_owned());
        let symbols = NativeSymbols::open_path_with(&path, search).unwrap();
        symbols.missing_supplement().is_some()
    };
    for location in [
        ".dwz/x86_64-linux-gnu/a.debug",
        ".dwz/a.debug",
        ".build-id/ab/cdef01.debug",
    ] {
        let root = tempfile::tempdir().unwrap();
        assert!(is_missing(root.path()));
        let file = root.path().join(location);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, &supplement).unwrap();
        assert!(!is_missing(root.path()), "{location}");
    }
}
