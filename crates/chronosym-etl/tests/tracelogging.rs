//! Self-descriptions of TraceLogging records.

use chronosym_etl::{ExtendedItem, Reader, TraceLoggingSchema};
use chronosym_support::etl::{At, EtlWriter, Event, Options, guid};
use chronosym_types::{Field, FieldType};

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

#[test]
fn schemas_and_names_of_providers_are_found() {
    let group = guid(1, 2, 3, 4);
    let traits = [b"My.Provider\0".as_slice(), &[19, 0, 1], &group].concat();
    // Two tag bytes, then fields: an i32 shown as hex with a tag, eight bytes, counted u16, a
    // custom one.
    let schema = b"\x81\x02Event\0a\0\x87\x84\x03b\0\x24\x08\x00c\0\x46d\0\x60\x02\x00xy";
    let mut reader = Reader::new(trace(schema, &traits, &[]), Default::default()).unwrap();
    reader.next_record().unwrap().unwrap();
    let record = reader.next_record().unwrap().unwrap();
    let items: Vec<_> = record.extended_items().collect();
    let [
        ExtendedItem::SchemaTl(schema),
        ExtendedItem::ProviderName(name),
    ] = items[..]
    else {
        panic!("{items:?}")
    };
    assert_eq!(name, "My.Provider");
    let schema = TraceLoggingSchema::parse(schema).unwrap();
    assert_eq!(schema.name, "Event");
    assert_eq!(
        schema.fields,
        [
            Field::new("a", FieldType::I32),
            Field::new("b", FieldType::FixedArray(Box::new(FieldType::U8), 8)),
            Field::new("c", FieldType::Array(Box::new(FieldType::U16))),
            Field::new("d", FieldType::Unknown),
        ]
    );
}
