//! Runs the program and finds test data.
#![allow(dead_code)]

pub mod names;
pub mod served;
pub mod server;
pub mod terminal;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The result of a run.
pub struct Run {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    /// It answered or refused, and did not panic.
    pub fn assert_ended_well(&self, what: &str) {
        let (status, stderr) = (self.status, &self.stderr);
        assert!([0, 1].contains(&status), "{what}: {status} {stderr}");
        assert!(!stderr.contains("panicked"), "{what}: {stderr}");
    }
}

/// The program with a fixed environment: no colours, no terminal, no symbol servers, and no symbol
/// files that other tools have stored for the user.
pub fn chronosym() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chronosym"));
    command
        .env_remove("NO_COLOR")
        .env_remove("_NT_SYMBOL_PATH")
        .env_remove("DEBUGINFOD_URLS")
        .env_remove("HOME")
        // Nothing is stored in the user's cache folder.
        .env("XDG_CACHE_HOME", "/dev/null")
        .stdin(Stdio::null());
    command
}

/// Runs the program with arguments.
pub fn run<S: AsRef<std::ffi::OsStr>>(args: &[S]) -> Run {
    finish(chronosym().args(args).output().unwrap())
}

/// Runs the program with something on its standard input.
pub fn run_with_input<S: AsRef<std::ffi::OsStr>>(args: &[S], input: &[u8]) -> Run {
    let mut child = chronosym()
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // A program that stops early leaves the rest of its input unread.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    finish(output)
}

/// Returns the result of a run.
pub fn finish(output: std::process::Output) -> Run {
    Run {
        status: output.status.code().expect("no signal ends it"),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A file of the test data, by its path there.
pub fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata")
        .join(path)
}

/// Returns the output of a successful run, one JSON object per line.
pub fn json_lines(args: &[&str]) -> Vec<serde_json::Value> {
    let run = run(args);
    assert_eq!(run.status, 0, "{args:?}: {}", run.stderr);
    run.stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The only trace in a zip file of the test data.
pub fn unzipped(path: &str) -> Vec<u8> {
    let file = std::fs::File::open(testdata(path)).unwrap();
    let mut archive = zip::ZipArchive::new(file).unwrap();
    assert_eq!(archive.len(), 1, "{path}");
    let mut bytes = Vec::new();
    archive
        .by_index(0)
        .unwrap()
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}

/// These bytes in a gzip file.
pub fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// These entries in a zip file.
pub fn zipped(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        zip.start_file(*name, zip::write::SimpleFileOptions::default())
            .unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// A temporary file with these bytes.
pub fn file(bytes: &[u8]) -> tempfile::TempPath {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    file.into_temp_path()
}

pub const LINUX: &str = "clr10/traces/linux.nettrace.zip";
pub const R2R: &str = "clr10/traces/r2r.nettrace.zip";
pub const REUSE: &str = "clr10/traces/reuse.nettrace.zip";
pub const NORUNDOWN: &str = "clr10/traces/norundown.nettrace.zip";

/// The path of a file of the test data as an argument.
pub fn arg(path: &str) -> String {
    testdata(path).to_str().unwrap().to_owned()
}

/// Returns the value of a variable that names a program for live tests.
pub fn variable(name: &str) -> Option<PathBuf> {
    let value = std::env::var_os(name);
    if value.is_none() {
        println!("{name} is not set");
    }
    value.map(PathBuf::from)
}

/// Returns the programs with a runtime inside, for live tests.
pub fn single_files() -> Vec<PathBuf> {
    let single = variable("CHRONOSYM_SINGLE_FILES").unwrap_or_default();
    std::env::split_paths(&single).collect()
}
