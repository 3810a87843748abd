//! Ordering regions, stacks, threads, dropped events.

mod common;

use std::io::{self, Read};

use chronosym_nettrace::{Error, Options, Reader, StackIndex};
use chronosym_support::netperf::NetperfWriter;
use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::trace::{EventSpec, LabelSpec};
use common::{read, read_from};

#[test]
fn a_region_is_given_in_file_order_and_in_time_order() {
    let mut writer = NettraceWriter::v4();
    let kind = writer.event_type("P", 1, 0);
    for (position, time) in [30, 40, 50, 10, 40, 45].into_iter().enumerate() {
        writer.event(kind, time, 1 + position as u64 / 3, &[], &[position as u8]);
    }
    writer.sequence_point();
    writer.event(kind, 60, 1, &[], &[9]);
    let bytes = writer.finish();
    let mut reader = Reader::new(bytes.as_slice(), Options::default()).expect("a trace");
    let region = reader.next_region().expect("readable").expect("a region");
    assert_eq!(region.len(), 6);
    let file: Vec<u8> = region.records().map(|record| record.payload[0]).collect();
    assert_eq!(file, [0, 1, 2, 3, 4, 5]);
    for (position, payload) in file.iter().enumerate() {
        let record = region.record(position).expect("a record");
        assert_eq!(record.payload, [*payload]);
    }
    assert!(region.record(6).is_none());
    let mut left = region.records();
    left.next();
    assert_eq!((left.len(), left.size_hint()), (5, (5, Some(5))));
    assert!((6..=bytes.len()).contains(&region.bytes_held()));
    for _ in 0..2 {
        let ordered: Vec<_> = region
            .in_time_order()
            .map(|record| (record.time_ns, record.payload[0]))
            .collect();
        assert_eq!(
            ordered,
            [(10, 3), (30, 0), (40, 1), (40, 4), (45, 5), (50, 2)]
        );
    }
    let second = reader.next_region().expect("readable").expect("a region");
    let ordered: Vec<u8> = second
        .in_time_order()
        .map(|record| record.payload[0])
        .collect();
    assert_eq!(ordered, [9]);
    let types: Vec<_> = second.event_types().iter().map(|it| it.id).collect();
    assert_eq!(types, [1]);
    assert!(reader.next_region().expect("readable").is_none());
    assert!(reader.next_region().expect("readable").is_none());
    assert_eq!(reader.diagnostics().sequence_points, 2);
}

#[test]
fn events_of_types_that_are_not_selected_are_counted() {
    let mut writer = NettraceWriter::v4();
    let wanted = writer.event_type("P", 1, 0);
    let other = writer.event_type("P", 2, 0);
    let more = writer.event_type("Q", 1, 0);
    writer.event(other, 5, 1, &[10], &[]);
    writer.event(wanted, 10, 1, &[20, 21], &[7]);
    writer.event(other, 20, 1, &[], &[]);
    writer.event(other, 25, 1, &[10], &[]);
    writer.event(more, 30, 2, &[10], &[]);
    writer.sequence_point();
    writer.event(other, 40, 1, &[30], &[]);
    writer.sequence_point();
    writer.event(wanted, 50, 1, &[], &[8]);
    let bytes = writer.finish();
    let plain = read(&bytes);
    let mut reader = Reader::new(bytes.as_slice(), Options::default()).expect("a trace");
    reader.select(|event_type| event_type.provider == "P" && event_type.id == 1);
    let mut seen = Vec::new();
    while let Some(region) = reader.next_region().expect("readable") {
        let mut counted: Vec<_> = region
            .counted()
            .map(|(index, count)| {
                let event_type = region.event_type(index).expect("a known type");
                let name = (event_type.provider.clone(), event_type.id);
                (name, count.events, count.stacks)
            })
            .collect();
        counted.sort();
        let records: Vec<_> = region
            .records()
            .map(|r| (r.payload[0], r.stack.map(|row| region.stack(row).len())))
            .collect();
        assert_eq!(region.is_empty(), records.is_empty());
        seen.push((records, counted, region.last_time_ns()));
    }
    let (p2, q1) = (("P".to_owned(), 2), ("Q".to_owned(), 1));
    let expected = [
        (vec![(7, Some(2))], vec![(p2.clone(), 3, 2), (q1, 1, 1)], 30),
        (vec![], vec![(p2, 1, 1)], 40),
        (vec![(8, None)], vec![], 50),
    ];
    assert_eq!(seen, expected);
    assert_eq!(*reader.diagnostics(), plain.diagnostics);
}

#[test]
fn netperf_events_of_types_that_are_not_selected_are_counted() {
    let mut writer = NetperfWriter::v3();
    let kind = writer.event_type("P", 1, 0);
    writer.event(kind, 1, 1, &[10], &[]);
    writer.event(kind, 2, 1, &[], &[]);
    writer.event(kind, 3, 1, &[], &[]);
    let bytes = writer.finish();
    let mut reader = Reader::new(bytes.as_slice(), Options::default()).expect("a trace");
    reader.select(|_| false);
    let region = reader.next_region().expect("readable").expect("a region");
    let counted: Vec<_> = region
        .counted()
        .map(|(_, n)| (n.events, n.stacks))
        .collect();
    assert_eq!((region.len(), counted), (0, vec![(3, 1)]));
}

#[test]
fn events_of_some_types_are_records_only_at_certain_times() {
    let mut writer = NettraceWriter::v4();
    let timed = writer.event_type("P", 1, 0);
    let other = writer.event_type("P", 2, 0);
    for time in [10, 20, 30, 40] {
        writer.event(timed, time, 1, &[20, 21], &[time as u8]);
        writer.event(other, time + 1, 1, &[], &[time as u8 + 1]);
    }
    let bytes = writer.finish();
    let plain = read(&bytes);
    let mut reader = Reader::new(bytes.as_slice(), Options::default()).expect("a trace");
    reader.select_times(20..40, |event_type| event_type.id == 1);
    let region = reader.next_region().expect("readable").expect("a region");
    let records: Vec<u8> = region.records().map(|r| r.payload[0]).collect();
    assert_eq!(records, [11, 20, 21, 30, 31, 41]);
    let counted: Vec<_> = (region.counted())
        .map(|(_, n)| (n.events, n.stacks))
        .collect();
    assert_eq!((counted, region.last_time_ns()), (vec![(2, 2)], 41));
    assert_eq!(*reader.diagnostics(), plain.diagnostics);
}

#[test]
fn stack_rows_are_dense_and_shared_within_a_region() {
    let mut writer = NettraceWriter::v4();
    let kind = writer.event_type("P", 1, 0);
    for (time, stack) in [(1, [10, 11]), (2, [20, 21]), (3, [10, 11])] {
        writer.event(kind, time, 1, &stack, &[]);
    }
    writer.sequence_point();
    writer.event(kind, 4, 1, &[30, 31, 32], &[]);
    let bytes = writer.finish();
    let mut reader = Reader::new(bytes.as_slice(), Options::default()).expect("a trace");
    let region = reader.next_region().expect("readable").expect("a region");
    let rows: Vec<_> = region
        .records()
        .map(|record| record.stack.expect("a stack").0)
        .collect();
    assert_eq!(rows, [0, 1, 0]);
    assert_eq!(StackIndex(7).index(), 7);
    assert_eq!(region.stack_count(), 2);
    let region = reader.next_region().expect("readable").expect("a region");
    let row = region
        .records()
        .next()
        .expect("an event")
        .stack
        .expect("a stack");
    assert_eq!(row.0, 0);
    let stack = region.stack(row);
    assert_eq!((stack.len(), stack.iter().count()), (3, 3));
    assert_eq!(stack.iter().rev().collect::<Vec<_>>(), [32, 31, 30]);
}

#[test]
fn stack_ids_end_at_a_sequence_point() {
    let mut writer = NettraceWriter::v4();
    let kind = writer.event_type("P", 1, 0);
    writer.event(kind, 1, 1, &[10], &[]);
    writer.flush();
    // A sequence point that the writer ignores: it continues to use its stack ids.
    writer.object("SPBlock", &[0; 12]);
    writer.event(kind, 2, 1, &[10], b"kept");
    let trace = read(&writer.finish());
    let stacks: Vec<_> = trace
        .events()
        .into_iter()
        .map(|event| event.stack)
        .collect();
    assert_eq!(stacks, [Some(vec![10]), None]);
    assert_eq!(trace.diagnostics.unknown_stacks, 1);
}

#[test]
fn stack_ids_may_come_in_any_order_and_be_given_again() {
    let mut writer = NettraceWriter::v4();
    let kind = writer.event_type("P", 1, 0);
    // First id 900 with one stack, then 5 with one: neither follows the other; then 900 again.
    for (id, address) in [(900u32, 1u64), (5, 2), (900, 3)] {
        let mut block = id.to_le_bytes().to_vec();
        block.extend(1u32.to_le_bytes());
        block.extend(8u32.to_le_bytes());
        block.extend(address.to_le_bytes());
        writer.object("StackBlock", &block);
    }
    writer.event(kind, 0, 1, &[], &[]);
    writer.flush();
    // Header; blob: flags 1|2|4|8|128, type 1, sequence, capture thread 1, processor, thread 1,
    // stack id, time, size 0.
    for (sequence, id) in [(1, [0x84, 0x07]), (2, [0x85, 0x00])] {
        let mut block = vec![20, 0, 1, 0];
        block.extend([0; 16]);
        block.extend([0x8f, 1, sequence, 1, 0, 1]);
        block.extend(id);
        block.extend([1, 0]);
        writer.object("EventBlock", &block);
    }
    let trace = read(&writer.finish());
    let stacks: Vec<_> = trace
        .events()
        .into_iter()
        .map(|event| event.stack)
        .collect();
    assert_eq!(stacks, [None, Some(vec![3]), Some(vec![2])]);
}

#[test]
fn a_region_beyond_the_limit_is_delivered_in_parts_that_keep_their_stacks() {
    let mut writer = NettraceWriter::v4().block_size(64 << 10);
    let kind = writer.event_type("P", 1, 0);
    let payload = [7; 1000];
    for time in 0..1000 {
        writer.event(kind, time, 1, &[5, 6], &payload);
    }
    let bytes = writer.finish();
    let whole = read(&bytes);
    let limited = read_from(
        bytes.as_slice(),
        Options::default().with_region_limit(300 << 10),
    );
    assert_eq!(whole.regions.len(), 1);
    assert!(
        limited.regions.len() >= 3,
        "{} regions",
        limited.regions.len()
    );
    assert_eq!(
        limited.diagnostics.forced_regions,
        limited.regions.len() as u64 - 1
    );
    assert_eq!(limited.events(), whole.events());
    assert!(!limited.diagnostics.is_clean());
}

#[test]
fn many_small_events_in_one_block_respect_the_limit_too() {
    let mut writer = NettraceWriter::v4().block_size(usize::MAX);
    let kind = writer.event_type("P", 1, 0);
    for time in 0..50_000 {
        writer.event(kind, time, 1, &[], &[]);
    }
    let bytes = writer.finish();
    let limited = read_from(
        bytes.as_slice(),
        Options::default().with_region_limit(480_000),
    );
    assert!(limited.regions.iter().all(|region| region.len() <= 10_000));
    assert_eq!(limited.events(), read(&bytes).events());
}

#[test]
fn netperf_needs_no_order_and_comes_in_small_regions() {
    for mut writer in [NetperfWriter::v2(), NetperfWriter::v3()] {
        let kind = writer.event_type("P", 1, 0);
        for time in 0..4000 {
            writer.event(kind, time, 1, &[time as u64], &[1; 1000]);
        }
        let bytes = writer.finish();
        let options = Options::default().with_region_limit(200 << 10);
        let limited = read_from(bytes.as_slice(), options);
        assert!(limited.regions.iter().all(|region| region.len() <= 200));
        assert!(limited.diagnostics.forced_regions > 0);
        let trace = read(&bytes);
        assert!(trace.diagnostics.is_clean(), "{:?}", trace.diagnostics);
        assert_eq!(limited.events(), trace.events());
        assert!(trace.regions.len() >= 3);
        let events = trace.events();
        assert_eq!(events.len(), 4000);
        assert!(
            events
                .iter()
                .enumerate()
                .all(|(at, event)| event.stack == Some(vec![at as u64]))
        );
    }
}

#[test]
fn dropped_events_are_counted_by_thread_with_their_time() {
    for mut writer in [
        NettraceWriter::v4(),
        NettraceWriter::v4().uncompressed(),
        NettraceWriter::v6(),
    ] {
        let kind = writer.event_type("P", 1, 0);
        writer.event(kind, 100, 7, &[], &[]);
        writer.event(kind, 110, 8, &[], &[]);
        writer.lose(7, 5);
        writer.event(kind, 120, 7, &[], &[]);
        writer.event(kind, 130, 8, &[], &[]);
        // The last ones of a thread are missed only by the sequence point.
        writer.lose(8, 2);
        writer.event(kind, 140, 7, &[], &[]);
        writer.sequence_point();
        writer.event(kind, 150, 8, &[], &[]);
        let trace = read(&writer.finish());
        let thread = |thread: u64| {
            trace
                .events()
                .iter()
                .find(|event| event.thread == thread)
                .map(|e| e.capture_thread)
        };
        let (seven, eight) = (thread(7).expect("thread 7"), thread(8).expect("thread 8"));
        let losses = trace.diagnostics.losses.iter();
        let losses: Vec<_> = losses
            .map(|l| (l.capture_thread, l.thread_id, l.events, l.gaps))
            .collect();
        assert_eq!(losses, [(seven, Some(7), 5, 1), (eight, Some(8), 2, 1)]);
        let windows = trace.diagnostics.loss_windows.iter();
        let windows: Vec<_> = windows
            .map(|w| (w.capture_thread, w.from_ns, w.to_ns, w.events))
            .collect();
        assert_eq!(
            windows,
            [(Some(seven), 100, 120, 5), (Some(eight), 130, 140, 2)]
        );
        assert_eq!(trace.diagnostics.lost_events(), 7);
        assert!(!trace.diagnostics.is_clean());
        assert_eq!(trace.events().len(), 6);
    }
}

#[test]
fn a_thread_that_lost_its_first_events_shows_it() {
    let mut writer = NettraceWriter::v4();
    let kind = writer.event_type("P", 1, 0);
    writer.lose(7, 3);
    writer.event(kind, 100, 7, &[], &[]);
    assert_eq!(read(&writer.finish()).diagnostics.lost_events(), 3);
}

#[test]
fn losses_of_a_removed_thread_precede_its_removal() {
    let mut writer = NettraceWriter::v6();
    let kind = writer.event_type("P", 1, 0);
    writer.event(kind, 100, 7, &[], &[]);
    writer.sequence_point();
    writer.event(kind, 200, 7, &[], &[]);
    writer.event(kind, 300, 8, &[], &[]);
    writer.lose(7, 5);
    writer.sequence_point_with(0);
    let bytes = {
        writer.lose(8, 2);
        writer.remove_thread(None, 8);
        writer.finish()
    };
    // With and without records: events that are merely counted have times, too.
    for wanted in [true, false] {
        let mut reader = Reader::new(bytes.as_slice(), Options::default()).expect("a trace");
        reader.select(move |_| wanted);
        while reader.next_region().expect("no failure").is_some() {}
        let windows = &reader.diagnostics().loss_windows;
        let spans: Vec<_> = windows
            .iter()
            .map(|window| (window.from_ns, window.to_ns, window.events))
            .collect();
        assert_eq!(spans, [(200, 300, 5), (300, 300, 2)]);
    }
}

#[test]
fn a_removed_threads_id_may_be_used_again() {
    let mut writer = NettraceWriter::v6();
    let kind = writer.event_type("P", 1, 0);
    writer.record(&EventSpec::new(kind, 1, 70).process(5));
    writer.remove_thread(Some(5), 70);
    writer.record(&EventSpec::new(kind, 2, 70).process(5));
    writer.sequence_point_with(1);
    writer.record(&EventSpec::new(kind, 3, 71).process(6));
    let trace = read(&writer.finish());
    assert!(trace.diagnostics.is_clean(), "{:?}", trace.diagnostics);
    let threads: Vec<_> = trace
        .events()
        .iter()
        .map(|event| (event.process, event.thread, event.sequence))
        .collect();
    assert_eq!(
        threads,
        [(Some(5), 70, 1), (Some(5), 70, 1), (Some(6), 71, 1)]
    );
}

#[test]
fn forgotten_threads_are_unknown() {
    let mut writer = NettraceWriter::v6();
    let kind = writer.event_type("P", 1, 0);
    writer.block(6, &[5, 0, 50, 2, 3, 3, 4]);
    writer.event(kind, 1, 70, &[], &[]);
    writer.sequence_point_with(1);
    // The first two of a new thread under the index of the old one.
    writer.lose(71, 2);
    writer.event(kind, 2, 71, &[], &[]);
    writer.flush();
    // flags 1|2|4|128: type 1, sequence +0, capture 50, processor 0, thread 50, time 3, size 1.
    writer.block(2, &events_of_v6(&[0x87, 1, 0, 50, 0, 50, 3, 1, b'x']));
    let trace = read(&writer.finish());
    assert_eq!(trace.diagnostics.lost_events(), 2);
    assert_eq!(trace.diagnostics.unknown_threads, 1);
    assert_eq!(trace.events()[2].thread, 0);
}

#[test]
fn a_v6_event_of_an_undefined_thread_is_kept() {
    let mut writer = NettraceWriter::v6();
    let kind = writer.event_type("P", 1, 0);
    writer.event(kind, 1, 9, &[], &[]);
    writer.flush();
    let mut block = vec![20, 0, 1, 0];
    block.extend([0; 16]);
    // flags 1|2|4|16|128: type 1, sequence +0, capture 50, processor 0, thread 50, time 3, label
    // list 77, size 1.
    block.extend([0x97, 1, 0, 50, 0, 50, 3, 77, 1, b'x']);
    writer.block(2, &block);
    let trace = read(&writer.finish());
    let events = trace.events();
    assert_eq!(events.len(), 2);
    assert_eq!(
        (events[1].thread, events[1].payload.as_slice()),
        (0, b"x".as_slice())
    );
    assert_eq!(trace.diagnostics.unknown_threads, 1);
    assert_eq!(trace.diagnostics.unknown_labels, 1);
}

/// An event block of V6 without a header's times: compressed events.
fn events_of_v6(events: &[u8]) -> Vec<u8> {
    let mut block = vec![20, 0, 1, 0];
    block.extend([0; 16]);
    block.extend_from_slice(events);
    block
}

#[test]
fn a_thread_row_with_an_option_of_a_newer_writer_keeps_its_ids() {
    let mut writer = NettraceWriter::v6();
    let kind = writer.event_type("P", 1, 0);
    writer.event(kind, 1, 9, &[], &[]);
    writer.flush();
    // Thread 50: name "N", process 3, thread 4, key "k" with "v", then option 77 with something.
    writer.block(
        6,
        b"\x10\0\x32\x01\x01N\x02\x03\x03\x04\x04\x01k\x01v\x4d\x01\x02",
    );
    // flags 1|2|4|128: type 1, sequence +0, capture 50, processor 0, thread 50, time 3, size 1.
    writer.block(2, &events_of_v6(&[0x87, 1, 0, 50, 0, 50, 3, 1, b'x']));
    let bytes = writer.finish();
    let mut reader = Reader::new(bytes.as_slice(), Options::default()).expect("a trace");
    let region = reader.next_region().expect("readable").expect("a region");
    let record = region.record(1).expect("the second event");
    let thread = record.thread().expect("its thread");
    assert_eq!((thread.index, thread.name.as_str()), (50, "N"));
    assert_eq!(thread.key_values, [("k".to_owned(), "v".to_owned())]);
    let trace = read(&bytes);
    let event = &trace.events()[1];
    assert_eq!((event.process, event.thread), (Some(3), 4));
    assert_eq!(trace.diagnostics.bad_records, 0);
    assert_eq!(trace.diagnostics.unknown_options, 1);
    assert_eq!(trace.diagnostics.unknown_threads, 0);
}

#[test]
fn a_thread_with_the_index_of_a_removed_one_starts_over() {
    // Thread 50 is gone, its last number was 1; a sequence point, with a time and no numbers, that
    // forgets all threads.
    let removed = (7, vec![50, 1]);
    let forgotten = (4, [vec![0; 8], vec![1, 0, 0, 0, 0, 0, 0, 0]].concat());
    for (kind, block) in [removed, forgotten] {
        let mut writer = NettraceWriter::v6();
        let event_type = writer.event_type("P", 1, 0);
        writer.event(event_type, 0, 9, &[], &[]);
        writer.flush();
        // Flags 1|2|4|128: type 1, sequence as given, capture 50, processor 0, thread 50, time,
        // size 0.
        let event = |sequence, time| events_of_v6(&[0x87, 1, sequence, 50, 0, 50, time, 0]);
        writer.block(6, &[5, 0, 50, 2, 3, 3, 4]);
        writer.block(2, &event(0, 1));
        writer.block(kind, &block);
        writer.block(6, &[5, 0, 50, 2, 3, 3, 5]);
        writer.block(2, &event(2, 2));
        let trace = read(&writer.finish_here());
        assert_eq!(trace.diagnostics.lost_events(), 2);
        let threads: Vec<_> = trace.events().iter().map(|event| event.thread).collect();
        assert_eq!(threads, [9, 4, 5]);
    }
}

#[test]
fn a_removed_thread_is_unknown() {
    let mut writer = NettraceWriter::v6();
    writer.event_type("P", 1, 0);
    writer.flush();
    writer.block(6, &[5, 0, 50, 2, 3, 3, 4]);
    writer.block(7, &[50, 0]);
    // Flags 1|2|4|128: type 1, sequence +0, capture 50, processor 0, thread 50, time, size 0.
    writer.block(2, &events_of_v6(&[0x87, 1, 0, 50, 0, 50, 1, 0]));
    let trace = read(&writer.finish());
    assert_eq!(trace.diagnostics.unknown_threads, 1);
}

#[test]
fn rows_of_v6_that_end_early_are_counted() {
    let mut writer = NettraceWriter::v6();
    let kind = writer.event_type("P", 1, 0);
    writer.event(kind, 0, 9, &[], &[]);
    writer.flush();
    // An id without a name; an index without its second byte.
    writer.block(3, &[0, 0, 1, 0, 7]);
    writer.block(6, &[1, 0, 0xff]);
    let trace = read(&writer.finish());
    assert_eq!(trace.diagnostics.bad_records, 2);
    assert_eq!((trace.types.len(), trace.events().len()), (1, 1));
}

#[test]
fn a_v6_event_type_may_have_the_id_0() {
    let mut writer = NettraceWriter::v6();
    let kind = writer.event_type("P", 1, 0);
    writer.event(kind, 1, 9, &[], &[]);
    writer.flush();
    // Id 0, provider "Q", event 5, no name, no fields, no options.
    writer.block(3, &[0, 0, 9, 0, 0, 1, b'Q', 5, 0, 0, 0, 0, 0]);
    writer.block(6, &[5, 0, 50, 2, 3, 3, 4]);
    // flags 2|4|128: sequence +0, capture 50, processor 0, thread 50, time 3, size 1; then two like
    // it, time + 1.
    writer.block(
        2,
        &events_of_v6(&[0x86, 0, 50, 0, 50, 3, 1, b'x', 0, 1, b'y', 0, 1, b'z']),
    );
    let trace = read(&writer.finish());
    assert!(trace.diagnostics.is_clean(), "{:?}", trace.diagnostics);
    let events = trace.events();
    let events: Vec<_> = events[1..]
        .iter()
        .map(|e| (e.event_type, e.sequence, e.payload.as_slice()))
        .collect();
    assert_eq!(
        events,
        [(1, 1, b"x".as_slice()), (1, 2, b"y"), (1, 3, b"z")]
    );
    assert_eq!(trace.types[1].provider, "Q");
}

/// Gives out its bytes, then fails.
struct Failing<'a>(&'a [u8], io::ErrorKind);

impl Read for Failing<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.0.is_empty() {
            Err(self.1.into())
        } else {
            self.0.read(out)
        }
    }
}

#[test]
fn records_before_a_source_failure_are_delivered_first() {
    let mut writer = NettraceWriter::v4();
    let kind = writer.event_type("P", 1, 0);
    writer.event(kind, 1, 1, &[], b"a");
    writer.flush();
    writer.event(kind, 2, 1, &[], b"b");
    let bytes = writer.finish();
    let cut = &bytes[..bytes.len() - 60];
    let mut reader = Reader::new(
        Failing(cut, io::ErrorKind::ConnectionReset),
        Options::default(),
    )
    .expect("a trace");
    let events = reader
        .next_region()
        .expect("readable")
        .expect("a region")
        .len();
    assert!(events >= 1);
    let error = reader.next_region().err().expect("the failure");
    assert!(
        matches!(error, Error::Io { offset, .. } if offset == cut.len() as u64),
        "{error:?}"
    );
    assert!(reader.next_region().expect("the end").is_none());

    // A decompressor whose input is cut fails like this: an end like any other.
    let mut reader = Reader::new(
        Failing(cut, io::ErrorKind::UnexpectedEof),
        Options::default(),
    )
    .expect("a trace");
    assert!(reader.next_region().expect("readable").is_some());
    assert!(reader.next_region().expect("the end").is_none());
    assert!(reader.diagnostics().gaps.is_cut_short());
}

#[test]
fn the_last_time_of_a_region_is_the_latest_of_its_records() {
    let mut writer = NettraceWriter::v4();
    let kind = writer.event_type("P", 1, 0);
    // The difference has more than 32 bits: neither the order nor the latest time may look at the
    // lower ones alone.
    let times = [30, (5 << 32) + 10, 20];
    for (thread, time) in (1..).zip(times) {
        writer.event(kind, time, thread, &[], &[]);
    }
    let bytes = writer.finish();
    let mut reader = Reader::new(bytes.as_slice(), Options::default()).expect("a trace");
    let region = reader.next_region().expect("readable").expect("a region");
    assert_eq!(region.last_time_ns(), (5 << 32) + 10);
    let ordered: Vec<_> = region.in_time_order().map(|it| it.time_ns).collect();
    assert_eq!(ordered, [20, 30, (5 << 32) + 10]);
}

#[test]
fn an_event_with_labels_is_a_record_even_if_its_type_is_not_selected() {
    let mut writer = NettraceWriter::v6();
    let kind = writer.event_type("P", 1, 0);
    let labels = [LabelSpec::Level(2)];
    writer.record(&EventSpec::new(kind, 1, 1));
    writer.record(&EventSpec {
        labels: &labels,
        ..EventSpec::new(kind, 2, 1)
    });
    let bytes = writer.finish();
    let mut reader = Reader::new(bytes.as_slice(), Options::default()).expect("a trace");
    reader.select(|_| false);
    let region = reader.next_region().expect("readable").expect("a region");
    let times: Vec<_> = region.records().map(|record| record.time_ns).collect();
    assert_eq!(times, [2]);
    assert_eq!(region.counted().map(|(_, n)| n.events).sum::<u64>(), 1);
}

#[test]
fn the_last_of_many_loss_windows_grows() {
    const MOST: usize = 4_096;
    let mut writer = NettraceWriter::v4();
    let kind = writer.event_type("P", 1, 0);
    writer.event(kind, 1, 7, &[], &[]);
    for time in 0..MOST as i64 + 10 {
        writer.lose(7, 1);
        writer.event(kind, 10 + time, 7, &[], &[]);
    }
    let diagnostics = read(&writer.finish()).diagnostics;
    let windows = &diagnostics.loss_windows;
    let last = windows.last().expect("losses");
    assert_eq!(windows.len(), MOST);
    assert_eq!((last.events, last.to_ns), (11, 10 + MOST as u64 + 9));
    assert_eq!(diagnostics.lost_events(), MOST as u64 + 10);
}

#[test]
fn labels_that_no_sequence_point_ends_take_no_more_than_the_limit() {
    let mut writer = NettraceWriter::v6();
    let kind = writer.event_type("P", 1, 0);
    for i in 0..40 {
        let labels = [LabelSpec::Text("k".into(), format!("{i:0>98}"))];
        writer.record(&EventSpec {
            labels: &labels,
            ..EventSpec::new(kind, i, 1)
        });
        writer.flush();
    }
    let limit = 4_000;
    let options = Options::default().with_region_limit(limit);
    let trace = read_from(writer.finish().as_slice(), options);
    let events = trace.events();
    let labels = events.iter().filter(|event| !event.labels.is_empty());
    // A kind, two lengths, and eight bytes more a list.
    assert_eq!((events.len(), labels.count()), (40, limit / (102 + 8)));
    assert!(trace.diagnostics.unknown_labels > 0);
}

#[test]
fn stacks_that_no_sequence_point_ends_take_no_more_than_the_limit() {
    let mut writer = NettraceWriter::v4();
    let kind = writer.event_type("P", 1, 0);
    for i in 0..40 {
        let stack: Vec<u64> = (0..40).map(|at| 0x1000 * i + at).collect();
        writer.event(kind, i as i64, 1, &stack, &[]);
        writer.flush();
    }
    let limit = 4_000;
    let options = Options::default().with_region_limit(limit);
    let trace = read_from(writer.finish().as_slice(), options);
    let with_stack = |it: &&common::Event| it.stack.is_some();
    let events = trace.events();
    let stacks = events.iter().filter(with_stack).count();
    assert_eq!(events.len(), 40);
    // Each takes eight bytes more than its addresses.
    assert_eq!(stacks, limit / 328);
    assert!(trace.diagnostics.unknown_stacks > 0);
}
