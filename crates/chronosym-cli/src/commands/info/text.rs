//! What is in a trace, for people.

use std::io::{self, Write};

use chronosym::Evidence;
use chronosym::open::TraceGap;
use chronosym_events::EventKey;
use chronosym_export::meaning;

use super::{Names, Summary, advice};
use crate::load::Loaded;
use crate::output::{printable, text_line};
use crate::units::{show_count, show_time, utc, wrap};

/// Writes what should be known first, then facts, processes, code, frames, damage and events.
pub fn write(
    loaded: &Loaded,
    summary: &Summary,
    width: usize,
    out: &mut impl Write,
) -> io::Result<()> {
    let timeline = &loaded.timeline;
    let facts = timeline.facts();
    for line in advice(loaded, summary) {
        let line = printable(&line);
        writeln!(out, "! {}\n", wrap(&line, width - 2, "  "))?;
    }
    let format = format!("format      {} {}", facts.format, facts.version);
    writeln!(out, "{}", format.trim_end())?;
    let start = facts.start_unix_ns.and_then(utc);
    let start = start.map_or(String::new(), |start| format!("{start}, "));
    let long = show_time(facts.duration_ns);
    writeln!(out, "recorded    {start}{long} long")?;
    let mut machine: Vec<String> = facts.machine.iter().cloned().collect();
    machine.extend(facts.processors.map(|n| format!("{n} processors")));
    let bits = facts.pointer_size.map(|n| u32::from(n) * 8);
    machine.extend(bits.map(|bits| format!("{bits}-bit")));
    if !machine.is_empty() {
        text_line!(out, "machine     {}", machine.join(", "))?;
    }
    let mut heading = "samples";
    for line in summary.description.lines() {
        let line = wrap(line, width - 12, "            ");
        writeln!(out, "{heading:<12}{line}")?;
        heading = "";
    }
    if summary.idle > 0 {
        let idle = show_count(summary.idle);
        writeln!(
            out,
            "{heading:<12}{idle} more of idle processors are left out: see --idle"
        )?;
    }

    if !facts.recordings.is_empty() {
        writeln!(out, "\njoined from")?;
    }
    for part in &facts.recordings {
        let clock = match (part.offset_ns, part.error_ns) {
            (0, 0) => part.clock.as_str().to_owned(),
            (offset, error) => format!(
                "{}: {} ns later there, at most {} ns wrong",
                part.clock.as_str(),
                offset,
                show_count(error)
            ),
        };
        let pid = part
            .own_pid
            .map(|(own, pid)| format!(", {pid}, which calls itself {own}"));
        let (gives, pid) = (part.gives, pid.unwrap_or_default());
        text_line!(out, "  {}: {gives}{pid} ({clock})", part.name)?;
    }

    writeln!(out, "\nprocesses")?;
    let samples_of = |process: &chronosym::ProcessView<'_>| {
        summary.samples_of.get(&process.index).copied().unwrap_or(0)
    };
    let mut processes: Vec<_> = timeline.processes().collect();
    processes.sort_by_key(|process| std::cmp::Reverse(samples_of(process)));
    let mut left_out = 0;
    for process in &processes {
        let samples = samples_of(process);
        let has_code = timeline.bodies(process.index).next().is_some();
        if samples == 0 && !has_code && !process.is_managed && processes.len() > 12 {
            left_out += 1;
            continue;
        }
        let runtimes = if process.runtimes.is_empty() {
            String::new()
        } else {
            format!(", {}", process.runtimes.join(", "))
        };
        let what = if samples == 1 { "sample" } else { "samples" };
        text_line!(
            out,
            "  {:<24} {:<12} {:>9} {what}{runtimes}",
            process.name.unwrap_or("-"),
            process
                .pid
                .map_or(String::new(), |pid| format!("pid {pid}")),
            show_count(samples)
        )?;
        if let Some(command) = process.command_line {
            text_line!(out, "      {command}")?;
        }
    }
    if left_out > 0 {
        let count = show_count(left_out);
        writeln!(out, "  {count} more without samples or .NET code")?;
    }

    let (mut bodies, mut modules, mut images, mut maps, mut trees) = (0, 0, 0, 0, 0);
    for process in timeline.processes() {
        for body in timeline.bodies(process.index) {
            bodies += 1;
            maps += u64::from(body.il_map_entries.is_some());
            trees += u64::from(body.has_inline_tree);
        }
        modules += timeline.modules(process.index).count() as u64;
        images += timeline.images(process.index).count() as u64;
    }
    writeln!(out, "\ncode that the trace tells of")?;
    writeln!(
        out,
        "  {:>12}  compiled methods (see methods): {} with an IL map, which leads to source lines, {} with inlining",
        show_count(bodies),
        show_count(maps),
        show_count(trees)
    )?;
    writeln!(
        out,
        "  {:>12}  .NET modules (see modules)",
        show_count(modules)
    )?;
    writeln!(out, "  {:>12}  native images", show_count(images))?;

    if summary.frames.total > 0 {
        writeln!(out, "\nnames, and why there are none")?;
        writeln!(out, "  {:>7}  {:>7}  {:>12}", "self", "frames", "frames")?;
        frames(summary, out)?;
    }
    if !summary.symbol_files.is_empty() {
        writeln!(out, "\nsymbol files that were found")?;
    }
    for file in &summary.symbol_files {
        text_line!(out, "  {file}")?;
    }
    if !loaded.notes.is_empty() {
        writeln!(out, "\ndamage and loss")?;
        for note in &loaded.notes {
            let note = printable(note);
            writeln!(out, "  {}", wrap(&note, width - 2, "    "))?;
        }
        gaps(loaded, out)?;
    }

    writeln!(out, "\nevents")?;
    let mut types: Vec<_> = timeline
        .event_types()
        .iter()
        .filter(|t| t.count > 0)
        .collect();
    types.sort_by_key(|t| std::cmp::Reverse(t.count));
    for t in &types {
        let stacks = match t.stacks {
            0 => String::new(),
            n if n == t.count => ", with stacks".to_owned(),
            n => format!(", {} with stacks", show_count(n)),
        };
        let name = match t.schema.key() {
            EventKey::Manifest { .. } => {
                format!(" {} (version {})", t.schema.name(), t.schema.version())
            }
            EventKey::Classic { .. } => format!(" (version {})", t.schema.version()),
            EventKey::Named { .. } => String::new(),
        };
        text_line!(
            out,
            "  {:>12}  {}{name}{stacks}",
            show_count(t.count),
            t.label()
        )?;
    }
    Ok(())
}

/// Where parts of the traces could not be used.
fn gaps(loaded: &Loaded, out: &mut impl Write) -> io::Result<()> {
    const SHOWN: usize = 20;
    let gaps = &loaded.report.gaps;
    if gaps.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "  {:>15}  {:>12}  what could not be used",
        "offset", "bytes"
    )?;
    let names_differ = gaps.iter().any(|it| it.name != gaps[0].name);
    for TraceGap { name, gap, .. } in gaps.iter().take(SHOWN) {
        let of = match names_differ {
            true => format!(" ({name})"),
            false => String::new(),
        };
        let (offset, length) = (show_count(gap.offset), show_count(gap.length));
        text_line!(out, "  {offset:>15}  {length:>12}  {}{of}", gap.cause)?;
    }
    let more = gaps.len().saturating_sub(SHOWN) as u64 + loaded.report.gaps_left_out;
    if more > 0 {
        writeln!(out, "  and {} more", show_count(more))?;
    }
    Ok(())
}

/// How each frame got its name, or why it has none: the innermost ones, and all.
fn frames(summary: &Summary, out: &mut impl Write) -> io::Result<()> {
    let (own, all) = (&summary.own, &summary.frames);
    let mut line = |of_own: u64, of_all: u64, what: &str| {
        writeln!(
            out,
            "  {:>6.1}%  {:>6.1}%  {:>12}  {what}",
            own.share(of_own),
            all.share(of_all),
            show_count(of_all)
        )
    };
    line(own.total, all.total, "total")?;
    line(own.named, all.named, "named")?;
    for (evidence, &n) in &all.evidence {
        let own = own.evidence.get(evidence).copied().unwrap_or(0);
        let what = format!("  {:<15} {}", evidence.as_str(), source(*evidence));
        line(own, n, &what)?;
    }
    if all.guessed > 0 {
        line(own.guessed, all.guessed, "  of these, guesses (~)")?;
    }
    let unnamed = |names: &Names| names.total - names.named;
    if unnamed(all) > 0 {
        line(unnamed(own), unnamed(all), "without a name")?;
    }
    for (reason, &n) in &all.reasons {
        let what = format!("  {:<15} {}", reason.as_str(), meaning(*reason));
        line(own.without(*reason), n, &what)?;
    }
    if summary.with_line > 0 {
        let share = all.share(summary.with_line);
        let count = show_count(summary.with_line);
        writeln!(
            out,
            "  {:>7}  {share:>6.1}%  {count:>12}  with a source line",
            ""
        )?;
    }
    Ok(())
}

/// What an evidence means, for someone who has never heard of it.
fn source(evidence: Evidence) -> &'static str {
    match evidence {
        Evidence::Load => "the runtime said when it compiled or loaded the code",
        Evidence::Unload => "the runtime named the code when it let go of it",
        Evidence::DCStart => "listed by the runtime when the recording began (start rundown)",
        Evidence::DCEnd => "listed by the runtime when the recording ended (end rundown)",
        Evidence::EntryPoint => "the runtime looked up where precompiled code begins",
        Evidence::Image => "a native image was mapped there; its symbols say more",
        Evidence::ImageTable => "the precompiled image's own table of methods",
        Evidence::PerfMap => "a perf map, which knows no times",
        Evidence::JitDump => "a jitdump file",
        Evidence::ProcessSymbol => "symbols that the recorder wrote into the trace, without times",
        Evidence::Stub => "the runtime said what the stub is for",
    }
}
