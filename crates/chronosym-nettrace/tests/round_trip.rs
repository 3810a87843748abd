//! The reader returns what the writers of the test support wrote.

mod common;

use chronosym_nettrace::{Format, Guid, Label, Options, PointerSize};
use chronosym_support::netperf::NetperfWriter;
use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::trace::{EventSpec, LabelSpec, TraceInfo};
use common::{Dribble, read, read_from};
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Written {
    event_type: usize,
    time_ns: u64,
    thread: u64,
    capture: Option<u64>,
    processor: u32,
    process: Option<u32>,
    stack: Vec<u64>,
    payload: Vec<u8>,
    activity: [u8; 16],
    related: [u8; 16],
    label: Option<u8>,
    /// 0 ends the region after this event, 1 ends the block.
    ends: u8,
}

fn written() -> impl Strategy<Value = Written> {
    let ids = prop_oneof![3 => Just([0u8; 16]), 1 => any::<[u8; 16]>()];
    (
        (
            0usize..5,
            0u64..1 << 40,
            prop_oneof![0u64..4, any::<u32>().prop_map(u64::from)],
        ),
        (
            prop::option::of(0u64..4),
            0u32..3,
            prop::option::of(1u32..4),
        ),
        (
            prop::collection::vec(any::<u32>().prop_map(u64::from), 0..4),
            prop::collection::vec(any::<u8>(), 0..40),
        ),
        (ids.clone(), ids, prop::option::of(0u8..4), 0u8..12),
    )
        .prop_map(
            |(
                (event_type, time_ns, thread),
                (capture, processor, process),
                (stack, payload),
                rest,
            )| {
                let (activity, related, label, ends) = rest;
                Written {
                    event_type,
                    time_ns,
                    thread,
                    capture,
                    processor,
                    process,
                    stack,
                    payload,
                    activity,
                    related,
                    label,
                    ends,
                }
            },
        )
}

fn spec<'a>(
    event: &'a Written,
    types: &[chronosym_support::trace::TypeId],
    labels: &'a [LabelSpec],
    v6: bool,
) -> EventSpec<'a> {
    EventSpec {
        event_type: types[event.event_type],
        time_ns: event.time_ns as i64,
        thread: event.thread,
        process: event.process.filter(|_| v6),
        capture_thread: event.capture,
        processor: event.processor,
        stack: &event.stack,
        payload: &event.payload,
        activity: event.activity,
        related_activity: event.related,
        labels,
    }
}

fn id(bytes: [u8; 16]) -> Option<[u8; 16]> {
    (bytes != [0; 16]).then_some(bytes)
}

fn stack(addresses: &[u64]) -> Option<Vec<u64>> {
    (!addresses.is_empty()).then(|| addresses.to_vec())
}

fn nettrace_round_trip(mut writer: NettraceWriter, v6: bool, events: &[Written], step: usize) {
    let types: Vec<_> = (0..5)
        .map(|index| writer.event_type("Provider", index, index * 2))
        .collect();
    let mut region_of = Vec::new();
    let mut region = 0;
    for event in events {
        let labels: Vec<_> = event
            .label
            .iter()
            .map(|&opcode| LabelSpec::Opcode(opcode))
            .collect();
        writer.record(&spec(event, &types, &labels, v6));
        region_of.push(region);
        match event.ends {
            0 => {
                writer.sequence_point();
                region += 1;
            }
            1 => writer.flush(),
            _ => {}
        }
    }
    let bytes = writer.finish();
    let trace = read_from(
        Dribble {
            bytes: &bytes,
            step,
        },
        Default::default(),
    );
    assert!(trace.diagnostics.is_clean(), "{:?}", trace.diagnostics);
    assert_eq!(trace.diagnostics.bytes_read, bytes.len() as u64);
    let read_back = trace.events();
    assert_eq!(read_back.len(), events.len());
    assert_eq!(trace.diagnostics.events, events.len() as u64);
    assert_eq!(trace.diagnostics.metadata_records, trace.types.len() as u64);
    let regions: Vec<usize> = trace.regions.iter().map(Vec::len).collect();
    let expected_regions: Vec<usize> = region_of.chunk_by(|a, b| a == b).map(<[_]>::len).collect();
    assert_eq!(regions, expected_regions);
    for (event, read_back) in events.iter().zip(read_back) {
        let event_type = &trace.types[read_back.event_type];
        assert_eq!(event_type.id as usize, event.event_type);
        assert_eq!(event_type.version as usize, event.event_type * 2);
        assert_eq!(read_back.time_ns, event.time_ns);
        assert_eq!(read_back.thread, event.thread);
        if v6 {
            assert_eq!(
                read_back.process,
                event.process.or(Some(TraceInfo::default().process_id))
            );
            let opcodes: Vec<_> = event.label.map(Label::Opcode).into_iter().collect();
            let found: Vec<_> = read_back
                .labels
                .iter()
                .filter(|label| matches!(label, Label::Opcode(_)))
                .cloned()
                .collect();
            assert_eq!(found, opcodes);
        } else {
            assert_eq!(read_back.process, Some(TraceInfo::default().process_id));
            assert_eq!(
                read_back.capture_thread,
                event.capture.unwrap_or(event.thread)
            );
        }
        assert_eq!(read_back.processor, Some(event.processor));
        assert_eq!(read_back.stack, stack(&event.stack));
        assert_eq!(read_back.payload, event.payload);
        assert_eq!(read_back.activity, id(event.activity));
        assert_eq!(read_back.related, id(event.related));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn nettrace(
        events in prop::collection::vec(written(), 0..40),
        version in 4u32..7,
        compressed in any::<bool>(),
        narrow in any::<bool>(),
        step in 1usize..2000,
    ) {
        let info = TraceInfo { pointer_size: if narrow { 4 } else { 8 }, ..TraceInfo::default() };
        let writer = match version {
            4 => NettraceWriter::v4(),
            5 => NettraceWriter::v5(),
            _ => NettraceWriter::v6(),
        };
        let writer = writer.info(info).block_size(100);
        let writer = if compressed { writer } else { writer.uncompressed() };
        nettrace_round_trip(writer, version == 6, &events, step);
    }

    #[test]
    fn netperf(mut events in prop::collection::vec(written(), 0..40), version in 1u32..4, step in 1usize..2000) {
        events.sort_by_key(|event| event.time_ns);
        let mut writer = match version {
            1 => NetperfWriter::v1(),
            2 => NetperfWriter::v2(),
            _ => NetperfWriter::v3(),
        };
        let types: Vec<_> = (0..5).map(|index| writer.event_type("Provider", index, index * 2)).collect();
        for event in &events {
            writer.record(&spec(event, &types, &[], false));
            if event.ends == 1 {
                writer.flush();
            }
        }
        let bytes = writer.finish();
        let trace = read_from(Dribble { bytes: &bytes, step }, Default::default());
        prop_assert!(trace.diagnostics.is_clean(), "{:?}", trace.diagnostics);
        prop_assert_eq!(trace.header.format, Format::Netperf);
        prop_assert_eq!(trace.header.version, (version, 0));
        let read_back = trace.events();
        prop_assert_eq!(read_back.len(), events.len());
        let stacks = events.iter().filter(|event| !event.stack.is_empty()).count();
        let found = &trace.diagnostics;
        prop_assert_eq!((found.events, found.stacks), (events.len() as u64, stacks as u64));
        prop_assert_eq!(found.metadata_records, 5);
        for (event, read_back) in events.iter().zip(read_back) {
            prop_assert_eq!(trace.types[read_back.event_type].id as usize, event.event_type);
            prop_assert_eq!(read_back.time_ns, event.time_ns);
            prop_assert_eq!(read_back.thread, u64::from(event.thread as u32));
            prop_assert_eq!(read_back.processor, None);
            prop_assert_eq!(read_back.stack, stack(&event.stack));
            prop_assert_eq!(read_back.payload, event.payload.clone());
            prop_assert_eq!(read_back.activity, id(event.activity));
            prop_assert_eq!(read_back.related, id(event.related));
        }
    }
}

#[test]
fn headers_round_trip() {
    let info = TraceInfo {
        qpc_start: 77,
        frequency: 10_000_000,
        pointer_size: 4,
        process_id: 11,
        processors: 3,
        sample_rate_ns: 999,
        ..TraceInfo::default()
    };
    for bytes in [
        NettraceWriter::v4().info(info.clone()).finish(),
        NettraceWriter::v6().info(info.clone()).finish(),
        NetperfWriter::v3().info(info.clone()).finish(),
    ] {
        let header = read(&bytes).header;
        assert_eq!(
            (header.qpc_start, header.qpc_frequency, header.pointer_size),
            (77, 10_000_000, PointerSize::Four)
        );
        assert_eq!(header.process_id, Some(11));
        assert_eq!(header.processors, Some(3));
        assert_eq!(header.sample_rate_ns, Some(999));
        assert_eq!(
            header.start.map(|start| start.to_string()).as_deref(),
            Some("2026-03-05T06:07:08.009Z")
        );
    }
    let header = read(&NetperfWriter::v2().info(info).finish()).header;
    assert_eq!(
        (header.qpc_start, header.qpc_frequency, header.pointer_size),
        (77, 10_000_000, PointerSize::Eight)
    );
    assert_eq!(header.process_id, None);
}

#[test]
fn ticks_become_nanoseconds_since_the_start() {
    let info = TraceInfo {
        qpc_start: 5_000,
        frequency: 10_000_000,
        ..TraceInfo::default()
    };
    let mut writer = NettraceWriter::v4().info(info);
    let tick = writer.event_type("P", 1, 0);
    for time_ns in [1_500, 100, -300] {
        writer.event(tick, time_ns, 1, &[], &[]);
    }
    let events = read(&writer.finish()).events();
    let times: Vec<_> = events
        .iter()
        .map(|event| (event.raw_time, event.time_ns))
        .collect();
    assert_eq!(times, [(5_015, 1_500), (5_001, 100), (4_997, 0)]);
}

#[test]
fn every_label_is_read() {
    let labels = [
        LabelSpec::Trace([3; 16]),
        LabelSpec::Span(0x1234_5678_9abc),
        LabelSpec::Text("route".into(), "/a/ä".into()),
        LabelSpec::Number("count".into(), -300),
        LabelSpec::Opcode(9),
        LabelSpec::Keywords(1 << 40),
        LabelSpec::Level(4),
        LabelSpec::Version(2),
        LabelSpec::Activity([1; 16]),
        LabelSpec::RelatedActivity([2; 16]),
    ];
    let mut writer = NettraceWriter::v6();
    let kind = writer.event_type("P", 1, 0);
    writer.record(&EventSpec {
        labels: &labels,
        ..EventSpec::new(kind, 1, 1)
    });
    writer.event(kind, 2, 1, &[], &[]);
    let bytes = writer.finish();
    let trace = read(&bytes);
    let events = trace.events();
    assert_eq!(
        events[0].labels,
        [
            Label::TraceId([3; 16]),
            Label::SpanId(0x1234_5678_9abc),
            Label::Text("route".into(), "/a/ä".into()),
            Label::Number("count".into(), -300),
            Label::Opcode(9),
            Label::Keywords(1 << 40),
            Label::Level(4),
            Label::Version(2),
            Label::ActivityId(Guid([1; 16])),
            Label::RelatedActivityId(Guid([2; 16])),
        ]
    );
    assert_eq!(
        (events[0].activity, events[0].related),
        (Some([1; 16]), Some([2; 16]))
    );
    assert_eq!((events[1].labels.len(), events[1].activity), (0, None));

    let mut reader =
        chronosym_nettrace::Reader::new(bytes.as_slice(), Options::default()).expect("a trace");
    let region = reader.next_region().expect("readable").expect("a region");
    let record = region.records().next().expect("an event");
    let overrides = [Label::Opcode(9), Label::Keywords(1 << 40), Label::Level(4)];
    assert!(
        overrides
            .iter()
            .all(|label| record.labels().any(|it| it == *label))
    );
    assert_eq!(record.version_override(), Some(2));
}
