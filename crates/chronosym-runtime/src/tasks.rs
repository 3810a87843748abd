//! Tasks: what each thread executes, and who waits for it, by the events of TplEventSource.

use std::collections::BTreeMap;

use chronosym_core::{
    EventSelector, Filter, Options, ProcessIndex, SampleSelection, StackId, ThreadIndex, Timeline,
};
use chronosym_events::{EventSchema, tasks as id};
use chronosym_types::hash::HashMap;

use crate::events::{RuntimeEvent, for_each_of};
use crate::report::MAX_KEPT_BYTES;
use crate::stacks::Stacks;
use crate::unused::Unused;

const IDS: [u32; 5] = [
    id::TASK_SCHEDULED,
    id::TASK_WAIT_BEGIN,
    id::OPERATION_BEGIN,
    id::WORK_BEGIN,
    id::WORK_END,
];
/// Index of a task in [`Tasks`], dense from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskIndex(u32);

/// The tasks of a trace.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use chronosym_core::facts::At;
/// use chronosym_core::{Options, Payload, PointerSize, Session};
/// use chronosym_events::{EventKey, EventSchema, Field, FieldType, Provider};
/// use chronosym_runtime::{Tasks, keep_tasks};
///
/// let mut options = Options::default();
/// keep_tasks(&mut options);
/// let mut session = Session::new(options);
/// // TraceSynchronousWorkBegin: thread 7 executes task 3.
/// let provider = Provider::from_name("System.Threading.Tasks.TplEventSource");
/// let key = EventKey::Manifest { provider, id: 17, version: 1 };
/// let schema = EventSchema::new(key)
///     .with_fields([Field::new("TaskID", FieldType::I32), Field::new("Work", FieldType::I32)]);
/// let begin = session.event_type(Arc::new(schema));
/// let at = At::new(100).process(42).thread(7);
/// let bytes = &[3, 0, 0, 0, 2, 0, 0, 0];
/// session.push(begin, at, Payload { pointer_size: PointerSize::Eight, bytes }, None);
///
/// let timeline = session.finish();
/// let tasks = Tasks::new(&timeline);
/// let thread = timeline.kept_events().next().unwrap().thread;
/// assert!(tasks.executed_by(thread, 99).is_none());
/// assert!(tasks.executed_by(thread, 101).is_some());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    tasks: Vec<Task>,
    /// By thread, the task that it executes from a time on.
    executed: HashMap<ThreadIndex, Vec<(u64, Option<TaskIndex>)>>,
    unused: Unused,
}

/// A task, which may be an execution of an async method. Absent values are not in the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Task {
    /// The state machine of its async method, such as `<Load>d__4`.
    pub state_machine: Option<String>,
    /// Where it was first awaited.
    pub awaited: Option<TaskEvent>,
    /// Where it was scheduled.
    pub scheduled: Option<TaskEvent>,
    /// Where its async method first awaited: within that method, as its caller called it.
    pub created: Option<TaskEvent>,
    /// Number of times that it was awaited.
    pub awaiters: u32,
}

/// An event of a task with a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskEvent {
    /// The process.
    pub process: ProcessIndex,
    /// ns since the trace began.
    pub time_ns: u64,
    /// The stack of the thread.
    pub stack: StackId,
    /// The task that the thread executed.
    pub within: Option<TaskIndex>,
}

/// Makes a session keep the events that [`Tasks`] needs, in addition to the samples that it selects.
pub fn keep_tasks(options: &mut Options) {
    let selectors = || {
        let selector = |number: u32| EventSelector::parse(&format!("{}/{number}", id::PROVIDER));
        IDS.into_iter().filter_map(selector)
    };
    match &mut options.samples {
        SampleSelection::Profilers => {
            options.samples = SampleSelection::ProfilersAnd(selectors().collect());
        }
        SampleSelection::Events(events) | SampleSelection::ProfilersAnd(events) => {
            events.extend(selectors());
        }
        _ => {}
    }
    options.keep.extend(selectors());
    options.max_kept_bytes = MAX_KEPT_BYTES;
}

impl Tasks {
    /// Reads the tasks of a timeline whose session kept their events.
    pub fn new(timeline: &Timeline) -> Self {
        let mut reader = Reader {
            stacks: Stacks::new(timeline),
            index: HashMap::default(),
            open: BTreeMap::new(),
            losses: timeline.losses().iter().map(|loss| loss.to_ns).collect(),
            tasks: Tasks::default(),
        };
        reader.losses.sort_unstable_by(|a, b| b.cmp(a));
        let id_of = |schema: &EventSchema| schema.id().filter(|id| is_task_event(schema, *id));
        let mut unused = Unused::default();
        for_each_of(
            timeline,
            &Filter::default(),
            id_of,
            &mut unused,
            |event, unused| {
                reader.event(event, unused);
            },
        );
        let open = reader.open.values().map(|works| works.len() as u64);
        unused.without_end += open.sum::<u64>();
        reader.tasks.unused = unused;
        reader.tasks
    }

    /// Returns whether the trace has none.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Returns the task whose code a thread executes at a time: the innermost one, since the
    /// completion of a task may execute those that wait for it.
    pub fn executed_by(&self, thread: ThreadIndex, time_ns: u64) -> Option<TaskIndex> {
        let changes = self.executed.get(&thread)?;
        let next = changes.partition_point(|&(time, _)| time <= time_ns);
        changes.get(next.checked_sub(1)?)?.1
    }

    /// Returns a task; `None` for an index of another trace.
    pub fn get(&self, task: TaskIndex) -> Option<&Task> {
        self.tasks.get(task.0 as usize)
    }

    /// Returns what could not be used.
    pub fn unused(&self) -> &Unused {
        &self.unused
    }
}

/// Returns whether an event type is one that [`Tasks`] reads, selected by [`keep_tasks`].
pub fn is_of_tasks(schema: &EventSchema) -> bool {
    schema.id().is_some_and(|id| is_task_event(schema, id))
}

fn is_task_event(schema: &EventSchema, id: u32) -> bool {
    &**schema.provider_name() == id::PROVIDER && IDS.contains(&id)
}

struct Reader {
    stacks: Stacks,
    index: HashMap<(ProcessIndex, u64), TaskIndex>,
    /// By thread, its works that have begun and not ended: what they do, and the task.
    open: BTreeMap<ThreadIndex, Vec<(u64, TaskIndex)>>,
    /// Ends of losses, latest first.
    losses: Vec<u64>,
    tasks: Tasks,
}

impl Reader {
    fn event(&mut self, event: &RuntimeEvent<'_>, unused: &mut Unused) {
        while self
            .losses
            .last()
            .is_some_and(|&loss| loss <= event.time_ns)
        {
            // The ends of works may be lost.
            let loss = self.losses.pop().unwrap_or_default();
            for (thread, works) in std::mem::take(&mut self.open) {
                unused.without_end += works.len() as u64;
                self.tasks
                    .executed
                    .entry(thread)
                    .or_default()
                    .push((loss, None));
            }
        }
        if event.id == id::WORK_END {
            let works = self.open.entry(event.thread).or_default();
            let work = event.number("Work");
            let begun = works.iter().rposition(|&(of, _)| Some(of) == work);
            match begun {
                Some(at) => works.truncate(at),
                None => unused.without_start += 1,
            }
            self.executes(event);
            return;
        }
        let Some(number) = event.number("TaskID") else {
            unused.incomplete += 1;
            return;
        };
        let task = self.task(event.process, number);
        match event.id {
            id::WORK_BEGIN => {
                let Some(work) = event.number("Work") else {
                    unused.incomplete += 1;
                    return;
                };
                self.open
                    .entry(event.thread)
                    .or_default()
                    .push((work, task));
                self.executes(event);
            }
            id::OPERATION_BEGIN => {
                let created = self.task_event(event);
                let task = &mut self.tasks.tasks[task.0 as usize];
                let name = event.text("OperationName");
                if let Some(of) = name
                    .as_deref()
                    .and_then(|name| name.strip_prefix("Async: "))
                {
                    task.state_machine.get_or_insert_with(|| of.to_owned());
                    task.created = task.created.or(created);
                }
            }
            id::TASK_SCHEDULED => {
                let scheduled = self.task_event(event);
                let task = &mut self.tasks.tasks[task.0 as usize];
                task.scheduled = task.scheduled.or(scheduled);
            }
            _ => {
                let awaited = self.task_event(event);
                let task = &mut self.tasks.tasks[task.0 as usize];
                task.awaiters = task.awaiters.saturating_add(1);
                task.awaited = task.awaited.or(awaited);
            }
        }
    }

    fn task(&mut self, process: ProcessIndex, number: u64) -> TaskIndex {
        let next = TaskIndex(self.tasks.tasks.len() as u32);
        *self.index.entry((process, number)).or_insert_with(|| {
            self.tasks.tasks.push(Task::default());
            next
        })
    }

    fn task_event(&mut self, event: &RuntimeEvent<'_>) -> Option<TaskEvent> {
        Some(TaskEvent {
            process: event.process,
            time_ns: event.time_ns,
            stack: self.stacks.take(event)?,
            within: self.executed_by(event.thread),
        })
    }

    fn executes(&mut self, event: &RuntimeEvent<'_>) {
        let task = self.executed_by(event.thread);
        let changes = self.tasks.executed.entry(event.thread).or_default();
        if changes.last().and_then(|last| last.1) != task {
            changes.push((event.time_ns, task));
        }
    }

    /// Returns the task of a thread's innermost execution.
    fn executed_by(&self, thread: ThreadIndex) -> Option<TaskIndex> {
        let mut works = self.open.get(&thread)?.iter().rev();
        works
            .find(|it| it.0 == u64::from(id::EXECUTION))
            .map(|it| it.1)
    }
}
