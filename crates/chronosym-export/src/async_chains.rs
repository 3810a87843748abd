//! Logical call chains of async methods: the methods that await a resumed one in place of the frames
//! that resumed it.

use std::sync::Arc;

use chronosym_core::{
    EventSchema, Filter, FrameId, Position, Profile, ResolvedStack, Resolver, SampleClass,
    SampleKind, SymbolSource, Timeline, WeighedSample, When,
};
use chronosym_runtime::{Task, TaskEvent, TaskIndex, Tasks, is_of_tasks};
use rustc_hash::FxHashMap;

use crate::plumbing::Plumbing;

/// Stacks whose async methods are called by those that await them.
#[derive(Debug)]
#[non_exhaustive]
pub struct AsyncStacks {
    /// Samples of resumed methods with a logical caller.
    pub joined: u64,
    /// Samples of resumed methods whose caller no event states.
    pub without_caller: u64,
    /// Samples in which the stack does not show the task that the events state. They keep their
    /// stacks.
    pub contradicted: u64,
    tasks: Tasks,
    /// By event type, whether its stacks are samples.
    is_sample: Vec<bool>,
    callers: FxHashMap<TaskIndex, Option<ResolvedStack>>,
    joins: FxHashMap<(ResolvedStack, TaskIndex), Join>,
    plumbing: Plumbing,
}

/// The result for the stack of a task.
#[derive(Clone, Copy, Debug)]
enum Join {
    Joined(ResolvedStack),
    WithoutCaller,
    Contradicted,
}

impl AsyncStacks {
    /// Reads the tasks of a timeline whose session kept the events that
    /// [`keep_tasks`](chronosym_runtime::keep_tasks) selects. `is_selected` returns whether the
    /// stacks of an event type are samples themselves.
    pub fn new(timeline: &Timeline, is_selected: impl Fn(&EventSchema) -> bool) -> Self {
        let types = timeline.event_types().iter();
        let is_sample = types.map(|info| !is_of_tasks(&info.schema) || is_selected(&info.schema));
        AsyncStacks {
            joined: 0,
            without_caller: 0,
            contradicted: 0,
            tasks: Tasks::new(timeline),
            is_sample: is_sample.collect(),
            callers: FxHashMap::default(),
            joins: FxHashMap::default(),
            plumbing: Plumbing::default(),
        }
    }

    /// Returns whether the trace has events about tasks. Without them, only plumbing is left out.
    pub fn has_tasks(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// Counts the samples that pass a filter by logical stack.
    pub fn profile(
        &mut self,
        timeline: &Arc<Timeline>,
        filter: &Filter,
        symbols: Option<Arc<dyn SymbolSource>>,
    ) -> Profile {
        let (mut profile, tasks) = timeline.profile_by(filter, symbols, |class, time_ns| {
            self.task_of(class, time_ns)
        });
        for (entry, task) in profile.entries.iter_mut().zip(tasks) {
            entry.stack = self.join(&mut profile.resolver, entry.stack, task, entry.samples);
        }
        profile
    }

    /// Returns the logical stack of a sample; `None` if it is an event that only states a task.
    ///
    /// # Panics
    ///
    /// If the stack belongs to another resolver. All calls must pass the same one.
    pub fn stack(
        &mut self,
        resolver: &mut Resolver,
        sample: &WeighedSample<'_>,
        stack: ResolvedStack,
    ) -> Option<ResolvedStack> {
        let task = self.task_of(sample.class, sample.time_ns)?;
        Some(self.join(resolver, stack, task, 1))
    }

    /// Returns the task of a sample; the outer `None` if it is an event that only states a task.
    fn task_of(&self, class: &SampleClass, time_ns: u64) -> Option<Option<TaskIndex>> {
        let is_sample = self.is_sample.get(class.event.index());
        (class.kind != SampleKind::Event || is_sample.is_none_or(|&it| it))
            .then(|| self.tasks.executed_by(class.thread, time_ns))
    }

    fn join(
        &mut self,
        resolver: &mut Resolver,
        stack: ResolvedStack,
        task: Option<TaskIndex>,
        samples: u64,
    ) -> ResolvedStack {
        let Some(task) = task else {
            return match self.has_tasks() {
                true => stack,
                false => self.plumbing.fold(resolver, stack),
            };
        };
        let join = match self.joins.get(&(stack, task)) {
            Some(&join) => join,
            None => {
                let (tasks, callers) = (&self.tasks, &mut self.callers);
                let join = Chains { tasks, callers }.join(resolver, stack, task);
                self.joins.insert((stack, task), join);
                join
            }
        };
        match join {
            Join::Joined(joined) => {
                self.joined += samples;
                joined
            }
            Join::WithoutCaller => {
                self.without_caller += samples;
                stack
            }
            Join::Contradicted => {
                self.contradicted += samples;
                stack
            }
        }
    }
}

/// Returns the frames of a stack that a thread executes for a task, innermost first; `None` if the
/// stack does not show that the runtime resumed it. Without a task, those that the runtime resumed
/// last.
fn own_frames(
    resolver: &Resolver,
    stack: ResolvedStack,
    task: Option<&Task>,
) -> Option<Vec<FrameId>> {
    let state_machine = task.and_then(|task| task.state_machine.as_deref());
    let mut frames: Vec<FrameId> = Vec::new();
    for frame in resolver.stack(stack) {
        let name_of = |frame: &FrameId| name(resolver, *frame);
        let shows = |state_machine| {
            let mut names = frames.iter().filter_map(name_of);
            names.any(|name| name.contains(state_machine))
        };
        let is_own = match (name_of(&frame).and_then(Resumption::of), state_machine) {
            (None, _) | (Some(Resumption::Context), None) => None,
            (Some(Resumption::Context), Some(of)) => Some(true).filter(|_| shows(of)),
            (Some(Resumption::StateMachine), Some(of)) => Some(shows(of)),
            (Some(Resumption::Delegate), Some(_)) => Some(false),
            // Tasks of delegates have no state machine.
            (Some(_), None) => Some(true),
        };
        match is_own {
            None => frames.push(frame),
            Some(false) => return None,
            Some(true) => {
                let is_internal = |frame: &FrameId| name_of(frame).is_some_and(is_internal);
                while frames.len() > 1 && frames.last().is_some_and(is_internal) {
                    frames.pop();
                }
                return Some(frames).filter(|frames| !frames.is_empty());
            }
        }
    }
    None
}

fn name(resolver: &Resolver, frame: FrameId) -> Option<&str> {
    resolver.frame(frame).function.recorded_name()
}

/// Logical callers by task.
struct Chains<'t> {
    tasks: &'t Tasks,
    callers: &'t mut FxHashMap<TaskIndex, Option<ResolvedStack>>,
}

/// The frames at an event of a task, and the task that executes them.
struct Link {
    task: TaskIndex,
    /// Innermost first.
    frames: Vec<FrameId>,
    /// Whether a task was resumed to execute them.
    is_resumed: bool,
}

impl Chains<'_> {
    /// Replaces the callers of a task's frames by its logical callers.
    fn join(&mut self, resolver: &mut Resolver, stack: ResolvedStack, task: TaskIndex) -> Join {
        let Some(frames) = own_frames(resolver, stack, self.tasks.get(task)) else {
            return Join::Contradicted;
        };
        let Some(callers) = self.callers_of(resolver, task) else {
            return Join::WithoutCaller;
        };
        let frames = frames.into_iter().rev();
        Join::Joined(frames.fold(callers, |callers, frame| {
            resolver.calling(Some(callers), frame)
        }))
    }

    /// Returns the logical callers of a task: where it is awaited, and so on.
    fn callers_of(&mut self, resolver: &mut Resolver, task: TaskIndex) -> Option<ResolvedStack> {
        // Up to a task whose callers are known, then down again.
        let mut links: Vec<Link> = Vec::new();
        let mut callers = None;
        let mut next = Some(task);
        while let Some(task) = next.take() {
            if let Some(&known) = self.callers.get(&task) {
                callers = known;
                break;
            }
            // A task that, by its events, waits for itself has no callers.
            self.callers.insert(task, None);
            let Some((event, skips)) = self.tasks.get(task).and_then(caller) else {
                break;
            };
            let Some((link, within)) = self.link(resolver, task, event, skips) else {
                break;
            };
            next = within.filter(|_| link.is_resumed);
            links.push(link);
        }
        for link in links.into_iter().rev() {
            for frame in link.frames.into_iter().rev() {
                callers = Some(resolver.calling(callers, frame));
            }
            self.callers.insert(link.task, callers);
        }
        callers
    }

    /// Returns the frames of an event that call a task, without the innermost `skips` methods.
    fn link(
        &self,
        resolver: &mut Resolver,
        task: TaskIndex,
        event: TaskEvent,
        skips: usize,
    ) -> Option<(Link, Option<TaskIndex>)> {
        let when = When::At(event.time_ns);
        let resolved = resolver.resolve_stack(event.process, event.stack, when, Position::Return);
        let (stack, _) = resolved?;
        let resolver = &*resolver;
        let within = event.within.filter(|&within| within != task);
        let of_task = within.and_then(|it| own_frames(resolver, stack, Some(self.tasks.get(it)?)));
        let within = within.filter(|_| of_task.is_some());
        let own = of_task.or_else(|| own_frames(resolver, stack, None));
        let is_resumed = own.is_some();
        let frames = own.unwrap_or_else(|| resolver.stack(stack).collect());
        let is_internal = |frame: &FrameId| name(resolver, *frame).is_some_and(is_internal);
        let mut frames: Vec<FrameId> = frames.into_iter().skip_while(is_internal).collect();
        if skips > 0 {
            let rest = frames.iter().skip(skips).copied();
            frames = rest.skip_while(is_internal).collect();
        }
        let link = Link {
            task,
            frames,
            is_resumed,
        };
        Some((link, within))
    }
}

/// Returns the event at which a task's caller is on the stack, and how many of its innermost methods
/// are the task's own.
fn caller(task: &Task) -> Option<(TaskEvent, usize)> {
    let awaited = task.awaited.map(|event| (event, 0));
    let created = task.created.map(|event| (event, 1));
    let scheduled = task.scheduled.map(|event| (event, 0));
    awaited.or(created).or(scheduled)
}

/// A method of the framework that executes the code of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resumption {
    /// It executes state machines: `AsyncStateMachineBox` of .NET Core, `MoveNextRunner` of .NET
    /// Framework and .NET Core 2.0.
    StateMachine,
    /// It executes delegates.
    Delegate,
    /// It executes anything in an execution context. Optimized code has the methods above inlined.
    Context,
}

impl Resumption {
    fn of(name: &str) -> Option<Self> {
        let (owner, method) = name.rsplit_once('.')?;
        let is_box = owner.starts_with("System.Runtime.CompilerServices.Async")
            && (owner.contains("+AsyncStateMachineBox`1") || owner.ends_with("+MoveNextRunner"));
        match method {
            "MoveNext" | "ExecutionContextCallback" | "InvokeMoveNext" | "Run" if is_box => {
                Some(Resumption::StateMachine)
            }
            "InnerInvoke" | "ExecuteWithThreadLocal"
                if owner.starts_with("System.Threading.Tasks.") =>
            {
                Some(Resumption::Delegate)
            }
            _ if owner == "System.Threading.ExecutionContext" => Some(Resumption::Context),
            _ => None,
        }
    }
}

/// Returns whether a method belongs to the framework's machinery that starts, awaits and reports
/// tasks.
fn is_internal(name: &str) -> bool {
    [
        "System.Diagnostics.Tracing.",
        "System.Runtime.CompilerServices.",
        "System.Threading.ExecutionContext.",
        "System.Threading.Tasks.",
        "System.Threading.ThreadPool",
    ]
    .iter()
    .any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_that_resume_are_known_by_type_and_method() {
        use Resumption::{Context, Delegate, StateMachine};
        for (name, resumption) in [
            (
                "System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+AsyncStateMachineBox`1[System.Int32,App+<Go>d__1].ExecutionContextCallback",
                Some(StateMachine),
            ),
            (
                "System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+AsyncStateMachineBox`1[System.__Canon,App.Go].MoveNext",
                Some(StateMachine),
            ),
            (
                "System.Runtime.CompilerServices.AsyncMethodBuilderCore+MoveNextRunner.Run",
                Some(StateMachine),
            ),
            (
                "System.Threading.Tasks.Task`1[System.Int32].InnerInvoke",
                Some(Delegate),
            ),
            (
                "System.Threading.ExecutionContext.RunInternal",
                Some(Context),
            ),
            ("App+<Go>d__1.MoveNext", None),
            (
                "System.Runtime.CompilerServices.AsyncMethodBuilderCore.Start",
                None,
            ),
            ("System.Threading.Tasks.Task.Run", None),
            ("Main", None),
        ] {
            assert_eq!(Resumption::of(name), resumption, "{name}");
        }
    }
}
