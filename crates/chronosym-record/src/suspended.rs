//! Programs that are started suspended: their runtimes connect to a port of this process, and wait to
//! be resumed.

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::error::RecordError;
use crate::port::Port;
use crate::started::Started;

/// Interval of checks whether the program has ended.
const POLL: Duration = Duration::from_millis(20);

/// A program that was started suspended. Each runtime in it and its child processes waits to be
/// resumed before it runs any code.
#[derive(Debug)]
pub struct Suspended {
    child: Child,
    port: Port,
    first: Option<Started>,
    started: Receiver<Started>,
    folder: TempDir,
}

impl Suspended {
    /// Starts a program, and waits for its first runtime.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn) and [`wait_for_runtime`](Self::wait_for_runtime).
    pub fn start(command: Command, limit: Duration) -> Result<Self, RecordError> {
        let mut suspended = Self::spawn(command)?;
        suspended.wait_for_runtime(limit)?;
        Ok(suspended)
    }

    /// Starts a program.
    ///
    /// # Errors
    ///
    /// [`RecordError`] if the program cannot be started.
    pub fn spawn(mut command: Command) -> Result<Self, RecordError> {
        let folder = tempfile::Builder::new().prefix("chronosym-").tempdir();
        let folder = folder.map_err(RecordError::io("make a folder for the diagnostic port"))?;
        let path = folder.path().join("port");
        let listener = UnixListener::bind(&path);
        let listener = listener.map_err(RecordError::io("open a diagnostic port"))?;
        let set = listener.set_nonblocking(true);
        set.map_err(RecordError::io("open a diagnostic port"))?;
        command.env(
            "DOTNET_DiagnosticPorts",
            format!("{},connect,suspend", path.display()),
        );
        let child = command.spawn();
        let child = child.map_err(RecordError::io("start the program"))?;
        let (port, started) = Port::new();
        let suspended = Suspended {
            child,
            port: port.clone(),
            first: None,
            started,
            folder,
        };
        let thread = thread::Builder::new().name("port".to_owned());
        let thread = thread.spawn(move || port.accept(&listener));
        thread.map_err(RecordError::io("start a thread"))?;
        Ok(suspended)
    }

    /// Returns the temporary folder of the port, which is removed with this value.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Waits for the first runtime, which [`next`](Self::next) then returns.
    ///
    /// # Errors
    ///
    /// [`RecordError`] if the program ends, or has no runtime of .NET 5 or later within `limit`.
    pub fn wait_for_runtime(&mut self, limit: Duration) -> Result<(), RecordError> {
        let began = Instant::now();
        while self.first.is_none() {
            self.first = self.next(POLL);
            let ended = self.ended();
            if let (None, Some(status)) = (&self.first, ended) {
                return Err(RecordError::Ended(status.to_string()));
            }
            if began.elapsed() > limit {
                return Err(RecordError::NoRuntime(limit));
            }
        }
        Ok(())
    }

    /// Returns the next runtime that starts in the program or its children; `None` if none starts
    /// within `limit`.
    pub fn next(&mut self, limit: Duration) -> Option<Started> {
        if self.first.is_some() {
            return self.first.take();
        }
        self.started.recv_timeout(limit).ok()
    }

    /// Returns the number of runtimes that were resumed without being returned: at most 128 are
    /// returned.
    pub fn excess(&self) -> u64 {
        self.port.excess()
    }

    /// Returns the id of the program's process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns how the program ended, if it did.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Waits for the end of the program.
    ///
    /// # Errors
    ///
    /// [`RecordError::Io`] of the system.
    pub fn wait(&mut self) -> Result<ExitStatus, RecordError> {
        self.child
            .wait()
            .map_err(RecordError::io("wait for the program"))
    }

    /// Kills the program.
    pub fn kill(&mut self) {
        // It may have ended.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Time within which runtimes that were not returned are resumed.
const LEAVE: Duration = Duration::from_secs(2);

impl Drop for Suspended {
    /// Kills a program that has not ended: nothing would resume its later children. Those that
    /// wait run on.
    fn drop(&mut self) {
        self.port.close();
        self.kill();
        let began = Instant::now();
        for started in self.first.take().into_iter().chain(self.started.try_iter()) {
            if began.elapsed() > LEAVE {
                break;
            }
            _ = started.leave(LEAVE);
        }
    }
}
