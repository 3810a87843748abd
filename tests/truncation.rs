//! Every prefix of a file of each format is read or rejected without a panic, and a longer prefix
//! never has fewer complete records of a trace, nor another answer of a symbol file. Stand-alone
//! readers have such tests next to them.

use std::collections::BTreeMap;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use chronosym::open::Format;
use chronosym::{Filter, Input, Opener, Options, Session};
use chronosym_pdb::pe::PeImage;
use chronosym_pdb::portable::PortablePdb;
use chronosym_pdb::r2r::{NoAssemblies, R2rImage, R2rMap};
use chronosym_pdb::windows::WindowsPdb;
use chronosym_support::ctf::{CtfEvent, CtfLayout, CtfTrace, CtfType, CtfValue};
use chronosym_support::etl::{At, EtlWriter, Options as EtlOptions};
use chronosym_support::netperf::NetperfWriter;
use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::perf::{JitdumpWriter, PerfAttr, PerfWriter};
use chronosym_support::trace::TraceInfo;
use chronosym_symbols::{Address, Answers, NativeSymbols, Query};

#[path = "../crates/chronosym-symbols/tests/made/mod.rs"]
mod made;

const SAMPLES: i64 = 24;

fn nettrace(writer: NettraceWriter) -> Vec<u8> {
    let mut writer = writer.info(TraceInfo::default());
    let sample = writer.event_type("Microsoft-DotNETCore-SampleProfiler", 0, 0);
    for time in 0..SAMPLES {
        writer.event(sample, time * 1_000, 1, &[0x1000, 0x2000], &[2, 0, 0, 0]);
        if time % 6 == 5 {
            writer.sequence_point();
            writer.flush();
        }
    }
    writer.finish()
}

fn netperf(writer: NetperfWriter) -> Vec<u8> {
    let mut writer = writer.info(TraceInfo::default());
    let sample = writer.event_type("Microsoft-DotNETCore-SampleProfiler", 0, 0);
    for time in 0..SAMPLES {
        writer.event(sample, time * 1_000, 1, &[0x1000, 0x2000], &[2, 0, 0, 0]);
        if time % 6 == 5 {
            writer.flush();
        }
    }
    writer.finish()
}

fn etl(compress: bool) -> Vec<u8> {
    let options = EtlOptions {
        compress,
        buffer_size: 1024,
        ..EtlOptions::default()
    };
    let mut writer = EtlWriter::new(Vec::new(), options).expect("memory");
    for ms in 1..=SAMPLES {
        writer.sample(At::ms(ms), 0x40_0000, 7).expect("a record");
    }
    writer.finish().expect("a file")
}

fn perf_data() -> PerfWriter {
    let mut writer = PerfWriter::new(PerfAttr::default());
    writer.comm(1, 7, 7, "app");
    for time in 2..SAMPLES as u64 {
        writer.sample(time, 7, 7, &[0x1000, 0x2000]);
        if time % 6 == 5 {
            writer.round();
        }
    }
    writer
}

fn jitdump() -> Vec<u8> {
    let mut writer = JitdumpWriter::new(false, 7, 0);
    for i in 0..SAMPLES as u64 {
        writer.load(i + 1, 7, 0x1000 + 64 * i, "method", &[0x90; 16]);
    }
    writer.file().to_vec()
}

/// A trace of LTTng: its metadata, and packets of six events.
fn ctf() -> (Vec<u8>, Vec<u8>) {
    let mut trace = CtfTrace::new(CtfLayout::default(), &[("vpid", CtfType::Signed(32))]);
    trace.event(
        "P:One",
        &[("n", CtfType::Unsigned(8)), ("text", CtfType::Text)],
    );
    let event = |time| CtfEvent {
        time,
        id: 0,
        context: vec![CtfValue::Number(7)],
        fields: vec![CtfValue::Number(1), CtfValue::Text("text")],
    };
    let packet = |number: u64| {
        let events: Vec<_> = (0..6).map(|at| event(number * 6 + at)).collect();
        trace.packet(number, 0, 0, &events)
    };
    (
        trace.metadata(),
        (0..SAMPLES as u64 / 6).flat_map(packet).collect(),
    )
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn zip(name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    zip.start_file(name, options).expect("an entry");
    zip.write_all(bytes).expect("memory");
    zip.finish().expect("memory").into_inner()
}

/// OTLP profiles.
fn otlp() -> Vec<u8> {
    use opentelemetry_proto::tonic::profiles::v1development as proto;
    use prost::Message;

    let sample = |time| proto::Sample {
        stack_index: 1,
        timestamps_unix_nano: vec![time],
        ..Default::default()
    };
    let profile = proto::Profile {
        samples: (1..=SAMPLES as u64).map(sample).collect(),
        ..Default::default()
    };
    let stack = proto::Stack {
        location_indices: vec![1],
    };
    let dictionary = proto::ProfilesDictionary {
        location_table: vec![Default::default(); 2],
        stack_table: vec![Default::default(), stack],
        ..Default::default()
    };
    let scope = proto::ScopeProfiles {
        profiles: vec![profile],
        ..Default::default()
    };
    let resource = proto::ResourceProfiles {
        scope_profiles: vec![scope],
        ..Default::default()
    };
    let mut bytes = proto::ProfilesData {
        resource_profiles: vec![],
        dictionary: Some(dictionary),
    }
    .encode_to_vec();
    let data = proto::ProfilesData {
        resource_profiles: vec![resource],
        dictionary: None,
    };
    // The order of fields is free: here, the stacks come first.
    bytes.extend(data.encode_to_vec());
    bytes
}

/// Returns the samples and code bodies in the readable part of a trace; `None` if it is rejected.
fn records(bytes: &[u8]) -> Option<u64> {
    records_of(bytes, Opener::new())
}

fn records_of(bytes: &[u8], opener: Opener) -> Option<u64> {
    let source = Cursor::new(bytes.to_vec());
    let recording = opener.open([Input::stream("it", source)]).ok()?;
    let (timeline, _) = recording.timeline(Options::default()).ok()?;
    let bodies: usize = timeline
        .processes()
        .map(|process| timeline.bodies(process.index).count())
        .sum();
    Some(timeline.profile(&Filter::default(), None).samples() + bodies as u64)
}

/// Tries every prefix of a trace.
fn sweep(name: &str, bytes: &[u8]) {
    sweep_by(name, bytes, records);
}

fn sweep_by(name: &str, bytes: &[u8], records: fn(&[u8]) -> Option<u64>) {
    let all = records(bytes).unwrap_or_else(|| panic!("{name} is refused"));
    assert!(all + 3 >= SAMPLES as u64, "{name}: {all}");
    let (mut before, mut accepted) = (0, false);
    for length in 0..bytes.len() {
        let found = records(&bytes[..length]);
        assert!(
            found.is_some() || !accepted,
            "{name}: {length} bytes are refused, fewer were not"
        );
        let found = match found {
            Some(found) => found,
            None => continue,
        };
        accepted = true;
        assert!(
            (before..=all).contains(&found),
            "{name}: {found} records in {length} bytes, {before} in fewer"
        );
        before = found;
    }
    assert!(before > 0, "{name}");
}

#[test]
fn traces() {
    sweep("nettrace V4", &nettrace(NettraceWriter::v4()));
    sweep("nettrace V5", &nettrace(NettraceWriter::v5()));
    sweep("nettrace V6", &nettrace(NettraceWriter::v6()));
    sweep("netperf V2", &netperf(NetperfWriter::v2()));
    sweep("netperf V3", &netperf(NetperfWriter::v3()));
    sweep("etl", &etl(false));
    sweep("etl, compressed", &etl(true));
    sweep("perf.data", &perf_data().file());
    sweep("perf.data, pipe form", &perf_data().pipe());
    sweep("jitdump", &jitdump());
    let otlp_records = |bytes: &_| records_of(bytes, Opener::new().read_as(Format::Otlp));
    sweep_by("otlp", &otlp(), otlp_records);
    sweep_by("gzipped otlp", &gzip(&otlp()), otlp_records);
}

#[test]
fn wrappers() {
    let trace = nettrace(NettraceWriter::v4());
    sweep("gzip", &gzip(&trace));
    sweep("zip", &zip("trace.nettrace", &trace));
    sweep("gzip in zip", &zip("t.gz", &gzip(&trace)));
    sweep("zip of an .etl", &zip("t.etl", &etl(false)));
}

#[test]
fn traces_of_lttng() {
    let (metadata, stream) = ctf();
    let events = |metadata: &[u8], stream: &[u8]| {
        let metadata = chronosym_ctf::Metadata::parse(metadata, Default::default()).ok()?;
        let source = chronosym_ctf::Source {
            traces: vec![metadata],
            streams: vec![stream],
        };
        let mut reader = chronosym_ctf::Reader::new(source, Default::default()).ok()?;
        let mut events = 0;
        while reader
            .next_event()
            .expect("a slice does not fail")
            .is_some()
        {
            events += 1;
        }
        Some(events)
    };
    assert_eq!(events(&metadata, &stream), Some(SAMPLES));
    let grows = |name: &str, len: usize, events: &dyn Fn(usize) -> Option<i64>| {
        let mut before = 0;
        for length in 0..len {
            let found = events(length).unwrap_or_default();
            assert!(
                (before..=SAMPLES).contains(&found),
                "{name}: {found} in {length} bytes, {before} in fewer"
            );
            before = found;
        }
        assert!(before > 0, "{name}");
    };
    grows("stream", stream.len(), &|length| {
        events(&metadata, &stream[..length])
    });
    grows("metadata", metadata.len(), &|length| {
        events(&metadata[..length], &stream)
    });
}

#[test]
fn perf_maps() {
    let lines: String = (0..100)
        .map(|i| format!("{:x} 10 method {i}\n", 0x1000 + 16 * i))
        .collect();
    let mut before = 0;
    for length in 0..=lines.len() {
        let mut session = Session::new(Options::default());
        session.perf_map(7, &lines.as_bytes()[..length]);
        let timeline = session.finish();
        let process = timeline.find_process(7, None);
        let is_there =
            |at: &u64| process.is_some_and(|process| !timeline.untimed_at(process, *at).is_empty());
        let found = (0x1000..0x1000 + 1600).step_by(16).filter(is_there).count();
        assert!(
            found >= before,
            "{found} bodies in {length} bytes, {before} in fewer"
        );
        before = found;
    }
    assert_eq!(before, 100);
}

/// The answers of a symbol file, by query.
type Said = BTreeMap<String, String>;

/// Tries prefixes: the whole file has every answer of a prefix.
fn says_no_other(name: &str, bytes: &[u8], ask: impl Fn(&[u8]) -> Said) {
    let all = ask(bytes);
    assert!(!all.is_empty(), "{name}");
    for length in 0..bytes.len() {
        for (question, said) in ask(&bytes[..length]) {
            assert_eq!(
                all.get(&question),
                Some(&said),
                "{name}: {question}, {length} bytes"
            );
        }
    }
}

fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../testdata")
        .join(path)
}

fn file(path: &str) -> Vec<u8> {
    std::fs::read(testdata(path)).expect(path)
}

#[test]
fn symbol_files() {
    let lines = |bytes: &[u8]| {
        let mut said = Said::new();
        if let Ok(pdb) = PortablePdb::parse(bytes) {
            for method in 1..=pdb.method_count().min(100) {
                if let Some(line) = pdb.first_line(method) {
                    said.insert(method.to_string(), format!("{line:?}"));
                }
            }
        }
        said
    };
    says_no_other("portable PDB", &file("clr31/live/Plugin.pdb"), lines);

    let functions = |bytes: &[u8]| {
        let mut said = Said::new();
        if let Ok(pdb) = WindowsPdb::open(bytes) {
            for function in pdb.functions().flatten() {
                said.insert(function.rva.to_string(), format!("{function:?}"));
            }
        }
        said
    };
    says_no_other(
        "Windows PDB",
        &file("pdb-small/x86_64/small.pdb"),
        functions,
    );

    let image = |bytes: &[u8]| {
        let mut said = Said::new();
        if let Ok(image) = PeImage::parse(bytes) {
            let size = image.size_of_image();
            said.insert("size".into(), format!("{size} {}", image.timestamp()));
            let ids = image.codeviews().map(|view| format!("{:?}", view.id));
            said.extend(ids.map(|id| ("id".into(), id)));
        }
        said
    };
    says_no_other("PE", &file("pdb-small/x86_64/small.exe"), image);
    says_no_other("managed PE", &file("clr31/live/Plugin.dll"), image);

    let methods = |bytes: &[u8]| {
        let mut said = Said::new();
        let image = PeImage::parse(bytes).and_then(R2rImage::open);
        for method in image.iter().flat_map(R2rImage::methods) {
            let name = image
                .as_ref()
                .ok()
                .and_then(|image| image.method_name(&method, &NoAssemblies));
            let range = (method.start, method.hot_size);
            said.extend(name.map(|name| (format!("{range:?}"), name.to_string())));
        }
        said
    };
    // An image with truncated sections is rejected.
    let image = file("clr10/r2r/linux-x64/Workload.dll");
    says_no_other("ReadyToRun", &image, methods);

    let symbols = |bytes: &[u8]| {
        let mut said = Said::new();
        let Ok(symbols) = NativeSymbols::open(bytes) else {
            return said;
        };
        let mut out = Answers::new();
        for at in [0x1000, 0x1010, 0x1020] {
            symbols.find(Address::VirtualAddress(at), &Query::default(), &mut out);
            let frames = out.iter().flat_map(|answer| answer.frames());
            let frames = frames.filter_map(|frame| Some((frame.name()?, frame.line())));
            let text = format!("{:?}", frames.collect::<Vec<_>>());
            said.extend((text != "[]").then(|| (at.to_string(), text)));
        }
        said
    };
    says_no_other("ELF and DWARF", &made::elf(&made::program()), symbols);

    let names = |bytes: &[u8]| {
        let mut said = Said::new();
        if let Ok(map) = R2rMap::parse(bytes) {
            let rows = map.methods().iter();
            said.extend(rows.map(|row| (row.rva.to_string(), format!("{row:?}"))));
        }
        said
    };
    let map = "clr10/r2r/windows-x64/Workload.ni.r2rmap";
    // A truncated name cannot be distinguished from a shorter one: the last line is ignored.
    says_no_other("r2rmap", &file(map), |bytes| {
        let whole = bytes.iter().rposition(|byte| *byte == b'\n');
        names(&bytes[..whole.map_or(0, |at| at + 1)])
    });
}
