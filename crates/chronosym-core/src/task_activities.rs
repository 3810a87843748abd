//! The activities of tasks: an execution context flows from an `await` to the thread that resumes
//! the method, without an event that states the activity.

use chronosym_events::{EventSchema, tasks};
use chronosym_types::bytes;
use chronosym_types::hash::HashMap;

use crate::ids::{ActivityIdIndex, ProcessIndex, ThreadIndex};

/// What an event of TplEventSource states about the tasks of its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskStep {
    /// A task was created, or its async method first waits.
    Begins { task: u32 },
    /// The thread works for a task from now on.
    Works { work: u32, task: u32 },
    /// Its innermost such work ends.
    Ends { work: u32 },
}

impl TaskStep {
    pub fn of(schema: &EventSchema, payload: &[u8]) -> Option<Self> {
        if &**schema.provider_name() != tasks::PROVIDER {
            return None;
        }
        let number = |at| bytes::u32(payload, at);
        Some(match schema.id()? {
            tasks::TASK_SCHEDULED => TaskStep::Begins { task: number(8)? },
            tasks::OPERATION_BEGIN => TaskStep::Begins { task: number(0)? },
            tasks::WORK_BEGIN => TaskStep::Works {
                work: number(4)?,
                task: number(0)?,
            },
            tasks::WORK_END => TaskStep::Ends { work: number(0)? },
            _ => return None,
        })
    }
}

/// The activity of a task at the end of a part of it, if any.
#[derive(Clone, Copy, Debug)]
struct Left {
    task: (ProcessIndex, u32),
    time_ns: u64,
    activity: Option<ActivityIdIndex>,
}

/// A thread that resumes a task, until its first event states an activity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resumed {
    task: (ProcessIndex, u32),
    pub thread: ThreadIndex,
    pub activity: ActivityIdIndex,
    pub from_ns: u64,
    pub to_ns: u64,
}

#[derive(Debug, Default)]
struct Thread {
    /// Works that have begun and not ended: what they do, and the task.
    works: Vec<(u32, u32)>,
    /// The task that it resumed with its last event, and when.
    resumes: Option<(u32, u64)>,
    /// The activity after its last event.
    activity: Option<ActivityIdIndex>,
}

/// The activities of tasks, by events in the order of each thread.
#[derive(Debug, Default)]
pub(crate) struct TaskActivities {
    threads: HashMap<ThreadIndex, Thread>,
    left: Vec<Left>,
    resumed: Vec<Resumed>,
}

impl TaskActivities {
    /// Takes the next event of a thread, which carries an activity `before` and `after` it.
    pub fn event(
        &mut self,
        (process, thread, time_ns): (ProcessIndex, ThreadIndex, u64),
        step: Option<TaskStep>,
        before: Option<ActivityIdIndex>,
        after: Option<ActivityIdIndex>,
    ) {
        let of = match step {
            None => match self.threads.get_mut(&thread) {
                Some(of) => of,
                None => return,
            },
            Some(_) => self.threads.entry(thread).or_default(),
        };
        if let (Some((task, from_ns)), Some(activity)) = (of.resumes.take(), before) {
            self.resumed.push(Resumed {
                task: (process, task),
                thread,
                activity,
                from_ns,
                to_ns: time_ns,
            });
        }
        let mut leaves = |task, activity| {
            self.left.push(Left {
                task: (process, task),
                time_ns,
                activity,
            });
        };
        of.activity = match step {
            Some(TaskStep::Works { work, task }) => {
                of.works.push((work, task));
                of.resumes = (work == tasks::EXECUTION).then_some((task, time_ns));
                None
            }
            Some(TaskStep::Ends { work }) => {
                if let Some(at) = of.works.iter().rposition(|&(begun, _)| begun == work) {
                    let (_, task) = of.works[at];
                    of.works.truncate(at);
                    if work == tasks::EXECUTION {
                        leaves(task, of.activity);
                    }
                }
                None
            }
            Some(TaskStep::Begins { task }) => {
                leaves(task, after);
                after
            }
            None => after,
        };
    }

    /// Returns the times in which a thread that resumed a task carried an activity: the one that
    /// the task had when it last left a thread, as the thread's next event states.
    pub fn finish(self) -> impl Iterator<Item = Resumed> {
        let TaskActivities {
            mut left, resumed, ..
        } = self;
        left.sort_by_key(|it| (it.task, it.time_ns));
        resumed.into_iter().filter(move |it| {
            let key = (it.task, it.from_ns);
            let next = left.partition_point(|left| (left.task, left.time_ns) <= key);
            let last = next.checked_sub(1).map(|last| left[last]);
            last.is_some_and(|last| last.task == it.task && last.activity == Some(it.activity))
        })
    }

    /// Bytes of the parts of tasks.
    pub fn memory_bytes(&self) -> usize {
        const THREAD: usize = size_of::<Thread>() + 40;
        self.left.len() * size_of::<Left>()
            + self.resumed.len() * size_of::<Resumed>()
            + self.threads.len() * THREAD
    }
}
