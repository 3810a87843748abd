//! Records from hand-made bytes, which no available trace has.

use chronosym_etl::{EventKey, Guid, PointerSize, Reader, Record, RecordKind};
use chronosym_support::etl::{At, EtlWriter, Event, Options, guid};

/// Raw time of the records: 1 ms after the start.
const TIME: i64 = 5_000_010_000;

/// Passes one decoded record to `look`; a sample a millisecond earlier precedes it.
fn with_record<R>(wide: bool, record: &[u8], look: impl FnOnce(&Record<'_>) -> R) -> R {
    let mut w = EtlWriter::new(
        Vec::new(),
        Options {
            wide,
            ..Options::default()
        },
    )
    .unwrap();
    w.sample(At::us(500), 1, 1).unwrap();
    w.raw_record(0, record).unwrap();
    let mut reader = Reader::new(w.finish().unwrap(), Default::default()).unwrap();
    reader.next_record().unwrap().unwrap();
    reader.next_record().unwrap().unwrap();
    let seen = look(&reader.next_record().unwrap().unwrap());
    assert!(reader.next_record().unwrap().is_none() && !reader.diagnostics().is_damaged());
    seen
}

fn kernel(kind: u8, version: u16, group: u8, opcode: u8, rest: &[u8]) -> Vec<u8> {
    let header = if kind >= 0x10 {
        16
    } else if kind >= 3 {
        24
    } else {
        32
    };
    let mut record = version.to_le_bytes().to_vec();
    record.extend([kind, 0xc0]);
    record.extend((header + rest.len() as u16).to_le_bytes());
    record.extend([opcode, group]);
    if kind < 0x10 {
        record.extend(7u32.to_le_bytes());
        record.extend(5u32.to_le_bytes());
    }
    record.extend(TIME.to_le_bytes());
    if kind < 3 {
        record.extend([0; 8]);
    }
    record.extend(rest);
    record
}

#[test]
fn kernel_headers_of_both_widths() {
    let class = Guid::from_u128(0x3d6fa8d1_fe05_11d0_9dda_00c04fd7ba7c);
    for (kind, expected, width) in [
        (0x01, RecordKind::System, PointerSize::Four),
        (0x02, RecordKind::System, PointerSize::Eight),
        (0x03, RecordKind::Compact, PointerSize::Four),
        (0x04, RecordKind::Compact, PointerSize::Eight),
        (0x10, RecordKind::PerfInfo, PointerSize::Four),
        (0x11, RecordKind::PerfInfo, PointerSize::Eight),
    ] {
        with_record(true, &kernel(kind, 3, 5, 36, b"payload"), |record| {
            assert_eq!((record.kind, record.pointer_size), (expected, width));
            assert_eq!(
                record.key,
                EventKey::Classic {
                    class,
                    opcode: 36,
                    version: 3
                }
            );
            assert_eq!((record.time_ns, record.raw_time), (1_000_000, TIME));
            assert_eq!(record.payload, b"payload");
            let ids = if kind >= 0x10 {
                (None, None)
            } else {
                (Some(5), Some(7))
            };
            assert_eq!((record.process_id, record.thread_id), ids);
        });
    }
}

#[test]
fn counters_are_between_header_and_payload() {
    // PEBS index and two counters.
    let words: Vec<u8> = [11u64, 22, 33]
        .iter()
        .flat_map(|w| w.to_le_bytes())
        .collect();
    let record = kernel(0x11, 0x8202, 0x0f, 46, &[words.as_slice(), b"abc"].concat());
    with_record(true, &record, |record| {
        assert_eq!(record.payload, b"abc");
        assert!(matches!(record.key, EventKey::Classic { version: 2, .. }));
    });
    // More words announced than there are bytes: all is payload.
    with_record(true, &kernel(0x11, 0x8702, 0x0f, 46, b"abc"), |record| {
        assert_eq!(record.payload, b"abc");
    });
}

#[test]
fn image_loads_and_unknown_groups() {
    let image = Guid::from_u128(0x2cb15d1d_5fc1_11d2_abe1_00a0c911f518);
    with_record(true, &kernel(0x02, 3, 3, 10, &[]), |record| {
        assert_eq!(
            record.key,
            EventKey::Classic {
                class: image,
                opcode: 10,
                version: 3
            }
        );
    });
    with_record(true, &kernel(0x02, 3, 0x77, 10, &[]), |record| {
        assert_eq!(
            record.key,
            EventKey::Group {
                group: 0x77,
                opcode: 10,
                version: 3
            }
        );
    });
}

#[test]
fn instance_headers() {
    let (class, parent) = (guid(1, 2, 3, 4), guid(5, 6, 7, 8));
    for (kind, width) in [(0x0b, PointerSize::Four), (0x15, PointerSize::Eight)] {
        let mut record = vec![75, 0, kind, 0xc0, 12, 4, 2, 0];
        record.extend([7u32.to_le_bytes(), 5u32.to_le_bytes()].concat());
        record.extend(TIME.to_le_bytes());
        record.extend(class);
        record.extend([0; 8]);
        record.extend([100u32.to_le_bytes(), 99u32.to_le_bytes()].concat());
        record.extend(parent);
        record.extend(b"abc");
        with_record(true, &record, |record| {
            assert_eq!(
                (record.kind, record.pointer_size),
                (RecordKind::Instance, width)
            );
            assert_eq!(
                record.key,
                EventKey::Classic {
                    class: Guid(class),
                    opcode: 12,
                    version: 2
                }
            );
            assert_eq!(
                (record.process_id, record.payload),
                (Some(5), b"abc".as_slice())
            );
        });
    }
}

#[test]
fn classic_events_of_both_widths() {
    for wide in [false, true] {
        let options = Options {
            wide,
            ..Options::default()
        };
        let mut w = EtlWriter::new(Vec::new(), options).unwrap();
        w.classic(At::ms(1), guid(1, 2, 3, 4), 5, 6, b"abc")
            .unwrap();
        let mut reader = Reader::new(w.finish().unwrap(), Default::default()).unwrap();
        reader.next_record().unwrap().unwrap();
        let record = reader.next_record().unwrap().unwrap();
        let key = EventKey::Classic {
            class: Guid(guid(1, 2, 3, 4)),
            opcode: 5,
            version: 6,
        };
        assert_eq!((record.kind, record.key), (RecordKind::Classic, key));
        assert_eq!(record.pointer_size == PointerSize::Eight, wide);
        assert_eq!(record.payload, b"abc");
    }
}

#[test]
fn extended_items_end_where_the_last_one_says() {
    let short_key = [&[9, 0, 0, 0, 0, 0, 0, 0][..], &5_u32.to_le_bytes()].concat();
    let kinds = [
        (
            0x11,
            short_key.as_slice(),
            "StackKey(StackKey { match_id: 9, key: 5 })",
        ),
        (2, b"sid", "Other(2, [115, 105, 100])"),
        (0x77, b"", "Other(119, [])"),
    ];
    let extended = kinds.each_ref().map(|(kind, data, _)| (*kind, *data));
    // Data after the last item, or alone, is not an item, even if it looks like one.
    let payload = [8, 0, 2, 0, 0, 0, 0, 0];
    let mut w = EtlWriter::new(Vec::new(), Options::default()).unwrap();
    for extended in [&extended[..], &[]] {
        let event = Event {
            extended,
            payload: &payload,
            ..Event::default()
        };
        w.event(At::ms(1), &event).unwrap();
    }
    let mut reader = Reader::new(w.finish().unwrap(), Default::default()).unwrap();
    reader.next_record().unwrap().unwrap();
    let record = reader.next_record().unwrap().unwrap();
    for (item, (_, _, expected)) in record.extended_items().zip(&kinds) {
        assert_eq!(format!("{item:?}"), *expected);
    }
    assert_eq!(
        (record.extended_items().count(), record.payload),
        (kinds.len(), &payload[..])
    );
    let record = reader.next_record().unwrap().unwrap();
    assert_eq!(
        (record.extended_items().count(), record.payload),
        (0, &payload[..])
    );
}

#[test]
fn an_item_that_exceeds_its_size_is_payload() {
    let mut record = vec![0; 80];
    record[..6].copy_from_slice(&[96, 0, 0x13, 0xc0, 1, 0]);
    record[16..24].copy_from_slice(&TIME.to_le_bytes());
    record.extend([16, 0, 2, 0, 0, 0, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    with_record(true, &record, |found| {
        assert_eq!(found.payload, &record[80..]);
        assert_eq!(found.extended_items().count(), 0);
    });
}

#[test]
fn wpp_messages() {
    let guid = guid(9, 8, 7, 6);
    // Sequence, GUID, time, ids, 64-bit pointers.
    let mut record = vec![0, 0, 0, 0x90, 42, 0, 0x2b | 0x80, 0];
    record.extend(1u32.to_le_bytes());
    record.extend(guid);
    record.extend(TIME.to_le_bytes());
    record.extend([7u32.to_le_bytes(), 5u32.to_le_bytes()].concat());
    record.extend(b"args");
    record[0] = record.len() as u8;
    with_record(true, &record, |record| {
        assert_eq!(
            (record.kind, record.pointer_size),
            (RecordKind::Message, PointerSize::Eight)
        );
        assert_eq!(
            record.key,
            EventKey::Message {
                guid: Guid(guid),
                number: 42
            }
        );
        assert_eq!(
            (record.time_ns, record.process_id, record.thread_id),
            (1_000_000, Some(5), Some(7))
        );
        assert_eq!(record.payload, b"args");
    });
    // Nothing but a component id: no time of its own, so that of the record before it.
    let record = [
        &[28, 0, 0, 0x90, 42, 0, 4, 0][..],
        &3u32.to_le_bytes(),
        b"some more args..",
    ]
    .concat();
    with_record(true, &record, |record| {
        assert_eq!(
            (record.time_ns, record.process_id, record.payload),
            (500_000, None, b"some more args..".as_slice())
        );
        assert_eq!(record.pointer_size, PointerSize::Four);
        assert_eq!(
            record.key,
            EventKey::Message {
                guid: Guid::default(),
                number: 42
            }
        );
    });
    // Nothing but arguments.
    with_record(true, b"\x0c\0\0\x90\x2a\0\0\0args", |record| {
        assert_eq!(record.payload, b"args");
    });
    // Announced items that are not there.
    with_record(true, &[10, 0, 0, 0x90, 42, 0, 0xff, 0, 1, 2], |record| {
        assert_eq!(
            (record.time_ns, record.process_id, record.payload.len()),
            (500_000, None, 0)
        );
    });
}

#[test]
fn records_of_other_kinds_are_stepped_over_whole() {
    for (flags, kind) in [
        (0xc0, 0x0c),
        (0xc0, 0x0d),
        (0xc0, 0x0e),
        (0xc0, 0x0f),
        (0xb0, 0),
        (0x80, 0x33),
        // Types of trace records, of another class.
        (0x80, 0x02),
        (0xff, 0x13),
    ] {
        with_record(true, &[9, 0, kind, flags, 1, 2, 3, 4, 5], |record| {
            assert_eq!(
                (record.kind, record.key),
                (RecordKind::Other(kind), EventKey::Unknown(kind))
            );
            assert_eq!(
                (record.time_ns, record.payload),
                (500_000, [1, 2, 3, 4, 5].as_slice())
            );
            assert_eq!(record.bytes(), [9, 0, kind, flags, 1, 2, 3, 4, 5]);
        });
    }
}

#[test]
fn untimed_records_at_the_start_of_a_buffer_take_the_first_time() {
    let mut w = EtlWriter::new(Vec::new(), Options::default()).unwrap();
    w.raw_record(0, &[8, 0, 0, 0xb0, 1, 2, 3, 4]).unwrap();
    w.raw_record(0, &[8, 0, 0, 0xb0, 1, 2, 3, 4]).unwrap();
    w.sample(At::ms(7), 1, 1).unwrap();
    w.flush(0).unwrap();
    // A buffer without any time is read where the one before it was.
    w.raw_record(0, &[8, 0, 0, 0xb0, 9, 9, 9, 9]).unwrap();
    let mut reader = Reader::new(w.finish().unwrap(), Default::default()).unwrap();
    let mut times = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        times.push(record.time_ns);
    }
    assert_eq!(times, [0, 7_000_000, 7_000_000, 7_000_000, 7_000_000]);
}
