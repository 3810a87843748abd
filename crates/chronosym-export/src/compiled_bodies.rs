//! The bodies that decisions of the JIT are about.

use std::collections::BTreeSet;

use chronosym_core::{BodyIndex, ProcessIndex, Timeline};
use chronosym_runtime::CompiledBody;
use chronosym_types::hash::HashMap;

/// The bodies of each process by address and start of their lifetime.
pub(crate) type BodiesByAddress = HashMap<(ProcessIndex, u64), Vec<(u64, BodyIndex)>>;

/// Returns the body that decisions are about: the one at its address whose lifetime starts closest.
pub(crate) fn body_of(
    bodies: &BodiesByAddress,
    of: &CompiledBody,
) -> Option<(ProcessIndex, BodyIndex)> {
    let bodies = bodies.get(&(of.process, of.start?))?;
    let after = bodies.partition_point(|&(from, _)| from <= of.time_ns);
    let near = bodies[after.saturating_sub(1)..].iter().take(2);
    let (_, index) = near.min_by_key(|(from, _)| from.abs_diff(of.time_ns))?;
    Some((of.process, *index))
}

/// Returns all bodies by address, and those with an inline tree.
pub(crate) fn bodies_of(
    timeline: &Timeline,
) -> (BodiesByAddress, BTreeSet<(ProcessIndex, BodyIndex)>) {
    let (mut by_address, mut with_tree) = (BodiesByAddress::default(), BTreeSet::new());
    for process in timeline.processes() {
        for body in timeline.bodies(process.index) {
            let at = by_address.entry((process.index, body.start)).or_default();
            at.push((body.lifetime.from, body.index));
            if body.has_inline_tree {
                with_tree.insert((process.index, body.index));
            }
        }
    }
    by_address
        .values_mut()
        .for_each(|bodies| bodies.sort_unstable());
    (by_address, with_tree)
}
