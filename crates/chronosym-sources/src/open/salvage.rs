//! Reads the intact start of a damaged archive or compression layer.

use std::io::{self, Read};

use super::layers::LayerDiagnostics;
use super::meter::{Cancelled, is};
use chronosym_core::LimitReached;

/// A source that ends at the first error and reports it as a diagnostic, if it has returned data
/// before.
#[derive(Debug)]
pub(super) struct Salvaged<S> {
    source: S,
    name: String,
    notes: LayerDiagnostics,
    has_begun: bool,
    has_ended: bool,
}

impl<S> Salvaged<S> {
    pub fn new(source: S, name: &str, notes: &LayerDiagnostics) -> Self {
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
                match is::<LimitReached>(&error) {
                    Some(&limit) => self.notes.limit(&self.name, limit),
                    None => self.notes.damaged_from_here(&self.name, error),
                }
                Ok(0)
            }
        }
    }
}
