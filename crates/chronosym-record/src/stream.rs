//! Connections with time limits, whatever the peer does.

use std::io::{self, ErrorKind, Read, Write};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::error::RecordError;
use crate::ipc::{self, Command, HEADER};
use crate::pipe::Pipe;

/// A connection to a runtime.
#[derive(Debug)]
pub(crate) enum Stream {
    #[cfg(unix)]
    Socket(UnixStream),
    Pipe(Pipe),
}

impl Stream {
    /// Limits the time of each read.
    pub fn limit_reads(&mut self, limit: Duration) -> io::Result<()> {
        match self {
            #[cfg(unix)]
            Stream::Socket(socket) => socket.set_read_timeout(Some(limit)),
            Stream::Pipe(pipe) => {
                pipe.read_limit = limit;
                Ok(())
            }
        }
    }

    /// Limits the time of each write.
    pub fn limit_writes(&mut self, limit: Duration) -> io::Result<()> {
        match self {
            #[cfg(unix)]
            Stream::Socket(socket) => socket.set_write_timeout(Some(limit)),
            Stream::Pipe(pipe) => {
                pipe.write_limit = limit;
                Ok(())
            }
        }
    }

    /// Sends a command and returns the payload of its reply, which must arrive within `limit`.
    pub fn call(
        &mut self,
        command: Command,
        payload: &[u8],
        limit: Duration,
    ) -> Result<Vec<u8>, RecordError> {
        let deadline = Instant::now() + limit;
        let message = ipc::message(command, payload);
        let message = message.ok_or(RecordError::Protocol("the command is too long"))?;
        let set = self.limit_writes(limit);
        set.and_then(|()| self.write_all(&message))
            .map_err(|error| failed(error, "send a command to the runtime", limit))?;
        let mut read = |bytes: &mut [u8]| {
            self.read_before(bytes, deadline)
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
    pub fn read_before(&mut self, mut bytes: &mut [u8], deadline: Instant) -> io::Result<()> {
        while !bytes.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            self.limit_reads(left)?;
            match self.read(bytes) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => bytes = &mut bytes[count..],
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Read for Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            #[cfg(unix)]
            Stream::Socket(socket) => socket.read(bytes),
            Stream::Pipe(pipe) => pipe.read(bytes),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            #[cfg(unix)]
            Stream::Socket(socket) => socket.write(bytes),
            Stream::Pipe(pipe) => pipe.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
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
