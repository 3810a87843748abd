//! Rule 25: compares thread times from the context switches of a perf.data with the recorded
//! schedule.

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

const PID: u32 = 100;
const THREADS: u32 = 5;
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

/// A schedule of two processors, from a random number generator, and the expected times.
#[test]
fn rule_25_threads_have_the_time_of_the_schedule() {
    let mut recording = Recording::new(1);
    let mut seed = 7u64;
    let mut random = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % below
    };
    // The activity of each thread, and since when: running, ready or blocked; unknown at first.
    let mut doing: BTreeMap<u32, (char, u64)> = BTreeMap::new();
    let mut expected: BTreeMap<u64, ThreadTime> = BTreeMap::new();
    let mut off: Vec<(u64, SampleKind, u64, u64)> = Vec::new();
    let mut processors = [0u32; 2];
    let (mut time, mut last) = (1_000u64, 0);
    let mut end = |doing: &mut BTreeMap<u32, (char, u64)>, tid: u32, time: u64, next: char| {
        if tid == 0 {
            return;
        }
        if let Some((state, since)) = doing.insert(tid, (next, time)) {
            let (ns, of) = (time - since, expected.entry(tid.into()).or_default());
            match state {
                'r' => of.on_cpu_ns += ns,
                'b' => of.blocked_ns += ns,
                _ => of.runnable_ns += ns,
            }
            match state {
                'b' => off.push((tid.into(), SampleKind::Blocked, since - 1, ns)),
                'w' => off.push((tid.into(), SampleKind::Runnable, since - 1, ns)),
                _ => {}
            }
        }
    };
    for _ in 0..2_000 {
        time += 1 + random(900);
        let tid = PID + random(THREADS.into()) as u32;
        let cpu = random(2) as usize;
        match doing.get(&tid).map(|it| it.0) {
            Some('b') if random(2) == 0 => {
                recording.wake(time, PID, tid);
                last = time;
                end(&mut doing, tid, time, 'w');
            }
            Some('w') | None => {
                let (from, preempted) = (processors[cpu], random(3) == 0);
                let state = if preempted { 0x100 } else { 1 + random(2) };
                recording.switch(time, from, state, tid);
                last = time;
                end(&mut doing, from, time, if preempted { 'w' } else { 'b' });
                end(&mut doing, tid, time, 'r');
                processors[cpu] = tid;
            }
            _ => {}
        }
    }
    for tid in PID..PID + THREADS {
        end(&mut doing, tid, last, 'e');
    }
    // Time 0 is that of the first record.
    off.retain(|&(.., ns)| ns > 0);
    off.sort();
    let timeline = recording.timeline();
    assert_eq!(times(&timeline), expected);
    assert_eq!(intervals(&timeline), off);
    assert!(off.len() > 500, "{}", off.len());
    assert!(
        timeline.diagnostics().is_empty(),
        "{:?}",
        timeline.diagnostics()
    );
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
