//! `chronosym info`.

mod json;
mod text;

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::sync::Arc;

use anyhow::Result;
use chronosym::symbols::Symbolizer;
use chronosym::{
    Certainty, Evidence, Filter, LineReason, NameReason, ResolvedStack, SampleSelection, Timeline,
};

use crate::args::{Info, InfoFormat};
use crate::load::{self, Loaded};
use crate::output;
use crate::units::show_count;

/// Sentences are no wider than this.
const WIDTH: usize = 100;

pub fn run(args: &Info, _quiet: bool) -> Result<()> {
    let loaded = load::load(
        &args.input.traces,
        SampleSelection::Profilers,
        &args.input.symbols,
    )?;
    let symbols = Arc::new(crate::symbols::open_for_a_look(
        &args.input.symbols,
        &loaded,
    )?);
    let summary = Summary::new(&loaded.timeline, symbols);
    let path = args.input.output.as_deref();
    let mut out = output::open(path);
    match args.format {
        InfoFormat::Json => {
            chronosym_types::json::to_writer(&mut out, &json::object(&loaded, &summary))?;
            writeln!(out)?;
        }
        InfoFormat::Text => {
            let width = output::width(path).unwrap_or(WIDTH).clamp(40, WIDTH);
            text::write(&loaded, &summary, width, &mut out)?;
        }
    }
    out.flush()?;
    Ok(())
}

/// What the default samples of a trace come to.
struct Summary {
    /// What they are, in a few lines.
    description: String,
    samples: u64,
    /// Samples of processors that had nothing to do, which are left out.
    idle: u64,
    frames: u64,
    named: u64,
    /// Of the named ones, those whose name is a guess.
    guessed: u64,
    with_line: u64,
    evidence: BTreeMap<Evidence, u64>,
    reasons: BTreeMap<NameReason, u64>,
    /// Samples by the innermost frame.
    own: Own,
    /// Frames for which a file stands at a path that the trace names.
    untrusted: u64,
    samples_of: BTreeMap<chronosym::ProcessIndex, u64>,
}

/// What the innermost frames of samples are.
#[derive(Default)]
struct Own {
    named: u64,
    guessed: u64,
    evidence: BTreeMap<Evidence, u64>,
    reasons: BTreeMap<NameReason, u64>,
}

impl Summary {
    /// How many innermost frames have no name for a reason, and how many of all.
    fn share(&self, reason: NameReason) -> String {
        let of = |counts: &BTreeMap<NameReason, u64>, all: u64| {
            let n = counts.get(&reason).copied().unwrap_or(0);
            n as f64 * 100.0 / all.max(1) as f64
        };
        format!(
            "{:.0} % of self, {:.0} % of all frames",
            of(&self.own.reasons, self.samples),
            of(&self.reasons, self.frames)
        )
    }

    fn new(timeline: &Arc<Timeline>, symbols: Arc<Symbolizer>) -> Self {
        let profile = timeline.profile(&Filter::default(), Some(symbols));
        let classes = timeline.samples().classes();
        let is_idle = |&(class, _): &(u32, u64)| classes[class as usize].idle;
        let mut summary = Summary {
            description: chronosym_export::describe(&profile),
            samples: profile.samples(),
            idle: timeline.samples().iter().filter(is_idle).count() as u64,
            frames: 0,
            named: 0,
            guessed: 0,
            with_line: 0,
            evidence: BTreeMap::new(),
            reasons: BTreeMap::new(),
            own: Own::default(),
            untrusted: 0,
            samples_of: BTreeMap::new(),
        };
        // Many threads may share one deep stack.
        let mut samples_of_stack: HashMap<ResolvedStack, u64> = HashMap::new();
        for entry in &profile.entries {
            if let Some(thread) = timeline.thread_view(entry.thread) {
                *summary.samples_of.entry(thread.process).or_default() += entry.samples;
            }
            *samples_of_stack.entry(entry.stack).or_default() += entry.samples;
        }
        for (stack, samples) in samples_of_stack {
            for (depth, id) in profile.resolver.stack(stack).enumerate() {
                let frame = profile.resolver.frame(id);
                summary.frames += samples;
                let count = |is: bool| if is { samples } else { 0 };
                summary.named += count(frame.name().is_ok());
                let guessed =
                    count(frame.name().is_ok() && frame.certainty == Some(Certainty::Approximate));
                summary.guessed += guessed;
                let own = if depth == 0 { samples } else { 0 };
                summary.own.named += own.min(count(frame.name().is_ok()));
                summary.own.guessed += own.min(guessed);
                summary.with_line += count(frame.line.is_ok());
                summary.untrusted += count(
                    frame.name() == Err(NameReason::PathNotTrusted)
                        || frame.line_reason() == Some(LineReason::PathNotTrusted),
                );
                match (frame.name(), frame.evidence) {
                    (Ok(_), Some(evidence)) => {
                        *summary.evidence.entry(evidence).or_default() += samples;
                        *summary.own.evidence.entry(evidence).or_default() += own;
                    }
                    (Err(reason), _) => {
                        *summary.reasons.entry(reason).or_default() += samples;
                        *summary.own.reasons.entry(reason).or_default() += own;
                    }
                    (Ok(_), None) => {}
                }
            }
        }
        summary
    }
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
        .map(|p| p.label())
        .collect();
    let unlisted = summary
        .reasons
        .get(&NameReason::NoRundown)
        .copied()
        .unwrap_or(0);
    if !without.is_empty() && unlisted * 100 > summary.frames {
        advice.push(format!(
            "NO RUNDOWN of {}: the runtime lists all its code at the end of a recording, and this trace has no such \
             list. Code that was compiled or loaded before the recording began has no name: {}. \
             Next time leave the rundown on (dotnet-trace: not --rundown false), and stop the recording while the \
             process still runs.{}",
            without.join(", "),
            summary.share(NameReason::NoRundown),
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
            "NO SYMBOL FILES for {}: they lie in native or precompiled images whose functions only \
             their symbol files name. Give folders that hold them with --symbols; `chronosym modules` says which files.",
            summary.share(NameReason::NoSymbolFile)
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
        advice.push(format!(
            "NO SAMPLES of a profiler {}: `chronosym stacks --event PROVIDER/ID` shows the stacks of other events, if \
             they have any.",
            if loaded.notes.is_empty() {
                "are in it"
            } else {
                "could be read, and parts of the file could not (see damage and loss)"
            }
        ));
    }
    advice
}
