//! Named pipes of Windows, `\\.\pipe\dotnet-diagnostic-PID`, at which runtimes listen there.
//!
//! The standard library opens them as files, which have no time limits and serve one operation
//! after the other. So a thread of each pipe executes them, and the caller waits for it no longer
//! than the limit. Nothing here depends on Windows.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::RecordError;

/// Maximum number of bytes of a read.
const CHUNK: usize = 1 << 16;
/// `ERROR_PIPE_BUSY`: all instances of the pipe are connected.
const BUSY: i32 = 231;
const POLL: Duration = Duration::from_millis(20);

/// Returns the pipe at which the runtime of a process listens.
pub(crate) fn path_of(pid: u32) -> PathBuf {
    PathBuf::from(format!(r"\\.\pipe\dotnet-diagnostic-{pid}"))
}

#[derive(Debug)]
enum Operation {
    Read,
    Write(Vec<u8>),
}

/// A connected pipe.
#[derive(Debug)]
pub(crate) struct Pipe {
    operations: Sender<Operation>,
    /// The bytes of each read; for a write none.
    results: Receiver<io::Result<Vec<u8>>>,
    /// Whether a read has begun, but not ended within its limit.
    is_reading: bool,
    /// What was read beyond the bytes that the caller asked for.
    rest: Vec<u8>,
    pub read_limit: Duration,
    pub write_limit: Duration,
}

/// Connects to a pipe; waits at most `limit` for one that is busy.
pub(crate) fn connect(path: &Path, limit: Duration) -> Result<Pipe, RecordError> {
    let (send, opened) = channel();
    let path = path.to_owned();
    let thread = thread::Builder::new().name("connect".to_owned());
    let thread = thread.spawn(move || _ = send.send(open(&path, limit)));
    thread.map_err(RecordError::io("start a thread"))?;
    let file = opened.recv_timeout(limit);
    let file = file.map_err(|_| RecordError::Silent(limit))?;
    let file = file.map_err(RecordError::io("connect to the diagnostics pipe"))?;
    Pipe::new(file, limit).map_err(RecordError::io("start a thread"))
}

fn open(path: &Path, limit: Duration) -> io::Result<File> {
    let deadline = Instant::now() + limit;
    loop {
        match OpenOptions::new().read(true).write(true).open(path) {
            Err(error) if error.raw_os_error() == Some(BUSY) && Instant::now() < deadline => {
                thread::sleep(POLL);
            }
            opened => return opened,
        }
    }
}

impl Pipe {
    fn new(file: File, limit: Duration) -> io::Result<Self> {
        let (operations, requests) = channel();
        let (send, results) = channel();
        let thread = thread::Builder::new().name("pipe".to_owned());
        thread.spawn(move || serve(&file, &requests, &send))?;
        Ok(Pipe {
            operations,
            results,
            is_reading: false,
            rest: Vec::new(),
            read_limit: limit,
            write_limit: limit,
        })
    }

    fn request(&self, operation: Operation) -> io::Result<()> {
        let sent = self.operations.send(operation);
        sent.map_err(|_| ErrorKind::BrokenPipe.into())
    }

    fn result(&self, limit: Duration) -> io::Result<Vec<u8>> {
        self.results
            .recv_timeout(limit)
            .map_err(|error| match error {
                RecvTimeoutError::Timeout => ErrorKind::TimedOut,
                RecvTimeoutError::Disconnected => ErrorKind::BrokenPipe,
            })?
    }
}

/// Executes operations until the pipe is dropped. An operation that the peer never ends keeps the
/// thread, not the caller.
fn serve(mut file: &File, operations: &Receiver<Operation>, results: &Sender<io::Result<Vec<u8>>>) {
    for operation in operations {
        let result = match operation {
            Operation::Write(bytes) => file.write_all(&bytes).map(|()| Vec::new()),
            Operation::Read => {
                let mut bytes = vec![0; CHUNK];
                let read = file.read(&mut bytes);
                read.map(|count| {
                    bytes.truncate(count);
                    bytes
                })
            }
        };
        if results.send(result).is_err() {
            return;
        }
    }
}

impl Read for Pipe {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() && !bytes.is_empty() {
            if !std::mem::replace(&mut self.is_reading, true) {
                self.request(Operation::Read)?;
            }
            let read = self.result(self.read_limit);
            self.is_reading = matches!(&read, Err(error) if error.kind() == ErrorKind::TimedOut);
            self.rest = match read {
                // The peer has closed the pipe.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => Vec::new(),
                read => read?,
            };
        }
        let count = self.rest.len().min(bytes.len());
        bytes[..count].copy_from_slice(&self.rest[..count]);
        self.rest.drain(..count);
        Ok(count)
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_reading {
            // It would wait for the read.
            return Err(ErrorKind::WouldBlock.into());
        }
        self.request(Operation::Write(bytes.to_owned()))?;
        self.result(self.write_limit)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::ipc::PROCESS_INFO;
    use crate::stream::Stream;

    /// A file that reads what its peer writes and writes what it reads, as a pipe of Windows.
    fn pair() -> (Pipe, UnixStream) {
        let (file, peer) = UnixStream::pair().expect("a pair");
        let pipe = Pipe::new(File::from(OwnedFd::from(file)), Duration::from_secs(5));
        (pipe.expect("a thread"), peer)
    }

    #[test]
    fn a_command_is_answered() {
        let (pipe, mut peer) = pair();
        let runtime = thread::spawn(move || {
            let mut command = [0; 20];
            peer.read_exact(&mut command).expect("a command");
            // A reply in parts.
            let reply = [b"DOTNET_IPC_V1\0", &[23, 0, 0xff, 0, 0, 0][..], b"abc"].concat();
            for part in reply.chunks(7) {
                peer.write_all(part).expect("open");
                thread::sleep(POLL);
            }
            command
        });
        let payload = Stream::Pipe(pipe).call(PROCESS_INFO, &[], Duration::from_secs(5));
        assert_eq!(payload.expect("a reply"), b"abc");
        let command = runtime.join().expect("a command");
        assert_eq!(command[16..18], [PROCESS_INFO.set, PROCESS_INFO.id]);
    }

    #[test]
    fn a_silent_peer_is_left_and_read_later() {
        let (mut pipe, mut peer) = pair();
        pipe.read_limit = POLL;
        let mut bytes = [0; 8];
        for _ in 0..3 {
            let error = pipe.read(&mut bytes).expect_err("nothing was sent");
            assert_eq!(error.kind(), ErrorKind::TimedOut);
        }
        peer.write_all(b"late").expect("open");
        pipe.read_limit = Duration::from_secs(5);
        assert_eq!(pipe.read(&mut bytes[..3]).expect("bytes"), 3);
        assert_eq!(pipe.read(&mut bytes[3..]).expect("bytes"), 1);
        assert_eq!(&bytes[..4], b"late");
        drop(peer);
        assert_eq!(pipe.read(&mut bytes).expect("the end"), 0);
    }

    #[test]
    fn a_peer_that_takes_nothing_is_left() {
        let (mut pipe, _peer) = pair();
        pipe.write_limit = POLL * 5;
        let error = pipe.write_all(&vec![0; 16 << 20]).expect_err("too much");
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }

    #[test]
    fn a_pipe_that_is_missing_is_an_error() {
        let error = connect(Path::new("/nowhere/pipe"), POLL).expect_err("no pipe");
        assert!(matches!(error, RecordError::Io { .. }), "{error}");
        assert_eq!(path_of(7).to_str(), Some(r"\\.\pipe\dotnet-diagnostic-7"));
    }
}
