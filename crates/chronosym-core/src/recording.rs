//! Properties of a recording as a whole: facts, losses, joined recordings.

use std::borrow::Cow;

use chronosym_types::closed_list;

/// What lost events described.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossScope {
    /// Anything.
    #[default]
    Anything,
    /// Processes and their images: the system's recorder, which describes no code of runtimes, lost
    /// them.
    System,
    /// Code and modules of a runtime, which describes no images.
    Runtime,
}

impl LossScope {
    const ALL: [LossScope; 3] = [LossScope::Anything, LossScope::System, LossScope::Runtime];

    /// Returns its number in saved timelines.
    pub(crate) fn number(self) -> u64 {
        self as u64
    }

    /// Returns the scope of a number; that of an unknown one is anything.
    pub(crate) fn of_number(number: u64) -> Self {
        let known = usize::try_from(number).ok();
        let known = known.and_then(|index| Self::ALL.get(index).copied());
        known.unwrap_or_default()
    }
}

/// A loss of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// ns since the trace began; the loss is after this time…
    pub from_ns: u64,
    /// …and not after this one.
    pub to_ns: u64,
    /// Number of lost events, as far as the recorder counted them.
    pub events: u64,
    /// Number of lost buffers, each with any number of events.
    pub buffers: u64,
    /// Number of times the recorder reported a loss of unknown size.
    pub notices: u64,
    /// What they described.
    pub scope: LossScope,
    /// The process that they described; `None` for any.
    pub process: Option<u32>,
}

impl Loss {
    /// Creates a loss of unknown size after one time and not after another, both in ns since the
    /// trace began.
    pub fn between(from_ns: u64, to_ns: u64) -> Self {
        Loss {
            from_ns,
            to_ns,
            ..Loss::default()
        }
    }

    /// Returns the loss that contains both.
    pub(crate) fn join(self, other: Self) -> Self {
        Loss {
            from_ns: self.from_ns.min(other.from_ns),
            to_ns: self.to_ns.max(other.to_ns),
            events: self.events.saturating_add(other.events),
            buffers: self.buffers.saturating_add(other.buffers),
            notices: self.notices.saturating_add(other.notices),
            scope: match self.scope == other.scope {
                true => self.scope,
                false => LossScope::Anything,
            },
            process: self.process.filter(|_| self.process == other.process),
        }
    }

    /// Returns this loss with another scope.
    pub fn scope(self, scope: LossScope) -> Self {
        Loss { scope, ..self }
    }

    /// Returns this loss as that of one process.
    pub fn of_process(self, process: Option<u32>) -> Self {
        Loss { process, ..self }
    }

    /// Returns whether it may be one of a process; the process of code in images may be unknown.
    pub(crate) fn concerns(&self, process: Option<u32>) -> bool {
        self.process.is_none() || process.is_none() || self.process == process
    }

    /// Creates a loss of a number of events.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_core::facts::{At, Method};
    /// use chronosym_core::{Action, Certainty, Loss, Options, Position, Session};
    ///
    /// let mut session = Session::new(Options::default());
    /// let at = At::new(0).process(42);
    /// session.apply(at, Method::new(Action::Load, 1, 0x1000, 64).named("Ns.Type", "Run", ""));
    /// // The runtime dropped 12 events: one of them may have been the end of the method.
    /// session.lost(Loss::of_events(200, 300, 12));
    /// let timeline = session.finish();
    /// let process = timeline.find_process(42, None).unwrap();
    /// let at_time = |time| timeline.frames(process, 0x1010, time, Position::Exact, None)[0].certainty;
    /// assert_eq!(at_time(100), Some(Certainty::Exact));
    /// assert_eq!(at_time(400), Some(Certainty::Inferred));
    /// ```
    pub fn of_events(from_ns: u64, to_ns: u64, events: u64) -> Self {
        Loss {
            events,
            ..Loss::between(from_ns, to_ns)
        }
    }
}

/// Properties of the whole trace.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TraceFacts {
    /// The format: `nettrace`, `netperf`, `etl`.
    pub format: String,
    /// The format's version.
    pub version: String,
    /// When the trace began: ns since 1970-01-01 UTC.
    pub start_unix_ns: Option<i128>,
    /// Time of the last event, ns since the trace began.
    pub duration_ns: u64,
    /// Pointer size of the machine, in bytes.
    pub pointer_size: Option<u8>,
    /// Number of processors.
    pub processors: Option<u32>,
    /// The first sampling interval of the trace, in ns.
    pub sample_interval_ns: Option<u64>,
    /// Later sampling intervals by time: (ns since the trace began, interval in ns).
    pub sample_interval_changes: Vec<(u64, u64)>,
    /// Operating system and architecture.
    pub machine: Option<String>,
    /// The pid of a trace of a single process.
    pub process_id: Option<u32>,
    /// The recordings that were joined; empty for one.
    pub recordings: Vec<JoinedRecording>,
    /// Maximum error of their clocks, in ns: events within it may have happened on either side of a
    /// time.
    pub clock_error_ns: u64,
    /// The machine, as far as the recording or its reader identifies it.
    pub host: Option<Host>,
    /// Whether the timeline was saved without the samples of the trace.
    pub lacks_samples: bool,
    /// Whether the timeline comes from a file that has no events: what they state is known only as
    /// far as the timeline keeps it.
    pub lacks_events: bool,
}

/// A machine from one boot to the next: process ids and times of two recordings are comparable if
/// they have the same host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Host {
    /// Its name; empty if unknown.
    pub name: String,
    /// The id of the boot, as in `/proc/sys/kernel/random/boot_id`; empty if unknown.
    pub boot_id: String,
}

impl Host {
    /// Creates a host; either may be empty.
    pub fn new(name: impl Into<String>, boot_id: impl Into<String>) -> Self {
        Host {
            name: name.into(),
            boot_id: boot_id.into(),
        }
    }
}

/// One of several recordings that were joined into one timeline.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JoinedRecording {
    /// Its name.
    pub name: String,
    /// Its format, and the part of it that is used.
    pub gives: Cow<'static, str>,
    /// How its clock was mapped to the timeline's.
    pub clock: ClockMatch,
    /// Offset of its clock to the timeline's, in ns.
    pub offset_ns: i64,
    /// Maximum error of the offset, in ns.
    pub error_ns: u64,
    /// The process id inside a container and on the host, if they differ.
    pub own_pid: Option<(u32, u32)>,
    /// For a recording of one process that is joined with a perf.data: the evidence for the process
    /// there.
    pub process_match: Option<ProcessMatch>,
}

impl JoinedRecording {
    /// Creates a recording with the timeline's clock, without offset or error.
    pub fn new(name: &str, gives: &'static str, clock: ClockMatch) -> Self {
        JoinedRecording {
            name: name.to_owned(),
            gives: gives.into(),
            clock,
            offset_ns: 0,
            error_ns: 0,
            own_pid: None,
            process_match: None,
        }
    }
}

closed_list! {
    /// The evidence for the process of a runtime's recording in a perf.data, strongest first.
    #[non_exhaustive]
    ProcessMatch {
        /// The caller names it.
        MapPid = "--map-pid",
        /// Its mappings contain the recording's methods.
        MappedCode = "its mapped code",
        /// It mapped the jitdump that is named by the recording's process id.
        Jitdump = "its jitdump",
        /// It has the recording's process id, and nothing contradicts. Recordings of several
        /// processes are always matched by process id.
        ProcessId = "its process id",
        /// No other process runs .NET in a container.
        OnlyContained = "the only .NET process in a container",
    }
}

closed_list! {
    /// How the clock of a recording was mapped to another's.
    #[non_exhaustive]
    ClockMatch {
        /// Both use the same clock.
        Same = "same clock",
        /// By the wall time that both state.
        Wall = "by wall time",
        /// From starts and ends of threads in both.
        Estimated = "estimated from starts and ends of threads",
        /// Assumed to be the same clock, without evidence.
        Assumed = "assumed to be the same clock",
        /// The recording has no times.
        Timeless = "no times",
    }
}

impl TraceFacts {
    /// Records the sampling interval from a time on, both in ns.
    pub fn sampled_every(&mut self, time_ns: u64, interval_ns: u64) {
        if self.sample_interval_ns.is_none() {
            self.sample_interval_ns = Some(interval_ns);
        } else if self.sample_interval_at(time_ns) != Some(interval_ns) {
            self.sample_interval_changes.push((time_ns, interval_ns));
        }
    }

    /// Returns the sampling interval at a time, in ns.
    #[inline]
    pub fn sample_interval_at(&self, time_ns: u64) -> Option<u64> {
        if self.sample_interval_changes.is_empty() {
            return self.sample_interval_ns;
        }
        let later = self
            .sample_interval_changes
            .partition_point(|&(from, _)| from <= time_ns);
        match later.checked_sub(1) {
            Some(last) => Some(self.sample_interval_changes[last].1),
            None => self.sample_interval_ns,
        }
    }
}
