//! Methods of .NET that run async methods and their continuations, which no source code calls.

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
