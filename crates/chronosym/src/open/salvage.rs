//! What a damaged wrapper still gives.

use std::io::{self, Read};

use super::meter::{Cancelled, is};
use super::note::{Note, Notes};
use crate::limits::LimitReached;

/// A source whose damaged end does not cost what comes before it: once it has given something, an error is noted and
/// ends it.
#[derive(Debug)]
pub(super) struct Salvaged<S> {
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
                if self.state == State::New
                    || error.kind() == io::ErrorKind::Interrupted
                    || is::<Cancelled>(&error).is_some() =>
            {
                Err(error)
            }
            Err(error) => {
                self.state = State::Ended;
                let name = self.name.clone();
                self.notes.push(match is::<LimitReached>(&error) {
                    Some(&limit) => Note::Limit { name, limit },
                    None => Note::Damaged {
                        name,
                        error: error.to_string(),
                    },
                });
                Ok(0)
            }
        }
    }
}
