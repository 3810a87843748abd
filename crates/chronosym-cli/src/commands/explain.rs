//! `chronosym explain`.

use std::io::Write;

use anyhow::{Result, bail};
use chronosym::symbols::Symbolizer;
use chronosym::{
    Answer, Frame, IlSource, ModuleIndex, Position, ProcessIndex, SampleSelection, Timeline, When,
};

use super::modules::{from, to};
use crate::args::{Explain, Usage};
use crate::output::text_line;
use crate::units::show_time;
use crate::{load, output, symbols};

pub fn run(args: &Explain, quiet: bool) -> Result<()> {
    let traces = std::slice::from_ref(&args.input.trace);
    let loaded = load::load(traces, SampleSelection::None, &args.input.symbols)?;
    super::tell(&loaded.notes, quiet);
    let timeline = &loaded.timeline;
    let process = find_process(timeline, args.pid, args.time)?;
    let time = args.time.or(args.pid.and_then(|(_, at)| at));
    let position = if args.caller {
        Position::Return
    } else {
        Position::Exact
    };
    let mut out = output::open(args.input.output.as_deref());
    let symbols = symbols::open(&args.input.symbols)?;
    let question = Question {
        process,
        address: args.input.address,
        time,
        position,
    };
    explain(timeline, &symbols, question, &mut out)?;
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

fn explain(
    timeline: &Timeline,
    symbols: &Symbolizer,
    question: Question,
    out: &mut impl Write,
) -> Result<()> {
    let Question {
        process,
        address,
        time,
        position,
    } = question;
    if let Some(view) = timeline.process_view(process) {
        text_line!(out, "{address:#x} in {}", view.label())?;
    }
    let looked_up = position.looked_up(address);
    if position == Position::Return {
        text_line!(
            out,
            "a return address: what called is found at {looked_up:#x}"
        )?;
    }

    writeln!(out, "\nwhat ever stood there")?;
    let bodies = timeline.bodies_at(process, looked_up);
    for body in &bodies {
        let here = time.is_some_and(|t| body.life.contains(t));
        write!(out, "{}", if here { ">" } else { " " })?;
        super::methods::line(body, out)?;
    }
    for symbol in timeline.untimed_at(process, looked_up) {
        let name = symbol.name.as_deref().unwrap_or("(no name)");
        text_line!(
            out,
            "   {:#x}-{:#x} without time, {}: {name}",
            symbol.start,
            symbol.last,
            symbol.evidence
        )?;
    }
    for (_, image) in timeline.images_at(process, looked_up) {
        let here = time.is_some_and(|t| image.life.contains(t));
        let life = format!("{}..{}", from(image.life), to(image.life));
        text_line!(
            out,
            "{}  {:#x}-{:#x} {life:<22} image {}: {}",
            if here { ">" } else { " " },
            image.base,
            image.base.saturating_add(image.size.saturating_sub(1)),
            image.name,
            image.path.unwrap_or("-")
        )?;
    }
    if bodies.is_empty() && timeline.untimed_at(process, looked_up).is_empty() {
        writeln!(out, "   no code body")?;
    }

    let mut modules: Vec<_> = bodies.iter().filter_map(|b| b.module_index).collect();
    modules.sort();
    modules.dedup();
    let when = time.map_or(When::Unknown, When::At);
    let candidates = match timeline.resolve(process, address, when, position, Some(symbols)) {
        Answer::One(candidate) => vec![candidate],
        Answer::Ambiguous(candidates) => {
            writeln!(
                out,
                "\nAmbiguous without a time: each in its own life. Say --time."
            )?;
            candidates
        }
    };
    for candidate in candidates {
        match time.or(candidate.life.map(|life| life.from)) {
            None => writeln!(out, "\nanswer")?,
            Some(at) => writeln!(out, "\nanswer at {}", show_time(at))?,
        }
        for frame in &candidate.frames {
            describe(frame, out)?;
        }
    }
    symbol_files(timeline, symbols, process, looked_up, &modules, out)?;
    Ok(())
}

/// Where the symbol files of what stood at an address were looked for.
fn symbol_files(
    timeline: &Timeline,
    symbols: &Symbolizer,
    process: ProcessIndex,
    address: u64,
    modules: &[ModuleIndex],
    out: &mut impl Write,
) -> Result<()> {
    const INDENT: &str = "   ";
    if modules.is_empty() && timeline.images_at(process, address).next().is_none() {
        return Ok(());
    }
    writeln!(out, "\nsymbol files")?;
    for module in modules
        .iter()
        .filter_map(|&m| timeline.module_ref(process, m))
    {
        let what = format!("PDB of {}", chronosym::simple_name(module.il_path));
        crate::symbols::describe(&what, &symbols.module_pdb(&module), INDENT, out)?;
        if !module.il_path.is_empty() {
            let what = format!("image {}", chronosym::file_name(module.il_path));
            crate::symbols::describe(&what, &symbols.module_image(&module), INDENT, out)?;
        }
    }
    for (owner, image) in timeline.images_at(process, address) {
        if let Some(image_ref) = timeline.image_ref(owner, image.index) {
            let what = format!("symbols of {}", image.name);
            crate::symbols::describe(&what, &symbols.image_symbols(&image_ref), INDENT, out)?;
        }
    }
    Ok(())
}

fn describe(frame: &Frame, out: &mut impl Write) -> std::io::Result<()> {
    text_line!(
        out,
        "   {}{}",
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
