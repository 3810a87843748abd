//! Weights of perf.data compared with `perf report`: the share of each thread and of each image in
//! the self weight, for events with constant and with changing periods.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode};

use chronosym::{Filter, Options, SampleSelection};
use chronosym_conformance::{TESTDATA, case};
use chronosym_export::WeightUnit;
use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    let has_perf = Command::new("perf").arg("--version").output().is_ok();
    let live = |name: &str, arguments: &'static [&'static str]| {
        let run = move || recorded(arguments);
        Trial::test(name, run).with_ignored_flag(!has_perf)
    };
    let mut cases = vec![
        live("recorded_page_faults", &["-e", "page-faults", "-F", "500"]),
        live("recorded_cpu_clock", &["-e", "cpu-clock", "-c", "700000"]),
        live("recorded_task_clock", &["-e", "task-clock", "-F", "1999"]),
    ];
    if has_perf {
        cases.extend(["net8", "net10"].map(|name| {
            case(TESTDATA, format!("testdata_{name}"), move |folder| {
                agrees(&folder.join("perf").join(name).join("perf.data"))
            })
        }));
    }
    libtest_mimic::run(&Arguments::from_args(), cases).exit_code()
}

/// Records a few programs, if perf may.
fn recorded(arguments: &[&str]) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("perf.data");
    let program =
        "for i in 1 2; do ls -lR /usr/lib > /dev/null; od -A n -N 2000000 /dev/zero | md5sum; done";
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-o"]).arg(&path).args(arguments);
    let perf = perf.args(["--", "sh", "-c", program]).output()?;
    if !perf.status.success() {
        println!(
            "perf cannot record here: {}",
            String::from_utf8_lossy(&perf.stderr)
        );
        return Ok(());
    }
    agrees(&path)
}

fn agrees(path: &Path) -> Result<(), Failed> {
    let recording = chronosym::open(path)?;
    let (timeline, _) = recording.timeline(Options::from(SampleSelection::All))?;
    let mut filter = Filter::default();
    filter.idle = true;
    let profile = timeline.profile(&filter, None);
    let unit = WeightUnit::of(&profile);
    let total = unit.total(&profile) as f64;
    let (mut threads, mut images) = (BTreeMap::new(), BTreeMap::new());
    for entry in &profile.entries {
        let share = unit.weight(entry) as f64 * 100.0 / total;
        let tid = timeline.thread_view(entry.thread).ok_or("no thread")?.tid;
        *threads.entry(tid.to_string()).or_insert(0.0) += share;
        let leaf = profile.resolver.frame(profile.resolver.leaf(entry.stack));
        let path = leaf.function.binary().and_then(|binary| binary.path());
        let image = path.and_then(|path| path.rsplit('/').next());
        let image = image.unwrap_or_default().to_owned();
        *images.entry(image).or_insert(0.0) += share;
    }
    let by_thread = report(path, "pid")?;
    let by_image = report(path, "dso")?;
    // perf prints `tid:comm` of a thread.
    let tid = |row: &str| Some(row.split_once(':')?.0.trim().to_owned());
    let shared = |row: &str| row.contains(".so").then(|| row.to_owned());
    compare("thread", &by_thread, tid, &threads)?;
    compare("image", &by_image, shared, &images)
}

/// The rows of `perf report` sorted by a key: the share and the key.
fn report(path: &Path, key: &str) -> Result<Vec<(f64, String)>, Failed> {
    let output = Command::new("perf")
        .args([
            "report",
            "--stdio",
            "--no-children",
            "-g",
            "none",
            "--percent-limit",
            "0",
        ])
        .args(["-t", "|", "--sort", key, "-i"])
        .arg(path)
        .env("PAGER", "cat")
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let rows = text.lines().filter_map(|line| {
        let (share, row) = line.split_once('|')?;
        let share = share.trim().strip_suffix('%')?;
        Some((share.parse().ok()?, row.trim().to_owned()))
    });
    Ok(rows.collect())
}

/// Compares the shares of the rows for which `key` returns one.
fn compare(
    what: &str,
    rows: &[(f64, String)],
    key: impl Fn(&str) -> Option<String>,
    own: &BTreeMap<String, f64>,
) -> Result<(), Failed> {
    let mut of_perf: BTreeMap<String, f64> = BTreeMap::new();
    for (share, row) in rows {
        if let Some(key) = key(row) {
            *of_perf.entry(key).or_default() += share;
        }
    }
    if of_perf.is_empty() {
        return Err(format!("perf report lists no {what}: {rows:?}").into());
    }
    for (key, share) in of_perf {
        let found = own.get(&key).copied().unwrap_or_default();
        if (found - share).abs() > 0.1 {
            return Err(format!("{what} {key}: {found:.2} %, perf says {share} %: {own:?}").into());
        }
    }
    Ok(())
}
