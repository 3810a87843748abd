//! TraceLogging schemas and payloads: every shape of a field, and damage.

use chronosym_etl::{Count, EtlReader, ExtendedItem, PointerSize, Schema};
use chronosym_support::etl::{At, EtlWriter, Event, Options, guid};

/// A trace of one event with this schema, provider traits and payload.
fn trace(schema: &[u8], traits: &[u8], payload: &[u8]) -> Vec<u8> {
    let sized = |data: &[u8]| [&(data.len() as u16 + 2).to_le_bytes(), data].concat();
    let (schema, traits) = (sized(schema), sized(traits));
    let mut w = EtlWriter::new(Vec::new(), Options::default()).unwrap();
    let event = Event {
        channel: 11,
        extended: &[(0xb, &schema), (0xc, &traits)],
        payload,
        ..Event::default()
    };
    w.event(At::ms(1), &event).unwrap();
    w.finish().unwrap()
}

/// The event's values as `depth name: bytes`, and whether the payload held them all.
fn values(schema: &[u8], payload: &[u8]) -> (Vec<String>, bool) {
    let mut reader = EtlReader::open(trace(schema, b"P\0", payload)).unwrap();
    reader.next_record().unwrap();
    let record = reader.next_record().unwrap();
    let mut found = Vec::new();
    let whole = schema_of(record.extended_items()).is_some_and(|schema| {
        schema.values(record.payload, PointerSize::Eight, |depth, field, bytes| {
            found.push(format!("{depth} {}: {bytes:?}", field.name()));
        })
    });
    (found, whole)
}

fn schema_of<'a>(mut items: impl Iterator<Item = ExtendedItem<'a>>) -> Option<Schema<'a>> {
    items.find_map(|item| match item {
        ExtendedItem::SchemaTl(schema) => Some(schema),
        _ => None,
    })
}

#[test]
fn names_tags_and_types() {
    let group = guid(1, 2, 3, 4);
    let traits = [b"My.Provider\0".as_slice(), &[19, 0, 1], &group].concat();
    // Two tag bytes, then fields: an i32 shown as hex with a tag, eight bytes, counted u16, a custom one.
    let schema = b"\x81\x02Event\0a\0\x87\x84\x03b\0\x24\x08\x00c\0\x46d\0\x60\x02\x00xy";
    let mut reader = EtlReader::open(trace(schema, &traits, &[])).unwrap();
    reader.next_record().unwrap();
    let record = reader.next_record().unwrap();
    let items: Vec<_> = record.extended_items().collect();
    let [
        ExtendedItem::SchemaTl(schema),
        ExtendedItem::ProviderTraits(traits),
    ] = items[..]
    else {
        panic!("{items:?}")
    };
    assert_eq!(
        (traits.name().as_ref(), traits.group().unwrap().0),
        ("My.Provider", group)
    );
    assert_eq!(
        (schema.name().as_ref(), schema.tags()),
        ("Event", 1 << 21 | 2 << 14)
    );
    let fields: Vec<_> = schema
        .fields()
        .map(|f| {
            (
                f.name().into_owned(),
                f.in_type,
                f.out_type,
                f.count,
                f.tags,
            )
        })
        .collect();
    assert_eq!(
        fields,
        [
            ("a".into(), 7, 4, Count::One, 3 << 21),
            ("b".into(), 4, 0, Count::Fixed(8), 0),
            ("c".into(), 6, 0, Count::Counted, 0),
            ("d".into(), 0, 0, Count::Custom(b"xy"), 0),
        ]
    );
}

#[test]
fn values_of_every_shape() {
    // Text, counted text, two structs of (u8, counted array of u16), a SID, a custom value.
    let schema = b"\0E\0w\0\x01n\0\x02t\0\x16s\0\xb8\x02\x02\x00x\0\x04y\0\x46sid\0\x13c\0\x60\0\0";
    let schema: Vec<u8> = schema.to_vec();
    let payload = [
        b"h\0i\0\0\0".as_slice(),
        b"ansi\0",
        b"\x02\0z\0",
        b"\x05\x01\0\x07\0",
        b"\x06\0\0",
        &[1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0],
        b"\x03\0abc",
    ]
    .concat();
    let (found, whole) = values(&schema, &payload);
    assert_eq!(
        found,
        [
            "0 w: [104, 0, 105, 0]",
            "0 n: [97, 110, 115, 105]",
            "0 t: [122, 0]",
            "0 s: []",
            "1 x: [5]",
            "1 y: [7, 0]",
            "0 s: []",
            "1 x: [6]",
            "0 sid: [1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0]",
            "0 c: [97, 98, 99]",
        ]
    );
    assert!(whole);
    for cut in 0..payload.len() {
        let (part, whole) = values(&schema, &payload[..cut]);
        assert!(!whole && found.starts_with(&part), "cut at {cut}: {part:?}");
    }
}

#[test]
fn endless_schemas_end() {
    // 65535 structs of 65535 structs without members, and structs that hold themselves all the way down.
    let (found, whole) = values(b"\0E\0a\0\xb8\x01\xff\xffb\0\xb8\x00\xff\xff", &[]);
    assert!(!whole && found.len() <= 1 << 16);
    let deep: Vec<u8> = [0, b'E', 0]
        .into_iter()
        .chain([b's', 0, 0x98, 1].into_iter().cycle().take(4000))
        .collect();
    assert_eq!(values(&deep, &[]), (vec![], false));
}
