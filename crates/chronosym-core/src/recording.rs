//! What is known of a recording as a whole: its facts, what it lost, what could not be used.

use chronosym_types::closed_list;

/// Events that the trace lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// ns since the trace began; the loss lies after this time…
    pub from_ns: u64,
    /// …and not after this one.
    pub to_ns: u64,
    /// How many events, as far as the recorder counted them.
    pub events: u64,
    /// How many buffers, each of any number of events.
    pub buffers: u64,
    /// How often the recorder noted that something was lost, without saying how much.
    pub notices: u64,
}

impl Loss {
    /// A loss after one time and not after another, both in ns since the trace began; of how much is not known.
    pub fn between(from_ns: u64, to_ns: u64) -> Self {
        Loss {
            from_ns,
            to_ns,
            ..Loss::default()
        }
    }

    /// As [`Loss::between`], of this many events.
    pub fn of_events(from_ns: u64, to_ns: u64, events: u64) -> Self {
        Loss {
            events,
            ..Loss::between(from_ns, to_ns)
        }
    }
}

/// What is known of the whole trace.
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
    /// Bytes of a pointer of the machine.
    pub pointer_size: Option<u8>,
    /// Processors of the machine.
    pub processors: Option<u32>,
    /// Distance of two samples in ns, as the trace states it first.
    pub sample_interval_ns: Option<u64>,
    /// Where the distance changes later: (ns since the trace began, distance in ns), by time.
    pub sample_interval_changes: Vec<(u64, u64)>,
    /// Operating system and architecture, as the trace states them.
    pub machine: Option<String>,
    /// The pid of a trace that is of one process only.
    pub process_id: Option<u32>,
    /// What several recordings were joined from; empty for one.
    pub recordings: Vec<JoinedRecording>,
    /// How far the clocks of those can be apart, in ns: what begins or ends within that of a time may be on either side of it.
    pub clock_error_ns: u64,
}

/// One of several recordings that were joined into one timeline.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JoinedRecording {
    /// What it is called.
    pub name: String,
    /// Its format, and what of it is used.
    pub gives: &'static str,
    /// How its clock was put on the timeline's.
    pub clock: ClockMatch,
    /// ns that its clock is behind the timeline's.
    pub offset_ns: i64,
    /// How far that can be wrong, in ns.
    pub error_ns: u64,
    /// Of a recording of one process that calls itself otherwise than the timeline does, in a container: both ids.
    pub own_pid: Option<(u32, u32)>,
}

impl JoinedRecording {
    /// What came from a recording, by a clock without offset or error.
    pub fn new(name: &str, gives: &'static str, clock: ClockMatch) -> Self {
        JoinedRecording {
            name: name.to_owned(),
            gives,
            clock,
            offset_ns: 0,
            error_ns: 0,
            own_pid: None,
        }
    }
}

closed_list! {
    /// How the clock of a recording was put on that of another.
    #[non_exhaustive]
    ClockMatch {
        /// It is the same clock.
        Same = "same clock",
        /// Both say what time it was on the wall.
        Wall = "by wall time",
        /// From what both saw: starts and ends of threads.
        Estimated = "estimated from starts and ends of threads",
        /// Nothing tells: taken for the same.
        Assumed = "assumed to be the same clock",
        /// It has no times.
        Timeless = "no times",
    }
}

impl TraceFacts {
    /// Notes the distance of two samples from a time on, both in ns.
    pub fn sampled_every(&mut self, time_ns: u64, interval_ns: u64) {
        if self.sample_interval_ns.is_none() {
            self.sample_interval_ns = Some(interval_ns);
        } else if self.sample_interval_at(time_ns) != Some(interval_ns) {
            self.sample_interval_changes.push((time_ns, interval_ns));
        }
    }

    /// The distance of two samples at a time, in ns.
    pub fn sample_interval_at(&self, time_ns: u64) -> Option<u64> {
        let later = self
            .sample_interval_changes
            .partition_point(|&(from, _)| from <= time_ns);
        match later.checked_sub(1) {
            Some(last) => Some(self.sample_interval_changes[last].1),
            None => self.sample_interval_ns,
        }
    }
}
