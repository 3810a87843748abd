//! What a damaged wrapper still gives.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

/// What was found damaged while files are read, perhaps on another thread, in words.
#[derive(Clone, Debug, Default)]
pub struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    pub fn push(&self, note: String) {
        self.list().push(note);
    }

    /// The notes so far; they are not kept.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.list())
    }

    fn list(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A source whose damaged end does not cost what comes before it: once it has given something, an error is noted and ends
/// it.
#[derive(Debug)]
pub struct Salvaged<S> {
    source: S,
    name: String,
    notes: Notes,
    state: State,
}

#[derive(Debug, PartialEq)]
enum State {
    New,
    Begun,
    Ended,
}

impl<S> Salvaged<S> {
    pub fn new(source: S, name: &str, notes: &Notes) -> Self {
        Salvaged {
            source,
            name: name.to_owned(),
            notes: notes.clone(),
            state: State::New,
        }
    }
}

impl<S: Read> Read for Salvaged<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.state == State::Ended {
            return Ok(0);
        }
        match self.source.read(buffer) {
            Ok(n) => {
                if n > 0 {
                    self.state = State::Begun;
                }
                Ok(n)
            }
            Err(error)
                if self.state == State::New || error.kind() == io::ErrorKind::Interrupted =>
            {
                Err(error)
            }
            Err(error) => {
                self.state = State::Ended;
                let name = &self.name;
                self.notes
                    .push(format!("{name} is damaged: {error}; reading what is there"));
                Ok(0)
            }
        }
    }
}
