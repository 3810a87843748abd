//! Traces that are cut short, damaged, or hostile.

mod common;

use chronosym_nettrace::{Error, Gap, GapCause, Options, Reader};
use chronosym_support::netperf::NetperfWriter;
use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::trace::{EventSpec, FieldKind, LabelSpec, TraceInfo, TypeId, TypeSpec};
use common::{Dribble, Event, read, read_from};
use proptest::prelude::*;

/// A file and, for every block, its end and the number of events up to there.
struct Sample {
    name: &'static str,
    bytes: Vec<u8>,
    blocks: Vec<(usize, usize)>,
}

fn rich_type(index: u32) -> TypeSpec {
    TypeSpec::new("Some-Provider", index, 1)
        .named("Named")
        .field("A", FieldKind::U32)
        .field("B", FieldKind::Object(vec![]))
        .with_opcode(3)
}

fn nettrace(name: &'static str, mut writer: NettraceWriter) -> Sample {
    let v6 = name.starts_with("v6");
    let types: Vec<TypeId> = (0..3)
        .map(|index| writer.define(rich_type(index)))
        .collect();
    let mut blocks = Vec::new();
    let mut events = 0;
    for block in 0..4i64 {
        for time in 0..5i64 {
            let thread = 1 + (time % 2) as u64;
            let labels = [
                LabelSpec::Text("key".into(), "value".into()),
                LabelSpec::Level(2),
            ];
            let stack = [0x7000 + time as u64, 0x8000];
            let spec = EventSpec::new(types[(time % 3) as usize], block * 100 + time, thread)
                .stack(&stack)
                .payload(&[1, 2, 3, 4, 5][..time as usize])
                .captured_by(1 + (time / 2) as u64);
            writer.record(&EventSpec {
                labels: if v6 && time == 1 { &labels } else { &[] },
                activity: if time == 2 { [9; 16] } else { [0; 16] },
                ..spec
            });
            events += 1;
        }
        if block == 1 {
            writer.sequence_point();
        }
        writer.flush();
        blocks.push((writer.written(), events));
        if v6 && block == 2 {
            writer.remove_thread(None, 2);
        }
    }
    Sample {
        name,
        bytes: writer.finish(),
        blocks,
    }
}

fn netperf(name: &'static str, mut writer: NetperfWriter) -> Sample {
    let types: Vec<TypeId> = (0..3)
        .map(|index| writer.define(&rich_type(index)))
        .collect();
    let mut blocks = Vec::new();
    for time in 0..12 {
        writer.event(
            types[time % 3],
            time as i64,
            1,
            &[7, 8, 9][..time % 4],
            &[1, 2, 3, 4][..time % 5],
        );
        if time % 3 == 2 {
            writer.flush();
            blocks.push((writer.written(), time + 1));
        }
    }
    Sample {
        name,
        bytes: writer.finish(),
        blocks,
    }
}

fn samples() -> Vec<Sample> {
    vec![
        nettrace("v4", NettraceWriter::v4()),
        nettrace("v4, uncompressed", NettraceWriter::v4().uncompressed()),
        nettrace("v5", NettraceWriter::v5()),
        nettrace("v6", NettraceWriter::v6()),
        nettrace("v6, uncompressed", NettraceWriter::v6().uncompressed()),
        netperf("netperf v1", NetperfWriter::v1()),
        netperf("netperf v2", NetperfWriter::v2()),
        netperf("netperf v3", NetperfWriter::v3()),
    ]
}

fn magic_length(bytes: &[u8]) -> usize {
    if bytes.starts_with(b"Nettrace") {
        8
    } else {
        24
    }
}

#[test]
fn a_trace_cut_at_any_byte_gives_all_that_is_whole() {
    for Sample {
        name,
        bytes,
        blocks,
    } in samples()
    {
        let whole = read(&bytes);
        assert!(
            whole.diagnostics.is_clean(),
            "{name}: {:?}",
            whole.diagnostics
        );
        let all = whole.events();
        let mut before = 0;
        for length in 0..bytes.len() {
            let cut = &bytes[..length];
            if length < magic_length(&bytes) {
                assert!(
                    matches!(
                        Reader::new(cut, Options::default()),
                        Err(Error::NotATrace { .. })
                    ),
                    "{name} cut at {length}"
                );
                continue;
            }
            let trace = read(cut);
            let events = trace.events();
            let [gap] = trace.diagnostics.gaps.listed() else {
                panic!("{name} cut at {length}: {:?}", trace.diagnostics.gaps);
            };
            assert_eq!(
                (gap.cause, gap.end()),
                (GapCause::CutShort, length as u64),
                "{name} cut at {length}"
            );
            assert_eq!(events, all[..events.len()], "{name} cut at {length}");
            let least = blocks
                .iter()
                .take_while(|(end, _)| *end <= length)
                .last()
                .map_or(0, |(_, events)| *events);
            assert!(
                events.len() >= least,
                "{name} cut at {length}: {} of {least} events",
                events.len()
            );
            assert!(events.len() >= before, "{name} cut at {length}");
            before = events.len();
            assert_eq!(trace.diagnostics.bad_records, 0, "{name} cut at {length}");
            assert_eq!(trace.diagnostics.bytes_read, length as u64);
        }
        assert_eq!(before, all.len(), "{name} without its last byte");
    }
}

#[test]
fn the_events_of_a_cut_block_are_delivered_up_to_the_cut() {
    let mut writer = NettraceWriter::v4();
    let kind = writer.event_type("P", 1, 0);
    for time in 0..100 {
        writer.event(kind, time, 1, &[], &[5; 50]);
    }
    writer.flush();
    let end = writer.written();
    let bytes = writer.finish();
    // The last byte of the block's last event, its end tag and everything after it are missing.
    let trace = read(&bytes[..end - 2]);
    assert_eq!(trace.events().len(), 99);
    assert!(trace.diagnostics.gaps.of(GapCause::CutShort).bytes < 60);
}

/// Reads a trace as far as possible, to check that it ends without a panic.
fn survive(bytes: &[u8]) -> Vec<Event> {
    match Reader::new(bytes, Options::default()) {
        Ok(_) => read_from(bytes, Options::default().with_region_limit(1 << 20)).events(),
        Err(_) => Vec::new(),
    }
}

#[test]
fn no_changed_byte_brings_the_reader_down() {
    for Sample { bytes, .. } in samples() {
        let mut damaged = bytes.clone();
        for position in 0..bytes.len() {
            for change in [0x01, 0x80, 0xff, 0x10] {
                damaged[position] = bytes[position] ^ change;
                survive(&damaged);
            }
            damaged[position] = bytes[position];
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_input_makes_the_reader_panic(
        sample in 0usize..8,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        cut in prop::option::of(any::<prop::sample::Index>()),
        (from, to, size) in any::<(prop::sample::Index, prop::sample::Index, u8)>(),
    ) {
        let mut bytes = samples().swap_remove(sample).bytes;
        for (position, value) in changes {
            let position = position.index(bytes.len());
            bytes[position] = value;
        }
        // A copy of a part of the file at another offset.
        let from = from.index(bytes.len());
        let piece: Vec<u8> = bytes[from..].iter().copied().take(size.into()).collect();
        let to = to.index(bytes.len());
        bytes.splice(to..to, piece);
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        survive(&bytes);
    }
}

#[test]
fn other_formats_are_rejected_by_name() {
    let found = |bytes: &[u8]| match Reader::new(bytes, Options::default()) {
        Err(Error::NotATrace { found }) => found,
        other => panic!("{:?}", other.err()),
    };
    assert_eq!(found(b""), "an empty file");
    assert_eq!(found(b"PK\x03\x04rest"), "bytes 50 4b 03 04 72 65 73 74");
    assert_eq!(found(b"Hello, world, this is text"), "\"Hello, w\"");
    assert_eq!(found(b"Nettr"), "\"Nettr\"");
}

#[test]
fn headers_that_cannot_be_used_are_refused() {
    let with = |change: &dyn Fn(&mut TraceInfo)| {
        let mut info = TraceInfo::default();
        change(&mut info);
        info
    };
    let no_clock = with(&|info| info.frequency = 0);
    let odd_pointer = with(&|info| info.pointer_size = 5);
    for (info, expected) in [
        (no_clock, "clock frequency 0"),
        (odd_pointer, "pointer size 5"),
    ] {
        for bytes in [
            NettraceWriter::v4().info(info.clone()).finish(),
            NettraceWriter::v6().info(info.clone()).finish(),
            NetperfWriter::v3().info(info.clone()).finish(),
        ] {
            let error = Reader::new(bytes.as_slice(), Options::default())
                .err()
                .expect("an error")
                .to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}

#[test]
fn newer_versions_are_refused_by_number() {
    let mut v6 = NettraceWriter::v6().finish();
    v6[12] = 7;
    let error = Reader::new(v6.as_slice(), Options::default())
        .err()
        .expect("an error");
    assert!(
        matches!(
            error,
            Error::UnsupportedVersion {
                format: "nettrace",
                version: 7,
                ..
            }
        ),
        "{error}"
    );
    let mut v3 = NetperfWriter::v3().finish();
    assert_eq!(v3[27], 3);
    v3[27] = 9;
    let error = Reader::new(v3.as_slice(), Options::default())
        .err()
        .expect("an error");
    assert_eq!(
        error.to_string(),
        "netperf version 9 is not supported (known: 1 to 3)"
    );
}

#[test]
fn unknown_objects_and_blocks_are_stepped_over() {
    let mut v4 = NettraceWriter::v4();
    let mut v6 = NettraceWriter::v6();
    for (writer, v6) in [(&mut v4, false), (&mut v6, true)] {
        let kind = writer.event_type("P", 1, 0);
        for time in 0..2 {
            if v6 {
                writer.block(0x90, &[1, 2, 3]);
                writer.block(0x90, &vec![7; 600_000]);
                writer.block(99, &[]);
            } else {
                writer.object("FutureBlock", &[1, 2, 3]);
                writer.object("FutureBlock", &vec![7; 600_000]);
                writer.object("FutureBlock", &[]);
            }
            writer.event(kind, time, 1, &[], &[]);
            writer.flush();
        }
    }
    for bytes in [v4.finish(), v6.finish()] {
        let trace = read(&bytes);
        assert_eq!(trace.events().len(), 2);
        assert_eq!(trace.diagnostics.unknown_blocks, 6);
        assert_eq!(trace.diagnostics.gaps.of(GapCause::BadBlock).count, 0);
        assert!(!trace.diagnostics.gaps.is_cut_short());
        // In the middle of one.
        let gaps = read(&bytes[..300_000]).diagnostics.gaps;
        assert!(gaps.is_cut_short());
        assert_eq!(gaps.listed()[0].end(), 300_000);
    }
}

#[test]
fn a_block_larger_than_is_looked_ahead_is_read() {
    for writer in [NettraceWriter::v4(), NettraceWriter::v4().uncompressed()] {
        let mut writer = writer.block_size(usize::MAX);
        let kind = writer.event_type("P", 1, 0);
        let payload = vec![7; 1_000_000];
        for time in 0..20 {
            writer.event(kind, time, 1, &[], &payload);
        }
        let bytes = writer.finish();
        let step = 3_000_000;
        let source = Dribble {
            bytes: &bytes,
            step,
        };
        let trace = read_from(source, Options::default());
        assert!(trace.diagnostics.is_clean(), "{:?}", trace.diagnostics);
        assert_eq!(trace.events().len(), 20);
    }
}

#[test]
fn a_longer_block_header_is_skipped() {
    let mut writer = NettraceWriter::v4();
    let kind = writer.event_type("P", 1, 0);
    writer.event(kind, 0, 1, &[], &[]);
    writer.flush();
    // Header of 24 bytes; blob: flags 1|2|4|128, type 1, sequence +1, capture 1, processor, thread,
    // time, size.
    let mut block = vec![24, 0, 1, 0];
    block.extend([0xee; 20]);
    block.extend([0x87, 1, 1, 1, 0, 1, 5, 1, b'x']);
    writer.object("EventBlock", &block);
    let trace = read(&writer.finish());
    assert_eq!(trace.events()[1].payload, b"x");
}

#[test]
fn damage_in_one_block_leaves_the_others_alone() {
    for uncompressed in [false, true] {
        let mut writer = NettraceWriter::v4();
        if uncompressed {
            writer = writer.uncompressed();
        }
        let kind = writer.event_type("P", 1, 0);
        writer.event(kind, 0, 1, &[], b"before");
        writer.flush();
        // A compressed block whose only event claims a payload longer than the block.
        let mut block = vec![20, 0, 1, 0];
        block.extend([0; 16]);
        block.extend([0x81, 1, 5, 0x7f, b'x']);
        writer.object("EventBlock", &block);
        writer.event(kind, 1, 1, &[], b"after");
        let trace = read(&writer.finish());
        let payloads: Vec<_> = trace
            .events()
            .into_iter()
            .map(|event| event.payload)
            .collect();
        assert_eq!(payloads, [b"before".to_vec(), b"after".to_vec()]);
        assert_eq!(
            trace.diagnostics.gaps.listed(),
            [Gap::new(
                trace.diagnostics.gaps.listed()[0].offset,
                5,
                GapCause::BadRecord
            )]
        );
        assert!(!trace.diagnostics.gaps.is_cut_short());
    }
}

/// Returns a trace with an event in each of two blocks, its type, and the start of the second
/// block.
fn two_blocks() -> (NettraceWriter, TypeId, usize) {
    let mut writer = NettraceWriter::v4();
    let kind = writer.event_type("P", 1, 0);
    writer.event(kind, 0, 1, &[], b"a");
    writer.flush();
    let first = writer.written();
    writer.event(kind, 1, 1, &[], b"b");
    writer.flush();
    (writer, kind, first)
}

#[test]
fn an_event_of_netperf_that_is_larger_than_its_block_costs_the_rest_of_it() {
    let mut writer = NetperfWriter::v3();
    let kind = writer.event_type("P", 1, 0);
    writer.event(kind, 1, 1, &[], b"a");
    writer.event(kind, 2, 1, &[], b"wrong");
    writer.flush();
    let end = writer.written();
    writer.event(kind, 3, 1, &[], b"c");
    let mut bytes = writer.finish();
    let payload = bytes.windows(5).position(|window| window == b"wrong");
    // Before it: its size, type, thread, time, two ids, size.
    let at = payload.expect("the second event") - (4 + 4 + 4 + 8 + 32 + 4);
    bytes[at] += 40;
    let trace = read(&bytes);
    let payloads: Vec<_> = trace.events().into_iter().map(|it| it.payload).collect();
    assert_eq!(payloads, [b"a", b"c"]);
    let gap = Gap::new(at as u64, (end - 1 - at) as u64, GapCause::BadRecord);
    assert_eq!(trace.diagnostics.gaps.listed(), [gap]);
}

#[test]
fn reading_resumes_at_the_next_object_after_broken_framing() {
    let (mut writer, kind, first) = two_blocks();
    let second = writer.written();
    writer.event(kind, 2, 1, &[], b"c");
    let mut bytes = writer.finish();
    // The second block's begin tag is overwritten: only that block is lost.
    bytes[first] = 0xee;
    let trace = read(&bytes);
    let payloads: Vec<_> = trace
        .events()
        .into_iter()
        .map(|event| event.payload)
        .collect();
    assert_eq!(payloads, [b"a".to_vec(), b"c".to_vec()]);
    let lost = Gap::new(first as u64, (second - first) as u64, GapCause::BadBlock);
    assert_eq!(trace.diagnostics.gaps.listed(), [lost]);
    // It was not the traced process that lost it, but it is missing.
    assert_eq!(trace.diagnostics.lost_events(), 0);
    let windows = trace.diagnostics.loss_windows.iter();
    let windows: Vec<_> = windows.map(|it| (it.capture_thread, it.events)).collect();
    assert_eq!(windows, [(Some(1), 1), (None, 0)]);
    assert!(!trace.diagnostics.gaps.is_cut_short());
}

#[test]
fn losses_after_the_first_gap_after_damage_belong_to_the_traced_process() {
    let (mut writer, kind, first) = two_blocks();
    for time in 2..5 {
        writer.lose(1, 10);
        writer.event(kind, time, 1, &[], b"c");
    }
    let mut bytes = writer.finish();
    bytes[first] = 0xee;
    let trace = read(&bytes);
    assert_eq!(trace.events().len(), 4);
    assert_eq!(trace.diagnostics.lost_events(), 20);
}

#[test]
fn an_uncompressed_event_that_makes_no_sense_leaves_the_others_of_its_block() {
    for (mut writer, header) in [
        (NettraceWriter::v4().uncompressed(), 76),
        (NettraceWriter::v6().uncompressed(), 48),
    ] {
        let kind = writer.event_type("P", 1, 0);
        writer.event(kind, 0, 1, &[], b"first");
        writer.event(kind, 1, 1, &[], b"wrong");
        writer.event(kind, 2, 1, &[], b"third");
        let mut bytes = writer.finish();
        let payload = bytes.windows(5).position(|window| window == b"wrong");
        let payload = payload.expect("the second event");
        // It claims a payload longer than itself.
        bytes[payload - 4] = 200;
        let trace = read(&bytes);
        let payloads: Vec<_> = trace
            .events()
            .into_iter()
            .map(|event| event.payload)
            .collect();
        assert_eq!(payloads, [b"first".to_vec(), b"third".to_vec()]);
        let wrong = trace.diagnostics.gaps.of(GapCause::BadRecord);
        assert_eq!((wrong.count, trace.diagnostics.gaps.total().count), (1, 1));
        let size = wrong.bytes;
        assert!((4 + header + 5..4 + header + 9).contains(&size), "{size}");
        assert_eq!(trace.diagnostics.lost_events(), 0);
    }
}

#[test]
fn a_stack_of_an_odd_size_leaves_the_others_of_its_block() {
    let mut block = vec![1, 0, 0, 0, 3, 0, 0, 0];
    for (size, byte) in [(8u8, 1), (12, 2), (8, 3)] {
        block.extend([size, 0, 0, 0]);
        block.extend(vec![byte; size.into()]);
    }
    let mut writer = NettraceWriter::v4();
    let kind = writer.event_type("P", 1, 0);
    writer.event(kind, 0, 1, &[], &[]);
    writer.flush();
    writer.object("StackBlock", &block);
    // Three compressed events: flags 8 for the stack, 1|2|4|128 as well in the first one.
    let mut events = vec![20, 0, 1, 0];
    events.extend([0; 16]);
    events.extend([0x8f, 1, 1, 1, 0, 1, 1, 5, 0]);
    events.extend([0x08, 2, 1, 0x08, 3, 1]);
    writer.object("EventBlock", &events);
    let trace = read(&writer.finish());
    let stacks: Vec<_> = trace.events()[1..]
        .iter()
        .map(|event| event.stack.clone())
        .collect();
    let of = |byte: u8| Some(vec![u64::from_le_bytes([byte; 8])]);
    assert_eq!(stacks, [of(1), of(2), of(3)]);
    assert_eq!(trace.diagnostics.gaps.of(GapCause::BadBlock).count, 1);
}

#[test]
fn excessive_counts_are_rejected() {
    let huge = u32::MAX.to_le_bytes();
    let mut stacks = 1u32.to_le_bytes().to_vec();
    stacks.extend(huge);
    let mut point = vec![0; 8];
    point.extend(huge);
    let mut writer = NettraceWriter::v4();
    let kind = writer.event_type("P", 1, 0);
    writer.object("StackBlock", &stacks);
    writer.object("SPBlock", &point);
    writer.event(kind, 2, 1, &[], b"kept");
    let trace = read(&writer.finish());
    assert_eq!(trace.events().len(), 1);
    assert_eq!(trace.diagnostics.gaps.of(GapCause::BadBlock).count, 2);
}

#[test]
fn bytes_after_invalid_content_of_a_block_are_counted() {
    // First id 1, two stacks: one of eight bytes, one that is longer than the block.
    let mut stacks = vec![1, 0, 0, 0, 2, 0, 0, 0, 8, 0, 0, 0];
    stacks.extend([7; 8]);
    stacks.extend([99, 0, 0, 0]);
    stacks.extend([7; 50]);
    let mut writer = NettraceWriter::v4();
    let kind = writer.event_type("P", 1, 0);
    writer.object("StackBlock", &stacks);
    writer.event(kind, 2, 1, &[], b"kept");
    let diagnostics = read(&writer.finish()).diagnostics;
    let [gap] = diagnostics.gaps.listed() else {
        panic!("{:?}", diagnostics.gaps);
    };
    assert_eq!((gap.cause, gap.length), (GapCause::BadBlock, 50));
    assert_eq!(diagnostics.stacks, 1);
}

#[test]
fn bytes_after_the_end_are_counted() {
    let netperf = [NetperfWriter::v2(), NetperfWriter::v3()].map(NetperfWriter::finish);
    let nettrace = [NettraceWriter::v4(), NettraceWriter::v6()].map(NettraceWriter::finish);
    for mut bytes in netperf.into_iter().chain(nettrace) {
        bytes.extend(vec![0; 1_000_000]);
        let trace = read(&bytes);
        let after = Gap::new(
            bytes.len() as u64 - 1_000_000,
            1_000_000,
            GapCause::AfterEnd,
        );
        assert_eq!(trace.diagnostics.gaps.listed(), [after]);
        assert!(!trace.diagnostics.is_clean());
    }
}

#[test]
fn netperf_v2_events_that_look_like_an_end_are_events() {
    // An event whose size field equals an end tag and a null reference, like the end of the events.
    let mut writer = NetperfWriter::v2();
    let kind = writer.event_type("P", 1, 0);
    // 56 bytes of header and sizes, so that the event's size is 0x106.
    writer.event(kind, 1, 1, &[], &[0; 0x106 - 56]);
    writer.event(kind, 2, 1, &[], b"after");
    let trace = read(&writer.finish());
    assert!(trace.diagnostics.is_clean(), "{:?}", trace.diagnostics);
    assert_eq!(trace.events().len(), 2);
}

/// Checks that gaps are within the file, in order, and disjoint.
fn assert_disjoint(gaps: &[Gap], length: usize, what: &str) {
    let mut end = 0;
    for gap in gaps {
        assert!(gap.offset >= end, "{what}: {gaps:?}");
        end = gap.end();
    }
    assert!(end <= length as u64, "{what}: {gaps:?}");
}

#[test]
fn whatever_byte_of_a_block_is_damaged_the_blocks_after_the_next_are_read() {
    for Sample {
        name,
        bytes,
        blocks,
    } in samples()
    {
        // Bare events follow each other without anything to find them by.
        if ["netperf v1", "netperf v2"].contains(&name) {
            continue;
        }
        let last = blocks.len() - 1;
        let events_of_last = blocks[last].1 - blocks[last - 1].1;
        let last_events = |events: &[Event]| events[events.len() - events_of_last..].to_vec();
        let expected: Vec<_> = last_events(&read(&bytes).events());
        let mut damaged = bytes.clone();
        for position in blocks[0].0..blocks[1].0 {
            for change in [0x01, 0x04, 0x80, 0xff, bytes[position]] {
                damaged[position] = bytes[position] ^ change;
                let trace = read(&damaged);
                let what = format!("{name}, byte {position} changed by {change:#x}");
                let events = trace.events();
                assert_disjoint(trace.diagnostics.gaps.listed(), bytes.len(), &what);
                // A flag of a sequence point makes the reader forget all types.
                if name.starts_with("v6") && trace.diagnostics.unknown_metadata > 0 {
                    continue;
                }
                assert!(events.len() >= events_of_last, "{what}");
                for (found, expected) in last_events(&events).iter().zip(&expected) {
                    assert_eq!(found.payload, expected.payload, "{what}");
                    assert_eq!(found.raw_time, expected.raw_time, "{what}");
                }
            }
            damaged[position] = bytes[position];
        }
    }
}

#[test]
fn zeros_in_the_middle_cost_only_their_blocks() {
    for Sample {
        name,
        mut bytes,
        blocks,
    } in samples()
    {
        if ["netperf v1", "netperf v2"].contains(&name) {
            continue;
        }
        bytes[blocks[0].0..blocks[1].0].fill(0);
        let trace = read(&bytes);
        assert_eq!(
            trace.events().len(),
            blocks[3].1 - (blocks[1].1 - blocks[0].1),
            "{name}"
        );
        let [gap] = trace.diagnostics.gaps.listed() else {
            panic!("{name}: {:?}", trace.diagnostics.gaps);
        };
        assert_eq!(gap.end(), blocks[1].0 as u64, "{name}");
        // Four zeros are an end mark of V6.
        assert!(gap.offset - blocks[0].0 as u64 <= 4, "{name}: {gap:?}");
        assert!(!trace.diagnostics.gaps.is_cut_short(), "{name}");
    }
}

#[test]
fn a_trace_after_the_end_of_another_is_not_part_of_it() {
    for name in ["v4", "v6"] {
        let writer = || match name {
            "v4" => NettraceWriter::v4(),
            _ => NettraceWriter::v6(),
        };
        let [first, second] = [nettrace(name, writer()), nettrace(name, writer())];
        let whole = read(&first.bytes).events();
        let both = read(&[first.bytes.as_slice(), second.bytes.as_slice()].concat());
        assert_eq!(both.events(), whole, "{name}");
        let after = Gap::new(
            first.bytes.len() as u64,
            second.bytes.len() as u64,
            GapCause::AfterEnd,
        );
        assert_eq!(both.diagnostics.gaps.listed(), [after], "{name}");
    }
}

#[test]
fn stacks_from_before_lost_blocks_are_not_attributed() {
    let mut writer = NettraceWriter::v4();
    let kind = writer.event_type("P", 1, 0);
    writer.event(kind, 1, 1, &[0x1111], b"a");
    writer.flush();
    let from = writer.written();
    writer.sequence_point();
    writer.event(kind, 2, 1, &[0x2222], b"b");
    writer.flush();
    let to = writer.written();
    // Its stack has the id that the first one had before the sequence point.
    writer.event(kind, 3, 1, &[0x2222], b"c");
    let mut bytes = writer.finish();
    bytes[from..to].fill(0xee);
    let trace = read(&bytes);
    let events = trace.events();
    assert_eq!(events.len(), 2);
    assert_eq!(events[0].stack, Some(vec![0x1111]));
    assert_ne!(events[1].stack, Some(vec![0x1111]));
    assert_eq!(trace.diagnostics.unknown_stacks, 1);
}

/// The events that a file has in one of its blocks.
fn events_of(sample: &Sample, block: usize) -> std::ops::Range<usize> {
    let before = block
        .checked_sub(1)
        .map_or(0, |before| sample.blocks[before].1);
    before..sample.blocks[block].1
}

/// The bytes from the end of the block before one to its own end.
fn bytes_of(sample: &Sample, block: usize) -> std::ops::Range<usize> {
    sample.blocks[block - 1].0..sample.blocks[block].0
}

fn padded(name: &'static str, writer: NettraceWriter, padding: usize) -> Sample {
    let mut writer = writer;
    let event_type = writer.define(rich_type(0));
    let mut blocks = Vec::new();
    for block in 0..5i64 {
        for time in 0..4i64 {
            let payload = [block as u8; 16];
            let length = 8 + (time == 3 && block == 2) as usize * padding;
            let spec = EventSpec::new(event_type, block * 10 + time, 1 + (time % 2) as u64);
            writer.record(&spec.payload(&payload[..length]));
        }
        writer.flush();
        blocks.push((writer.written(), 4 * (block as usize + 1)));
    }
    Sample {
        name,
        bytes: writer.finish(),
        blocks,
    }
}

fn padded_samples() -> Vec<Sample> {
    let with = |padding| {
        [
            padded("v4", NettraceWriter::v4(), padding),
            padded(
                "v4, uncompressed",
                NettraceWriter::v4().uncompressed(),
                padding,
            ),
            padded("v5", NettraceWriter::v5(), padding),
            padded("v6", NettraceWriter::v6(), padding),
        ]
    };
    (0..4).flat_map(with).collect()
}

#[test]
fn blocks_after_a_missing_one_are_read_whatever_its_length() {
    for sample in padded_samples() {
        let whole = read(&sample.bytes).events();
        let mut bytes = sample.bytes.clone();
        let removed = bytes_of(&sample, 2);
        let shift = removed.len() % 4;
        bytes.drain(removed);
        let mut expected = whole;
        expected.drain(events_of(&sample, 2));
        let trace = read(&bytes);
        assert_eq!(trace.events(), expected, "{} by {shift}", sample.name);
        assert!(!trace.diagnostics.is_clean());
        let is_aligned = shift == 0 || sample.name == "v6";
        let misaligned = trace.diagnostics.misaligned_blocks;
        assert_eq!(misaligned == 0, is_aligned, "{} by {shift}", sample.name);
    }
}

#[test]
fn events_of_a_repeated_block_are_left_out_and_counted() {
    for sample in padded_samples().into_iter().chain([
        nettrace("v4", NettraceWriter::v4()),
        nettrace("v6", NettraceWriter::v6()),
    ]) {
        let whole = read(&sample.bytes);
        let last = sample.blocks.len() - 1;
        // Right after itself, and after later ones.
        for (block, to) in [(1, 1), (1, 2), (last, last)] {
            let repeated = sample.bytes[bytes_of(&sample, block)].to_vec();
            let mut bytes = sample.bytes.clone();
            let at = sample.blocks[to].0;
            bytes.splice(at..at, repeated);
            let trace = read(&bytes);
            let key = |event: &Event| (event.raw_time, event.capture_thread, event.sequence);
            let keys = |events: &[Event]| events.iter().map(key).collect::<Vec<_>>();
            let (name, events) = (sample.name, trace.events());
            assert_eq!(
                keys(&events),
                keys(&whole.events()),
                "{name}: {block} after {to}"
            );
            let count = events_of(&sample, block).len() as u64;
            assert_eq!(trace.diagnostics.repeated_events, count, "{name}");
            // A thread that is removed again is another one, of which nothing was read.
            let lost = trace.diagnostics.lost_events();
            assert!(lost == 0 || name == "v6" && block == last, "{name}");
        }
    }
}

#[test]
fn blocks_in_another_order_repeat_nothing() {
    for sample in padded_samples() {
        let (first, second) = (bytes_of(&sample, 2), bytes_of(&sample, 3));
        let mut bytes = sample.bytes.clone();
        bytes[first.start..second.end].rotate_left(first.len());
        let trace = read(&bytes);
        assert_eq!(trace.events().len(), 20, "{}", sample.name);
        assert_eq!(trace.diagnostics.repeated_events, 0, "{}", sample.name);
    }
}

#[test]
fn a_thread_id_that_is_used_again_repeats_nothing() {
    let mut writer = NettraceWriter::v4();
    let event_type = writer.event_type("P", 1, 0);
    writer.event(event_type, 1, 7, &[], &[]);
    writer.event(event_type, 2, 7, &[], &[]);
    writer.lose(7, 0u32.wrapping_sub(2));
    writer.event(event_type, 3, 7, &[], &[]);
    let trace = read(&writer.finish());
    assert_eq!(trace.events().len(), 3);
    assert!(trace.diagnostics.is_clean());
}
