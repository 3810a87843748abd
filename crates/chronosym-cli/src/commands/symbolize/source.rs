//! What answers questions: a file, several of them, or a trace.

use anyhow::Result;

use super::shown::{Layout, Unknown};
use crate::request::AddressRequest;

/// Appends the answer to a question, given by its number, from any thread. In a log, returns why nothing is known.
pub type Answers<'s> = Box<dyn Fn(usize, &mut Vec<u8>) -> Option<Unknown> + Sync + 's>;

/// Something that knows what stands at addresses.
pub trait Source {
    /// Finds what stands at the places of the questions.
    fn answer<'s>(
        &'s mut self,
        questions: Vec<AddressRequest<'s>>,
        layout: Layout,
    ) -> Result<Answers<'s>>;

    /// What tells the file from others of its name: ids of its build, its PDB, its module version.
    fn ids(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether it has a section, a function or a managed method of that name, from whose start offsets can count.
    fn has_part(&self, _name: &str) -> bool {
        false
    }

    /// What was damaged or missed.
    fn notes(&mut self) -> Vec<String> {
        Vec::new()
    }
}
