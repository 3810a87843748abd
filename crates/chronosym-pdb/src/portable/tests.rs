//! Hand-made PDBs: cases that no available file has.

use super::*;
use crate::Error;
use crate::metadata::Table;
use chronosym_support::ecma::{Blobs, root, stream, tables};

const EMBEDDED_SOURCE: [u8; 16] = [
    0x1b, 0x57, 0x8a, 0x0e, 0x26, 0x69, 0x6e, 0x46, 0xb4, 0xad, 0x8a, 0xb0, 0x46, 0x11, 0xf5, 0xfe,
];

/// Two documents, one method with these points, the first document's text embedded.
fn pdb(points: &[u8], separator: &str, source: &[u8]) -> Vec<u8> {
    let mut heap = Blobs::default();
    let parts = ["", "src", "ä.cs", "b.cs"].map(|part| heap.add(part.as_bytes()) as u8);
    let mut name = |parts: &[u8]| heap.add(&[separator.as_bytes(), parts].concat()) as u16;
    let (first, second) = (name(&[0, parts[1], parts[2]]), name(&[parts[1], parts[3]]));
    let (points, source) = (heap.add(points) as u16, heap.add(source) as u16);
    let document = 1 << 5 | 22;
    let stream = tables(
        &[
            (0x30, 2, &[first, 0, 0, 0, second, 0, 0, 0]),
            (0x31, 2, &[0, points, 1, 0]),
            (0x36, 1, &[2, 1]),
            (0x37, 1, &[document, 1, source]),
        ],
        0,
    );
    let mut id = vec![7; 20];
    id.extend([0; 12]);
    root(&[
        ("#Pdb", &id),
        ("#~", &stream),
        ("#GUID", &EMBEDDED_SOURCE),
        ("#Blob", &heap.0),
    ])
}

#[test]
fn document_names_are_joined_from_parts() {
    // Separators of one byte, of none and of several.
    for (separator, names) in [
        ("/", ["/src/ä.cs", "src/b.cs"]),
        ("\\", ["\\src\\ä.cs", "src\\b.cs"]),
        ("\0", ["srcä.cs", "srcb.cs"]),
        ("→", ["→src→ä.cs", "src→b.cs"]),
    ] {
        let bytes = pdb(&[], separator, &[]);
        let pdb = PortablePdb::parse(&bytes).unwrap();
        let found = pdb.documents().map(|row| pdb.document(row).unwrap().name);
        assert_eq!(found.collect::<Vec<_>>(), names);
    }
}

#[test]
fn names_of_documents_end_somewhere() {
    for (count, len) in [(2, Some(20_000)), (4, None)] {
        let mut heap = Blobs::default();
        let part = heap.add(&[b'x'; 10_000]) as u8;
        let name = heap.add(&[&[0], &[part].repeat(count)[..]].concat()) as u16;
        let stream = tables(&[(0x30, 1, &[name, 0, 0, 0])], 0);
        let data = root(&[("#Pdb", &[0; 32]), ("#~", &stream), ("#Blob", &heap.0)]);
        let pdb = PortablePdb::parse(&data).unwrap();
        let document = pdb.document(1);
        assert_eq!(document.map(|document| document.name.len()), len);
    }
}

#[test]
fn points_change_documents_and_hide() {
    // Header: locals, first document 1. Then (IL, lines, columns, line, column): 0: 10:5 to 10:9;
    // 4: hidden; document 2; 6: 3:1 to 4:2.
    let blob = [0, 1, 0, 0, 4, 10, 5, 4, 0, 0, 0, 2, 2, 1, 2, 0x73, 0x79];
    let bytes = pdb(&blob, "/", &[]);
    let pdb = PortablePdb::parse(&bytes).unwrap();
    let mut points = pdb.sequence_points(1);
    let found: Vec<_> = points
        .by_ref()
        .map(|p| {
            (
                p.il_offset,
                p.document,
                p.start_line,
                p.start_column,
                p.end_line,
                p.end_column,
            )
        })
        .collect();
    assert!(!points.is_damaged());
    let hidden = 0x00fe_efee;
    assert_eq!(
        found,
        [
            (0, 1, 10, 5, 10, 9),
            (4, 1, hidden, 0, hidden, 0),
            (6, 2, 3, 1, 4, 2)
        ]
    );
    let line = |il| {
        pdb.line_at(1, il)
            .map(|line| (line.document, line.start_line, line.il_offset))
    };
    let lines = [line(3), line(5), line(6)];
    assert_eq!(lines, [Some((1, 10, 0)), Some((1, 10, 0)), Some((2, 3, 6))]);
    assert_eq!(pdb.sequence_points(2).next(), None);
    // A method whose first point is hidden has no line before it.
    let bytes = self::pdb(&[0, 1, 2, 0, 0, 3, 0, 1, 8, 1], "/", &[]);
    let pdb = PortablePdb::parse(&bytes).unwrap();
    assert_eq!(pdb.line_at(1, 4), None);
    assert_eq!(
        pdb.first_line(1)
            .map(|line| (line.start_line, line.il_offset)),
        Some((8, 5))
    );
}

#[test]
fn damaged_points_end_with_an_error() {
    let blob = [0, 1, 0, 0, 4, 10, 5, 4, 0, 0];
    for cut in 1..blob.len() {
        let bytes = pdb(&blob[..cut], "/", &[]);
        let pdb = PortablePdb::parse(&bytes).unwrap();
        let mut points = pdb.sequence_points(1);
        let count = points.by_ref().count();
        assert_eq!(count, usize::from(cut >= 7));
        assert_eq!(points.is_damaged(), cut != 2 && cut != 7, "{cut}");
    }
}

#[test]
fn source_link_leads_to_documents() {
    const SOURCE_LINK: [u8; 16] = [
        0x56, 0x05, 0x11, 0xcc, 0x91, 0xa0, 0x38, 0x4d, 0x9f, 0xec, 0x25, 0xab, 0x9a, 0x35, 0x1a,
        0x6a,
    ];
    let json = br#"{"documents":{"src/*":"https://host/*"}}"#;
    let mut heap = Blobs::default();
    let parts = ["src", "b.cs"].map(|part| heap.add(part.as_bytes()) as u8);
    let name = heap.add(&[b'/', parts[0], parts[1]]) as u16;
    let (other, link) = (heap.add(b"other") as u16, heap.add(json) as u16);
    let module = 1 << 5 | 7;
    // Out of order, with a row of another parent in between.
    let (first, second) = ([module, 1, other], [module, 2, link]);
    let else_is = [1 << 5 | 22, 1, other];
    for (sorted, rows) in [
        (0, [first, else_is, second]),
        (1 << 0x37, [first, second, else_is]),
    ] {
        let rows = rows.concat();
        let stream = tables(&[(0x30, 1, &[name, 0, 0, 0]), (0x37, 3, &rows)], sorted);
        let data = root(&[
            ("#Pdb", &[0; 32]),
            ("#~", &stream),
            ("#GUID", &[EMBEDDED_SOURCE, SOURCE_LINK].concat()),
            ("#Blob", &heap.0),
        ]);
        let pdb = PortablePdb::parse(&data).unwrap();
        assert_eq!(pdb.source_link_json(), Some(&json[..]));
        let url = pdb.source_link_url(1);
        assert_eq!(url.as_deref(), Some("https://host/b.cs"));
        assert_eq!(pdb.source_link_url(2), None);
    }
}

#[test]
fn embedded_source_is_unpacked_within_the_limit() {
    use std::io::Write;
    let text = b"class A { }".repeat(20);
    let mut packer = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(&text).unwrap();
    let packed = packer.finish().unwrap();
    let sized = |size: u32, data: &[u8]| pdb(&[], "/", &[&size.to_le_bytes()[..], data].concat());
    let source = |bytes: &[u8], limit| PortablePdb::parse(bytes).unwrap().embedded_source(1, limit);
    assert_eq!(source(&sized(220, &packed), 220), Ok(Some(text.clone())));
    assert_eq!(source(&sized(0, &text), 220), Ok(Some(text.clone())));
    for (bytes, limit) in [(sized(220, &packed), 219), (sized(0, &text), 219)] {
        assert!(matches!(source(&bytes, limit), Err(Error::TooLarge { .. })));
    }
    for size in [219, 221, u32::MAX] {
        assert!(
            matches!(
                source(&sized(size, &packed), usize::MAX),
                Err(Error::Damaged { .. })
            ),
            "{size}"
        );
    }
    assert_eq!(
        PortablePdb::parse(&sized(0, &text))
            .unwrap()
            .embedded_source(2, 9),
        Ok(None)
    );
}

/// The cells of a row: values and the bytes that each takes.
type Cells = Vec<(u32, usize)>;

/// Returns a `#~` stream whose cells have widths of their own: table number, rows.
fn wide_tables(tables: &[(u8, Vec<Cells>)], heap_flags: u8) -> Vec<u8> {
    let counts: Vec<_> = tables
        .iter()
        .map(|(table, rows)| (*table, rows.len() as u32))
        .collect();
    let cells = tables.iter().flat_map(|table| table.1.iter().flatten());
    let rows = cells.flat_map(|&(value, width)| value.to_le_bytes().into_iter().take(width));
    stream(heap_flags, &counts, 0, &rows.collect::<Vec<_>>())
}

/// Returns a PDB of as many methods and documents: method k has document k, and k is the state
/// machine of its neighbour.
fn large_pdb(methods: u32, documents: u32, wide_heaps: bool, uncompressed: bool) -> Vec<u8> {
    let index = |rows: u32, limit: u32| if uncompressed || rows >= limit { 4 } else { 2 };
    let heap = if wide_heaps || uncompressed { 4 } else { 2 };
    // Padding before the blobs, so that wide indexes are needed.
    let room = if wide_heaps { 0x1_0000 } else { 1 };
    let mut blobs = vec![0; room];
    // The document's name, whose only part is the blob after it: its index is a compressed integer.
    let part = room as u32 + 6;
    blobs.push(5);
    blobs.push(b'/');
    blobs.extend((part | 0xc000_0000).to_be_bytes());
    blobs.extend([4, b'b', b'.', b'c', b's']);
    let points = blobs.len() as u32;
    // Locals; IL 0, one column of line 300, column 5.
    blobs.extend([7, 0, 0, 0, 2, 0x81, 0x2c, 5]);
    let extended = blobs.len() as u32;
    blobs.extend([8, 0, 0, 0, 2, 0x81, 0x2c, 5, 0]);
    let document = vec![(room as u32, heap), (0, heap), (0, heap), (0, heap)];
    let information = |k: u32| {
        let blob = if k == methods { extended } else { points };
        vec![(k.min(documents), index(documents, 0x1_0000)), (blob, heap)]
    };
    let method = index(methods, 0x1_0000);
    let of_any = index(methods.max(documents), 0x1_0000 >> 5);
    let machine = |k: u32| vec![(k, method), (k ^ 1, method)];
    let stream = wide_tables(
        &[
            // Rows of edit and continue, which are skipped.
            (0x1e, vec![vec![(1, 4), (2, 4)]; 3]),
            (0x1f, vec![vec![(1, 4)]; 3]),
            (0x30, vec![document; documents as usize]),
            (0x31, (1..=methods).map(information).collect()),
            (0x36, (2..methods).map(machine).collect()),
            // Five bits of its first index select the table.
            (0x37, vec![vec![(54, of_any), (5, heap), (77, heap)]]),
        ],
        0x40 | if wide_heaps { 7 } else { 0 },
    );
    let mut id = vec![7; 20];
    id.extend(0u32.to_le_bytes());
    id.extend((1u64 << 6).to_le_bytes());
    id.extend(methods.to_le_bytes());
    let name = if uncompressed { "#-" } else { "#~" };
    let mut streams = vec![("#Pdb", &id[..]), (name, &stream), ("#Blob", &blobs)];
    if uncompressed {
        streams.push(("#JTD", &[]));
    }
    root(&streams)
}

#[test]
fn indexes_widen_with_their_target() {
    for (methods, documents) in [
        (100, 100),
        (2047, 3),
        (2048, 3),
        (0xffff, 3),
        (0x1_0000, 3),
        (70_000, 70_000),
    ] {
        for (wide_heaps, uncompressed) in [(false, false), (true, false), (true, true)] {
            let bytes = large_pdb(methods, documents, wide_heaps, uncompressed);
            let pdb = PortablePdb::parse(&bytes).unwrap();
            assert_eq!(
                (pdb.method_count(), pdb.documents().count() as u32),
                (methods, documents)
            );
            for method in [1, 2, methods / 2, methods - 1, methods] {
                let line = pdb.line_at(method, 0).unwrap();
                let document = method.min(documents);
                assert_eq!(
                    (line.document, line.start_line),
                    (document, 300),
                    "{method}"
                );
                assert_eq!(pdb.document(document).unwrap().name, "b.cs");
            }
            // The second state machine is the third method.
            let cell = |table, row, column| pdb.metadata.tables.cell(Table(table), row, column);
            assert_eq!([0, 1].map(|column| cell(0x36, 2, column)), [3, 2]);
            assert_eq!([0, 1, 2].map(|column| cell(0x37, 1, column)), [54, 5, 77]);
            // The last method's blob is one byte longer than its points.
            let mut points = pdb.sequence_points(methods);
            assert_eq!((points.by_ref().count(), points.is_damaged()), (1, true));
            // One row less than stated is noticed.
            assert!(PortablePdb::parse(&bytes[..bytes.len() / 2]).is_err());
        }
    }
}

#[test]
fn points_of_one_method_end_somewhere() {
    // Two bytes per hidden point, as many as 16 bits of a test's heap can address: the limit is
    // higher, and applies if it is set.
    let blob = [&[0, 1, 0, 0, 0][..], &[1, 0, 0].repeat(5_000)].concat();
    let bytes = pdb(&blob, "/", &[]);
    let pdb = PortablePdb::parse(&bytes).unwrap();
    assert_eq!(pdb.sequence_points(1).count(), 5_001);
    let few = SequencePoints::new(1, &blob[1..]).at_most(100);
    assert_eq!(few.count(), 100);
}

#[test]
fn long_lists_answer_as_short_ones_do() {
    // A visible point, then three thousand hidden ones; at last visible ones, a line each.
    let points = [
        &[0, 1, 2, 0, 1, 7, 1][..],
        &[1, 0, 0].repeat(3_000),
        &[2, 0, 1, 2, 0].repeat(2_000),
    ];
    for points in [
        &points[..],
        &[&[0, 1, 0, 0, 0], points[1], &[1, 0, 1, 9, 1]],
    ] {
        let bytes = pdb(&points.concat(), "/", &[]);
        let pdb = PortablePdb::parse(&bytes).unwrap();
        let visible = || pdb.sequence_points(1).filter(|point| !point.is_hidden());
        assert_eq!(pdb.first_line(1), visible().next());
        for il in [
            0,
            2,
            3,
            500,
            3_001,
            3_002,
            3_003,
            4_567,
            7_001,
            7_002,
            7_003,
            u32::MAX,
        ] {
            let before = visible().take_while(|point| point.il_offset <= il);
            assert_eq!(pdb.line_at(1, il), before.last(), "{il}");
        }
    }
}
