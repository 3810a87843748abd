//! Portable PDBs of the workload: identity, checksum, and lines compared with the sources.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use chronosym_pdb::metadata::{Metadata, Table, Token};
use chronosym_pdb::pe::PeImage;
use chronosym_pdb::portable::{HashAlgorithm, PortablePdb};
use sha2::{Digest, Sha384, Sha512};

use common::read;

const PAIRS: [&str; 9] = [
    "clr10/workload/Workload",
    "clr10/workload/PluginA",
    "clr10/workload/net9/Workload",
    "clr10/workload/net9/PluginA",
    "clr10/workload/memory/Workload",
    "clr10/workload/memory/PluginA",
    "clr31/workload/Workload",
    "clr31/workload/PluginA",
    "clr31/live/Live",
];

fn method(metadata: &Metadata<'_>, owner: &str, name: &str) -> u32 {
    (1..=metadata.rows(Table::METHOD_DEF))
        .find(|&row| {
            let method = metadata.method(Token::new(Table::METHOD_DEF, row)).unwrap();
            method.owner_text() == owner && method.name == name
        })
        .unwrap_or_else(|| panic!("no {owner}.{name}"))
}

#[test]
fn ids_and_checksums_are_those_in_the_image() {
    for pair in PAIRS {
        let (dll, pdb) = (read(&format!("{pair}.dll")), read(&format!("{pair}.pdb")));
        let image = PeImage::parse(&dll).unwrap();
        let parsed = PortablePdb::parse(&pdb).unwrap();
        assert_eq!(
            image.portable_codeview().unwrap().portable_id(),
            Some(parsed.id()),
            "{pair}"
        );
        assert_eq!(
            parsed.method_count(),
            image.metadata().unwrap().rows(Table::METHOD_DEF),
            "{pair}"
        );
        // The older compiler is not deterministic by default: then there is no checksum.
        let Some(checksum) = image.pdb_checksum() else {
            continue;
        };
        assert_eq!(
            parsed.verify_checksum(&checksum.algorithm, checksum.value),
            Some(true),
            "{pair}"
        );
        // Any other byte, and it is another PDB.
        let mut other = pdb.clone();
        *other.last_mut().unwrap() ^= 1;
        let other = PortablePdb::parse(&other).unwrap();
        assert_eq!(
            other.verify_checksum(&checksum.algorithm, checksum.value),
            Some(false),
            "{pair}"
        );
        assert_eq!(other.verify_checksum("MD4", checksum.value), None);
        // Longer ones are of the same bytes: all, with zeros for the id.
        let mut plain = pdb.clone();
        let id = common::positions(&pdb, &parsed.id().guid.0).next().unwrap();
        plain[id..id + 20].fill(0);
        for (algorithm, value) in [
            ("SHA384", Sha384::digest(&plain).to_vec()),
            ("SHA512", Sha512::digest(&plain).to_vec()),
        ] {
            assert_eq!(parsed.verify_checksum(algorithm, &value), Some(true));
        }
        assert!(PortablePdb::sniff(&pdb) && !PortablePdb::sniff(&dll));
        assert!(image.data() == dll && !image.embeds_portable_pdb());
    }
    let dll = read("clr10/workload/Workload.dll");
    assert!(PeImage::parse(&dll).unwrap().pdb_checksum().is_some());
}

#[test]
fn the_embedded_pdb() {
    for dll in [
        "clr10/workload/PluginB.dll",
        "clr10/workload/net9/PluginB.dll",
    ] {
        let dll = read(dll);
        let image = PeImage::parse(&dll).unwrap();
        assert!(image.embeds_portable_pdb());
        let pdb = image.embedded_portable_pdb(1 << 20).unwrap().unwrap();
        let parsed = PortablePdb::parse(&pdb).unwrap();
        assert_eq!(
            image.portable_codeview().unwrap().portable_id(),
            Some(parsed.id())
        );
        let checksum = image.pdb_checksum().unwrap();
        assert_eq!(
            parsed.verify_checksum(&checksum.algorithm, checksum.value),
            Some(true)
        );
        assert_eq!(parsed.document(1).unwrap().name, "/src/plugin/PluginB.cs");
        assert!(image.embedded_portable_pdb(pdb.len()).is_ok());
        assert!(image.embedded_portable_pdb(pdb.len() - 1).is_err());
    }
}

#[test]
fn documents_carry_the_hash_of_the_source() {
    let pdb = read("clr10/workload/Workload.pdb");
    let pdb = PortablePdb::parse(&pdb).unwrap();
    let mut seen = BTreeSet::new();
    for row in pdb.documents() {
        let document = pdb.document(row).unwrap();
        let Some(name) = document.name.strip_prefix("/src/workload/") else {
            panic!("{}", document.name)
        };
        assert_eq!(document.hash_algorithm, Some(HashAlgorithm::Sha256));
        if !name.contains("obj/") {
            let source = read(&format!("clr10/workload/{name}"));
            let is_of = |hash, of: &[u8]| HashAlgorithm::Sha256.is_hash_of(hash, of);
            assert_eq!(is_of(document.hash, &source), Some(true), "{name}");
            assert_eq!(is_of(document.hash, b"other"), Some(false));
            seen.insert(name.to_owned());
        }
    }
    let sha1 = b"\xa9\x99\x3e\x36\x47\x06\x81\x6a\xba\x3e\x25\x71\x78\x50\xc2\x6c\x9c\xd0\xd8\x9d";
    assert_eq!(HashAlgorithm::Sha1.is_hash_of(sha1, b"abc"), Some(true));
    assert_eq!(HashAlgorithm::Sha1.is_hash_of(sha1, b"abd"), Some(false));
    let wanted = ["Inlining.cs", "Plugins.cs", "Program.cs", "Truth.cs"].map(str::to_owned);
    assert_eq!(seen, BTreeSet::from(wanted));
}

/// Each call in Inlining.cs and Program.cs is on the line of its sequence point.
#[test]
fn calls_are_on_the_lines_of_the_source() {
    let (dll, pdb) = (
        read("clr10/workload/Workload.dll"),
        read("clr10/workload/Workload.pdb"),
    );
    let image = PeImage::parse(&dll).unwrap();
    let metadata = image.metadata().unwrap();
    let pdb = PortablePdb::parse(&pdb).unwrap();
    let mut sources: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut checked = 0;
    for row in 1..=metadata.rows(Table::METHOD_DEF) {
        let Some(body) = image.il_body(&metadata, row) else {
            continue;
        };
        for (offset, call) in body.calls() {
            let callee = metadata.method(call).unwrap().name;
            let Some(answer) = pdb.line_at(row, offset) else {
                continue;
            };
            let name = pdb.document(answer.document).unwrap().name;
            let Some(name) = name
                .strip_prefix("/src/workload/")
                .filter(|name| !name.contains('/'))
            else {
                continue;
            };
            let source = sources.entry(name.to_owned()).or_insert_with(|| {
                let text = String::from_utf8(read(&format!("clr10/workload/{name}"))).unwrap();
                text.lines().map(str::to_owned).collect()
            });
            // Calls of methods that only the source's own text can mean.
            if ![
                "Outer", "Middle", "Hot", "Work", "Step", "Damp", "Climb", "Deep", "Filter", "Emit",
            ]
            .contains(&&*callee)
            {
                continue;
            }
            let range = answer.start_line as usize - 1..answer.end_line as usize;
            let text = source[range].join("\n");
            assert!(
                text.contains(&callee),
                "{name}:{} has no call of {callee}: {text}",
                answer.start_line
            );
            checked += 1;
        }
    }
    assert!(checked > 20, "{checked}");
}

#[test]
fn lines_of_one_method() {
    let (dll, pdb) = (
        read("clr10/workload/Workload.dll"),
        read("clr10/workload/Workload.pdb"),
    );
    let metadata = PeImage::parse(&dll).unwrap().metadata().unwrap();
    let pdb = PortablePdb::parse(&pdb).unwrap();
    // Inlining.cs: `int x = …` is line 24, `x += Middle(…)` 25, `return x;` 26.
    let outer = method(&metadata, "Workload.Inlining", "Outer");
    let lines: Vec<_> = pdb
        .sequence_points(outer)
        .map(|point| point.start_line)
        .collect();
    assert_eq!(lines, [24, 25, 26]);
    let points: Vec<_> = pdb.sequence_points(outer).collect();
    let before = pdb.line_at(outer, points[1].il_offset - 1).unwrap();
    let at = pdb.line_at(outer, points[1].il_offset).unwrap();
    let beyond = pdb.line_at(outer, u32::MAX).unwrap();
    assert_eq!(
        (before.start_line, at.start_line, beyond.start_line),
        (24, 25, 26)
    );
    assert_eq!((at.start_column, at.end_column), (13, 44));
    assert_eq!(pdb.first_line(outer).map(|line| line.start_line), Some(24));
    assert_eq!(pdb.first_line(0), None);
    assert_eq!(pdb.line_at(0, 0), None);
    assert_eq!(pdb.line_at(u32::MAX, 0), None);
}

#[test]
fn a_hidden_point_has_the_line_before_it() {
    let mut hidden = 0;
    for pair in PAIRS {
        let pdb = read(&format!("{pair}.pdb"));
        let pdb = PortablePdb::parse(&pdb).unwrap();
        for row in 1..=pdb.method_count() {
            let mut points = pdb.sequence_points(row);
            let all: Vec<_> = points.by_ref().collect();
            assert!(!points.is_damaged());
            assert!(
                all.windows(2)
                    .all(|two| two[0].il_offset <= two[1].il_offset)
            );
            for (index, point) in all
                .iter()
                .enumerate()
                .filter(|(_, point)| point.is_hidden())
            {
                let answer = pdb.line_at(row, point.il_offset);
                let visible = all[..index].iter().rfind(|point| !point.is_hidden());
                assert_eq!(answer.as_ref(), visible);
                hidden += 1;
            }
        }
    }
    assert!(hidden > 50, "{hidden}");
}
