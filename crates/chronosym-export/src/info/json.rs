//! An overview as JSON.

use std::collections::BTreeMap;
use std::fmt::Display;

use chronosym_core::{EventTypeInfo, FileGap, JoinedRecording, ProcessMatch, ProcessView};
use chronosym_runtime::SuspensionTotals;
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::overview::Overview;
use super::summary::Naming;
use crate::object::{Fields, Object};
use crate::units::utc;

impl Fields for Overview<'_> {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        let (facts, summary) = (self.timeline.facts(), &self.summary);
        let start = facts.start_unix_ns.and_then(utc);
        let start = start.map(|text| text.replace(' ', "T").replace("TUTC", "Z"));
        let processes = self.timeline.processes();
        let processes = processes.map(|view| Process(self.samples_of(&view), view));
        let types = self.timeline.event_types().iter();
        let files = Some(&summary.symbol_files).filter(|files| !files.is_empty());
        let diagnostics = self.diagnostics.list.iter().map(ToString::to_string);
        let diagnostics: Vec<String> = self.advice.iter().cloned().chain(diagnostics).collect();
        let gaps_left_out = self.diagnostics.gaps_left_out;
        object
            .field("format", &facts.format)
            .text("version", &facts.version)
            .some("start", start)
            .field("duration_ns", facts.duration_ns)
            .some("pointer_size", facts.pointer_size)
            .some("processors", facts.processors)
            .field("lost_events", self.diagnostics.lost_events())
            .some_objects("joined", &facts.recordings)
            .objects("processes", processes)
            .objects("events", types.filter(|t| t.count > 0))
            .object("frames", Some(&Frames(self)))
            .some_objects(
                "suspensions",
                &self.suspensions().map(Suspended).collect::<Vec<_>>(),
            )
            .some("symbol_files", files)
            .field("diagnostics", diagnostics)
            .some_objects("gaps", &self.diagnostics.gaps)
            .some("gaps_left_out", Some(gaps_left_out).filter(|&n| n > 0));
    }
}

impl Fields for JoinedRecording {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        object
            .field("name", &self.name)
            .field("gives", &*self.gives)
            .field("clock", self.clock.as_str())
            .field("offset_ns", self.offset_ns)
            .field("error_ns", self.error_ns)
            .some("pid", self.own_pid.map(|(_, pid)| pid))
            .some("own_pid", self.own_pid.map(|(own, _)| own))
            .some(
                "process_match",
                self.process_match.map(ProcessMatch::as_str),
            );
    }
}

/// Suspensions with the pid of their process.
struct Suspended<'o>((Option<u32>, &'o SuspensionTotals));

impl Fields for Suspended<'_> {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        let (pid, of) = self.0;
        object
            .some("pid", pid)
            .field("cause", &of.cause)
            .field("by_sampler", of.by_sampler)
            .field("count", of.count)
            .field("time_ns", of.time_ns);
    }
}

/// A process with its number of samples.
struct Process<'t>(u64, ProcessView<'t>);

impl Fields for Process<'_> {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        let Process(samples, view) = self;
        object
            .some("pid", view.pid)
            .some("name", view.name)
            .some("command_line", view.command_line)
            .text("runtime", &view.runtimes.join(", "))
            .field("samples", samples);
    }
}

impl Fields for EventTypeInfo {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        let schema = &self.schema;
        object
            .field("provider", &**schema.provider_name())
            .some("id", schema.id())
            .some("version", schema.id().map(|_| schema.version()))
            .field("name", schema.name())
            .field("count", self.count)
            .field("stacks", self.stacks);
    }
}

struct Frames<'o>(&'o Overview<'o>);

impl Fields for Frames<'_> {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        let summary = &self.0.summary;
        object
            .fields_of(&summary.frames)
            .field("with_line", summary.with_line)
            .some(
                "samples_after_loss",
                Some(summary.after_loss).filter(|&samples| samples > 0),
            )
            .object("self", Some(&summary.own));
    }
}

impl Fields for Naming {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        object
            .field("total", self.total)
            .field("named", self.named)
            .field("guessed", self.guessed)
            .field("evidence", Counts(&self.evidence))
            .field("reasons", Counts(&self.reasons));
    }
}

/// Counts by the text of their keys.
struct Counts<'n, K>(&'n BTreeMap<K, u64>);

impl<K: Display> Serialize for Counts<'_, K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, count)| (key.to_string(), count)))
    }
}

impl Fields for FileGap {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        object
            .field("file", &self.file)
            .field("offset", self.gap.offset)
            .field("bytes", self.gap.length)
            .field("cause", self.gap.cause.as_str());
    }
}
