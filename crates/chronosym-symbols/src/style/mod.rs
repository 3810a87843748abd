//! Prints answers: as text, as JSON, or as llvm-symbolizer and addr2line print them.

pub mod context;
mod layout;
mod shape;

use std::borrow::Cow;
use std::io::{self, Write};
use std::num::NonZeroU32;
use std::sync::OnceLock;

use chronosym_types::json::{FrameObject, FunctionStart};

use crate::answer::{Answer, Answers, Frame, Missing, NameId, Source};
use crate::demangle::{Unreadable, demangle_as};
use crate::identity::BuildId;

pub use layout::{APPROXIMATE_LINE, Style, print};
pub use shape::{Functions, Shape};

const LIMIT_REACHED: &str = "LimitReached";

/// Marks a frame from a symbol file of another build.
pub const OTHER_BUILD: &str = " [of another build]";

/// The image that the addresses are in, for frames without a name.
///
/// Closed: callers build it as a literal.
#[derive(Clone, Debug)]
pub struct Image<'a> {
    /// Its file name.
    pub module: &'a str,
    /// The virtual address from which RVAs count.
    pub base: u64,
    /// Its build ID, if it has one.
    pub build_id: Option<&'a BuildId>,
    /// The id of the PDB that a PE image names.
    pub pdb_id: Option<&'a str>,
    /// The reason of frames without a name that have no other reason.
    pub no_name: &'a str,
    /// The number that was subtracted from addresses before the lookup: 1 for return addresses.
    pub subtracted: u64,
    /// Whether offsets follow names.
    pub offsets: bool,
    /// Whether the symbol file belongs to another build: its frames are marked.
    pub other_build: bool,
}

/// Prints the answers of one batch, from any number of threads. Demangles each name at most once.
#[derive(Debug)]
pub struct Printer<'a> {
    style: Style,
    shape: Shape,
    answers: &'a Answers,
    demangle: bool,
    image: Option<Image<'a>>,
    /// The image's build ID as text.
    build_id: Option<String>,
    readable: Vec<OnceLock<Result<Box<str>, Unreadable>>>,
}

impl<'a> Printer<'a> {
    /// Creates a printer of one batch of answers.
    pub fn new(style: Style, answers: &'a Answers) -> Self {
        Self {
            style,
            shape: Shape::default(),
            answers,
            demangle: true,
            image: None,
            build_id: None,
            readable: if style.dialect().is_some() {
                vec![OnceLock::new(); answers.name_count()]
            } else {
                // The buffer caches them.
                Vec::new()
            },
        }
    }

    /// Returns whether names are printed demangled (the default) or as in the file.
    pub fn demangle(mut self, demangle: bool) -> Self {
        self.demangle = demangle;
        self
    }

    /// Sets what the styles of other tools print.
    pub fn shape(mut self, shape: Shape) -> Self {
        self.shape = shape;
        self
    }

    /// Sets the image that the addresses are in.
    pub fn image(mut self, image: Image<'a>) -> Self {
        self.build_id = image.build_id.map(BuildId::to_string);
        self.image = Some(image);
        self
    }

    /// Prints one answer under `address`.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn print(&self, out: &mut impl Write, address: u64, answer: &Answer<'a>) -> io::Result<()> {
        let text = self.style.address(&self.shape, address);
        let frames = self.frames(address, answer);
        print(self.style, &self.shape, out, &text, frames)
    }

    /// Prints all answers, each under its virtual address.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn print_all(&self, out: &mut impl Write) -> io::Result<()> {
        self.answers
            .iter()
            .try_for_each(|answer| self.print(out, answer.address(), &answer))
    }

    /// Returns the frames of an answer, innermost first, or one frame with the reason why there are
    /// none. `address` is the printed address.
    pub fn frames(
        &self,
        address: u64,
        answer: &Answer<'a>,
    ) -> impl Iterator<Item = FrameObject<'_>> {
        // Offsets count from the start of the outermost function, for inlined frames as well.
        let body = answer.frames().last().and_then(|f| f.function_start());
        let offset = body.and_then(|start| self.printed_address(answer).checked_sub(start));
        let answer = *answer;
        let frames = answer.frames();
        let frames = frames.map(move |frame| self.frame(address, &answer, &frame, offset));
        // Created on demand, to keep the iterator small.
        let missing = answer.missing().into_iter();
        let missing = missing.map(move |missing| self.missing(address, &answer, missing));
        missing.chain(frames)
    }

    /// Returns the virtual address of the printed address, which [`Image::subtracted`] undoes.
    fn printed_address(&self, answer: &Answer<'_>) -> u64 {
        let subtracted = self.image.as_ref().map_or(0, |image| image.subtracted);
        answer.address().saturating_add(subtracted)
    }

    /// Returns the name that the style prints.
    fn name_id(&self, frame: &Frame<'_>) -> Option<NameId> {
        let symbol = match self.style {
            Style::Text | Style::Json => None,
            Style::Llvm if self.shape.functions != Functions::Linkage => None,
            // LLVM prints the symbol's name for the outermost function.
            Style::Llvm => frame.symbol_id().filter(|&id| {
                // A decorated name that does not demangle is less useful than the function's own.
                !self.answers.name(id).starts_with('?')
                    || self.readable(id).is_some_and(Result::is_ok)
            }),
            // If a C++ function has no linkage name in the debug information, as in an unnamed
            // namespace, binutils print the symbol's name. (For inlined functions they may print
            // that of the outer function, depending on earlier addresses; that is not followed.)
            Style::Gnu => frame.symbol_id().filter(|_| {
                let is_linkage_name = frame.name().is_some_and(is_linkage_name);
                let is_other = frame.source() != Source::DebugInfo;
                is_other || !frame.inlined() && !frame.plain_names() && !is_linkage_name
            }),
        };
        let is_unnamed = self.style.dialect().is_some() && frame.source() == Source::Plt;
        symbol.or(frame.name_id().filter(|_| !is_unnamed))
    }

    /// Returns whether the style omits a frame that only the symbol table has: LLVM reads it for
    /// linkage names only.
    fn omits(&self, frame: &Frame<'_>) -> bool {
        let is_linkage = self.shape.functions == Functions::Linkage;
        self.style == Style::Llvm && !is_linkage && frame.source() != Source::DebugInfo
    }

    fn missing(&self, address: u64, answer: &Answer<'_>, missing: Missing) -> FrameObject<'_> {
        let (meaning, reason) = match missing {
            Missing::OutsideImage => ("outside the image", "InvalidAddress"),
            Missing::NoSegment => ("the image's program headers are needed", "NoSymbolFile"),
            Missing::NoName => ("no name", self.no_name()),
            Missing::Damaged => ("debug information damaged", "SymbolFileDamaged"),
            Missing::LimitReached => ("a limit was reached", LIMIT_REACHED),
        };
        let mut object = FrameObject::at(address);
        object.meaning = Some(meaning.into());
        if missing != Missing::OutsideImage {
            self.locate(answer, &mut object);
        }
        object.name_reason = Some(reason);
        object
    }

    fn frame(
        &self,
        address: u64,
        answer: &Answer<'_>,
        frame: &Frame<'a>,
        offset: Option<u64>,
    ) -> FrameObject<'_> {
        let mut object = FrameObject::at(address);
        let id = self.name_id(frame).filter(|_| !self.omits(frame));
        object.name = id.map(|id| self.name(id));
        let is_limited = |id| match self.readable(id) {
            Some(readable) => *readable == Err(Unreadable::LimitReached),
            None => self.answers.name_limited(id),
        };
        if self.demangle && id.is_some_and(is_limited) {
            object.name_reason = Some(LIMIT_REACHED);
        }
        if object.name.is_none() {
            self.locate(answer, &mut object);
            object.name_reason = Some(self.no_name());
        } else if frame.line().is_none() {
            object.line_reason = Some(match self.answers.lines {
                false => "LinesDisabled",
                true if frame.line_limited() => LIMIT_REACHED,
                true => "NoLineInfo",
            });
        }
        object.offset = offset;
        object.file = frame.file().filter(|_| !self.omits(frame));
        object.line = frame.line().map(NonZeroU32::get);
        object.column = frame.column().map(NonZeroU32::get);
        object.discriminator = frame.discriminator();
        if self.shape.has_starts {
            object.start = self.start(frame);
        }
        object.inlined = frame.inlined();
        let other_build = self.image.as_ref().is_some_and(|image| image.other_build);
        let is_approximate =
            other_build || frame.source().is_approximate() || frame.line_uncertain();
        object.certainty = is_approximate.then_some("Approximate");
        if self.style == Style::Text && !frame.inlined() && self.has_offsets() {
            let name = object.name.unwrap_or("??");
            let offset = offset.unwrap_or(0);
            object.label = Some(format!("{name}+{offset:#x}").into());
        }
        object.mark = match frame.source() {
            _ if frame.line_approximate() => APPROXIMATE_LINE,
            _ if other_build => OTHER_BUILD,
            _ if frame.line_uncertain() => " [line may be an inlined function's]",
            Source::DebugInfo | Source::PublicSymbols => "",
            Source::SymbolTable => " [symbol]",
            Source::DynamicSymbols => " [dynamic symbol]",
            Source::Export => " [nearest export]",
            Source::Plt => " [stub]",
        };
        object
    }

    /// Returns where a function starts. LLVM prints the start of the symbol for the outermost one.
    fn start(&self, frame: &Frame<'a>) -> FunctionStart<'a> {
        let mut start = frame.declaration();
        let is_symbol = frame.source() != Source::DebugInfo || frame.symbol_id().is_some();
        if is_symbol && !frame.inlined() && self.shape.functions == Functions::Linkage {
            start.address = frame.function_start();
        }
        start
    }

    fn has_offsets(&self) -> bool {
        self.image.as_ref().is_some_and(|image| image.offsets)
    }

    fn no_name(&self) -> &str {
        self.image.as_ref().map_or("NoName", |image| image.no_name)
    }

    /// Sets the image and the RVA of a frame without a name.
    fn locate<'o>(&'o self, answer: &Answer<'_>, object: &mut FrameObject<'o>) {
        let Some(image) = &self.image else {
            return;
        };
        object.module = Some(image.module);
        object.rva = self.printed_address(answer).checked_sub(image.base);
        object.build_id = self.build_id.as_deref().map(Cow::Borrowed);
        object.pdb_id = image.pdb_id.map(Cow::Borrowed);
    }

    fn name(&self, id: NameId) -> &str {
        let raw = self.answers.name(id);
        if !self.demangle && self.shape.functions != Functions::Short {
            return raw;
        }
        match self.readable(id) {
            Some(Ok(readable)) => readable,
            Some(Err(why)) => why.shown(raw),
            None => self.answers.demangled(id),
        }
    }

    /// Returns the name as the tool of the style demangles it, once for each name.
    fn readable(&self, id: NameId) -> Option<&Result<Box<str>, Unreadable>> {
        let dialect = self.style.dialect()?;
        let readable = || demangle_as(self.answers.name(id), dialect).map(String::into_boxed_str);
        Some(self.readable.get(id.index())?.get_or_init(readable))
    }
}

/// Returns true for a mangled name, as compilers write in `DW_AT_linkage_name`.
fn is_linkage_name(name: &str) -> bool {
    name.starts_with("_Z") || name.starts_with("_R")
}
