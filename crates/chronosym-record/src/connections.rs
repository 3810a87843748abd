//! Connections of a runtime that wait for a command.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::error::RecordError;
use crate::stream::Stream;

/// Maximum number of waiting connections. A runtime opens them one at a time.
const MOST: usize = 16;

/// The connections that a runtime has made to a port, each for one command.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connections {
    shared: Arc<(Mutex<VecDeque<Stream>>, Condvar)>,
}

impl Connections {
    /// Adds a connection; one too many is closed.
    pub fn push(&self, stream: Stream) {
        let mut waiting = self.shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push_back(stream);
        waiting.truncate(MOST);
        self.shared.1.notify_all();
    }

    /// Returns a connection for one command.
    pub fn next(&self, limit: Duration) -> Result<Stream, RecordError> {
        let (waiting, changed) = &*self.shared;
        let waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = changed.wait_timeout_while(waiting, limit, |it| it.is_empty());
        let (mut waiting, _) = waiting.unwrap_or_else(PoisonError::into_inner);
        waiting.pop_front().ok_or(RecordError::Silent(limit))
    }
}
