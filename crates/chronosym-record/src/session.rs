//! Sessions of a runtime.

use std::io::{ErrorKind, Read, Write};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

#[cfg(unix)]
use crate::connections::Connections;
use crate::error::RecordError;
use crate::ipc::{COLLECT, COLLECT_2, COLLECT_4, Command, PROCESS_INFO, STOP};
use crate::pipe;
#[cfg(unix)]
use crate::process::Target;
use crate::provider::Config;
#[cfg(unix)]
use crate::socket;
use crate::stream::{Stream, is_timeout};

/// What a recording may cost at most.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// A runtime's reply to a command takes no longer. Default 10 s.
    pub reply: Duration,
    /// After the request to stop, the next bytes take no longer. Default 30 s: large programs take
    /// a while to list their code.
    pub silence: Duration,
    /// After the request to stop, the recording takes no longer in all, however slowly bytes come.
    /// Default 10 min.
    pub end: Duration,
    /// Bytes of the recording, after which it is stopped; the rundown may add as much as half of it
    /// again, and 64 MiB. Default none.
    pub bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            reply: Duration::from_secs(10),
            silence: Duration::from_secs(30),
            end: Duration::from_secs(600),
            bytes: u64::MAX,
        }
    }
}

impl Limits {
    /// Limits the bytes of the recording.
    pub fn bytes(self, bytes: u64) -> Self {
        Limits { bytes, ..self }
    }
}

/// A runtime that takes commands.
#[derive(Clone, Debug)]
pub struct Runtime {
    way: Way,
    limits: Limits,
}

/// How connections to it are made.
#[derive(Clone, Debug)]
enum Way {
    /// It listens at a socket.
    #[cfg(unix)]
    Socket(PathBuf),
    /// It connects to a port of this process.
    #[cfg(unix)]
    Port(Connections),
    /// It listens at a named pipe.
    Pipe(PathBuf),
}

impl Runtime {
    /// The runtime of a process.
    #[cfg(unix)]
    pub fn of(target: &Target) -> Self {
        Runtime::at(&target.socket)
    }

    /// The runtime that listens at a socket.
    #[cfg(unix)]
    pub fn at(socket: impl Into<PathBuf>) -> Self {
        Runtime::new(Way::Socket(socket.into()))
    }

    /// The runtime of a process on Windows, which listens at the named pipe
    /// `\\.\pipe\dotnet-diagnostic-PID`.
    pub fn of_pipe(pid: u32) -> Self {
        Runtime::new(Way::Pipe(pipe::path_of(pid)))
    }

    #[cfg(unix)]
    pub(crate) fn behind(port: Connections) -> Self {
        Runtime::new(Way::Port(port))
    }

    fn new(way: Way) -> Self {
        let limits = Limits::default();
        Runtime { way, limits }
    }

    /// Sets the limits.
    pub fn limits(self, limits: Limits) -> Self {
        Runtime { limits, ..self }
    }

    fn connection(&self) -> Result<Stream, RecordError> {
        let limit = self.limits.reply;
        match &self.way {
            #[cfg(unix)]
            Way::Socket(path) => socket::connect(path, limit).map(Stream::Socket),
            #[cfg(unix)]
            Way::Port(port) => port.next(limit),
            Way::Pipe(path) => pipe::connect(path, limit).map(Stream::Pipe),
        }
    }

    pub(crate) fn send(
        &self,
        command: Command,
        payload: &[u8],
    ) -> Result<(Stream, Vec<u8>), RecordError> {
        let mut stream = self.connection()?;
        let reply = stream.call(command, payload, self.limits.reply)?;
        Ok((stream, reply))
    }

    /// Whether it is of .NET 5 or later. Sessions of .NET Core 3.1 hang now and then when they
    /// stop.
    ///
    /// # Errors
    ///
    /// [`RecordError`] if it does not answer.
    pub fn is_net5(&self) -> Result<bool, RecordError> {
        match self.send(PROCESS_INFO, &[]) {
            Ok(_) => Ok(true),
            Err(error) if error.is_unknown_command() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Starts a session with the latest command that the runtime knows: CollectTracing4 of .NET 9,
    /// CollectTracing2, CollectTracing of .NET Core 3.0.
    ///
    /// # Errors
    ///
    /// [`RecordError`] if the runtime does not answer, or refuses.
    pub fn collect(&self, config: &Config) -> Result<Session, RecordError> {
        let mut refused = RecordError::Protocol("it knows no command to record");
        for (version, command) in [(4, COLLECT_4), (2, COLLECT_2), (1, COLLECT)] {
            match self.send(command, &config.payload(version)) {
                Ok((stream, reply)) => {
                    let id = reply.first_chunk().map(|id| u64::from_le_bytes(*id));
                    let id = id.ok_or(RecordError::Protocol("its session has no id"))?;
                    return Ok(Session {
                        runtime: self.clone(),
                        id,
                        stream,
                    });
                }
                Err(error) if error.is_unknown_command() => refused = error,
                Err(error) => return Err(error),
            }
        }
        Err(refused)
    }
}

/// A session that is recording.
#[derive(Debug)]
pub struct Session {
    runtime: Runtime,
    id: u64,
    stream: Stream,
}

/// How a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// It was stopped, or reached its size, and has its rundown.
    Stopped,
    /// The process ended.
    TargetEnded,
    /// The runtime sent no more after the request to stop, or did not end: it hangs.
    Stalled,
}

/// A finished recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recorded {
    /// Bytes that were written.
    pub bytes: u64,
    /// How it ended.
    pub end: End,
    /// Whether the stream has its end: then the code that ran is listed in it, as far as that was
    /// asked for.
    pub is_complete: bool,
    /// Whether it was stopped since it reached [`Limits::bytes`].
    pub reached_size: bool,
}

/// How often it is checked whether to stop.
const CHECK: Duration = Duration::from_millis(100);
/// The end of a nettrace stream: the end of an object, and no object.
const LAST: [u8; 2] = [6, 1];

impl Session {
    /// Writes what the runtime sends until `should_stop`, which gets the number of bytes so far ten
    /// times a second or more often; then asks the runtime to stop, and writes its rundown.
    ///
    /// # Errors
    ///
    /// [`RecordError::Io`] if `out` fails. What was written before is a recording without its end.
    pub fn record(
        mut self,
        out: &mut impl Write,
        limits: &Limits,
        mut should_stop: impl FnMut(u64) -> bool,
    ) -> Result<Recorded, RecordError> {
        let set = self.stream.limit_reads(CHECK);
        set.map_err(RecordError::io("wait for the recording"))?;
        let mut recorded = Recorded {
            bytes: 0,
            end: End::TargetEnded,
            is_complete: false,
            reached_size: false,
        };
        let mut buffer = vec![0; 1 << 16];
        let mut last = [0; 2];
        // When it was asked to stop, and when the last byte came since.
        let mut stopping: Option<(Instant, Instant)> = None;
        let most = limits
            .bytes
            .saturating_add(limits.bytes / 2)
            .saturating_add(64 << 20);
        loop {
            if stopping.is_none() {
                recorded.reached_size = recorded.bytes >= limits.bytes;
                if recorded.reached_size || should_stop(recorded.bytes) {
                    self.stop();
                    let now = Instant::now();
                    stopping = Some((now, now));
                }
            }
            if let Some((asked, last)) = stopping
                && (last.elapsed() > limits.silence
                    || asked.elapsed() > limits.end
                    || recorded.bytes > most)
            {
                recorded.end = End::Stalled;
                break;
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => {
                    recorded.end = if stopping.is_some() {
                        End::Stopped
                    } else {
                        End::TargetEnded
                    };
                    break;
                }
                Ok(count) => {
                    let bytes = &buffer[..count];
                    out.write_all(bytes)
                        .map_err(RecordError::io("write the recording"))?;
                    recorded.bytes += count as u64;
                    last = match *bytes {
                        [.., a, b] => [a, b],
                        [b] => [last[1], b],
                        [] => last,
                    };
                    stopping = stopping.map(|(asked, _)| (asked, Instant::now()));
                }
                Err(error) if is_timeout(&error) || error.kind() == ErrorKind::Interrupted => (),
                // A process that is killed closes its socket.
                Err(_) => break,
            }
        }
        out.flush()
            .map_err(RecordError::io("write the recording"))?;
        recorded.is_complete = last == LAST && recorded.end != End::Stalled;
        Ok(recorded)
    }

    /// Asks the runtime to stop. It replies when its stream has ended, which must be read until
    /// then.
    fn stop(&self) {
        let (runtime, id) = (self.runtime.clone(), self.id);
        let thread = thread::Builder::new().name("stop".to_owned());
        // Without a thread, or if the request fails, no more bytes follow, and the time limit ends
        // the wait.
        _ = thread.spawn(move || runtime.send(STOP, &id.to_le_bytes()));
    }
}
