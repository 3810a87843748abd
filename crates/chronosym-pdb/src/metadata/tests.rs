//! Hand-made metadata: cases that no compiler writes.

use std::time::Duration;

use super::*;
use crate::Error;
use chronosym_support::ecma::{root, tables};
use chronosym_support::growth::{Size, Stopwatch, assert_growth};

/// `A` encloses `B`; flags (two cells), name, namespace, base, fields, methods.
const TYPES: &[u16] = &[0, 0, 1, 0, 0, 1, 1, 0, 0, 3, 0, 0, 1, 1];
const STRINGS: &[u8] = b"\0A\0B\0";

fn name_of_b(nested: &[u16], sorted: u64) -> Option<String> {
    let rows = nested.len() as u32 / 2;
    let stream = tables(&[(0x02, 2, TYPES), (0x29, rows, nested)], sorted);
    let data = root(&[("#~", &stream), ("#Strings", STRINGS)]);
    let metadata = Metadata::parse(&data).unwrap();
    metadata
        .type_name(Token::new(Table::TYPE_DEF, 2))
        .map(|name| format!("{}={}", name.full(), name.simple_name()))
}

#[test]
fn nested_types_in_and_out_of_order() {
    let sorted = 1 << 0x29;
    assert_eq!(name_of_b(&[2, 1], sorted).as_deref(), Some("A+B=B"));
    assert_eq!(name_of_b(&[], sorted).as_deref(), Some("B=B"));
    // Rows out of order, as uncompressed metadata may have them.
    assert_eq!(name_of_b(&[7, 1, 2, 1], 0).as_deref(), Some("A+B=B"));
}

#[test]
fn missing_rows_and_owners() {
    let types = |list: u16| [&TYPES[..6], &[list], &TYPES[7..13], &[list]].concat();
    for (first, owners) in [
        (1, [None, Some(2), Some(2), None]),
        (2, [None, None, Some(2), None]),
    ] {
        let types = types(first);
        let methods = [0, 0, 0, 0, 1, 0, 0].repeat(2);
        let refs = [1 << 3 | 2, 3, 0, 2 << 3 | 3, 3, 0];
        let rows: &[(_, _, &[u16])] = &[
            (0x02, 2, &types),
            (0x06, 2, &methods),
            (0x0a, 2, &refs),
            (0x1a, 1, &[1]),
        ];
        let data = root(&[("#~", &tables(rows, 0)), ("#Strings", STRINGS)]);
        let metadata = Metadata::parse(&data).unwrap();
        assert_eq!([0, 1, 2, 3].map(|row| metadata.method_owner(row)), owners);
        // Another table follows the last row.
        assert_eq!(metadata.type_name(Token::new(Table::TYPE_DEF, 3)), None);
        for (flags, convention) in [(0x25, 5), (0x20, 0), (0x09, 9)] {
            let signature = metadata.method_signature(&[flags, 0, 1]).unwrap();
            assert_eq!(signature.convention, convention);
            assert_eq!(signature.has_this, flags & 0x20 != 0);
        }
        // A method of a module in native code, and one of a type that a method is of.
        let member = |row| metadata.method(Token::new(Table::MEMBER_REF, row));
        let names = [1, 2].map(|row| member(row).map(|name| name.to_string()));
        assert_eq!(names, [Some("?.B".to_owned()), Some("B.B".to_owned())]);
    }
}

#[test]
fn overlong_names_of_nested_types_are_rejected() {
    let name = |depth: u16| {
        let types: Vec<u16> = (0..depth).flat_map(|_| [0, 0, 1, 0, 0, 1, 1]).collect();
        let nested: Vec<u16> = (2..=depth).flat_map(|row| [row, row - 1]).collect();
        let rows: &[(_, _, &[u16])] = &[
            (0x02, depth.into(), &types),
            (0x29, u32::from(depth) - 1, &nested),
        ];
        let strings = [&[0], &[b'N'; 1 << 10][..], &[0]].concat();
        let data = root(&[("#~", &tables(rows, 1 << 0x29)), ("#Strings", &strings)]);
        let metadata = Metadata::parse(&data).unwrap();
        let name = metadata.type_name(Token::new(Table::TYPE_DEF, depth.into()));
        name.map(|name| name.full().len())
    };
    assert_eq!(name(16), Some((16 << 10) + 15));
    assert_eq!((name(17), name(18)), (None, None));
}

#[test]
fn types_that_enclose_each_other_have_no_name() {
    let sorted = 1 << 0x29;
    assert_eq!(name_of_b(&[2, 2], sorted), None);
    assert_eq!(name_of_b(&[1, 2, 2, 1], sorted), None);
    assert_eq!(name_of_b(&[2, 9], sorted), None);
}

#[test]
fn counts_beyond_the_file_are_errors() {
    for rows in [3, 0x1_0000, u32::MAX] {
        let data = root(&[
            ("#~", &tables(&[(0x02, rows, TYPES)], 0)),
            ("#Strings", STRINGS),
        ]);
        assert!(
            matches!(Metadata::parse(&data), Err(Error::Truncated { .. })),
            "{rows}"
        );
    }
    let unknown = root(&[("#~", &tables(&[(0x3f, 1, &[0])], 0))]);
    assert!(matches!(
        Metadata::parse(&unknown),
        Err(Error::Damaged { .. })
    ));
    assert!(matches!(
        Metadata::parse(&root(&[])),
        Err(Error::Damaged { .. })
    ));
    assert!(matches!(Metadata::parse(b"MZ"), Err(Error::NotA { .. })));
}

#[test]
fn methods_after_a_pointer_table() {
    // Method row 2 is the first of the list, row 1 the second: A owns entry 1, B entry 2.
    let types: &[u16] = &[0, 0, 1, 0, 0, 1, 1, 0, 0, 3, 0, 0, 1, 2];
    let methods: &[u16] = &[0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 1, 0, 0];
    let stream = tables(
        &[(0x02, 2, types), (0x05, 2, &[2, 1]), (0x06, 2, methods)],
        0,
    );
    let data = root(&[
        ("#-", &stream),
        ("#Strings", STRINGS),
        ("#Blob", &[0, 3, 0, 0, 1]),
    ]);
    let metadata = Metadata::parse(&data).unwrap();
    assert_eq!(
        (metadata.method_owner(1), metadata.method_owner(2)),
        (Some(2), Some(1))
    );
    assert_eq!(
        (metadata.method_owner(0), metadata.method_owner(3)),
        (None, None)
    );
    let name = metadata.method(Token::new(Table::METHOD_DEF, 1)).unwrap();
    assert_eq!(
        (name.to_string().as_str(), name.signature_text()),
        ("B.B", String::new())
    );
}

/// The bytes of a row of each table (ECMA-335 II.22, and the portable PDB's) where all indexes are
/// narrow.
const ROWS: [&[usize]; 4] = [
    &[10, 6, 14, 2, 6, 2, 14, 2, 6, 4, 6, 6, 6, 4, 6, 8],
    &[6, 2, 4, 2, 6, 4, 2, 6, 6, 6, 2, 2, 8, 6, 8, 4],
    &[22, 4, 12, 20, 6, 14, 8, 14, 12, 4, 8, 4, 4],
    &[8, 4, 16, 6, 4, 4],
];

#[test]
fn tables_of_every_kind_are_stepped_over() {
    for (of, sizes) in (0_u8..).step_by(16).zip(ROWS) {
        for (table, size) in (of..).zip(sizes) {
            let row = vec![0; size / 2];
            let stream = tables(&[(table, 1, &row), (0x36, 1, &[7, 9])], 0);
            let data = root(&[("#~", &stream)]);
            let metadata = Metadata::parse(&data).unwrap();
            let cell = metadata.tables.cell(Table(0x36), 1, 1);
            assert_eq!(cell, 9, "{table:#x}");
        }
    }
}

/// One module with type specifications; gives the text of the last one.
fn type_specs(blobs: &[&[u8]]) -> Option<String> {
    let mut heap = vec![0];
    let mut rows = Vec::new();
    for blob in blobs {
        rows.push(heap.len() as u16);
        heap.push(blob.len() as u8);
        heap.extend_from_slice(blob);
    }
    let stream = tables(&[(0x02, 2, TYPES), (0x1b, rows.len() as u32, &rows)], 0);
    let data = root(&[("#~", &stream), ("#Strings", STRINGS), ("#Blob", &heap)]);
    let metadata = Metadata::parse(&data).unwrap();
    let of = metadata.type_of(Token::new(Table::TYPE_SPEC, rows.len() as u32))?;
    Some(of.text(TypeFormat::Signature))
}

#[test]
fn types_in_every_form() {
    for (blob, wanted) in [
        (&[0x04][..], "int8"),
        (&[0x16], "refany"),
        (&[0x0f, 0x01], "void*"),
        (&[0x10, 0x11, 0x08], "value class B&"),
        (
            &[0x15, 0x12, 0x04, 2, 0x0e, 0x13, 3],
            "class A<class System.String,!3>",
        ),
        (&[0x14, 0x08, 3, 0, 3, 0, 0, 0], "int32[,,]"),
        (&[0x14, 0x08, 2, 2, 4, 5, 2, 0, 2], "int32[4,1...5]"),
        (
            &[0x1b, 0x05, 2, 0x01, 0x08, 0x41, 0x1c],
            "fnptr void(int32,...,class System.Object)",
        ),
        (&[0x20, 0x04, 0x1e, 0], "optional_modifier A !!0"),
        (&[0x1d, 0x3e], "class System.__Canon[]"),
        (&[0x1d, 0x45, 0x18], "int pinned[]"),
        // A native value type's marker; a type of another module, and one of this again.
        (&[0x3d, 0x08], "int32"),
        (
            &[0x15, 0x12, 0x04, 2, 0x3f, 0x01, 0x08, 0x12, 0x04],
            "class A<int32,class A>",
        ),
        (
            &[0x1b, 0, 6, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07],
            "fnptr void(bool,wchar,int8,unsigned int8,int16,unsigned int16)",
        ),
        (
            &[0x1b, 0, 7, 0x01, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x19],
            "fnptr void(int32,unsigned int32,int64,unsigned int64,float32,float64,unsigned int)",
        ),
    ] {
        assert_eq!(type_specs(&[blob]).as_deref(), Some(wanted));
        for cut in 0..blob.len() {
            assert_eq!(type_specs(&[&blob[..cut]]), None, "{wanted} cut to {cut}");
        }
    }
}

#[test]
fn type_specifications_cannot_recurse_or_grow_without_end() {
    // Itself; a pointer chain; pairs of pairs of pairs.
    assert_eq!(type_specs(&[&[0x12, 0x06]]), None);
    assert_eq!(type_specs(&[&[0x0f; 100]]), None);
    let pairs: Vec<Vec<u8>> = (0..40u8)
        .map(|row| {
            if row == 0 {
                vec![0x08]
            } else {
                [
                    &[0x15, 0x12, 0x04, 2][..],
                    &[0x12, row << 2 | 2, 0x12, row << 2 | 2],
                ]
                .concat()
            }
        })
        .collect();
    let pairs: Vec<&[u8]> = pairs.iter().take(31).map(Vec::as_slice).collect();
    assert_eq!(type_specs(&pairs), None);
    assert!(type_specs(&pairs[..5]).is_some_and(|text| text.matches("int32").count() == 16));
}

#[test]
fn names_that_all_parts_of_a_signature_share_are_not_copied_for_each() {
    const PARAMETERS: usize = 4_000;
    // One type with a long name, and a method whose parameters are all of it.
    let mut strings = vec![0];
    strings.extend([b'N'; 60_000]);
    strings.extend([0; 2]);
    let mut signature = vec![0, 0x80 | (PARAMETERS >> 8) as u8, PARAMETERS as u8, 1];
    signature.extend([0x12, 1 << 2 | 1].repeat(PARAMETERS));
    let mut blob = vec![0];
    blob.extend((signature.len() as u16 | 0x8000).to_be_bytes());
    blob.extend(signature);
    let types: &[u16] = &[0, 0, 1, 0, 0, 1, 1];
    let stream = tables(
        &[
            (0x01, 1, &[0, 1, 0]),
            (0x02, 1, types),
            (0x06, 1, &[0, 0, 0, 0, 1, 1, 1]),
        ],
        0,
    );
    let data = root(&[("#~", &stream), ("#Strings", &strings), ("#Blob", &blob)]);
    let metadata = Metadata::parse(&data).unwrap();
    let method = metadata.method(Token::new(Table::METHOD_DEF, 1)).unwrap();
    // Longer names than the runtime takes are cut, and a signature of many long ones is none.
    assert_eq!(method.name.len(), 4 << 10);
    assert_eq!(method.signature, None);
    let owner = metadata.type_of(Token::new(Table::TYPE_REF, 1)).unwrap();
    assert_eq!(
        owner.text(TypeFormat::Signature).len(),
        "class ".len() + (4 << 10)
    );
}

#[test]
fn tables_in_no_order_are_searched_once() {
    // Each looks for its encloser among rows that are in no order.
    let time = |count: u16| {
        let types: Vec<u16> = (0..count).flat_map(|_| [0, 0, 1, 0, 0, 1, 1]).collect();
        let nested: Vec<u16> = (0..count).rev().flat_map(|row| [row + 2, 1]).collect();
        let tables = tables(
            &[(0x02, count.into(), &types), (0x29, count.into(), &nested)],
            0,
        );
        let data = root(&[("#~", &tables), ("#Strings", STRINGS)]);
        let metadata = Metadata::parse(&data).unwrap();
        let watch = Stopwatch::start();
        for row in 2..=u32::from(count) {
            let name = metadata.type_name(Token::new(Table::TYPE_DEF, row));
            assert_eq!(name.map(|name| name.full().len()), Some(3));
        }
        watch.used()
    };
    assert_growth("nested types", 30.0, Duration::from_millis(100), |size| {
        time(if size == Size::Small { 2_000 } else { 16_000 })
    });
}
