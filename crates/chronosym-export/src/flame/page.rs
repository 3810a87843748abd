//! The page around a flame graph: what the samples are, where the time went, what has no name and what to do.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use chronosym::{NameReason, SampleKind};
use chronosym_types::escape::xml;

use super::{KINDS, amount, push_graph};
use crate::header::meaning;
use crate::series::{Series, millis};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// Rows of the table of methods.
const MOST: usize = 30;

/// What a page says beside what its samples do.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct PageFacts {
    /// What the trace is called.
    pub name: String,
    /// What was damaged, lost or not understood, in sentences.
    pub notes: Vec<String>,
}

impl PageFacts {
    /// The name of a trace, and what is to be noted of it.
    pub fn new(name: impl Into<String>, notes: Vec<String>) -> Self {
        PageFacts {
            name: name.into(),
            notes,
        }
    }
}

/// Writes a page that needs no other file: a summary, the flame graph, the hottest methods, what has no name and why.
pub fn write_html(series: &Series, facts: &PageFacts, out: &mut impl Write) -> io::Result<()> {
    let mut text = String::new();
    // Writing to a String does not fail.
    let _ = write!(
        text,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{name}</title><style>{STYLE}</style></head><body>\n<h1>{name}</h1>\n",
        name = xml(&facts.name)
    );
    push_summary(series, facts, &mut text);
    text.push_str("<input id=\"find\" type=\"search\" placeholder=\"Search names (a regular expression)\" aria-label=\"Search\">\n");
    push_graph(series, &mut text);
    text.push_str("\n<p class=\"legend\" id=\"legend\">");
    for kind in &KINDS[..8] {
        let _ = write!(text, "<span><i class=\"{kind}\"></i>{kind}</span>");
    }
    text.push_str("</p>\n");
    push_methods(series, &mut text);
    push_unnamed(series, &mut text);
    let _ = writeln!(text, "<script>{SCRIPT}</script></body></html>");
    out.write_all(text.as_bytes())
}

fn push_summary(series: &Series, facts: &PageFacts, text: &mut String) {
    let timeline = series.resolver.timeline();
    let trace = timeline.facts();
    let threads = series.by_thread();
    let mut rows = vec![("samples", series.title())];
    let wall = series
        .samples
        .iter()
        .any(|s| matches!(s.kind, SampleKind::WallManaged | SampleKind::WallExternal));
    let cpu = series.samples.iter().any(|s| s.kind == SampleKind::Cpu);
    rows.push(("they are", match (cpu, wall) {
        (true, _) => "of processors: where they were busy",
        (_, true) => "of every thread at every tick, running or waiting: where threads stood, not what they cost",
        _ => "of events: where the chosen ones happened",
    }.to_owned()));
    if let Some(interval) = trace.sample_interval_ns.filter(|_| cpu || wall) {
        rows.push((
            "asked for",
            format!("one sample every {} ms", millis(interval, 3)),
        ));
    }
    if let (Some(first), Some(last)) = (series.samples.first(), series.samples.last()) {
        let span = format!(
            "{} ms to {} ms of {} ms",
            millis(first.time_ns, 1),
            millis(last.time_ns, 1),
            millis(trace.duration_ns, 1)
        );
        rows.push(("time", span));
    }
    rows.push(("threads", threads.len().to_string()));
    let mut processes: Vec<_> = threads
        .iter()
        .filter_map(|(thread, _)| timeline.thread_view(*thread))
        .map(|t| t.process)
        .collect();
    processes.sort_unstable();
    processes.dedup();
    for process in processes
        .into_iter()
        .filter_map(|process| timeline.process_view(process))
        .take(8)
    {
        let runtimes = process.runtimes.join(", ");
        let comma = if runtimes.is_empty() { "" } else { ", " };
        rows.push(("process", format!("{}{comma}{runtimes}", process.label())));
    }
    if let Some(machine) = &trace.machine {
        rows.push(("machine", machine.clone()));
    }
    text.push_str("<dl>");
    for (key, value) in rows
        .iter()
        .map(|(k, v)| (*k, v))
        .chain(facts.notes.iter().map(|n| ("note", n)))
    {
        let _ = write!(text, "<dt>{key}</dt><dd>{}</dd>", xml(value));
    }
    text.push_str("</dl>\n");
}

fn push_methods(series: &Series, text: &mut String) {
    let resolver = &series.resolver;
    let rows = series.rows();
    let labels = series.labels(&rows);
    let whole = series.total();
    let mut methods: Vec<(u64, u64, usize)> = (0..labels.len()).map(|row| (0, 0, row)).collect();
    // The stack in which a row was met last, counted from 1: each sample counts once.
    let mut seen = vec![0usize; labels.len()];
    for (total, at) in series.stacks().iter().zip(1..) {
        for (depth, frame) in resolver.stack(total.stack).enumerate() {
            let row = rows.of[resolver.frame(frame).function.id().index()] as usize;
            if depth == 0 {
                methods[row].0 = methods[row].0.saturating_add(total.weight);
            }
            if std::mem::replace(&mut seen[row], at) != at {
                methods[row].1 = methods[row].1.saturating_add(total.weight);
            }
        }
    }
    methods.retain(|method| method.1 > 0);
    methods.sort_by_key(|&(own, all, row)| (Reverse((own, all)), &labels[row]));
    let _ = write!(
        text,
        "<h2>Hottest methods</h2>\n<table id=\"top\"><tr><th class=\"n\">self</th><th class=\"n\">with callees</th><th>method</th></tr>\n"
    );
    for &(own, all, row) in methods.iter().take(MOST) {
        let name = xml(&labels[row]);
        let _ = writeln!(
            text,
            "<tr><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"name\" data-find=\"{name}\">{name}</td></tr>",
            amount(series, own, whole),
            amount(series, all, whole),
        );
    }
    text.push_str("</table>\n");
    if methods.len() > MOST {
        let _ = writeln!(
            text,
            "<p>{} more methods are in the graph.</p>",
            methods.len() - MOST
        );
    }
}

fn push_unnamed(series: &Series, text: &mut String) {
    let (resolver, whole) = (&series.resolver, series.total());
    let mut reasons: BTreeMap<NameReason, (u64, BTreeMap<&str, u64>)> = BTreeMap::new();
    for total in series.stacks() {
        let leaf = resolver.frame(resolver.leaf(total.stack));
        if let Err(reason) = leaf.name() {
            let (weight, modules) = reasons.entry(reason).or_default();
            *weight = weight.saturating_add(total.weight);
            let module = modules.entry(leaf.module().unwrap_or("no known image"));
            let module = module.or_default();
            *module = u64::saturating_add(*module, total.weight);
        }
    }
    text.push_str("<h2>What has no name</h2>\n");
    if reasons.is_empty() {
        text.push_str("<p id=\"unnamed\">Each innermost frame has a name.</p>\n");
        return;
    }
    text.push_str("<table id=\"unnamed\"><tr><th class=\"n\">self</th><th>why</th><th>where, mostly</th><th>what helps</th></tr>\n");
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(reason, (weight, _))| (Reverse(*weight), *reason));
    for (reason, (weight, modules)) in reasons {
        let mut modules: Vec<_> = modules.into_iter().collect();
        modules.sort_by_key(|&(name, weight)| (Reverse(weight), name));
        let modules: Vec<_> = modules.iter().take(4).map(|(name, _)| *name).collect();
        let (why, helps) = (meaning(reason), helps(reason));
        let _ = writeln!(
            text,
            "<tr><td class=\"n\">{}</td><td>{why}</td><td>{}</td><td>{}</td></tr>",
            amount(series, weight, whole),
            xml(&modules.join(", ")),
            xml(helps),
        );
    }
    text.push_str("</table>\n");
}

/// What to do where there is no name: now, or when recording the next time.
fn helps(reason: NameReason) -> &'static str {
    let record = "record the runtime's loader, JIT and rundown events from the start of the process, and let the recording end well";
    match reason {
        NameReason::NoCodeAtAddress => record,
        NameReason::BeforeFirstLoad => record,
        NameReason::AfterUnload => "nothing is known to: tell us if this is much",
        NameReason::EventsLost => "record with larger buffers, or fewer events",
        NameReason::NoRundown => record,
        NameReason::NoSymbolFile => "--symbols DIR, or --symbol-path with a symbol server",
        NameReason::SymbolFileMismatch => "--symbols with the files of the build that ran",
        NameReason::SymbolFileDamaged => "get it anew",
        NameReason::PathNotTrusted => "--trust-trace-paths on the machine that was recorded",
        NameReason::Offline => "leave out --offline",
        NameReason::LimitReached => "get the symbol file anew: no compiler shares tables so widely",
        NameReason::NoName => "--symbols DIR, or --perf-map FILE",
        NameReason::Ambiguous => "ask with a time",
        NameReason::InvalidAddress => "nothing: the recorder's stack walk went astray",
    }
}
