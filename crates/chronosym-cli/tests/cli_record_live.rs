//! `record` with runtimes: `CHRONOSYM_DOTNET` and `CHRONOSYM_DOTNET_8` name the `dotnet` hosts of
//! .NET Core 3.1 and .NET 8, `CHRONOSYM_SINGLE_FILES` programs that contain a runtime, as a list of
//! paths.
#![cfg(target_os = "linux")]

mod common;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::{chronosym, run, single_files, variable};
use serde_json::Value;

/// Percent of self time. The workload unloads code all the time: some of it was compiled before the
/// recording, and is gone when its end lists the code.
const LEAST: f64 = 90.0;

fn dotnet_8() -> Option<PathBuf> {
    variable("CHRONOSYM_DOTNET_8")
}

fn workload(command: &mut Command) -> &mut Command {
    let program =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/clr31/workload/Workload.dll");
    configured(command).arg(program)
}

fn configured(command: &mut Command) -> &mut Command {
    command
        .env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1")
        .env("DOTNET_ROLL_FORWARD", "Major")
        .stdout(Stdio::null())
}

/// A process that is killed in the end, with a TMPDIR of its own.
struct Running {
    child: Child,
    folder: tempfile::TempDir,
}

impl Running {
    fn start(host: &Path) -> Self {
        Self::of(workload(&mut Command::new(host)).arg("60"), 2)
    }

    fn of(command: &mut Command, seconds: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let command = command.env("TMPDIR", folder.path());
        let child = command.stdin(Stdio::piped()).spawn().unwrap();
        thread::sleep(Duration::from_secs(seconds));
        Running { child, folder }
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out.nettrace")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Runtimes crash now and then when a session ends while assemblies are unloaded, as those of the
/// workload are; 3.1 hangs.
fn patiently(record: impl Fn() -> Result<(), String>) {
    let mut last = Ok(());
    for _ in 0..6 {
        last = record();
        match &last {
            Ok(()) => return,
            Err(error) => println!("{error}"),
        }
    }
    last.unwrap();
}

fn json(command: &str, files: &[&Path]) -> Result<Value, String> {
    let words = [command, "--format", "json"].map(OsStr::new);
    let files = files.iter().map(|file| file.as_os_str());
    let words: Vec<_> = words.into_iter().chain(files).collect();
    let result = run(&words);
    serde_json::from_str(&result.stdout).map_err(|_| result.stderr)
}

/// The share of self time with a name, in percent.
fn named(files: &[&Path]) -> Result<f64, String> {
    let info = json("info", files)?;
    let count = |name: &str| info["frames"]["self"][name].as_f64();
    let (named, all) = count("named").zip(count("total")).ok_or("no frames")?;
    println!("{named} of {all} of self have names");
    Ok(100.0 * named / all.max(1.0))
}

/// At least this share of self time has a name.
fn is_named(files: &[&Path], least: f64) -> Result<(), String> {
    match named(files)? {
        share if share >= least => Ok(()),
        share => Err(format!("only {share} % have names")),
    }
}

fn succeeded(command: &mut Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        other => Err(format!("{command:?}: {other:?}")),
    }
}

#[test]
fn attached() {
    let hosts = ["CHRONOSYM_DOTNET", "CHRONOSYM_DOTNET_8"];
    for host in hosts.into_iter().filter_map(variable) {
        patiently(|| {
            let runtime = Running::start(&host);
            let out = runtime.out();
            let mut recorder = chronosym();
            recorder.args(["record", "--pid", &runtime.pid(), "--duration", "2s", "-o"]);
            succeeded(recorder.arg(&out))?;
            is_named(&[&out], LEAST)
        });
    }
}

#[test]
fn killed() {
    let Some(host) = dotnet_8() else { return };
    patiently(|| {
        let mut runtime = Running::start(&host);
        record_and_kill(&mut runtime)
    });
}

/// Records a process until it is killed: it never lists its code at the end.
fn record_and_kill(runtime: &mut Running) -> Result<(), String> {
    let out = runtime.out();
    let mut recorder = chronosym();
    recorder.args(["record", "--pid", &runtime.pid(), "-o"]);
    let mut recorder = recorder.arg(&out).spawn().unwrap();
    thread::sleep(Duration::from_secs(3));
    _ = runtime.child.kill();
    assert!(recorder.wait().unwrap().success());
    is_named(&[&out.with_extension("start.nettrace"), &out], 99.0)
}

/// .NET 9 and 10: servers that read their standard input.
#[test]
fn single_files_attached_and_killed() {
    for program in single_files() {
        if program.file_name() != Some(OsStr::new("azmcp")) {
            continue;
        }
        patiently(|| {
            let mut command = Command::new(&program);
            let command = configured(&mut command).args(["server", "start"]);
            let mut runtime = Running::of(command.stderr(Stdio::null()), 4);
            let out = runtime.out();
            let mut recorder = chronosym();
            recorder.args(["record", "--pid", &runtime.pid(), "--duration", "1s", "-o"]);
            succeeded(recorder.arg(&out))?;
            is_named(&[&out], 99.0)?;
            record_and_kill(&mut runtime)
        });
    }
}

#[test]
fn two_at_once() {
    let Some(host) = dotnet_8() else { return };
    patiently(|| {
        let runtimes = [Running::start(&host), Running::start(&host)];
        let out = runtimes[0].out().with_extension("folded");
        let mut recorder = chronosym();
        recorder
            .args(["record", "--duration", "1s", "-o"])
            .arg(&out);
        for runtime in &runtimes {
            recorder.args(["--pid", &runtime.pid()]);
        }
        succeeded(&mut recorder)?;
        let file =
            |runtime: &Running| out.with_file_name(format!("out-{}.nettrace", runtime.pid()));
        for runtime in &runtimes {
            is_named(&[&file(runtime)], LEAST)?;
        }
        let folded = fs::read_to_string(&out).unwrap();
        match folded.contains("Workload.Spin.Work") {
            true => Ok(()),
            false => Err(folded),
        }
    });
}

#[test]
fn started_with_its_children() {
    let Some(host) = dotnet_8() else { return };
    patiently(|| {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out.nettrace");
        let program = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../testdata/clr31/workload/Workload.dll");
        let (host, program) = (host.display(), program.display());
        let script = format!("'{host}' '{program}' 1 & '{host}' '{program}' 1; wait");
        let mut recorder = chronosym();
        recorder.args(["record", "-o"]).arg(&out);
        succeeded(configured(&mut recorder).args(["--", "sh", "-c", &script]))?;
        let entries = fs::read_dir(folder.path()).unwrap().flatten();
        let files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        assert_eq!(files.len(), 2, "{files:?}");
        for file in &files {
            is_named(&[file], 97.0)?;
        }
        let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
        let info = json("info", &files)?;
        let processes = info["processes"].as_array().map_or(0, Vec::len);
        match processes {
            2 => Ok(()),
            count => Err(format!("{count} processes")),
        }
    });
}

/// perf records from the program's first instruction, and its samples have the names that the
/// runtimes of both processes state.
#[test]
fn with_perf() {
    let Some(host) = dotnet_8() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut perf = Command::new("perf");
    perf.args(["record", "-k", "mono", "-o"])
        .arg(folder.path().join("perf.data"));
    let perf = perf.args(["--", "true"]).output();
    if !perf.is_ok_and(|perf| perf.status.success()) {
        println!("perf cannot record here");
        return;
    }
    patiently(|| {
        let out = folder.path().join("out.folded");
        let program = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../testdata/clr31/workload/Workload.dll");
        let (host, program) = (host.display(), program.display());
        let script = format!("'{host}' '{program}' 1 & '{host}' '{program}' 1; wait");
        let mut recorder = chronosym();
        recorder.args(["record", "--perf", "-o"]).arg(&out);
        succeeded(configured(&mut recorder).args(["--", "sh", "-c", &script]))?;
        let folded = fs::read_to_string(&out).map_err(|error| error.to_string())?;
        let lines = folded.lines().filter(|line| line.contains("Workload.Spin"));
        let processes: BTreeSet<_> = lines.filter_map(|line| line.split(';').next()).collect();
        match processes.len() {
            2 => Ok(()),
            _ => Err(format!("{processes:?} have names")),
        }
    });
}

#[test]
fn in_other_namespaces() {
    let Some(host) = dotnet_8() else { return };
    patiently(|| {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("unshare");
        command.args(["-Urmpf", "--mount-proc"]).arg(&host);
        let command = workload(&mut command).arg("60");
        let child = command.env("TMPDIR", folder.path()).spawn();
        let Ok(child) = child else {
            println!("unshare is missing");
            return Ok(());
        };
        let runtime = Running { child, folder };
        thread::sleep(Duration::from_secs(2));
        let pid = runtime.pid();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let Some(inside) = children.ok().filter(|it| !it.trim().is_empty()) else {
            println!("no namespaces can be made");
            return Ok(());
        };
        let out = runtime.out();
        let mut recorder = chronosym();
        recorder.args(["record", "--pid", inside.trim(), "--duration", "1s", "-o"]);
        let recorded = succeeded(recorder.arg(&out));
        _ = Command::new("kill").args(["-9", inside.trim()]).status();
        recorded.and_then(|()| is_named(&[&out], LEAST))
    });
}

/// A session hangs for ever if its start or end races with another client, or a reply is missed.
#[test]
fn thirty_attaches_in_a_row() {
    let Some(host) = dotnet_8() else { return };
    patiently(|| {
        let mut program = Command::new(&host);
        // Threads that unload nothing: some runtimes would crash at the end of one of the sessions.
        let program = workload(&mut program).args(["60", ".", "shapes,tiers,async"]);
        let runtime = Running::of(program, 2);
        let began = Instant::now();
        for _ in 0..30 {
            let mut recorder = chronosym();
            recorder.args([
                "-q",
                "record",
                "--pid",
                &runtime.pid(),
                "--no-start-rundown",
                "--duration",
                "10ms",
            ]);
            succeeded(recorder.arg("-o").arg(runtime.out()))?;
        }
        println!("{} ms each", began.elapsed().as_millis() / 30);
        Ok(())
    });
}

/// The methods of a recording.
fn methods(file: &Path) -> Result<BTreeSet<(String, u64, String)>, String> {
    let json = json("methods", &[file])?;
    let processes = json["processes"].as_array().ok_or("no processes")?;
    let methods = processes.iter().flat_map(|it| it["methods"].as_array());
    let fields = |it: &Value| {
        let text = |name: &str| Some(it[name].as_str()?.to_owned());
        Some((text("address")?, it["size"].as_u64()?, text("name")?))
    };
    Ok(methods.flatten().filter_map(fields).collect())
}

/// Every method that the runtime's own recording of the same run has is in ours, and the other way
/// round but for those that ran after it had ended.
#[test]
fn as_complete_as_the_own_recording_of_the_runtime() {
    let host = dotnet_8();
    for program in host.iter().chain(&single_files()) {
        patiently(|| {
            let folder = tempfile::tempdir().unwrap();
            let out = folder.path().join("out.nettrace");
            let own = folder.path().join("own.nettrace");
            let providers = "Microsoft-Windows-DotNETRuntime:1000002018:5";
            let mut recorder = chronosym();
            recorder
                .args(["record", "-o"])
                .arg(&out)
                .arg("--")
                .arg(program);
            recorder
                .env("DOTNET_EnableEventPipe", "1")
                .env("DOTNET_EventPipeOutputStreaming", "1")
                .env("DOTNET_EventPipeOutputPath", &own)
                .env("DOTNET_EventPipeConfig", providers);
            let recorder = match Some(program) == host.as_ref() {
                true => workload(&mut recorder).arg("1"),
                false => configured(&mut recorder).arg("--help"),
            };
            succeeded(recorder)?;
            let (own, ours) = (methods(&own)?, methods(&out)?);
            println!("{}: {} and {}", program.display(), own.len(), ours.len());
            let missing: Vec<_> = own.difference(&ours).take(10).collect();
            assert!(own.len() > 1000, "{} methods", own.len());
            let more = ours.difference(&own).count();
            match missing.is_empty() && more * 10 <= own.len() {
                true => Ok(()),
                false => Err(format!("{more} more, missing: {missing:?}")),
            }
        });
    }
}
