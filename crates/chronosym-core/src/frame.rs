//! Frames: the answer for one address of one stack.

use std::sync::Arc;

use chronosym_events::OptimizationTier;

use crate::evidence::{CallerProof, Certainty, Evidence, LineReason, NameReason};
use crate::functions::Function;
use crate::ids::{BodyIndex, ImageIndex, ModuleIndex, ProcessIndex};
use crate::il_map::IlOffset;
use crate::source_line::SourceLine;

/// What stands at an address. Its ids are those of the timeline that answered, which has all that is known of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// A code body of a process ([`Timeline::body_view`](crate::Timeline::body_view)).
    Body(ProcessIndex, BodyIndex),
    /// A precompiled method of a module that no event tells of: the module's image does.
    Precompiled(ProcessIndex, ModuleIndex),
    /// An image ([`Timeline::image_ref`](crate::Timeline::image_ref)).
    Image {
        /// Whose image it is: the system's for kernel addresses.
        process: ProcessIndex,
        /// Which of its images.
        image: ImageIndex,
        /// Bytes from the image's base to the address.
        rva: u64,
    },
    /// A symbol without a time; they are counted from 0 in the order in which they came.
    Untimed(ProcessIndex, u32),
    /// No code that is known.
    Nothing,
}

/// What an address of a stack stands for.
///
/// Absent means unknown: no field holds an empty string or a zero that stands for unknown.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Frame {
    /// The address, as the stack has it.
    pub address: u64,
    /// What stands there. Of an inlined frame: the body that it is inlined into.
    pub code: Code,
    /// The function. Frames of one function share it.
    pub function: Arc<Function>,
    /// The address minus the start of the code body or symbol; of an inlined frame, of the body that it is inlined into.
    pub offset: Option<u64>,
    /// Bytes from the start of the method's IL, and how they were found.
    pub il_offset: Option<IlOffset>,
    /// The source line, or why there is none; without a name there is no line either, and the reason says nothing more.
    pub line: Result<SourceLine, LineReason>,
    /// Inlined into the next frame that is not.
    pub inlined: bool,
    /// How the code was compiled.
    pub tier: Option<OptimizationTier>,
    /// What says so.
    pub evidence: Option<Evidence>,
    /// How sure that is.
    pub certainty: Option<Certainty>,
    /// By what it was found as the caller of the frame before it, where the engine walked the stack itself; absent where the
    /// recorder did.
    pub proof: Option<CallerProof>,
    /// Path of the file that the name of native code is from, if the image's first symbol file had no answer.
    pub symbol_file: Option<Arc<str>>,
    /// Why there is no name, where the function has none.
    pub(crate) unnamed: NameReason,
}

impl Frame {
    /// A frame of which only the address and the function are known.
    pub(crate) fn bare(address: u64, function: Arc<Function>, reason: NameReason) -> Self {
        Frame {
            address,
            code: Code::Nothing,
            function,
            offset: None,
            il_offset: None,
            line: Err(LineReason::NoLineInfo),
            inlined: false,
            tier: None,
            evidence: None,
            certainty: None,
            proof: None,
            symbol_file: None,
            unnamed: reason,
        }
    }

    /// Namespace, type and method; for native code the demangled symbol. Or why there is none.
    pub fn name(&self) -> Result<&str, NameReason> {
        self.function.name().ok_or(self.unnamed)
    }

    /// Why there is no name, or not all of it.
    pub fn name_reason(&self) -> Option<NameReason> {
        let cut = self.unnamed == NameReason::LimitReached;
        (self.name().is_err() || cut).then_some(self.unnamed)
    }

    /// Whether it has a name that is a guess.
    pub fn is_guess(&self) -> bool {
        self.name().is_ok() && self.certainty == Some(Certainty::Approximate)
    }

    /// The method's signature as the runtime spells it.
    pub fn signature(&self) -> Option<&str> {
        self.function.signature()
    }

    /// Simple name of the module or image: no folder, no extension.
    pub fn module(&self) -> Option<&str> {
        self.function.binary().map(|binary| binary.name())
    }

    /// Why a frame with a name has no line.
    pub fn line_reason(&self) -> Option<LineReason> {
        let reason = self.line.as_ref().err().copied();
        reason.filter(|_| self.name().is_ok())
    }

    /// `module!name`, `module!+0xrva`, or the bare address.
    pub fn label(&self) -> &str {
        self.function.label()
    }
}
