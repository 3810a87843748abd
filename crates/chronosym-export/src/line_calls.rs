//! Calls on source lines, and whether the JIT inlined them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use chronosym_core::{Code, Profile};
use chronosym_runtime::JitDecisions;
use serde::Serialize;

use crate::compiled_bodies::{bodies_of, body_of};
use crate::function_groups::FunctionGroups;
use crate::pattern::Pattern;

/// A call on a line that the JIT inlined or rejected.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct LineCall {
    /// The line, from 1.
    pub line: u32,
    /// The called method.
    pub callee: String,
    /// The JIT's reason against inlining; absent if it inlined the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected: Option<String>,
}

impl fmt::Display for LineCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rejected {
            None => write!(f, "{} is inlined", self.callee),
            Some(reason) => write!(f, "{} is not inlined: {reason}", self.callee),
        }
    }
}

/// By source file, the calls of the methods that match a pattern, or of all, in the stacks of a
/// profile: those that are inlined there, and those that the JIT's events state as rejected for the
/// calling body.
pub(crate) fn line_calls(
    profile: &Profile,
    pattern: Option<&Pattern>,
    decisions: &JitDecisions,
) -> BTreeMap<String, BTreeSet<LineCall>> {
    let resolver = &profile.resolver;
    let groups = FunctionGroups::new(resolver, false);
    let matching = pattern.map(|pattern| groups.matching(pattern));
    let is_wanted = |group: usize| matching.as_ref().is_none_or(|wanted| wanted[group]);
    let (by_address, _) = bodies_of(resolver.timeline());
    let mut rejected = BTreeMap::new();
    for body in &decisions.bodies {
        if let Some(key) = body_of(&by_address, body) {
            let calls = body.rejected.iter();
            rejected.extend(calls.map(|it| ((key, &*it.callee), &it.reason)));
        }
    }
    let mut seen = BTreeSet::new();
    let mut calls: BTreeMap<String, BTreeSet<LineCall>> = BTreeMap::new();
    let mut visited = vec![false; resolver.stacks().len()];
    for entry in &profile.entries {
        let mut next = Some(entry.stack);
        // The callers of a visited stack have been visited, too.
        while let Some(stack) = next
            && !std::mem::replace(&mut visited[stack.index()], true)
        {
            next = resolver.caller(stack);
            let pair = next.map(|caller| (resolver.leaf(stack), resolver.leaf(caller)));
            let Some((of, id)) = pair.filter(|&pair| seen.insert(pair)) else {
                continue;
            };
            let (callee, caller) = (resolver.frame(of), resolver.frame(id));
            let (Ok(line), true) = (&caller.line, is_wanted(groups.of_frame(caller))) else {
                continue;
            };
            let name = callee.function.recorded_name();
            let reason = match (caller.code, name) {
                _ if callee.inlined => None,
                (Code::Body(process, body), Some(name)) => {
                    match rejected.get(&((process, body), name)) {
                        Some(reason) => Some(reason.to_string()),
                        None => continue,
                    }
                }
                _ => continue,
            };
            let of_file = calls.entry(line.file.to_string()).or_default();
            of_file.insert(LineCall {
                line: line.line,
                callee: callee.label().to_owned(),
                rejected: reason,
            });
        }
    }
    calls
}
