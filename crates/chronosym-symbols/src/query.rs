//! Options of a lookup.

use crate::demangle::Dialect;

/// The data to look up for each address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Query {
    /// Whether inlinees have frames of their own. If not, an address has one frame: the function
    /// that contains it, at the innermost line.
    pub inlines: bool,
    /// Whether to look up source lines.
    pub lines: bool,
    /// Looks up, for each address, the symbol name that the tools of this dialect print, which may
    /// differ from that of the debug information ([`Frame::symbol_id`](crate::Frame::symbol_id)).
    pub symbol_names: Option<Dialect>,
    /// Threads that a large batch may use; 0 for one per processor.
    pub threads: usize,
    /// Units for which each line table is read, on average; further units have no lines
    /// ([`Frame::line_limited`](crate::Frame::line_limited)). The default is 4: units have tables
    /// of their own, or a few share one.
    pub line_share: usize,
}

impl Default for Query {
    fn default() -> Self {
        Self {
            inlines: true,
            lines: true,
            symbol_names: None,
            threads: 0,
            line_share: 4,
        }
    }
}
