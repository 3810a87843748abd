//! Runtime helpers in which threads park, whose time belongs to their callers.

use chronosym_core::{Function, Profile, ResolvedStack, Resolver};

use crate::weight::Amount;

/// Helpers by which a thread that returns to managed code, or loops in it, waits for the end of a
/// suspension: a collection's, or the sampler's own. From dotnet/runtime: `Thread.CoreCLR.cs`,
/// `jithelpers.cpp` and `threadsuspend.cpp` of src/coreclr, release/3.1 to release/10.0.
const HELPERS: [&str; 8] = [
    "System.Threading.Thread.PollGC",
    "System.Threading.Thread.PollGCInternal",
    "System.Threading.Thread.<PollGC>g__PollGCWorker",
    "JIT_PollGC",
    "JIT_PollGC_Framed",
    "JIT_RareDisableHelper",
    "JIT_RareDisableHelperWorker",
    "JIT_PInvokeEndRarePath",
];

/// Removes helpers of suspension from the leaves of stacks that have a caller. Returns the samples
/// that are charged to callers.
pub fn charge_helpers(profile: &mut Profile) -> Amount {
    let resolver = &profile.resolver;
    let mut charged = Amount::default();
    for entry in &mut profile.entries {
        if let Some(caller) = caller_of_helpers(resolver, entry.stack) {
            charged.add(entry);
            entry.stack = caller;
        }
    }
    charged
}

/// Returns the stack without the helpers at its leaf; `None` if there are none, or nothing else.
fn caller_of_helpers(resolver: &Resolver, stack: ResolvedStack) -> Option<ResolvedStack> {
    let mut caller = None;
    let mut at = stack;
    while is_helper(&resolver.frame(resolver.leaf(at)).function) {
        at = resolver.caller(at)?;
        caller = Some(at);
    }
    caller
}

/// Returns whether a function is such a helper.
pub(crate) fn is_helper(function: &Function) -> bool {
    function.recorded_name().is_some_and(|name| {
        // The compiler numbers local functions: `g__PollGCWorker|67_0`.
        let name = name.split_once('|').map_or(name, |(name, _)| name);
        HELPERS.contains(&name)
    })
}
