//! The second step of resolution: the code at an address → frames, with names, IL offsets, inlinees
//! and lines.

mod body;
mod candidates;
mod image;
mod inlined;
mod inlinees;
mod label;
mod precompiled;
mod untimed;

use std::ops::Range;
use std::sync::Arc;

use chronosym_timeline::Lifetime;

use crate::evidence::{LineReason, NameReason};
use crate::frame::Frame;
use crate::functions::{Binary, BinarySource, Function, FunctionTable};
use crate::ids::NameId;
use crate::ids::{ModuleIndex, ProcessIndex};
use crate::il_map::IlOffset;
use crate::resolve::{AddressAt, CodeAt, Location};
use crate::source_line::SourceLine;
use crate::strings::StringId;
use crate::symbol_source::{ModuleRef, SymbolSource};
use crate::terms::Position;
use crate::timeline::Timeline;

/// The time of a query.
///
/// Closed: a time is known or unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum When {
    /// At a time, in ns since the trace began.
    At(u64),
    /// At an unknown time (rule 19).
    Unknown,
}

/// The code at an address during one lifetime.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Candidate {
    /// The lifetime; `None` if the query has a time, or no code with a lifetime was ever at the
    /// address.
    pub lifetime: Option<Lifetime>,
    /// The frames, innermost first; at least one.
    pub frames: Vec<Frame>,
}

/// The answer to [`Timeline::resolve`].
///
/// Closed: one lifetime answers, or several do.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The code at the time; without a time, the only code that was ever there.
    One(Candidate),
    /// Without a time: several lifetimes, oldest first.
    Ambiguous(Vec<Candidate>),
}

impl Timeline {
    /// Resolves an address of a process. Without a time, a sole occupant is the answer, and several
    /// are all returned.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_core::facts::{At, Method};
    /// use chronosym_core::{Action, Answer, Options, Position, Session, When};
    ///
    /// let mut session = Session::new(Options::default());
    /// let at = At::new(0).process(42);
    /// session.apply(at.at(100), Method::new(Action::Load, 1, 0x1000, 64).named("Ns.Type", "Old", ""));
    /// session.apply(at.at(300), Method::new(Action::Load, 2, 0x1000, 64).named("Ns.Type", "New", ""));
    /// let timeline = session.finish();
    /// let process = timeline.find_process(42, None).unwrap();
    ///
    /// // Without a time, everything that was ever at the address.
    /// let answer = timeline.resolve(process, 0x1010, When::Unknown, Position::Exact, None);
    /// let Answer::Ambiguous(candidates) = answer else { panic!("one answer") };
    /// let names: Vec<_> = candidates.iter().map(|candidate| candidate.frames[0].label()).collect();
    /// assert_eq!(names, ["Ns.Type.Old", "Ns.Type.New"]);
    /// ```
    pub fn resolve(
        &self,
        process: ProcessIndex,
        address: u64,
        when: When,
        position: Position,
        symbols: Option<&dyn SymbolSource>,
    ) -> Answer {
        let candidate = |time, lifetime| Candidate {
            lifetime,
            frames: self.frames(process, address, time, position, symbols),
        };
        let lifetimes = match when {
            When::At(time) => return Answer::One(candidate(time, None)),
            When::Unknown => self.lifetimes_of(process, address, position),
        };
        match lifetimes.as_slice() {
            [] => Answer::One(candidate(u64::MAX, None)),
            [lifetime] => Answer::One(candidate(lifetime.from, Some(*lifetime))),
            lifetimes => {
                let each = lifetimes
                    .iter()
                    .map(|lifetime| candidate(lifetime.from, Some(*lifetime)));
                Answer::Ambiguous(each.collect())
            }
        }
    }

    /// Returns the frames at an address of a process, at a time.
    ///
    /// `time_ns` is in ns since the trace began. Frames are innermost first: the inlinees, then the
    /// method that contains them. No frame is left out: an address without a name is a frame with a
    /// reason. A process of another timeline has no code.
    pub fn frames(
        &self,
        process: ProcessIndex,
        address: u64,
        time_ns: u64,
        position: Position,
        symbols: Option<&dyn SymbolSource>,
    ) -> Vec<Frame> {
        let at = AddressAt::new(process, address, time_ns, position);
        let mut frames = Vec::new();
        let mut builder = FrameBuilder {
            timeline: self,
            symbols,
            functions: &mut FunctionTable::default(),
        };
        builder.frames(at, self.locate(at), &mut frames);
        frames
    }

    /// Returns the lifetimes of the code at an address as in a stack.
    pub(crate) fn lifetimes_of(
        &self,
        process: ProcessIndex,
        address: u64,
        position: Position,
    ) -> Vec<Lifetime> {
        let address = self.normalise(address);
        let lifetimes = self.lifetimes_at(process, position.looked_up(address));
        match position {
            // Without code before it, the address is a first byte.
            Position::Return if lifetimes.is_empty() => self.lifetimes_at(process, address),
            _ => lifetimes,
        }
    }
}

/// A method of a module, by its token.
type Method<'t> = (ModuleRef<'t>, u32);

/// Builds the frames of addresses.
pub(crate) struct FrameBuilder<'a> {
    pub timeline: &'a Timeline,
    pub symbols: Option<&'a dyn SymbolSource>,
    pub functions: &'a mut FunctionTable,
}

/// Returns the name in the source of managed code for which a compiler generated another.
fn shown_name(symbols: Option<&dyn SymbolSource>, name: &str) -> Option<String> {
    let symbols = symbols.filter(|_| name.contains(['<', '@', '$', '`', '[', '+']));
    symbols?.display_name(name)
}

impl<'a> FrameBuilder<'a> {
    /// Appends the frames at an address, innermost first, the method itself last; returns the times
    /// for which they are valid.
    pub(crate) fn frames(
        &mut self,
        at: AddressAt,
        location: Location,
        out: &mut Vec<Frame>,
    ) -> Range<u64> {
        if let Some((frame, lifetime)) = self.precompiled_frame(at, &location) {
            out.push(frame);
            return location.valid.start.max(lifetime.start)..location.valid.end.min(lifetime.end);
        }
        match location.code {
            CodeAt::Body(body) => self.body_frames(at, body, &location, out),
            CodeAt::Untimed { index, contested } => {
                return self.untimed_frames(at, (index, contested), &location, out);
            }
            CodeAt::Image(owner, image) => self.image_frames(at, owner, image, &location, out),
            CodeAt::Nothing(reason) => out.push(self.nothing(at.address, reason)),
        }
        location.valid
    }

    /// Returns the frame of an address without code.
    pub(crate) fn nothing(&mut self, address: u64, reason: NameReason) -> Frame {
        let function = self.functions.unnamed(None, None, address);
        Frame::bare(address, function, reason)
    }

    /// Bytes from a start to an address as in a stack.
    fn distance(&self, address: u64, start: u64) -> u64 {
        self.timeline.normalise(address).saturating_sub(start)
    }

    fn text(&self, id: StringId) -> &'a str {
        self.timeline.names.strings.get(id)
    }

    /// Returns the binary of a module.
    fn module_binary(&mut self, process: ProcessIndex, index: ModuleIndex) -> Option<Arc<Binary>> {
        let timeline = self.timeline;
        self.functions
            .binary(BinarySource::Module(process, index), || {
                let module = &timeline.spaces[process.index()].state.code.modules[index.index()];
                let text = |id| timeline.names.strings.get(id);
                let identity = module
                    .managed_pdb
                    .as_ref()
                    .map(|pdb| format!("{:#}", pdb.id));
                (text(module.simple_name), text(module.il_path), identity)
            })
    }

    /// Returns the function of a name of the timeline; without a name, of the address.
    fn timeline_function(
        &mut self,
        binary: Option<&Arc<Binary>>,
        name: NameId,
        address: u64,
    ) -> Arc<Function> {
        if let Some(function) = self.functions.cached(binary, name) {
            return function;
        }
        let mut full = String::new();
        if !self.timeline.names.push_full(name, &mut full) || full.is_empty() {
            return self.functions.unnamed(binary, None, address);
        }
        let signature = self.signature(name);
        let function = self.managed_function(binary, &full, signature);
        self.functions.cache(name, &function);
        function
    }

    fn signature(&self, name: NameId) -> Option<&'a str> {
        let name = self.timeline.names.get(name)?;
        Some(self.text(name.signature)).filter(|text| !text.is_empty())
    }

    /// Returns the function of managed code, by its source name if a compiler generated another.
    fn managed_function(
        &mut self,
        binary: Option<&Arc<Binary>>,
        name: &str,
        signature: Option<&str>,
    ) -> Arc<Function> {
        let symbols = self.symbols;
        let spelled = symbols.zip(signature);
        let spelled = spelled.and_then(|(symbols, signature)| symbols.display_signature(signature));
        let signature = spelled.as_deref().or(signature);
        match shown_name(symbols, name) {
            Some(shown) => self.functions.named(binary, &shown, signature, Some(name)),
            None => self.functions.named(binary, name, signature, None),
        }
    }

    /// Returns the line of an IL offset of a method.
    fn managed_line(
        &mut self,
        function: &Function,
        method: Option<&Method<'_>>,
        il: Option<IlOffset>,
    ) -> Result<SourceLine, LineReason> {
        if function.name().is_none() {
            return Err(LineReason::NoLineInfo);
        }
        match (self.symbols, il, method) {
            (None, ..) => Err(LineReason::LinesDisabled),
            (_, None, _) => Err(LineReason::NoILMap),
            (_, _, None) => Err(LineReason::NoSymbolFile),
            (Some(symbols), Some(il), Some((module, token))) => {
                let line = symbols.managed_line(module, *token, il);
                line.map(|line| self.functions.line(line))
            }
        }
    }
}
