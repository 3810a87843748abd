//! What a symboliser does, and what it may take.

use std::sync::Arc;

use crate::kallsyms::Kallsyms;
use chronosym_core::Limits;

/// What a [`Symbolizer`](crate::Symbolizer) does.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SymbolOptions {
    /// Whether lines are looked up. Without them frames say [`LineReason::LinesDisabled`](chronosym_core::LineReason::LinesDisabled).
    pub lines: bool,
    /// Whether names that a compiler gave are shown as what the user wrote: `Program.Main.Local`.
    pub pretty: bool,
    /// Whether a PDB that the caller names is used although it is of another build than the image.
    pub any_pdb: bool,
    /// How many bytes of files are kept open at most: [`Limits::open_symbol_bytes`].
    pub open_bytes: u64,
    /// How many bytes of what was found out are kept at most ([`Limits::symbol_memory_bytes`]): where files are and are not, and answers that were worked out
    /// beforehand. What does not fit is found out again.
    pub memory_bytes: u64,
    /// For how many units each line table of DWARF is read, on average: [`Limits::line_share`].
    pub line_share: usize,
    /// Names of the kernel's functions, where no file with its build id is at hand. Used only if it is of the kernel in the
    /// trace ([`Kallsyms::fits`]).
    pub kallsyms: Option<Arc<Kallsyms>>,
}

impl SymbolOptions {
    /// What takes no more than these limits.
    pub fn within(limits: &Limits) -> Self {
        SymbolOptions {
            lines: true,
            pretty: false,
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
