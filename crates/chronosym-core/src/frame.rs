//! Frames: the result for one address of one stack.

use std::sync::Arc;

use chronosym_events::OptimizationTier;

use crate::evidence::{CallerProof, Certainty, Evidence, LineReason, NameReason};
use crate::functions::Function;
use crate::ids::{BodyIndex, ImageIndex, ModuleIndex, ProcessIndex};
use crate::il_map::IlOffset;
use crate::source_line::SourceLine;

/// The code at an address. Ids are those of the timeline that resolved it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// A code body of a process ([`Timeline::body_view`](crate::Timeline::body_view)).
    Body(ProcessIndex, BodyIndex),
    /// A precompiled method found in the image of a module; no event covers it.
    Precompiled(ProcessIndex, ModuleIndex),
    /// An image ([`Timeline::image_ref`](crate::Timeline::image_ref)).
    Image {
        /// The image's process: the system's for kernel addresses.
        process: ProcessIndex,
        /// The image in that process.
        image: ImageIndex,
        /// Bytes from the image's base to the address.
        rva: u64,
    },
    /// A symbol without a time, numbered from 0 in the order of arrival.
    Untimed(ProcessIndex, u32),
    /// No code.
    Nothing,
}

/// One function at an address of a stack.
///
/// Absent means unknown: no field uses an empty string or a zero for that.
///
/// # Examples
///
/// ```
/// use chronosym_core::facts::{At, Method};
/// use chronosym_core::{Action, Certainty, Evidence, Options, Position, Session};
///
/// let mut session = Session::new(Options::default());
/// let at = At::new(0).process(42);
/// session.apply(at, Method::new(Action::Load, 1, 0x1000, 64).named("Ns.Type", "Run", "void (int32)"));
/// let timeline = session.finish();
/// let process = timeline.find_process(42, None).unwrap();
///
/// let frame = &timeline.frames(process, 0x1010, 100, Position::Exact, None)[0];
/// assert_eq!((frame.name(), frame.offset), (Ok("Ns.Type.Run"), Some(0x10)));
/// assert_eq!(frame.signature(), Some("void (int32)"));
/// assert_eq!(frame.evidence, Some(Evidence::Load));
/// assert_eq!(frame.certainty, Some(Certainty::Exact));
///
/// // A frame without a name has a reason.
/// let frame = &timeline.frames(process, 0x9000, 100, Position::Exact, None)[0];
/// println!("{}", frame.name_reason().unwrap());
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Frame {
    /// The address, as in the stack.
    pub address: u64,
    /// The code at the address; for an inlinee, the body that contains it.
    pub code: Code,
    /// The function, shared by all its frames.
    pub function: Arc<Function>,
    /// The address minus the start of the code body or symbol; for an inlinee, of the body that
    /// contains it.
    pub offset: Option<u64>,
    /// The metadata token of a method of `function`'s module that has no name.
    pub token: Option<u32>,
    /// The IL offset, and how it was found.
    pub il_offset: Option<IlOffset>,
    /// The source line, or why there is none. A frame without a name has no line, and the reason is
    /// meaningless.
    pub line: Result<SourceLine, LineReason>,
    /// Whether the function is inlined into the next frame.
    pub inlined: bool,
    /// The tier that the code was compiled at.
    pub tier: Option<OptimizationTier>,
    /// The evidence for the answer.
    pub evidence: Option<Evidence>,
    /// The certainty of the answer.
    pub certainty: Option<Certainty>,
    /// Whether a lost event could refute the answer: the code was last confirmed before the loss.
    pub after_loss: bool,
    /// How the engine found this frame as the caller of the frame before it; absent if the recorder
    /// walked the stack.
    pub proof: Option<CallerProof>,
    /// Path of the file with the name of native code, if the image's first symbol file had no
    /// answer.
    pub symbol_file: Option<Arc<str>>,
    /// Why the frame has no name, if the function has none.
    pub(crate) unnamed: NameReason,
}

impl Frame {
    /// Creates a frame with nothing but an address and a function.
    pub(crate) fn bare(address: u64, function: Arc<Function>, reason: NameReason) -> Self {
        Frame {
            address,
            code: Code::Nothing,
            function,
            offset: None,
            token: None,
            il_offset: None,
            line: Err(LineReason::NoLineInfo),
            inlined: false,
            tier: None,
            evidence: None,
            certainty: None,
            after_loss: false,
            proof: None,
            symbol_file: None,
            unnamed: reason,
        }
    }

    /// Returns namespace, type and method, or the demangled symbol of native code.
    ///
    /// # Errors
    ///
    /// The reason why there is no name.
    pub fn name(&self) -> Result<&str, NameReason> {
        self.function.name().ok_or(self.unnamed)
    }

    /// Returns why the name is missing or incomplete.
    pub fn name_reason(&self) -> Option<NameReason> {
        let cut = self.unnamed == NameReason::LimitReached;
        (self.name().is_err() || cut).then_some(self.unnamed)
    }

    /// Returns whether it represents frames that exceeded the memory budget
    /// ([`Budget`](crate::Budget)). It has the address of none of them.
    pub fn is_left_out(&self) -> bool {
        self.name() == Err(NameReason::LimitReached) && self.code == Code::Nothing
    }

    /// Returns whether the name is a guess: by a rule, or because lost events may have replaced the
    /// code.
    pub fn is_guess(&self) -> bool {
        let is_guess = self.after_loss || self.certainty == Some(Certainty::Approximate);
        is_guess && self.name().is_ok()
    }

    /// Returns the method's signature as the runtime spells it.
    pub fn signature(&self) -> Option<&str> {
        self.function.signature()
    }

    /// Simple name of the module or image: no folder, no extension.
    pub fn module(&self) -> Option<&str> {
        self.function.binary().map(|binary| binary.name())
    }

    /// Returns why a frame with a name has no line.
    pub fn line_reason(&self) -> Option<LineReason> {
        let reason = self.line.as_ref().err().copied();
        reason.filter(|_| self.name().is_ok())
    }

    /// `module!name`, `module!+0xrva`, or the bare address.
    pub fn label(&self) -> &str {
        self.function.label()
    }
}
