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
    /// Whether paths of source files have no compilation directory in front, unless they are
    /// recorded with it. Only for DWARF.
    pub relative_paths: bool,
    /// Whether code that belongs to no line has the last line before it
    /// ([`Frame::line_approximate`](crate::Frame::line_approximate)). Only for DWARF.
    pub skip_line_zero: bool,
    /// Whether to look up where functions are declared
    /// ([`Frame::declaration`](crate::Frame::declaration)). Only for DWARF.
    pub declarations: bool,
}

impl Default for Query {
    fn default() -> Self {
        Self {
            inlines: true,
            lines: true,
            symbol_names: None,
            threads: 0,
            line_share: 4,
            relative_paths: false,
            skip_line_zero: false,
            declarations: false,
        }
    }
}

impl Query {
    /// Returns whether answers may come from converted symbols, which lack what only
    /// llvm-symbolizer prints.
    pub(crate) fn is_convertible(&self) -> bool {
        !(self.relative_paths || self.skip_line_zero || self.declarations)
    }
}
