//! The reader returns what the writer of synthetic traces wrote, for every clock, width and
//! compression.

use std::fs::File;
use std::path::Path;

use chronosym_etl::{
    ClockType, Diagnostics, EventKey, ExtendedItem, Guid, PointerSize, Reader, RecordKind,
};
use chronosym_support::etl::{
    At, CLR_RUNTIME, EtlWriter, Event, Op, Options, Process, Stack, buffers, guid,
};

/// Returns every combination of options that changes the layout.
fn shapes() -> impl Iterator<Item = Options> {
    [false, true].into_iter().flat_map(|compress| {
        [false, true].into_iter().flat_map(move |wide| {
            [1, 2, 3].map(move |clock| Options {
                compress,
                wide,
                clock,
                cpus: 3,
                buffer_size: 4096,
                perf_freq: 3_312_740,
                ..Options::default()
            })
        })
    })
}

/// Samples on three CPUs, each CPU in its own order; the address of each encodes its time.
fn samples(options: Options, count: i64) -> Vec<u8> {
    let mut w = EtlWriter::new(Vec::new(), options).unwrap();
    for i in 0..count {
        let at = At::us(10 * i).cpu((i * 7 % 3) as u16);
        w.sample(at, 10_000 * i as u64, 9).unwrap();
        w.stack(
            at,
            &Stack {
                event: at,
                pid: 1,
                tid: 9,
                addresses: &[1, 2, 3],
            },
        )
        .unwrap();
    }
    w.finish().unwrap()
}

fn pointer(payload: &[u8], size: PointerSize) -> u64 {
    let mut bytes = [0; 8];
    bytes[..size.bytes()].copy_from_slice(&payload[..size.bytes()]);
    u64::from_le_bytes(bytes)
}

/// (time, address) of every sample.
fn read_samples(file: &[u8]) -> Vec<(u64, u64)> {
    let mut reader = Reader::new(file, Default::default()).unwrap();
    let mut found = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        if matches!(record.key, EventKey::Classic { opcode: 46, .. }) {
            found.push((record.time_ns, pointer(record.payload, record.pointer_size)));
        }
    }
    found
}

#[test]
fn every_clock_width_and_compression_round_trips_in_time_order() {
    for options in shapes() {
        let file = samples(options.clone(), 2_000);
        let mut reader = Reader::new(file.as_slice(), Default::default()).unwrap();
        let header = reader.header();
        assert_eq!(
            header.pointer_size,
            if options.wide {
                PointerSize::Eight
            } else {
                PointerSize::Four
            }
        );
        assert_eq!(header.start_time, options.start_time);
        assert_eq!(header.boot_time, options.boot_time);
        assert_eq!(header.log_file_mode.is_compressed(), options.compress);
        assert_eq!(header.duration_ns(), options.end_ns);
        let tick = match header.clock_type {
            ClockType::Qpc => 302,
            ClockType::SystemTime => 100,
            ClockType::CpuCycles => 1,
            _ => unreachable!(),
        };
        let mut times = Vec::new();
        while let Some(record) = reader.next_record().unwrap() {
            if matches!(record.key, EventKey::Classic { opcode: 46, .. }) {
                let ip = pointer(record.payload, record.pointer_size);
                assert!(
                    record.time_ns.abs_diff(ip) < tick,
                    "{} is not {ip} ({options:?})",
                    record.time_ns
                );
                assert_eq!(record.kind, RecordKind::PerfInfo);
                assert_eq!((record.process_id, record.thread_id), (None, None));
                assert_eq!(reader_cpu(ip), record.cpu);
                times.push(record.time_ns);
            }
        }
        assert_eq!(times.len(), 2_000);
        assert!(times.is_sorted());
        let found = reader.diagnostics();
        assert_eq!((found.records, found.headers), (4_001, 1));
        assert!(!found.is_damaged() && !found.lost_anything());
    }
}

fn reader_cpu(ip: u64) -> u16 {
    (ip / 10_000 * 7 % 3) as u16
}

#[test]
fn reading_again_gives_the_same() {
    let file = samples(
        Options {
            cpus: 3,
            buffer_size: 4096,
            ..Options::default()
        },
        500,
    );
    let mut reader = Reader::new(file.as_slice(), Default::default()).unwrap();
    let mut first = Vec::new();
    for _ in 0..300 {
        first.push(reader.next_record().unwrap().unwrap().raw_time);
    }
    reader.rewind();
    let mut second = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        second.push(record.raw_time);
    }
    assert_eq!(first, second[..300]);
    assert_eq!((second.len(), reader.diagnostics().records), (1_001, 1_001));
}

#[test]
fn buffers_may_be_in_any_order() {
    let file = samples(
        Options {
            cpus: 3,
            buffer_size: 1024,
            ..Options::default()
        },
        600,
    );
    let in_order = read_samples(&file);
    let mut parts = buffers(&file);
    assert!(parts.len() > 20);
    // A circular file: the header buffer, the newer lap, the older one.
    let half = parts.len() / 2;
    parts[1..].rotate_left(half);
    assert_eq!(read_samples(&parts.concat()), in_order);
    parts[1..].reverse();
    assert_eq!(read_samples(&parts.concat()), in_order);
}

#[test]
fn records_out_of_order_in_a_buffer_are_sorted() {
    let mut w = EtlWriter::new(
        Vec::new(),
        Options {
            cpus: 2,
            ..Options::default()
        },
    )
    .unwrap();
    for us in [50, 30, 40, 10, 20, 60] {
        w.sample(At::us(us).cpu(1), 1_000 * us as u64, 1).unwrap();
        w.sample(At::us(us + 1), 1_000 * us as u64 + 1_000, 1)
            .unwrap();
    }
    let file = w.finish().unwrap();
    let found = read_samples(&file);
    assert_eq!(found.len(), 12);
    assert!(
        found.is_sorted() && found.iter().all(|(time, ip)| time == ip),
        "{found:?}"
    );
    let mut reader = Reader::new(file, Default::default()).unwrap();
    while reader.next_record().unwrap().is_some() {}
    assert_eq!(
        (
            reader.diagnostics().unordered_buffers,
            reader.diagnostics().late_records
        ),
        (2, 0)
    );
}

#[test]
fn shared_buffers_are_merged_in_order() {
    // Two buffers are filled at once by all processors, and each starts with a late record.
    const SHARED: u32 = 0x1000_0000;
    let options = Options {
        cpus: 2,
        buffer_size: 2048,
        log_file_mode: SHARED,
        compress: true,
        ..Options::default()
    };
    let mut w = EtlWriter::new(Vec::new(), options).unwrap();
    for i in 0..1_000i64 {
        let us = i / 50 * 50 + 49 - i % 50;
        w.sample(At::us(us).cpu((i / 3 % 2) as u16), 1_000 * us as u64, 1)
            .unwrap();
    }
    let mut reader = Reader::new(w.finish().unwrap(), Default::default()).unwrap();
    let mut times = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        times.push(record.time_ns);
    }
    assert!(times.is_sorted() && times.len() == 1_001);
    assert!(reader.diagnostics().unordered_buffers > 10);
    assert_eq!(reader.diagnostics().late_records, 0);
}

#[test]
fn a_record_out_of_order_is_delivered_and_counted() {
    // The first buffer's last record is older than all of the second buffer, whose first record the
    // reader has returned.
    let mut w = EtlWriter::new(
        Vec::new(),
        Options {
            cpus: 2,
            ..Options::default()
        },
    )
    .unwrap();
    for us in 100..200 {
        w.sample(At::us(us), 0, 1).unwrap();
        w.sample(At::us(us + 500).cpu(1), 0, 1).unwrap();
    }
    w.sample(At::us(1).cpu(1), 0, 1).unwrap();
    let mut reader = Reader::new(w.finish().unwrap(), Default::default()).unwrap();
    let mut times = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        times.push(record.time_ns);
    }
    assert_eq!((times.len(), reader.diagnostics().late_records), (202, 1));
    assert_eq!(times.iter().position(|time| *time == 1_000), Some(101));
}

#[test]
fn files_of_one_recording_merge() {
    let one = samples(
        Options {
            cpus: 3,
            ..Options::default()
        },
        100,
    );
    // The second session began 5 ms after the first one.
    let later = Options {
        cpus: 3,
        start_raw: 5_000_050_000,
        start_time: 133_500_000_000_050_000,
        // The clock was set back a little in between.
        boot_time: Options::default().boot_time - 20_000_000,
        ..Options::default()
    };
    let two = samples(later, 100);
    let open = |file: &Vec<u8>| Reader::new(file.clone(), Default::default()).unwrap();
    let mut merged = Reader::merge(vec![open(&two), open(&one)]).unwrap();
    assert_eq!(merged.headers().len(), 2);
    let mut times = Vec::new();
    while let Some(record) = merged.next_record().unwrap() {
        times.push(record.time_ns);
    }
    assert_eq!(times.len(), 402);
    assert!(times.is_sorted());
    assert_eq!(times.last(), Some(&5_990_000));
    assert_eq!(times.iter().filter(|time| **time < 5_000_000).count(), 201);
    assert_eq!(merged.diagnostics().headers, 2);

    let stranger = samples(
        Options {
            cpus: 3,
            boot_time: 1,
            ..Options::default()
        },
        1,
    );
    let error = Reader::merge(vec![open(&one), open(&stranger)])
        .err()
        .unwrap();
    assert_eq!(
        error.to_string(),
        "trace 1 belongs to another recording: its boot time differs"
    );
    assert!(Reader::<Vec<u8>>::merge(Vec::new()).is_err());
}

#[test]
fn merged_files_keep_their_order_and_their_counts() {
    let file = |address| {
        let mut w = EtlWriter::new(Vec::new(), Options::default()).unwrap();
        for flag in [2, 4] {
            w.flag_buffer(0, flag);
            w.sample(At::ms(1), address, 1).unwrap();
            w.sample(At::ms(1), address, 1).unwrap();
            w.flush(0).unwrap();
        }
        // A buffer of nothing but its header.
        let mut empty = vec![0; 72];
        empty[0] = 72;
        empty[0x30] = 72;
        let file = [w.finish().unwrap(), empty].concat();
        Reader::new(file, Default::default()).unwrap()
    };
    let mut merged = Reader::merge(vec![file(1), file(2)]).unwrap();
    let mut addresses = Vec::new();
    while let Some(record) = merged.next_record().unwrap() {
        if matches!(record.key, EventKey::Classic { opcode: 46, .. }) {
            addresses.push(pointer(record.payload, record.pointer_size));
        }
    }
    assert_eq!(addresses, [1, 1, 1, 1, 2, 2, 2, 2]);
    let found = merged.diagnostics();
    assert_eq!((found.buffers, found.empty_buffers), (8, 2));
    assert_eq!(
        (
            found.buffers_with_lost_events,
            found.buffers_after_lost_buffer
        ),
        (2, 2)
    );
    assert_eq!(found.unordered_buffers, 0);
}

#[test]
fn each_kind_of_loss_is_one() {
    let kinds: [fn(&mut Diagnostics); 6] = [
        |found| found.events_lost = 1,
        |found| found.buffers_lost = 1,
        |found| found.missing_buffers = 1,
        |found| found.lost_event_records = 1,
        |found| found.buffers_with_lost_events = 1,
        |found| found.buffers_after_lost_buffer = 1,
    ];
    for lose in kinds {
        let mut found = Diagnostics::default();
        assert!(!found.lost_anything());
        lose(&mut found);
        assert!(found.lost_anything(), "{found:?}");
    }
}

#[test]
fn a_file_is_read_as_its_bytes_are() {
    let bytes = samples(
        Options {
            cpus: 3,
            ..Options::default()
        },
        500,
    );
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("read_as_its_bytes_are.etl");
    std::fs::write(&path, &bytes).unwrap();
    let mut from_file = Reader::new(File::open(&path).unwrap(), Default::default()).unwrap();
    let mut from_bytes = Reader::new(bytes, Default::default()).unwrap();
    while let Some(record) = from_bytes.next_record().unwrap() {
        assert_eq!(
            record.bytes(),
            from_file.next_record().unwrap().unwrap().bytes()
        );
    }
    assert!(from_file.next_record().unwrap().is_none());
}

#[test]
fn loss_is_reported_from_every_source() {
    let mut w = EtlWriter::new(
        Vec::new(),
        Options {
            events_lost: 3,
            buffers_lost: 2,
            ..Options::default()
        },
    )
    .unwrap();
    w.flag_buffer(0, 2);
    w.sample(At::ms(1), 1, 1).unwrap();
    w.flush(0).unwrap();
    w.flag_buffer(0, 4);
    w.classic(
        At::ms(2),
        guid(0x6a399ae0, 0x4bc6, 0x4de9, 0x870b_3657f8947e7e),
        32,
        0,
        &[],
    )
    .unwrap();
    let mut reader = Reader::new(w.finish().unwrap(), Default::default()).unwrap();
    while reader.next_record().unwrap().is_some() {}
    let found = reader.diagnostics();
    assert_eq!(
        (
            found.events_lost,
            found.buffers_lost,
            found.lost_event_records
        ),
        (3, 2, 1)
    );
    assert_eq!(
        (
            found.buffers_with_lost_events,
            found.buffers_after_lost_buffer
        ),
        (1, 1)
    );
    assert!(found.lost_anything() && !found.is_damaged());
}

#[test]
fn times_outside_the_trace_are_clamped_and_kept() {
    let mut w = EtlWriter::new(
        Vec::new(),
        Options {
            end_ns: Some(1_000),
            ..Options::default()
        },
    )
    .unwrap();
    w.sample(At::ns(-5_000), 1, 1).unwrap();
    w.sample(At::ns(-4_000), 2, 1).unwrap();
    w.sample(At::ms(1), 3, 1).unwrap();
    w.sample(At::ns(i64::MAX), 4, 1).unwrap();
    let file = w.finish().unwrap();
    let day = 24 * 3600 * 1_000_000_000 + 1_000;
    assert_eq!(
        read_samples(&file),
        [(0, 1), (0, 2), (1_000_000, 3), (day, 4)]
    );
    let mut reader = Reader::new(file, Default::default()).unwrap();
    while reader.next_record().unwrap().is_some() {}
    assert_eq!(reader.diagnostics().clamped_times, 3);
}

#[test]
fn headers_and_extended_items_round_trip() {
    let mut w = EtlWriter::new(Vec::new(), Options::default()).unwrap();
    let at = At::ms(3).pid(10).tid(11);
    w.process(
        at,
        Op::Start,
        &Process {
            pid: 12,
            image: "a.exe",
            ..Default::default()
        },
    )
    .unwrap();
    w.compact(at, 5, 50, 2, &[7; 8]).unwrap();
    let activity = guid(1, 2, 3, 4);
    let narrow = [
        9u64.to_le_bytes().as_slice(),
        &0x11u32.to_le_bytes(),
        &0x22u32.to_le_bytes(),
    ]
    .concat();
    let key = [0u64.to_le_bytes(), 0xabcdu64.to_le_bytes()].concat();
    let event = Event {
        provider: CLR_RUNTIME,
        id: 143,
        version: 2,
        channel: 1,
        level: 4,
        opcode: 37,
        task: 9,
        keyword: 0x30,
        activity,
        narrow: true,
        extended: &[
            (1, &activity),
            (5, &narrow),
            (0x12, &key),
            (0x99, &[1, 2, 3]),
            (6, &[0; 7]),
        ],
        payload: &[1, 2, 3, 4, 5],
    };
    w.event(at, &event).unwrap();
    w.clr(at, CLR_RUNTIME, 82, 0, &[], &[0x10, 0x20]).unwrap();
    let mut reader = Reader::new(w.finish().unwrap(), Default::default()).unwrap();

    assert_eq!(
        reader.next_record().unwrap().unwrap().kind,
        RecordKind::System
    );
    let record = reader.next_record().unwrap().unwrap();
    let process = Guid::from_u128(0x3d6fa8d0_fe05_11d0_9dda_00c04fd7ba7c);
    assert_eq!(
        record.key,
        EventKey::Classic {
            class: process,
            opcode: 1,
            version: 4
        }
    );
    assert_eq!((record.process_id, record.thread_id), (Some(10), Some(11)));
    let record = reader.next_record().unwrap().unwrap();
    assert_eq!(
        (record.kind, record.payload),
        (RecordKind::Compact, [7; 8].as_slice())
    );

    let record = reader.next_record().unwrap().unwrap();
    assert_eq!(
        record.key,
        EventKey::Manifest {
            provider: Guid(CLR_RUNTIME),
            id: 143,
            version: 2,
            opcode: 37,
            level: 4,
            task: 9,
            keyword: 0x30,
            channel: 1
        }
    );
    assert_eq!(record.pointer_size, PointerSize::Four);
    assert_eq!(record.payload, [1, 2, 3, 4, 5]);
    let items: Vec<_> = record.extended_items().collect();
    assert_eq!(items.len(), 5);
    assert!(matches!(items[0], ExtendedItem::Other(1, data) if *data == activity));
    let ExtendedItem::Stack(stack) = items[1] else {
        panic!("{:?}", items[1])
    };
    assert_eq!(
        (stack.match_id, stack.addresses.iter().collect::<Vec<_>>()),
        (9, vec![0x11, 0x22])
    );
    assert!(matches!(items[2], ExtendedItem::StackKey(k) if k.key == 0xabcd && k.match_id == 0));
    assert!(matches!(items[3], ExtendedItem::Other(0x99, [1, 2, 3])));
    // Too short for a stack.
    assert!(matches!(items[4], ExtendedItem::Other(6, data) if data.len() == 7));

    let record = reader.next_record().unwrap().unwrap();
    let Some(ExtendedItem::Stack(stack)) = record.extended_items().next() else {
        panic!()
    };
    assert_eq!(
        (stack.addresses.len(), stack.addresses.iter().next_back()),
        (2, Some(0x20))
    );
    assert!(record.payload.is_empty());
    assert!(reader.next_record().unwrap().is_none());
}
