//! Methods of .NET that run async methods and their continuations, which no source code calls.

use chronosym_core::{FrameId, Function, Profile, ResolvedStack, Resolver};

/// Types with only such methods, from System.Private.CoreLib (dotnet/runtime, release/3.1 to
/// release/10.0). Nested types and generic arguments are ignored.
const TYPES: [&str; 17] = [
    "System.Runtime.CompilerServices.AsyncMethodBuilderCore",
    "System.Runtime.CompilerServices.AsyncTaskMethodBuilder",
    "System.Runtime.CompilerServices.AsyncValueTaskMethodBuilder",
    "System.Runtime.CompilerServices.AsyncVoidMethodBuilder",
    "System.Runtime.CompilerServices.AsyncIteratorMethodBuilder",
    "System.Runtime.CompilerServices.PoolingAsyncValueTaskMethodBuilder",
    "System.Runtime.CompilerServices.TaskAwaiter",
    "System.Runtime.CompilerServices.ValueTaskAwaiter",
    "System.Runtime.CompilerServices.ConfiguredTaskAwaitable",
    "System.Runtime.CompilerServices.ConfiguredValueTaskAwaitable",
    "System.Runtime.CompilerServices.YieldAwaitable",
    "System.Threading.ExecutionContext",
    "System.Threading.Tasks.AwaitTaskContinuation",
    "System.Threading.Tasks.SynchronizationContextAwaitTaskContinuation",
    "System.Threading.Tasks.TaskContinuation",
    "System.Threading.Tasks.ContinuationTaskFromTask",
    "System.Threading.Tasks.Sources.ManualResetValueTaskSourceCore",
];

/// Methods of tasks that run or complete them.
const TASK: [&str; 13] = [
    "RunContinuations",
    "FinishContinuations",
    "FinishSlow",
    "FinishStageTwo",
    "FinishStageThree",
    "Finish",
    "TrySetResult",
    "InnerInvoke",
    "ExecuteEntry",
    "ExecuteEntryUnsafe",
    "ExecuteWithThreadLocal",
    "ExecuteFromThreadPool",
    "InvokeCore",
];

/// Returns whether a method of the framework is plumbing of async methods, by its namespace, type
/// and method.
pub(crate) fn is_plumbing(name: &str) -> bool {
    let Some((owner, method)) = name.rsplit_once('.') else {
        return false;
    };
    let owner = owner.split(['`', '[', '+']).next().unwrap_or(owner);
    let is_task = || {
        owner == "System.Threading.Tasks.Task" && TASK.contains(&method)
            || owner.starts_with("System.Threading.Tasks.Task") && method == "InnerInvoke"
    };
    TYPES.contains(&owner) || is_task()
}

/// Removes plumbing of async methods from stacks, unless it is innermost: self times stay. The state
/// machine of an async method replaces the method that started it, if both have one name.
pub fn fold_plumbing(profile: &mut Profile) {
    let mut plumbing = Plumbing::default();
    for entry in &mut profile.entries {
        entry.stack = plumbing.fold(&mut profile.resolver, entry.stack);
    }
}

/// Removes plumbing from the stacks of one resolver, as [`fold_plumbing`].
#[derive(Debug, Default)]
pub(crate) struct Plumbing {
    /// By function, whether it is plumbing.
    functions: Vec<Option<bool>>,
    /// By index of a stack, what its callees are called by, once it is known.
    folded: Vec<Option<Option<ResolvedStack>>>,
    path: Vec<ResolvedStack>,
}

impl Plumbing {
    pub fn fold(&mut self, resolver: &mut Resolver, stack: ResolvedStack) -> ResolvedStack {
        let mut callers = None;
        let mut next = resolver.caller(stack);
        while let Some(stack) = next {
            if let Some(&Some(known)) = self.folded.get(stack.index()) {
                callers = known;
                break;
            }
            self.path.push(stack);
            next = resolver.caller(stack);
        }
        while let Some(stack) = self.path.pop() {
            let frame = resolver.leaf(stack);
            if !self.has(&resolver.frame(frame).function) {
                callers = Some(call(resolver, callers, frame));
            }
            if stack.index() >= self.folded.len() {
                self.folded.resize(stack.index() + 1, None);
            }
            self.folded[stack.index()] = Some(callers);
        }
        let leaf = resolver.leaf(stack);
        call(resolver, callers, leaf)
    }

    fn has(&mut self, function: &Function) -> bool {
        let index = function.id().index();
        if index >= self.functions.len() {
            self.functions.resize(index + 1, None);
        }
        *self.functions[index]
            .get_or_insert_with(|| function.recorded_name().is_some_and(is_plumbing))
    }
}

/// Adds a frame, in place of a caller of the same source name.
fn call(resolver: &mut Resolver, callers: Option<ResolvedStack>, frame: FrameId) -> ResolvedStack {
    let function = &resolver.frame(frame).function;
    let is_started_by = |starter: &Function| {
        function.compiled_as().is_some()
            && starter != &**function
            && starter.label() == function.label()
    };
    let starter =
        callers.filter(|&callers| is_started_by(&resolver.frame(resolver.leaf(callers)).function));
    let callers = starter.map_or(callers, |starter| resolver.caller(starter));
    resolver.calling(callers, frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plumbing_is_known_by_type_and_method() {
        for name in [
            "System.Runtime.CompilerServices.AsyncMethodBuilderCore.Start",
            "System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+AsyncStateMachineBox`1[System.__Canon,App.Go].MoveNext",
            "System.Threading.ExecutionContext.RunInternal",
            "System.Threading.Tasks.Task.RunContinuations",
            "System.Threading.Tasks.Task`1[System.Int32].InnerInvoke",
        ] {
            assert!(is_plumbing(name), "{name}");
        }
        for name in [
            "System.Threading.Tasks.Task.Wait",
            "System.Threading.ThreadPoolWorkQueue.Dispatch",
            "App.Program.Finish",
            "Main",
        ] {
            assert!(!is_plumbing(name), "{name}");
        }
    }
}
