//! The second step: what stands at an address → frames, with names, IL offsets, inlined methods and lines.

mod body;
mod image;
mod inlined;
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
use crate::resolve::{AddressAt, Found, Location};
use crate::source_line::SourceLine;
use crate::strings::StringId;
use crate::symbol_source::{ModuleRef, SymbolSource};
use crate::terms::Position;
use crate::timeline::Timeline;

/// When something is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum When {
    /// At a time, in ns since the trace began.
    At(u64),
    /// At an unknown time (rule 19).
    Unknown,
}

/// What stood at an address during one life.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Candidate {
    /// When it was there; `None` where the time was given, or nothing with a life ever stood there.
    pub life: Option<Lifetime>,
    /// Its frames, innermost first; never none.
    pub frames: Vec<Frame>,
}

/// The answer to [`Timeline::resolve`].
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// What stood there at the time; without a time, all that ever did.
    One(Candidate),
    /// Without a time: the several that stood there, oldest first.
    Ambiguous(Vec<Candidate>),
}

impl Timeline {
    /// What stood at an address of a process. Without a time the sole occupant answers, and of several each does.
    pub fn resolve(
        &self,
        process: ProcessIndex,
        address: u64,
        when: When,
        position: Position,
        symbols: Option<&dyn SymbolSource>,
    ) -> Answer {
        let candidate = |time, life| Candidate {
            life,
            frames: self.frames(process, address, time, position, symbols),
        };
        let lives = match when {
            When::At(time) => return Answer::One(candidate(time, None)),
            When::Unknown => self.lives_of(process, address, position),
        };
        match lives.as_slice() {
            [] => Answer::One(candidate(u64::MAX, None)),
            [life] => Answer::One(candidate(life.from, Some(*life))),
            lives => {
                let each = lives.iter().map(|life| candidate(life.from, Some(*life)));
                Answer::Ambiguous(each.collect())
            }
        }
    }

    /// The frames at an address of a process, at a time.
    ///
    /// `time_ns` is counted from the begin of the trace. Frames come innermost first: those that are inlined, then the
    /// method which they are inlined into. Nothing is ever left out: an address without a name is a frame with a reason. In a
    /// process that this timeline does not have there is no code.
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

    /// The lives of what stands at an address as a stack has it.
    pub(crate) fn lives_of(
        &self,
        process: ProcessIndex,
        address: u64,
        position: Position,
    ) -> Vec<Lifetime> {
        let address = self.normalise(address);
        let lives = self.lives_at(process, position.looked_up(address));
        match position {
            // Nothing before it: then it is the first byte of what stands there.
            Position::Return if lives.is_empty() => self.lives_at(process, address),
            _ => lives,
        }
    }
}

/// A method, as a symbol source knows it: its module and its token.
type Method<'t> = (ModuleRef<'t>, u32);

/// Makes frames of what stands at addresses.
pub(crate) struct FrameBuilder<'a> {
    pub timeline: &'a Timeline,
    pub symbols: Option<&'a dyn SymbolSource>,
    pub functions: &'a mut FunctionTable,
}

impl<'a> FrameBuilder<'a> {
    /// Appends the frames at an address, innermost inlined first, the method itself last; gives the times for which they hold.
    pub(crate) fn frames(
        &mut self,
        at: AddressAt,
        location: Location,
        out: &mut Vec<Frame>,
    ) -> Range<u64> {
        if let Some((frame, life)) = self.precompiled_frame(at, &location) {
            out.push(frame);
            return location.valid.start.max(life.start)..location.valid.end.min(life.end);
        }
        match location.found {
            Found::Body(body) => self.body_frames(at, body, &location, out),
            Found::Untimed { row, contested } => {
                out.push(self.untimed_frame(at, row, contested));
            }
            Found::Image(owner, image) => self.image_frames(at, owner, image, &location, out),
            Found::Nothing(reason) => out.push(self.nothing(at.address, reason)),
        }
        location.valid
    }

    /// The frame of an address where no code is known.
    pub(crate) fn nothing(&mut self, address: u64, reason: NameReason) -> Frame {
        let function = self.functions.unnamed(None, None, address);
        Frame::bare(address, function, reason)
    }

    /// Bytes from a start to an address as a stack has it.
    fn distance(&self, address: u64, start: u64) -> u64 {
        self.timeline.normalise(address).saturating_sub(start)
    }

    fn text(&self, id: StringId) -> &'a str {
        self.timeline.names.strings.get(id)
    }

    /// A module's file.
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

    /// The function that a name of the timeline stands for; without one, the code at the address alone.
    fn timeline_function(
        &mut self,
        binary: Option<&Arc<Binary>>,
        name: NameId,
        address: u64,
    ) -> Arc<Function> {
        if let Some(known) = self.functions.known(binary, name) {
            return known;
        }
        let mut full = String::new();
        if !self.timeline.names.push_full(name, &mut full) || full.is_empty() {
            return self.functions.unnamed(binary, None, address);
        }
        let signature = self.signature(name);
        let function = self.managed_function(binary, &full, signature);
        self.functions.remember(name, &function);
        function
    }

    fn signature(&self, name: NameId) -> Option<&'a str> {
        let name = self.timeline.names.get(name)?;
        Some(self.text(name.signature)).filter(|text| !text.is_empty())
    }

    /// A function of managed code, whose compiler may have given it a name that is not in the source.
    fn managed_function(
        &mut self,
        binary: Option<&Arc<Binary>>,
        name: &str,
        signature: Option<&str>,
    ) -> Arc<Function> {
        let symbols = self.symbols.filter(|_| name.contains(['<', '@', '$']));
        match symbols.and_then(|symbols| symbols.display_name(name)) {
            Some(shown) => self.functions.named(binary, &shown, signature, Some(name)),
            None => self.functions.named(binary, name, signature, None),
        }
    }

    /// The line of an IL offset of a method.
    fn managed_line(
        &mut self,
        function: &Function,
        method: Option<Method<'_>>,
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
                let line = symbols.managed_line(&module, token, il);
                line.map(|line| self.functions.line(line))
            }
        }
    }
}
