//! `chronosym info`.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Result;
use chronosym::symbols::Symbolizer;
use chronosym::{
    Evidence, Filter, LineReason, NameReason, Profile, SampleKind, SampleSelection, Timeline,
};
use chronosym_events::EventKey;
use chronosym_export::JsonObject;

use crate::args::{Info, InfoFormat};
use crate::load::{self, Loaded};
use crate::output;
use crate::units::{show_count, show_time, wrap};

/// Sentences are no wider than this.
const WIDTH: usize = 100;

pub fn run(args: &Info, _quiet: bool) -> Result<()> {
    let loaded = load::load(
        &args.input.traces,
        SampleSelection::Profilers,
        &args.input.symbols,
    )?;
    let symbols = crate::symbols::open_for_a_look(&args.input.symbols)?;
    let summary = Summary::new(&loaded.timeline, &symbols);
    let path = args.input.output.as_deref();
    let mut out = output::open(path)?;
    match args.format {
        InfoFormat::Json => {
            let mut text = json(&loaded, &summary);
            text.push('\n');
            out.write_all(text.as_bytes())?;
        }
        InfoFormat::Text => {
            let width = output::width(path).unwrap_or(WIDTH).clamp(40, WIDTH);
            text(&loaded, &summary, width, &mut out)?;
        }
    }
    out.flush()?;
    Ok(())
}

/// What the default samples of a trace come to.
struct Summary {
    samples: u64,
    is_cpu: bool,
    external: u64,
    frames: u64,
    named: u64,
    with_line: u64,
    evidence: BTreeMap<Evidence, u64>,
    reasons: BTreeMap<NameReason, u64>,
    /// Frames for which a file stands at a path that the trace names.
    untrusted: u64,
    samples_of: BTreeMap<chronosym::ProcessIndex, u64>,
}

impl Summary {
    fn new(timeline: &Timeline, symbols: &Symbolizer) -> Self {
        let profile = timeline.profile(&Filter::default(), Some(symbols));
        let mut summary = Summary {
            samples: profile.samples(),
            is_cpu: profile.is_cpu(),
            external: of_kind(&profile, SampleKind::WallExternal),
            frames: 0,
            named: 0,
            with_line: 0,
            evidence: BTreeMap::new(),
            reasons: BTreeMap::new(),
            untrusted: 0,
            samples_of: BTreeMap::new(),
        };
        for entry in &profile.entries {
            let process = timeline.thread_view(entry.thread).process;
            *summary.samples_of.entry(process).or_default() += entry.samples;
            for id in profile.resolver.stack(entry.stack) {
                let frame = profile.resolver.frame(id);
                summary.frames += entry.samples;
                summary.named += if frame.name.is_some() {
                    entry.samples
                } else {
                    0
                };
                summary.with_line += if frame.line.is_some() {
                    entry.samples
                } else {
                    0
                };
                let untrusted = frame.name_reason == Some(NameReason::PathNotTrusted)
                    || frame.line_reason == Some(LineReason::PathNotTrusted);
                summary.untrusted += if untrusted { entry.samples } else { 0 };
                match (&frame.name, frame.evidence, frame.name_reason) {
                    (Some(_), Some(evidence), _) => {
                        *summary.evidence.entry(evidence).or_default() += entry.samples
                    }
                    (None, _, Some(reason)) => {
                        *summary.reasons.entry(reason).or_default() += entry.samples
                    }
                    _ => {}
                }
            }
        }
        summary
    }
}

fn of_kind(profile: &Profile<'_>, kind: SampleKind) -> u64 {
    profile
        .entries
        .iter()
        .filter(|e| e.kind == kind)
        .map(|e| e.samples)
        .sum()
}

/// What was missing when the trace was recorded, and what to record next time.
fn advice(loaded: &Loaded, summary: &Summary) -> Vec<String> {
    let timeline = &loaded.timeline;
    let mut advice = Vec::new();
    if loaded.is_cut_short {
        advice.push(
            "CUT SHORT: the file ends in the middle, perhaps because recording or copying it was broken off. All up to \
             there is used; what the runtime lists at the end of a recording is missing."
                .to_owned(),
        );
    }
    let without: Vec<String> = timeline
        .processes()
        .filter(|p| p.is_managed && !p.has_rundown)
        .map(|p| format!("{} ({})", p.name.unwrap_or("process"), p.pid))
        .collect();
    let unlisted = summary
        .reasons
        .get(&NameReason::NoRundown)
        .copied()
        .unwrap_or(0);
    if !without.is_empty() && unlisted * 100 > summary.frames {
        advice.push(format!(
            "NO RUNDOWN of {}: the runtime lists all its code at the end of a recording, and this trace has no such \
             list. Code that was compiled or loaded before the recording began has no name: {:.0} % of all frames. \
             Next time leave the rundown on (dotnet-trace: not --rundown false), and stop the recording while the \
             process still runs.{}",
            without.join(", "),
            unlisted as f64 * 100.0 / summary.frames as f64,
            if summary.evidence.contains_key(&Evidence::PerfMap) {
                " (The perf map has no precompiled code.)"
            } else {
                " Or start the process with DOTNET_PerfMapEnabled=1, and give chronosym its file /tmp/perf-PID.map \
                 with --perf-map."
            }
        ));
    }
    if loaded.lost_events > 0 {
        advice.push(format!(
            "{} EVENTS WERE LOST: code that they spoke of has no name. Next time record with a larger buffer.",
            show_count(loaded.lost_events)
        ));
    }
    let images = summary
        .reasons
        .get(&NameReason::NoSymbolFile)
        .copied()
        .unwrap_or(0);
    if images * 10 > summary.frames {
        advice.push(format!(
            "NO SYMBOL FILES for {:.0} % of all frames: they lie in native or precompiled images whose functions only \
             their symbol files name. Give folders that hold them with --symbols; `chronosym modules` says which files.",
            images as f64 * 100.0 / summary.frames as f64
        ));
    }
    let maps = timeline.event_types().iter().any(|t| {
        t.count > 0 && matches!((&*t.schema.name(), t.schema.id()), (name, _) if name.contains("ILToNativeMap"))
    });
    let jitted = timeline
        .event_types()
        .iter()
        .any(|t| t.count > 0 && t.schema.name().starts_with("MethodLoad"));
    if jitted && !maps {
        advice.push(
            "NO IL MAPS: without them jitted frames have no source line. Next time record the runtime provider with \
             keyword 0x20000 at level 5, or its rundown."
                .to_owned(),
        );
    }
    if summary.untrusted * 100 > summary.frames {
        advice.push(
            "FILES STAND WHERE THE TRACE SAYS, but paths out of a trace are not opened unasked. If it was recorded on \
             this machine, --trust-trace-paths gives more names and lines."
                .to_owned(),
        );
    }
    if summary.samples == 0 {
        advice.push(
            "NO SAMPLES of a profiler are in it: `chronosym stacks --event PROVIDER/ID` shows the stacks of other \
             events, if they have any."
                .to_owned(),
        );
    }
    advice
}

fn text(loaded: &Loaded, summary: &Summary, width: usize, out: &mut impl Write) -> Result<()> {
    let timeline = &loaded.timeline;
    let facts = timeline.facts();
    for line in advice(loaded, summary) {
        writeln!(out, "! {}\n", wrap(&line, width - 2, "  "))?;
    }
    writeln!(out, "format      {} {}", facts.format, facts.version)?;
    if let Some(start) = facts.start_unix_ns.and_then(utc) {
        writeln!(
            out,
            "recorded    {start}, {} long",
            show_time(facts.duration_ns)
        )?;
    } else {
        writeln!(out, "recorded    {} long", show_time(facts.duration_ns))?;
    }
    let mut machine: Vec<String> = facts.machine.iter().cloned().collect();
    machine.extend(facts.processors.map(|n| format!("{n} processors")));
    machine.extend(
        facts
            .pointer_size
            .map(|n| format!("{}-bit", u32::from(n) * 8)),
    );
    if !machine.is_empty() {
        writeln!(out, "machine     {}", machine.join(", "))?;
    }
    let plain = |n: u64| show_count(n);
    match (summary.samples, summary.is_cpu) {
        (0, _) => writeln!(out, "samples     none")?,
        (n, true) => writeln!(
            out,
            "samples     {} CPU samples{}",
            plain(n),
            every(facts.sample_interval_ns)
        )?,
        (n, false) => {
            let line = format!(
                "{} wall-clock samples of every thread{}, {} of them outside managed code (waiting, mostly)",
                plain(n),
                every(facts.sample_interval_ns),
                plain(summary.external)
            );
            writeln!(
                out,
                "samples     {}",
                wrap(&line, width - 12, "            ")
            )?;
        }
    }

    writeln!(out, "\nprocesses")?;
    let samples_of = |process: &chronosym::ProcessView<'_>| {
        summary.samples_of.get(&process.index).copied().unwrap_or(0)
    };
    let mut processes: Vec<_> = timeline.processes().collect();
    processes.sort_by_key(|process| std::cmp::Reverse(samples_of(process)));
    for process in &processes {
        let samples = samples_of(process);
        let bodies = timeline.bodies(process.index).count();
        if samples == 0 && bodies == 0 && !process.is_managed && processes.len() > 12 {
            continue;
        }
        let runtimes = if process.runtimes.is_empty() {
            String::new()
        } else {
            format!(", {}", process.runtimes.join(", "))
        };
        writeln!(
            out,
            "  {:<24} pid {:<8} {:>9} samples{runtimes}",
            process.name.unwrap_or("-"),
            process.pid,
            plain(samples)
        )?;
        if let Some(command) = process.command_line {
            writeln!(out, "      {}", printable(command))?;
        }
    }

    let mut bodies = 0;
    let mut modules = 0;
    let mut images = 0;
    let mut maps = 0;
    let mut trees = 0;
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
        plain(bodies),
        plain(maps),
        plain(trees)
    )?;
    writeln!(out, "  {:>12}  .NET modules (see modules)", plain(modules))?;
    writeln!(out, "  {:>12}  native images", plain(images))?;

    if summary.frames > 0 {
        frames(summary, out)?;
    }
    if !loaded.notes.is_empty() {
        writeln!(out, "\ndamage and loss")?;
        for note in &loaded.notes {
            writeln!(out, "  {}", wrap(note, width - 2, "    "))?;
        }
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
            n => format!(", {} with stacks", plain(n)),
        };
        let name = match t.schema.key() {
            EventKey::Manifest { .. } => {
                format!(" {} (version {})", t.schema.name(), t.schema.version())
            }
            EventKey::Classic { .. } => format!(" (version {})", t.schema.version()),
            EventKey::Named { .. } => String::new(),
        };
        writeln!(out, "  {:>12}  {}{name}{stacks}", plain(t.count), t.label())?;
    }
    Ok(())
}

/// How each frame got its name, or why it has none.
fn frames(summary: &Summary, out: &mut impl Write) -> Result<()> {
    writeln!(
        out,
        "\nframes of the samples: how each got its name, or why it has none"
    )?;
    let share = |n: u64| n as f64 * 100.0 / summary.frames as f64;
    writeln!(out, "  {:>12}  total", show_count(summary.frames))?;
    writeln!(
        out,
        "  {:>12}  {:>5.1}%  named",
        show_count(summary.named),
        share(summary.named)
    )?;
    for (evidence, n) in &summary.evidence {
        writeln!(
            out,
            "  {:>12}  {:>5.1}%    {:<14} {}",
            show_count(*n),
            share(*n),
            evidence.as_str(),
            source(*evidence)
        )?;
    }
    let unnamed = summary.frames - summary.named;
    if unnamed > 0 {
        let share = share(unnamed);
        writeln!(
            out,
            "  {:>12}  {share:>5.1}%  without a name",
            show_count(unnamed)
        )?;
    }
    for (reason, n) in &summary.reasons {
        writeln!(
            out,
            "  {:>12}  {:>5.1}%    {:<14} {}",
            show_count(*n),
            share(*n),
            reason.as_str(),
            meaning(*reason)
        )?;
    }
    if summary.with_line > 0 {
        writeln!(
            out,
            "  {:>12}  {:>5.1}%  with a source line",
            show_count(summary.with_line),
            share(summary.with_line)
        )?;
    }
    Ok(())
}

fn every(interval: Option<u64>) -> String {
    interval.map_or(String::new(), |ns| {
        format!(", one every {} ms", ns as f64 / 1e6)
    })
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

/// What a reason means, for someone who has never heard of it.
pub fn meaning(reason: NameReason) -> &'static str {
    match reason {
        NameReason::NoCodeAtAddress => "no event speaks of code there",
        NameReason::BeforeFirstLoad => "code came there only later",
        NameReason::AfterUnload => "the code that was there had gone",
        NameReason::EventsLost => "events were lost",
        NameReason::NoRundown => "code from before the recording; the runtime never listed it",
        NameReason::NoSymbolFile => "known image, no symbol file: see --symbols",
        NameReason::SymbolFileMismatch => "the symbol file is of another build",
        NameReason::SymbolFileDamaged => "the symbol file cannot be read",
        NameReason::PathNotTrusted => "see --trust-trace-paths",
        NameReason::Offline => "the symbol file would have to be fetched",
        NameReason::NoName => "known code, but nothing says what it is called",
        NameReason::Ambiguous => "several bodies claim the address",
        NameReason::InvalidAddress => "no code can be there",
    }
}

fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

/// ns since 1970 → `2026-11-06 21:13:27 UTC`.
fn utc(unix_ns: i128) -> Option<String> {
    let seconds = i64::try_from(unix_ns.div_euclid(1_000_000_000)).ok()?;
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days since 0000-03-01 of the proleptic Gregorian calendar, so that a leap day ends its year.
    let shifted = days.checked_add(719_468)?;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    Some(format!(
        "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC"
    ))
}

fn json(loaded: &Loaded, summary: &Summary) -> String {
    let timeline = &loaded.timeline;
    let facts = timeline.facts();
    let mut out = String::new();
    let mut object = JsonObject::begin(&mut out);
    object.text("format", Some(&facts.format)).text(
        "version",
        Some(&facts.version).filter(|v| !v.is_empty()).map(|v| &**v),
    );
    let start = facts
        .start_unix_ns
        .and_then(utc)
        .map(|text| text.replace(' ', "T").replace("TUTC", "Z"));
    object
        .text("start", start.as_deref())
        .value("duration_ns", Some(facts.duration_ns))
        .value("pointer_size", facts.pointer_size)
        .value("processors", facts.processors)
        .value("lost_events", Some(loaded.lost_events));
    list(
        object.key("processes"),
        timeline.processes(),
        |process, object| {
            let samples = summary.samples_of.get(&process.index).copied().unwrap_or(0);
            let runtime = process.runtimes.join(", ");
            object
                .value("pid", Some(process.pid))
                .text("name", process.name)
                .text("command_line", process.command_line)
                .text("runtime", Some(&*runtime).filter(|r| !r.is_empty()))
                .value("samples", Some(samples));
        },
    );
    list(
        object.key("events"),
        timeline.event_types().iter().filter(|t| t.count > 0),
        |t, object| {
            object
                .text("provider", Some(t.schema.provider_name()))
                .value("id", t.schema.id())
                .value("version", t.schema.id().map(|_| t.schema.version()))
                .text("name", Some(&t.schema.name()))
                .value("count", Some(t.count))
                .value("stacks", Some(t.stacks));
        },
    );
    let mut frames = JsonObject::begin(object.key("frames"));
    frames
        .value("total", Some(summary.frames))
        .value("named", Some(summary.named))
        .value("with_line", Some(summary.with_line));
    let mut evidence = JsonObject::begin(frames.key("evidence"));
    for (kind, n) in &summary.evidence {
        evidence.value(kind.as_str(), Some(n));
    }
    evidence.end();
    let mut reasons = JsonObject::begin(frames.key("reasons"));
    for (reason, n) in &summary.reasons {
        reasons.value(reason.as_str(), Some(n));
    }
    reasons.end();
    frames.end();
    let diagnostics = object.key("diagnostics");
    diagnostics.push('[');
    for (i, note) in advice(loaded, summary)
        .iter()
        .chain(&loaded.notes)
        .enumerate()
    {
        if i > 0 {
            diagnostics.push(',');
        }
        chronosym_export::push_json_string(note, diagnostics);
    }
    diagnostics.push(']');
    object.end();
    out
}

fn list<T>(
    out: &mut String,
    items: impl Iterator<Item = T>,
    each: impl Fn(T, &mut JsonObject<'_>),
) {
    out.push('[');
    for (i, item) in items.enumerate() {
        if i > 0 {
            out.push(',');
        }
        let mut object = JsonObject::begin(out);
        each(item, &mut object);
        object.end();
    }
    out.push(']');
}

#[cfg(test)]
mod tests {
    #[test]
    fn dates_are_those_of_the_calendar() {
        let at = |seconds: i128| super::utc(seconds * 1_000_000_000).unwrap();
        assert_eq!(at(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(at(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(at(1_794_000_000), "2026-11-06 21:20:00 UTC");
        assert_eq!(at(-1), "1969-12-31 23:59:59 UTC");
    }
}
