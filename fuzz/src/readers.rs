//! Readers: any bytes as a trace, a map or an archive, through every accessor of the records.

use std::io::Cursor;

use chronosym::open::Format;
use chronosym::source::chronosym_otlp::{NewLine, Profiles};
use chronosym::{Input, Limits, Opener, Options, Session};
use chronosym_ctf::Metadata;
use chronosym_etl::{ExtendedItem, Reader as EtlReader};
use chronosym_perf::{Event, jitdump, script};

use crate::pipeline;

/// .nettrace or .netperf.
pub fn nettrace(data: &[u8]) {
    // A small limit, so that regions are cut, too.
    let options = chronosym_nettrace::Options::default().with_region_limit(64 << 10);
    let Ok(mut reader) = chronosym_nettrace::Reader::new(data, options) else {
        return;
    };
    let mut events = 0;
    let mut types = 0;
    while let Ok(Some(region)) = reader.next_region() {
        let mut in_time_order = 0;
        let mut latest = i64::MIN;
        for record in region.in_time_order() {
            assert!(record.raw_time >= latest);
            latest = record.raw_time;
            in_time_order += 1;
        }
        assert_eq!(in_time_order, region.len());
        for record in region.records() {
            events += 1;
            assert!(region.event_type(record.event_type).is_some());
            let stack = record.stack.map(|row| {
                assert!(row.index() < region.stack_count());
                let addresses = region.stack(row).iter();
                addresses.fold(0, |all, address| all ^ address)
            });
            let ids = (
                record.activity_id(),
                record.related_activity_id(),
                record.labels().count(),
            );
            std::hint::black_box((stack, ids, record.thread(), record.payload.len()));
        }
        assert!(region.event_types().len() >= types);
        types = region.event_types().len();
    }
    let diagnostics = reader.diagnostics();
    assert_eq!(diagnostics.events, events);
    assert_eq!(diagnostics.bytes_read, data.len() as u64);
    for gap in diagnostics.gaps.listed() {
        assert!(gap.end() <= data.len() as u64);
    }
}

/// .etl.
pub fn etl(data: &[u8]) {
    let Ok(mut reader) = EtlReader::new(data, Default::default()) else {
        return;
    };
    while let Ok(Some(record)) = reader.next_record() {
        for item in record.extended_items() {
            match item {
                ExtendedItem::SchemaTl(schema) => {
                    let _ = std::hint::black_box(chronosym_etl::TraceLoggingSchema::parse(schema));
                }
                other => {
                    std::hint::black_box(format!("{other:?}"));
                }
            }
        }
    }
}

/// perf.data, as a file and as a pipe.
pub fn perf_data(data: &[u8]) {
    // A small limit, so that rounds are cut, too.
    let options = chronosym_perf::Options::default().with_round_limit(16 << 10);
    if let Ok(mut reader) = chronosym_perf::Reader::open(Cursor::new(data), options) {
        while let Ok(Some(_)) = reader.next_record() {}
    }
    let Ok(mut reader) = chronosym_perf::Reader::new(data, options) else {
        return;
    };
    let mut records = 0;
    while let Ok(Some(record)) = reader.next_record() {
        records += 1;
        assert!(record.attr.is_none_or(|attr| attr < 1 << 16));
        if let Event::Sample(sample) = &record.event {
            let chain = sample.callchain.iter().flat_map(|chain| chain.parts());
            let sum = chain
                .flat_map(|part| part.addresses.iter())
                .fold(0, |all, address| all ^ address);
            let registers = sample.user_registers.and_then(|registers| registers.get(7));
            std::hint::black_box((sum, registers));
        }
        std::hint::black_box(format!("{:?}", record.event));
    }
    let diagnostics = reader.diagnostics();
    assert!(records <= diagnostics.records);
    assert!(diagnostics.bytes_read <= data.len() as u64);
    for gap in diagnostics.gaps.listed() {
        assert!(gap.end() <= data.len() as u64);
    }
}

/// A trace of LTTng: its metadata as text up to the first zero, the rest a stream.
pub fn ctf(data: &[u8]) {
    let end = data.iter().position(|&byte| byte == 0);
    let (text, stream) = data.split_at(end.unwrap_or(data.len()));
    let Ok(metadata) = Metadata::parse(text, chronosym_ctf::Options::default()) else {
        return;
    };
    let stream = stream.get(1..).unwrap_or_default();
    let source = chronosym_ctf::Source {
        traces: vec![metadata],
        streams: vec![stream],
    };
    let mut reader = chronosym_ctf::Reader::new(source, Default::default()).expect("a trace");
    let (mut events, mut last) = (0, 0);
    while let Ok(Some(event)) = reader.next_event() {
        assert!(event.time_ns >= last);
        last = event.time_ns;
        events += 1;
        let values = event.context.iter().chain(event.fields.iter());
        std::hint::black_box(values.count());
    }
    assert_eq!(events, reader.diagnostics().events);
    assert!(reader.diagnostics().bytes_read <= stream.len() as u64);
}

/// A jitdump.
pub fn jitdump(data: &[u8]) {
    let Ok(mut reader) = jitdump::Reader::new(data, Default::default()) else {
        return;
    };
    let mut records = 0;
    while let Ok(Some(record)) = reader.next_record() {
        records += 1;
        if let jitdump::Record::Load(load) = record {
            std::hint::black_box(load.lines.count());
        }
    }
    assert!(records <= reader.diagnostics().records);
    assert_eq!(reader.diagnostics().bytes_read, data.len() as u64);
}

/// The text of `perf script`.
pub fn perf_script(data: &[u8]) {
    let Ok(mut reader) = script::Reader::new(data, Default::default()) else {
        return;
    };
    let mut samples = 0;
    while let Ok(Some(sample)) = reader.next_sample() {
        samples += 1;
        std::hint::black_box(sample.frames().count());
    }
    assert_eq!(samples, reader.diagnostics().samples);
    assert_eq!(reader.diagnostics().bytes_read, data.len() as u64);
}

/// OTLP profiles: read, with a name for every location, and through a timeline.
pub fn otlp(data: &[u8]) {
    let mut session = Session::new(Options::default());
    let input = Input::stream("bytes", Cursor::new(data.to_vec()));
    let opener = Opener::new().read_as(Format::Otlp);
    if let Ok(recording) = opener.open([input]) {
        let _ = recording.read(&mut session);
    }
    pipeline::check(&session.finish());
    let Ok(all) = Profiles::read(data.to_vec()) else {
        return;
    };
    for profiles in all {
        let line = |name: &str, line| NewLine {
            name: name.to_owned(),
            file: "a.c".to_owned(),
            line,
            column: 0,
        };
        let named = |index| (index, vec![line("inner", 1), line("outer", 2)]);
        let lines = (0..profiles.location_count()).map(named).collect();
        let named = profiles.with_lines(&lines);
        let Ok(named) = Profiles::read(named) else {
            continue;
        };
        let is_whole = profiles.damaged() == 0;
        for profiles in named.iter().filter(|_| is_whole) {
            for index in 0..profiles.location_count() {
                let location = profiles.location(index).expect("a location");
                let names = location
                    .lines()
                    .map(|line| profiles.function(line.function));
                let names = names.map(|function| function.expect("a function").name);
                assert_eq!(names.collect::<Vec<_>>(), ["inner", "outer"]);
            }
        }
        let samples = |all: &[&Profiles]| -> usize {
            let profiles = all.iter().flat_map(|it| it.profiles());
            profiles.map(|profile| profile.samples().count()).sum()
        };
        let named: Vec<&Profiles> = named.iter().collect();
        assert_eq!(samples(&named), samples(&[&profiles]));
    }
}

/// A perf map.
pub fn perf_map(data: &[u8]) {
    let mut session = Session::new(Options::default());
    session.perf_map(1, data);
    let timeline = session.finish();
    let rows = data.split(|&byte| byte == b'\n').count() as u64;
    let bad_rows: u64 = timeline.diagnostics().iter().map(|it| it.count).sum();
    assert!(bad_rows <= rows);
    let Some(process) = timeline.find_process(1, None) else {
        return;
    };
    for line in data.split(|&byte| byte == b'\n').take(100) {
        let text = String::from_utf8_lossy(line);
        let start = text.split(' ').next().unwrap_or_default();
        let Ok(address) = u64::from_str_radix(start.trim_start_matches("0x"), 16) else {
            continue;
        };
        for address in [address, address.wrapping_sub(1), address.wrapping_add(8)] {
            for symbol in timeline.untimed_at(process, address) {
                assert!(symbol.start <= address && address <= symbol.last);
            }
        }
    }
}

/// Anything that a trace may come in: zip and gzip, wrapped again and again. The bytes as they are,
/// and packed rightly.
pub fn wrapped(data: &[u8]) {
    read_wrapped(data);
    let (kind, data) = data.split_first().unwrap_or((&0, &[]));
    let mut packed = data.to_vec();
    for layer in 0..kind & 3 {
        packed = if kind & (4 << layer) == 0 {
            crate::seeds::gzipped(&packed)
        } else {
            crate::seeds::zipped(&[("a.nettrace", &packed)])
        };
    }
    read_wrapped(&packed);
}

fn read_wrapped(data: &[u8]) {
    let mut limits = Limits::default();
    limits.unpacked_bytes = 1 << 20;
    limits.zip_entries = 64;
    limits.perf_map_bytes = 1 << 20;
    let input = Input::stream("bytes", Cursor::new(data.to_vec()));
    let Ok(recording) = Opener::new().limits(limits).open([input]) else {
        return;
    };
    let mut session = Session::new(Options::default());
    let _ = std::hint::black_box(recording.read(&mut session));
    pipeline::check(&session.finish());
}
