//! The whole pipeline: reader, timeline, profile, every output.
//!
//! Properties for any bytes: the address of a frame is in its body, every output is well-formed, no
//! text controls a terminal, and all outputs count the same samples.

use std::collections::BTreeSet;
use std::io::{Cursor, Read};
use std::sync::Arc;

use chronosym::{
    Code, Diagnostic, DiagnosticKind, Filter, Input, Opener, Options, Profile, Session, Timeline,
    source,
};
use chronosym_etl::Reader as EtlReader;
use chronosym_export::{
    By, CallTree, Granularity, JsonStacks, NamedFile, ReportFacts, ReportSource, Series, Shape,
    Sort, TableOptions, TreeOptions,
};
use chronosym_types::escape::is_hostile;
use serde_json::Value;

use crate::proto;

const GRANULARITY: Granularity = Granularity {
    threads: true,
    lines: false,
    addresses: false,
    activities: false,
};

/// Any bytes as a trace, by whatever reader takes them.
pub fn any(data: &[u8]) {
    check(&timeline(data));
    events(data);
}

/// Reads the events of any bytes one by one, and decodes them.
fn events(data: &[u8]) {
    let input = Input::stream("input", Cursor::new(data.to_vec()));
    let recording = Opener::new().open([input]);
    let Ok(Some(mut events)) = recording.and_then(|recording| recording.into_events()) else {
        return;
    };
    while let Ok(Some(event)) = events.next_event() {
        assert!(event.watermark_ns <= event.event.time_ns);
        std::hint::black_box((event.event.decode().is_ok(), event.event.fields().is_ok()));
        std::hint::black_box(event.stack.len());
    }
    std::hint::black_box(events.diagnostics());
}

/// Returns the timeline of the readable part, with every reader that accepts the bytes.
pub fn timeline(data: &[u8]) -> Arc<Timeline> {
    let mut session = Session::new(Options::default());
    // A reader that does not know the bytes does not change the session.
    if [b"PERFILE2", b"2ELIFREP"]
        .iter()
        .any(|magic| data.starts_with(*magic))
        || [b"DTiJ", b"JiTD"]
            .iter()
            .any(|magic| data.starts_with(*magic))
    {
        let input = Input::stream("input", Cursor::new(data.to_vec()));
        let recording = Opener::new().open([input]);
        let _ = recording.and_then(|recording| recording.read(&mut session));
    } else if let Ok(reader) = EtlReader::new(data, Default::default()) {
        let _ = source::etl::read(reader, &mut session);
    } else {
        let _ = source::nettrace::read(data, &mut session);
    }
    session.finish()
}

/// Holds a timeline and all that is written of it to the promises; gives the number of its samples.
pub fn check(timeline: &Arc<Timeline>) -> u64 {
    let filter = Filter::default();
    let profile = timeline.profile(&filter, None);
    check_frames(timeline, &profile);
    let samples = profile.samples();
    let series = Series::new(
        timeline,
        &filter,
        None,
        &Shape::default(),
        GRANULARITY,
        None,
    );
    assert_eq!(series.samples.len() as u64, samples);
    check_texts(&profile, samples);
    check_json(timeline, &series, samples);
    check_pictures(&profile, &series);
    check_pprof(&profile, samples);
    let otlp = written(|out| chronosym_export::write_otlp(&profile, GRANULARITY, out));
    for (field, value) in proto::fields(&otlp) {
        let proto::Value::Bytes(message) = value else {
            panic!("field {field} is no message");
        };
        proto::fields(message);
    }
    samples
}

fn written(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out).expect("memory");
    out
}

fn check_frames(timeline: &Timeline, profile: &Profile) {
    for frame in profile.resolver.frames() {
        match frame.code {
            Code::Body(process, body) => {
                let body = timeline.body_view(process, body).expect("the body");
                // A call may be the last instruction of its body: it returns to the byte after it.
                assert!(
                    frame.offset.is_none_or(|offset| offset <= body.size),
                    "{frame:?} {body:?}"
                );
                assert!(body.lifetime.from <= body.lifetime.to, "{body:?}");
            }
            Code::Image { process, image, .. } => {
                let image = timeline.image_ref(process, image).expect("the image");
                let offset = frame.address.wrapping_sub(image.base);
                assert!(offset <= image.size, "{frame:?} {image:?}");
            }
            _ => {}
        }
        assert!(!frame.label().is_empty());
        if let Ok(line) = &frame.line {
            assert!(!line.file.is_empty());
        }
    }
}

fn check_texts(profile: &Profile, samples: u64) {
    let tree = CallTree::new(profile, TreeOptions::default());
    let folded = text(|out| chronosym_export::write_folded(&tree, out));
    let counts = folded.lines().map(|line| {
        let (_, count) = line.rsplit_once(' ').expect("a count");
        count.parse::<u64>().expect("a number")
    });
    assert_eq!(counts.sum::<u64>(), samples, "{folded}");
    let options = TableOptions {
        width: Some(80),
        ..TableOptions::default()
    };
    text(|out| chronosym_export::write_text(profile, &tree, options, out));
    let threads = chronosym_export::hot_threads(profile);
    text(|out| chronosym_export::write_threads(profile, &threads, options, out));
    let user_code = chronosym_export::user_methods(profile);
    for by in By::ALL {
        let sort = Sort::default();
        let rows = chronosym_export::hotspots(profile, by, sort, false);
        let own = rows.iter().map(|row| row.counts.own.samples);
        assert_eq!(own.sum::<u64>(), samples, "{by:?}");
        text(|out| {
            chronosym_export::write_top(profile, (by, sort), &rows, &user_code, options, out)
        });
    }
}

/// Returns the written text, which must not control a terminal.
fn text(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> String {
    let text = String::from_utf8(written(write)).expect("text");
    assert!(!text.contains(|c| c != '\n' && is_hostile(c)), "{text:?}");
    text
}

fn check_json(timeline: &Arc<Timeline>, series: &Series, samples: u64) {
    let lines = |stacks| {
        text(|out| {
            let (filter, shape) = (Filter::default(), Shape::default());
            chronosym_export::write_json_lines(timeline, &filter, None, &shape, stacks, None, out)
                .map(drop)
        })
    };
    let [inline, table] = [JsonStacks::Inline, JsonStacks::Table].map(lines);
    for line in inline.lines().chain(table.lines()) {
        let _: Value = serde_json::from_str(line).expect("JSON");
    }
    assert_eq!(inline.lines().count() as u64, samples);
    assert!(table.lines().count() as u64 >= samples);
    for json in [
        text(|out| chronosym_export::write_speedscope(series, out)),
        text(|out| chronosym_export::write_firefox(series, out)),
    ] {
        let _: Value = serde_json::from_str(&json).expect("JSON");
    }
}

fn check_pictures(profile: &Profile, series: &Series) {
    let tree = CallTree::new(profile, TreeOptions::default());
    let svg = text(|out| chronosym_export::write_svg(profile, &tree, out));
    let options = roxmltree::ParsingOptions {
        allow_dtd: true,
        ..Default::default()
    };
    roxmltree::Document::parse_with_options(&svg, options).expect("XML");
    let note = Diagnostic::new(DiagnosticKind::Damage, "<note>");
    let facts = ReportFacts::new("<name>", profile, vec![note]);
    let source = |_: NamedFile<'_>| Some(ReportSource::new("<text>", "<name>"));
    let html = text(|out| chronosym_export::write_report(series, &facts, source, out));
    assert_eq!(html.matches("</script>").count(), 2);
}

fn check_pprof(profile: &Profile, samples: u64) {
    let packed = written(|out| chronosym_export::write_pprof(profile, GRANULARITY, out));
    let mut message = Vec::new();
    let mut reader = flate2::read::GzDecoder::new(&packed[..]);
    reader.read_to_end(&mut message).expect("gzip");
    let (mut counted, mut strings) = (0, 0);
    let (mut locations, mut used) = (BTreeSet::new(), BTreeSet::new());
    for (field, value) in proto::fields(&message) {
        match (field, value) {
            (2, proto::Value::Bytes(sample)) => {
                for (field, value) in proto::fields(sample) {
                    match (field, value) {
                        (1, proto::Value::Bytes(stack)) => used.extend(proto::packed(stack)),
                        (2, proto::Value::Bytes(values)) => counted += proto::packed(values)[0],
                        _ => {}
                    }
                }
            }
            (4, proto::Value::Bytes(location)) => {
                let id = proto::fields(location)
                    .into_iter()
                    .find(|(field, _)| *field == 1);
                let Some((_, proto::Value::Int(id))) = id else {
                    panic!("a location without a number");
                };
                locations.insert(id);
            }
            (6, proto::Value::Bytes(string)) => {
                str::from_utf8(string).expect("text");
                strings += 1;
            }
            _ => {}
        }
    }
    assert_eq!(counted, samples);
    assert!(used.is_subset(&locations), "{used:?} {locations:?}");
    assert!(strings > 0);
}
