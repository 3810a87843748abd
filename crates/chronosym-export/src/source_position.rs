//! Lines of source files.

use serde::Serialize;

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub struct SourcePosition {
    /// The path, as the symbol file states it.
    pub file: String,
    /// The line number, from 1.
    pub line: u32,
}

impl SourcePosition {
    /// `Program.cs:12`.
    pub(crate) fn text(&self) -> String {
        format!("{}:{}", chronosym_core::file_name(&self.file), self.line)
    }
}
