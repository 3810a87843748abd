//! Frames: the answer for one address of one stack.

use std::sync::Arc;

use chronosym_events::OptimizationTier;

use crate::evidence::{Certainty, Evidence, LineReason, NameReason};
use crate::il_map::IlSource;

/// How an address came to be in a stack (rule 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Position {
    /// The thread stood at this very address.
    Exact,
    /// A call will return to it: the call itself lies before it.
    Return,
}

impl Position {
    /// The address of what stood there: of the call, if it is one that will return.
    pub fn looked_up(self, address: u64) -> u64 {
        match self {
            Position::Exact => address,
            Position::Return => address.saturating_sub(1),
        }
    }
}

/// What stood at an address.
///
/// Absent means unknown: no field holds an empty string or a zero that stands for unknown.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// The address, as the stack has it.
    pub address: u64,
    /// Namespace, type and method; for native code the demangled symbol.
    pub name: Option<Arc<str>>,
    /// The method's signature as the runtime spells it.
    pub signature: Option<Arc<str>>,
    /// Simple name of the module or image: no folder, no extension.
    pub module: Option<Arc<str>>,
    /// Bytes from the start of the code body.
    pub offset: Option<u64>,
    /// Bytes from the start of the method's IL, and how they were found.
    pub il_offset: Option<(u32, IlSource)>,
    /// The source line.
    pub line: Option<SourceLine>,
    /// Why a named frame has no line.
    pub line_reason: Option<LineReason>,
    /// Inlined into the next frame that is not.
    pub inlined: bool,
    /// How the code was compiled.
    pub tier: Option<OptimizationTier>,
    /// What says so.
    pub evidence: Option<Evidence>,
    /// How sure that is.
    pub certainty: Option<Certainty>,
    /// Why there is no name.
    pub name_reason: Option<NameReason>,
    /// Bytes from the base of the image.
    pub rva: Option<u64>,
    /// Identity of the image's symbol file: signature and age.
    pub pdb_id: Option<Arc<str>>,
    /// Identity of an ELF image, in hex.
    pub build_id: Option<Arc<str>>,
}

/// A place in source code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourceLine {
    /// The file, as the symbols name it.
    pub file: Arc<str>,
    /// From 1.
    pub line: u32,
    /// From 1.
    pub column: Option<u32>,
}

impl Frame {
    /// A frame of which only the address is known, and why.
    pub(crate) fn unnamed(address: u64, reason: NameReason) -> Self {
        Frame {
            address,
            name: None,
            signature: None,
            module: None,
            offset: None,
            il_offset: None,
            line: None,
            line_reason: None,
            inlined: false,
            tier: None,
            evidence: None,
            certainty: None,
            name_reason: Some(reason),
            rva: None,
            pdb_id: None,
            build_id: None,
        }
    }

    /// Appends `module!name`, `module!+0xrva`, or the bare address.
    pub fn push_label(&self, out: &mut String) {
        use std::fmt::Write;
        // Writing to a String does not fail.
        let _ = match (&self.module, &self.name, self.rva) {
            (Some(module), Some(name), _) => write!(out, "{module}!{name}"),
            (Some(module), None, Some(rva)) => write!(out, "{module}!+{rva:#x}"),
            (None, Some(name), _) => {
                out.push_str(name);
                Ok(())
            }
            (_, None, _) => write!(out, "{:#x}", self.address),
        };
    }

    /// The label as a string of its own.
    pub fn label(&self) -> String {
        let mut out = String::new();
        self.push_label(&mut out);
        out
    }
}
