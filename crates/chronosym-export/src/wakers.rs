//! What ended waits: the wake-ups of a recording with context switches.

use std::sync::Arc;

use chronosym_core::{
    Activity, ActivityFilter, Filter, Profile, ResolvedStack, Resolver, SymbolSource, Timeline,
};

use crate::pattern::Pattern;

/// The wake-ups that ended the waits of a method, and how many waits there are.
#[derive(Debug)]
#[non_exhaustive]
pub struct Wakers {
    /// The wake-ups: the threads and stacks that ended waits, each with the length of the wait.
    pub profile: Profile,
    /// The number of the method's waits.
    pub waits: u64,
    /// The time of the method's waits, in ns.
    pub wait_ns: u64,
}

impl Wakers {
    /// Finds the wake-ups of the waits that `filter` selects and whose stack has a method that
    /// matches a pattern.
    pub fn of(
        timeline: &Arc<Timeline>,
        filter: &Filter,
        symbols: Option<Arc<dyn SymbolSource>>,
        method: &Pattern,
    ) -> Self {
        let mut waiting = filter.clone();
        waiting.activity = Some(ActivityFilter::Only(Activity::Blocked));
        let waits = timeline.profile(&waiting, symbols.clone());
        let (mut number, mut wait_ns) = (0, 0u64);
        for entry in &waits.entries {
            if has_method(&waits.resolver, entry.stack, method) {
                number += entry.samples;
                wait_ns = wait_ns.saturating_add(entry.time_ns);
            }
        }
        let profile = timeline.wakers(filter, symbols, |resolver, stack| {
            has_method(resolver, stack, method)
        });
        Wakers {
            profile,
            waits: number,
            wait_ns,
        }
    }
}

fn has_method(resolver: &Resolver, stack: ResolvedStack, method: &Pattern) -> bool {
    let mut frames = resolver.stack(stack);
    frames.any(|frame| method.is_match(resolver.frame(frame).label()))
}
