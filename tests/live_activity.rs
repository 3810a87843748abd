//! What threads were doing, according to wall-clock samples and to the kernel: records
//! `testdata/clr31/lives`, whose threads spin and wait in known ways.
//!
//! `CHRONOSYM_DOTNET` and `CHRONOSYM_DOTNET_8` name `dotnet` hosts; of the programs in
//! `CHRONOSYM_SINGLE_FILES`, Sarif.Multitool runs it within itself (startup hook).
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use chronosym::runtime::SuspensionTotals;
use chronosym::{Activity, Filter, Input, Opener, Options, Timeline, WallFlag, Weight};

/// How long the threads live, ms.
const LIFE: &str = "3000";
const CONFIG: &str = "Microsoft-Windows-DotNETRuntime:39:4,Microsoft-Windows-DotNETRuntimeRundown:39:5,Microsoft-DotNETCore-SampleProfiler:0:5";

/// What a thread states of itself: times in ns.
struct Truth {
    tid: u64,
    name: String,
    /// On a processor, and ready for one.
    busy: f64,
    duration: f64,
}

/// Records the program in a runtime; returns its threads and the trace.
fn record(program: &Path, is_host: bool) -> (Vec<Truth>, Arc<Timeline>) {
    let folder = tempfile::tempdir().unwrap();
    let lives = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/clr31/lives/Lives.dll");
    let mut command = Command::new(program);
    match is_host {
        true => command.arg(&lives).arg(LIFE),
        false => command
            .env("DOTNET_STARTUP_HOOKS", lives.canonicalize().unwrap())
            .env("LIVES_MS", LIFE),
    };
    // .NET Core 3.1 wants a folder, later runtimes a file.
    let is_old = program.to_string_lossy().contains("dotnetcore2");
    let output = match is_old {
        true => folder.path().to_owned(),
        false => folder.path().join("lives.nettrace"),
    };
    let ran = command
        .env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1")
        .env("DOTNET_ROLL_FORWARD", "Major")
        .env("COMPlus_EnableEventPipe", "1")
        .env("COMPlus_EventPipeOutputPath", output)
        .env("COMPlus_EventPipeConfig", CONFIG)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let truth = |line: &str| {
        let mut words = line.split(' ');
        let (tid, name) = (words.next()?.parse().ok()?, words.next()?.to_owned());
        let [cpu, ready, duration]: [f64; 3] = [(); 3].map(|()| {
            let number = words.next().and_then(|word| word.parse().ok());
            number.unwrap_or(f64::NAN)
        });
        Some(Truth {
            tid,
            name,
            busy: cpu + ready,
            duration,
        })
    };
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    let threads: Vec<Truth> = text.lines().filter_map(truth).collect();
    assert_eq!(threads.len(), 9, "{text}");
    let is_trace = |path: &PathBuf| path.extension().is_some_and(|it| it == "nettrace");
    let files = fs::read_dir(folder.path()).unwrap().flatten();
    let mut files = files.map(|file| file.path()).filter(is_trace);
    let trace = files.next().expect("the runtime wrote a trace");
    let mut options = Options::default();
    options.markers = 1_000_000;
    let recording = Opener::new().open([Input::file(&trace)]).unwrap();
    (threads, recording.timeline(options).unwrap().0)
}

/// Time in ns and samples of a thread by activity.
#[derive(Clone, Copy, Default)]
struct Times {
    ns: [f64; 4],
    samples: [u64; 4],
}

impl Times {
    fn of(&self, activity: Activity) -> f64 {
        self.ns[activity as usize]
    }
}

fn times(timeline: &Timeline) -> BTreeMap<u64, Times> {
    let mut all: BTreeMap<u64, Times> = BTreeMap::new();
    timeline.for_each_weighed_sample(&Filter::default(), |sample| {
        let tid = timeline.thread_view(sample.class.thread).unwrap().tid;
        let activity = timeline.activity(&sample).activity as usize;
        let of = all.entry(tid).or_default();
        of.samples[activity] += 1;
        if let Weight::Ns(ns) = sample.weight {
            of.ns[activity] += ns as f64;
        }
    });
    all
}

/// Compares the activities of each thread with the kernel's counts.
fn compare(program: &Path, is_host: bool) {
    let (threads, timeline) = record(program, is_host);
    let all = times(&timeline);
    let suspended = SuspensionTotals::of(&timeline, &timeline.markers());
    let by_sampler = suspended.iter().filter(|it| it.by_sampler);
    let suspended = by_sampler.map(|it| it.time_ns).sum::<u64>() as f64;
    let is_trusted = timeline
        .processes()
        .any(|process| timeline.wall_flag(process.index) == Some(WallFlag::Trusted));
    println!(
        "{}: {:.0} ms suspended by the sampler, flag trusted: {is_trusted}",
        program.display(),
        suspended / 1e6
    );
    let longest = threads.iter().fold(0.0, |most, it| it.duration.max(most));
    // Threads are then suspended again before they resume: ticks are late, and flags wrong.
    let is_busy = suspended > 0.3 * longest;
    if is_busy {
        println!("the machine is too busy to compare times");
    }
    for thread in &threads {
        let of = all.get(&thread.tid).copied().unwrap_or_default();
        let [runnable, blocked, unknown] =
            [Activity::Runnable, Activity::Blocked, Activity::Unknown].map(|it| of.of(it));
        let idle = thread.duration - thread.busy;
        let ms = |ns: f64| ns / 1e6;
        let text = format!(
            "{:>6}: kernel busy {:.0} idle {:.0} ms, samples runnable {:.0} blocked {:.0} unknown {:.0} ms",
            thread.name,
            ms(thread.busy),
            ms(idle),
            ms(runnable),
            ms(blocked),
            ms(unknown)
        );
        println!("{text}");
        let tenth = thread.duration / 10.0;
        let sum = runnable + blocked + unknown;
        let is_near = (sum - thread.duration).abs() <= tenth
            // While it samples, the sampler stops what would run.
            && runnable <= thread.busy + suspended + tenth
            && runnable + unknown >= thread.busy - tenth
            && blocked <= idle + tenth
            && blocked + unknown >= idle - suspended - tenth
            && (!is_trusted || unknown <= tenth);
        assert!(is_busy || is_near, "{text}");
        if thread.name == "spin" {
            assert!(runnable > blocked, "{text}");
            continue;
        }
        let samples = of.samples.iter().sum::<u64>();
        let running =
            of.samples[Activity::Runnable as usize] + of.samples[Activity::OnCpu as usize];
        assert!(
            running <= (samples / 100).max(3),
            "{running} of {samples}; {text}"
        );
    }
}

fn variable(name: &str) -> Option<OsString> {
    let value = std::env::var_os(name);
    if value.is_none() {
        println!("{name} is not set");
    }
    value
}

#[test]
fn threads_do_what_the_kernel_counts() {
    for name in ["CHRONOSYM_DOTNET", "CHRONOSYM_DOTNET_8"] {
        if let Some(host) = variable(name) {
            compare(Path::new(&host), true);
        }
    }
    let single = variable("CHRONOSYM_SINGLE_FILES").unwrap_or_default();
    let mut files = std::env::split_paths(&single);
    if let Some(program) = files.find(|file| file.ends_with("Sarif.Multitool")) {
        compare(&program, false);
    }
}
