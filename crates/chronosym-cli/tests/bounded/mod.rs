//! Runs the program within bounds of time and memory.
#![allow(dead_code)]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Run, chronosym, finish};

/// Address space that the program may have, in KiB.
const MEMORY: u32 = 256 << 10;

/// The program without optimisation takes some ten times as long.
const LONGEST: Duration = Duration::from_secs(if cfg!(debug_assertions) { 60 } else { 5 });

/// What a run within bounds gave. The threads of an allocator that reserves much are one here.
pub fn bounded(args: &[&str]) -> Run {
    timed(args).0
}

/// The same, and how long it took.
pub fn timed(args: &[&str]) -> (Run, Duration) {
    let program = chronosym();
    let limited = format!("ulimit -v {MEMORY}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command
        .args(["-c", &limited])
        .arg(program.get_program())
        .args(args);
    command
        .env("MALLOC_ARENA_MAX", "1")
        .env_remove("_NT_SYMBOL_PATH")
        .env_remove("DEBUGINFOD_URLS")
        .stdin(Stdio::null());
    let begun = Instant::now();
    let output = command.output().unwrap();
    let took = begun.elapsed();
    assert!(took < LONGEST, "{args:?}: {took:?}");
    (finish(output), took)
}

/// A path as an argument.
pub fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}
