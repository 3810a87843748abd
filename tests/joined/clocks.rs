//! Recordings of one computer whose clocks are joined.

use std::io::Cursor;

use chronosym::{
    Activity, ActivityEvidence, ActivityFilter, Certainty, ClockMatch, Filter, Input, OpenError,
    Opener, Resolver, SampleKind, SampleSelection,
};
use chronosym_support::etl::{At as EtlAt, EtlWriter, Op, Options as EtlOptions, Process, Stack};
use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::perf::{PerfAttr, PerfWriter};
use chronosym_support::trace::TraceInfo;

use super::{JIT, PID, SECOND, frame, module, name, open, open_with, profile, runtime, started_at};

#[test]
fn recordings_of_one_clock_are_one_timeline_whichever_began_first() {
    for (began, offset) in [(SECOND - 400, 0), (SECOND + 200, 200)] {
        let mut perf = profile();
        perf.mmap2(SECOND + 700, PID, JIT, 0x1000, 0, "/lib/libover.so");
        perf.sample(SECOND + 900, PID, PID, &[JIT]);
        // In ns since its own start.
        let at = |ns: u64| ns as i64 + SECOND as i64 - began as i64;
        let bodies = [
            ("First", JIT, at(300), None),
            ("Second", JIT, at(500), None),
        ];
        let runtime = runtime(started_at(began), &bodies);
        let files: [(&str, &[u8]); 2] = [("a.nettrace", &runtime), ("perf.data", &perf.file())];
        let (timeline, _) = open_with(Opener::new(), &files).expect("they are of one machine");
        assert!(timeline.facts().recordings.len() > 1);
        let zero = if offset == 0 { 400 } else { 0 };
        let at = |address, ns| name(&timeline, address, ns + zero);
        assert_eq!(at(JIT + 16, 400).as_deref(), Some("N.T.First"));
        assert_eq!(at(JIT + 16, 600).as_deref(), Some("N.T.Second"));
        // A mapping over code ends it, although it was read first.
        assert_eq!(at(JIT + 16, 800), None);
        assert_eq!(
            module(&timeline, PID, JIT + 16, 800 + zero).as_deref(),
            Some("libover")
        );
        assert_eq!(
            module(&timeline, PID, 0x10_0010, 400 + zero).as_deref(),
            Some("libone")
        );
        let clocks: Vec<_> = timeline
            .facts()
            .recordings
            .iter()
            .map(|r| r.clock)
            .collect();
        assert_eq!(clocks, [ClockMatch::Same; 2]);
        assert_eq!(timeline.facts().clock_error_ns, 0);
        assert_eq!(
            frame(&timeline, PID, JIT, 600 + zero).certainty,
            Some(Certainty::Exact)
        );
    }
}

/// A recording of Windows: a process with an image, one sample at 2 ms of an address in no image.
/// It started at 500 s of the performance counter.
fn windows(clock: u32) -> Vec<u8> {
    let options = EtlOptions {
        clock,
        ..EtlOptions::default()
    };
    let mut writer = EtlWriter::new(Vec::new(), options).unwrap();
    let at = EtlAt::ns(1);
    let process = Process {
        pid: PID,
        image: "app.exe",
        command_line: "app.exe",
        ..Process::default()
    };
    writer.process(at, Op::DCStart, &process).unwrap();
    writer.thread(at, Op::DCStart, PID, 7).unwrap();
    let sampled = EtlAt::ms(2);
    writer.sample(sampled, JIT + 0x10, 7).unwrap();
    let stack = Stack {
        event: sampled,
        pid: PID,
        tid: 7,
        addresses: &[JIT + 0x10, JIT + 0x110],
    };
    writer.stack(EtlAt::us(2_001), &stack).unwrap();
    writer.finish().unwrap()
}

#[test]
fn recordings_of_windows_and_of_a_runtime_share_the_performance_counter() {
    const TICKS: i64 = 10_000_000;
    // The .etl began on 2024-01-17 at 21:20:00 UTC; the runtime's recording 1 ms earlier.
    let began_at = |minute| TraceInfo {
        qpc_start: 500 * TICKS - TICKS / 1_000,
        frequency: TICKS as u64,
        process_id: PID,
        start: [2024, 1, 3, 17, 21, minute, 59, 999],
        ..TraceInfo::default()
    };
    let bodies = [
        ("Before", JIT, 100_000, Some(2_900_000)),
        ("During", JIT, 2_950_000, None),
        ("Caller", JIT + 0x100, 50_000, None),
    ];
    let nettrace = runtime(began_at(19), &bodies);
    let files: [(&str, &[u8]); 2] = [("a.etl", &windows(1)), ("a.nettrace", &nettrace)];
    let (timeline, _) = open_with(Opener::new(), &files).expect("they fit");
    assert!(timeline.facts().recordings.len() > 1);
    // 1 ms later on the clock of the .etl.
    assert_eq!(
        name(&timeline, JIT + 0x10, 1_899_900).as_deref(),
        Some("N.T.Before")
    );
    assert_eq!(name(&timeline, JIT + 0x10, 1_949_900), None);
    let mut resolver = Resolver::new(&timeline, None);
    let mut stacks = Vec::new();
    timeline.for_each_sample(&Filter::default(), |class, time| {
        assert_eq!((class.kind, time), (SampleKind::Cpu, 2_000_000));
        let (stack, _) = resolver.resolve(class, time).expect("it has a stack");
        let frames = resolver.stack(stack).map(|id| resolver.frame(id));
        stacks.push(
            frames
                .map(|frame| frame.name().map(str::to_owned))
                .collect::<Vec<_>>(),
        );
    });
    let expected = ["N.T.During", "N.T.Caller"].map(|name| Ok(name.to_owned()));
    assert_eq!(stacks, [expected]);
    let recordings = &timeline.facts().recordings;
    let clocks: Vec<_> = recordings
        .iter()
        .map(|it| (it.clock, it.error_ns))
        .collect();
    assert_eq!(clocks, [(ClockMatch::Same, 0), (ClockMatch::Same, 0)]);
    // An .etl that counts the wall's time: to 1 ms.
    let files: [(&str, &[u8]); 2] = [("a.etl", &windows(2)), ("a.nettrace", &nettrace)];
    let timeline = open(&files);
    let second = &timeline.facts().recordings[1];
    assert_eq!(
        (second.clock, second.error_ns),
        (ClockMatch::Wall, 1_000_000)
    );
    let found = frame(&timeline, PID, JIT + 0x10, 2_000_000);
    assert_eq!(found.certainty, Some(Certainty::Inferred));
    // A recording of another boot, and one of another system.
    let other = runtime(began_at(20), &bodies);
    let apart = open_with(
        Opener::new(),
        &[("a.etl", &windows(1)), ("a.nettrace", &other)],
    );
    assert!(matches!(apart, Err(OpenError::DifferentRecordings { .. })));
    let two = open_with(
        Opener::new(),
        &[("a.etl", &windows(1)), ("perf.data", &profile().file())],
    );
    assert!(matches!(two, Err(OpenError::SeveralRecordings { .. })));
}

#[test]
fn ticks_are_used_only_without_perf_samples() {
    let mut perf = profile();
    perf.sample(SECOND + 900, PID, PID, &[JIT]);
    let ticks = |process_id| {
        let info = TraceInfo {
            process_id,
            ..started_at(SECOND)
        };
        let mut writer = NettraceWriter::v4().info(info);
        let tick = writer.event_type("Microsoft-DotNETCore-SampleProfiler", 0, 0);
        for time in 0..10 {
            writer.event(tick, time, 7, &[JIT], &[2, 0, 0, 0]);
        }
        writer.finish()
    };
    let (one, two) = (ticks(PID), ticks(77));
    let joined = open(&[("perf.data", &perf.file()), ("one", &one)]);
    assert_eq!(joined.samples().len(), 1);
    let counted = joined.event_types().iter().filter(|t| t.count == 10);
    assert_eq!(counted.map(|t| t.stacks).collect::<Vec<_>>(), [10]);
    // Two processes of one machine, without a perf.data.
    let both = open(&[("one", &one), ("two", &two)]);
    assert_eq!(both.samples().len(), 20);
    let pids: Vec<_> = both.processes().filter_map(|p| p.pid).collect();
    assert_eq!(pids, [PID, 77]);
    // The ticks can be selected explicitly.
    let ticks = "Microsoft-DotNETCore-SampleProfiler";
    let samples = SampleSelection::Events(vec![chronosym::EventSelector::parse(ticks).unwrap()]);
    let inputs = [("perf.data", perf.file()), ("one", one)];
    let inputs = inputs.map(|(name, bytes)| Input::stream(name, Cursor::new(bytes)));
    let recording = Opener::new().open(inputs).expect("two");
    let (selected, _) = recording.timeline(samples).expect("two");
    assert_eq!(selected.samples().len(), 10);
}

// Rule 22.
#[test]
fn cpu_samples_show_which_ticks_found_a_thread_on_a_processor() {
    const MS: u64 = 1_000_000;
    const TICKS: u64 = 50;
    let mut perf = profile();
    let mut random = 7_u64;
    let mut cpu: Vec<(u32, u64)> = (0..40)
        .map(|_| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (7 + (random >> 40) as u32 % 3, (random >> 33) % (TICKS * MS))
        })
        .collect();
    // A thread of the same id in another process, and the very start and end of a tick.
    cpu.extend([(7, 10 * MS), (8, 21 * MS - 1)]);
    cpu.sort_by_key(|&(_, time)| time);
    for &(tid, time) in &cpu {
        perf.sample(SECOND + time, PID, tid, &[JIT]);
        perf.sample(SECOND + time, 50, tid + 1, &[JIT]);
    }
    let mut writer = NettraceWriter::v4().info(started_at(SECOND));
    let tick = writer.event_type("Microsoft-DotNETCore-SampleProfiler", 0, 0);
    for time in 0..TICKS {
        for thread in [7, 8, 10] {
            writer.event(tick, (time * MS) as i64, thread, &[JIT], &[1, 0, 0, 0]);
        }
    }
    let inputs = [("perf.data", perf.file()), ("one", writer.finish())];
    let inputs = inputs.map(|(name, bytes)| Input::stream(name, Cursor::new(bytes)));
    let selector = chronosym::EventSelector::parse("Microsoft-DotNETCore-SampleProfiler");
    let samples = SampleSelection::Events(selector.into_iter().collect());
    let recording = Opener::new().open(inputs).expect("two");
    let (timeline, _) = recording.timeline(samples).expect("two");
    let mut found = Vec::new();
    timeline.for_each_weighed_sample(&Filter::default(), |sample| {
        let tid = timeline.thread_view(sample.class.thread).unwrap().tid;
        let activity = timeline.activity(&sample);
        let on_cpu = activity.activity == Activity::OnCpu;
        assert_eq!(
            on_cpu,
            activity.evidence == Some(ActivityEvidence::CpuSample)
        );
        found.push((sample.time_ns, tid, on_cpu));
    });
    found.sort_unstable();
    let is_on_cpu = |thread: u64, tick: u64| {
        let times = tick * MS..(tick + 1) * MS;
        let mut cpu = cpu.iter();
        cpu.any(|&(tid, time)| u64::from(tid) == thread && times.contains(&time))
    };
    let all = (0..TICKS).flat_map(|tick| [7, 8, 10].map(|thread| (tick, thread)));
    let expected = all.map(|(tick, thread)| (tick * MS, thread, is_on_cpu(thread, tick)));
    let expected: Vec<_> = expected.collect();
    assert_eq!(found, expected);
    let count = expected.iter().filter(|it| it.2).count() as u64;
    assert!(count > 20, "{count}");
    let mut filter = Filter::default();
    filter.activity = Some(ActivityFilter::Only(Activity::OnCpu));
    assert_eq!(timeline.profile(&filter, None).samples(), count);
}

#[test]
fn recordings_that_do_not_belong_together_are_rejected() {
    let mut perf = profile();
    perf.sample(SECOND + 900, PID, PID, &[JIT]);
    let one = runtime(started_at(SECOND), &[]);
    let refusal = |files: &[(&str, &[u8])]| match open_with(Opener::new(), files) {
        Ok(_) => panic!("it is read"),
        Err(error) => error,
    };
    let copies = refusal(&[("a", &one), ("b", &one)]);
    assert!(matches!(copies, OpenError::Copies { .. }), "{copies}");
    let file = perf.file();
    let two = refusal(&[("a", &file), ("b", &file)]);
    assert!(matches!(two, OpenError::SeveralRecordings { .. }), "{two}");
    // By wall time it is 2026; by the clock it would be another boot.
    let mut other = perf.clone();
    let wall = 1_600_000_000 * SECOND;
    let clock = other.body().u32(1).u32(1).words(&[wall, SECOND]);
    other.feature(29, clock.bytes);
    let boot = refusal(&[("a", &other.file()), ("b", &one)]);
    assert!(
        matches!(
            boot,
            OpenError::DifferentRecordings {
                what: "boot time",
                ..
            }
        ),
        "{boot}"
    );
}

// Rule 23.
#[test]
fn an_unknown_clock_is_estimated_and_answers_near_changes_are_not_exact() {
    const AHEAD: u64 = 500_000;
    let attr = PerfAttr {
        flags: 1 << 18,
        ..PerfAttr::default()
    };
    let perf = |threads: bool| {
        let mut perf = PerfWriter::new(attr.clone());
        perf.comm(SECOND, PID, PID, "app");
        if threads {
            perf.fork(SECOND + 90_000 + AHEAD, PID, PID, 7);
            perf.exit(SECOND + 910_000 + AHEAD, PID, 7);
        }
        perf.sample(SECOND + 2_000_000, PID, PID, &[JIT]);
        perf.file()
    };
    let bodies = [
        ("First", JIT, 100_000, None),
        ("Second", JIT, 900_000, None),
    ];
    let runtime = runtime(started_at(SECOND), &bodies);
    let timeline = open(&[("perf.data", &perf(true)), ("a.nettrace", &runtime)]);
    let joined = &timeline.facts().recordings[1];
    assert_eq!(
        (joined.clock, joined.error_ns),
        (ClockMatch::Estimated, 10_000)
    );
    assert_eq!(joined.offset_ns, AHEAD as i64);
    let at = |ns: u64| {
        let frame = frame(&timeline, PID, JIT + 4, ns + AHEAD);
        (frame.name().ok().map(str::to_owned), frame.certainty)
    };
    let first = Some("N.T.First".to_owned());
    let second = Some("N.T.Second".to_owned());
    assert_eq!(at(105_000), (first.clone(), Some(Certainty::Inferred)));
    assert_eq!(at(895_000).0, first);
    assert_eq!(at(905_000), (second.clone(), Some(Certainty::Inferred)));
    assert_eq!(at(950_000), (second, Some(Certainty::Exact)));
    // Without a thread in both recordings, the offset is uncertain.
    let timeline = open(&[("perf.data", &perf(false)), ("a.nettrace", &runtime)]);
    let joined = &timeline.facts().recordings[1];
    assert_eq!(
        (joined.clock, joined.error_ns),
        (ClockMatch::Assumed, SECOND)
    );
    let unsure = frame(&timeline, PID, JIT + 4, 950_000);
    assert_eq!(unsure.certainty, Some(Certainty::Inferred));
}
