//! Lines of source code.

use std::sync::Arc;

/// A position in source code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourceLine {
    /// The file, as the symbol file names it.
    pub file: Arc<str>,
    /// From 1.
    pub line: u32,
    /// From 1.
    pub column: Option<u32>,
}
