//! The reader returns what the writer wrote, in every layout.

use chronosym_ctf::{Diagnostics, Error, Holds, Metadata, Options, Reader, Source, Value};
use chronosym_support::ctf::{CLOCK_OFFSET, CtfEvent, CtfLayout, CtfTrace, CtfType, CtfValue};
use proptest::prelude::*;

const CONTEXT: &[(&str, CtfType)] = &[
    ("vpid", CtfType::Signed(32)),
    ("procname", CtfType::Chars(17)),
];
const FIELDS: &[(&str, CtfType)] = &[
    ("a", CtfType::Unsigned(16)),
    ("b", CtfType::Unsigned(64)),
    ("c", CtfType::Signed(8)),
    ("d", CtfType::Text),
    ("__data__", CtfType::Bytes),
    ("e", CtfType::Words),
];

fn context() -> Vec<CtfValue<'static>> {
    vec![CtfValue::Number(42), CtfValue::Text("worker")]
}

fn layouts() -> Vec<CtfLayout> {
    let all = (0..8).map(|bits| CtfLayout {
        is_kernel: bits & 1 != 0,
        is_big: bits & 2 != 0,
        is_aligned: bits & 4 != 0,
        ..CtfLayout::default()
    });
    all.collect()
}

fn metadata(trace: &CtfTrace) -> Metadata {
    Metadata::parse(&trace.metadata(), Options::default()).expect("it is metadata")
}

fn reader<'b>(trace: &CtfTrace, streams: &'b [Vec<u8>]) -> Reader<&'b [u8]> {
    reader_of(vec![metadata(trace)], streams)
}

fn reader_of(traces: Vec<Metadata>, streams: &[Vec<u8>]) -> Reader<&[u8]> {
    let streams = streams.iter().map(Vec::as_slice).collect();
    Reader::new(Source { traces, streams }, Options::default()).expect("a trace")
}

/// Times with the values of field `b`.
fn times(trace: &CtfTrace, streams: &[Vec<u8>]) -> (Vec<(u64, u64)>, Diagnostics) {
    let mut reader = reader(trace, streams);
    let mut times = Vec::new();
    while let Some(event) = reader.next_event().expect("a slice does not fail") {
        let value = event.fields.get("b").and_then(|value| value.as_u64());
        times.push((event.time_ns, value.unwrap_or(u64::MAX)));
    }
    (times, reader.diagnostics().clone())
}

/// A trace with one event of field `b` alone.
fn small(layout: CtfLayout) -> CtfTrace {
    let mut trace = CtfTrace::new(layout, CONTEXT);
    trace.event("b", &FIELDS[1..2]);
    trace
}

fn numbered(time: u64, b: u64) -> CtfEvent<'static> {
    CtfEvent {
        time,
        id: 0,
        context: context(),
        fields: vec![CtfValue::Number(b)],
    }
}

#[test]
fn every_kind_of_field_in_every_layout() {
    for layout in layouts() {
        let mut trace = CtfTrace::new(layout, CONTEXT);
        let empty = trace.event("P:Empty", &[]);
        let full = trace.event("P:Full", FIELDS);
        let event = |time, id, fields| CtfEvent {
            time,
            id,
            context: context(),
            fields,
        };
        let values = vec![
            CtfValue::Number(0xfedc),
            CtfValue::Number(u64::MAX - 5),
            CtfValue::Number(0xfe),
            CtfValue::Text("häuser"),
            CtfValue::Bytes(&[9, 0, 7]),
            CtfValue::Words(&[1, u32::MAX]),
        ];
        let packet = trace.packet(
            0,
            0,
            3,
            &[event(77, empty, vec![]), event(78, full, values)],
        );
        let streams = [packet];
        let mut reader = reader(&trace, &streams);
        let first = reader.next_event().unwrap().expect("the empty one");
        assert_eq!(
            (first.time_ns, first.cpu, &*first.event_type.name),
            (77, Some(3), "P:Empty")
        );
        assert_eq!(first.fields.iter().count(), 0);
        let second = reader.next_event().unwrap().expect("the full one");
        assert_eq!(second.event_type.name, "P:Full", "{layout:?}");
        let context: Vec<_> = second.context.iter().collect();
        assert_eq!(
            context,
            [
                ("vpid", Value::Signed(42)),
                ("procname", Value::Text(b"worker"))
            ]
        );
        let get = |name| second.fields.get(name).expect("it is there");
        assert_eq!(get("a"), Value::Unsigned(0xfedc));
        assert_eq!(get("b"), Value::Unsigned(u64::MAX - 5));
        assert_eq!(get("c"), Value::Signed(-2));
        assert_eq!(get("d"), Value::Text("häuser".as_bytes()));
        assert_eq!(get("__data__"), Value::Bytes(&[9, 0, 7]));
        let Value::List(words) = get("e") else {
            panic!("numbers in a row");
        };
        let words: Vec<_> = words.iter().collect();
        assert_eq!(
            words,
            [Value::Unsigned(1), Value::Unsigned(u32::MAX.into())]
        );
        assert!(reader.next_event().unwrap().is_none());
        assert!(
            reader.diagnostics().is_clean(),
            "{:?}",
            reader.diagnostics()
        );
    }
}

#[test]
fn a_trace_describes_itself() {
    let mut trace = CtfTrace::new(CtfLayout::default(), CONTEXT);
    trace.event("P:Full", FIELDS);
    let metadata = metadata(&trace);
    assert_eq!(metadata.env("hostname"), Some("machine"));
    assert_eq!(metadata.env("architecture_bit_width"), Some("64"));
    let clock = metadata.clock();
    assert_eq!(
        (&*clock.name, clock.frequency),
        ("monotonic", 1_000_000_000)
    );
    assert_eq!(clock.wall_ns, CLOCK_OFFSET.into());
    let full = &metadata.event_types()[0];
    assert_eq!(full.id, 0);
    let fields: Vec<_> = full
        .fields
        .iter()
        .map(|field| (&*field.name, field.is_length))
        .collect();
    let names = [
        "a",
        "b",
        "c",
        "d",
        "___data___length",
        "__data__",
        "_e_length",
        "e",
    ];
    assert_eq!(fields, names.map(|name| (name, name.ends_with("length"))));
    assert_eq!(full.fields[3].holds, Holds::Text);
    assert!(
        matches!(full.fields[2].holds, Holds::Number(number) if number.is_signed && number.bits == 8)
    );
    // The text alone, as other tools store it.
    let text = trace.text();
    let plain = Metadata::parse(text.as_bytes(), Options::default()).expect("it is metadata");
    assert_eq!(plain.event_types().len(), 1);
}

#[test]
fn times_are_put_together_from_their_low_bits() {
    for layout in layouts() {
        let trace = small(layout);
        // Far apart, over the edge of the low bits, and exactly the whole span away.
        let times_of = |bits: u32| {
            let span = 1u64 << bits;
            [
                5,
                6,
                span - 1,
                span + 3,
                2 * span + 2,
                3 * span + 2,
                9 * span,
            ]
        };
        let wanted = times_of(if layout.is_kernel { 27 } else { 32 });
        let events: Vec<_> = wanted.iter().map(|&time| numbered(time, time)).collect();
        let (found, diagnostics) = times(&trace, &[trace.packet(0, 0, 0, &events)]);
        assert_eq!(found, wanted.map(|time| (time, time)), "{layout:?}");
        assert!(diagnostics.is_clean());
    }
}

#[test]
fn ids_that_need_a_long_header() {
    let layout = CtfLayout {
        is_kernel: true,
        ..CtfLayout::default()
    };
    let mut trace = CtfTrace::new(layout, &[]);
    let ids: Vec<u32> = (0..40)
        .map(|at| trace.event(&format!("e{at}"), &[]))
        .collect();
    let events = ids.iter().map(|&id| CtfEvent {
        time: u64::from(id) * 10,
        id,
        context: vec![],
        fields: vec![],
    });
    let streams = [trace.packet(0, 0, 0, &events.collect::<Vec<_>>())];
    let mut reader = reader(&trace, &streams);
    for id in ids {
        let event = reader.next_event().unwrap().expect("one for each");
        assert_eq!(
            (event.event_type.id, event.time_ns),
            (id.into(), u64::from(id) * 10)
        );
    }
    assert!(reader.diagnostics().is_clean());
}

#[test]
fn streams_of_several_traces_are_merged() {
    let user = small(CtfLayout::default());
    let kernel = small(CtfLayout {
        is_kernel: true,
        is_big: true,
        uuid: *b"fedcba9876543210",
        ..CtfLayout::default()
    });
    let streams = [
        user.packet(0, 0, 0, &[numbered(10, 0), numbered(40, 3)]),
        kernel.packet(0, 0, 0, &[numbered(20, 1), numbered(50, 4)]),
        user.packet(0, 0, 1, &[numbered(30, 2), numbered(50, 5)]),
    ];
    let mut reader = reader_of(vec![metadata(&user), metadata(&kernel)], &streams);
    assert_eq!(reader.next_time_ns(), Some(10));
    let mut found = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        found.push((
            event.fields.get("b").and_then(|b| b.as_u64()).unwrap(),
            event.trace,
        ));
    }
    assert_eq!(found, [(0, 0), (1, 1), (2, 0), (3, 0), (4, 1), (5, 0)]);
    // Without its metadata, a trace is not guessed at.
    let mut alone = reader_of(vec![metadata(&user)], &streams[1..2]);
    assert!(alone.next_event().unwrap().is_none());
    assert_eq!(alone.diagnostics().unknown_streams, 1);
}

#[test]
fn losses_are_differences_of_running_totals() {
    let trace = small(CtfLayout::default());
    let packets = [
        trace.packet(0, 0, 0, &[numbered(10, 0), numbered(20, 0)]),
        trace.packet(1, 1733, 0, &[numbered(30, 0), numbered(40, 0)]),
        trace.packet(2, 1733, 0, &[numbered(50, 0)]),
        trace.packet(5, 1740, 0, &[numbered(60, 0)]),
    ];
    let (found, diagnostics) = times(&trace, &[packets.concat()]);
    assert_eq!(found.len(), 6);
    assert_eq!(
        (diagnostics.lost_events, diagnostics.lost_packets),
        (1740, 2)
    );
    let losses: Vec<_> = diagnostics
        .losses
        .iter()
        .map(|it| (it.from_ns, it.to_ns, it.events))
        .collect();
    assert_eq!(
        losses,
        [(20, 40, Some(1733)), (50, 60, None), (50, 60, Some(7))]
    );
    // Losses before a later packet, the first one of recordings in memory, are unknown.
    let (_, diagnostics) = times(&trace, &[packets[3].clone()]);
    assert_eq!((diagnostics.lost_events, diagnostics.lost_packets), (0, 0));
}

const OTHER: &str = r#"/* CTF 1.8 */
trace { major = 1; minor = 8; byte_order = be; packet.header := struct { integer { size = 32; } magic; }; };
clock { name = cycles; freq = 500; offset_s = 10; offset = 250; };
typealias integer { size = 8; signed = true; base = x; } := small int;
struct pair { small int left, right; };
enum kind : integer { size = 3; } { NONE, SOME = 2 ... 4, "odd one", LAST = 7 };
variant choice { small int SOME; struct pair NONE; string LAST; };
typedef small int row[2];
event {
    name = only;
    fields := struct {
        enum kind first;
        integer { size = 5; align = 1; signed = 1; } _signed;
        variant choice <first> chosen;
        floating_point { exp_dig = 8; mant_dig = 24; } fraction;
        small int count;
        struct pair pairs[ count ][2];
        row rows;
        integer { size = 12; align = 4; } wide[2];
    };
};
stream { packet.context := struct { integer { size = 16; } packet_size, content_size; }; };
callsite { name = "only"; };
"#;

#[test]
fn more_of_the_language_than_lttng_writes() {
    let metadata = Metadata::parse(OTHER.as_bytes(), Options::default()).expect("it is metadata");
    assert_eq!(metadata.bad_definitions(), 0);
    assert_eq!(metadata.clock().wall_ns, 10_500_000_000);
    assert_eq!(metadata.clock().ns(5), 10_000_000);
    let mut packet = vec![0xc1, 0xfc, 0x1f, 0xc1, 0, 0, 0, 0];
    packet.extend([0b010_11110, 0xff]); // SOME, −2; chosen −1
    packet.extend(1.5f32.to_be_bytes());
    packet.extend([1, 1, 2, 3, 4]); // one row of two pairs
    packet.extend([5, 6]);
    packet.extend([0xab, 0xcd, 0xef]);
    packet.extend([0b000_00000, 7, 8]); // NONE, 0; a pair
    packet.extend(0f32.to_be_bytes());
    packet.extend([0, 9, 10, 0, 0, 0]);
    let bits = (packet.len() as u16 * 8).to_be_bytes();
    packet[4..8].copy_from_slice(&[bits, bits].concat());
    let packets = [packet];
    let mut reader = reader_of(vec![metadata], &packets);
    let event = reader.next_event().unwrap().expect("the first");
    let numbers: Vec<_> = event
        .fields
        .iter()
        .filter(|(name, _)| !["wide", "rows"].contains(name))
        .collect();
    let number = Value::Signed;
    assert_eq!(
        numbers,
        [
            ("first", Value::Unsigned(2)),
            ("signed", number(-2)),
            ("chosen", number(-1)),
            ("fraction", Value::Float(1.5)),
            ("count", number(1)),
            ("left", number(1)),
            ("right", number(2)),
            ("left", number(3)),
            ("right", number(4)),
        ]
    );
    assert_eq!(event.fields.get("rows"), Some(Value::Bytes(&[5, 6])));
    let Some(Value::List(wide)) = event.fields.get("wide") else {
        panic!("numbers in a row");
    };
    assert_eq!(
        wide.iter().collect::<Vec<_>>(),
        [Value::Unsigned(0xabc), Value::Unsigned(0xdef)]
    );
    let event = reader.next_event().unwrap().expect("the second");
    let names: Vec<_> = event.fields.iter().map(|(name, _)| name).take(4).collect();
    assert_eq!(names, ["first", "signed", "left", "right"]);
    assert!(reader.next_event().unwrap().is_none());
    assert!(
        reader.diagnostics().is_clean(),
        "{:?}",
        reader.diagnostics()
    );
}

#[test]
fn invalid_metadata_is_rejected() {
    let parse = |bytes: &[u8]| Metadata::parse(bytes, Options::default());
    assert!(matches!(parse(b""), Err(Error::NotMetadata { .. })));
    assert!(matches!(parse(b"PERFILE2"), Err(Error::NotMetadata { .. })));
    assert!(matches!(
        parse(b"/* CTF 1.8 */ env { a = 1; };"),
        Err(Error::NothingDescribed)
    ));
    let newer = parse(b"/* CTF 1.9 */ trace { major = 1; minor = 9; }; stream { };");
    assert!(matches!(
        newer,
        Err(Error::UnsupportedVersion { major: 1, minor: 9 })
    ));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_streams_are_merged_in_time_order(
        mut streams in prop::collection::vec(prop::collection::vec(0..1u64 << 40, 1..40), 1..5),
        kernel: bool,
    ) {
        let trace = small(CtfLayout { is_kernel: kernel, ..CtfLayout::default() });
        streams.iter_mut().for_each(|times| times.sort_unstable());
        let written = streams.iter().map(|times| {
            let packets = times.chunks(7).enumerate().map(|(at, times)| {
                let events: Vec<_> = times.iter().map(|&time| numbered(time, time)).collect();
                trace.packet(at as u64, 0, 0, &events)
            });
            packets.collect::<Vec<_>>().concat()
        });
        let (found, diagnostics) = times(&trace, &written.collect::<Vec<_>>());
        let mut all: Vec<u64> = streams.concat();
        all.sort_unstable();
        prop_assert!(diagnostics.is_clean());
        prop_assert_eq!(found, all.into_iter().map(|time| (time, time)).collect::<Vec<_>>());
    }
}
