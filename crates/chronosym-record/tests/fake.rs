//! The client against runtimes that are fake: obedient ones of several versions, and ones that
//! stall, lie and flood.
#![cfg(unix)]

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use chronosym_record::{Config, End, Limits, Profile, RecordError, Runtime, Suspended};

const MAGIC: &[u8; 14] = b"DOTNET_IPC_V1\0";
const UNKNOWN_COMMAND: u32 = 0x8013_1385;
const ID: u64 = 0x1234;

fn message(set: u8, id: u8, payload: &[u8]) -> Vec<u8> {
    let size = (20 + payload.len()) as u16;
    [&MAGIC[..], &size.to_le_bytes(), &[set, id, 0, 0], payload].concat()
}

fn ok(payload: &[u8]) -> Vec<u8> {
    message(0xff, 0, payload)
}

fn refused() -> Vec<u8> {
    message(0xff, 0xff, &UNKNOWN_COMMAND.to_le_bytes())
}

/// Reads a command: its set, its number, its payload.
fn command(stream: &mut UnixStream) -> Option<(u8, u8, Vec<u8>)> {
    let mut header = [0; 20];
    stream.read_exact(&mut header).ok()?;
    assert!(header.starts_with(MAGIC));
    let size = u16::from_le_bytes([header[14], header[15]]);
    let mut payload = vec![0; usize::from(size) - 20];
    stream.read_exact(&mut payload).ok()?;
    Some((header[16], header[17], payload))
}

/// A fake runtime: each connection is given to `serve` on a thread of its own.
struct Fake {
    _folder: tempfile::TempDir,
    socket: PathBuf,
}

impl Fake {
    fn new(serve: impl Fn(UnixStream) + Clone + Send + 'static) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("dotnet-diagnostic-1-1-socket");
        let listener = UnixListener::bind(&socket).expect("a socket");
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serve = serve.clone();
                thread::spawn(move || serve(stream));
            }
        });
        let _folder = folder;
        Fake { _folder, socket }
    }

    fn runtime(&self) -> Runtime {
        Runtime::at(&self.socket).limits(limits())
    }
}

fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.reply = Duration::from_secs(5);
    limits.silence = Duration::from_millis(400);
    limits
}

/// For runtimes that never answer.
fn impatient() -> Limits {
    let mut limits = limits();
    limits.reply = Duration::from_millis(300);
    limits
}

fn config() -> Config {
    Config::new(Profile::Cpu.providers())
}

/// A runtime whose latest command to record is `newest`: it sends `stream`, and after the request
/// to stop `rundown`.
fn obedient(newest: u8, rundown: &'static [u8]) -> (Fake, Receiver<(u8, u8, Vec<u8>)>) {
    let (seen, commands) = channel();
    let (stop, stopped): (Sender<()>, Receiver<()>) = channel();
    let stopped = std::sync::Arc::new(std::sync::Mutex::new(stopped));
    let fake = Fake::new(move |mut stream| {
        let Some((set, id, payload)) = command(&mut stream) else {
            return;
        };
        _ = seen.send((set, id, payload));
        match (set, id) {
            (2, 1) => {
                _ = stop.send(());
                _ = stream.write_all(&ok(&ID.to_le_bytes()));
            }
            (2, id) if id <= newest => {
                _ = stream.write_all(&ok(&ID.to_le_bytes()));
                _ = stream.write_all(b"Nettrace...");
                _ = stopped.lock().expect("alone").recv();
                _ = stream.write_all(rundown);
            }
            _ => _ = stream.write_all(&refused()),
        }
    });
    (fake, commands)
}

#[test]
fn the_latest_known_command_is_used_and_all_that_comes_is_written() {
    for (newest, tried) in [
        (5, vec![5]),
        (4, vec![5, 3]),
        (3, vec![5, 3]),
        (2, vec![5, 3, 2]),
    ] {
        let (fake, commands) = obedient(newest, b"rundown\x06\x01");
        let session = fake.runtime().collect(&config()).expect("a session");
        let mut out = Vec::new();
        let recorded = session.record(&mut out, &limits(), |bytes| bytes > 0);
        let recorded = recorded.expect("a recording");
        assert_eq!(out, b"Nettrace...rundown\x06\x01");
        assert_eq!(
            (recorded.bytes, recorded.end),
            (out.len() as u64, End::Stopped)
        );
        assert!(recorded.is_complete && !recorded.reached_size);
        let seen: Vec<_> = commands.try_iter().collect();
        let collects = seen
            .iter()
            .filter(|(_, id, _)| *id != 1)
            .map(|(_, id, _)| *id);
        assert_eq!(collects.collect::<Vec<_>>(), tried);
        let stop = seen.iter().find(|(set, id, _)| (*set, *id) == (2, 1));
        assert_eq!(
            stop.map(|(_, _, payload)| payload.as_slice()),
            Some(&ID.to_le_bytes()[..])
        );
    }
}

#[test]
fn a_runtime_that_ends_leaves_a_recording_without_its_end() {
    let fake = Fake::new(|mut stream| {
        command(&mut stream);
        _ = stream.write_all(&[ok(&ID.to_le_bytes()), b"Nettrace".to_vec()].concat());
    });
    let session = fake.runtime().collect(&config()).expect("a session");
    let mut out = Vec::new();
    let recorded = session
        .record(&mut out, &limits(), |_| false)
        .expect("a recording");
    assert_eq!(
        (recorded.end, recorded.is_complete),
        (End::TargetEnded, false)
    );
    assert_eq!(out, b"Nettrace");
}

#[test]
fn a_recording_ends_at_its_size() {
    let (fake, _commands) = obedient(5, b"\x06\x01");
    let session = fake.runtime().collect(&config()).expect("a session");
    let limits = limits().bytes(5);
    let recorded = session
        .record(&mut Vec::new(), &limits, |_| false)
        .expect("a recording");
    assert!(recorded.reached_size && recorded.is_complete);
}

/// What each hostile runtime does with a connection.
type Serve = fn(UnixStream);

#[test]
fn hostile_replies_are_errors_in_bounded_time() {
    let servers: [(&str, Serve); 7] = [
        ("silent", |stream| {
            thread::sleep(Duration::from_secs(60));
            drop(stream);
        }),
        ("hangs up", drop),
        ("another protocol", |mut stream| {
            _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            thread::sleep(Duration::from_secs(60));
        }),
        ("a size below the header's", |mut stream| {
            let mut reply = ok(&[]);
            reply[14] = 3;
            _ = stream.write_all(&reply);
            thread::sleep(Duration::from_secs(60));
        }),
        ("a size that never comes", |mut stream| {
            let mut reply = ok(&[]);
            (reply[14], reply[15]) = (0xff, 0xff);
            _ = stream.write_all(&reply);
            thread::sleep(Duration::from_secs(60));
        }),
        ("a byte now and then", |mut stream| {
            for byte in ok(&[0; 200]) {
                thread::sleep(Duration::from_millis(50));
                if stream.write_all(&[byte]).is_err() {
                    return;
                }
            }
        }),
        ("no session id", |mut stream| {
            command(&mut stream);
            _ = stream.write_all(&ok(&[1, 2]));
            thread::sleep(Duration::from_secs(60));
        }),
    ];
    for (what, serve) in servers {
        let began = Instant::now();
        let fake = Fake::new(serve);
        let runtime = fake.runtime().limits(impatient());
        let error = runtime.collect(&config()).expect_err(what);
        println!("{what}: {error}");
        // Three commands at most, each with a limit; far below the minute that they would take.
        assert!(began.elapsed() < Duration::from_secs(20), "{what}");
    }
}

#[test]
fn a_listener_that_does_not_accept_is_not_waited_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("socket");
    let _listener = UnixListener::bind(&socket).expect("a socket");
    let runtime = Runtime::at(&socket).limits(impatient());
    // The queue of the listener takes some connections, which are never answered.
    for _ in 0..3 {
        let error = runtime.collect(&config()).expect_err("no answer");
        assert!(matches!(error, RecordError::Silent(_)), "{error}");
    }
}

#[test]
fn a_session_that_does_not_stop_is_left() {
    for floods in [false, true] {
        let fake = Fake::new(move |mut stream| {
            let Some((2, 5, _)) = command(&mut stream) else {
                thread::sleep(Duration::from_secs(60));
                return;
            };
            _ = stream.write_all(&ok(&ID.to_le_bytes()));
            while floods && stream.write_all(&[0; 1 << 16]).is_ok() {}
            thread::sleep(Duration::from_secs(60));
        });
        let session = fake.runtime().collect(&config()).expect("a session");
        let limits = limits().bytes(1 << 20);
        let mut out = Counted::default();
        let recorded = session
            .record(&mut out, &limits, |_| true)
            .expect("a recording");
        assert_eq!((recorded.end, recorded.is_complete), (End::Stalled, false));
        assert!(out.0 <= 70 << 20, "{} bytes", out.0);
    }
}

#[test]
fn a_session_that_ends_ever_so_slowly_is_left() {
    let fake = Fake::new(|mut stream| {
        command(&mut stream);
        _ = stream.write_all(&ok(&ID.to_le_bytes()));
        while stream.write_all(&[0]).is_ok() {
            thread::sleep(Duration::from_millis(50));
        }
    });
    let session = fake.runtime().collect(&config()).expect("a session");
    let mut limits = limits();
    limits.end = Duration::from_secs(1);
    let began = Instant::now();
    let recorded = session.record(&mut Vec::new(), &limits, |_| true);
    assert_eq!(recorded.expect("a recording").end, End::Stalled);
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[derive(Default)]
struct Counted(u64);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_program_without_net_is_an_error() {
    let mut command = Command::new("sh");
    command.args(["-c", "exit 3"]);
    let error = Suspended::start(command, Duration::from_secs(60)).expect_err("it ends");
    assert!(error.to_string().contains("exit status: 3"), "{error}");
    let mut command = Command::new("sleep");
    command.arg("60");
    let limit = Duration::from_millis(500);
    let error = Suspended::start(command, limit).expect_err("no runtime");
    assert!(matches!(error, RecordError::NoRuntime(_)), "{error}");
}
