//! Runtimes that wait to be resumed.

use std::time::Duration;

use crate::error::RecordError;
use crate::ipc::RESUME;
use crate::provider::Config;
use crate::session::{Limits, Runtime, Session};

/// A runtime that has started in a program, and waits to be resumed.
#[derive(Debug)]
pub struct Started {
    pub(crate) pid: u32,
    pub(crate) runtime: Runtime,
}

impl Started {
    /// Returns the id of its process, as the process itself sees it.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Starts a session and lets the program run. If the runtime refuses, the program runs without.
    ///
    /// # Errors
    ///
    /// [`RecordError`] if the runtime does not answer, or refuses.
    pub fn collect(&self, config: &Config) -> Result<Session, RecordError> {
        let session = self.runtime.collect(config);
        let resumed = self.resume();
        let session = session?;
        resumed?;
        Ok(session)
    }

    /// Lets the program run.
    ///
    /// # Errors
    ///
    /// [`RecordError`] if the runtime does not answer, or refuses.
    pub fn resume(&self) -> Result<(), RecordError> {
        self.runtime.send(RESUME, &[]).map(|_| ())
    }

    /// Lets the program run, if its runtime answers within `limit`.
    pub(crate) fn leave(self, limit: Duration) -> Result<(), RecordError> {
        let limits = Limits {
            reply: limit,
            ..Limits::default()
        };
        self.runtime.limits(limits).send(RESUME, &[]).map(|_| ())
    }
}
