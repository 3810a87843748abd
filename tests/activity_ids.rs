//! Samples by the activity that their thread carried, from synthetic EventPipe traces.

use std::io::Cursor;
use std::sync::Arc;

use chronosym::{Filter, Input, Opener, Options, SampleSelection, Timeline};
use chronosym_export::{By, Sort, hotspots};
use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::trace::{EventSpec, TypeSpec};

const MS: i64 = 1_000_000;
const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";
const A: u8 = 0xaa;
const B: u8 = 0xbb;

/// Thread 7 starts A, and B within it; thread 8 continues with A, and reports it twice. Every thread
/// is sampled every 10 ms.
fn trace(mut writer: NettraceWriter) -> Vec<u8> {
    let mut define = |id, name: &str| {
        let mut spec = TypeSpec::new("Shop-Requests", id, 0);
        spec.name = name.to_owned();
        writer.define(spec)
    };
    let (start, stop) = (define(1, "RequestStart"), define(2, "RequestStop"));
    let (query, queried) = (define(3, "QueryStart"), define(4, "QueryStop"));
    let noted = define(5, "Noted");
    let sampler = writer.event_type(SAMPLER, 0, 0);
    let mut rows = vec![
        (12, 7, start, A, 0),
        (32, 7, query, B, A),
        (42, 7, queried, B, 0),
        (62, 7, stop, A, 0),
        (64, 8, noted, A, 0),
        (84, 8, noted, A, 0),
    ];
    let ticks = (0..10).flat_map(|tick| [7, 8].map(|thread| (tick * 10, thread, sampler, 0, 0)));
    rows.extend(ticks);
    rows.sort_by_key(|row| row.0);
    for (ms, thread, event_type, id, related) in rows {
        let mut event = EventSpec::new(event_type, ms * MS, thread);
        (event.activity, event.related_activity) = ([id; 16], [related; 16]);
        let event = match event_type == sampler {
            true => event.stack(&[0x1000]).payload(&[2, 0, 0, 0]),
            false => event,
        };
        writer.record(&event);
    }
    writer.finish()
}

fn read(trace: Vec<u8>, activity_ids: bool) -> Arc<Timeline> {
    let mut options = Options::from(SampleSelection::Profilers);
    options.activity_ids = activity_ids;
    let recording = Opener::new().open([Input::stream("trace", Cursor::new(trace))]);
    recording.unwrap().timeline(options).unwrap().0
}

fn rows(timeline: &Arc<Timeline>) -> Vec<(String, u64)> {
    let profile = timeline.profile(&Filter::default(), None);
    let rows = hotspots(&profile, By::Activity, Sort::Own, false);
    let rows = rows.into_iter();
    let mut rows: Vec<_> = rows
        .map(|it| (it.label.name, it.counts.own.samples))
        .collect();
    rows.sort();
    rows
}

#[test]
fn samples_between_events_of_one_activity_belong_to_it() {
    let guid = |byte: &str| {
        [8, 4, 4, 4, 12]
            .map(|digits| byte.repeat(digits / 2))
            .join("-")
    };
    for writer in [NettraceWriter::v4(), NettraceWriter::v6()] {
        let timeline = read(trace(writer), true);
        let expected = [
            // Of thread 7 at 20, 30, 50 and 60 ms; of thread 8 at 70 and 80 ms.
            (format!("Shop-Requests/RequestStart {}", guid("aa")), 6),
            (format!("Shop-Requests/QueryStart {}", guid("bb")), 1),
            ("[no activity]".to_owned(), 13),
        ];
        let rows = rows(&timeline);
        assert_eq!(rows.len(), expected.len(), "{rows:?}");
        for row in &expected {
            assert!(rows.contains(row), "{row:?} in {rows:?}");
        }
    }
}

#[test]
fn without_the_option_or_ids_no_activity_is_known() {
    let timeline = read(trace(NettraceWriter::v4()), false);
    assert_eq!(rows(&timeline), [("[no activity]".to_owned(), 20)]);
    let mut writer = NettraceWriter::v4();
    let sampler = writer.event_type(SAMPLER, 0, 0);
    writer.event(sampler, MS, 7, &[0x1000], &[2, 0, 0, 0]);
    let timeline = read(writer.finish(), true);
    assert_eq!(rows(&timeline), [("[no activity]".to_owned(), 1)]);
}
