//! `record`, with a runtime that is fake.
#![cfg(unix)]

mod common;
mod fake;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Output;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use chronosym::Timeline;
use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::trace::TraceInfo;
use common::{Run, chronosym, run};
use fake::{Fake, reply, unknown_command};

/// What a fake runtime of .NET 8 sends as a recording: nothing but its end for the first session,
/// which lists code.
fn fake(trace: Vec<u8>, rundown: bool) -> Fake {
    fake_of(move || trace.clone(), rundown)
}

fn fake_of(trace: impl Fn() -> Vec<u8> + Clone + Send + 'static, rundown: bool) -> Fake {
    // The request that stops each session, by its id.
    let sessions = Arc::new(Mutex::new(Vec::<Sender<()>>::new()));
    Fake::new(move |(set, id, payload), stream| match (set, id) {
        (4, 0) => reply(stream, 0, &[0; 24]),
        (2, 1) => {
            let stop = sessions.lock().unwrap()[usize::from(payload[0])].clone();
            _ = stop.send(());
            reply(stream, 0, &payload);
        }
        (2, 3) => {
            let (stop, stopped) = channel();
            let mut sessions = sessions.lock().unwrap();
            let session = sessions.len() as u64;
            sessions.push(stop);
            drop(sessions);
            reply(stream, 0, &session.to_le_bytes());
            _ = stream.write_all(&trace());
            // A process that is killed does not wait to be asked.
            if rundown {
                _ = stopped.recv();
            }
        }
        _ => unknown_command(stream),
    })
}

fn trace() -> Vec<u8> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/clr8/known/events.nettrace.zip");
    let mut archive = zip::ZipArchive::new(fs::File::open(path).unwrap()).unwrap();
    let mut bytes = Vec::new();
    let mut entry = archive.by_index(0).unwrap();
    entry.read_to_end(&mut bytes).unwrap();
    bytes
}

fn record(options: &[&str], output: &Path) -> Run {
    let output = output.to_str().unwrap();
    run(&[&["record", "-o", output], options].concat())
}

#[test]
fn a_process_is_recorded_and_reported_by_one_command() {
    let trace = trace();
    let runtime = fake(trace.clone(), true);
    let pid = runtime.pid();
    let out = runtime.path("out.folded");
    let recorded = record(&["--pid", &pid, "--duration", "300ms"], &out);
    assert_eq!(recorded.status, 0, "{}", recorded.stderr);
    assert_eq!(fs::read(out.with_extension("nettrace")).unwrap(), trace);
    assert!(fs::read_to_string(&out).unwrap().contains("Known"));
    let start = runtime.path("out.start.nettrace");
    assert!(!start.exists(), "the recording has its end");
}

#[test]
fn of_a_killed_process_the_list_of_its_code_is_kept() {
    let trace = trace();
    let cut = trace[..trace.len() / 2].to_vec();
    let runtime = fake(cut.clone(), false);
    let pid = runtime.pid();
    let out = runtime.path("out.nettrace");
    let options = ["--pid", &pid, "--no-start-rundown"];
    let recorded = record(&options, &out);
    assert_eq!(recorded.status, 0, "{}", recorded.stderr);
    let said = "the code that ran is not listed at the end";
    assert!(recorded.stderr.contains(said), "{}", recorded.stderr);
    assert_eq!(fs::read(&out).unwrap(), cut);
}

#[test]
fn two_processes_are_recorded_and_joined() {
    let traces = [lossy(70, 0), lossy(71, 1234)];
    let runtimes = traces.clone().map(|trace| fake(trace, true));
    let pids = [0, 1].map(|at| runtimes[at].pid());
    let out = runtimes[0].path("out.folded");
    let both = pids.join(",");
    let options = ["--duration", "1s", "--save-timeline"];
    let recorded = record(&[&["--pid", &both], &options[..]].concat(), &out);
    assert_eq!(recorded.status, 0, "{}", recorded.stderr);
    for (pid, trace) in pids.iter().zip(traces) {
        let file = out.with_file_name(format!("out-{pid}.nettrace"));
        assert_eq!(fs::read(file).unwrap(), trace, "{pid}");
    }
    let folded = fs::read_to_string(&out).unwrap();
    assert!(folded.contains("70") && folded.contains("71"), "{folded}");
    assert!(out.with_extension("chrono").exists());
    // Before the recording ends.
    let lost = format!("out-{}.nettrace: 1,234 events lost so far", pids[1]);
    assert!(recorded.stderr.contains(&lost), "{}", recorded.stderr);
    assert_eq!(recorded.stderr.matches("events lost").count(), 1);
    assert!(
        recorded.stderr.contains("2 recordings"),
        "{}",
        recorded.stderr
    );
}

#[test]
fn a_saved_timeline_states_the_keys_of_processes() {
    let pid = Arc::new(OnceLock::new());
    let own = pid.clone();
    let runtime = fake_of(move || lossy(*own.wait(), 0), true);
    let pid = *pid.get_or_init(|| runtime.pid().parse().unwrap());
    let out = runtime.path("out.nettrace");
    let options = ["--pid", &runtime.pid(), "--duration", "300ms"];
    let recorded = record(&[&options[..], &["--save-timeline"]].concat(), &out);
    assert_eq!(recorded.status, 0, "{}", recorded.stderr);
    let saved = fs::read(out.with_extension("chrono")).unwrap();
    let timeline = Timeline::open(&saved).unwrap();
    let host = timeline.facts().host.clone().unwrap();
    let kernel = |name: &str| fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap();
    assert_eq!(host.name, kernel("hostname").trim());
    assert_eq!(host.boot_id, kernel("random/boot_id").trim());
    let process = timeline.processes().find(|it| it.pid == Some(pid)).unwrap();
    let namespace = fs::metadata("/proc/self/ns/pid").unwrap().ino();
    assert_eq!(process.pid_namespace, Some(namespace));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let age = now.as_nanos() as i64 - process.started_unix_ns.unwrap();
    // The boot time is in whole seconds.
    assert!((-1_000_000_000..60_000_000_000).contains(&age), "{age}");
}

/// A recording in which events were lost before a sequence point.
fn lossy(process_id: u32, lost: u32) -> Vec<u8> {
    let info = TraceInfo {
        process_id,
        ..TraceInfo::default()
    };
    let mut writer = NettraceWriter::v5().info(info);
    let sample = writer.event_type("Microsoft-DotNETCore-SampleProfiler", 0, 0);
    writer.event(sample, 100, 7, &[0x7f00_1010], &[2, 0, 0, 0]);
    writer.lose(7, lost);
    writer.event(sample, 200, 7, &[0x7f00_1010], &[2, 0, 0, 0]);
    writer.sequence_point();
    writer.event(sample, 300, 7, &[0x7f00_1010], &[2, 0, 0, 0]);
    writer.finish()
}

#[test]
fn the_size_is_that_of_all_recordings() {
    let trace = lossy(70, 0);
    let size = trace.len() as u64;
    let runtimes = [fake(trace.clone(), true), fake(trace, true)];
    let pids = [0, 1].map(|at| runtimes[at].pid()).join(",");
    let out = runtimes[0].path("out.nettrace");
    let note = "stopped: --max-size is reached";
    for (max, duration, is_reached) in [(2 * size, "20m", true), (2 * size + 1, "500ms", false)] {
        let max = max.to_string();
        let options = ["--pid", &pids, "--max-size", &max, "--duration", duration];
        let recorded = record(&options, &out);
        assert_eq!(recorded.status, 0, "{}", recorded.stderr);
        assert_eq!(
            recorded.stderr.contains(note),
            is_reached,
            "{}",
            recorded.stderr
        );
    }
}

#[test]
fn a_list_of_code_of_an_earlier_recording_is_not_read() {
    let runtime = fake(lossy(70, 0), false);
    let pid = runtime.pid();
    let out = runtime.path("out.folded");
    let stale = out.with_extension("start.nettrace");
    fs::write(&stale, trace()).unwrap();
    let recorded = record(&["--pid", &pid, "--no-start-rundown"], &out);
    assert_eq!(recorded.status, 0, "{}", recorded.stderr);
    assert!(!stale.exists());
    assert!(!fs::read_to_string(&out).unwrap().contains("Known"));
}

/// Records with a program in place of `perf`.
fn record_with_perf(script: &str, options: &[&str]) -> (Fake, Output) {
    let runtime = fake(trace(), true);
    let perf = runtime.path("perf");
    fs::write(&perf, format!("#!/bin/sh\n{script}")).unwrap();
    fs::set_permissions(&perf, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", runtime.path("").display());
    let recorded = chronosym()
        .args(["record", "--pid", &runtime.pid()])
        .args(["--duration", "300ms", "-o"])
        .arg(runtime.path("out.nettrace"))
        .args(options)
        .env("PATH", path)
        .output()
        .unwrap();
    (runtime, recorded)
}

#[test]
fn perf_runs_beside_the_recording() {
    let script = "file=; for word; do [ \"$last\" = -o ] && file=$word; last=$word; done
                  trap 'echo interrupted >>\"$file\"; exit 0' INT
                  read command; echo \"$@ $command\" >\"$file\"; echo ack; while :; do sleep 0.1; done";
    for (options, calls) in [
        (
            ["--perf=dwarf"],
            "-F 199 --no-buildid-cache --call-graph dwarf,16384",
        ),
        (["--perf=fp"], "-F 999 --no-buildid-cache --call-graph fp"),
    ] {
        let (runtime, recorded) = record_with_perf(script, &options);
        let stderr = String::from_utf8_lossy(&recorded.stderr);
        assert!(recorded.status.success(), "{stderr}");
        let file = runtime.path("out.perf.data");
        let (file, pid) = (file.display(), runtime.pid());
        let expected = format!("record -k mono {calls} -p {pid} -o {file}");
        let expected = format!("{expected} --control fd:0,1 enable\ninterrupted\n");
        assert_eq!(fs::read_to_string(file.to_string()).unwrap(), expected);
    }
}

#[test]
fn perf_that_cannot_record_is_an_error() {
    let (runtime, recorded) = record_with_perf("echo Access denied >&2; exit 255", &["--perf"]);
    let stderr = String::from_utf8_lossy(&recorded.stderr);
    assert_eq!(recorded.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("perf cannot record (exit status: 255)"),
        "{stderr}"
    );
    assert!(stderr.contains("Access denied"), "{stderr}");
    assert!(!runtime.path("out.nettrace").exists());
}

#[test]
fn perf_that_is_missing_is_said() {
    let runtime = fake(trace(), true);
    let recorded = chronosym()
        .args(["record", "--perf=fp", "--pid", &runtime.pid()])
        .arg("-o")
        .arg(runtime.path("out.nettrace"))
        .env("PATH", runtime.path(""))
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&recorded.stderr);
    assert!(
        stderr.contains("perf is not installed: its package is linux-perf"),
        "{stderr}"
    );
}

#[test]
fn a_process_is_watched_until_it_ends() {
    let runtime = fake(trace(), false);
    let pid = runtime.pid();
    let watched = run(&["watch", "--pid", &pid, "--interval", "1ms", "-n", "3"]);
    assert_eq!(watched.status, 0, "{}", watched.stderr);
    let tables = watched.stdout.matches("wall-clock samples of").count();
    assert!(tables > 0, "{}", watched.stdout);
    assert!(watched.stdout.contains("Known!"), "{}", watched.stdout);
    let nobody = run(&["watch"]);
    assert_eq!(nobody.status, 2);
    assert!(nobody.stderr.contains("which process? Say --pid, --name;"));
}

#[test]
fn who_cannot_be_recorded_is_said() {
    let out = std::env::temp_dir().join("never.nettrace");
    let own = std::process::id().to_string();
    for (options, said) in [
        (
            &["--pid", "4294967295"][..],
            "there is no process 4294967295",
        ),
        (&["--pid", &own], "has no .NET diagnostics socket"),
        (
            &["--name", "no such name"],
            "no .NET process is named 'no such name'",
        ),
        (&["--", "true"], "the program ended (exit status: 0)"),
        (&["--", "/no/such/program"], "cannot start the program"),
    ] {
        let recorded = record(options, &out);
        assert_eq!(recorded.status, 1, "{options:?}: {}", recorded.stderr);
        assert!(recorded.stderr.contains(said), "{}", recorded.stderr);
    }
    for (options, said) in [
        (&[][..], "which process? Say --pid, --name, or -- COMMAND"),
        (&["--pid", "1", "--profile", "x"], "[possible values: cpu,"),
        (
            &["--pid", "1", "--providers", "A:1:9"],
            "'A:1:9' is no provider",
        ),
        (&["--pid", "1", "--max-size", "5X"], "'5X' is not a size"),
    ] {
        let recorded = record(options, &out);
        assert_eq!(recorded.status, 2, "{options:?}: {}", recorded.stderr);
        assert!(recorded.stderr.contains(said), "{}", recorded.stderr);
    }
    assert!(!out.exists());
}
