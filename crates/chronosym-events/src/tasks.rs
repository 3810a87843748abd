//! Events of `System.Threading.Tasks.TplEventSource` about the causality of tasks.
//!
//! Ids and fields are those of dotnet/runtime, `System/Threading/Tasks/TplEventSource.cs`; .NET
//! Framework's are the same.

/// The provider.
pub const PROVIDER: &str = "System.Threading.Tasks.TplEventSource";
/// TaskScheduled: a task is queued.
pub const TASK_SCHEDULED: u32 = 7;
/// TaskWaitBegin: a thread waits for a task, or a method awaits it.
pub const TASK_WAIT_BEGIN: u32 = 10;
/// TraceOperationBegin: an async method waits for the first time.
pub const OPERATION_BEGIN: u32 = 14;
/// TraceSynchronousWorkBegin: a thread works for a task.
pub const WORK_BEGIN: u32 = 17;
/// TraceSynchronousWorkEnd: the innermost such work ends.
pub const WORK_END: u32 = 18;
/// `CausalitySynchronousWork.Execution`: work is the task's own code, not its completion.
pub const EXECUTION: u32 = 2;
