//! What innermost frames lack, a name or a line: by reason, and what helps.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chronosym_core::{Frame, LineReason, NameReason, Profile};
use chronosym_types::hash::HashMap;

use crate::measure::{Measure, add};

/// Innermost frames that lack something for one reason.
pub(crate) struct Missing<R> {
    pub reason: R,
    pub weight: u64,
    /// The modules that they are in, heaviest first.
    pub modules: Vec<String>,
}

/// The innermost frames that lack what `reason` says, heaviest first.
pub(crate) fn missing<R: Ord + Copy>(
    profile: &Profile,
    measure: Measure,
    reason: impl Fn(&Frame) -> Option<R>,
) -> Vec<Missing<R>> {
    let resolver = &profile.resolver;
    let mut reasons: BTreeMap<R, (u64, HashMap<&str, u64>)> = BTreeMap::new();
    for entry in &profile.entries {
        let leaf = resolver.frame(resolver.leaf(entry.stack));
        if let Some(reason) = reason(leaf) {
            let (all, modules) = reasons.entry(reason).or_default();
            let module = leaf.module().unwrap_or("no known image");
            add(all, measure.weight(entry));
            add(modules.entry(module).or_default(), measure.weight(entry));
        }
    }
    let row = |(reason, (weight, modules)): (_, (_, HashMap<&str, u64>))| {
        let mut modules: Vec<_> = modules.into_iter().collect();
        modules.sort_by_key(|&(name, weight)| (Reverse(weight), name));
        let modules = modules.iter().map(|(name, _)| (*name).to_owned());
        Missing {
            reason,
            weight,
            modules: modules.collect(),
        }
    };
    let mut rows: Vec<Missing<R>> = reasons.into_iter().map(row).collect();
    rows.sort_by_key(|row| (Reverse(row.weight), row.reason));
    rows
}

/// What to do where there is no name: now, or when recording the next time.
pub(crate) fn helps_name(reason: NameReason) -> &'static str {
    match reason {
        NameReason::NoCodeAtAddress => {
            "next time: record the runtime's loader and JIT events, and let the recording end with its rundown"
        }
        NameReason::BeforeFirstLoad => "next time: record from the start of the program",
        NameReason::AfterUnload => "nothing is known to: tell us if this is much",
        NameReason::EventsLost => "next time: record with larger buffers, or fewer events",
        NameReason::NoRundown => {
            "next time: let the recording end while the program still runs, and leave its rundown on"
        }
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

/// What it means that a frame with a name has no line.
pub(crate) fn line_meaning(reason: LineReason) -> &'static str {
    match reason {
        LineReason::NoILMap => "nothing leads from its native code to IL",
        LineReason::NoSymbolFile => "its PDB or debug file is not at hand",
        LineReason::SymbolFileMismatch => "the symbol file is of another build",
        LineReason::SymbolFileDamaged => "the symbol file cannot be read",
        LineReason::PathNotTrusted => "the trace names a file, which is not opened just so",
        LineReason::Offline => "the symbol file would have to be fetched",
        LineReason::LimitReached => "it would cost too much to find out",
        LineReason::NoSequencePoint => "the compiler gave the code no line",
        LineReason::NoLineInfo => "the symbol file has no lines",
        LineReason::LinesDisabled => "--no-lines",
    }
}

/// What to do where there is no line.
pub(crate) fn helps_line(reason: LineReason) -> &'static str {
    match reason {
        LineReason::NoILMap => {
            "next time: record IL maps (keyword 20000 of Microsoft-Windows-DotNETRuntime, level 5); of precompiled code --symbols with its image"
        }
        LineReason::NoSymbolFile => "--symbols DIR, or --symbol-path with a symbol server",
        LineReason::SymbolFileMismatch => "--symbols with the files of the build that ran",
        LineReason::SymbolFileDamaged | LineReason::LimitReached => "get it anew",
        LineReason::PathNotTrusted => "--trust-trace-paths on the machine that was recorded",
        LineReason::Offline => "leave out --offline",
        LineReason::NoSequencePoint => "nothing: no source stands behind it",
        LineReason::NoLineInfo => "a symbol file with debug information",
        LineReason::LinesDisabled => "leave out --no-lines",
    }
}
