//! `chronosym explain`.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

use anyhow::{Result, bail};
use chronosym::symbols::Symbolizer;
use chronosym::{
    Answer, BodyView, Candidate, Frame, IlSource, ImageView, Life, ModuleIndex, Position,
    ProcessIndex, SampleSelection, Timeline, UntimedView, When,
};
use chronosym_export::frame_object;
use chronosym_types::json::{FrameObject, HexNumber};
use serde::Serialize;

use super::life::{self, LifeObject};
use super::methods::BodyObject;
use crate::args::{Explain, InfoFormat, Usage};
use crate::output::text_line;
use crate::symbols::SymbolFileObject;
use crate::units::{parse_address, show_time};
use crate::{load, output, symbols};

pub fn run(args: &Explain, quiet: bool) -> Result<()> {
    let input = &args.input;
    let Some(address) = parse_address(&input.address) else {
        bail!(Usage(if Path::new(&input.address).is_file() {
            let (trace, address) = (&input.address, input.trace.display());
            format!("the trace comes first: chronosym explain {trace} {address}")
        } else {
            format!("'{}' is no ADDR: expected 0x… or a number", input.address)
        }));
    };
    let traces = std::slice::from_ref(&input.trace);
    let loaded = load::load(traces, SampleSelection::None, &input.symbols)?;
    super::tell(&loaded.notes, quiet);
    let timeline = &loaded.timeline;
    let process = find_process(timeline, args.pid, args.time)?;
    let time = args.time.or(args.pid.and_then(|(_, at)| at));
    let position = if args.caller {
        Position::Return
    } else {
        Position::Exact
    };
    let symbols = symbols::open(&input.symbols, &loaded)?;
    let question = Question {
        process,
        address,
        time,
        position,
    };
    let answer = Explanation::new(timeline, &symbols, question);
    let path = input.output.as_deref();
    let mut out = output::open_for(args.format, path);
    match args.format {
        InfoFormat::Text => answer.write(&mut out)?,
        InfoFormat::Json => output::write_json(&answer.object(), &mut out)?,
    }
    out.flush()?;
    Ok(())
}

/// The one process that is meant.
fn find_process(
    timeline: &Timeline,
    pid: Option<(u32, Option<u64>)>,
    time: Option<u64>,
) -> Result<ProcessIndex> {
    match (pid, load::processes(timeline, pid, time)?.as_slice()) {
        (_, [only]) => Ok(*only),
        (pid, _) => {
            let pid = pid.map_or(0, |(pid, _)| pid);
            bail!(Usage(format!(
                "which process? Several had the id {pid}: {}; say --time or --pid {pid}@TIME",
                load::lives_of(timeline, pid).join(", ")
            )))
        }
    }
}

/// What is to be explained.
#[derive(Clone, Copy)]
struct Question {
    process: ProcessIndex,
    address: u64,
    time: Option<u64>,
    position: Position,
}

/// Everything that is known about an address.
struct Explanation<'t> {
    timeline: &'t Timeline,
    question: Question,
    /// What ever stood there.
    bodies: Vec<BodyView<'t>>,
    untimed: Vec<UntimedView>,
    images: Vec<ImageView<'t>>,
    is_ambiguous: bool,
    answers: Vec<Candidate>,
    /// What of, and where each was looked for.
    symbol_files: Vec<(String, SymbolFileObject)>,
}

impl<'t> Explanation<'t> {
    fn new(timeline: &'t Timeline, symbols: &Symbolizer, question: Question) -> Self {
        let Question {
            process,
            address,
            time,
            position,
        } = question;
        let looked_up = position.looked_up(address);
        let when = time.map_or(When::Unknown, When::At);
        let (is_ambiguous, answers) =
            match timeline.resolve(process, address, when, position, Some(symbols)) {
                Answer::One(candidate) => (false, vec![candidate]),
                Answer::Ambiguous(candidates) => (true, candidates),
            };
        let bodies = timeline.bodies_at(process, looked_up);
        let symbol_files = symbol_files(timeline, symbols, process, looked_up, &bodies);
        Explanation {
            timeline,
            question,
            bodies,
            untimed: timeline.untimed_at(process, looked_up),
            images: timeline
                .images_at(process, looked_up)
                .map(|(_, i)| i)
                .collect(),
            is_ambiguous,
            answers,
            symbol_files,
        }
    }

    fn looked_up(&self) -> u64 {
        self.question.position.looked_up(self.question.address)
    }

    /// The time that a candidate answers for.
    fn time_of(&self, candidate: &Candidate) -> Option<u64> {
        self.question.time.or(candidate.life.map(|life| life.from))
    }

    fn write(&self, out: &mut impl Write) -> Result<()> {
        let Question {
            process,
            address,
            time,
            position,
        } = self.question;
        if let Some(view) = self.timeline.process_view(process) {
            text_line!(out, "{address:#x} in {}", view.label())?;
        }
        if position == Position::Return {
            let looked_up = self.looked_up();
            text_line!(
                out,
                "a return address: what called is found at {looked_up:#x}"
            )?;
        }
        writeln!(out, "\nwhat ever stood there")?;
        let mark = |life: Life| match time {
            Some(time) if life.contains(time) => ">",
            _ => " ",
        };
        for body in &self.bodies {
            write!(out, "{}", mark(body.life))?;
            super::methods::line(body, out)?;
        }
        for symbol in &self.untimed {
            let name = symbol.name.as_deref().unwrap_or("(no name)");
            text_line!(
                out,
                "   {:#x}-{:#x} without time, {}: {name}",
                symbol.start,
                symbol.last,
                symbol.evidence
            )?;
        }
        for image in &self.images {
            text_line!(
                out,
                "{}  {:#x}-{:#x} {:<22} image {}: {}",
                mark(image.life),
                image.base,
                image.base.saturating_add(image.size.saturating_sub(1)),
                life::show(image.life),
                image.name,
                image.path.unwrap_or("-")
            )?;
        }
        if self.bodies.is_empty() && self.untimed.is_empty() {
            writeln!(out, "   no code body")?;
        }
        if self.is_ambiguous {
            writeln!(
                out,
                "\nAmbiguous without a time: each in its own life. Say --time."
            )?;
        }
        for candidate in &self.answers {
            match self.time_of(candidate) {
                None => writeln!(out, "\nanswer")?,
                Some(at) => writeln!(out, "\nanswer at {}", show_time(at))?,
            }
            for frame in &candidate.frames {
                describe(frame, out)?;
            }
        }
        if !self.symbol_files.is_empty() {
            writeln!(out, "\nsymbol files")?;
        }
        for (what, file) in &self.symbol_files {
            file.write(what, "   ", out)?;
        }
        Ok(())
    }

    /// For programs.
    fn object(&self) -> ExplanationObject<'_> {
        let Question {
            process,
            address,
            position,
            ..
        } = self.question;
        let untimed = self.untimed.iter().map(|symbol| UntimedObject {
            address: HexNumber(symbol.start),
            size: symbol.last.saturating_sub(symbol.start).saturating_add(1),
            name: symbol.name.as_deref(),
            evidence: symbol.evidence.as_str(),
        });
        let images = self.images.iter().map(|image| ImageObject {
            name: image.name,
            address: HexNumber(image.base),
            size: image.size,
            life: image.life.into(),
            path: image.path,
        });
        let answers = self.answers.iter().map(|candidate| AnswerObject {
            time_ns: self.time_of(candidate),
            frames: (candidate.frames.iter())
                .map(|frame| frame_object(frame, self.timeline))
                .collect(),
        });
        let files = self.symbol_files.iter();
        ExplanationObject {
            address: HexNumber(address),
            looked_up: (position == Position::Return).then(|| HexNumber(self.looked_up())),
            pid: self.timeline.process_view(process).and_then(|p| p.pid),
            time_ns: self.question.time,
            methods: self.bodies.iter().map(BodyObject).collect(),
            untimed: untimed.collect(),
            images: images.collect(),
            ambiguous: self.is_ambiguous,
            answers: answers.collect(),
            symbol_files: files.map(|(of, file)| FileObject { of, file }).collect(),
        }
    }
}

#[derive(Serialize)]
struct ExplanationObject<'a> {
    address: HexNumber,
    /// Where what called is found, of a return address.
    #[serde(skip_serializing_if = "Option::is_none")]
    looked_up: Option<HexNumber>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_ns: Option<u64>,
    methods: Vec<BodyObject<'a>>,
    untimed: Vec<UntimedObject<'a>>,
    images: Vec<ImageObject<'a>>,
    ambiguous: bool,
    answers: Vec<AnswerObject<'a>>,
    symbol_files: Vec<FileObject<'a>>,
}

/// A symbol without a time.
#[derive(Serialize)]
struct UntimedObject<'a> {
    address: HexNumber,
    size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    evidence: &'a str,
}

#[derive(Serialize)]
struct ImageObject<'a> {
    name: &'a str,
    address: HexNumber,
    size: u64,
    #[serde(flatten)]
    life: LifeObject,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
}

#[derive(Serialize)]
struct AnswerObject<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    time_ns: Option<u64>,
    frames: Vec<FrameObject<'a>>,
}

#[derive(Serialize)]
struct FileObject<'a> {
    of: &'a str,
    #[serde(flatten)]
    file: &'a SymbolFileObject,
}

/// Where the symbol files of what stood at an address were looked for.
fn symbol_files(
    timeline: &Timeline,
    symbols: &Symbolizer,
    process: ProcessIndex,
    address: u64,
    bodies: &[BodyView<'_>],
) -> Vec<(String, SymbolFileObject)> {
    let modules: BTreeSet<ModuleIndex> = bodies.iter().filter_map(|b| b.module_index).collect();
    let mut files = Vec::new();
    for module in modules
        .into_iter()
        .filter_map(|module| timeline.module_ref(process, module))
    {
        let what = format!("PDB of {}", chronosym::simple_name(module.il_path));
        files.push((what, symbols.module_pdb(&module).into()));
        if !module.il_path.is_empty() {
            let what = format!("image {}", chronosym::file_name(module.il_path));
            files.push((what, symbols.module_image(&module).into()));
        }
    }
    for (owner, image) in timeline.images_at(process, address) {
        if let Some(image_ref) = timeline.image_ref(owner, image.index) {
            let what = format!("symbols of {}", image.name);
            files.push((what, symbols.image_symbols(&image_ref).into()));
        }
    }
    files
}

fn describe(frame: &Frame, out: &mut impl Write) -> std::io::Result<()> {
    text_line!(
        out,
        "   {}{}{}",
        if frame.is_guess() { "~" } else { "" },
        frame.label(),
        if frame.inlined { " (inlined)" } else { "" }
    )?;
    if let Err(reason) = frame.name() {
        text_line!(
            out,
            "     no name: {reason} ({})",
            chronosym_export::meaning(reason)
        )?;
    }
    if let Some(signature) = frame.signature() {
        text_line!(out, "     signature  {signature}")?;
    }
    if let (Some(evidence), Some(certainty)) = (frame.evidence, frame.certainty) {
        text_line!(out, "     evidence   {evidence}, {certainty}")?;
    }
    if let Some(tier) = frame.tier {
        text_line!(out, "     tier       {}", tier.name())?;
    }
    if let Some(offset) = frame.offset {
        text_line!(out, "     offset     {offset} bytes into the body")?;
    }
    if let Some(il) = frame.il_offset {
        let how = match il.source {
            IlSource::Mapped => "by the body's IL map",
            IlSource::Prolog => "in the prolog: the method's first sequence point",
            IlSource::Nearest => "in unmapped code: the nearest entry before it",
        };
        text_line!(out, "     IL offset  {}, {how}", il.offset)?;
    }
    if let Ok(line) = &frame.line {
        let column = line.column.map_or(String::new(), |c| format!(":{c}"));
        text_line!(out, "     line       {}:{}{column}", line.file, line.line)?;
    }
    if let Some(reason) = frame.line_reason() {
        text_line!(out, "     no line: {reason}")?;
    }
    Ok(())
}
