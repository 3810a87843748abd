//! The filter of samples.

use std::ops::Range;

use crate::activity::{Activity, WallFlag};
use crate::ids::ProcessIndex;
use crate::samples::SampleClass;
use crate::terms::SampleKind;
use crate::timeline::Timeline;

/// Selects samples. The default selects CPU samples or, in a trace without any, wall-clock samples,
/// and excludes the idle process.
///
/// # Examples
///
/// ```
/// use chronosym_core::facts::{At, Sample};
/// use chronosym_core::{Filter, Options, Session};
///
/// let mut session = Session::new(Options::default());
/// for (tid, time) in [(7, 100), (7, 200), (8, 300)] {
///     session.sample(At::new(time).process(42).thread(tid), &[0x1010], Sample::cpu());
/// }
/// let timeline = session.finish();
///
/// let mut filter = Filter::default();
/// filter.tid = Some(7);
/// filter.from_ns = Some(150);
/// assert_eq!(timeline.profile(&filter, None).samples(), 1);
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Filter {
    /// This process id in all its incarnations, or the incarnation alive at a time (ns).
    pub pid: Option<(u32, Option<u64>)>,
    /// Processes with this name, compared without case.
    pub process: Option<String>,
    /// This thread id.
    pub tid: Option<u64>,
    /// From this time on, ns since the trace began.
    pub from_ns: Option<u64>,
    /// Before this time, ns since the trace began.
    pub to_ns: Option<u64>,
    /// Samples of threads with this activity. By default, profiler samples with any activity.
    pub activity: Option<ActivityFilter>,
    /// Whether to include the idle process.
    pub idle: bool,
}

/// Selects samples by the activity of their thread (rule 22).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ActivityFilter {
    /// All samples of profilers and, if context switches were recorded, the intervals between
    /// them in which threads were blocked or runnable.
    All,
    /// Threads with this activity.
    Only(Activity),
    /// Threads on a processor or runnable, and those whose activity is unknown because their
    /// runtime's flag is unreliable.
    Running,
}

impl ActivityFilter {
    /// Returns whether an activity passes in a process whose flag has this reliability.
    fn passes(self, activity: Activity, flag: Option<WallFlag>) -> bool {
        match self {
            ActivityFilter::All => true,
            ActivityFilter::Only(wanted) => activity == wanted,
            ActivityFilter::Running => match activity {
                Activity::OnCpu | Activity::Runnable => true,
                Activity::Blocked => false,
                Activity::Unknown => flag.is_some_and(|flag| flag != WallFlag::Trusted),
            },
        }
    }
}

impl Filter {
    /// Returns whether samples at all times pass.
    pub(crate) fn has_all_times(&self) -> bool {
        self.from_ns.is_none() && self.to_ns.is_none()
    }

    pub(crate) fn has_time(&self, time: u64) -> bool {
        self.from_ns.is_none_or(|from| time >= from) && self.to_ns.is_none_or(|to| time < to)
    }

    /// Returns whether the filter selects a process; false for one of another timeline.
    pub fn has_process(&self, timeline: &Timeline, index: ProcessIndex) -> bool {
        let Some(process) = timeline.processes.all.get(index.index()) else {
            return false;
        };
        let name = timeline.names.strings.get(process.name);
        let pid = self.pid.is_none_or(|(pid, at)| match at {
            None => process.pid == Some(pid),
            Some(time) => timeline.find_process(pid, Some(time)) == Some(index),
        });
        pid && self
            .process
            .as_ref()
            .is_none_or(|wanted| name.eq_ignore_ascii_case(wanted))
    }

    /// Returns whether the filter selects each sample class, ignoring times.
    pub(crate) fn classes(&self, timeline: &Timeline) -> Vec<bool> {
        let classes = timeline.samples.classes();
        let has_cpu = classes.iter().any(|c| c.kind == SampleKind::Cpu);
        let has_switches = classes.iter().any(|c| c.kind.is_switched());
        let processes: Vec<bool> = (0..timeline.processes.all.end())
            .map(|i| self.has_process(timeline, ProcessIndex(i as u32)))
            .collect();
        // Only on request: activities read every sample.
        let activities = self
            .activity
            .map(|wanted| (timeline.class_activities(), wanted));
        let passes = |(index, class): (usize, &SampleClass)| {
            let thread = timeline.thread(class.thread);
            let kind = match class.kind {
                SampleKind::Cpu => self.idle || !class.idle,
                SampleKind::Event => true,
                SampleKind::WallManaged | SampleKind::WallExternal => !has_cpu && !has_switches,
                SampleKind::Blocked | SampleKind::Runnable => self.activity.is_some(),
                // They are no samples of their own.
                SampleKind::Wakeup => false,
            };
            let activity = activities.is_none_or(|(of, wanted)| {
                wanted.passes(of[index].activity, timeline.wall_flag(thread.process))
            });
            kind && activity
                && processes[thread.process.index()]
                && self.tid.is_none_or(|tid| tid == thread.tid)
        };
        classes.iter().enumerate().map(passes).collect()
    }

    /// Returns the selected times.
    pub fn times(&self) -> Range<u64> {
        self.from_ns.unwrap_or(0)..self.to_ns.unwrap_or(u64::MAX)
    }
}
