//! Which stacks a tree leaves out if not all have room.

use std::cmp::Reverse;

use chronosym_core::{ResolvedStack, Resolver};

/// The stacks with the fewest samples, which have no node of their own.
pub(crate) struct RareStacks {
    /// Samples of each stack and of what it called.
    samples: Vec<u64>,
    /// The minimum number of samples of a stack with a node.
    least: u64,
}

impl RareStacks {
    /// Determines them for a tree of at most `max_nodes`; `samples` are stacks with their numbers of
    /// samples. `None` if all stacks have room.
    pub fn new(
        resolver: &Resolver,
        samples: impl IntoIterator<Item = (ResolvedStack, u64)>,
        max_nodes: usize,
    ) -> Option<Self> {
        if resolver.stacks().len() <= max_nodes {
            return None;
        }
        let samples = resolver.totals(samples);
        let mut sorted = samples.clone();
        let (_, most, _) =
            sorted.select_nth_unstable_by_key(max_nodes, |&samples| Reverse(samples));
        let least = most.saturating_add(1);
        Some(RareStacks { samples, least })
    }

    /// Returns whether a stack has no node.
    pub fn contains(&self, stack: ResolvedStack) -> bool {
        self.samples[stack.index()] < self.least
    }
}

#[cfg(test)]
mod tests {
    use chronosym_core::facts::{At, Method, Process, Sample};
    use chronosym_core::{Action, Filter, Options, Session};

    use crate::{CallTree, TreeOptions, write_folded};

    #[test]
    fn a_tree_without_room_has_the_stacks_with_most_samples() {
        let mut session = Session::new(Options::default());
        let at = At::new(0).process(42).thread(7);
        session.apply(at, Process::new(Action::Load, "app"));
        for id in 1..=200 {
            let name = format!("M{id}");
            let method = Method::new(Action::Load, id, id << 12, 64).named("T", &name, "");
            session.apply(at, method);
        }
        // Stacks of one sample each before one of ten; all are called by method 200.
        for id in 1..=100_u64 {
            let stack = [id << 12 | 0x10, (id + 20) << 12 | 0x10, 200 << 12 | 0x10];
            session.sample(at.at(id), &stack, Sample::cpu());
        }
        let hot: Vec<u64> = (181..=200).map(|id| id << 12 | 0x10).collect();
        for time in 101..=110 {
            session.sample(at.at(time), &hot, Sample::cpu());
        }
        let profile = session.finish().profile(&Filter::default(), None);
        let tree = |max_nodes| {
            let max_nodes = Some(max_nodes);
            let options = TreeOptions {
                max_nodes,
                threads: false,
                ..TreeOptions::default()
            };
            let tree = CallTree::new(&profile, options);
            let mut folded = Vec::new();
            write_folded(&tree, &mut folded).expect("memory");
            (tree.left_out(), String::from_utf8(folded).expect("text"))
        };
        let (left_out, folded) = tree(25);
        let names: Vec<_> = (181..=200).rev().map(|id| format!("T.M{id}")).collect();
        let hot = format!("app (42);{} 10\n", names.join(";"));
        let rest = "app (42);T.M200;[frames left out] 100\n";
        assert_eq!((left_out, folded), (100, format!("{hot}{rest}")));
        let (left_out, folded) = tree(1_000);
        assert_eq!((left_out, folded.lines().count()), (0, 101));
        assert!(folded.contains(&hot));
    }
}
