//! Event type definitions in all their forms.

mod common;

use chronosym_nettrace::{EventType, Field, FieldType, Guid};
use chronosym_support::netperf::NetperfWriter;
use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::trace::{FieldKind, FieldSpec, TypeSpec};
use common::read;

fn only(bytes: &[u8]) -> EventType {
    let trace = read(bytes);
    assert!(trace.diagnostics.is_clean(), "{:?}", trace.diagnostics);
    assert_eq!(trace.types.len(), 1);
    trace.types[0].clone()
}

/// An event block of V4 with these blobs.
fn event_block(flags: u8, blobs: &[u8]) -> Vec<u8> {
    let mut block = vec![20, 0, flags, 0];
    block.extend([0; 16]);
    block.extend_from_slice(blobs);
    block
}

#[test]
fn a_definition_among_events_is_not_an_event() {
    let mut writer = NettraceWriter::v4();
    let kind = writer.event_type("P", 1, 0);
    writer.event(kind, 1, 1, &[], b"w");
    writer.flush();
    // Id 2, provider "Q", event 5, no name, keywords, version, level, fields.
    let mut definition = vec![2, 0, 0, 0, b'Q', 0, 0, 0, 5, 0, 0, 0, 0, 0];
    definition.extend([0; 8 + 4 + 4 + 4]);
    // Flags 1|2|4|128: type 1, sequence, capture thread 7, processor, thread 7, time, size.
    let mut blobs = vec![0x87, 1, 0, 7, 0, 7, 1, 1, b'x'];
    // Flags 1|128: type 0, time; then type 2.
    blobs.extend([0x81, 0, 1, definition.len() as u8]);
    blobs.extend(&definition);
    blobs.extend([0x81, 2, 1, 1, b'y']);
    writer.object("EventBlock", &event_block(1, &blobs));
    // A block with a header only.
    writer.object("EventBlock", &event_block(1, &[]));
    let trace = read(&writer.finish());
    assert!(trace.diagnostics.is_clean(), "{:?}", trace.diagnostics);
    let events = trace.events();
    let events: Vec<_> = events[1..]
        .iter()
        .map(|event| (event.event_type, event.sequence, event.payload.as_slice()))
        .collect();
    assert_eq!(events, [(0, 1, b"x".as_slice()), (1, 2, b"y")]);
    assert_eq!(
        (trace.types[1].provider.as_str(), trace.types[1].id),
        ("Q", 5)
    );
}

#[test]
fn uncompressed_events_are_aligned_to_four_bytes() {
    let mut writer = NettraceWriter::v4();
    let kind = writer.event_type("P", 1, 0);
    writer.event(kind, 1, 1, &[], b"w");
    writer.flush();
    let mut blobs = Vec::new();
    let payloads = [b"a".as_slice(), b"bb", b"ccc", b"dddd", b"e"];
    for (payload, sequence) in payloads.iter().zip(1_u8..) {
        blobs.extend([76 + payload.len() as u8, 0, 0, 0]);
        // Type, sequence, thread and capture thread 7; processor, stack, time, ids.
        blobs.extend([1, 0, 0, 0, sequence, 0, 0, 0]);
        blobs.extend([7, 0, 0, 0, 0, 0, 0, 0].repeat(2));
        blobs.extend([0; 4 + 4 + 8 + 32]);
        blobs.extend([payload.len() as u8, 0, 0, 0]);
        blobs.extend_from_slice(payload);
        blobs.resize(blobs.len().next_multiple_of(4), 0);
    }
    writer.object("EventBlock", &event_block(0, &blobs));
    let trace = read(&writer.finish());
    assert!(trace.diagnostics.is_clean(), "{:?}", trace.diagnostics);
    let events = trace.events();
    let found: Vec<_> = events[1..].iter().map(|event| &*event.payload).collect();
    assert_eq!(found, payloads);
}

#[test]
fn a_definition_that_ends_early_is_counted() {
    let mut writer = NettraceWriter::v4();
    let kind = writer.event_type("P", 1, 0);
    writer.event(kind, 1, 1, &[], &[]);
    writer.flush();
    writer.object(
        "MetadataBlock",
        &event_block(1, &[0x81, 0, 1, 4, 2, 0, 0, 0]),
    );
    let trace = read(&writer.finish());
    let found = &trace.diagnostics;
    assert_eq!((found.metadata_records, found.bad_records), (2, 1));
    assert_eq!(trace.types.len(), 1);
}

#[test]
fn netperf_events_of_no_type_are_counted() {
    for mut writer in [NetperfWriter::v2(), NetperfWriter::v3()] {
        let kind = writer.event_type("P", 1, 0);
        writer.event(kind, 1, 1, &[], b"payload");
        let mut bytes = writer.finish();
        let payload = bytes.windows(7).position(|window| window == b"payload");
        // Before it: type, thread, time, two ids, size.
        let at = payload.expect("an event") - (4 + 4 + 8 + 32 + 4);
        bytes[at] = 99;
        let trace = read(&bytes);
        assert_eq!(trace.diagnostics.unknown_metadata, 1);
        assert!(trace.events().is_empty());
    }
}

fn field(name: &str, field_type: FieldType) -> Field {
    Field::new(name, field_type)
}

fn spec() -> TypeSpec {
    TypeSpec::new("Müller-Source", 70_000, 3)
        .named("Häppens")
        .at_level(0x8000_0000_0000_0001, 4)
        .field("Count", FieldKind::I32)
        .field("Text", FieldKind::UTF16)
        .field(
            "Inner",
            FieldKind::Object(vec![
                FieldSpec {
                    name: "A".into(),
                    kind: FieldKind::U64,
                },
                FieldSpec {
                    name: "B".into(),
                    kind: FieldKind::Object(vec![]),
                },
            ]),
        )
}

fn check(event_type: &EventType) {
    assert_eq!(event_type.provider, "Müller-Source");
    assert_eq!(
        (event_type.id, event_type.version, event_type.level),
        (70_000, 3, 4)
    );
    assert_eq!(event_type.name, "Häppens");
    assert_eq!(event_type.keywords, 0x8000_0000_0000_0001);
    let fields = event_type.fields.as_deref().expect("a readable field list");
    assert_eq!(
        fields[..3],
        [
            field("Count", FieldType::I32),
            field("Text", FieldType::Utf16),
            field(
                "Inner",
                FieldType::Object(vec![
                    field("A", FieldType::U64),
                    field("B", FieldType::Object(vec![]))
                ])
            ),
        ]
    );
}

#[test]
fn fields_of_netperf_and_v4() {
    let mut v2 = NetperfWriter::v2();
    v2.define(&spec());
    let mut v3 = NetperfWriter::v3();
    v3.define(&spec());
    let mut v4 = NettraceWriter::v4();
    v4.define(spec());
    for bytes in [v2.finish(), v3.finish(), v4.finish()] {
        check(&only(&bytes));
    }
}

#[test]
fn netperf_v1_names_providers_by_guid() {
    let mut writer = NetperfWriter::v1();
    let guid = *b"\x6d\xa0\x3a\xe1\x4d\x9a\x54\x4f\x97\x20\x1a\x1c\x30\xda\x7b\x10";
    writer.define(&TypeSpec {
        provider_guid: Some(guid),
        ..spec()
    });
    let event_type = only(&writer.finish());
    assert_eq!(event_type.provider, "e13aa06d-9a4d-4f54-9720-1a1c30da7b10");
    assert_eq!(event_type.provider_guid, Some(Guid(guid)));
    assert_eq!(event_type.id, 70_000);
}

#[test]
fn tags_hold_opcode_and_array_fields() {
    let mut writer = NettraceWriter::v5();
    writer.define(spec().with_opcode(17).field(
        "List",
        FieldKind::array_of(FieldKind::array_of(FieldKind::U16)),
    ));
    let event_type = only(&writer.finish());
    check(&event_type);
    assert_eq!(event_type.opcode, Some(17));
    let list = FieldType::Array(Box::new(FieldType::Array(Box::new(FieldType::U16))));
    assert_eq!(event_type.fields.expect("readable")[3], field("List", list));
}

#[test]
fn v6_rows_hold_everything() {
    let mut writer = NettraceWriter::v6();
    let boxed = |code| Box::new(FieldKind::Plain(code));
    writer.define(TypeSpec {
        provider_guid: Some([7; 16]),
        message_template: Some("{Count} of it".into()),
        description: Some("it happened".into()),
        key_values: vec![("k".into(), "v".into())],
        ..spec()
            .with_opcode(17)
            .field("Fixed", FieldKind::FixedArray(boxed(6), 300))
            .field("Rel", FieldKind::RelLoc(boxed(23)))
            .field("Data", FieldKind::DataLoc(boxed(8)))
            .field("VarInt", FieldKind::Plain(20))
            .field("VarUInt", FieldKind::VAR_U)
            .field("Flag", FieldKind::Plain(26))
    });
    let event_type = only(&writer.finish());
    check(&event_type);
    assert_eq!(event_type.opcode, Some(17));
    assert_eq!(event_type.provider_guid, Some(Guid([7; 16])));
    assert_eq!(
        event_type.message_template.as_deref(),
        Some("{Count} of it")
    );
    assert_eq!(event_type.description.as_deref(), Some("it happened"));
    assert_eq!(event_type.key_values, [("k".to_owned(), "v".to_owned())]);
    assert_eq!(
        event_type.fields.expect("readable")[3..],
        [
            field("Fixed", FieldType::FixedArray(Box::new(FieldType::U8), 300)),
            field("Rel", FieldType::RelLoc(Box::new(FieldType::Char8))),
            field("Data", FieldType::DataLoc(Box::new(FieldType::U16))),
            field("VarInt", FieldType::VarInt),
            field("VarUInt", FieldType::VarUInt),
            field("Flag", FieldType::Bool8),
        ]
    );
}

#[test]
fn every_plain_type_has_its_code() {
    let codes = (3..=18).chain([20, 21, 23, 26]);
    let mut spec = TypeSpec::new("P", 1, 0);
    for code in codes.clone() {
        spec = spec.field("f", FieldKind::Plain(code));
    }
    let mut writer = NettraceWriter::v6();
    writer.define(spec);
    let fields = only(&writer.finish()).fields.expect("readable");
    let types: Vec<_> = fields
        .into_iter()
        .map(|field| format!("{:?}", field.ty))
        .collect();
    let names = "Bool32 Char16 I8 U8 I16 U16 I32 U32 I64 U64 F32 F64 Decimal FileTime Guid Utf16 VarInt VarUInt Char8 Bool8";
    assert_eq!(types, names.split(' ').collect::<Vec<_>>());
}

/// An object in an object in an object … `depth` times.
fn nested(depth: usize) -> FieldKind {
    (0..depth).fold(FieldKind::U8, |inner, _| {
        FieldKind::Object(vec![FieldSpec {
            name: "n".into(),
            kind: inner,
        }])
    })
}

#[test]
fn an_unreadable_field_list_keeps_the_type_and_its_events() {
    let arrays = (0..40).fold(FieldKind::U8, |inner, _| FieldKind::array_of(inner));
    for kind in [
        FieldKind::Plain(99),
        FieldKind::Plain(0),
        nested(40),
        arrays,
    ] {
        for mut writer in [
            NettraceWriter::v4(),
            NettraceWriter::v5(),
            NettraceWriter::v6(),
        ] {
            let bad = writer.define(
                TypeSpec::new("P", 1, 2)
                    .named("Bad")
                    .field("f", kind.clone()),
            );
            let good = writer.define(TypeSpec::new("P", 2, 2).field("f", FieldKind::U8));
            writer.event(bad, 1, 1, &[], b"x");
            writer.event(good, 2, 1, &[], b"y");
            let trace = read(&writer.finish());
            assert_eq!(trace.diagnostics.unreadable_fields, 1);
            assert_eq!(
                (trace.types[0].provider.as_str(), trace.types[0].id),
                ("P", 1)
            );
            assert_eq!(trace.types[0].name, "Bad");
            assert_eq!(trace.types[1].fields.as_ref().map(Vec::len), Some(1));
            assert_eq!(trace.events().len(), 2);
        }
    }
}

#[test]
fn a_field_of_an_unknown_type_is_skipped_if_fields_have_sizes() {
    let spec = spec()
        .with_opcode(17)
        .field("New", FieldKind::Plain(99))
        .field("List", FieldKind::Array(Box::new(FieldKind::Plain(98))))
        .field("Last", FieldKind::U8);
    let mut v4 = NettraceWriter::v4();
    v4.define(spec.clone());
    let trace = read(&v4.finish());
    assert_eq!(trace.types[0].fields, None);
    let mut v5 = NettraceWriter::v5();
    v5.define(spec.clone());
    let mut v6 = NettraceWriter::v6();
    v6.define(spec);
    for bytes in [v5.finish(), v6.finish()] {
        let trace = read(&bytes);
        check(&trace.types[0]);
        assert_eq!(trace.types[0].opcode, Some(17));
        let fields = trace.types[0].fields.as_deref().expect("readable");
        assert_eq!(
            fields[3..],
            [
                field("New", FieldType::Unknown),
                field("List", FieldType::Unknown),
                field("Last", FieldType::U8),
            ]
        );
        assert_eq!(trace.diagnostics.unreadable_fields, 1);
        assert_eq!(trace.diagnostics.bad_records, 0);
    }
}

#[test]
fn arguments_before_an_unknown_option_are_kept() {
    let mut writer = NettraceWriter::v6();
    // Id 1, provider "P", event 5, no name, no fields; options: version 3, then 77 with something.
    writer.block(
        3,
        &[0, 0, 14, 0, 1, 1, b'P', 5, 0, 0, 0, 5, 0, 9, 3, 77, 1, 2],
    );
    let trace = read(&writer.finish());
    assert_eq!(trace.types[0].version, 3);
    assert_eq!(trace.diagnostics.unknown_options, 1);
    assert_eq!(trace.diagnostics.bad_records, 0);
}

#[test]
fn deep_but_sane_nesting_is_read() {
    let mut writer = NettraceWriter::v4();
    writer.define(TypeSpec::new("P", 1, 2).field("f", nested(7)));
    assert!(only(&writer.finish()).fields.is_some());
}

#[test]
fn a_redefinition_makes_a_new_type_and_a_repetition_does_not() {
    let mut writer = NettraceWriter::v6();
    let first = writer.event_type("P", 1, 0);
    writer.event(first, 1, 1, &[], b"a");
    // Both come again after the flush, as the writer has it.
    writer.sequence_point_with(2);
    writer.event(first, 2, 1, &[], b"b");
    writer.flush();
    // A row of the same id with other content: id 1, provider "Q", event 5, no name, no fields, no
    // options.
    writer.block(3, &[0, 0, 9, 0, 1, 1, b'Q', 5, 0, 0, 0, 0, 0]);
    writer.event(first, 3, 1, &[], b"c");
    let trace = read(&writer.finish());
    assert!(trace.diagnostics.is_clean(), "{:?}", trace.diagnostics);
    let events: Vec<_> = trace
        .events()
        .iter()
        .map(|event| event.event_type)
        .collect();
    assert_eq!(events, [0, 0, 1]);
    let types: Vec<_> = trace
        .types
        .iter()
        .map(|event_type| (event_type.provider.as_str(), event_type.id))
        .collect();
    assert_eq!(types, [("P", 1), ("Q", 5)]);
    assert_eq!(trace.diagnostics.metadata_records, 3);
}

#[test]
fn events_of_types_forgotten_by_a_sequence_point_are_counted() {
    let mut writer = NettraceWriter::v6();
    let kind = writer.event_type("P", 1, 0);
    writer.event(kind, 1, 1, &[], b"a");
    writer.flush();
    // An own sequence point that forgets types: time, flags, no threads.
    let mut point = vec![0; 8];
    point.extend([2, 0, 0, 0, 0, 0, 0, 0]);
    writer.block(4, &point);
    writer.event(kind, 2, 1, &[], b"b");
    let trace = read(&writer.finish());
    assert_eq!(trace.events().len(), 1);
    assert_eq!(trace.diagnostics.unknown_metadata, 1);
}
