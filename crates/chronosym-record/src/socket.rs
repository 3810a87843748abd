//! Connections with time limits, whatever the peer does.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::RecordError;
use crate::ipc::{self, Command, HEADER};

/// Maximum length of a socket's path on Linux, without the terminating zero.
const MAX_PATH: usize = 107;

/// Connects to a socket; waits at most `limit` for a listener that does not accept.
pub(crate) fn connect(path: &Path, limit: Duration) -> Result<UnixStream, RecordError> {
    let (send, connected) = mpsc::channel();
    let path = path.to_owned();
    // Connecting blocks while the listener's queue is full, and has no time limit.
    let thread = thread::Builder::new().name("connect".to_owned());
    let thread = thread.spawn(move || _ = send.send(connect_now(&path)));
    thread.map_err(RecordError::io("start a thread"))?;
    let stream = connected.recv_timeout(limit);
    let stream = stream.map_err(|_| RecordError::Silent(limit))?;
    stream.map_err(RecordError::io("connect to the diagnostics socket"))
}

fn connect_now(path: &Path) -> io::Result<UnixStream> {
    if path.as_os_str().len() <= MAX_PATH {
        return UnixStream::connect(path);
    }
    // A long path is shortened to the open folder that it is in.
    let (folder, name) = path
        .parent()
        .zip(path.file_name())
        .ok_or(ErrorKind::InvalidInput)?;
    let folder = File::open(folder)?;
    let short = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string());
    UnixStream::connect(short.join(name))
}

/// Sends a command and returns the payload of its reply, which must arrive within `limit`.
pub(crate) fn call(
    stream: &mut UnixStream,
    command: Command,
    payload: &[u8],
    limit: Duration,
) -> Result<Vec<u8>, RecordError> {
    let deadline = Instant::now() + limit;
    let message = ipc::message(command, payload);
    let message = message.ok_or(RecordError::Protocol("the command is too long"))?;
    let set = stream.set_write_timeout(Some(limit));
    set.and_then(|()| stream.write_all(&message))
        .map_err(|error| failed(error, "send a command to the runtime", limit))?;
    let mut read = |bytes: &mut [u8]| {
        read_exact(stream, bytes, deadline)
            .map_err(|error| failed(error, "read the runtime's reply", limit))
    };
    let mut header = [0; HEADER];
    read(&mut header)?;
    let mut payload = vec![0; ipc::reply_length(&header)?];
    read(&mut payload)?;
    ipc::check(command, &header, &payload)?;
    Ok(payload)
}

/// Reads all of `bytes` before a time, however they are split.
pub(crate) fn read_exact(
    stream: &mut UnixStream,
    mut bytes: &mut [u8],
    deadline: Instant,
) -> io::Result<()> {
    while !bytes.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(bytes) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => bytes = &mut bytes[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => (),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns whether the error is a timeout.
pub(crate) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

fn failed(error: io::Error, what: &'static str, limit: Duration) -> RecordError {
    match is_timeout(&error) {
        true => RecordError::Silent(limit),
        false => RecordError::Io { what, error },
    }
}
