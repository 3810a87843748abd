//! Rule 25: compares thread times from the context switches of a perf.data, an .etl and an LTTng
//! trace with the schedule that was recorded.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::sync::Arc;

use chronosym::source::EventStream;
use chronosym::source::perf::PerfStream;
use chronosym::{
    Activity, ActivityFilter, DiagnosticKind, Filter, Options, SampleKind, Session, ThreadTime,
    Timeline, Weight,
};
use chronosym_support::perf::{PerfAttr, PerfWriter};
use chronosym_support::schedule::{Doing, FIRST as PID, Schedule, Step, THREADS};

/// `PERF_SAMPLE_*`: instruction pointer, thread, time, call chain, processor, period, raw,
/// identifier.
const SAMPLE_TYPE: u64 = 0x1a7 | 1 << 10 | 1 << 16;
const SWITCH_OUT: u16 = 1 << 13;
const PREEMPT: u16 = 1 << 14;

/// A recording of the scheduler's tracepoints, and of a clock.
struct Recording(PerfWriter);

impl Recording {
    fn new(switch_period: u64) -> Self {
        let attr = |id: u64, kind, config, period| PerfAttr {
            kind,
            config,
            period,
            sample_type: SAMPLE_TYPE,
            ids: vec![id],
            ..PerfAttr::default()
        };
        let mut writer = PerfWriter::new(attr(1, 1, 0, 1_000_000));
        writer.attr(attr(2, 2, 311, switch_period));
        writer.attr(attr(3, 2, 312, 1));
        writer.name_events(&["cpu-clock", "sched:sched_switch", "sched:sched_wakeup"]);
        writer.comm(1, PID, PID, "app");
        for tid in PID + 1..PID + THREADS {
            writer.fork(1, PID, PID, tid);
        }
        Recording(writer)
    }

    /// Adds a sample of event `id` on a thread with one frame.
    fn sample(&mut self, id: u64, time: u64, tid: u32, raw: &[u8]) {
        let ip = 0x1000 * u64::from(tid);
        let body = self.0.body().u64(id).u64(ip).u32(PID).u32(tid).u64(time);
        let body = body.u32(0).u32(0).u64(1).u64(2).u64(-512i64 as u64).u64(ip);
        let body = body.u32(raw.len() as u32).raw(raw);
        self.0.record(9, 2, body);
    }

    fn switch(&mut self, time: u64, from: u32, state: u64, to: u32) {
        let mut raw = vec![0; 68];
        raw[24..28].copy_from_slice(&from.to_le_bytes());
        raw[32..40].copy_from_slice(&state.to_le_bytes());
        raw[56..60].copy_from_slice(&to.to_le_bytes());
        self.sample(2, time, from, &raw);
    }

    fn wake(&mut self, time: u64, by: u32, tid: u32) {
        let mut raw = vec![0; 36];
        raw[24..28].copy_from_slice(&tid.to_le_bytes());
        self.sample(3, time, by, &raw);
    }

    /// A record of `--switch-events`.
    fn switch_record(&mut self, time: u64, tid: u32, flags: u16) {
        let body = self.0.body().u32(PID).u32(tid).words(&[time, 0, 1]);
        self.0.record(14, flags, body);
    }

    fn timeline(&self) -> Arc<Timeline> {
        let mut session = Session::new({
            let mut options = Options::default();
            options.switches = true;
            options
        });
        let file = Cursor::new(self.0.file());
        let mut stream = PerfStream::new(file, Default::default()).expect("a perf.data");
        stream.read_into(&mut session).expect("its records");
        session.finish()
    }
}

fn times(timeline: &Timeline) -> BTreeMap<u64, ThreadTime> {
    let times = timeline.thread_times().iter();
    let of = |&(thread, time): &(_, ThreadTime)| {
        let view = timeline.thread_view(thread).expect("a thread");
        (view.tid, time)
    };
    times.map(of).collect()
}

/// The intervals in which threads were off the processors: (thread, kind, start, length).
fn intervals(timeline: &Timeline) -> Vec<(u64, SampleKind, u64, u64)> {
    let mut filter = Filter::default();
    filter.activity = Some(ActivityFilter::All);
    let mut found = Vec::new();
    timeline.for_each_weighed_sample(&filter, |sample| {
        let view = timeline.thread_view(sample.class.thread).expect("a thread");
        let activity = timeline.activity(&sample).activity;
        let expected = match sample.class.kind {
            SampleKind::Blocked => Activity::Blocked,
            SampleKind::Runnable => Activity::Runnable,
            _ => Activity::OnCpu,
        };
        assert_eq!(activity, expected);
        if let (true, Weight::Ns(ns)) = (sample.class.kind.is_switched(), sample.weight) {
            let addresses: Vec<u64> = timeline.stacks().addresses(sample.class.stack).collect();
            assert_eq!(
                addresses,
                [0x1000 * view.tid],
                "the stack of its own switch"
            );
            found.push((view.tid, sample.class.kind, sample.time_ns, ns));
        }
    });
    found.sort();
    found
}

/// The expected times of threads.
fn expected_times(schedule: &Schedule) -> BTreeMap<u64, ThreadTime> {
    let times = schedule.times().into_iter();
    let time = |(tid, [on_cpu, runnable, blocked]): (u32, [u64; 3])| {
        let mut time = ThreadTime::default();
        (time.on_cpu_ns, time.runnable_ns, time.blocked_ns) = (on_cpu, runnable, blocked);
        (u64::from(tid), time)
    };
    times.map(time).collect()
}

/// The expected intervals off the processors, in ns since the first step.
fn expected_intervals(schedule: &Schedule, origin: u64) -> Vec<(u64, SampleKind, u64, u64)> {
    let intervals = schedule.intervals.iter();
    let off = |&(tid, doing, since, ns): &(u32, Doing, u64, u64)| {
        let kind = match doing {
            Doing::Running => return None,
            Doing::Ready => SampleKind::Runnable,
            Doing::Waiting => SampleKind::Blocked,
        };
        Some((tid.into(), kind, since - origin, ns))
    };
    let mut off: Vec<_> = intervals.filter_map(off).collect();
    off.sort();
    off
}

/// The lengths of the waits of one thread, by the thread that ended them: number and ns.
fn wakers(timeline: &Arc<Timeline>, waiting: u32) -> BTreeMap<u64, (u64, u64)> {
    let mut filter = Filter::default();
    filter.tid = Some(waiting.into());
    let mut all = 0;
    let wakers = timeline.wakers(&filter, None, |resolver, stack| {
        let frame = resolver.frame(resolver.leaf(stack));
        assert_eq!(frame.address, 0x1000 * u64::from(waiting), "its wait");
        all += 1;
        true
    });
    assert_eq!(wakers.samples(), all);
    let mut sums = BTreeMap::new();
    for entry in &wakers.entries {
        let view = timeline.thread_view(entry.thread).expect("a thread");
        let frame = wakers.resolver.frame(wakers.resolver.leaf(entry.stack));
        assert_eq!(frame.address, 0x1000 * view.tid, "the waker's stack");
        let of = sums.entry(view.tid).or_insert((0, 0));
        *of = (of.0 + entry.samples, of.1 + entry.time_ns);
    }
    sums
}

/// The expected ones, of waits that started before a time.
fn expected_wakers(schedule: &Schedule, waiting: u32, before: u64) -> BTreeMap<u64, (u64, u64)> {
    let mut sums = BTreeMap::new();
    for (by, thread, since, ns) in schedule.woken() {
        if thread == waiting && since < before {
            let of = sums.entry(u64::from(by)).or_insert((0, 0));
            *of = (of.0 + 1, of.1 + ns);
        }
    }
    sums
}

/// A schedule of two processors, and the expected times.
#[test]
fn rule_25_threads_have_the_time_of_the_schedule() {
    let mut recording = Recording::new(1);
    let schedule = Schedule::random(7, 2_000);
    for &(time, step) in &schedule.steps {
        match step {
            Step::Switch {
                from,
                preempted,
                to,
                ..
            } => {
                let waits = 1 + time % 2;
                recording.switch(time, from, if preempted { 0x100 } else { waits }, to);
            }
            Step::Wake { by, thread, .. } => recording.wake(time, by, thread),
        }
    }
    let timeline = recording.timeline();
    // Time 0 is that of the first record.
    let off = expected_intervals(&schedule, 1);
    assert_eq!(times(&timeline), expected_times(&schedule));
    assert_eq!(intervals(&timeline), off);
    assert!(off.len() > 500, "{}", off.len());
    for tid in PID..PID + THREADS {
        let expected = expected_wakers(&schedule, tid, u64::MAX);
        assert!(expected.len() > 2, "{expected:?}");
        assert_eq!(wakers(&timeline, tid), expected);
    }
    assert!(
        timeline.diagnostics().is_empty(),
        "{:?}",
        timeline.diagnostics()
    );
}

/// The same schedule as Windows records it: the stack is that of the thread that returns.
mod etl {
    use chronosym_support::etl::{
        At, EtlWriter, Image, Op, Options as FileOptions, Process, Stack,
    };
    use chronosym_support::random::Random;

    use super::*;

    type Writer = EtlWriter<Vec<u8>>;

    /// A trace of one process. Its threads are listed at the start, or only at the end.
    fn with_threads(action: Op, at: At, w: &mut Writer) {
        let process = Process {
            pid: PID,
            image: "app.exe",
            command_line: "app.exe",
            ..Process::default()
        };
        w.process(at, action, &process).expect("memory");
        for tid in PID..PID + THREADS {
            w.thread(at, action, PID, tid).expect("memory");
        }
        let image = Image {
            base: 0x10_0000,
            size: 0x10_0000,
            pid: PID,
            path: r"\Device\HarddiskVolume2\bin\app.exe",
            ..Image::default()
        };
        w.image(at, action, &image).expect("memory");
    }

    fn writer() -> Writer {
        let options = FileOptions {
            cpus: 2,
            perf_freq: 1_000_000_000,
            ..FileOptions::default()
        };
        EtlWriter::new(Vec::new(), options).expect("memory")
    }

    fn at(time: u64, cpu: u32) -> At {
        At::ns(time as i64).cpu(cpu as u16)
    }

    /// Writes the stack of a thread for the event before.
    fn stack(w: &mut Writer, time: u64, cpu: u32, tid: u32) {
        let stack = Stack {
            event: at(time, cpu),
            pid: PID,
            tid,
            addresses: &[0x1000 * u64::from(tid)],
        };
        w.stack(at(time, cpu), &stack).expect("memory");
    }

    /// Writes a switch and the stack of the thread that comes.
    fn switch(w: &mut Writer, time: u64, cpu: u32, from: u32, state: u8, to: u32) {
        w.cswitch_from(at(time, cpu), to, from, state)
            .expect("memory");
        if to != 0 {
            stack(w, time, cpu, to);
        }
    }

    fn write(schedule: &Schedule, w: &mut Writer) {
        for &(time, step) in &schedule.steps {
            match step {
                Step::Switch {
                    cpu,
                    from,
                    preempted,
                    to,
                } => {
                    let state = match (preempted, time % 4) {
                        (true, 0) => 7,
                        (true, _) => 1,
                        (false, _) => 5,
                    };
                    switch(w, time, cpu, from, state, to);
                }
                Step::Wake { cpu, by, thread } => {
                    w.ready_thread(at(time, cpu), thread).expect("memory");
                    stack(w, time, cpu, by);
                }
            }
        }
    }

    fn read(w: Writer) -> Arc<Timeline> {
        let mut options = Options::default();
        options.switches = true;
        let mut session = Session::new(options);
        let file = w.finish().expect("memory");
        let reader = chronosym_etl::Reader::new(file.as_slice(), Default::default());
        chronosym::source::etl::read(reader.expect("a trace"), &mut session).expect("its records");
        session.finish()
    }

    /// The time at which each thread returned last.
    fn last_run(schedule: &Schedule) -> BTreeMap<u64, u64> {
        let mut last_run = BTreeMap::new();
        for &(time, step) in &schedule.steps {
            if let Step::Switch { to, .. } = step {
                last_run.insert(u64::from(to), time);
            }
        }
        last_run
    }

    /// The intervals that end with a switch to the thread: others have no stack.
    fn returned(schedule: &Schedule) -> Vec<(u64, SampleKind, u64, u64)> {
        let last_run = last_run(schedule);
        let mut off = expected_intervals(schedule, 0);
        off.retain(|&(tid, _, since, _)| since < last_run[&tid]);
        off
    }

    #[test]
    fn rule_25_cswitch_is_a_switch() {
        let schedule = Schedule::random(11, 2_000);
        let mut w = writer();
        with_threads(Op::DCStart, at(1, 0), &mut w);
        write(&schedule, &mut w);
        let timeline = read(w);
        assert_eq!(times(&timeline), expected_times(&schedule));
        let off = returned(&schedule);
        assert_eq!(intervals(&timeline), off);
        assert!(off.len() > 500, "{}", off.len());
        let last_run = last_run(&schedule);
        for tid in PID..PID + THREADS {
            let expected = expected_wakers(&schedule, tid, last_run[&tid.into()]);
            assert!(expected.len() > 2, "{expected:?}");
            assert_eq!(wakers(&timeline, tid), expected);
        }
        assert!(
            timeline.diagnostics().is_empty(),
            "{:?}",
            timeline.diagnostics()
        );
    }

    /// A circular recording lists threads only at its end.
    #[test]
    fn rule_25_threads_may_be_listed_at_the_end() {
        let schedule = Schedule::random(13, 500);
        let mut w = writer();
        write(&schedule, &mut w);
        let end = schedule.steps.last().expect("steps").0;
        with_threads(Op::DCStop, at(end, 0), &mut w);
        let timeline = read(w);
        assert_eq!(times(&timeline), expected_times(&schedule));
        assert_eq!(intervals(&timeline), returned(&schedule));
    }

    /// A thread leaves that never came: switches before are missing, and the time around them is
    /// unknown.
    #[test]
    fn rule_25_missing_switches_are_counted() {
        let mut w = writer();
        with_threads(Op::DCStart, at(1, 0), &mut w);
        let [a, b, c] = [PID, PID + 1, PID + 2];
        switch(&mut w, 1_000, 0, 0, 2, a);
        switch(&mut w, 2_000, 0, a, 5, b);
        // Here, `b` leaves for `c` and `a` returns.
        switch(&mut w, 5_000, 0, a, 5, c);
        switch(&mut w, 6_000, 0, c, 5, a);
        switch(&mut w, 7_000, 0, a, 4, 0);
        let timeline = read(w);
        assert_eq!(
            intervals(&timeline),
            [(a.into(), SampleKind::Blocked, 5_000, 1_000)]
        );
        let times = times(&timeline);
        let on_cpu = |tid: u32| times.get(&tid.into()).map(|it| it.on_cpu_ns);
        assert_eq!(on_cpu(a), Some(1_000 + 1_000));
        assert_eq!((on_cpu(b), on_cpu(c)), (None, Some(1_000)));
        let diagnostics = timeline.diagnostics();
        let unpaired = diagnostics
            .iter()
            .find(|it| it.to_string().contains("context switches"));
        // The wait of `a`, and the time of `b`.
        let unpaired = unpaired.expect("a diagnostic").to_string();
        assert!(unpaired.starts_with("2 "), "{unpaired}");
    }

    /// Whatever a file states, no thread has more time than the recording.
    #[test]
    fn rule_25_damaged_switches_have_no_doubled_time() {
        let mut w = writer();
        let schedule = Schedule::random(23, 300);
        with_threads(Op::DCStart, at(1, 0), &mut w);
        write(&schedule, &mut w);
        let file = w.finish().expect("memory");
        let mut random = Random::new(1);
        // Not in the header of the file, and not where buffers are empty.
        let is_filler = |&at: &usize| matches!(file[at], 0 | 0xff);
        let places = (0x400..file.len()).filter(|at| !is_filler(at));
        let places: Vec<usize> = places.collect();
        let (mut read_files, mut changed) = (0, 0);
        for _ in 0..200 {
            let mut damaged = file.clone();
            for _ in 0..1 + random.below(40) {
                damaged[places[random.index(places.len())]] = random.below(256) as u8;
            }
            let reader = chronosym_etl::Reader::new(damaged.as_slice(), Default::default());
            let Ok(reader) = reader else { continue };
            let mut options = Options::default();
            options.switches = true;
            let mut session = Session::new(options);
            if chronosym::source::etl::read(reader, &mut session).is_err() {
                continue;
            }
            let timeline = session.finish();
            read_files += 1;
            changed += usize::from(times(&timeline) != expected_times(&schedule));
            let duration = u128::from(timeline.facts().duration_ns);
            for (thread, time) in timeline.thread_times() {
                let times = [time.on_cpu_ns, time.runnable_ns, time.blocked_ns];
                let sum: u128 = times.into_iter().map(u128::from).sum();
                assert!(sum <= duration, "{thread:?}: {time:?} of {duration}");
            }
            let mut filter = Filter::default();
            filter.activity = Some(ActivityFilter::All);
            let profile = timeline.profile(&filter, None);
            let wakers = timeline.wakers(&filter, None, |_, _| true);
            assert!(wakers.time_ns() <= profile.time_ns().or(Some(u64::MAX)));
        }
        assert!(read_files > 100 && changed > 50, "{read_files} {changed}");
    }

    /// Without a request, switches are only counted.
    #[test]
    fn rule_25_switches_need_a_request() {
        let schedule = Schedule::random(17, 100);
        let mut w = writer();
        with_threads(Op::DCStart, at(1, 0), &mut w);
        write(&schedule, &mut w);
        let mut session = Session::new(Options::default());
        let file = w.finish().expect("memory");
        let reader = chronosym_etl::Reader::new(file.as_slice(), Default::default());
        chronosym::source::etl::read(reader.expect("a trace"), &mut session).expect("its records");
        let timeline = session.finish();
        assert!(timeline.thread_times().is_empty());
        assert!(timeline.samples().is_empty());
    }
}

/// The same schedule as LTTng records it.
mod ctf {
    use chronosym::{Input, Opener};
    use chronosym_support::ctf::{CtfEvent, CtfLayout, CtfTrace, CtfType, CtfValue};

    use super::*;

    #[test]
    fn rule_25_lttng_records_switches() {
        let schedule = Schedule::random(19, 1_000);
        let layout = CtfLayout {
            is_kernel: true,
            ..CtfLayout::default()
        };
        let tid = CtfType::Signed(32);
        let context = [
            ("pid", tid),
            ("tid", tid),
            ("procname", CtfType::Chars(17)),
            ("callstack_kernel", CtfType::Words),
        ];
        let mut trace = CtfTrace::new(layout, &context);
        let state = trace.event(
            "lttng_statedump_process_state",
            &[("tid", tid), ("pid", tid), ("name", CtfType::Chars(16))],
        );
        let switch = trace.event(
            "sched_switch",
            &[
                ("prev_comm", CtfType::Chars(16)),
                ("prev_tid", tid),
                ("prev_state", CtfType::Signed(64)),
                ("next_tid", tid),
            ],
        );
        let wakeup = trace.event("sched_wakeup", &[("tid", tid)]);
        let number = |number: u32| CtfValue::Number(number.into());
        let stacks: BTreeMap<u32, [u32; 1]> = (PID..PID + THREADS)
            .map(|tid| (tid, [0x1000 * tid]))
            .collect();
        let on = |tid: u32| {
            let (pid, stack) = match stacks.get(&tid) {
                Some(stack) => (PID, &stack[..]),
                None => (0, &[][..]),
            };
            vec![
                number(pid),
                number(tid),
                CtfValue::Text("app"),
                CtfValue::Words(stack),
            ]
        };
        let mut events = Vec::new();
        for tid in PID..PID + THREADS {
            events.push(CtfEvent {
                time: 1,
                id: state,
                context: on(1),
                fields: vec![number(tid), number(PID), CtfValue::Text("app")],
            });
        }
        for &(time, step) in &schedule.steps {
            events.push(match step {
                Step::Switch {
                    from,
                    preempted,
                    to,
                    ..
                } => {
                    let state = if preempted { 0 } else { 1 };
                    let name = CtfValue::Text("app");
                    CtfEvent {
                        time,
                        id: switch,
                        context: on(from),
                        fields: vec![name, number(from), number(state), number(to)],
                    }
                }
                Step::Wake { by, thread, .. } => CtfEvent {
                    time,
                    id: wakeup,
                    context: on(by),
                    fields: vec![number(thread)],
                },
            });
        }
        let files = [
            ("metadata", trace.metadata()),
            ("channel0_0", trace.packet(0, 0, 0, &events)),
        ];
        let inputs = files.map(|(name, bytes)| Input::stream(name, Cursor::new(bytes)));
        let mut options = Options::default();
        options.switches = true;
        let opened = Opener::new().open(inputs).expect("a trace");
        let (timeline, diagnostics) = opened.timeline(options).expect("its events");
        assert!(diagnostics.list.is_empty(), "{:?}", diagnostics.list);
        assert_eq!(times(&timeline), expected_times(&schedule));
        assert_eq!(intervals(&timeline), expected_intervals(&schedule, 1));
        // A wake-up by the idle thread has no stack here.
        let mut expected = expected_wakers(&schedule, PID, u64::MAX);
        expected.remove(&0);
        assert_eq!(wakers(&timeline, PID), expected);
    }
}

#[test]
fn rule_25_a_record_repeats_a_tracepoint() {
    let mut recording = Recording::new(1);
    recording.switch_record(1_001, PID, 0);
    recording.switch(5_001, PID, 1, 0);
    recording.switch_record(5_002, PID, SWITCH_OUT);
    recording.switch(9_001, 0, 0, PID);
    recording.switch_record(9_002, PID, 0);
    recording.switch_record(12_001, PID, SWITCH_OUT | PREEMPT);
    recording.switch_record(12_501, PID, 0);
    let timeline = recording.timeline();
    assert_eq!(
        intervals(&timeline),
        [(PID.into(), SampleKind::Blocked, 5_000, 4_000)]
    );
    let time = times(&timeline)[&PID.into()];
    assert_eq!((time.on_cpu_ns, time.runnable_ns), (7_000, 500));
    assert!(timeline.diagnostics().is_empty());
}

/// With a frequency, only some switches are there: they give stacks to records, and no time.
#[test]
fn rule_25_sampled_tracepoints_have_no_time() {
    let mut recording = Recording::new(3);
    recording.switch(5_001, PID, 1, 0);
    recording.switch(9_001, 0, 0, PID);
    assert_eq!(times(&recording.timeline()), BTreeMap::new());
    recording.switch_record(10_001, PID, 0);
    recording.switch(15_001, PID, 1, 0);
    recording.switch_record(15_002, PID, SWITCH_OUT);
    recording.switch_record(20_002, PID, 0);
    let timeline = recording.timeline();
    assert_eq!(
        intervals(&timeline),
        [(PID.into(), SampleKind::Blocked, 15_001, 5_000)]
    );
}

/// Without switches into the threads, it is unknown when waits end.
#[test]
fn rule_25_switches_without_counterpart_are_counted() {
    let mut recording = Recording::new(1);
    for time in [5_001, 9_001, 15_001] {
        recording.switch(time, PID, 1, 0);
    }
    recording.sample(1, 20_001, PID, &[]);
    let timeline = recording.timeline();
    // The last wait may last until the end: no later switch contradicts it.
    assert_eq!(
        intervals(&timeline),
        [(PID.into(), SampleKind::Blocked, 15_000, 5_000)]
    );
    let diagnostics = timeline.diagnostics();
    let unpaired = diagnostics
        .iter()
        .find(|it| it.to_string().contains("context switches"));
    let unpaired = unpaired.expect("a diagnostic");
    assert_eq!(unpaired.kind, DiagnosticKind::Unused);
    assert!(unpaired.to_string().starts_with("2 "), "{unpaired}");
}
