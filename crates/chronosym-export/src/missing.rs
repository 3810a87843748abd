//! Leaves that lack a name or a line, by reason.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chronosym_core::{Frame, Profile};
use chronosym_types::hash::HashMap;

use crate::weight::{WeightUnit, add};

/// Leaves that lack a name or a line for one reason.
pub(crate) struct Missing<R> {
    pub reason: R,
    pub weight: u64,
    /// Their modules, heaviest first.
    pub modules: Vec<String>,
}

/// Returns the leaves for which `reason` returns a reason, heaviest first.
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
    let group = |(reason, (weight, modules)): (_, (_, HashMap<&str, u64>))| {
        let mut modules: Vec<_> = modules.into_iter().collect();
        modules.sort_by_key(|&(name, weight)| (Reverse(weight), name));
        let modules = modules.iter().map(|(name, _)| (*name).to_owned());
        Missing {
            reason,
            weight,
            modules: modules.collect(),
        }
    };
    let mut groups: Vec<Missing<R>> = reasons.into_iter().map(group).collect();
    groups.sort_by_key(|group| (Reverse(group.weight), group.reason));
    groups
}
