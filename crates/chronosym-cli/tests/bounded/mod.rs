//! Runs the program within limits of memory and processor time.
//!
//! `CHRONOSYM_BIN` names a release build to test instead of the program that was built for the
//! test.
#![allow(dead_code)]

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use chronosym_support::growth::assert_growth;

use crate::common::{Run, chronosym, finish};

/// Address space that the program may have, in KiB.
const MEMORY: u32 = 256 << 10;

/// How much longer eight times the size may take: 2.3 times for each doubling.
pub const EIGHTFOLD: f64 = 2.3 * 2.3 * 2.3;

/// Returns the path of a release build, if one is given.
fn release() -> Option<std::ffi::OsString> {
    std::env::var_os("CHRONOSYM_BIN").filter(|path| !path.is_empty())
}

/// Returns the maximum processor time of a run in seconds; other programs' time is not counted.
/// Unoptimised builds take some ten times as long.
fn longest() -> u32 {
    match cfg!(debug_assertions) && release().is_none() {
        true => 60,
        false => 5,
    }
}

/// The result of a run within the limits.
pub fn bounded<S: AsRef<OsStr>>(args: &[S]) -> Run {
    timed(args).0
}

/// The same, and how long the processor worked for it.
pub fn timed<S: AsRef<OsStr>>(args: &[S]) -> (Run, Duration) {
    let program = release().unwrap_or_else(|| chronosym().get_program().to_owned());
    let times = tempfile::NamedTempFile::new().unwrap();
    let script = format!(
        "times=$1; shift; ulimit -v {MEMORY}; ulimit -t {}; \"$0\" \"$@\"; status=$?; times >\"$times\"; exit $status",
        longest()
    );
    let mut command = Command::new("sh");
    command
        .args(["-c", &script])
        .arg(program)
        .arg(times.path())
        .args(args)
        // The threads of an allocator that reserves much are one here.
        .env("MALLOC_ARENA_MAX", "1")
        .env_remove("_NT_SYMBOL_PATH")
        .env_remove("DEBUGINFOD_URLS")
        .stdin(Stdio::null());
    let run = finish(command.output().unwrap());
    let times = std::fs::read_to_string(times.path()).unwrap();
    (run, children(&times))
}

/// Parses the output of `times` for the shell's children: user and kernel time in the second line,
/// as `0m1.25s`.
fn children(times: &str) -> Duration {
    let words = times.lines().nth(1).unwrap_or_else(|| panic!("{times:?}"));
    let seconds = words.split_whitespace().map(|word| {
        let (minutes, seconds) = word.trim_end_matches('s').split_once('m').expect(word);
        let [minutes, seconds] = [minutes, seconds].map(|text| text.parse::<f64>().expect(word));
        minutes * 60.0 + seconds
    });
    Duration::from_secs_f64(seconds.sum())
}

/// Runs `command` on the output of `make` for a size, and for eight times the size; `{}` in it is
/// replaced by the file, which is otherwise appended. Twice the size may take 2.3 times the
/// processor time; the start-up time is not compared.
pub fn holds(
    name: &str,
    command: &[&str],
    size: usize,
    make: impl Fn(usize) -> Vec<u8>,
) -> [Run; 2] {
    let is_placed = command.iter().any(|arg| arg.contains("{}"));
    let last = (!is_placed).then_some("{}");
    let command: Vec<String> = command
        .iter()
        .chain(&last)
        .map(|arg| arg.replace("{}", "{}/input"))
        .collect();
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    holds_in(name, &command, size, |folder, n| {
        std::fs::write(folder.join("input"), make(n)).unwrap();
    })
}

/// The same with a folder that `make` fills.
pub fn holds_in(
    name: &str,
    command: &[&str],
    size: usize,
    make: impl Fn(&Path, usize),
) -> [Run; 2] {
    let start = Duration::from_millis(if longest() > 5 { 2_000 } else { 300 });
    let folders = [size, 8 * size].map(|size| {
        let folder = tempfile::tempdir().unwrap();
        make(folder.path(), size);
        folder
    });
    let mut runs = [None, None];
    assert_growth(name, EIGHTFOLD, start, |size| {
        let folder = folders[size as usize].path();
        let args = command.iter().map(|arg| arg.replace("{}", path(folder)));
        let (run, took) = timed(&args.collect::<Vec<_>>());
        println!("{name}: {} KiB, {took:?}", bytes_in(folder) >> 10);
        run.assert_ended_well(name);
        runs[size as usize] = Some(run);
        took
    });
    runs.map(|run| run.expect("both sizes ran"))
}

/// Bytes of all files in a folder.
pub fn bytes_in(folder: &Path) -> u64 {
    let entries = folder.read_dir().unwrap().map(|entry| entry.unwrap());
    let size = |entry: std::fs::DirEntry| match entry.file_type().unwrap().is_dir() {
        true => bytes_in(&entry.path()),
        false => entry.metadata().unwrap().len(),
    };
    entries.map(size).sum()
}

/// A path as an argument.
pub fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}
