//! Advice: what was missing when a trace was recorded, and what to record next time.

use chronosym_core::{Diagnostics, Evidence, NameReason, Timeline};

use super::summary::{Naming, Summary};
use crate::header::beyond_memory;
use crate::units::show_count;

/// Advice in sentences, the most important first.
pub(super) fn advice(
    timeline: &Timeline,
    diagnostics: &Diagnostics,
    summary: &Summary,
) -> Vec<String> {
    let mut advice = Vec::new();
    if diagnostics.is_cut_short() {
        advice.push(
            "CUT SHORT: the file ends in the middle, perhaps because recording or copying was interrupted. Everything before that was read; the rundown at the end of the recording is missing."
                .to_owned(),
        );
    }
    let without_rundown = timeline
        .processes()
        .filter(|p| p.is_managed && !p.has_rundown);
    let without_rundown: Vec<String> = without_rundown.map(|p| p.label()).collect();
    let frames = &summary.frames;
    if !without_rundown.is_empty() && frames.share(frames.unnamed(NameReason::NoRundown)) > 1.0 {
        advice.push(format!(
            "NO RUNDOWN of {}: the runtime lists all its code at the end of a recording, and this trace has no such \
             list. Code that was compiled or loaded before the recording began has no name: {}. \
             Next time leave the rundown on (dotnet-trace: not --rundown false), and stop the recording while the \
             process still runs.{}",
            without_rundown.join(", "),
            summary.share(|naming| naming.unnamed(NameReason::NoRundown)),
            if frames.evidence.contains_key(&Evidence::PerfMap) {
                " (The perf map has no precompiled code.)"
            } else {
                " Or start the process with DOTNET_PerfMapEnabled=1, and give chronosym its file /tmp/perf-PID.map \
                 with --perf-map."
            }
        ));
    }
    if diagnostics.lost_events() > 0 {
        advice.push(format!(
            "{} EVENTS WERE LOST: code that only they describe has no name. Next time record with a larger buffer.",
            show_count(diagnostics.lost_events())
        ));
    }
    if frames.share(frames.without_file()) > 10.0 {
        advice.push(format!(
            "NO SYMBOL FILES for {}: they are in native or precompiled images, whose functions only symbol files name. Add folders of symbol files with --symbols; `chronosym symbols` lists the files.",
            summary.share(Naming::without_file)
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
    let samples = summary.own.total;
    let is_perf = timeline.facts().format.starts_with("perf");
    if is_perf && samples > 0 && summary.single == samples {
        advice.push(
            "NO CALL STACKS: each sample has only its innermost frame. Next time record with `perf record -g`, or \
             `perf record --call-graph dwarf` if programs keep no frame pointers."
                .to_owned(),
        );
    } else if is_perf && summary.shallow * 2 > samples {
        advice.push(format!(
            "FEW CALLERS: {:.0} % of samples have one or two frames of user code, probably because programs keep no frame pointers. Next time record with `perf record --call-graph dwarf`, or compile with \
             -fno-omit-frame-pointer.",
            summary.own.share(summary.shallow)
        ));
    }
    if timeline.facts().lacks_samples {
        advice.push(
            "NO SAMPLES: the timeline was saved without them. Save it again with --with-samples."
                .to_owned(),
        );
    } else if summary.own.total == 0 {
        advice.push(format!(
            "NO SAMPLES of a profiler {}{}: `chronosym stacks --event PROVIDER/ID` shows the stacks of other events, if \
             they have any.",
            if diagnostics.is_damaged() {
                "could be read, and parts of the file could not (see damage and loss)"
            } else {
                "are in it"
            },
            beyond_memory(timeline)
        ));
    }
    advice
}
