//! Connections to sockets.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::error::RecordError;

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
