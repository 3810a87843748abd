//! What a damaged wrapper still gives.

use std::io::{self, Read};

use super::meter::{Cancelled, is};
use super::note::{Note, Notes};
use chronosym_core::LimitReached;

/// A source whose damaged end does not cost what comes before it: once it has given something, an error is noted and
/// ends it.
#[derive(Debug)]
pub(super) struct Salvaged<S> {
    source: S,
    name: String,
    notes: Notes,
    has_begun: bool,
    has_ended: bool,
}

impl<S> Salvaged<S> {
    pub fn new(source: S, name: &str, notes: &Notes) -> Self {
        Salvaged {
            source,
            name: name.to_owned(),
            notes: notes.clone(),
            has_begun: false,
            has_ended: false,
        }
    }
}

impl<S: Read> Read for Salvaged<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.has_ended {
            return Ok(0);
        }
        match self.source.read(buffer) {
            Ok(n) => {
                self.has_begun |= n > 0;
                Ok(n)
            }
            Err(error)
                if !self.has_begun
                    || error.kind() == io::ErrorKind::Interrupted
                    || is::<Cancelled>(&error).is_some() =>
            {
                Err(error)
            }
            Err(error) => {
                self.has_ended = true;
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
