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
        let samples = self.samples.get(stack.index());
        samples.is_some_and(|&samples| samples < self.least)
    }
}

#[cfg(test)]
mod tests {
    use chronosym_core::facts::{At, Method, Process, Sample};
    use chronosym_core::{Action, Filter, Options, Session};

    use crate::{CallTree, TreeOptions, write_folded};

    #[test]
    fn a_tree_without_room_has_the_stacks_with_most_samples() {
        let (mut session, at) = session();
        // Stacks of one sample each before one of ten; all are called by method 200.
        for id in 1..=100_u64 {
            let stack = [id << 12 | 0x10, (id + 20) << 12 | 0x10, 200 << 12 | 0x10];
            session.sample(at.at(id), &stack, Sample::cpu());
        }
        let hot: Vec<u64> = (181..=200).map(|id| id << 12 | 0x10).collect();
        for time in 101..=110 {
            session.sample(at.at(time), &hot, Sample::cpu());
        }
        let (left_out, folded) = folded(session, 25);
        let names: Vec<_> = (181..=200).rev().map(|id| format!("T.M{id}")).collect();
        let hot = format!("app (42);{} 10\n", names.join(";"));
        let rest = "app (42);T.M200;[frames left out] 100\n";
        assert_eq!((left_out, folded), (100, format!("{hot}{rest}")));
    }

    #[test]
    fn stacks_that_share_a_node_have_room() {
        let (mut session, at) = session();
        for address in 0x1000..0x1030 {
            session.sample(at.at(address), &[address], Sample::cpu());
        }
        let all = "app (42);T.M1 48\n".to_owned();
        assert_eq!(folded(session, 25), (0, all));
    }

    /// Returns the folded stacks of a tree of at most so many nodes, and the number of samples
    /// whose frames it left out.
    fn folded(session: Session, max_nodes: u32) -> (u64, String) {
        let options = TreeOptions {
            max_nodes: Some(max_nodes),
            threads: false,
            ..TreeOptions::default()
        };
        let profile = session.finish().profile(&Filter::default(), None);
        let tree = CallTree::new(&profile, options);
        let mut folded = Vec::new();
        write_folded(&tree, &mut folded).expect("memory");
        (tree.left_out(), String::from_utf8(folded).expect("text"))
    }

    /// Returns a session with the methods `M1` to `M200`, and a thread.
    fn session() -> (Session, At) {
        let mut session = Session::new(Options::default());
        let at = At::new(0).process(42).thread(7);
        session.apply(at, Process::new(Action::Load, "app"));
        for id in 1..=200 {
            let name = format!("M{id}");
            let method = Method::new(Action::Load, id, id << 12, 64).named("T", &name, "");
            session.apply(at, method);
        }
        (session, at)
    }
}
