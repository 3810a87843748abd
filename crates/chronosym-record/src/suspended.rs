//! Programs that are started suspended: their runtimes connect to a port of this process, and wait to
//! be resumed.

use std::os::unix::net::UnixListener;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::error::RecordError;
use crate::ipc::RESUME;
use crate::port::Port;
use crate::provider::Config;
use crate::session::{Runtime, Session};

/// How often it is checked whether the runtime is ready.
const POLL: Duration = Duration::from_millis(20);

/// A program that was started, and waits in its runtime to be resumed.
#[derive(Debug)]
pub struct Suspended {
    child: Child,
    port: Port,
    _folder: TempDir,
}

impl Suspended {
    /// Starts a program. Its runtime waits before it runs any code of the program.
    ///
    /// Of several runtimes in the program and its children the first one is recorded. The others
    /// run unrecorded.
    ///
    /// # Errors
    ///
    /// [`RecordError`] if the program cannot be started, ends, or has no runtime of .NET 5 or later
    /// within `limit`. It is then killed.
    pub fn start(mut command: Command, limit: Duration) -> Result<Self, RecordError> {
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
        let port = Port::default();
        let mut suspended = Suspended {
            child,
            port: port.clone(),
            _folder: folder,
        };
        let thread = thread::Builder::new().name("port".to_owned());
        let thread = thread.spawn(move || port.accept(&listener));
        thread.map_err(RecordError::io("start a thread"))?;
        let began = Instant::now();
        while !suspended.port.is_ready() {
            if let Ok(Some(status)) = suspended.child.try_wait() {
                return Err(RecordError::Ended(status.to_string()));
            }
            if began.elapsed() > limit {
                return Err(RecordError::NoRuntime(limit));
            }
            thread::sleep(POLL);
        }
        Ok(suspended)
    }

    /// Returns the id of the program's process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns its runtime.
    pub fn runtime(&self) -> Runtime {
        Runtime::behind(self.port.clone())
    }

    /// Starts a session and lets the program run.
    ///
    /// # Errors
    ///
    /// [`RecordError`] if the runtime does not answer, or refuses.
    pub fn collect(&self, runtime: &Runtime, config: &Config) -> Result<Session, RecordError> {
        let session = runtime.collect(config)?;
        runtime.send(RESUME, &[])?;
        Ok(session)
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

impl Drop for Suspended {
    /// Kills a program that has not ended: nothing would resume its children.
    fn drop(&mut self) {
        self.port.close();
        self.kill();
    }
}
