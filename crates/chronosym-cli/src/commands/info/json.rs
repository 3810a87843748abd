//! What is in a trace, for programs.

use chronosym_export::JsonObject;

use super::{Summary, advice};
use crate::load::Loaded;
use crate::units::utc;

/// One object with the contract's keys.
pub fn object(loaded: &Loaded, summary: &Summary) -> String {
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
                .value("pid", process.pid)
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
