//! The order of records over buffers, and their headers, in rare layouts.

mod common;

use chronosym_etl::Reader;
use chronosym_support::etl::{At, EtlWriter, Options, buffers};

use common::writers;

fn times(file: &[u8]) -> Vec<u64> {
    let mut reader = Reader::new(file, Default::default()).unwrap();
    let mut times = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        times.push(record.time_ns / 1_000);
    }
    times
}

/// The earliest record of a buffer is beyond the part that the walk reads; that the first ones are
/// out of order reveals it. If processors share buffers, or threads those of a process, the mode of
/// the log reveals it.
#[test]
fn a_buffer_out_of_order_is_read_when_its_earliest_record_is_due() {
    const PRIVATE: u32 = 0x800;
    const SHARED: u32 = 0x1000_0000;
    for (log_file_mode, first) in [(0, 50), (PRIVATE, 20), (SHARED, 20)] {
        let options = Options {
            log_file_mode,
            ..Options::default()
        };
        let mut w = EtlWriter::new(Vec::new(), options).unwrap();
        w.flush(0).unwrap();
        w.sample(At::us(first), 1, 1).unwrap();
        for us in 20..60 {
            w.sample(At::us(us), 1, 1).unwrap();
        }
        w.sample(At::us(5), 1, 1).unwrap();
        w.flush(0).unwrap();
        for us in 10..15 {
            w.sample(At::us(us), 1, 1).unwrap();
        }
        let times = times(&w.finish().unwrap());
        assert_eq!(times.len(), 1 + 42 + 5);
        assert!(times.is_sorted(), "{times:?}");
    }
}

/// The step to the next buffer is lost with a header; no buffer after the last one could confirm
/// it.
#[test]
fn the_last_buffer_is_found_after_a_damaged_one() {
    for mut w in writers() {
        w.flush(0).unwrap();
        for round in 0..3 {
            for us in 0..50 {
                w.sample(At::us(round * 100 + us), 1, 1).unwrap();
            }
            w.flush(0).unwrap();
        }
        let whole = w.finish().unwrap();
        let mut parts: Vec<Vec<u8>> = buffers(&whole).iter().map(|part| part.to_vec()).collect();
        assert_eq!(parts.len(), 4);
        parts[2][..4].copy_from_slice(&[1, 0, 0, 0]);
        let found = times(&parts.concat());
        let last = found.iter().filter(|time| **time >= 200).count();
        assert_eq!((found.len(), last), (1 + 100, 50), "{found:?}");
    }
}

#[test]
fn processors_beyond_255_are_distinguished() {
    let mut w = EtlWriter::new(Vec::new(), Options::default()).unwrap();
    w.flush(0).unwrap();
    w.sample(At::us(1), 1, 1).unwrap();
    let whole = w.finish().unwrap();
    let mut parts: Vec<Vec<u8>> = buffers(&whole).iter().map(|part| part.to_vec()).collect();
    let header = &mut parts[1];
    header[0x28..0x2a].copy_from_slice(&300_u16.to_le_bytes());
    let cpu = |file: &[u8]| {
        let mut reader = Reader::new(file, Default::default()).unwrap();
        let mut last = None;
        while let Some(record) = reader.next_record().unwrap() {
            last = Some(record.cpu);
        }
        last
    };
    assert_eq!(cpu(&parts.concat()), Some(300));
    // Without the flag for processor indexes the upper byte is the alignment of records.
    parts[1][0x34] &= !0x20;
    assert_eq!(cpu(&parts.concat()), Some(300 & 0xff));
}

/// More records than one step of the merge takes, and buffers that start and end in many of them.
#[test]
fn records_of_many_buffers_are_in_order() {
    let options = Options {
        cpus: 4,
        ..Options::default()
    };
    let mut w = EtlWriter::new(Vec::new(), options).unwrap();
    for us in 1..=5_000 {
        let cpu = (us / 3 % 4) as u16;
        w.sample(At::us(us).cpu(cpu), 1, 1).unwrap();
        if us % 70 == 0 {
            w.flush(cpu).unwrap();
        }
    }
    let file = w.finish().unwrap();
    let expected: Vec<u64> = (0..=5_000).collect();
    assert_eq!(times(&file), expected);
    let mut ahead = Reader::new(file, Default::default()).unwrap();
    ahead.read_ahead();
    for time in expected {
        let record = ahead.next_record().unwrap().unwrap();
        assert_eq!(record.time_ns / 1_000, time);
    }
    assert!(ahead.next_record().unwrap().is_none());
    assert!(ahead.next_record().unwrap().is_none());
}
