//! Sources that resolve requests: a file, several files, or a trace.

use anyhow::Result;

use super::shown::{Layout, Unknown};
use crate::request::AddressRequest;

/// Appends the answer to the request with an index, on any thread. In a log, returns why nothing is
/// known.
pub type Answers<'s> = Box<dyn Fn(usize, &mut Vec<u8>) -> Option<Unknown> + Sync + 's>;

/// A source that resolves addresses.
pub trait Source {
    /// Resolves requests.
    fn answer<'s>(
        &'s mut self,
        questions: Vec<AddressRequest<'s>>,
        layout: Layout,
    ) -> Result<Answers<'s>>;

    /// Returns the ids that distinguish the file from others of its name: build ID, PDB id, module
    /// version id.
    fn ids(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns whether it has a section, a function or a managed method with a name, to which
    /// offsets can be relative.
    fn has_part(&self, _name: &str) -> bool {
        false
    }

    /// Returns notes on damaged and missing data.
    fn notes(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Converts the symbols of the files for the cache, where that is due.
    fn convert(&self) {}
}
