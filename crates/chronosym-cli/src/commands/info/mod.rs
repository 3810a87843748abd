//! `chronosym info`.

mod json;
mod text;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Display;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use chronosym::open::NoteKind;
use chronosym::symbols::Symbolizer;
use chronosym::{
    Code, Evidence, Filter, Frame, LineReason, NameReason, ProcessIndex, Profile, ResolvedStack,
    SampleSelection, SymbolSource, Timeline,
};
use chronosym_export::module_of;
use serde::{Serialize, Serializer};

use crate::args::Info;
use crate::load::{self, Loaded};
use crate::units::show_count;
use crate::{output, symbolizer, symbols};

/// Sentences are no wider than this.
const WIDTH: usize = 100;

pub fn run(args: &Info) -> Result<()> {
    let (traces, options) = (&args.input.traces, &args.input.symbols);
    let loaded = load::load(traces, SampleSelection::Profilers, options)?;
    let config = symbols::config_for_a_look(options)?;
    let symbols = Arc::new(symbolizer::open_with(options, config, &loaded)?);
    let summary = Summary::new(&loaded.timeline, symbols);
    let path = args.input.output.as_deref();
    let (object, out) = (
        json::object(&loaded, &summary),
        output::open_for(args.format, path),
    );
    output::write(args.format, out, &object, |out| {
        let width = output::width(path).unwrap_or(WIDTH).clamp(40, WIDTH);
        text::write(&loaded, &summary, width, out)?;
        let next = summary.next(&loaded.timeline, traces);
        writeln!(out)?;
        output::text_line!(out, "next: {next}")
    })
}

/// What the default samples of a trace come to.
struct Summary {
    /// What they are, in a few lines.
    description: String,
    /// Samples of processors that had nothing to do, which are left out.
    idle: u64,
    /// The frames of all stacks.
    frames: Names,
    /// The innermost ones alone: as many as samples.
    own: Names,
    with_line: u64,
    /// Frames for which a file stands at a path that the trace names.
    untrusted: u64,
    samples_of: BTreeMap<ProcessIndex, u64>,
    /// Where the symbol files lie that were found for the code of samples.
    symbol_files: BTreeSet<String>,
}

/// How frames got their names, or why they have none.
#[derive(Default, Serialize)]
struct Names {
    total: u64,
    named: u64,
    /// Of the named ones, those whose name is a guess.
    guessed: u64,
    #[serde(serialize_with = "by_name")]
    evidence: BTreeMap<Evidence, u64>,
    #[serde(serialize_with = "by_name")]
    reasons: BTreeMap<NameReason, u64>,
}

fn by_name<K: Display, S: Serializer>(
    counts: &BTreeMap<K, u64>,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_map(counts.iter().map(|(key, count)| (key.to_string(), count)))
}

impl Names {
    fn count(&mut self, frame: &Frame, samples: u64) {
        self.total += samples;
        match frame.name() {
            Ok(_) => {
                self.named += samples;
                if frame.is_guess() {
                    self.guessed += samples;
                }
                if let Some(evidence) = frame.evidence {
                    *self.evidence.entry(evidence).or_default() += samples;
                }
            }
            Err(reason) => *self.reasons.entry(reason).or_default() += samples,
        }
    }

    fn without(&self, reason: NameReason) -> u64 {
        self.reasons.get(&reason).copied().unwrap_or(0)
    }

    fn share(&self, n: u64) -> f64 {
        n as f64 * 100.0 / self.total.max(1) as f64
    }
}

impl Summary {
    fn new(timeline: &Arc<Timeline>, symbols: Arc<Symbolizer>) -> Self {
        let source: Arc<dyn SymbolSource> = symbols.clone();
        let profile = timeline.profile(&Filter::default(), Some(source));
        let classes = timeline.samples().classes();
        let is_idle = |&(class, _): &(u32, u64)| classes[class as usize].idle;
        let mut summary = Summary {
            description: chronosym_export::describe(&profile),
            idle: timeline.samples().iter().filter(is_idle).count() as u64,
            frames: Names::default(),
            own: Names::default(),
            with_line: 0,
            untrusted: 0,
            samples_of: BTreeMap::new(),
            symbol_files: symbol_files(&profile, &symbols),
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
                summary.frames.count(frame, samples);
                if depth == 0 {
                    summary.own.count(frame, samples);
                }
                let count = |is: bool| if is { samples } else { 0 };
                summary.with_line += count(frame.line.is_ok());
                summary.untrusted += count(
                    frame.name() == Err(NameReason::PathNotTrusted)
                        || frame.line_reason() == Some(LineReason::PathNotTrusted),
                );
            }
        }
        summary
    }

    /// How many innermost frames have no name for a reason, and how many of all.
    fn share(&self, reason: NameReason) -> String {
        let [own, all] = [&self.own, &self.frames].map(|names| names.share(names.without(reason)));
        format!("{own:.0} % of self, {all:.0} % of all frames")
    }

    /// What to type next.
    fn next(&self, timeline: &Timeline, traces: &[PathBuf]) -> String {
        let no_file = NameReason::NoSymbolFile;
        let mut with_stacks: Vec<_> = timeline.event_types().iter().collect();
        with_stacks.sort_by_key(|t| std::cmp::Reverse(t.stacks));
        let with_stacks = with_stacks.first().filter(|t| t.stacks > 0);
        let command = match with_stacks {
            _ if self.own.share(self.own.without(no_file)) >= 10.0 => "symbols".to_owned(),
            _ if self.own.total > 0 => "top".to_owned(),
            Some(t) => format!("stacks --event '{}'", t.label()),
            None => "events".to_owned(),
        };
        let names = traces.iter().map(|path| path.to_string_lossy());
        let quoted = names.map(
            |name| match name.contains(|c: char| " '\"$&|;()<>".contains(c)) {
                true => format!("'{}'", name.replace('\'', "'\\''")),
                false => name.into_owned(),
            },
        );
        format!(
            "chronosym {command} {}",
            quoted.collect::<Vec<_>>().join(" ")
        )
    }
}

/// The symbol files of modules and images that have frames.
fn symbol_files(profile: &Profile, symbols: &Symbolizer) -> BTreeSet<String> {
    let timeline = profile.resolver.timeline();
    let (mut modules, mut images) = (BTreeSet::new(), BTreeSet::new());
    for frame in profile.resolver.frames() {
        modules.extend(module_of(frame, timeline));
        if let Code::Image { process, image, .. } = frame.code {
            images.insert((process, image));
        }
    }
    let modules = modules.into_iter().filter_map(|(process, module)| {
        let module = timeline.module_ref(process, module)?;
        symbols.module_pdb(&module).found.ok()
    });
    let images = images.into_iter().filter_map(|(process, image)| {
        let image = timeline.image_ref(process, image)?;
        symbols.image_symbols(&image).found.ok()
    });
    modules
        .chain(images)
        .map(|found| found.to_string())
        .collect()
}

/// What was missing when the trace was recorded, and what to record next time.
fn advice(loaded: &Loaded, summary: &Summary) -> Vec<String> {
    let timeline = &loaded.timeline;
    let mut advice = Vec::new();
    if loaded.report.is_cut_short {
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
    let frames = &summary.frames;
    if !without.is_empty() && frames.share(frames.without(NameReason::NoRundown)) > 1.0 {
        advice.push(format!(
            "NO RUNDOWN of {}: the runtime lists all its code at the end of a recording, and this trace has no such \
             list. Code that was compiled or loaded before the recording began has no name: {}. \
             Next time leave the rundown on (dotnet-trace: not --rundown false), and stop the recording while the \
             process still runs.{}",
            without.join(", "),
            summary.share(NameReason::NoRundown),
            if frames.evidence.contains_key(&Evidence::PerfMap) {
                " (The perf map has no precompiled code.)"
            } else {
                " Or start the process with DOTNET_PerfMapEnabled=1, and give chronosym its file /tmp/perf-PID.map \
                 with --perf-map."
            }
        ));
    }
    if loaded.report.lost_events > 0 {
        advice.push(format!(
            "{} EVENTS WERE LOST: code that they spoke of has no name. Next time record with a larger buffer.",
            show_count(loaded.report.lost_events)
        ));
    }
    if frames.share(frames.without(NameReason::NoSymbolFile)) > 10.0 {
        advice.push(format!(
            "NO SYMBOL FILES for {}: they lie in native or precompiled images whose functions only \
             their symbol files name. Give folders that hold them with --symbols; `chronosym symbols` says which files.",
            summary.share(NameReason::NoSymbolFile)
        ));
    }
    let has = |is: &dyn Fn(&str) -> bool| {
        let types = timeline.event_types().iter();
        types.filter(|t| t.count > 0).any(|t| is(&t.schema.name()))
    };
    if has(&|name| name.starts_with("MethodLoad")) && !has(&|name| name.contains("ILToNativeMap")) {
        advice.push(
            "NO IL MAPS: without them jitted frames have no source line. Next time record the runtime provider with \
             keyword 0x20000 at level 5, or its rundown."
                .to_owned(),
        );
    }
    if frames.share(summary.untrusted) > 1.0 {
        advice.push(
            "FILES STAND WHERE THE TRACE SAYS, but paths out of a trace are not opened unasked. If it was recorded on \
             this machine, --trust-trace-paths gives more names and lines."
                .to_owned(),
        );
    }
    if summary.own.total == 0 {
        advice.push(format!(
            "NO SAMPLES of a profiler {}: `chronosym stacks --event PROVIDER/ID` shows the stacks of other events, if \
             they have any.",
            if loaded.report.notes.iter().any(|note| note.kind() == NoteKind::Damage) {
                "could be read, and parts of the file could not (see damage and loss)"
            } else {
                "are in it"
            }
        ));
    }
    advice
}
