//! The inlined calls in inline trees.

use std::sync::Arc;

use crate::functions::Function;
use crate::source_line::SourceLine;

/// A node of a body's inline tree: the method itself, or a call that is inlined into it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Inlinee {
    /// The method.
    pub function: Arc<Function>,
    /// The index of the node that calls it; absent for the method itself.
    pub parent: Option<u32>,
    /// The line of the call; absent if the runtime states no valid offset of it (.NET 10), or no
    /// symbol file has the line.
    pub line: Option<SourceLine>,
}
