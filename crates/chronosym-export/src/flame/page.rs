//! The page around a flame graph that compares two profiles: their summaries, and what changed.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, Write};

use chronosym_core::{Diagnostic, Profile};
use chronosym_types::escape::xml;

use super::graph::Graph;
use super::svg::push_graph;
use crate::call_tree::CallTree;
use crate::diff::Diff;
use crate::header::describe;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// The number of methods in a table.
const MAX_METHODS: usize = 30;
/// The number of processes in the summary.
const MAX_PROCESSES: usize = 8;

/// What a page states about a trace.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct PageFacts {
    /// The name of the trace.
    pub name: String,
    /// What is wrong with it.
    pub diagnostics: Vec<Diagnostic>,
}

impl PageFacts {
    /// Returns the name of a trace with its diagnostics.
    pub fn new(name: impl Into<String>, diagnostics: Vec<Diagnostic>) -> Self {
        PageFacts {
            name: name.into(),
            diagnostics,
        }
    }
}

/// Writes a page that compares two profiles and needs no other file: their summaries, the red and blue
/// flame graph, and the methods whose percentage changed most.
pub fn write_diff_html(
    diff: &Diff,
    before: (&Profile, &CallTree, &PageFacts),
    after: (&Profile, &CallTree, &PageFacts),
    out: &mut impl Write,
) -> io::Result<()> {
    let mut text = String::new();
    push_head(&format!("{} → {}", before.2.name, after.2.name), &mut text);
    for (when, (profile, _, facts)) in [("Before", before), ("After", after)] {
        let _ = writeln!(text, "<h2>{when}: {}</h2>", xml(&facts.name));
        push_summary(profile, facts, &mut text);
    }
    let graph = Graph::between((before.0, before.1), (after.0, after.1));
    push_picture(
        &graph,
        &["less3", "less1", "same", "more1", "more3"],
        &mut text,
    );
    push_changes(diff, &mut text);
    push_end(&mut text);
    out.write_all(text.as_bytes())
}

fn push_head(name: &str, text: &mut String) {
    // Writing to a `String` never fails.
    let _ = write!(
        text,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{name}</title><style>{STYLE}</style></head><body>\n<h1>{name}</h1>\n",
        name = xml(name)
    );
}

fn push_end(text: &mut String) {
    let _ = writeln!(text, "<script>{SCRIPT}</script></body></html>");
}

/// Appends the graph with its search box and legend.
fn push_picture(graph: &Graph, classes: &[&str], text: &mut String) {
    text.push_str("<input id=\"find\" type=\"search\" placeholder=\"Search names (a regular expression)\" aria-label=\"Search\">\n");
    push_graph(graph, text);
    text.push_str("\n<p class=\"legend\" id=\"legend\">");
    for class in classes {
        let meant = match *class {
            "less3" => "gone or much less",
            "less1" => "less",
            "same" => "as before",
            "more1" => "more",
            "more3" => "new or much more",
            kind => kind,
        };
        let _ = write!(text, "<span><i class=\"{class}\"></i>{meant}</span>");
    }
    text.push_str("</p>\n");
}

fn push_summary(profile: &Profile, facts: &PageFacts, text: &mut String) {
    let timeline = profile.resolver.timeline();
    text.push_str("<p class=\"summary\">");
    for line in describe(profile).lines() {
        let _ = write!(text, "{}<br>", xml(line));
    }
    text.push_str("</p>\n<dl>");
    let mut fact = |key: &str, value: &str| {
        let _ = write!(text, "<dt>{key}</dt><dd>{}</dd>", xml(value));
    };
    let threads = profile.entries.iter().map(|entry| entry.thread);
    let processes: BTreeSet<_> = threads
        .filter_map(|thread| Some(timeline.thread_view(thread)?.process))
        .collect();
    for &process in processes.iter().take(MAX_PROCESSES) {
        if let Some(view) = timeline.process_view(process) {
            let label = std::iter::once(view.label());
            let runtimes = view.runtimes.iter().cloned();
            fact(
                "process",
                &label.chain(runtimes).collect::<Vec<_>>().join(", "),
            );
        }
    }
    if processes.len() > MAX_PROCESSES {
        let more = processes.len() - MAX_PROCESSES;
        fact("process", &format!("and {more} more"));
    }
    if let Some(machine) = &timeline.facts().machine {
        fact("machine", machine);
    }
    let diagnostics = facts.diagnostics.iter();
    diagnostics.for_each(|diagnostic| fact("note", &diagnostic.text));
    text.push_str("</dl>\n");
}

fn push_more(all: usize, what: &str, text: &mut String) {
    if all > MAX_METHODS {
        let _ = writeln!(text, "<p>{} {what}.</p>", all - MAX_METHODS);
    }
}

fn push_changes(diff: &Diff, text: &mut String) {
    text.push_str("<h2>What changed most</h2>\n<table id=\"changes\"><tr><th class=\"n\">self, points</th><th class=\"n\">with callees</th><th class=\"n\">samples before</th><th class=\"n\">after</th><th>method</th></tr>\n");
    let methods = diff.changed();
    for method in methods.iter().take(MAX_METHODS) {
        let name = xml(&method.name);
        let _ = writeln!(
            text,
            "<tr><td class=\"n\">{:+.1}</td><td class=\"n\">{:+.1}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"name\" data-find=\"{name}\">{name}</td></tr>",
            method.self_points,
            method.total_points,
            method.before.counts.own.samples,
            method.after.counts.own.samples,
        );
    }
    text.push_str("</table>\n");
    push_more(methods.len(), "more methods changed", text);
}
