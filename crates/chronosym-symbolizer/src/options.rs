//! Options and limits of a symbolizer.

use std::sync::Arc;

use crate::kallsyms::Kallsyms;
use chronosym_core::Limits;

/// Options of a [`Symbolizer`](crate::Symbolizer).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SymbolOptions {
    /// Whether lines are looked up. If not, frames have the reason
    /// [`LineReason::LinesDisabled`](chronosym_core::LineReason::LinesDisabled).
    pub lines: bool,
    /// Whether compiler-generated names are shown in source form: `Program.Main.Local`.
    pub pretty: bool,
    /// Whether managed names are spelled as in C#, [`pretty`](Self::pretty) ones included:
    /// `Cell<int>.Get`.
    pub source_names: bool,
    /// Whether a PDB that the caller names is used even if it belongs to another build than the
    /// image.
    pub any_pdb: bool,
    /// Maximum number of bytes of files to keep open: [`Limits::open_symbol_bytes`].
    pub open_bytes: u64,
    /// Maximum number of bytes of cached results ([`Limits::symbol_memory_bytes`]): the outcomes of
    /// searches, and frames resolved in advance. Evicted results are computed again.
    pub memory_bytes: u64,
    /// Average number of units for which each DWARF line table is read: [`Limits::line_share`].
    pub line_share: usize,
    /// Names of the kernel's functions, for use if no file with its build ID is available. Used
    /// only if they belong to the kernel in the trace ([`Kallsyms::fits`]).
    pub kallsyms: Option<Arc<Kallsyms>>,
}

impl SymbolOptions {
    /// Returns options with these limits.
    pub fn within(limits: &Limits) -> Self {
        SymbolOptions {
            lines: true,
            pretty: false,
            source_names: false,
            any_pdb: false,
            open_bytes: limits.open_symbol_bytes,
            memory_bytes: limits.symbol_memory_bytes,
            line_share: limits.line_share,
            kallsyms: None,
        }
    }
}

impl Default for SymbolOptions {
    fn default() -> Self {
        Self::within(&Limits::default())
    }
}
