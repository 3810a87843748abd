//! A process that appends deltas to a file and is killed: the file has all complete deltas.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use chronosym_core::facts::{At, Fact, Method};
use chronosym_core::{
    Action, DeltaReader, LiveSession, Position, SampleSelection, Session, Timeline,
};

const FILE: &str = "CHRONOSYM_TEST_DELTAS";
const STOP: &str = "CHRONOSYM_TEST_STOP";
const PID: u32 = 7;
/// Steps of a delta.
const DELTA: u64 = 10;
/// Bytes that are written at once: a kill leaves part of a delta.
const PIECE: usize = 16;

fn address(number: u64) -> u64 {
    // Some addresses have several methods over time.
    0x1000 + number % 150 * 0x100
}

/// Loads a method, and unloads an older one.
fn step(number: u64, mut apply: impl FnMut(At, Fact<'_>)) {
    let at = At::new(number).process(PID).thread(1);
    let method = |action, number| Method::new(action, number, address(number), 0x80);
    let name = format!("Method{number}");
    let load = method(Action::Load, number).named("Type", &*name, "void ()");
    apply(at, load.into());
    if let Some(old) = number.checked_sub(100) {
        apply(at, method(Action::Unload, old).into());
    }
}

/// Run by the tests below, in a process of its own; alone it does nothing.
#[test]
fn append() {
    let Ok(path) = std::env::var(FILE) else {
        return;
    };
    let stop = std::env::var(STOP).ok().and_then(|text| text.parse().ok());
    let mut file = File::create(path).unwrap();
    let mut live = LiveSession::new();
    live.keep_deltas();
    for number in 0.. {
        step(number, |at, fact| live.apply(at, fact));
        let done = number + 1;
        if done % DELTA != 0 {
            continue;
        }
        live.advance(done);
        let delta = live.take_delta();
        let is_last = stop == Some(done / DELTA);
        let written = match is_last {
            true => &delta[..delta.len() / 2],
            false => &delta[..],
        };
        for piece in written.chunks(PIECE) {
            file.write_all(piece).unwrap();
        }
        live.forget_before(done);
        eprintln!("{}", if is_last { done - DELTA } else { done });
        if is_last {
            thread::sleep(Duration::from_secs(3600));
        }
    }
}

/// Starts a process that appends, kills it once it has written a number of deltas, and returns the
/// number of steps that it reported as written.
fn kill_after(file: &Path, deltas: usize, stop: Option<usize>) -> u64 {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "append", "--nocapture"]);
    command.env(FILE, file);
    if let Some(stop) = stop {
        command.env(STOP, stop.to_string());
    }
    let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut written = 0;
    let mut next = || {
        let line = lines.next()?.unwrap();
        written = line.parse().unwrap_or(written);
        Some(())
    };
    for _ in 0..deltas {
        next().expect("it appends until it is killed");
    }
    child.kill().unwrap();
    // Those that it reported before it was gone.
    while next().is_some() {}
    child.wait().unwrap();
    written
}

/// Returns all answers for the addresses of the methods up to a number.
fn answers(timeline: &Timeline, numbers: u64) -> Vec<String> {
    let process = timeline.find_process(PID, None).expect("a process");
    let addresses = (0..150).map(address);
    let queries =
        addresses.flat_map(|address| (0..numbers).step_by(9).map(move |at| (address, at)));
    queries
        .map(|(address, time)| {
            let frames = timeline.frames(process, address, time, Position::Exact, None);
            let frames = frames
                .iter()
                .map(|it| (it.label().to_owned(), it.certainty));
            format!("{address:x} {time} {:?}", frames.collect::<Vec<_>>())
        })
        .collect()
}

/// Checks what a killed process left behind: all steps that it reported, and at most one more delta.
fn check(file: &Path, written: u64) {
    let bytes = fs::read(file).unwrap();
    let mut session = Session::new(SampleSelection::None);
    let mut reader = DeltaReader::new();
    let read = reader.read(&bytes, &mut session).expect("no damage");
    let steps = reader.watermark_ns();
    assert!(
        (written..=written + DELTA).contains(&steps),
        "{steps} steps of {written}, {read} bytes of {}",
        bytes.len()
    );
    let mut expected = Session::new(SampleSelection::None);
    (0..steps).for_each(|number| step(number, |at, fact| expected.apply(at, fact)));
    let (left, expected) = (session.finish(), expected.finish());
    assert_eq!(answers(&left, steps), answers(&expected, steps));
}

#[test]
fn a_killed_process_loses_at_most_its_last_delta() {
    let file = std::env::temp_dir().join(format!("chronosym-killed-{}", std::process::id()));
    for deltas in [1, 2, 5, 13, 40] {
        let written = kill_after(&file, deltas, None);
        assert!(written >= deltas as u64 * DELTA);
        check(&file, written);
    }
    fs::remove_file(file).unwrap();
}

#[test]
fn half_a_delta_is_not_read() {
    let file = std::env::temp_dir().join(format!("chronosym-half-{}", std::process::id()));
    let written = kill_after(&file, 4, Some(4));
    assert_eq!(written, 3 * DELTA);
    let mut session = Session::new(SampleSelection::None);
    let mut reader = DeltaReader::new();
    let bytes = fs::read(&file).unwrap();
    assert!(reader.read(&bytes, &mut session).expect("no damage") < bytes.len());
    assert_eq!(reader.watermark_ns(), written);
    check(&file, written);
    fs::remove_file(file).unwrap();
}
