//! Damaged traces: readable parts are read, the rest is counted, nothing panics.

mod common;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use chronosym_etl::{Diagnostics, Error, Gap, GapCause, ReadAt, Reader};
use chronosym_support::etl::{At, CLR_RUNTIME, EtlWriter, Options, Stack, buffers};
use proptest::prelude::*;

use common::writers;

/// A small trace with every kind of record that matters.
fn trace(compress: bool) -> Vec<u8> {
    trace_of(60, compress)
}

fn trace_of(rounds: i64, compress: bool) -> Vec<u8> {
    let options = Options {
        compress,
        cpus: 2,
        buffer_size: 1024,
        ..Options::default()
    };
    let mut w = EtlWriter::new(Vec::new(), options).unwrap();
    for i in 0..rounds {
        let at = At::us(i).cpu((i % 2) as u16).pid(1).tid(2);
        w.sample(at, i as u64, 2).unwrap();
        w.stack(
            at,
            &Stack {
                event: at,
                pid: 1,
                tid: 2,
                addresses: &[1, 2, 3],
            },
        )
        .unwrap();
        w.thread(at, chronosym_support::etl::Op::Start, 1, 2)
            .unwrap();
        w.clr(at, CLR_RUNTIME, 82, 0, &[1; 20], &[4, 5]).unwrap();
    }
    w.finish().unwrap()
}

/// Reads everything: raw times in the order of reading, and the diagnostics.
fn read(file: &[u8]) -> (Vec<i64>, Diagnostics) {
    let mut reader = Reader::new(file, Default::default()).unwrap();
    let mut times = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        // Calls every accessor.
        for item in record.extended_items() {
            std::hint::black_box(format!("{item:?}"));
        }
        times.push(record.raw_time);
    }
    (times, reader.diagnostics().clone())
}

#[test]
fn every_truncated_file_is_read_up_to_its_end() {
    for compress in [false, true] {
        let file = trace_of(12, compress);
        let (whole, _) = read(&file);
        let mut edges = vec![0];
        for part in buffers(&file) {
            edges.push(edges.last().unwrap() + part.len());
        }
        for cut in edges[1]..file.len() {
            let (times, found) = read(&file[..cut]);
            let edge = edges.iter().rev().find(|edge| **edge <= cut).unwrap();
            let (at_edge, counted) = read(&file[..*edge]);
            assert!(!counted.is_damaged());
            assert!(times.is_sorted());
            assert!(
                (at_edge.len()..=whole.len()).contains(&times.len()),
                "cut at {cut}"
            );
            // Less than a header identifies no buffer; it is counted as bytes, unless they are
            // zeros.
            let rest = &file[*edge..cut];
            let header = rest.len() >= 72;
            let is_cut = header || rest.iter().any(|b| *b != 0);
            assert_eq!(found.gaps.is_cut_short(), is_cut, "cut at {cut}");
            assert_eq!(found.gaps.total().count, u64::from(is_cut), "cut at {cut}");
            if let [gap] = found.gaps.listed() {
                assert_eq!(gap.end(), cut as u64);
                assert!(gap.offset >= *edge as u64, "cut at {cut}: {gap:?}");
            }
        }
    }
}

#[test]
fn a_damaged_buffer_loses_only_its_own_rest() {
    let file = trace(false);
    let (whole, _) = read(&file);
    let parts = buffers(&file);
    // The second record of the fourth buffer becomes garbage.
    let mut damaged: Vec<Vec<u8>> = parts.iter().map(|p| p.to_vec()).collect();
    let size_at = if damaged[3][74] == 0x13 { 72 } else { 76 };
    let size = u16::from_le_bytes([damaged[3][size_at], damaged[3][size_at + 1]]);
    let second = 72 + usize::from(size).next_multiple_of(8);
    damaged[3][second + 3] = 0x11;
    let (times, found) = read(&damaged.concat());
    let begin = |buffer: usize| parts[..buffer].iter().map(|p| p.len() as u64).sum::<u64>();
    let [gap] = found.gaps.listed() else {
        panic!("{:?}", found.gaps);
    };
    assert_eq!(
        (gap.offset, gap.cause),
        (begin(3) + second as u64, GapCause::BadRecord)
    );
    assert!(whole.len() - 30 < times.len() && times.len() < whole.len());

    // The header of the fourth buffer becomes garbage: in a log of equal buffers the next one is
    // found.
    let mut damaged: Vec<Vec<u8>> = parts.iter().map(|p| p.to_vec()).collect();
    damaged[3][..4].copy_from_slice(&[3, 0, 0, 0]);
    let (times, found) = read(&damaged.concat());
    let fourth = Gap::new(begin(3), 1024, GapCause::NoBlock);
    assert_eq!(found.gaps.listed(), [fourth]);
    assert_eq!(found.buffers, parts.len() as u64 - 1);
    assert!(whole.len() - 30 < times.len() && times.len() < whole.len());

    // A zeroed one too; zeros at the end are the unused part of a preallocated file.
    let mut damaged: Vec<Vec<u8>> = parts.iter().map(|p| p.to_vec()).collect();
    damaged[3].fill(0);
    let (times, found) = read(&damaged.concat());
    assert_eq!(found.gaps.listed(), [fourth]);
    assert_eq!(found.buffers, parts.len() as u64 - 1);
    assert!(whole.len() - 30 < times.len() && times.len() < whole.len());
    let mut preallocated = file.clone();
    preallocated.resize(file.len() + 10_000, 0);
    let (times, found) = read(&preallocated);
    assert!(times == whole && !found.is_damaged());
    // Data after such zeros is counted as damage.
    for (garbage, cause) in [(72, GapCause::NoBlock), (71, GapCause::CutShort)] {
        let mut damaged = file.clone();
        damaged.resize(file.len() + garbage, 0xff);
        let gap = Gap::new(file.len() as u64, garbage as u64, cause);
        assert_eq!(read(&damaged).1.gaps.listed(), [gap]);
    }
    preallocated.resize(file.len() + 11_000, 0xff);
    let (times, found) = read(&preallocated);
    assert!(times == whole && found.is_damaged());

    // Compressed buffers have no common size: the next one is looked for.
    let file = trace(true);
    let (whole, _) = read(&file);
    let parts: Vec<Vec<u8>> = buffers(&file).iter().map(|p| p.to_vec()).collect();
    for (garbage, whose) in [(3, 4), (0, 4), (0, parts[3].len()), (0xff, parts[3].len())] {
        let mut damaged = parts.clone();
        damaged[3][..whose].fill(garbage);
        let (times, found) = read(&damaged.concat());
        let begin = parts[..3].iter().map(|p| p.len() as u64).sum::<u64>();
        let fourth = Gap::new(begin, parts[3].len() as u64, GapCause::NoBlock);
        assert_eq!(found.gaps.listed(), [fourth], "{garbage} {whose}");
        assert_eq!(found.buffers, parts.len() as u64 - 1);
        assert!(whole.len() - 30 < times.len() && times.len() < whole.len());
    }
    // Nothing more is found: the rest is counted.
    let mut damaged = parts.clone();
    damaged[3..].iter_mut().for_each(|p| p.fill(0xff));
    let lost: usize = damaged[3..].iter().map(Vec::len).sum();
    let (_, found) = read(&damaged.concat());
    let rest = found.gaps.of(GapCause::NoBlock);
    assert_eq!((rest.count, rest.bytes), (1, lost as u64));
}

#[test]
fn a_buffer_that_claims_more_than_its_bytes_does_not_swallow_the_next_ones() {
    for compress in [false, true] {
        let file = trace(compress);
        let (whole, _) = read(&file);
        let parts: Vec<Vec<u8>> = buffers(&file).iter().map(|p| p.to_vec()).collect();
        let size = parts[3].len() as u32;
        // As many bytes as two more buffers have, some number of bytes, more than the file has.
        let two_more: usize = parts[3..6].iter().map(Vec::len).sum();
        let rest: usize = parts[3..].iter().map(Vec::len).sum();
        for claimed in [two_more as u32, size + 200, rest as u32 + 1, 1 << 20] {
            let mut damaged = parts.clone();
            damaged[3][..4].copy_from_slice(&claimed.to_le_bytes());
            let (times, found) = read(&damaged.concat());
            if compress && claimed == two_more as u32 {
                // The change cannot be detected; the buffer does not unpack beyond its own size.
                continue;
            }
            assert_eq!(times, whole, "{compress} {claimed}");
            assert!(found.gaps.is_empty(), "{:?}", found.gaps);
        }
    }
}

#[test]
fn buffers_may_be_of_any_size() {
    let file = trace(false);
    let (whole, _) = read(&file);
    // Each is cut to its valid bytes: less than the first one.
    let mut parts: Vec<Vec<u8>> = buffers(&file).iter().map(|p| p.to_vec()).collect();
    for part in &mut parts[1..] {
        part.copy_within(0x30..0x34, 0);
        part.truncate(usize::from(part[0]) | usize::from(part[1]) << 8);
    }
    let (times, found) = read(&parts.concat());
    assert!(times == whole && !found.is_damaged());
    // One claims to extend into the next one.
    let more = (parts[3].len() as u32 + 50).to_le_bytes();
    parts[3][..4].copy_from_slice(&more);
    parts[3][0x30..0x34].copy_from_slice(&more);
    let (times, found) = read(&parts.concat());
    assert!(times == whole && !found.is_damaged(), "{:?}", found.gaps);
    // The first one is the smallest.
    let valid = usize::from(file[0x30]) | usize::from(file[0x31]) << 8;
    let mut parts: Vec<Vec<u8>> = buffers(&file).iter().map(|p| p.to_vec()).collect();
    parts[0].copy_within(0x30..0x34, 0);
    parts[0].truncate(valid);
    let (times, found) = read(&parts.concat());
    assert!(times == whole && !found.is_damaged(), "{:?}", found.gaps);
}

#[test]
fn invalid_records_are_counted() {
    for mut w in writers() {
        w.flush(0).unwrap();
        w.sample(At::ms(1), 1, 1).unwrap();
        w.raw_record(0, &[16, 0, 0, 0x40, 1, 2, 3, 4]).unwrap();
        w.sample(At::ms(2), 1, 1).unwrap();
        let (times, found) = read(&w.finish().unwrap());
        assert_eq!(
            (times.len(), found.gaps.of(GapCause::BadRecord).count),
            (2, 1)
        );
    }
}

/// A file whose bytes from an offset on cannot be read.
struct Failing<'a>(&'a [u8], u64);

impl ReadAt for Failing<'_> {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> std::io::Result<usize> {
        match offset {
            offset if offset < self.1 => self.0.read_at(offset, buf),
            _ => Err(std::io::Error::other("bad sector")),
        }
    }

    fn size(&self) -> std::io::Result<u64> {
        self.0.size()
    }
}

#[test]
fn a_file_that_cannot_be_looked_through_ends_with_the_error() {
    let file = trace(false);
    let mut reader = Reader::new(Failing(&file, 4 * 1024), Default::default()).unwrap();
    let error = loop {
        match reader.next_record() {
            Ok(record) => assert!(record.is_some()),
            Err(error) => break error,
        }
    };
    let (offset, what) = io_error(&error);
    assert_eq!((offset, what.as_str()), (4 * 1024, "bad sector"));
    assert!(reader.next_record().unwrap().is_none());
    let found = reader.diagnostics();
    assert_eq!(found.records, read(&file[..4 * 1024]).1.records);
    let gap = Gap::new(4 * 1024, file.len() as u64 - 4 * 1024, GapCause::Unreadable);
    assert_eq!(found.gaps.listed(), [gap]);
}

fn io_error(error: &Error) -> (u64, String) {
    match error {
        Error::Io { offset, source } => (*offset, source.to_string()),
        error => panic!("{error}"),
    }
}

/// A source with a part that cannot be read once the headers have been.
struct Rotting(Vec<u8>, AtomicBool, Range<u64>);

impl ReadAt for Rotting {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> std::io::Result<usize> {
        if self.1.load(Relaxed) && self.2.contains(&offset) {
            return Err(std::io::Error::other("bad sector"));
        }
        self.0.read_at(offset, buf)
    }

    fn size(&self) -> std::io::Result<u64> {
        self.0.size()
    }
}

#[test]
fn a_buffer_that_cannot_be_read_is_an_error_and_the_next_one_is_read() {
    let file = trace(false);
    let (whole, _) = read(&file);
    for ahead in [false, true] {
        let source = Rotting(file.clone(), AtomicBool::new(false), 1024..1025);
        let source = Arc::new(source);
        let mut reader = Reader::new(Arc::clone(&source), Default::default()).unwrap();
        if ahead {
            reader.read_ahead();
        }
        source.1.store(true, Relaxed);
        let (mut times, mut errors) = (Vec::new(), Vec::new());
        loop {
            match reader.next_record() {
                Ok(Some(record)) => times.push(record.raw_time),
                Ok(None) => break,
                Err(error) => errors.push(io_error(&error)),
            }
        }
        assert_eq!(errors, [(1024, "bad sector".to_owned())]);
        assert!(!times.is_empty() && times.len() < whole.len());
        assert_eq!(times.last(), whole.last());
        let found = reader.diagnostics();
        assert_eq!(found.gaps.listed()[0].offset, 1024);
        assert!(!found.is_clean());
    }
}

/// Whole, cut off and damaged; from the start, and again from the middle.
#[test]
fn reading_ahead_changes_nothing() {
    for compress in [false, true] {
        let file = trace(compress);
        let mut damaged = file.clone();
        let middle = damaged.len() / 2;
        damaged[middle..middle + 300].fill(0xff);
        for file in [&file[..], &file[..middle + 100], &damaged[..]] {
            let (times, diagnostics) = read(file);
            let mut reader = Reader::new(file.to_vec(), Default::default()).unwrap();
            reader.read_ahead();
            for _ in 0..times.len() / 2 {
                reader.next_record().unwrap();
            }
            reader.rewind();
            let mut again = Vec::new();
            while let Some(record) = reader.next_record().unwrap() {
                again.push(record.raw_time);
            }
            assert_eq!((again, reader.diagnostics()), (times, &diagnostics));
        }
    }
}

#[test]
fn whatever_byte_of_a_header_is_damaged_the_other_buffers_are_read() {
    for compress in [false, true] {
        let file = trace(compress);
        let (whole, _) = read(&file);
        let mut edges = vec![0];
        for part in buffers(&file) {
            edges.push(edges.last().unwrap() + part.len());
        }
        let (before, _) = read(&file[..edges[3]]);
        let (with, _) = read(&file[..edges[4]]);
        let in_it = with.len() - before.len();
        let mut damaged = file.clone();
        for at in edges[3]..edges[3] + 72 {
            for change in [0x01, 0x40, 0x80, 0xff] {
                damaged[at] = file[at] ^ change;
                let (times, found) = read(&damaged);
                let what = format!("{compress}, byte {at} changed by {change:#x}: {found:?}");
                assert!(times.len() + in_it >= whole.len(), "{what}");
                assert!(times.len() <= whole.len() + in_it, "{what}");
            }
            damaged[at] = file[at];
        }
    }
}

#[test]
fn damaged_compression_is_counted() {
    let file = trace(true);
    let mut damaged: Vec<Vec<u8>> = buffers(&file).iter().map(|p| p.to_vec()).collect();
    let middle = damaged[2].len() / 2;
    damaged[2].truncate(middle);
    damaged[2][..4].copy_from_slice(&(middle as u32).to_le_bytes());
    let (times, found) = read(&damaged.concat());
    let begin = damaged[..2].iter().map(|p| p.len() as u64).sum();
    let third = Gap::new(begin, middle as u64, GapCause::BadCompression);
    assert_eq!(found.gaps.listed(), [third]);
    assert!(times.is_sorted() && !times.is_empty());
}

#[test]
fn files_that_are_not_traces_are_rejected() {
    let file = trace(false);
    let refused = |bytes: &[u8]| {
        Reader::new(bytes, Default::default())
            .err()
            .unwrap()
            .to_string()
    };
    assert_eq!(
        refused(&[]),
        "not an .etl trace: it does not begin with a buffer header"
    );
    assert_eq!(
        refused(b"Nettrace............"),
        "not an .etl trace: it does not begin with a buffer header"
    );
    assert_eq!(
        refused(&file[..100]),
        "not an .etl trace: its first record is no log file header"
    );
    let changed = |at: usize, bytes: &[u8]| {
        let mut file = file.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        file
    };
    // 72 bytes of buffer header, 32 of record header.
    assert_eq!(
        refused(&changed(104 + 6, &[1, 3])),
        "the trace has log layout 1.3; 1.4 (Windows Vista) is the oldest supported"
    );
    let vista = changed(104 + 6, &[1, 4]);
    assert_eq!(read(&vista), read(&file));
    let east = Reader::new(
        changed(104 + 56 + 16, &(-120_i32).to_le_bytes()),
        Default::default(),
    )
    .unwrap();
    assert_eq!(east.header().utc_bias_minutes, -120);
    assert!(matches!(
        Reader::new(changed(104 + 44, &[5]), Default::default()),
        Err(Error::BadHeader(_))
    ));
    assert!(matches!(
        Reader::new(changed(104 + 256, &[0; 8]), Default::default()),
        Err(Error::BadHeader(_))
    ));
}

#[test]
fn a_compression_bomb_is_refused_or_bounded() {
    // Two matches of 16 MiB each; the buffer header grants one.
    let mut bomb = Vec::new();
    bomb.extend_from_slice(&0x6000_0000u32.to_le_bytes());
    bomb.push(0);
    for _ in 0..2 {
        bomb.extend_from_slice(&[7, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 1]);
    }
    let mut buffer = vec![0; 72];
    buffer[0x30..0x34].copy_from_slice(&(16u32 << 20).to_le_bytes());
    buffer[0x34] = 0x40;
    buffer.extend_from_slice(&bomb);
    let size = buffer.len() as u32;
    buffer[..4].copy_from_slice(&size.to_le_bytes());
    let mut file = trace(true);
    let (whole, _) = read(&file);
    file.extend_from_slice(&buffer);
    let (times, found) = read(&file);
    assert_eq!((times, found.is_damaged()), (whole.clone(), false));
    // One byte more than any buffer holds.
    let at = file.len() - buffer.len() + 0x30;
    file[at..at + 4].copy_from_slice(&((16u32 << 20) + 1).to_le_bytes());
    let (times, found) = read(&file);
    assert_eq!((times, found.gaps.of(GapCause::NoBlock).count), (whole, 1));
}

#[test]
fn buffers_that_unpack_to_more_than_real_ones_are_left_out() {
    let mut bomb = vec![0; 72];
    bomb[0x30..0x34].copy_from_slice(&(16u32 << 20).to_le_bytes());
    bomb[0x34] = 0x40;
    bomb.extend_from_slice(&0x6000_0000u32.to_le_bytes());
    bomb.extend_from_slice(&[0, 7, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 1]);
    let size = bomb.len() as u32;
    bomb[..4].copy_from_slice(&size.to_le_bytes());
    let file = [trace(true), bomb.repeat(100)].concat();
    let reader = Reader::new(file.as_slice(), Default::default()).unwrap();
    let left_out = reader.diagnostics().gaps.of(GapCause::TooLarge);
    // 64 MiB are free.
    assert_eq!(left_out.bytes, 97 * u64::from(size));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn flipped_bytes_never_panic(
        compress: bool,
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..16),
    ) {
        let mut file = trace(compress);
        for (at, value) in &flips {
            let at = at.index(file.len());
            file[at] ^= value;
        }
        if Reader::new(file.as_slice(), Default::default()).is_ok() {
            let (times, found) = read(&file);
            prop_assert_eq!(times.len() as u64, found.records);
            prop_assert!(found.late_records > 0 || times.is_sorted());
        }
    }

    #[test]
    fn any_bytes_after_the_header_never_panic(tail in prop::collection::vec(any::<u8>(), 0..4000), compress: bool) {
        let file = trace(compress);
        let mut file = buffers(&file)[0].to_vec();
        // A header that fits the following bytes, so that the records themselves are examined.
        let mut header = vec![0; 72];
        header[..4].copy_from_slice(&(tail.len() as u32 + 72).to_le_bytes());
        header[0x30..0x34].copy_from_slice(&(tail.len() as u32 + 72).to_le_bytes());
        header[0x34] = if compress { 0x40 } else { 0 };
        file.extend(header);
        file.extend(tail);
        read(&file);
    }
}

/// A header buffer, then one and the same buffer many times.
struct Repeated {
    head: Vec<u8>,
    again: Vec<u8>,
    times: u64,
}

impl ReadAt for Repeated {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> std::io::Result<usize> {
        let (head, again) = (self.head.len() as u64, self.again.len() as u64);
        match offset.checked_sub(head) {
            None => self.head.read_at(offset, buf),
            Some(at) if at < again * self.times => self.again.read_at(at % again, buf),
            Some(_) => Ok(0),
        }
    }

    fn size(&self) -> std::io::Result<u64> {
        Ok(self.head.len() as u64 + self.again.len() as u64 * self.times)
    }
}

#[test]
fn simultaneous_buffers_are_open_only_up_to_a_limit() {
    const BUFFER: u32 = 16 << 20;
    let options = Options {
        buffer_size: BUFFER,
        ..Options::default()
    };
    let mut w = EtlWriter::new(Vec::new(), options).unwrap();
    w.flush(0).unwrap();
    const RECORDS: u64 = 250;
    for us in 0..RECORDS {
        w.system(At::us(us as i64), 4, 0, 2, &[0; 60_000]).unwrap();
    }
    let file = w.finish().unwrap();
    let [head, again] = buffers(&file)[..] else {
        panic!("two buffers");
    };
    // Buffers without a number of their own are not duplicates.
    let mut again = again.to_vec();
    again[0x18..0x20].fill(0);
    for (times, late) in [(8, false), (20, true)] {
        let source = Repeated {
            head: head.to_vec(),
            again: again.clone(),
            times,
        };
        let mut reader = Reader::new(source, Default::default()).unwrap();
        let mut count = 0;
        while reader.next_record().unwrap().is_some() {
            count += 1;
        }
        assert_eq!(count, 1 + RECORDS * times);
        assert_eq!(reader.diagnostics().late_records > 0, late, "{times}");
    }
}

#[test]
fn repeated_buffers_are_left_out_and_counted() {
    for compress in [false, true] {
        let file = trace(compress);
        let (whole, _) = read(&file);
        let parts = buffers(&file);
        let last = parts.len() - 1;
        for (buffer, after) in [(3, 3), (3, 6), (last, last)] {
            let mut repeated = parts.clone();
            repeated.insert(after + 1, parts[buffer]);
            let (times, found) = read(&repeated.concat());
            assert_eq!(times, whole, "{compress}: {buffer} after {after}");
            assert_eq!(found.repeated_buffers, 1, "{compress}");
            assert!(!found.is_clean());
        }
    }
}

/// The buffers of a small trace that states how many buffers were written, in this mode.
fn numbered(mode: u32, written: impl Fn(u32) -> u32) -> Vec<Vec<u8>> {
    let file = trace(false);
    let mut parts: Vec<Vec<u8>> = buffers(&file).iter().map(|part| part.to_vec()).collect();
    let written = written(parts.len() as u32);
    // Mode and count are adjacent in the payload of the log file header.
    let at = 72 + 32 + 32;
    parts[0][at..at + 4].copy_from_slice(&mode.to_le_bytes());
    parts[0][at + 4..at + 8].copy_from_slice(&written.to_le_bytes());
    parts
}

#[test]
fn missing_buffers_are_counted() {
    let missing = |parts: &[Vec<u8>]| read(&parts.concat()).1.missing_buffers;
    let sequential = || numbered(1, |count| count);
    let all = sequential();
    assert_eq!(missing(&all), 0);
    for removed in 1..all.len() {
        let mut parts = all.clone();
        parts.remove(removed);
        let (_, found) = read(&parts.concat());
        assert_eq!(found.missing_buffers, 1, "{removed}");
        assert!(found.lost_anything() && !found.is_damaged() && !found.is_clean());
        assert_eq!(missing(&all[..removed]), (all.len() - removed) as u64);
    }
    // Buffers without records count, too.
    let mut empty = all.clone();
    empty[3][0x30..0x34].copy_from_slice(&72_u32.to_le_bytes());
    assert_eq!(missing(&empty), 0);
    // Each file of a recording has its own buffers.
    let file = |parts: &[Vec<u8>]| Reader::new(parts.concat(), Default::default()).unwrap();
    let merged = Reader::merge(vec![file(&all[..5]), file(&all[..4])]).unwrap();
    assert_eq!(
        merged.diagnostics().missing_buffers,
        2 * all.len() as u64 - 9
    );
}

#[test]
fn buffers_are_not_missing_from_files_that_may_be_complete() {
    let missing = |mut parts: Vec<Vec<u8>>| {
        parts.remove(3);
        read(&parts.concat()).1.missing_buffers
    };
    assert_eq!(missing(numbered(0x0001_0001, |count| count)), 1);
    // Circular with an unknown size, appended to, one file of several, delivered or buffered as well,
    // inside a process.
    for mode in [2, 4, 8, 0x100, 0x400, 0x800] {
        assert_eq!(missing(numbered(mode, |count| count)), 0, "{mode:#x}");
    }
    // A circular file of up to 1 MB; then of three buffers and more.
    let circular = |written: u32| {
        let mut parts = numbered(2, |_| written);
        parts[0][72 + 32 + 28] = 1;
        missing(parts)
    };
    let count = numbered(1, |count| count).len() as u32;
    assert_eq!(
        (circular(count), circular(1024), circular(1025)),
        (1, 1025 - count as u64, 0)
    );
    // The header has the count of another file.
    for written in [1, 5] {
        assert_eq!(missing(numbered(1, |_| written)), 0, "{written}");
    }
    let with = |change: fn(&mut Vec<Vec<u8>>)| {
        let mut parts = numbered(1, |count| count);
        change(&mut parts);
        missing(parts)
    };
    // The numbers of a program that writes 0 or those of two sessions, or counts from elsewhere.
    let renumber = |part: &mut [u8], number: i64| {
        part[0x18..0x20].copy_from_slice(&number.to_le_bytes());
    };
    assert_eq!(with(|parts| parts[4][0x18] = 5), 0);
    assert_eq!(with(|parts| parts[4][0x18] = 200), 0);
    assert_eq!(with(|parts| parts[4][0x18..0x20].fill(0xff)), 0);
    let mut parts = numbered(1, |count| count);
    parts.iter_mut().for_each(|part| renumber(part, 0));
    assert_eq!(missing(parts), 0);
    // Without a count, in a session that was not stopped, too, the highest number is the last.
    assert_eq!(missing(numbered(1, |_| 0)), 1);
    assert_eq!(with(|parts| parts[0][72 + 32 + 16..][..8].fill(0)), 1);
    let mut unstopped = numbered(1, |_| 0);
    unstopped.pop();
    assert_eq!(read(&unstopped.concat()).1.missing_buffers, 0);
    // The missing buffer is a part of the file that cannot be read, which is counted as such.
    let mut damaged = numbered(1, |count| count);
    damaged[3].fill(0xee);
    let (_, found) = read(&damaged.concat());
    assert!(
        found.is_damaged() && found.missing_buffers == 0,
        "{found:?}"
    );
}
