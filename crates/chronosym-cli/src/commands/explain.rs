//! `chronosym explain`.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Result, bail};
use chronosym::symbols::{SymbolFile, Symbolizer};
use chronosym::{
    Answer, BodyView, Candidate, Frame, IlSource, ModuleIndex, ProcessIndex, SampleSelection,
    Timeline, When,
};
use chronosym_export::frame_object;
use chronosym_types::json::{FrameObject, HexNumber};
use serde::Serialize;
use serde_with::skip_serializing_none;

use super::life::LifeObject;
use super::methods::Body;
use crate::args::{Asked, Explain, Usage};
use crate::output::text_line;
use crate::symbols::SymbolFileObject;
use crate::units::{parse_address, show_range, show_time};
use crate::{load, output, progress, symbolizer};

pub fn run(args: &Explain) -> Result<()> {
    let Some(address) = parse_address(&args.address) else {
        bail!(Usage(if Path::new(&args.address).is_file() {
            let (trace, address) = (&args.address, args.trace.display());
            format!("the trace comes first: chronosym explain {trace} {address}")
        } else {
            format!("'{}' is no ADDR: expected 0x… or a number", args.address)
        }));
    };
    let traces = std::slice::from_ref(&args.trace);
    let loaded = load::load(traces, SampleSelection::None, &args.symbols)?;
    progress::notes(&loaded.notes);
    let timeline = &loaded.timeline;
    let process = find_process(timeline, &args.asked)?;
    let (time, position) = (args.asked.time_ns(), args.asked.position());
    let symbols = symbolizer::open(&args.symbols, &loaded)?;
    let when = time.map_or(When::Unknown, When::At);
    let (is_ambiguous, candidates) =
        match timeline.resolve(process, address, when, position, Some(&symbols)) {
            Answer::One(candidate) => (false, vec![candidate]),
            Answer::Ambiguous(candidates) => (true, candidates),
        };
    let looked_up = position.looked_up(address);
    let mut explanation = Explanation::new(timeline, &symbols, process, looked_up);
    explanation.address = HexNumber(address);
    explanation.looked_up = args.asked.caller.then_some(HexNumber(looked_up));
    explanation.time_ns = time;
    explanation.ambiguous = is_ambiguous;
    let answers = candidates.iter();
    let answers = answers.map(|candidate| AnswerObject::new(candidate, time, timeline));
    explanation.answers = answers.collect();
    let out = output::open_for(args.format, args.output.as_deref());
    output::write(args.format, out, &explanation, |out| explanation.write(out))
}

/// The one process that is meant.
fn find_process(timeline: &Timeline, asked: &Asked) -> Result<ProcessIndex> {
    match (asked.pid, load::processes(timeline, asked)?.as_slice()) {
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

/// Everything that is known about an address.
#[skip_serializing_none]
#[derive(Serialize)]
struct Explanation<'t> {
    /// What the process is called.
    #[serde(skip)]
    process: String,
    address: HexNumber,
    /// Where what called is found, of a return address.
    looked_up: Option<HexNumber>,
    pid: Option<u32>,
    time_ns: Option<u64>,
    /// What ever stood there.
    methods: Vec<Body<'t>>,
    untimed: Vec<Untimed>,
    images: Vec<Image<'t>>,
    ambiguous: bool,
    answers: Vec<AnswerObject<'t>>,
    symbol_files: Vec<FileObject>,
}

/// A symbol without a time.
#[skip_serializing_none]
#[derive(Serialize)]
struct Untimed {
    address: HexNumber,
    size: u64,
    name: Option<String>,
    evidence: &'static str,
}

#[skip_serializing_none]
#[derive(Serialize)]
struct Image<'t> {
    name: &'t str,
    address: HexNumber,
    size: u64,
    #[serde(flatten)]
    life: LifeObject,
    path: Option<&'t str>,
}

#[skip_serializing_none]
#[derive(Serialize)]
struct AnswerObject<'t> {
    /// The time that it is for.
    time_ns: Option<u64>,
    frames: Vec<FrameObject<'t>>,
    #[serde(skip)]
    shown: &'t [Frame],
}

/// Where a symbol file of what stood there was looked for.
#[derive(Serialize)]
struct FileObject {
    of: String,
    #[serde(flatten)]
    file: SymbolFileObject,
}

impl<'t> AnswerObject<'t> {
    fn new(candidate: &'t Candidate, time: Option<u64>, timeline: &'t Timeline) -> Self {
        let frames = candidate.frames.iter();
        AnswerObject {
            time_ns: time.or(candidate.life.map(|life| life.from)),
            frames: frames.map(|frame| frame_object(frame, timeline)).collect(),
            shown: &candidate.frames,
        }
    }
}

impl<'t> Explanation<'t> {
    /// What ever stood at an address, and where its symbol files are looked for.
    fn new(
        timeline: &'t Timeline,
        symbols: &Symbolizer,
        process: ProcessIndex,
        address: u64,
    ) -> Self {
        let view = timeline.process_view(process);
        let bodies = timeline.bodies_at(process, address);
        let untimed = timeline.untimed_at(process, address).into_iter();
        let untimed = untimed.map(|symbol| Untimed {
            address: HexNumber(symbol.start),
            size: symbol.last.saturating_sub(symbol.start).saturating_add(1),
            name: symbol.name,
            evidence: symbol.evidence.as_str(),
        });
        let images = timeline.images_at(process, address);
        let images = images.map(|view| Image {
            name: view.name,
            address: HexNumber(view.image.base),
            size: view.image.size,
            life: view.life.into(),
            path: Some(view.image.path).filter(|path| !path.is_empty()),
        });
        Explanation {
            process: view.as_ref().map_or(String::new(), |view| view.label()),
            address: HexNumber(address),
            looked_up: None,
            pid: view.and_then(|view| view.pid),
            time_ns: None,
            symbol_files: symbol_files(timeline, symbols, process, address, &bodies),
            methods: bodies.into_iter().map(Body::from).collect(),
            untimed: untimed.collect(),
            images: images.collect(),
            ambiguous: false,
            answers: Vec::new(),
        }
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        text_line!(out, "{} in {}", self.address, self.process)?;
        if let Some(looked_up) = self.looked_up {
            text_line!(out, "a return address: what called is found at {looked_up}")?;
        }
        writeln!(out, "\nwhat ever stood there")?;
        let mark = |life: &LifeObject| match self.time_ns {
            Some(time) if life.contains(time) => ">",
            _ => " ",
        };
        for body in &self.methods {
            write!(out, "{}", mark(&body.life))?;
            body.write(out)?;
        }
        for symbol in &self.untimed {
            let name = symbol.name.as_deref().unwrap_or("(no name)");
            let range = show_range(symbol.address.0, symbol.size);
            text_line!(out, "   {range} without time, {}: {name}", symbol.evidence)?;
        }
        for image in &self.images {
            text_line!(
                out,
                "{}  {} {:<22} image {}: {}",
                mark(&image.life),
                show_range(image.address.0, image.size),
                image.life,
                image.name,
                image.path.unwrap_or("-")
            )?;
        }
        if self.methods.is_empty() && self.untimed.is_empty() {
            writeln!(out, "   no code body")?;
        }
        if self.ambiguous {
            writeln!(
                out,
                "\nAmbiguous without a time: each in its own life. Say --time."
            )?;
        }
        for answer in &self.answers {
            match answer.time_ns {
                None => writeln!(out, "\nanswer")?,
                Some(at) => writeln!(out, "\nanswer at {}", show_time(at))?,
            }
            answer
                .shown
                .iter()
                .try_for_each(|frame| describe(frame, out))?;
        }
        if !self.symbol_files.is_empty() {
            writeln!(out, "\nsymbol files")?;
        }
        let mut files = self.symbol_files.iter();
        files.try_for_each(|FileObject { of, file }| file.write(of, "   ", out))
    }
}

/// Where the symbol files of what stood at an address were looked for.
fn symbol_files(
    timeline: &Timeline,
    symbols: &Symbolizer,
    process: ProcessIndex,
    address: u64,
    bodies: &[BodyView<'_>],
) -> Vec<FileObject> {
    let modules: BTreeSet<ModuleIndex> = bodies.iter().filter_map(|b| b.module_index).collect();
    let mut files = Vec::new();
    let mut add = |of, file: SymbolFile| {
        let file = file.into();
        files.push(FileObject { of, file });
    };
    let modules = modules.into_iter();
    for module in modules.filter_map(|module| timeline.module_ref(process, module)) {
        let path = module.il_path;
        add(
            format!("PDB of {}", chronosym::simple_name(path)),
            symbols.module_pdb(&module),
        );
        if !path.is_empty() {
            let of = format!("image {}", chronosym::file_name(path));
            add(of, symbols.module_image(&module));
        }
    }
    for view in timeline.images_at(process, address) {
        let of = format!("symbols of {}", view.name);
        add(of, symbols.image_symbols(&view.image));
    }
    files
}

fn describe(frame: &Frame, out: &mut dyn Write) -> io::Result<()> {
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
    for (what, fact) in facts
        .into_iter()
        .filter_map(|(what, fact)| Some((what, fact?)))
    {
        text_line!(out, "     {what:<10} {fact}")?;
    }
    if let Some(reason) = frame.line_reason() {
        text_line!(out, "     no line: {reason}")?;
    }
    Ok(())
}
