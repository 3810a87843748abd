//! jitdumps of a writer: round trip, truncated, damaged, hostile.

use chronosym_perf::Error;
use chronosym_perf::jitdump::{Diagnostics, Options, Reader, Record};
use chronosym_support::perf::JitdumpWriter;

const V8: u32 = 0xdead_beef;

fn read(bytes: &[u8]) -> Result<(Vec<String>, Diagnostics), Error> {
    let mut reader = Reader::new(bytes, Options::default())?;
    let mut records = Vec::new();
    while let Some(record) = reader.next_record()? {
        if let Record::Load(load) = &record {
            records.push(format!("{:?}", load.lines.clone().collect::<Vec<_>>()));
        }
        records.push(format!("{record:?}"));
    }
    Ok((records, reader.diagnostics().clone()))
}

fn dump(big: bool) -> JitdumpWriter {
    let mut writer = JitdumpWriter::new(big, 42, 0);
    writer.load(10, 42, 0x1000, "void A::B(int32)[Tier0]", &[0xcc; 16]);
    let rows = [
        (0x2000, 7, Some("/src/a.cs")),
        (0x2008, 8, None),
        (0x200c, 9, Some("b")),
    ];
    writer.lines(19, 0x2000, &rows);
    writer.unwinding(19, &[1, 2, 3], &[4, 5]);
    let index = writer.load(20, 42, 0x2000, "two", &[0x90; 13]);
    writer.moved(30, 42, 0x2000, 0x2004, 13, index);
    let body = writer.body().u64(1);
    writer.record(77, 35, body);
    let body = writer.body();
    writer.record(3, 40, body);
    writer
}

#[test]
fn loads_and_moves_round_trip() {
    for big in [false, true] {
        let file = dump(big).file().to_vec();
        let mut reader = Reader::new(file.as_slice(), Options::default()).expect("it is a jitdump");
        let header = *reader.header();
        assert_eq!((header.pid, header.has_cycles), (42, false));
        let mut seen = 0;
        while let Some(record) = reader.next_record().expect("a slice does not fail") {
            seen += 1;
            match record {
                Record::Load(load) if load.address == 0x1000 => {
                    assert_eq!((load.time, load.size), (10, 16));
                    assert_eq!(load.tid, 42);
                    assert_eq!(load.name, b"void A::B(int32)[Tier0]");
                    assert_eq!(load.lines.count(), 0);
                    assert!(load.eh_frame.is_empty());
                }
                Record::Load(load) => {
                    assert_eq!(load.eh_frame, [1, 2, 3]);
                    let lines: Vec<_> = (load.lines)
                        .map(|line| (line.address, line.line, line.path))
                        .collect();
                    let a = &b"/src/a.cs"[..];
                    assert_eq!(lines, [(0x2000, 7, a), (0x2008, 8, a), (0x200c, 9, b"b")]);
                }
                Record::Move(moved) => {
                    assert_eq!((moved.old_address, moved.new_address), (0x2000, 0x2004));
                }
                Record::Close => assert_eq!(seen, 4),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!((seen, reader.diagnostics().unknown_records), (4, 1));
    }
}

#[test]
fn lines_of_v8_are_shifted_back_and_damaged_ones_left_out() {
    let mut writer = JitdumpWriter::new(false, 1, V8);
    writer.lines(1, 0x1000, &[(0x1040, 7, Some("a.js"))]);
    writer.load(2, 1, 0x1000, "JS:*a", &[0; 4]);
    writer.load(3, 1, 0x2000, "without", &[0; 4]);
    // States two rows but has one, describes other code, has bytes after its rows.
    let body = writer
        .body()
        .words(&[0x1000, 2, 0x1040])
        .u32(1)
        .u32(1)
        .raw(b"a\0");
    writer.record(2, 4, body);
    writer.load(5, 1, 0x1000, "JS:*b", &[0; 4]);
    writer.lines(6, 0x9000, &[(0x1040, 7, Some("a.js"))]);
    writer.load(7, 1, 0x1000, "JS:*c", &[0; 4]);
    let body = writer
        .body()
        .words(&[0x1000, 1, 0x1040])
        .u32(1)
        .u32(1)
        .raw(b"a\0b\0c\0d\0e\0f\0");
    writer.record(2, 8, body);
    writer.load(9, 1, 0x1000, "JS:*d", &[0; 4]);
    let mut reader = Reader::new(writer.file(), Options::default()).expect("it is a jitdump");
    let mut lines = Vec::new();
    while let Some(Record::Load(load)) = reader.next_record().expect("a slice does not fail") {
        lines.push(load.lines.map(|line| line.address).collect::<Vec<_>>());
    }
    assert_eq!(lines, [vec![0x1000], vec![], vec![], vec![], vec![]]);
    assert_eq!(
        (
            reader.diagnostics().bad_lines,
            reader.diagnostics().bad_records
        ),
        (3, 0)
    );
}

#[test]
fn a_cut_dump_is_read_as_far_as_it_goes() {
    for big in [false, true] {
        let file = dump(big).file().to_vec();
        let whole = read(&file).expect("fine").0;
        let mut most = 0;
        for end in 0..=file.len() {
            let Ok((records, diagnostics)) = read(&file[..end]) else {
                assert!(end < 40);
                continue;
            };
            assert!(records.len() >= most);
            most = records.len();
            assert_eq!(records, whole[..most]);
            assert_eq!(diagnostics.bytes_read, end as u64);
            let lost = diagnostics.gaps.total().bytes;
            assert_eq!(
                lost > 0,
                end > 40 && read(&file[..end - 1]).expect("fine").1.records == diagnostics.records
            );
        }
    }
}

#[test]
fn any_byte_may_be_wrong() {
    for big in [false, true] {
        let file = dump(big).file().to_vec();
        for at in 0..file.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut damaged = file.clone();
                damaged[at] ^= flip;
                if let Ok((_, diagnostics)) = read(&damaged) {
                    assert!(diagnostics.records <= 8);
                }
            }
        }
    }
}

#[test]
fn a_record_with_a_large_size_allocates_nothing() {
    let mut file = dump(false).file().to_vec();
    file.extend([0, 0, 0, 0, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0, 0]);
    let measured = allocation_counter::measure(|| {
        let (records, diagnostics) = read(&file).expect("fine");
        assert_eq!(records.len(), 6);
        assert_eq!(diagnostics.gaps.total().bytes, 12);
    });
    assert!(measured.bytes_max < 1 << 20, "{measured:?}");
}

#[test]
fn code_may_be_missing() {
    let mut writer = JitdumpWriter::new(false, 1, 0);
    let body = writer
        .body()
        .u32(1)
        .u32(1)
        .words(&[1, 0x1000, u64::MAX, 1])
        .name("stub");
    writer.record(0, 5, body);
    let mut reader = Reader::new(writer.file(), Options::default()).expect("it is a jitdump");
    let Some(Record::Load(load)) = reader.next_record().expect("a slice does not fail") else {
        panic!("it is a load")
    };
    assert_eq!((load.name, load.size), (&b"stub"[..], u64::MAX));
}

#[test]
fn files_that_are_not_jitdumps_are_identified() {
    assert!(matches!(read(b"PERFILE2"), Err(Error::WrongFormat { .. })));
    assert!(matches!(read(b"DTiJ"), Err(Error::DamagedHeader { .. })));
    let mut file = dump(false).file().to_vec();
    file[4] = 9;
    assert!(matches!(
        read(&file),
        Err(Error::UnsupportedVersion { version: 9, .. })
    ));
}

#[test]
fn unwind_information_belongs_to_the_next_load() {
    let mut writer = JitdumpWriter::new(false, 42, 0);
    writer.unwinding(1, &[7; 24], &[4; 20]);
    writer.load(2, 42, 0x1000, "one", &[0x90; 4]);
    writer.load(3, 42, 0x2000, "two", &[0x90; 4]);
    // The header is larger than the whole.
    let body = writer.body().words(&[8, 20, 0]).u64(0);
    writer.record(4, 4, body);
    writer.load(5, 42, 0x3000, "three", &[0x90; 4]);
    let mut reader = Reader::new(writer.file(), Options::default()).expect("it is a jitdump");
    let mut found = Vec::new();
    while let Some(Record::Load(load)) = reader.next_record().expect("a slice does not fail") {
        found.push(load.eh_frame.to_vec());
    }
    assert_eq!(found, [vec![7; 24], Vec::new(), Vec::new()]);
    assert_eq!(reader.diagnostics().bad_records, 1);
}
