//! Lines of source code.

use std::sync::Arc;

/// A position in source code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SourceLine {
    /// The file, as the symbol file names it.
    pub file: Arc<str>,
    /// The line number, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: Option<u32>,
}

impl SourceLine {
    /// Creates a position: lines and columns count from 1.
    pub fn new(file: Arc<str>, line: u32, column: Option<u32>) -> Self {
        SourceLine { file, line, column }
    }
}
