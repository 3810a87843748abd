//! What of the innermost frames has no name, by reason, and what helps.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chronosym::{NameReason, Profile};
use rustc_hash::FxHashMap;

use crate::measure::{Measure, add};

/// Innermost frames that have no name for one reason.
pub(crate) struct Unnamed {
    pub reason: NameReason,
    pub weight: u64,
    /// The modules that they are in, heaviest first.
    pub modules: Vec<String>,
}

/// What has no name, heaviest first.
pub(crate) fn unnamed(profile: &Profile, measure: Measure) -> Vec<Unnamed> {
    let resolver = &profile.resolver;
    let mut reasons: BTreeMap<NameReason, (u64, FxHashMap<&str, u64>)> = BTreeMap::new();
    for entry in &profile.entries {
        let leaf = resolver.frame(resolver.leaf(entry.stack));
        if let Err(reason) = leaf.name() {
            let (all, modules) = reasons.entry(reason).or_default();
            let module = leaf.module().unwrap_or("no known image");
            add(all, measure.weight(entry));
            add(modules.entry(module).or_default(), measure.weight(entry));
        }
    }
    let row = |(reason, (weight, modules)): (_, (_, FxHashMap<&str, u64>))| {
        let mut modules: Vec<_> = modules.into_iter().collect();
        modules.sort_by_key(|&(name, weight)| (Reverse(weight), name));
        Unnamed {
            reason,
            weight,
            modules: modules.iter().map(|(name, _)| (*name).to_owned()).collect(),
        }
    };
    let mut rows: Vec<Unnamed> = reasons.into_iter().map(row).collect();
    rows.sort_by_key(|row| (Reverse(row.weight), row.reason));
    rows
}

/// What to do where there is no name: now, or when recording the next time.
pub(crate) fn helps(reason: NameReason) -> &'static str {
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
