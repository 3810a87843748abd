//! What innermost frames lack, a name or a line: by reason, and what helps.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chronosym_core::{Frame, Profile};
use chronosym_types::hash::HashMap;

use crate::weight::{WeightUnit, add};

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
    unit: WeightUnit,
    reason: impl Fn(&Frame) -> Option<R>,
) -> Vec<Missing<R>> {
    let resolver = &profile.resolver;
    let mut reasons: BTreeMap<R, (u64, HashMap<&str, u64>)> = BTreeMap::new();
    for entry in &profile.entries {
        let leaf = resolver.frame(resolver.leaf(entry.stack));
        if let Some(reason) = reason(leaf) {
            let (all, modules) = reasons.entry(reason).or_default();
            let module = leaf.module().unwrap_or("no known image");
            add(all, unit.weight(entry));
            add(modules.entry(module).or_default(), unit.weight(entry));
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
