//! Compares every byte of the code of the self-made PDBs with the output of llvm-symbolizer 22.

use chronosym_pdb::windows::{Frames, FunctionKind, WindowsPdb};
use chronosym_pdb::{Guid, PdbId};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::PathBuf;

fn folder(machine: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata/pdb-small")
        .join(machine)
}

type Truth = BTreeMap<u32, Vec<(String, String, u32)>>;

fn truth(machine: &str) -> Truth {
    let packed = std::fs::read(folder(machine).join("llvm-symbolizer-22.json.gz")).unwrap();
    let mut json = String::new();
    flate2::read::GzDecoder::new(&packed[..])
        .read_to_string(&mut json)
        .unwrap();
    let raw: BTreeMap<String, Vec<(String, String, u32)>> = serde_json::from_str(&json).unwrap();
    raw.into_iter()
        .map(|(rva, frames)| (u32::from_str_radix(&rva[2..], 16).unwrap(), frames))
        .collect()
}

/// Returns a demangled name without arguments, type keywords and spaces, as in a procedure record.
fn plain(demangled: &str) -> String {
    let mut name = demangled.trim_end_matches(" const");
    if name.ends_with(')') && !name.ends_with("operator()") {
        let mut depth = 0;
        let open = name.char_indices().rev().find(|&(_, c)| {
            depth += i32::from(c == ')') - i32::from(c == '(');
            depth == 0
        });
        name = &name[..open.unwrap().0];
    }
    if name.contains("`lambda") {
        return name.to_owned();
    }
    name.replace("struct ", "").replace(", ", ",")
}

/// Rows that share an offset: llvm-symbolizer uses the first of them for exactly that byte and the
/// last for every byte after it. The first covers no byte, so the last is right.
const TIES: &[(&str, u32)] = &[
    ("i686", 0x10D0),
    ("i686", 0x10E0),
    ("i686", 0x15F2),
    ("aarch64", 0x10D4),
    ("aarch64", 0x1258),
];

/// The body shared by `fold_a` and `fold_b`, whose lines are 3 to 6 and 8 to 11 of other.cpp.
/// llvm-symbolizer names it `fold_b` and takes lines of either; here both name and lines are the
/// first procedure's.
fn is_folded(name: &str) -> bool {
    name == "fold_a"
}

#[test]
fn every_byte_of_code() {
    for machine in ["x86_64", "i686", "aarch64"] {
        let data = std::fs::read(folder(machine).join("small.pdb")).unwrap();
        let pdb = WindowsPdb::open(&data).unwrap();
        let mut frames = Frames::new();
        let (mut equal, mut padding, mut ties) = (0, 0, 0);
        for (rva, expect) in truth(machine) {
            let at = format!("{machine} {rva:#x}");
            let function = pdb.find(rva, &mut frames).unwrap();
            let (outer, inlined) = expect.split_last().unwrap();
            let Some(function) = function else {
                // Padding: llvm-symbolizer names the nearest public before it, without a line.
                assert_eq!((outer.2, inlined.len()), (0, 0), "{at}");
                let nearest = pdb.public_symbol(rva).unwrap().unwrap();
                assert!(!nearest.covers && nearest.rva + nearest.len <= rva, "{at}");
                let flags = msvc_demangler::DemangleFlags::NAME_ONLY;
                let name = msvc_demangler::demangle(&nearest.name, flags)
                    .unwrap_or_else(|_| nearest.name.clone());
                let name = match machine {
                    "i686" => name.trim_start_matches('_'),
                    _ => &name,
                };
                if plain(&outer.0) != "fold_b" {
                    assert_eq!(plain(name), plain(&outer.0), "{at}");
                }
                padding += 1;
                continue;
            };
            assert!(
                (function.rva..function.rva + function.len).contains(&rva),
                "{at}"
            );
            let ours: Vec<_> = frames
                .iter()
                .map(|frame| {
                    (
                        frame.name.as_ref().unwrap().to_string(),
                        frame.file.as_deref().unwrap_or_default().replace('\\', "/"),
                        frame.line.unwrap_or_default(),
                    )
                })
                .collect();
            let (own, own_inlined) = ours.split_last().unwrap();
            assert!(
                frames[..own_inlined.len()]
                    .iter()
                    .all(|frame| frame.inlined),
                "{at}"
            );
            assert!(!frames[own_inlined.len()].inlined, "{at}");
            assert_eq!(own_inlined, inlined, "{at}");
            if is_folded(&own.0) {
                assert_eq!(plain(&outer.0), "fold_b", "{at}");
                assert_eq!(own.1, "src/other.cpp", "{at}");
                assert!((3..=6).contains(&own.2), "{at}: line {}", own.2);
                continue;
            }
            let record = own
                .0
                .trim_start_matches(if machine == "i686" { "_" } else { "" });
            assert_eq!(plain(record), plain(&outer.0), "{at}");
            if TIES.contains(&(machine, rva)) {
                assert_ne!(own.2, outer.2, "{at} is no tie");
                let next = &truth(machine)[&(rva + 1)];
                assert_eq!(
                    (&own.1, own.2),
                    (&next.last().unwrap().1, next.last().unwrap().2)
                );
                ties += 1;
            } else {
                assert_eq!((&own.1, own.2), (&outer.1, outer.2), "{at}");
            }
            equal += 1;
        }
        let expected = TIES.iter().filter(|tie| tie.0 == machine).count();
        assert_eq!(ties, expected, "{machine}");
        // The aarch64 build has no padding.
        assert!(equal > 1300, "{machine}: {equal} equal");
        assert_eq!(
            padding > 10,
            machine != "aarch64",
            "{machine}: {padding} padding"
        );
    }
}

#[test]
fn identity_and_limits() {
    for machine in ["x86_64", "i686", "aarch64"] {
        let data = std::fs::read(folder(machine).join("small.pdb")).unwrap();
        let image = std::fs::read(folder(machine).join("small.exe")).unwrap();
        let pdb = WindowsPdb::open(&data).unwrap();
        // The image's CodeView record: "RSDS", GUID, age, path.
        let rsds = image.windows(4).position(|found| found == b"RSDS").unwrap();
        let guid = Guid(image[rsds + 4..rsds + 20].try_into().unwrap());
        let age = u32::from_le_bytes(image[rsds + 20..rsds + 24].try_into().unwrap());
        assert_eq!(pdb.id(), PdbId { guid, age }, "{machine}");
        assert_eq!(pdb.limitations().count(), 0);
    }
}

#[test]
fn functions_are_found_at_their_own_bytes() {
    for machine in ["x86_64", "i686", "aarch64"] {
        let data = std::fs::read(folder(machine).join("small.pdb")).unwrap();
        let pdb = WindowsPdb::open(&data).unwrap();
        let functions: Vec<_> = pdb.functions().map(Result::unwrap).collect();
        assert!(functions.len() >= 18, "{machine}: {}", functions.len());
        let mut frames = Frames::new();
        for function in &functions {
            for rva in [function.rva, function.rva + function.len - 1] {
                let found = pdb.find(rva, &mut frames).unwrap().unwrap();
                assert_eq!((found.rva, found.len), (function.rva, function.len));
                let name = found.name.unwrap().to_string();
                let own = function.name.as_ref().unwrap().to_string();
                assert!(
                    name == own || (name == "fold_a" && own == "fold_b"),
                    "{name} {own}"
                );
            }
        }
    }
}

#[test]
fn no_module_is_read_for_addresses_of_data() {
    let data = std::fs::read(folder("x86_64").join("small.pdb")).unwrap();
    let mut frames = Frames::new();
    let pdb = WindowsPdb::open(&data).unwrap();
    // `.rdata` and `.data`.
    for rva in 0x2000..0x3030 {
        let found = pdb.find(rva, &mut frames).unwrap();
        assert!(found.is_none_or(|found| found.kind == FunctionKind::Public));
    }
    assert_eq!(pdb.bytes_read(), 0);
    assert!(pdb.find(0x1010, &mut frames).unwrap().is_some());
    assert!(pdb.bytes_read() > 0);
}
