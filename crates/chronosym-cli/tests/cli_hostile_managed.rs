//! Metadata, portable PDBs and precompiled images made to take the square of their size or far more
//! memory.
#![cfg(target_os = "linux")]

mod bounded;
mod common;

use bounded::{bounded, holds, holds_in, path};
use chronosym_support::ecma::{Blobs, managed_image, root, stream, tables};
use common::*;

/// Methods by token, by name, and by a name that is looked for in all there are.
const ASK: &[&str] = &[
    "symbolize",
    "0x06000001",
    "T.T+0x1",
    "T.T(Int32)+0x1",
    "--obj",
];

/// Tables by their numbers.
const TYPE_REF: u8 = 0x01;
const TYPE_DEF: u8 = 0x02;
const METHOD_DEF: u8 = 0x06;
const TYPE_SPEC: u8 = 0x1b;
const NESTED_CLASS: u8 = 0x29;

/// An image with these tables: number, rows of 16-bit cells; all names are `T`, the heap of blobs
/// is given.
fn metadata(all: &[(u8, u32, &[u16])], strings: &[u8], blobs: &Blobs) -> Vec<u8> {
    let tables = tables(all, 0);
    let streams = [
        ("#~", &*tables),
        ("#Strings", strings),
        ("#Blob", &*blobs.0),
    ];
    managed_image(&root(&streams), &[])
}

/// A row of a type whose first method is this one.
fn type_row(first_method: u16) -> [u16; 7] {
    [0, 0, 1, 0, 0, 1, first_method]
}

/// A row of a method with that signature.
fn method_row(signature: u16) -> [u16; 7] {
    [0, 0, 0, 0, 1, signature, 1]
}

#[test]
fn metadata_of_methods() {
    let one_type = type_row(1);
    let runs = holds("a signature that all methods share", ASK, 1_000, |n| {
        let mut blobs = Blobs::default();
        let parameters = [0x15, 0x12, 1 << 2 | 1, 2, 0x08, 0x0e].repeat(1_000);
        let head = [0, 0x80 | (1_000_u16 >> 8) as u8, 1_000_u16 as u8, 1];
        let signature = blobs.add(&[&head[..], &parameters].concat()) as u16;
        let methods: Vec<u16> = (0..n).flat_map(|_| method_row(signature)).collect();
        let all: [(u8, u32, &[u16]); 3] = [
            (TYPE_REF, 1, &[0, 1, 0]),
            (TYPE_DEF, 1, &one_type),
            (METHOD_DEF, n as u32, &methods),
        ];
        metadata(&all, b"\0T\0", &blobs)
    });
    assert!(
        runs[1].stdout.contains(" T.T+IL"),
        "{:.300}",
        runs[1].stdout
    );
    holds("one long name for all", ASK, 1_000, |n| {
        let types: Vec<u16> = (1..=n).flat_map(|at| type_row(at as u16)).collect();
        let methods: Vec<u16> = (0..n).flat_map(|_| method_row(0)).collect();
        let strings = [&b"\0"[..], &[b'N'; 60_000], b"\0"].concat();
        let all: [(u8, u32, &[u16]); 2] = [
            (TYPE_DEF, n as u32, &types),
            (METHOD_DEF, n as u32, &methods),
        ];
        metadata(&all, &strings, &Blobs::default())
    });
    holds("types in types", ASK, 1_000, |n| {
        let types: Vec<u16> = (1..=n).flat_map(|at| type_row(at as u16)).collect();
        let methods: Vec<u16> = (0..n).flat_map(|_| method_row(0)).collect();
        // In chains of sixty, the rows in no order.
        let nested = (2..=n as u16).rev().filter(|row| row % 60 != 0);
        let nested: Vec<u16> = nested.flat_map(|row| [row, row - 1]).collect();
        let strings = [&b"\0"[..], &[b'N'; 200], b"\0"].concat();
        let all: [(u8, u32, &[u16]); 3] = [
            (TYPE_DEF, n as u32, &types),
            (METHOD_DEF, n as u32, &methods),
            (NESTED_CLASS, nested.len() as u32 / 2, &nested),
        ];
        metadata(&all, &strings, &Blobs::default())
    });
    let runs = holds("types made of pairs of types", ASK, 1_000, |n| {
        let mut blobs = Blobs::default();
        let mut specs = vec![blobs.add(&[0x08]) as u16];
        for row in 1..31_u8 {
            let pair = [0x12, row << 2 | 2];
            specs
                .push(blobs.add(&[&[0x15, 0x12, 1 << 2 | 1, 2][..], &pair, &pair].concat()) as u16);
        }
        let signature = blobs.add(&[0, 1, 1, 0x12, 31 << 2 | 2]) as u16;
        let methods: Vec<u16> = (0..n).flat_map(|_| method_row(signature)).collect();
        let all: [(u8, u32, &[u16]); 4] = [
            (TYPE_REF, 1, &[0, 1, 0]),
            (TYPE_DEF, 1, &one_type),
            (METHOD_DEF, n as u32, &methods),
            (TYPE_SPEC, specs.len() as u32, &specs),
        ];
        metadata(&all, b"\0T\0", &blobs)
    });
    assert!(
        runs[1].stdout.contains(" T.T+IL"),
        "{:.300}",
        runs[1].stdout
    );
}

/// A portable PDB of these tables, blobs and whatever GUIDs.
fn portable(tables: &[u8], blobs: &Blobs) -> Vec<u8> {
    let mut id = vec![7; 20];
    id.extend([0; 12]);
    let guids = [5; 16];
    let streams = [
        ("#Pdb", &*id),
        ("#~", tables),
        ("#GUID", &guids),
        ("#Blob", &*blobs.0),
    ];
    root(&streams)
}

/// Rows of these cells, each of the same widths.
fn rows(widths: &[usize], rows: impl IntoIterator<Item = Vec<u32>>) -> Vec<u8> {
    let row = |row: Vec<u32>| {
        let cells = row.into_iter().zip(widths);
        let cells = cells.flat_map(|(value, &width)| value.to_le_bytes().into_iter().take(width));
        cells.collect::<Vec<_>>()
    };
    rows.into_iter().flat_map(row).collect()
}

#[test]
fn portable_pdbs() {
    const DOCUMENT: u8 = 0x30;
    const POINTS: u8 = 0x31;
    const WIDE_BLOBS: u8 = 4;
    let methods: Vec<String> = (1..=500)
        .map(|row| format!("{:#x}+0xfff", 0x0600_0000 + row))
        .collect();
    let mut ask = vec!["symbolize"];
    ask.extend(methods.iter().map(String::as_str));
    ask.push("--pdb");
    let document = |name: u32| vec![name, 0, 0, 0];
    let made = |name: u32, points: &mut dyn FnMut(u32) -> u32, blobs: &Blobs| {
        let documents = rows(&[4, 2, 4, 2], vec![document(name); 500]);
        let methods = rows(&[2, 4], (1..=500).map(|row| vec![row, points(row)]));
        let all = [(DOCUMENT, 500), (POINTS, 500)];
        portable(
            &stream(WIDE_BLOBS, &all, 0, &[documents, methods].concat()),
            blobs,
        )
    };
    let long = |n: usize| [&[0, 0, 0, 1, 1, 1][..], &[1, 0, 1, 2, 0].repeat(n)].concat();
    let shared = |n| {
        let mut blobs = Blobs::default();
        let part = blobs.add(b"a.cs");
        let name = blobs.add(&[b'/', 0, part as u8]);
        let points = blobs.add(&long(n));
        made(name, &mut |_| points, &blobs)
    };
    let runs = holds("points that all methods share", &ask, 4_000, shared);
    assert!(runs[0].stdout.contains("a.cs"), "{:.300}", runs[0].stdout);
    let often: Vec<String> = (0..1_000)
        .map(|at| format!("0x6000001+{:#x}", 0x1f000 + at))
        .collect();
    let often: Vec<&str> = often.iter().map(String::as_str).collect();
    let often = [&["symbolize"], &*often.repeat(30), &["--pdb"]].concat();
    let runs = holds("many questions about many points", &often, 16_000, shared);
    assert!(runs[0].stdout.contains("a.cs"), "{:.300}", runs[0].stdout);
    holds(
        "points that are another's from the middle on",
        &ask,
        4_000,
        |n| {
            let mut blobs = Blobs::default();
            let name = blobs.add(b"/");
            // The blob at each offset claims a size of four megabytes.
            let first = blobs.0.len() as u32;
            blobs.0.extend([0xc0, 0x40, 0, 0].repeat(500));
            blobs.0.extend(long(n));
            made(name, &mut |row| first + 4 * (row - 1), &blobs)
        },
    );
    holds(
        "a name of parts that all documents share",
        &ask,
        2_000,
        |n| {
            let mut blobs = Blobs::default();
            let part = blobs.add(&[b'p'; 120]);
            let name = blobs.add(&[&b"/"[..], &[part as u8].repeat(n)].concat());
            let points = blobs.add(&long(1));
            made(name, &mut |_| points, &blobs)
        },
    );
    holds("a name of many parts of nothing", &ask, 20_000, |n| {
        let mut blobs = Blobs::default();
        let name = blobs.add(&[&b"\0"[..], &[0].repeat(n)].concat());
        let points = blobs.add(&long(1));
        made(name, &mut |_| points, &blobs)
    });
}

/// Runs `lines` on a method in a trace, with a PDB of the module in which only the identity is
/// true: all methods share a point in the first of `documents` documents with this name, `times`
/// over, and this is the Source Link map.
fn linked(documents: usize, name: &[u8], times: usize, map: &[u8]) -> Vec<u8> {
    const DOCUMENT: u8 = 0x30;
    const POINTS: u8 = 0x31;
    const CUSTOM: u8 = 0x37;
    let mut blobs = Blobs::default();
    let part = blobs.add(name) as u8;
    let name = blobs.add(&[&b"\0"[..], &vec![part; times]].concat());
    let points = blobs.add(&[0, 0, 1, 0, 1, 1]);
    let map = blobs.add(map);
    let documents_of = rows(&[4, 2, 4, 2], vec![vec![name, 0, 0, 0]; documents]);
    let wide = if documents > 0xffff { 4 } else { 2 };
    let methods = rows(&[wide, 4], vec![vec![1, points]; 500]);
    // The module, whose map it is.
    let module = 1 << 5 | 7;
    let coded = if documents > 0x7ff { 4 } else { 2 };
    let custom = rows(&[coded, 2, 4], [vec![module, 1, map]]);
    let all = [(DOCUMENT, documents as u32), (POINTS, 500), (CUSTOM, 1)];
    let tables = stream(4, &all, 0, &[documents_of, methods, custom].concat());
    let real = std::fs::read(testdata("clr10/workload/Workload.pdb")).unwrap();
    let head = real.windows(5).position(|name| name == b"#Pdb\0").unwrap() - 8;
    let id = u32::from_le_bytes(real[head..head + 4].try_into().unwrap()) as usize;
    let id = [&real[id..id + 20], &[0; 12]].concat();
    let source_link = 0xcc110556_a091_4d38_9fec_25ab9a351a6a_u128;
    let (a, b) = (source_link >> 64, source_link as u64);
    let guid = [
        &((a >> 32) as u32).to_le_bytes()[..],
        &((a >> 16) as u16).to_le_bytes(),
        &(a as u16).to_le_bytes(),
        &b.to_be_bytes(),
    ];
    root(&[
        ("#Pdb", &*id),
        ("#~", &tables),
        ("#GUID", &guid.concat()),
        ("#Blob", &blobs.0),
    ])
}

#[test]
fn source_link_maps() {
    let ask = ["lines", "--symbols", "{}", &arg(R2R), "Spin.Work"];
    type Map = fn(usize) -> String;
    const LAST: &str = r#""/*": "https://h/*""#;
    let maps: [(&str, &str, Map); 7] = [
        ("many paths", "https://h/a/b.cs", |n| {
            let paths = (0..n).map(|at| format!(r#""/a/{at}*": "https://h/{at}/*","#));
            paths.collect::<String>() + LAST
        }),
        ("one path again and again", "https://h/b.cs", |n| {
            r#""/a/*": "https://h/*","#.repeat(n) + LAST
        }),
        ("stars", "https://h/a/b.cs", |n| {
            let stars = "*".repeat(n);
            format!(r#""/a/{stars}": "https://h/{stars}", {LAST}"#)
        }),
        ("a long URL", "https://h/a/b.cs", |n| {
            format!(r#""/a/*": "https://h/{}/*", {LAST}"#, "u".repeat(20 * n))
        }),
        ("maps in maps", "no source file;", |n| {
            let (begin, end) = (r#"{"a":"#.repeat(n), "}".repeat(n));
            format!(r#""/a/*": {begin}1{end}, {LAST}"#)
        }),
        ("a map without an end", "no source file;", |n| {
            r#""/a/*": {"a":"#.repeat(n)
        }),
        ("a URL that steers the terminal", "https://h/", |_| {
            r#""/a/*": "https://h/\u001b[2J\u202e*""#.into()
        }),
    ];
    for (what, expected, map) in maps {
        let runs = holds_in(what, &ask, 4_000, |folder, n| {
            let map = format!("{{\"documents\": {{{}}}}}", map(n));
            let pdb = linked(n, b"/a/b.cs", 1, map.as_bytes());
            std::fs::write(folder.join("Workload.pdb"), pdb).unwrap();
        });
        let text = &runs[1].stdout;
        assert!(text.contains(expected), "{what}: {text:.1000}");
        assert!(!text.contains(['\x1b', '\u{202e}']) && text.len() < 1000);
    }
    let broken: [&[u8]; 3] = [
        b"{\"documents\": {\"/a/\xff*\": \"https://h/\xc3\x28*\"}}",
        b"{\"documents\": {}} {\"documents\": {}}",
        b"\xff\xfe{\0\"\0d\0",
    ];
    for map in broken {
        let folder = tempfile::tempdir().unwrap();
        let pdb = linked(1, b"/a/b.cs", 1, map);
        std::fs::write(folder.path().join("Workload.pdb"), pdb).unwrap();
        let run = bounded(&ask.map(|arg| arg.replace("{}", path(folder.path()))));
        assert!(
            run.stdout.contains("(no source file; see"),
            "{}",
            run.stdout
        );
    }
    holds_in("documents of one long name", &ask, 4_000, |folder, n| {
        let map = format!("{{\"documents\": {{{LAST}}}}}");
        let pdb = linked(n, &[b'n'; 120], 200, map.as_bytes());
        std::fs::write(folder.join("Workload.pdb"), pdb).unwrap();
    });
}

/// Returns an array of precompiled code whose elements all refer to the bytes directly after it.
fn shared_array(count: usize) -> Vec<u8> {
    let mut out = vec![0x0f];
    out.extend((((count as u32) << 2) | 1).to_le_bytes());
    // Offsets of trees of sixteen, which are all one; then that tree.
    let blocks = count.div_ceil(16);
    out.extend((2 * blocks as u16).to_le_bytes().repeat(blocks));
    out.extend([14; 4]);
    out
}

/// Returns a precompiled image with these sections: type and bytes; its functions are contiguous.
fn precompiled(functions: usize, sections: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let one_type = type_row(1);
    let methods: Vec<u16> = (0..10).flat_map(|_| method_row(0)).collect();
    let all: [(u8, u32, &[u16]); 2] = [(TYPE_DEF, 1, &one_type), (METHOD_DEF, 10, &methods)];
    let tables = tables(&all, 0);
    let metadata = root(&[
        ("#~", &tables),
        ("#Strings", b"\0T\0\0"),
        ("#Blob", &[0; 4]),
    ]);
    let count = sections.len() + 1;
    let mut head = b"RTR\0\x09\0\0\0\0\0\0\0".to_vec();
    head.extend((count as u32).to_le_bytes());
    let begin = 0x1000 + 72 + metadata.len() as u32;
    let mut at = begin + (head.len() + 12 * count) as u32;
    let unwind = at;
    let table: Vec<u8> = (0..functions as u32)
        .flat_map(|index| [0x1000 + 4 * index, unwind].map(u32::to_le_bytes).concat())
        .collect();
    // The lengths of functions are first, then the functions.
    let table = [&4_u32.to_le_bytes()[..], &table].concat();
    let mut bytes = Vec::new();
    for (kind, data, skip) in [(102, &table, 4)]
        .into_iter()
        .chain(sections.iter().map(|(kind, data)| (*kind, data, 0)))
    {
        let size = data.len() as u32 - skip;
        head.extend([kind, at + skip, size].map(u32::to_le_bytes).concat());
        at += data.len() as u32;
        bytes.extend(data);
    }
    managed_image(&metadata, &[head, bytes].concat())
}

#[test]
fn precompiled_images() {
    const ENTRY_POINTS: u32 = 103;
    const DEBUG_INFO: u32 = 105;
    const INSTANCES: u32 = 109;
    const COLD: u32 = 120;
    let addresses: Vec<String> = (0..500)
        .map(|at| format!("{:#x}", 0x1000 + 4 * at))
        .collect();
    let mut ask = vec!["symbolize"];
    ask.extend(addresses.iter().map(String::as_str));
    ask.push("--obj");
    // Methods 1 to 500, each with a function of its own: an array without sharing, of trees of
    // sixteen.
    let own = || {
        let mut blocks = Vec::new();
        let mut offsets = Vec::new();
        for block in 0..32_u32 {
            offsets.push(2 * 32 + blocks.len() as u32);
            // A tree of sixteen leaves of two bytes each: sizes of the halves are known.
            fn tree(first: u32, len: u32, out: &mut Vec<u8>) {
                if len == 1 {
                    // The function's number, without fixups, in two bytes.
                    let value = (first << 1) << 2 | 1;
                    return out.extend((value as u16).to_le_bytes());
                }
                let mut left = Vec::new();
                tree(first, len / 2, &mut left);
                let right = left.len() as u32 + 2;
                let value = (right << 2 | 3) << 2 | 1;
                out.extend((value as u16).to_le_bytes());
                out.extend(left);
                tree(first + len / 2, len / 2, out);
            }
            tree(16 * block, 16, &mut blocks);
        }
        let mut out = vec![0x0f];
        out.extend((512_u32 << 2 | 1).to_le_bytes());
        out.extend(offsets.iter().flat_map(|&at| (at as u16).to_le_bytes()));
        [out, blocks].concat()
    };
    let shared = |distance: u8, n: usize| {
        // Bytes of bounds, no variables; their number, then each in three digits.
        let nibbles = |value: u32| {
            let digits: Vec<u8> = (0..10)
                .rev()
                .map(|at| (value >> (3 * at) & 7) as u8)
                .collect();
            let last = digits.len() - 1;
            digits
                .into_iter()
                .enumerate()
                .map(move |(at, digit)| digit | if at < last { 8 } else { 0 })
        };
        let packed = |digits: Vec<u8>| -> Vec<u8> {
            digits
                .chunks(2)
                .map(|pair| pair[0] | pair.get(1).unwrap_or(&0) << 4)
                .collect()
        };
        let mut body: Vec<u8> = nibbles(n as u32).collect();
        body.extend([distance, 3, 0].repeat(n));
        let body = packed(body);
        let head = packed(nibbles(body.len() as u32).chain([0]).collect());
        let mut info = shared_array(512);
        info.push(0);
        info.extend([head, body].concat());
        precompiled(512, &[(ENTRY_POINTS, own()), (DEBUG_INFO, info)])
    };
    let name = "bounds that all methods share";
    let found = holds(name, &ask, 4_000, |n| shared(1, n));
    assert!(found[1].stdout.contains("T.T"), "{:.300}", found[1].stdout);
    let name = "many questions about many bounds at one place";
    let often = [&ask[..1], &ask[1..501].repeat(60), &["--obj"]].concat();
    holds(name, &often, 8_000, |n| shared(0, n));
    holds("methods that share a function", &ask, 50_000, |n| {
        let mut shared = shared_array(n);
        shared.push(4);
        precompiled(512, &[(ENTRY_POINTS, shared)])
    });
    holds("buckets of instances that overlap", &ask, 1_000, |n| {
        // 1,024 buckets, each the same many entries; the second of each is an offset to one
        // signature.
        let buckets = 1_024_usize;
        let mut table = vec![10 << 2 | 2];
        let end = 4 * (buckets + 1) + 2 * n;
        table.extend((4 * (buckets as u32 + 1)).to_le_bytes().repeat(buckets));
        table.extend((end as u32).to_le_bytes());
        table.extend([0, 1 << 1].repeat(n));
        table.extend([0; 16]);
        precompiled(8 * n, &[(INSTANCES, table)])
    });
    holds("cold parts of one method", &ask, 2_000, |n| {
        let pairs: Vec<u8> = (0..n as u32)
            .flat_map(|at| [600 + at, 1].map(u32::to_le_bytes).concat())
            .collect();
        precompiled(600 + n, &[(ENTRY_POINTS, own()), (COLD, pairs)])
    });
}

#[test]
fn maps_of_precompiled_images() {
    let text = std::fs::read_to_string(testdata("clr10/r2r/linux-x64/Workload.ni.r2rmap")).unwrap();
    let ask = ["stacks", "--format", "folded", &arg(R2R), "--symbols", "{}"];
    type Row = fn(usize) -> String;
    let rows: [(&str, Row); 4] = [
        ("one method again and again", |_| {
            "00011745 10 T::M()\n".into()
        }),
        ("in no order", |i| {
            format!("{:08X} 10 T::M{i}()\n", 0x20_0000 - i)
        }),
        ("brackets in brackets", |_| {
            format!("00011745 10 {}\n", "(".repeat(200))
        }),
        ("names of many parts", |i| {
            format!("{i:08X} 10 {}::M()\n", "a, ".repeat(100))
        }),
    ];
    for (name, row) in rows {
        let runs = holds_in(name, &ask, 2_000, |folder, n| {
            let rows: String = (0..n).map(row).collect();
            std::fs::write(folder.join("Workload.ni.r2rmap"), format!("{text}{rows}")).unwrap();
        });
        assert_eq!(runs[1].status, 0, "{name}: {}", runs[1].stderr);
    }
}
