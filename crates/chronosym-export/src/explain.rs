//! Everything known about one address, as text and as JSON.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::Arc;

use chronosym_core::{
    Answer, BodyView, Candidate, Frame, IlSource, ImageView, ModuleIndex, Position, ProcessIndex,
    ProcessView, Timeline, UntimedView, When,
};
use chronosym_runtime::{CompiledBody, JitDecisions};
use chronosym_symbolizer::{SymbolFile, Symbolizer};
use chronosym_types::json::HexNumber;
use serde::ser::SerializeMap;

use crate::bodies::write_body;
use crate::json::frame_object;
use crate::lifetime::Lifetime;
use crate::object::{Fields, Object};
use crate::reasons::name_reason;
use crate::runtime::{Decisions, decisions};
use crate::symbol_file::write_symbol_file;
use crate::text_line;
use crate::units::{show_range, show_time};

/// Everything about an address of a process: the code that was ever loaded there, the frames that
/// it resolves to, and the symbol files that were searched.
#[derive(Debug)]
pub struct Explanation<'t> {
    timeline: &'t Timeline,
    process: Option<ProcessView<'t>>,
    address: u64,
    position: Position,
    time_ns: Option<u64>,
    bodies: Vec<BodyView<'t>>,
    untimed: Vec<UntimedView>,
    images: Vec<ImageView<'t>>,
    is_ambiguous: bool,
    candidates: Vec<Candidate>,
    decisions: Vec<CompiledBody>,
    /// Methods that call one of the bodies by a tail call.
    tail_callers: BTreeSet<Arc<str>>,
    symbol_files: Vec<NamedFile>,
}

/// A symbol file, and the module or image that it belongs to.
#[derive(Debug)]
struct NamedFile {
    of: String,
    file: SymbolFile,
}

impl<'t> Explanation<'t> {
    /// Explains an address at a time in ns; without a time, for all lifetimes.
    pub fn new(
        timeline: &'t Timeline,
        symbols: &Symbolizer,
        process: ProcessIndex,
        (address, position): (u64, Position),
        time_ns: Option<u64>,
    ) -> Self {
        let when = time_ns.map_or(When::Unknown, When::At);
        let (is_ambiguous, candidates) =
            match timeline.resolve(process, address, when, position, Some(symbols)) {
                Answer::One(candidate) => (false, vec![candidate]),
                Answer::Ambiguous(candidates) => (true, candidates),
            };
        let looked_up = position.looked_up(address);
        let bodies = timeline.bodies_at(process, looked_up);
        let images: Vec<_> = timeline.images_at(process, looked_up).collect();
        Explanation {
            timeline,
            process: timeline.process_view(process),
            address,
            position,
            time_ns,
            symbol_files: symbol_files(timeline, symbols, process, &bodies, &images),
            bodies,
            untimed: timeline.untimed_at(process, looked_up),
            images,
            is_ambiguous,
            candidates,
            decisions: Vec::new(),
            tail_callers: BTreeSet::new(),
        }
    }

    /// Adds what the JIT decided about the bodies.
    #[must_use]
    pub fn with_decisions(mut self, decisions: &JitDecisions) -> Self {
        let process = self.process.as_ref().map(|process| process.index);
        let of_process = || {
            let all = decisions.bodies.iter();
            all.filter(|body| Some(body.process) == process)
        };
        let names: BTreeSet<&str> = (self.bodies.iter())
            .filter_map(|body| body.name.as_deref())
            .collect();
        let tail_calls = of_process().flat_map(|body| &body.tail_calls);
        let lost = tail_calls.filter(|call| call.leaves_caller());
        self.tail_callers = lost
            .filter(|call| names.contains(&*call.callee))
            .map(|call| call.caller.clone())
            .collect();
        let starts: BTreeSet<u64> = self.bodies.iter().map(|body| body.start).collect();
        let here = of_process().filter(|body| body.start.is_some_and(|it| starts.contains(&it)));
        self.decisions = here.cloned().collect();
        self
    }

    fn write_decisions(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.decisions.is_empty() && self.tail_callers.is_empty() {
            return Ok(());
        }
        writeln!(out, "\nwhat the JIT decided")?;
        for body in &self.decisions {
            let tier = body.tier.map_or("-", |tier| tier.name());
            let time = show_time(body.time_ns);
            text_line!(out, "   {} {tier}, loaded at {time}", body.name)?;
            for line in decisions(body) {
                text_line!(out, "     {line}")?;
            }
        }
        for caller in &self.tail_callers {
            text_line!(
                out,
                "   {caller} calls it by a tail call: a stack may lack that caller's frame"
            )?;
        }
        Ok(())
    }

    /// The address before a return address, which is in the call.
    fn looked_up(&self) -> Option<HexNumber> {
        let is_return = self.position == Position::Return;
        is_return.then(|| HexNumber(self.position.looked_up(self.address)))
    }

    /// Returns the time at which a candidate's frames are resolved.
    fn time_of(&self, candidate: &Candidate) -> Option<u64> {
        self.time_ns
            .or(candidate.lifetime.map(|lifetime| lifetime.from))
    }

    /// Writes it as text.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let process = self.process.as_ref().map(ProcessView::label);
        let (address, process) = (HexNumber(self.address), process.unwrap_or_default());
        text_line!(out, "{address} in {process}")?;
        if let Some(looked_up) = self.looked_up() {
            text_line!(
                out,
                "a return address: the call is looked up at {looked_up}"
            )?;
        }
        writeln!(out, "\ncode that was ever loaded at this address")?;
        let mark = |lifetime: chronosym_core::Lifetime| match self.time_ns {
            Some(time) if lifetime.contains(time) => ">",
            _ => " ",
        };
        for body in &self.bodies {
            write!(out, "{}", mark(body.lifetime))?;
            write_body(body, out)?;
        }
        for symbol in &self.untimed {
            let name = symbol.name.as_deref().unwrap_or("(no name)");
            let range = show_range(symbol.start, size(symbol));
            text_line!(out, "   {range} without time, {}: {name}", symbol.evidence)?;
        }
        for view in &self.images {
            let path = Some(view.image.path).filter(|path| !path.is_empty());
            text_line!(
                out,
                "{}  {} {:<22} image {}: {}",
                mark(view.lifetime),
                show_range(view.image.base, view.image.size),
                Lifetime::from(view.lifetime),
                view.name,
                path.unwrap_or("-")
            )?;
        }
        if self.bodies.is_empty() && self.untimed.is_empty() {
            writeln!(out, "   no code body")?;
        }
        self.write_decisions(out)?;
        if self.is_ambiguous {
            writeln!(
                out,
                "\nAmbiguous: several code bodies had this address at different times. Add --time T."
            )?;
        }
        for candidate in &self.candidates {
            match self.time_of(candidate) {
                None => writeln!(out, "\nanswer")?,
                Some(at) => writeln!(out, "\nanswer at {}", show_time(at))?,
            }
            let mut frames = candidate.frames.iter();
            frames.try_for_each(|frame| write_frame(frame, out))?;
        }
        if !self.symbol_files.is_empty() {
            writeln!(out, "\nsymbol files")?;
        }
        let mut files = self.symbol_files.iter();
        files.try_for_each(|NamedFile { of, file }| write_symbol_file(file, of, "   ", out))
    }
}

impl Fields for Explanation<'_> {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        let answers = self.candidates.iter().map(|candidate| AnswerFields {
            time_ns: self.time_of(candidate),
            frames: &candidate.frames,
            timeline: self.timeline,
        });
        let tail_callers: Vec<&str> = self.tail_callers.iter().map(|it| &**it).collect();
        object
            .field("address", HexNumber(self.address))
            .some("looked_up", self.looked_up())
            .some("pid", self.process.as_ref().and_then(|view| view.pid))
            .some("time_ns", self.time_ns)
            .objects("methods", &self.bodies)
            .objects("untimed", &self.untimed)
            .objects("images", self.images.iter().map(ImageFields))
            .field("ambiguous", self.is_ambiguous)
            .some_objects(
                "decisions",
                &self.decisions.iter().map(Decisions).collect::<Vec<_>>(),
            )
            .some(
                "tail_callers",
                Some(&tail_callers).filter(|it| !it.is_empty()),
            )
            .objects("answers", answers)
            .objects("symbol_files", &self.symbol_files);
    }
}

impl Fields for UntimedView {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        object
            .field("address", HexNumber(self.start))
            .field("size", size(self))
            .some("name", self.name.as_ref())
            .shown("evidence", self.evidence);
    }
}

struct ImageFields<'e>(&'e ImageView<'e>);

impl Fields for ImageFields<'_> {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        let ImageFields(view) = self;
        object
            .field("name", view.name)
            .field("address", HexNumber(view.image.base))
            .field("size", view.image.size)
            .fields_of(&Lifetime::from(view.lifetime))
            .text("path", view.image.path);
    }
}

struct AnswerFields<'e> {
    time_ns: Option<u64>,
    frames: &'e [Frame],
    timeline: &'e Timeline,
}

impl Fields for AnswerFields<'_> {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        let frames = self.frames.iter();
        let frames = frames.map(|frame| frame_object(frame, self.timeline));
        object
            .some("time_ns", self.time_ns)
            .field("frames", frames.collect::<Vec<_>>());
    }
}

impl Fields for NamedFile {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        object.field("of", &self.of).fields_of(&self.file);
    }
}

fn size(symbol: &UntimedView) -> u64 {
    symbol.last.saturating_sub(symbol.start).saturating_add(1)
}

/// Searches the symbol files of the modules and images at an address.
fn symbol_files(
    timeline: &Timeline,
    symbols: &Symbolizer,
    process: ProcessIndex,
    bodies: &[BodyView<'_>],
    images: &[ImageView<'_>],
) -> Vec<NamedFile> {
    let modules: BTreeSet<ModuleIndex> = bodies.iter().filter_map(|b| b.module_index).collect();
    let mut files = Vec::new();
    for module in modules {
        let Some(module) = timeline.module_ref(process, module) else {
            continue;
        };
        let path = module.il_path;
        files.push(NamedFile {
            of: format!("PDB of {}", chronosym_core::simple_name(path)),
            file: symbols.module_pdb(&module),
        });
        if !path.is_empty() {
            files.push(NamedFile {
                of: format!("image {}", chronosym_core::file_name(path)),
                file: symbols.module_image(&module),
            });
        }
    }
    files.extend(images.iter().map(|view| NamedFile {
        of: format!("symbols of {}", view.name),
        file: symbols.image_symbols(&view.image),
    }));
    files
}

fn write_frame(frame: &Frame, out: &mut dyn Write) -> io::Result<()> {
    text_line!(
        out,
        "   {}{}{}",
        if frame.is_guess() { "~" } else { "" },
        frame.label(),
        if frame.inlined { " (inlined)" } else { "" }
    )?;
    if let Err(reason) = frame.name() {
        text_line!(out, "     no name: {reason} ({})", name_reason(reason).0)?;
    }
    let evidence = frame.evidence.zip(frame.certainty);
    let il = frame.il_offset.map(|il| {
        let how = match il.source {
            IlSource::Mapped => "by the body's IL map",
            IlSource::Prolog => "in the prolog: the method's first sequence point",
            IlSource::Nearest => "in unmapped code: the nearest entry before it",
        };
        format!("{}, {how}", il.offset)
    });
    let line = frame.line.as_ref().ok().map(|line| {
        let column = line.column.map_or(String::new(), |c| format!(":{c}"));
        format!("{}:{}{column}", line.file, line.line)
    });
    let facts = [
        ("signature", frame.signature().map(str::to_owned)),
        (
            "evidence",
            evidence.map(|(evidence, certainty)| format!("{evidence}, {certainty}")),
        ),
        ("tier", frame.tier.map(|tier| tier.name().to_owned())),
        (
            "offset",
            frame.offset.map(|n| format!("{n} bytes into the body")),
        ),
        ("IL offset", il),
        ("line", line),
    ];
    for (what, fact) in facts {
        if let Some(fact) = fact {
            text_line!(out, "     {what:<10} {fact}")?;
        }
    }
    if let Some(reason) = frame.line_reason() {
        text_line!(out, "     no line: {reason}")?;
    }
    Ok(())
}
