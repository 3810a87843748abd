//! Files of macOS: compares images, universal files and dSYM bundles with the output of
//! llvm-symbolizer.

use std::path::{Path, PathBuf};

use chronosym_symbols::identity::{BuildId, FileIdentity, Wanted};
use chronosym_symbols::store::{identity_of, read_identity};
use chronosym_symbols::{
    Address, Answers, DebugFileSearch, Error, NativeSymbols, ObjectPath, Query,
};

const DWARF: &str = "Contents/Resources/DWARF/app";

fn testdata(path: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/macho");
    root.join(path)
}

/// Addresses, and the frames that llvm-symbolizer has for each: `name file:line`.
fn expected(processor: &str) -> Vec<(u64, Vec<String>)> {
    let text = std::fs::read_to_string(testdata(&format!("{processor}.tsv"))).unwrap();
    let parse = |line: &str| {
        let mut fields = line.split('\t');
        let address = fields.next().unwrap().trim_start_matches("0x");
        let address = u64::from_str_radix(address, 16).unwrap();
        (address, fields.map(str::to_owned).collect())
    };
    text.lines().map(parse).collect()
}

fn frames(symbols: &NativeSymbols, addresses: &[Address]) -> Vec<Vec<String>> {
    let mut out = Answers::new();
    symbols.find_all(addresses, &Query::default(), &mut out);
    assert_eq!(out.damage(), &[] as &[String]);
    let answer = |answer: chronosym_symbols::Answer<'_>| {
        let frames = answer.frames().map(|frame| {
            let line = frame.line().map_or(0, |line| line.get());
            let file = frame.file().unwrap_or("?");
            format!("{} {file}:{line}", frame.demangled().unwrap_or("?"))
        });
        frames.collect()
    };
    out.iter().map(answer).collect()
}

fn assert_agrees(path: &Path, processor: &str) {
    let symbols = NativeSymbols::open_path(path).unwrap();
    let expected = expected(processor);
    assert!(expected.iter().any(|(_, frames)| frames.len() > 1));
    let base = symbols.base();
    assert_eq!(base, 0x1_0000_0000);
    // An image is mapped from its first byte on.
    let kinds: [fn(u64) -> Address; 3] = [
        Address::VirtualAddress,
        |va| Address::Rva(va - 0x1_0000_0000),
        |va| Address::FileOffset(va - 0x1_0000_0000),
    ];
    for kind in kinds.iter().take(if symbols.has_offsets() { 3 } else { 2 }) {
        let addresses: Vec<Address> = expected.iter().map(|&(va, _)| kind(va)).collect();
        let ours = frames(&symbols, &addresses);
        for ((va, theirs), ours) in expected.iter().zip(ours) {
            assert_eq!(&ours, theirs, "{}: {va:#x}", path.display());
        }
    }
}

#[test]
fn answers_are_those_of_llvm_symbolizer() {
    // A stripped image with its bundle, the bundle alone, and the file in it.
    assert_agrees(&testdata("x86_64/app"), "x86_64");
    assert_agrees(&testdata("x86_64/app.dSYM"), "x86_64");
    assert_agrees(&testdata(&format!("x86_64/app.dSYM/{DWARF}")), "x86_64");
    for processor in ["arm64", "x86_64"] {
        for file in ["universal/app", "universal/app.dSYM"] {
            assert_agrees(&testdata(&format!("{file}:{processor}")), processor);
        }
    }
}

#[test]
fn names_and_no_lines_without_a_bundle() {
    let symbols = NativeSymbols::open_path(&testdata("arm64/app")).unwrap();
    let expected = expected("arm64");
    let addresses: Vec<_> = expected
        .iter()
        .map(|&(va, _)| Address::VirtualAddress(va))
        .collect();
    for ((va, theirs), ours) in expected.iter().zip(frames(&symbols, &addresses)) {
        let theirs = theirs.last().and_then(|frame| frame.rsplit_once(' '));
        if let Some((name, _)) = theirs {
            // The symbol table has no parameters of functions of C, and no types of lambdas.
            assert_eq!(ours, [format!("{name} ?:0")], "{va:#x}");
        }
    }
    let notes = symbols.missing_files();
    assert!(
        notes.iter().any(|note| note.contains("dsymutil")),
        "{notes:?}"
    );
}

#[test]
fn one_image_of_a_universal_file_is_chosen() {
    let open = |path: &str| NativeSymbols::open_path(&testdata(path));
    for path in ["universal/app", "universal/app:ppc"] {
        let error = open(path).unwrap_err();
        assert!(matches!(&error, Error::Universal { processors } if processors == "x86_64, arm64"));
        assert!(error.to_string().contains("FILE:PROCESSOR"), "{error}");
    }
    // Identities are those of the wanted image.
    let path = testdata("universal/app");
    for processor in ["arm64", "x86_64"] {
        let chosen = open(&format!("universal/app:{processor}")).unwrap();
        let id = chosen.build_id().unwrap();
        let named = ObjectPath::with_uuid(path.clone(), id);
        assert_eq!(named, testdata(&format!("universal/app:{processor}")));
        let wanted = Wanted::ElfImage(id.clone());
        assert!(wanted.accepts(&read_identity(&path, &wanted).unwrap()));
    }
    let other = Wanted::ElfImage(BuildId::new(&[7; 16]).unwrap());
    assert!(read_identity(&path, &other).is_err());
}

#[test]
fn images_and_bundles_have_one_identity() {
    let identity = |path: &str| {
        let bytes = std::fs::read(testdata(path)).unwrap();
        match identity_of(&bytes).unwrap() {
            FileIdentity::Elf {
                build_id,
                has_debug,
                has_code,
            } => (build_id, has_debug, has_code),
            other => panic!("{other}"),
        }
    };
    let (image, bundle) = (
        identity("x86_64/app"),
        identity(&format!("x86_64/app.dSYM/{DWARF}")),
    );
    assert!(image.0.is_some() && image.0 == bundle.0);
    assert_eq!((image.1, image.2), (false, true));
    assert_eq!((bundle.1, bundle.2), (true, false));
    let unstripped = identity("arm64/app");
    assert_eq!((unstripped.1, unstripped.2), (true, true));
}

/// Copies a bundle with another name.
fn bundle(from: &str, to: &Path) {
    let target = to.join(DWARF);
    std::fs::create_dir_all(target.parent().unwrap()).unwrap();
    std::fs::copy(testdata(&format!("{from}/{DWARF}")), target).unwrap();
}

#[test]
fn bundles_are_found_by_uuid_alone() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("Program.app/Contents/MacOS");
    std::fs::create_dir_all(&inside).unwrap();
    let image = inside.join("app");
    std::fs::copy(testdata("x86_64/app"), &image).unwrap();
    let has_lines = |folders: &[&Path]| {
        let mut search = DebugFileSearch::next_to(&image);
        search
            .folders
            .extend(folders.iter().map(|path| path.to_path_buf()));
        let symbols = NativeSymbols::open_path_with(&image, search).unwrap();
        (symbols.has_lines(), symbols.missing_files())
    };
    assert!(!has_lines(&[]).0);
    // A bundle with another name in a folder of the user, next to one of another program.
    let symbols = folder.path().join("symbols");
    bundle("universal/app.dSYM", &symbols.join("renamed.dSYM"));
    let other = symbols.join("another.dSYM").join(DWARF);
    std::fs::create_dir_all(other.parent().unwrap()).unwrap();
    std::fs::copy(testdata("arm64/app"), other).unwrap();
    assert_eq!(has_lines(&[&symbols]), (true, Vec::new()));
    // Next to the bundle of the program.
    bundle("x86_64/app.dSYM", &folder.path().join("Program.app.dSYM"));
    assert_eq!(has_lines(&[]), (true, Vec::new()));
}

#[test]
fn a_bundle_of_another_build_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("app");
    std::fs::copy(testdata("arm64/app"), &image).unwrap();
    bundle("x86_64/app.dSYM", &folder.path().join("app.dSYM"));
    let symbols = NativeSymbols::open_path(&image).unwrap();
    assert!(!symbols.has_lines());
    assert!(symbols.has_rejected_debug_file());
    let notes = symbols.missing_files();
    assert!(
        notes.iter().any(|note| note.contains("is not used")),
        "{notes:?}"
    );
}

/// Each prefix is read or refused, and an address that it answers has the answer of the whole file.
#[test]
fn truncated_files_have_no_wrong_answers() {
    for (file, processor) in [
        ("x86_64/app.dSYM/Contents/Resources/DWARF/app", "x86_64"),
        ("arm64/app", "arm64"),
        ("universal/app.dSYM/Contents/Resources/DWARF/app", "arm64"),
    ] {
        let bytes = std::fs::read(testdata(file)).unwrap();
        let expected = expected(processor);
        let names: Vec<String> = expected
            .iter()
            .flat_map(|(_, frames)| frames.clone())
            .collect();
        for len in (0..bytes.len()).step_by(41) {
            let part = &bytes[..len];
            let _ = identity_of(part);
            let Ok(symbols) = NativeSymbols::open(part) else {
                continue;
            };
            let mut out = Answers::new();
            for (va, _) in expected.iter().step_by(7) {
                symbols.find(Address::VirtualAddress(*va), &Query::default(), &mut out);
                for frame in out.iter().flat_map(|answer| answer.frames()) {
                    let name = frame.demangled().unwrap_or_default();
                    let is_one = |whole: &String| whole.contains(name);
                    assert!(names.iter().any(is_one), "{file} {len}: {name}");
                }
            }
        }
    }
}

/// Every byte of the headers as any other value.
#[test]
fn damaged_headers_are_refused_or_read() {
    for file in [
        "universal/app",
        "x86_64/app.dSYM/Contents/Resources/DWARF/app",
    ] {
        let mut bytes = std::fs::read(testdata(file)).unwrap();
        for at in 0..1200 {
            let own = bytes[at];
            for value in [0, 1, 0x7f, 0xff, own ^ 0x80] {
                bytes[at] = value;
                let _ = identity_of(&bytes);
                if let Ok(symbols) = NativeSymbols::open(&bytes[..]) {
                    let mut out = Answers::new();
                    for address in [0, 0x3a0, 0x460] {
                        symbols.find(Address::Rva(address), &Query::default(), &mut out);
                        symbols.find(Address::FileOffset(address), &Query::default(), &mut out);
                    }
                }
            }
            bytes[at] = own;
        }
    }
}

#[test]
fn object_files_are_named() {
    // `MH_OBJECT` instead of `MH_EXECUTE`.
    let mut bytes = std::fs::read(testdata("arm64/app")).unwrap();
    bytes[12] = 1;
    let error = NativeSymbols::open(bytes).unwrap_err();
    assert!(
        error.to_string().contains("Mach-O object file is not read"),
        "{error}"
    );
}
