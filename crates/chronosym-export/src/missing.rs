//! Leaves that lack a name or a line, by reason.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chronosym_core::{Frame, Profile};

use crate::weight::{WeightUnit, add};

/// Leaves that lack a name or a line for one reason.
pub(crate) struct Missing<R> {
    pub reason: R,
    pub weight: u64,
}

/// Returns the leaves for which `reason` returns a reason, heaviest first.
pub(crate) fn missing<R: Ord + Copy>(
    profile: &Profile,
    unit: WeightUnit,
    reason: impl Fn(&Frame) -> Option<R>,
) -> Vec<Missing<R>> {
    let resolver = &profile.resolver;
    let mut reasons: BTreeMap<R, u64> = BTreeMap::new();
    for entry in &profile.entries {
        let leaf = resolver.frame(resolver.leaf(entry.stack));
        if let Some(reason) = reason(leaf) {
            add(reasons.entry(reason).or_default(), unit.weight(entry));
        }
    }
    let reasons = reasons.into_iter();
    let mut groups: Vec<Missing<R>> = reasons
        .map(|(reason, weight)| Missing { reason, weight })
        .collect();
    groups.sort_by_key(|group| (Reverse(group.weight), group.reason));
    groups
}
