//! Inlined methods that call a method, by the JIT's events alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use chronosym_types::hash::HashMap;

use crate::decisions::CompiledBody;

/// Longest chain: the JIT's limit (`JitMaxInlineDepth`).
const MAX_DEPTH: usize = 20;

impl CompiledBody {
    /// Returns, by called method, the inlined methods through which this body calls it, outermost
    /// first, as far as the JIT's events leave one possibility: each event about a call of the
    /// method that was not inlined names the same caller, which is not the compiled method. The
    /// chain ends where the events name several inliners of a method.
    ///
    /// Calls without an event, such as indirect ones, may be elsewhere in the body, so this is a
    /// guess.
    pub fn inlined_callers(&self) -> HashMap<Arc<str>, Vec<Arc<str>>> {
        let mut inliners: HashMap<&str, BTreeSet<&Arc<str>>> = HashMap::default();
        for call in &self.inlined {
            inliners
                .entry(&call.callee)
                .or_default()
                .insert(&call.caller);
        }
        let mut callers: HashMap<&Arc<str>, BTreeSet<&Arc<str>>> = HashMap::default();
        for call in &self.rejected {
            callers
                .entry(&call.callee)
                .or_default()
                .insert(&call.caller);
        }
        let mut found = HashMap::default();
        for (callee, callers) in callers {
            let Some(caller) = only(&callers).filter(|caller| **caller != self.name) else {
                continue;
            };
            let mut chain = Vec::new();
            let mut next = Some(caller);
            while let Some(method) = next.filter(|method| **method != self.name) {
                let Some(inliners) = inliners.get(&**method) else {
                    break;
                };
                if chain.contains(method) || chain.len() == MAX_DEPTH {
                    break;
                }
                chain.push(method.clone());
                next = only(inliners);
            }
            if !chain.is_empty() {
                chain.reverse();
                found.insert(callee.clone(), chain);
            }
        }
        found
    }
}

fn only<'a>(methods: &BTreeSet<&'a Arc<str>>) -> Option<&'a Arc<str>> {
    methods.first().copied().filter(|_| methods.len() == 1)
}

#[cfg(test)]
mod tests {
    use chronosym_core::ProcessIndex;

    use super::*;
    use crate::decisions::{InlinedCall, RejectedCall};

    /// The inlined callers in a body of method `M`: inlined and rejected calls, as (caller, callee).
    fn callers(inlined: &[(&str, &str)], rejected: &[(&str, &str)]) -> Vec<(String, String)> {
        let body = CompiledBody {
            process: ProcessIndex::default(),
            name: "M".into(),
            signature: "".into(),
            start: None,
            size: 0,
            time_ns: 0,
            tier: None,
            inlined: inlined
                .iter()
                .map(|&(caller, callee)| InlinedCall {
                    caller: caller.into(),
                    callee: callee.into(),
                })
                .collect(),
            rejected: rejected
                .iter()
                .map(|&(caller, callee)| RejectedCall {
                    caller: caller.into(),
                    callee: callee.into(),
                    reason: "too many il bytes".into(),
                    always: false,
                })
                .collect(),
            tail_calls: Vec::new(),
        };
        let found = body.inlined_callers().into_iter();
        let mut found: Vec<_> = found
            .map(|(callee, chain)| (callee.to_string(), chain.join(">")))
            .collect();
        found.sort();
        found
    }

    #[test]
    fn a_call_has_inlined_callers_if_its_events_name_one_caller() {
        let inlined = [("M", "A"), ("A", "B"), ("M", "C"), ("A", "C"), ("D", "D")];
        let rejected = [
            // B is inlined into A, and A into the method.
            ("B", "one"),
            ("B", "one"),
            // By two methods, by the method itself, and by one that no event inlines.
            ("A", "two"),
            ("B", "two"),
            ("M", "own"),
            ("X", "lost"),
            // C has two inliners, so what calls it is unknown; D inlines itself.
            ("C", "part"),
            ("D", "round"),
        ];
        let expected = [("one", "A>B"), ("part", "C"), ("round", "D")];
        let expected = expected.map(|(callee, chain)| (callee.to_owned(), chain.to_owned()));
        assert_eq!(callers(&inlined, &rejected), expected);
    }

    #[test]
    fn chains_are_bounded() {
        let names: Vec<String> = (0..100).map(|n| format!("I{n}")).collect();
        let inlined: Vec<(&str, &str)> = names.windows(2).map(|it| (&*it[0], &*it[1])).collect();
        let found = callers(&inlined, &[("I99", "callee")]);
        assert_eq!(found[0].1.split('>').count(), MAX_DEPTH);
        assert!(found[0].1.ends_with("I98>I99"));
    }
}
