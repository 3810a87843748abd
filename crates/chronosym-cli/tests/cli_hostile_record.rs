//! `record` of processes that stall, lie and flood.
#![cfg(unix)]

mod bounded;
mod common;
mod fake;

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use bounded::{bounded, path};
use chronosym_support::nettrace::NettraceWriter;
use common::Run;
use fake::{Fake, reply, unknown_command};

/// Serves as a runtime of .NET 8 that never ends a session; `send` writes each one's stream.
fn endless(send: impl Fn(&mut UnixStream) + Clone + Send + 'static) -> Fake {
    Fake::new(move |(set, id, payload), stream| match (set, id) {
        (4, 0) => reply(stream, 0, &[0; 24]),
        (2, 1) => reply(stream, 0, &payload),
        (2, 3) => {
            reply(stream, 0, &7u64.to_le_bytes());
            send(stream);
        }
        _ => unknown_command(stream),
    })
}

fn recorded(fake: &Fake, options: &[&str]) -> (Run, Duration) {
    let (pid, out) = (fake.pid(), fake.path("out.nettrace"));
    let words = [
        "record",
        "--pid",
        &pid,
        "--duration",
        "200ms",
        "-o",
        path(&out),
    ];
    let began = Instant::now();
    let run = bounded(&[&words[..], options].concat());
    (run, began.elapsed())
}

fn size(fake: &Fake, name: &str) -> u64 {
    fake.path(name).metadata().map_or(0, |file| file.len())
}

/// A trace of many event types and threads, whose tables grow as it is read.
fn growing() -> Vec<u8> {
    let mut writer = NettraceWriter::v5();
    for thread in 0..20_000 {
        let event_type = writer.event_type(&format!("Provider{thread}"), thread as u32, 0);
        writer.event(event_type, 100, thread, &[thread, thread + 1], &[0; 16]);
        writer.lose(thread, 1);
    }
    writer.finish()
}

#[test]
fn floods_end_with_bounded_memory_and_bytes() {
    let growing = growing();
    let streams = [
        vec![0; 1 << 16],
        b"Nettrace\x14\0\0\0!FastSerialization.1".repeat(999),
        growing,
    ];
    for stream in streams {
        let fake = endless(move |to| while to.write_all(&stream).is_ok() {});
        let options = ["--max-size", "1M", "--no-start-rundown"];
        let (run, elapsed) = recorded(&fake, &options);
        assert_eq!(run.status, 0, "{}", run.stderr);
        let said = "the runtime did not end the recording: it hangs, or sends without end";
        assert!(run.stderr.contains(said), "{}", run.stderr);
        let bytes = size(&fake, "out.nettrace");
        assert!(bytes < 70 << 20, "{bytes} bytes");
        assert!(elapsed < Duration::from_secs(60), "{elapsed:?}");
    }
}

/// The list of the code that was compiled before never ends: the recording does.
#[test]
fn a_list_without_end_is_left() {
    let fake = endless(|to| {
        let zeros = vec![0; 1 << 16];
        while to.write_all(&zeros).is_ok() {}
    });
    let (run, elapsed) = recorded(&fake, &["--max-size", "1M"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let said = "the runtime did not list the code that was compiled before";
    assert!(run.stderr.contains(said), "{}", run.stderr);
    assert_eq!(size(&fake, "out.start.nettrace"), 0);
    assert!(elapsed < Duration::from_secs(60), "{elapsed:?}");
}

#[test]
fn what_is_no_runtime_is_an_error() {
    let fake = Fake::new(|_, stream| {
        _ = stream.write_all(&[b'x'; 4096]);
        thread::sleep(Duration::from_secs(60));
    });
    let (run, elapsed) = recorded(&fake, &[]);
    assert_eq!(run.status, 1, "{}", run.stderr);
    let said = "the peer does not speak the diagnostics protocol";
    assert!(run.stderr.contains(said), "{}", run.stderr);
    assert!(elapsed < Duration::from_secs(50), "{elapsed:?}");
}
