//! Advice for calls that the JIT did not inline.

/// The JIT's reasons, by words that they contain, and what helps. The first match is used.
const ADVICE: &[(&str, &str)] = &[
    (
        "noinline per il",
        "remove MethodImplOptions.NoInlining, if the method has it; otherwise an attempt before the recording failed permanently",
    ),
    (
        "noinline per vm",
        "the runtime forbids it for this method: nothing to do",
    ),
    (
        "synchronized",
        "replace MethodImplOptions.Synchronized by a lock in the caller or in a smaller part",
    ),
    (
        "exception handling",
        "move the try block to a separate method, and keep the common path without one",
    ),
    (
        "has eh",
        "move the try block to a separate method, and keep the common path without one",
    ),
    (
        "does not return",
        "it only throws: not inlining it keeps callers small, as intended",
    ),
    (
        "throw block",
        "the call is on a path that throws, and is not worth inlining",
    ),
    (
        "too many il bytes",
        "split off the rare part of the callee, or mark the callee AggressiveInlining",
    ),
    (
        "too many basic blocks",
        "simplify the branches of the callee, or mark it AggressiveInlining",
    ),
    (
        "unprofitable",
        "the JIT expects no gain; AggressiveInlining on the callee overrides this: measure",
    ),
    (
        "exceeds budget",
        "the caller grew too large: split it, and remove AggressiveInlining from callees that are \
         not hot",
    ),
    (
        "too deep",
        "the chain of inlined calls is too long: flatten it, or inline by hand",
    ),
    (
        "implicit recursive tail call",
        "the JIT makes a loop of it, which is better than inlining",
    ),
    (
        "recursive",
        "a method is not inlined into itself: use a loop, or handle the last levels separately",
    ),
    (
        "explicit tail prefix",
        "the compiler demands a tail call (F#): --tailcalls- turns that off",
    ),
    (
        "target not direct",
        "the callee is unknown at compile time: seal the class, or call through a concrete or \
         generic type instead of a delegate or interface",
    ),
    (
        "virtual",
        "seal the class or the method, or call through the concrete type",
    ),
    (
        "not inline candidate",
        "the call is indirect or otherwise not eligible: call the method directly",
    ),
    (
        "runtime dictionary lookup",
        "shared generic code looks its types up: use value types as type arguments, or a method \
         that is not generic",
    ),
    (
        "complex handle",
        "shared generic code looks its types up: use value types as type arguments, or a method \
         that is not generic",
    ),
    (
        "catch region",
        "calls in catch blocks are not inlined: move hot work out of the block",
    ),
    (
        "filter region",
        "calls in exception filters are not inlined: move hot work out of the filter",
    ),
    (
        "too many locals",
        "the caller has too many variables with those of its inlined calls: split the caller",
    ),
    (
        "too many arguments",
        "pass fewer arguments, for example a struct by reference",
    ),
    ("maxstack", "split the largest expressions of the callee"),
    (
        "localloc",
        "stackalloc needs a small constant size outside loops: move it to the caller",
    ),
    (
        "pinned",
        "move the fixed statement out of the try block, or to the caller",
    ),
    (
        "class init",
        "the class's static constructor has to run first: use field initializers without a static \
         constructor",
    ),
    (
        "pinvoke",
        "move the call of native code out of the try block",
    ),
    (
        "nextcallreturnaddress",
        "a stub of the runtime: nothing to do",
    ),
    (
        "stack crawl",
        "the callee inspects its caller, such as Assembly.GetCallingAssembly: nothing to do",
    ),
    (
        "has switch",
        "the JIT of this runtime does not inline switch: use if, or a newer runtime",
    ),
    (
        "await",
        "runtime-async methods that suspend are not inlined: move the path without await to a separate method",
    ),
    (
        "async suspend",
        "runtime-async methods that suspend are not inlined: move the path without await to a separate method",
    ),
    (
        "needs helper",
        "the field needs a call of the runtime: copy it to a local variable first",
    ),
    (
        "debug codegen",
        "the method is compiled without optimization: use a Release build, or detach the debugger",
    ),
    (
        "method info",
        "the runtime gives the JIT no access, most often to native code or to code of a stub: \
         nothing to do",
    ),
    (
        "has no body",
        "the callee is implemented by the runtime or in native code: nothing to do",
    ),
    ("rarely called", "the call site is cold: nothing to do"),
    (
        "jitnoinline",
        "a setting of the JIT forbids it: remove DOTNET_JitNoInline",
    ),
];

/// Returns what helps against a reason for which the JIT did not inline a call; `None` for a reason
/// that is not in the list.
///
/// # Examples
///
/// ```
/// use chronosym_runtime::advice;
///
/// assert!(advice("has exception handling").is_some());
/// assert!(advice("a reason that no runtime gives").is_none());
/// ```
pub fn advice(reason: &str) -> Option<&'static str> {
    let reason = reason.to_ascii_lowercase();
    let mut advice = ADVICE.iter();
    advice
        .find(|(words, _)| reason.contains(words))
        .map(|(_, advice)| *advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_find_their_own_advice() {
        let loop_of_it = advice("implicit recursive tail call").unwrap();
        assert!(loop_of_it.contains("loop of it"));
        assert!(advice("recursive").unwrap().contains("use a loop"));
        assert!(advice("too many IL bytes").unwrap().contains("split off"));
        assert!(
            advice("target not direct managed")
                .unwrap()
                .contains("seal")
        );
        assert_eq!(advice("a reason of a newer JIT"), None);
    }

    #[test]
    fn no_entry_hides_a_later_one() {
        for (at, (words, _)) in ADVICE.iter().enumerate() {
            let first = ADVICE
                .iter()
                .position(|(earlier, _)| words.contains(earlier));
            assert_eq!(first, Some(at), "{words}");
        }
    }
}
