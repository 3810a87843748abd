//! Samples by the activity that their thread carried, from synthetic EventPipe and ETW traces.

mod etw;

use std::io::Cursor;
use std::sync::Arc;

use chronosym::{Filter, Input, Opener, Options, SampleSelection, Session, Timeline};
use chronosym_etl::Reader as EtlReader;
use chronosym_export::{
    By, CallTree, Granularity, JsonStacks, Series, Shape, Sort, TreeOptions, hotspots,
    root_by_activity, write_folded, write_json_lines,
};
use chronosym_support::etl::{self, At, Event, Op, Options as FileOptions};
use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::trace::{EventSpec, TypeSpec};
use etw::{APP, PID, TID, with_process};

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

fn guid(byte: &str) -> String {
    let groups = [8, 4, 4, 4, 12].map(|digits| byte.repeat(digits / 2));
    groups.join("-")
}

fn rows_of(timeline: &Arc<Timeline>) -> Vec<(String, u64)> {
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
    for writer in [NettraceWriter::v4(), NettraceWriter::v6()] {
        let timeline = read(trace(writer), true);
        let expected = [
            // Of thread 7 at 20, 30, 50 and 60 ms; of thread 8 at 70 and 80 ms.
            (format!("Shop-Requests/RequestStart {}", guid("aa")), 6),
            (format!("Shop-Requests/QueryStart {}", guid("bb")), 1),
            ("[no activity]".to_owned(), 13),
        ];
        let rows = rows_of(&timeline);
        assert_eq!(rows.len(), expected.len(), "{rows:?}");
        for row in &expected {
            assert!(rows.contains(row), "{row:?} in {rows:?}");
        }
    }
}

#[test]
fn without_the_option_or_ids_no_activity_is_known() {
    let timeline = read(trace(NettraceWriter::v4()), false);
    assert_eq!(rows_of(&timeline), [("[no activity]".to_owned(), 20)]);
    let mut writer = NettraceWriter::v4();
    let sampler = writer.event_type(SAMPLER, 0, 0);
    writer.event(sampler, MS, 7, &[0x1000], &[2, 0, 0, 0]);
    let timeline = read(writer.finish(), true);
    assert_eq!(rows_of(&timeline), [("[no activity]".to_owned(), 1)]);
}

#[test]
fn stacks_are_grouped_by_activity() {
    let timeline = read(trace(NettraceWriter::v4()), true);
    let mut profile = timeline.profile(&Filter::default(), None);
    let samples = profile.samples();
    root_by_activity(&mut profile);
    let mut folded = Vec::new();
    let options = TreeOptions {
        threads: false,
        ..TreeOptions::default()
    };
    write_folded(&CallTree::new(&profile, options), &mut folded).unwrap();
    let folded = String::from_utf8(folded).unwrap();
    let mut roots: Vec<(&str, u64)> = folded
        .lines()
        .map(|line| {
            let (stack, weight) = line.rsplit_once(' ').unwrap();
            let frames: Vec<&str> = stack.split(';').collect();
            assert_eq!(frames.len(), 3, "process, activity and method: {line}");
            (
                frames[1].split(' ').next().unwrap(),
                weight.parse().unwrap(),
            )
        })
        .collect();
    roots.sort();
    let expected = [
        ("Shop-Requests/QueryStart", 1),
        ("Shop-Requests/RequestStart", 6),
        ("[no", 13),
    ];
    assert_eq!(roots, expected);
    assert_eq!(profile.samples(), samples);

    // The same in formats with a time axis; JSON lines keep the frames.
    let granularity = Granularity {
        activities: true,
        ..Granularity::default()
    };
    let (filter, shape) = (Filter::default(), Shape::default());
    let series = Series::new(&timeline, &filter, None, &shape, granularity, None);
    let outermost = |stack| series.resolver.stack(stack).last().unwrap();
    let label = |stack| series.resolver.frame(outermost(stack)).label();
    let within = |label: &str| label.contains("RequestStart") as usize;
    let requests: usize = series
        .samples
        .iter()
        .map(|it| within(label(it.stack)))
        .sum();
    assert_eq!((series.samples.len(), requests), (20, 6));
    let mut lines = Vec::new();
    write_json_lines(
        &timeline,
        &filter,
        None,
        &shape,
        JsonStacks::Inline,
        None,
        &mut lines,
    )
    .unwrap();
    let lines = String::from_utf8(lines).unwrap();
    let id = format!(r#""activity_id":"{}""#, guid("aa"));
    assert_eq!(lines.lines().filter(|line| line.contains(&id)).count(), 6);
    assert_eq!(lines.matches("activity_id").count(), 7);
    assert!(!lines.contains("RequestStart"));
}

/// Events of an .etl, whose headers state activities and opcodes.
#[test]
fn headers_of_etl_events_state_activities() {
    const SHOP: [u8; 16] = etl::guid(0x5107_0001, 0x1111, 0x2222, 0x3333_4444_5555_6666);
    const RELATED: u16 = 1;
    let mut options = Options::from(SampleSelection::Profilers);
    options.activity_ids = true;
    let mut w = with_process(FileOptions::default());
    w.thread(At::ns(2), Op::DCStart, PID, TID + 1).unwrap();
    // Milliseconds, thread, id and opcode, activity and related activity.
    let rows = [
        (12, TID, (1, 1), A, 0),
        (32, TID, (3, 1), B, A),
        (42, TID, (5, 0), B, 0),
        (62, TID, (2, 2), A, 0),
        (64, TID + 1, (5, 0), A, 0),
        (84, TID + 1, (5, 0), A, 0),
    ];
    let mut rows = rows.into_iter().peekable();
    for ms in 0..100 {
        while let Some((at, thread, (id, opcode), activity, related)) =
            rows.next_if(|row| row.0 == ms)
        {
            let related = [related; 16];
            let event = Event {
                provider: SHOP,
                id,
                opcode,
                activity: [activity; 16],
                extended: &[(RELATED, &related)],
                ..Event::default()
            };
            w.event(At::ms(at).pid(PID).tid(thread), &event).unwrap();
        }
        if ms % 10 == 0 {
            for thread in [TID, TID + 1] {
                w.sample(At::ms(ms), APP + 0x10, thread).unwrap();
            }
        }
    }
    let file = w.finish().unwrap();
    let reader = EtlReader::new(file.as_slice(), Default::default()).unwrap();
    let mut session = Session::new(options);
    chronosym::source::etl::read(reader, &mut session).expect("a trace");
    let rows = rows_of(&session.finish());
    let count = |id: &str| {
        let of = rows.iter().filter(|row| row.0.contains(&guid(id)));
        of.map(|row| row.1).sum::<u64>()
    };
    // Of A at 20 and 30 ms, since the start of B states it, and on the other thread at 70 and 80.
    assert_eq!((count("aa"), count("bb")), (4, 1), "{rows:?}");
    assert_eq!(rows.iter().map(|row| row.1).sum::<u64>(), 20);
}

/// A method starts a request on thread 7 and awaits; thread 8 resumes it. Every event but the one
/// that resumes states the activity.
#[test]
fn resumed_tasks_carry_their_activity() {
    const TASKS: &str = "System.Threading.Tasks.TplEventSource";
    let history = |resumed: i32, then: u8| {
        let mut writer = NettraceWriter::v4();
        let mut spec = TypeSpec::new("Shop-Requests", 1, 0);
        spec.name = "RequestStart".to_owned();
        let start = writer.define(spec);
        let [begin, wait, work, end] = [14, 10, 17, 18].map(|id| writer.event_type(TASKS, id, 0));
        let sampler = writer.event_type(SAMPLER, 0, 0);
        let ints = |ints: &[i32]| {
            ints.iter()
                .flat_map(|n| n.to_le_bytes())
                .collect::<Vec<u8>>()
        };
        // The first of these is the operation of an async method, which waits on.
        let rows = [
            (10, 7, start, A, vec![]),
            (
                20,
                7,
                begin,
                A,
                [&ints(&[3])[..], &[0, 0], &[0; 8]].concat(),
            ),
            (22, 7, wait, A, ints(&[1, 0, 2, 1])),
            (40, 8, work, 0, ints(&[resumed, 2])),
            (70, 8, wait, then, ints(&[1, 0, 4, 1])),
            (72, 8, end, 0, ints(&[2])),
        ];
        let mut rows = rows.into_iter().peekable();
        for ms in 0..100 {
            while let Some((_, thread, event_type, id, payload)) = rows.next_if(|row| row.0 == ms) {
                let mut event = EventSpec::new(event_type, ms * MS, thread).payload(&payload);
                event.activity = [id; 16];
                writer.record(&event);
            }
            if ms % 10 == 5 {
                writer.event(sampler, ms * MS, 8, &[0x1000], &[2, 0, 0, 0]);
            }
        }
        let rows = rows_of(&read(writer.finish(), true));
        let named = rows.iter().filter(|row| row.0 != "[no activity]");
        named.map(|row| row.1).sum::<u64>()
    };
    // At 45, 55 and 65 ms.
    assert_eq!(history(3, A), 3);
    // Another task, and a task that was in another activity than the next event states.
    assert_eq!(history(4, A), 0);
    assert_eq!(history(3, B), 0);
}
