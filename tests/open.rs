//! `chronosym::open` as users of the library see it: every kind of input, every rejection, every
//! limit.

use std::io::{Cursor, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use chronosym::open::Format;
use chronosym::source::{AnotherRecording, ReadError, etl, nettrace};
use chronosym::{
    Diagnostic, DiagnosticKind, Diagnostics, Filter, Input, LimitReached, Limits, LiveSession,
    OpenError, Opener, Options, Recording, Session, open,
};
use chronosym_etl::Reader as EtlReader;
use chronosym_support::etl::{At, EtlWriter, Options as EtlOptions};
use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::trace::TraceInfo;

const SAMPLES: u64 = 200;

/// Returns a nettrace trace of a process whose clock is at `start` when it starts.
fn nettrace_at(process_id: u32, start: i64) -> Vec<u8> {
    let info = TraceInfo::default();
    let second = (start - info.qpc_start) / 1_000_000_000;
    let mut wall = info.start;
    wall[6] += second as u16;
    let mut writer = NettraceWriter::v4().info(TraceInfo {
        process_id,
        qpc_start: start,
        start: wall,
        ..info
    });
    let sample = writer.event_type("Microsoft-DotNETCore-SampleProfiler", 0, 0);
    for time in 0..SAMPLES as i64 {
        writer.event(sample, time * 1_000, 1, &[0x1000, 0x2000], &[2, 0, 0, 0]);
        if time % 10 == 0 {
            writer.sequence_point();
        }
    }
    writer.finish()
}

fn trace() -> Vec<u8> {
    nettrace_at(4242, TraceInfo::default().qpc_start)
}

fn etl_trace(options: EtlOptions, tid: u32) -> Vec<u8> {
    let mut writer = EtlWriter::new(Vec::new(), options).expect("memory");
    for ms in 1..20 {
        writer.sample(At::ms(ms), 0x40_0000, tid).expect("a record");
    }
    writer.finish().expect("a file")
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn zip(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        let options = zip::write::SimpleFileOptions::default();
        zip.start_file(*name, options).expect("an entry");
        zip.write_all(bytes).expect("memory");
    }
    zip.finish().expect("memory").into_inner()
}

/// Files in a temporary folder.
struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Files(tempfile::tempdir().expect("a folder"))
    }

    fn add(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).expect("a file");
        path
    }
}

fn open_bytes(bytes: &[u8]) -> Result<Recording, OpenError> {
    open_with(Limits::default(), bytes)
}

fn open_with(limits: Limits, bytes: &[u8]) -> Result<Recording, OpenError> {
    let source = Cursor::new(bytes.to_vec());
    Opener::new()
        .limits(limits)
        .open([Input::stream("it", source)])
}

fn refusal(opened: Result<Recording, OpenError>) -> OpenError {
    match opened {
        Ok(recording) => panic!("{:?} was opened", recording.names()),
        Err(error) => error,
    }
}

fn kinds(diagnostics: &Diagnostics) -> Vec<DiagnosticKind> {
    diagnostics.list.iter().map(|it| it.kind).collect()
}

/// Returns the number of samples in a recording, and the diagnostics.
fn read(recording: Recording) -> (u64, Diagnostics) {
    let (timeline, diagnostics) = recording.timeline(Options::default()).expect("readable");
    (
        timeline.profile(&Filter::default(), None).samples(),
        diagnostics,
    )
}

fn open_all(paths: &[&Path]) -> Result<Recording, OpenError> {
    Opener::new().open(paths.iter().map(|&path| Input::file(path)))
}

/// A pipe that returns a few bytes at a time.
struct Trickle(Cursor<Vec<u8>>);

impl Read for Trickle {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let most = buffer.len().min(7);
        self.0.read(&mut buffer[..most])
    }
}

#[test]
fn every_way_in_gives_the_same() {
    let (files, trace) = (Files::new(), trace());
    let etl = etl_trace(EtlOptions::default(), 7);
    for (bytes, format, samples) in [(&trace, Format::Nettrace, SAMPLES), (&etl, Format::Etl, 19)] {
        let packed = zip(&[("readme.txt", b"text"), ("x/the.trace", bytes)]);
        let ways = [
            bytes.clone(),
            gzip(bytes),
            gzip(&gzip(bytes)),
            packed.clone(),
            gzip(&packed),
            zip(&[("inner.gz", &gzip(bytes))]),
            zip(&[("inner.zip", &packed)]),
        ];
        for (way, bytes) in ways.iter().enumerate() {
            let opened = [
                open(files.add("t", bytes)),
                open_bytes(bytes),
                Opener::new().open([Input::stream("pipe", Trickle(Cursor::new(bytes.clone())))]),
            ];
            for recording in opened {
                let recording = recording.expect("a trace");
                assert_eq!(recording.format(), format, "way {way}");
                let (found, diagnostics) = read(recording);
                assert_eq!(
                    (found, diagnostics.list.clone()),
                    (samples, Vec::new()),
                    "way {way}"
                );
                assert!(!diagnostics.is_cut_short() && diagnostics.lost_events() == 0);
            }
        }
    }
}

#[test]
fn files_that_are_not_traces_are_reported_by_format() {
    let files = Files::new();
    let fast = |name: &str| {
        let begin = b"\x14\0\0\0!FastSerialization.1\x05\x05\x01\x01\0\0\0\x01\0\0\0\x10\0\0\0";
        [&begin[..], name.as_bytes()].concat()
    };
    for (bytes, words) in [
        (fast("Microsoft.Diagnostics.Tracing.Etlx.TraceLog"), "etlx"),
        (fast("GCHeapDump"), "gcdump"),
        (
            br#"{"$schema":"https://www.speedscope.app/"}"#.to_vec(),
            "speedscope",
        ),
        (b"<StackWindow><StackSource>".to_vec(), "PerfView"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid".to_vec(),
            "Git LFS",
        ),
        (b"\x7fELF\x02".to_vec(), "ELF"),
        (b"MZ\x90".to_vec(), "executable"),
        (b"Microsoft C/C++ MSF 7.00\r\n".to_vec(), "Windows PDB"),
        (b"BSJB\x01".to_vec(), "portable PDB"),
        (b"\x07\x08".to_vec(), "07 08"),
    ] {
        for bytes in [&bytes, &gzip(&bytes)] {
            let error = refusal(open(files.add("x", bytes)));
            assert!(matches!(error, OpenError::NotATrace { .. }), "{error:?}");
            assert!(error.to_string().contains(words), "{words}: {error}");
        }
    }
    let inside = zip(&[("program", b"\x7fELF\x02"), ("notes", b"text")]);
    let error = refusal(open_bytes(&inside));
    assert!(
        matches!(error, OpenError::NoTraceInside { .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("ELF"), "{error}");
}

#[test]
fn rejections_are_distinguished() {
    let (files, trace) = (Files::new(), trace());
    let a = files.add("a", &trace);
    let link = files.0.path().join("link");
    std::fs::hard_link(&a, &link).expect("a link");
    let later = EtlOptions {
        boot_time: EtlOptions::default().boot_time + 600_000_000,
        ..EtlOptions::default()
    };
    let one = files.add("one.etl", &etl_trace(EtlOptions::default(), 7));
    let copy = files.add("copy.etl", &etl_trace(EtlOptions::default(), 7));
    let other = files.add("other.etl", &etl_trace(later, 8));
    let missing = files.0.path().join("missing");
    let empty = files.add("empty", b"");
    let broken = files.add(
        "broken.gz",
        b"\x1f\x8b\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    );
    let is = |paths: &[&Path], want: fn(&OpenError) -> bool| {
        let error = refusal(open_all(paths));
        assert!(want(&error), "{paths:?}: {error:?}");
    };
    is(&[], |e| matches!(e, OpenError::NoInput));
    let folder = files.0.path().join("folder");
    std::fs::create_dir(&folder).expect("a folder");
    is(&[&folder], |e| matches!(e, OpenError::Directory { .. }));
    is(&[&missing], |e| matches!(e, OpenError::Open { .. }));
    is(&[&empty], |e| matches!(e, OpenError::Empty { .. }));
    is(&[&broken], |e| matches!(e, OpenError::Damaged { .. }));
    is(&[&a, &a], |e| matches!(e, OpenError::SameFile { .. }));
    is(&[&a, &link], |e| matches!(e, OpenError::SameFile { .. }));
    is(&[&one, &copy], |e| matches!(e, OpenError::Copies { .. }));
    // The difference is in their headers, which are read later.
    let both = open_all(&[&a, &one]).and_then(|it| it.timeline(Options::default()));
    let Err(error) = both else {
        panic!("a Linux trace is not joined to an .etl");
    };
    assert!(
        matches!(error, OpenError::SeveralRecordings { .. }),
        "{error:?}"
    );
    is(&[&one, &other], |e| {
        matches!(
            e,
            OpenError::DifferentRecordings {
                what: "boot time",
                ..
            }
        )
    });
    let twice = zip(&[("a", &trace), ("b", &trace)]);
    let read = open_bytes(&twice)
        .expect("two")
        .timeline(Options::default());
    assert!(matches!(read, Err(OpenError::Copies { .. })));
    // The reader has the last word.
    let unknown = [&b"Nettrace"[..], &[0xff; 40]].concat();
    let read = open_bytes(&unknown)
        .expect("so it begins")
        .timeline(Options::default());
    assert!(matches!(read, Err(OpenError::Trace { .. })));
}

#[test]
fn layers_are_counted_and_use_no_stack() {
    // Stored without compression, to be fast.
    let layer = |bytes: &[u8]| {
        let none = flate2::Compression::none();
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), none);
        encoder.write_all(bytes).expect("memory");
        encoder.finish().expect("memory")
    };
    let mut wrapped = b"Nettrace".to_vec();
    for _ in 0..4_000 {
        wrapped = layer(&wrapped);
    }
    let limit = LimitReached::Layers(Limits::default().layers);
    match refusal(open_bytes(&wrapped)) {
        OpenError::Limit { limit: reached, .. } => assert_eq!(reached, limit),
        error => panic!("{error:?}"),
    }
    let mut deep = Limits::default();
    deep.layers = 200;
    let mut wrapped = trace();
    for _ in 0..100 {
        wrapped = layer(&wrapped);
    }
    let (samples, diagnostics) = read(open_with(deep, &wrapped).expect("within the limit"));
    assert_eq!((samples, diagnostics.list), (SAMPLES, Vec::new()));
    // An entry beyond the limit costs itself.
    let mut shallow = Limits::default();
    shallow.layers = 1;
    let mixed = zip(&[("deep", &gzip(&trace())), ("trace", &trace())]);
    let (samples, diagnostics) = read(open_with(shallow, &mixed).expect("a trace"));
    assert_eq!(samples, SAMPLES);
    assert_eq!(kinds(&diagnostics), [DiagnosticKind::Limit]);
}

/// Returns a zip file whose directory lists its only entry `count` times.
fn overlapping(entry: &[u8], count: u16) -> Vec<u8> {
    let one = zip(&[("0000", entry)]);
    let list = one
        .windows(4)
        .rposition(|w| w == b"PK\x01\x02")
        .expect("a list");
    let end = one
        .windows(4)
        .rposition(|w| w == b"PK\x05\x06")
        .expect("an end");
    let mut all = one[..list].to_vec();
    for i in 0..count {
        let mut row = one[list..end].to_vec();
        row[46..50].copy_from_slice(format!("{i:04}").as_bytes());
        all.extend(row);
    }
    let size = (all.len() - list) as u32;
    let mut last = one[end..].to_vec();
    last[8..10].copy_from_slice(&count.to_le_bytes());
    last[10..12].copy_from_slice(&count.to_le_bytes());
    last[12..16].copy_from_slice(&size.to_le_bytes());
    all.extend(last);
    all
}

#[test]
fn entries_in_the_bytes_of_others_are_left_out() {
    let (samples, diagnostics) =
        read(open_bytes(&overlapping(&trace(), 1_000)).expect("one of them"));
    assert_eq!(samples, SAMPLES);
    let counts: Vec<u64> = diagnostics.list.iter().map(|it| it.count).collect();
    assert_eq!(counts, [999]);
    let mut few = Limits::default();
    few.zip_entries = 10;
    let (samples, diagnostics) = read(open_with(few, &overlapping(&trace(), 1_000)).expect("one"));
    assert_eq!(samples, SAMPLES);
    let reached = |it: &Diagnostic| {
        let limit = LimitReached::ZipEntries(10).to_string();
        it.kind == DiagnosticKind::Limit && it.text.contains(&limit)
    };
    assert!(
        diagnostics.list.iter().any(reached),
        "{:?}",
        diagnostics.list
    );
}

#[test]
fn oversized_input_is_read_up_to_the_limit() {
    let mut limits = Limits::default();
    limits.unpacked_bytes = trace().len() as u64 / 2;
    let is_limit = |it: &Diagnostic| it.kind == DiagnosticKind::Limit;
    for bytes in [gzip(&trace()), zip(&[("t", &trace())])] {
        let (samples, diagnostics) = read(open_with(limits.clone(), &bytes).expect("a trace"));
        assert!((1..SAMPLES).contains(&samples), "{samples}");
        assert!(diagnostics.is_cut_short());
        assert!(
            diagnostics.list.iter().any(is_limit),
            "{:?}",
            diagnostics.list
        );
        assert!(
            diagnostics
                .list
                .iter()
                .any(|it| it.text.contains("unpacked_bytes"))
        );
    }
    // Uncompressed data is not limited.
    assert_eq!(
        read(open_with(limits, &trace()).expect("a trace")).0,
        SAMPLES
    );
}

#[test]
fn damage_costs_only_the_damaged_part() {
    let trace = trace();
    // An entry without a header next to a valid one.
    let mut two = zip(&[("good", &trace), ("bad", &trace[..100])]);
    let header = two
        .windows(4)
        .rposition(|w| w == b"PK\x03\x04")
        .expect("a header");
    two[header] = b'X';
    let (samples, diagnostics) = read(open_bytes(&two).expect("the other"));
    assert_eq!(samples, SAMPLES);
    assert_eq!(kinds(&diagnostics), [DiagnosticKind::Damage]);
    assert!(diagnostics.list[0].text.contains(": entry 1 is damaged"));
    // A wrong checksum is reported, and the data is used.
    let mut wrong = zip(&[("t", &trace)]);
    let list = wrong
        .windows(4)
        .rposition(|w| w == b"PK\x01\x02")
        .expect("a list");
    wrong[list + 16] ^= 0xff;
    let (samples, diagnostics) = read(open_bytes(&wrong).expect("a trace"));
    assert_eq!(samples, SAMPLES);
    assert_eq!(kinds(&diagnostics), [DiagnosticKind::Damage]);
    for bytes in [gzip(&trace), zip(&[("t", &trace)])] {
        let cut = &bytes[..bytes.len() / 2];
        let (samples, diagnostics) = read(open_bytes(cut).expect("its first half"));
        assert!((1..SAMPLES).contains(&samples), "{samples}");
        assert!(diagnostics.is_cut_short());
        let expected = [DiagnosticKind::Damage, DiagnosticKind::CutShort];
        assert!(diagnostics.list.len() >= 2);
        assert!(
            kinds(&diagnostics)
                .iter()
                .all(|kind| expected.contains(kind))
        );
    }
}

#[test]
fn reading_is_watched_and_can_be_broken_off() {
    let files = Files::new();
    let path = files.add("t", &trace());
    let (told, last) = std::sync::mpsc::channel();
    let opener = Opener::new().watch(move |progress| {
        let _ = told.send(progress);
        ControlFlow::Continue(())
    });
    read(opener.open([Input::file(&path)]).expect("a trace"));
    let all: Vec<_> = last.into_iter().collect();
    assert!(all.is_sorted_by_key(|progress| progress.read));
    let last = all.last().expect("progress");
    assert_eq!(
        (last.read, last.total),
        (trace().len() as u64, Some(last.read))
    );

    for bytes in [gzip(&trace()), etl_trace(EtlOptions::default(), 7)] {
        let path = files.add("t", &bytes);
        let opener = Opener::new().watch(|_| ControlFlow::Break(()));
        let read = opener.open([Input::file(&path)]).and_then(|recording| {
            let mut session = Session::new(Options::default());
            recording.read(&mut session)
        });
        assert!(matches!(read, Err(OpenError::Cancelled)), "{read:?}");
    }
}

#[test]
fn symbol_files_in_a_trace_archive_are_unpacked_on_demand() {
    let etl = etl_trace(EtlOptions::default(), 7);
    let bytes = zip(&[
        ("trace.etl", &etl),
        ("symbols/App.pdb/0123ABC1/App.pdb", b"one"),
        ("symbols/App.pdb/0123ABC2/App.pdb", b"two"),
        ("App.ni.r2rmap", b"three"),
        ("../../Evil.pdb", b"four"),
    ]);
    let recording = open_bytes(&bytes).expect("a trace");
    let symbols = recording.symbol_entries();
    assert_eq!(read(recording).0, 19);
    assert_eq!(symbols.names().count(), 4);
    let folder = symbols.folder().expect("a folder can be made");
    let folder = folder.expect("there are entries").to_owned();
    assert_eq!(std::fs::read_dir(&folder).expect("it is there").count(), 0);
    for _ in 0..2 {
        let found = symbols.unpack("app.PDB").expect("sound entries");
        let store = folder.join("App.pdb");
        assert_eq!(
            found,
            ["0123ABC1", "0123ABC2"].map(|id| store.join(id).join("App.pdb"))
        );
        assert_eq!(std::fs::read(&found[1]).expect("unpacked"), b"two");
    }
    let found = symbols.unpack("Evil.pdb").expect("a sound entry");
    assert_eq!(found, [folder.join("Evil.pdb")]);
    assert!(symbols.unpack("none.pdb").expect("no entry").is_empty());
    drop(symbols);
    assert!(!folder.exists());

    let mut limits = Limits::default();
    limits.unpacked_bytes = etl.len() as u64 + 3;
    let symbols = open_with(limits, &bytes).expect("a trace").symbol_entries();
    assert!(symbols.unpack("App.pdb").is_err(), "the second is too much");
}

#[test]
fn a_perf_map_is_limited() {
    let (files, text) = (Files::new(), b"1000 10 name\n".repeat(100));
    let mut limits = Limits::default();
    for bytes in [text.clone(), gzip(&text)] {
        let path = files.add("perf-1.map", &bytes);
        limits.perf_map_bytes = text.len() as u64;
        let read = chronosym::open::read_perf_map(&path, &limits);
        assert_eq!(read.expect("within the limit"), text);
        limits.perf_map_bytes -= 1;
        let read = chronosym::open::read_perf_map(&path, &limits);
        assert!(matches!(read, Err(OpenError::Limit { .. })), "{read:?}");
    }
}

fn another(read: Result<impl Sized, ReadError>) -> Option<AnotherRecording> {
    match read {
        Ok(_) => None,
        Err(ReadError::AnotherRecording(how)) => Some(how),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_session_is_of_one_recording() {
    let start = TraceInfo::default().qpc_start;
    let later = nettrace_at(4242, start + 3_000_000_000);
    // Its clock would have begun to count at another time: another boot, or another machine.
    let info = TraceInfo {
        qpc_start: start + 90_000_000_000,
        ..TraceInfo::default()
    };
    let rebooted = NettraceWriter::v4().info(info).finish();
    let mut session = Session::new(Options::default());
    let mut add = |bytes: &[u8]| another(nettrace::read(bytes, &mut session));
    assert_eq!(add(&trace()), None);
    assert_eq!(add(&trace()), Some(AnotherRecording::Same));
    assert_eq!(
        add(&nettrace_at(77, start + 1)),
        Some(AnotherRecording::Process)
    );
    assert_eq!(
        add(&nettrace_at(4242, start - 1)),
        Some(AnotherRecording::Earlier)
    );
    assert_eq!(add(&rebooted), Some(AnotherRecording::Clock));
    assert_eq!(add(&later), None);
    let etl = etl_trace(EtlOptions::default(), 7);
    let open_etl = || EtlReader::new(etl.as_slice(), Default::default()).expect("a trace");
    assert_eq!(
        another(etl::read(open_etl(), &mut session)),
        Some(AnotherRecording::Format)
    );
    let timeline = session.finish();
    let mut times = Vec::new();
    timeline.for_each_sample(&Filter::default(), |_, time| times.push(time));
    assert_eq!(
        times.len() as u64,
        2 * SAMPLES,
        "nothing refused was counted"
    );
    assert_eq!(
        times[SAMPLES as usize], 3_000_000_000,
        "a later session is later"
    );

    let mut session = Session::new(Options::default());
    assert_eq!(another(etl::read(open_etl(), &mut session)), None);
    assert_eq!(
        another(etl::read(open_etl(), &mut session)),
        Some(AnotherRecording::Whole)
    );
    // Several sessions of one process may be read into a live one, in any order.
    let read_live = |bytes: &[u8], live: &mut LiveSession| {
        let mut stream = nettrace::NettraceStream::new(bytes, Default::default())?;
        chronosym::source::read_live(&mut stream, live)
    };
    let mut live = LiveSession::new();
    assert_eq!(another(read_live(later.as_slice(), &mut live)), None);
    assert_eq!(another(read_live(trace().as_slice(), &mut live)), None);
    let foreign = nettrace_at(77, start);
    assert_eq!(
        another(read_live(foreign.as_slice(), &mut live)),
        Some(AnotherRecording::Process)
    );
}
