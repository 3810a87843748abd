//! Recordings that are truncated, damaged, out of order, or hostile.

use std::io::{self, Cursor, Read};

use chronosym_perf::{CpuMode, Diagnostics, Error, Event, GapCause, Options, Reader, Record};
use chronosym_support::perf::{PerfAttr, PerfWriter};

/// The key of a record, after all of its fields were read.
type Key = (u32, Option<u64>, Option<u32>, u64);

fn key(record: &Record<'_>) -> Key {
    let sum = match record.event {
        Event::Sample(sample) => {
            let chain = sample.callchain.iter().flat_map(|chain| chain.parts());
            let addresses = chain.flat_map(|part| part.addresses.iter());
            addresses.fold(sample.ip.unwrap_or(0), u64::wrapping_add)
        }
        Event::Mmap(mmap) => mmap.address ^ mmap.name.len() as u64,
        Event::Comm(comm) => comm.name.len() as u64,
        Event::Lost { records, .. } => records,
        Event::Other(bytes) => bytes.len() as u64,
        _ => 0,
    };
    (record.kind, record.time_ns, record.pid, sum)
}

/// Returns every record, and the diagnostics.
fn read_with(bytes: &[u8], options: Options) -> Result<(Vec<Key>, Diagnostics), Error> {
    let mut reader = Reader::new(bytes, options)?;
    let mut records = Vec::new();
    while let Some(record) = reader.next_record()? {
        records.push(key(&record));
    }
    Ok((records, reader.diagnostics().clone()))
}

fn read(bytes: &[u8]) -> Result<(Vec<Key>, Diagnostics), Error> {
    read_with(bytes, Options::default())
}

fn count<R: Read>(reader: &mut Reader<R>) -> usize {
    std::iter::from_fn(|| reader.next_record().expect("it does not fail").map(drop)).count()
}

/// Times of samples as they were delivered.
fn times(bytes: &[u8], options: Options) -> (Vec<u64>, Diagnostics) {
    let mut reader = Reader::new(bytes, options).expect("it is a recording");
    let mut times = Vec::new();
    while let Some(record) = reader.next_record().expect("a slice does not fail") {
        times.extend(record.time_ns);
    }
    (times, reader.diagnostics().clone())
}

/// Two processors, two rounds, records of most kinds.
fn recording() -> PerfWriter {
    let mut writer = PerfWriter::new(PerfAttr::default());
    let string = |text: &str| [&64u32.to_le_bytes()[..], text.as_bytes(), &[0; 60]].concat();
    writer.feature(4, string("host"));
    writer.feature(6, string("arch"));
    writer.comm(0, 7, 7, "before");
    for round in 0..2u64 {
        for cpu in 0..2u64 {
            let time = 100 * (round + 1) + cpu;
            writer.mmap2(time, 7, 0x1000 * (time + 1), 0x1000, 0, "/lib/some.so");
            writer.fork(time + 10, 7, 7, 8);
            writer.sample(time + 20, 7, 8, &[0x10, 0x20, 0x30]);
            let body = writer.body().u64(1).u64(2);
            writer.kernel_record(2, 0, body, time + 30, 7);
            let body = writer.body().u64(0).u32(1).u32(0).name("[bpf]");
            writer.kernel_record(17, 0, body, time + 40, 7);
            writer.exit(time + 50, 7, 8);
        }
        writer.round();
    }
    writer
}

fn forms() -> [Vec<u8>; 5] {
    let writer = recording();
    let packed = writer.compressed(300);
    [
        writer.file(),
        writer.pipe(),
        packed.file(),
        packed.pipe(),
        writer.big_endian().pipe(),
    ]
}

#[test]
fn a_cut_recording_is_read_as_far_as_it_goes() {
    for (form, bytes) in forms().into_iter().enumerate() {
        let Ok((whole, _)) = read(&bytes) else {
            panic!("form {form}")
        };
        let mut most = 0;
        for end in 0..=bytes.len() {
            let Ok((records, diagnostics)) = read(&bytes[..end]) else {
                assert_eq!(most, 0, "form {form}, {end} bytes");
                continue;
            };
            assert!(records.len() >= most, "form {form}, {end} bytes");
            most = records.len();
            assert_eq!(diagnostics.bytes_read, end as u64);
            // The remaining records are right. The order may differ: a mark may be missing.
            assert!(
                records.iter().all(|record| whole.contains(record)),
                "form {form}, {end} bytes"
            );
            if let Some(cut) = diagnostics.gaps.listed().first() {
                assert_eq!(cut.end(), end as u64);
            }
        }
        assert_eq!(most, whole.len());
    }
}

/// A recording of several MB with a description in the middle; its twentieth round has as many
/// samples of each processor as stated.
fn large(samples: u64) -> PerfWriter {
    let chain: Vec<u64> = (1..=250).map(|frame| frame << 12).collect();
    let mut writer = PerfWriter::new(PerfAttr::default());
    for round in 0..30_u64 {
        let samples = if round == 20 { samples } else { 50 };
        for cpu in 0..2_u64 {
            for sample in 0..samples {
                let time = 1_000_000 * round + 100 * sample + cpu + 1;
                writer.sample(time, 7, 8 + cpu as u32, &chain);
            }
            writer.lost(1_000_000 * round + 900_000 + cpu, 7, 1, cpu);
        }
        writer.round();
        if round == 25 {
            writer.name_events(&["renamed"]);
        }
    }
    writer
}

fn same_ahead(bytes: &[u8], options: Options) {
    let read = |ahead| {
        let mut reader = Reader::new(Cursor::new(bytes.to_vec()), options).expect("a recording");
        if ahead {
            reader.read_ahead();
        }
        let mut records = Vec::new();
        while reader.has_next().expect("a slice does not fail") {
            let name = reader.attrs()[0].name.clone();
            let record = reader.next_record().expect("as above");
            records.push((record.as_ref().map(key), name));
        }
        (records, reader.diagnostics().clone())
    };
    let ((ahead, counted), (records, diagnostics)) = (read(true), read(false));
    assert!(ahead == records, "{} of {}", ahead.len(), records.len());
    assert_eq!(counted, diagnostics);
}

/// Whole, cut off and damaged, in each form, and with a round that is too large to be gathered
/// ahead.
#[test]
fn reading_ahead_changes_nothing() {
    let writer = large(50);
    let packed = writer.compressed(60_000).pipe();
    for whole in [writer.file(), writer.pipe(), packed] {
        let mut damaged = whole.clone();
        for part in [whole.len() / 4, whole.len() * 4 / 5] {
            damaged[part..part + 9_000].fill(0xff);
        }
        same_ahead(&whole[..whole.len() - 100_004], Options::default());
        same_ahead(&damaged, Options::default().with_round_limit(1 << 18));
        same_ahead(&whole, Options::default());
    }
    same_ahead(&large(4_200).pipe(), Options::default());
}

#[test]
fn a_reader_that_is_dropped_early_ends_its_thread() {
    let mut reader = Reader::new(Cursor::new(large(50).pipe()), Options::default()).expect("one");
    reader.read_ahead();
    for _ in 0..2_500 {
        assert!(
            reader
                .next_record()
                .expect("a slice does not fail")
                .is_some()
        );
    }
}

#[test]
fn any_byte_may_be_wrong() {
    // Of compressed forms the one without a header suffices.
    let [file, pipe, _, packed, big] = forms();
    for bytes in [file, pipe, packed, big] {
        let size = bytes.len();
        for at in 0..size {
            for flip in [0x01, 0xf0] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                let options = Options::default().with_round_limit(1 << 12);
                if let Ok((records, diagnostics)) = read_with(&damaged, options) {
                    assert!(records.len() as u64 <= diagnostics.records);
                    assert!(diagnostics.bytes_read <= size as u64);
                }
                if let Ok(mut reader) = Reader::open(Cursor::new(&damaged), options) {
                    while let Ok(Some(_)) = reader.next_record() {}
                }
            }
        }
    }
}

#[test]
fn rounds_put_records_in_order() {
    let mut writer = PerfWriter::new(PerfAttr::default());
    // Each processor in order; the second round has a record that is older than the last of the
    // first.
    for round in [&[10, 30, 20, 40][..], &[35, 50, 45], &[47, 60]] {
        for &time in round {
            writer.sample(time, 1, 1, &[1]);
        }
        writer.round();
    }
    for form in [writer.file(), writer.compressed(100).file()] {
        let (times, diagnostics) = times(&form, Options::default());
        assert_eq!(times, [10, 20, 30, 35, 40, 45, 47, 50, 60]);
        assert!(diagnostics.is_clean(), "{diagnostics:?}");
    }
}

/// Each thread of `perf record --threads -z` writes a stream of its own.
#[test]
fn compressed_streams_follow_each_other() {
    let thread = |tid: u32| {
        let mut writer = PerfWriter::new(PerfAttr::default());
        for at in 0..300_u64 {
            writer.sample(10 * at + u64::from(tid), 1, tid, &[0x1000 + at]);
        }
        writer.compressed(500)
    };
    let size = thread(1).records().len();
    let joined = |cut: usize| {
        let mut whole = PerfWriter::new(PerfAttr::default());
        whole.raw(&thread(1).records()[..size - cut]);
        whole.raw(thread(2).records());
        whole.raw(thread(3).records());
        times(&whole.file(), Options::default())
    };
    let (found, diagnostics) = joined(0);
    assert!(diagnostics.is_clean(), "{diagnostics:?}");
    let expected = (0..300).flat_map(|at| (1..=3).map(move |tid| 10 * at + tid));
    assert_eq!(found, expected.collect::<Vec<_>>());
    // Without the last record, a block and a record of the first stream are incomplete.
    let last = (size - 8) % 508 + 8;
    let (found, diagnostics) = joined(last);
    assert!(!diagnostics.is_clean());
    let counts = [1, 2, 3].map(|tid| found.iter().filter(|&time| time % 10 == tid).count());
    assert!((200..300).contains(&counts[0]), "{counts:?}");
    assert_eq!(counts[1..], [300, 300]);
}

#[test]
fn rounds_of_compressed_records_end_where_the_recorder_ended_them() {
    let mut writer = PerfWriter::new(PerfAttr::default());
    for round in 0..200u64 {
        for cpu in 0..2 {
            for index in 0..10 {
                // The second processor's records reach into the time of the next round.
                writer.sample(1 + round * 20 + 2 * index + 11 * cpu, 1, 1, &[1]);
            }
        }
        writer.round();
    }
    let options = Options::default().with_round_limit(16 << 10);
    for form in [
        writer.file(),
        writer.compressed(500).file(),
        writer.compressed(500).pipe(),
    ] {
        let (times, diagnostics) = times(&form, options);
        assert_eq!(times.len(), 4_000);
        assert!(times.is_sorted());
        // It took the rounds to hold no more than the limit.
        assert!(diagnostics.is_clean(), "{diagnostics:?}");
        assert_eq!(diagnostics.rounds, 200);
    }
}

#[test]
fn samples_follow_records_of_equal_time_and_untimed_records_keep_their_position() {
    let attr = PerfAttr {
        flags: 0,
        ..PerfAttr::default()
    };
    let mut writer = PerfWriter::new(attr);
    writer.sample(10, 1, 1, &[1]);
    writer.comm(0, 1, 1, "behind 10");
    writer.sample(30, 1, 1, &[1]);
    writer.sample(20, 1, 1, &[1]);
    writer.comm(0, 1, 1, "behind 20");
    writer.fork(30, 1, 1, 2);
    let mut reader = Reader::new(Cursor::new(writer.file()), Options::default()).expect("fine");
    let mut seen = Vec::new();
    while let Some(record) = reader.next_record().expect("a slice does not fail") {
        seen.push((record.kind, record.time_ns));
    }
    let comm = (3, None);
    let sample = |time| (9, Some(time));
    let expected = [
        comm,
        sample(10),
        comm,
        sample(20),
        (7, Some(30)),
        sample(30),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn a_round_without_end_takes_no_more_than_its_limit() {
    let mut writer = PerfWriter::new(PerfAttr::default());
    for index in 0..10_000u64 {
        // Two processors, one of them 5 ns late.
        writer.sample(100 + index - 5 * (index % 2), 1, 1, &[1]);
    }
    writer.sample(50, 1, 1, &[1]);
    for form in [writer.file(), writer.compressed(60_000).pipe()] {
        let limit = 1 << 14;
        let (times, diagnostics) = times(&form, Options::default().with_round_limit(limit));
        assert_eq!(times.len(), 10_001);
        // The last record comes too late; the others do not.
        assert!(times.iter().filter(|&&time| time != 50).is_sorted());
        assert!(times[0] > 50 && times.contains(&50));
        assert!(diagnostics.forced_rounds > 10);
        assert_eq!(diagnostics.late_records, 1);
        let most = allocation_counter::measure(|| {
            let options = Options::default().with_round_limit(limit);
            let mut reader = Reader::new(form.as_slice(), options).expect("it is a recording");
            while let Ok(Some(_)) = reader.next_record() {}
        });
        assert!(most.bytes_max < 1 << 20, "{most:?}");
    }
}

#[test]
fn samples_allocate_nothing() {
    let cost = |samples: u64| {
        let mut writer = PerfWriter::new(PerfAttr::default());
        for index in 0..samples {
            writer.sample(100 + index, 1, 1, &[1, 2, 3]);
            if index % 100 == 0 {
                writer.round();
            }
        }
        let bytes = writer.file();
        let info = allocation_counter::measure(|| {
            let mut reader = Reader::new(bytes.as_slice(), Options::default()).expect("fine");
            while let Ok(Some(_)) = reader.next_record() {}
        });
        (info.count_total, info.bytes_max)
    };
    let (few, few_bytes) = cost(1_000);
    let (many, many_bytes) = cost(50_000);
    // Each round allocates scratch memory for sorting, lists of its records and notes, and the owner
    // of its bytes; nothing else grows.
    assert!(many < few + 5 * 500, "{few} allocations became {many}");
    assert!(
        many_bytes < few_bytes * 2,
        "{few_bytes} bytes became {many_bytes}"
    );
}

#[test]
fn wrong_sizes_cost_only_their_record() {
    const CALLCHAIN: u64 = 1 << 5;
    let attr = PerfAttr {
        sample_type: 1 | CALLCHAIN,
        ..PerfAttr::default()
    };
    let mut writer = PerfWriter::new(attr);
    let body = writer.body().u64(0x55).u64(u64::MAX / 4);
    writer.record(9, 2, body);
    let body = writer.body().u32(1).u32(2);
    writer.record(10, 2, body);
    let body = writer.body().u64(0x66).u64(0);
    writer.record(9, 2, body);
    let mut reader = Reader::new(Cursor::new(writer.file()), Options::default()).expect("fine");
    let mut addresses = Vec::new();
    let mut others = 0;
    while let Some(record) = reader.next_record().expect("a slice does not fail") {
        match record.event {
            Event::Sample(sample) => addresses.push((sample.ip, sample.callchain.is_some())),
            Event::Other(_) => others += 1,
            event => panic!("{event:?}"),
        }
    }
    assert_eq!(addresses, [(Some(0x55), false), (Some(0x66), true)]);
    assert_eq!((others, reader.diagnostics().bad_records), (1, 2));
}

#[test]
fn records_are_found_again_after_invalid_bytes() {
    const DATA: usize = 0xff00;
    let whole = recording();
    let before = read(&whole.file()).expect("fine").0.len();
    // No size; one beyond the end; zeros; text; a record of no type, whose size leads astray.
    let none: [&[u8]; 5] = [
        &[9, 0, 0, 0, 0, 0, 0, 0],
        &[9, 0, 0, 0, 0, 0, 0xf8, 0xff],
        &[0; 4096],
        &[b'x'; DATA],
        &[0xff, 0xff, 0, 0, 0, 0, 9, 0],
    ];
    for none in none {
        let mut writer = recording();
        writer.raw(none);
        for index in 0..3 {
            writer.sample(1_000 + index, 1, 1, &[1]);
        }
        for form in [writer.file(), writer.pipe()] {
            let (records, diagnostics) = read(&form).expect("fine");
            assert_eq!(records.len(), before + 3, "{:?}", none.get(..8));
            let gaps = diagnostics.gaps.listed();
            assert_eq!(gaps.len(), 1);
            assert_eq!(
                (gaps[0].length, gaps[0].cause),
                (none.len() as u64, GapCause::BadRecord)
            );
            assert_eq!(&form[gaps[0].offset as usize..][..none.len()], none);
        }
    }
    // Bytes that only look like records have implausible times.
    let mut writer = recording();
    writer.raw(&[0xff; 8]);
    for index in 0..4 {
        writer.sample(1 << 60 | index, 1, 1, &[1]);
    }
    let (records, diagnostics) = read(&writer.file()).expect("fine");
    assert_eq!(records.len(), before);
    assert!(diagnostics.gaps.is_cut_short());
}

#[test]
fn compressed_records_end_with_one_without_size() {
    let mut writer = recording();
    let before = read(&writer.file()).expect("fine").0.len();
    writer.raw(&[9, 0, 0, 0, 0, 0, 0, 0]);
    writer.sample(1_000, 1, 1, &[1]);
    for form in [
        writer.compressed(5_000).pipe(),
        writer.compressed(5_000).file(),
    ] {
        let mut reader = Reader::open(Cursor::new(form), Options::default()).expect("fine");
        assert_eq!(count(&mut reader), before);
        assert!(!reader.diagnostics().is_clean());
        // The data after the records is read nevertheless.
        assert_eq!(reader.info().os_release.as_deref(), Some("host"));
    }
}

#[test]
fn hardware_traces_are_stepped_over() {
    let mut writer = PerfWriter::new(PerfAttr::default());
    let body = writer
        .body()
        .words(&[1_000_000, 0, 0])
        .u32(0)
        .u32(0)
        .u32(0)
        .u32(0);
    writer.record(71, 0, body);
    writer.raw(&vec![0xff; 1_000_000]);
    let body = writer.body().u32(13);
    writer.record(66, 0, body);
    writer.raw(&[0xff; 16]);
    writer.sample(5, 1, 1, &[1]);
    let (records, diagnostics) = read(&writer.pipe()).expect("fine");
    assert_eq!((records.len(), diagnostics.skipped_bytes), (1, 1_000_016));
    assert!(diagnostics.is_clean(), "{diagnostics:?}");
    // A size beyond the end.
    let body = writer.body().words(&[u64::MAX, 0, 0, 0, 0]);
    writer.record(71, 0, body);
    let (records, diagnostics) = read(&writer.file()).expect("fine");
    assert_eq!(records.len(), 1);
    assert!(diagnostics.gaps.is_cut_short());
}

#[test]
fn compressed_bytes_that_make_no_sense_cost_themselves() {
    let mut writer = recording();
    let whole = read(&writer.file()).expect("fine").0.len();
    let mut packed = writer.compressed(300);
    let body = packed.body().raw(&[0xff; 40]);
    packed.record(81, 0, body);
    packed.sample(1_000, 1, 1, &[1]);
    let (records, diagnostics) = read(&packed.file()).expect("fine");
    assert_eq!(records.len(), whole + 1);
    assert_eq!(diagnostics.bad_compressed_bytes, 40);
    // Endless output from little input: runs of one byte, 128 KiB each, that decode as one record
    // after another.
    let record = [9u8; 8];
    writer.record(
        81,
        0,
        chronosym_support::perf::Bytes::default().raw(&[0x28, 0xb5, 0x2f, 0xfd, 0, 0x38]),
    );
    let runs: Vec<u8> = (0..16_000).flat_map(|_| [2, 0, 0x10, record[0]]).collect();
    for _ in 0..20 {
        writer.record(81, 0, chronosym_support::perf::Bytes::default().raw(&runs));
    }
    let (_, diagnostics) = read(&writer.file()).expect("fine");
    assert!(diagnostics.bad_compressed_bytes > 0);
}

#[test]
fn a_killed_recorder_leaves_its_records() {
    let writer = recording();
    let mut file = writer.file();
    // According to the header there are no records; the features are missing.
    file[48..56].fill(0);
    let records = u64::from_le_bytes(file[40..48].try_into().expect("eight")) as usize;
    file.truncate(records + writer.written());
    let whole = read(&writer.file()).expect("fine").0;
    let mut reader = Reader::open(Cursor::new(&file), Options::default()).expect("fine");
    let count = count(&mut reader);
    assert_eq!(count, whole.len());
    let diagnostics = reader.diagnostics();
    assert!(
        diagnostics.unfinished && diagnostics.gaps.is_empty(),
        "{diagnostics:?}"
    );
    assert_eq!(diagnostics.bad_sections, 0);
}

#[test]
fn attributes_after_the_records_need_a_seekable_source() {
    let writer = recording();
    let mut file = writer.file();
    // Move the attribute from before the records to the end.
    let attr = u64::from_le_bytes(file[24..32].try_into().expect("eight")) as usize;
    let moved = file[attr..attr + 136].to_vec();
    let end = file.len() as u64;
    file[attr..attr + 136].fill(0xee);
    file.extend(moved);
    file[24..32].copy_from_slice(&end.to_le_bytes());
    assert!(matches!(read(&file), Err(Error::AttrsAfterData)));
    let mut reader = Reader::open(Cursor::new(&file), Options::default()).expect("fine");
    let count = count(&mut reader);
    assert_eq!(count, read(&writer.file()).expect("fine").0.len());
    assert!(
        reader.diagnostics().bad_sections == 0,
        "{:?}",
        reader.diagnostics()
    );
}

#[test]
fn files_that_are_not_recordings_are_identified() {
    let found = |bytes: &[u8]| read(bytes).expect_err("no recording").to_string();
    assert!(found(b"").contains("empty"));
    assert!(found(b"\x7fELF............").contains("\\x7fELF"));
    assert!(matches!(
        read(b"SIMPLEPERF\x01\0......"),
        Err(Error::SimpleperfReport)
    ));
    assert!(matches!(
        read(&recording().file()[..60]),
        Err(Error::DamagedHeader { .. })
    ));
}

#[test]
fn recordings_of_simpleperf_are_read() {
    let mut writer = recording();
    writer.feature(128, vec![0; 8]);
    // A record of its own, which no kernel writes.
    let body = writer.body().u64(1);
    writer.record(32_769, 0, body);
    let mut reader = Reader::open(Cursor::new(writer.file()), Options::default()).expect("fine");
    while let Some(record) = reader.next_record().expect("a slice does not fail") {
        assert!(record.kind < 64);
    }
    assert!(reader.diagnostics().gaps.is_empty());
}

#[test]
fn the_first_version_of_the_format_is_read() {
    for writer in [recording(), recording().big_endian()] {
        let expected = read(&writer.file()).map(|read| read.0.len());
        let mut file = writer.file();
        file[..8].copy_from_slice(b"PERFFILE");
        assert_eq!(read(&file).map(|read| read.0.len()).ok(), expected.ok());
    }
}

#[test]
fn a_failing_source_yields_the_data_before() {
    struct Failing(Cursor<Vec<u8>>);
    impl Read for Failing {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let most = buffer.len().min(100);
            match self.0.read(&mut buffer[..most])? {
                0 => Err(io::Error::other("gone")),
                count => Ok(count),
            }
        }
    }
    for (writer, expected) in [(recording(), 4), (large(50), 3_000)] {
        let source = Failing(Cursor::new(writer.pipe()));
        let mut reader = Reader::new(source, Options::default()).expect("fine");
        reader.read_ahead();
        let mut samples = 0;
        let error = loop {
            match reader.next_record() {
                Ok(Some(record)) => samples += u64::from(matches!(record.event, Event::Sample(_))),
                Ok(None) => panic!("the source failed"),
                Err(error) => break error,
            }
        };
        assert_eq!(samples, expected);
        assert!(matches!(error, Error::Io { .. }));
    }
}

#[test]
fn losses_are_counted() {
    let mut writer = recording();
    let body = writer.body().u64(5);
    writer.kernel_record(13, 0, body, 900, 1);
    let body = writer.body().u64(5);
    writer.kernel_record(13, 1 << 15, body, 901, 1);
    let body = writer.body().words(&[902, 1, 1]);
    writer.kernel_record(5, 0, body, 902, 1);
    let body = writer.body().u32(1).u32(1).words(&[1, 1, 1]).name("x");
    writer.kernel_record(1, 1 | 1 << 12, body, 903, 1);
    let (_, diagnostics) = read(&writer.file()).expect("fine");
    assert_eq!((diagnostics.lost_records, diagnostics.lost_samples), (8, 5));
    assert_eq!((diagnostics.throttles, diagnostics.cut_maps), (1, 1));
    assert_eq!(CpuMode::default(), CpuMode::Unknown);
}

#[test]
fn times_of_unreadable_parts_end_with_the_round_after_them() {
    let mut writer = PerfWriter::new(PerfAttr::default());
    let mut at = 0;
    for round in 1..=5 {
        writer.comm(round * 100, 10, 10, "app");
        if round == 3 {
            at = writer.written();
        }
        writer.comm(round * 100 + 50, 10, 10, "app");
        writer.round();
    }
    let mut bytes = writer.file();
    let start = bytes.len() - writer.written() + at;
    let (_, whole) = read(&bytes).expect("a recording");
    assert_eq!(whole.missing_times, []);
    bytes[start..start + 8].fill(0);
    // The records of the first round were delivered, and the fourth one follows.
    let (_, damaged) = read(&bytes).expect("a recording");
    let times = damaged.missing_times.iter().map(|it| (it.start, it.end));
    assert_eq!(times.collect::<Vec<_>>(), [(149, 450)]);
}
