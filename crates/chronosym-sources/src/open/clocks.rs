//! Converts times between the clocks of recordings.

use std::io::{Read, Seek};

use chronosym_ctf::Reader as Ctf;
use chronosym_etl::ClockType;
use chronosym_nettrace::{Reader as Nettrace, TraceHeader};
use chronosym_perf::{Event, Options, Reader as Perf};
use chronosym_types::hash::HashMap;

use super::bytes::FileBytes;
use chronosym_core::{ClockMatch, JoinedRecording};

/// Maximum difference in wall time, in ns, of the origins of clocks that start at the same boot.
/// Setting a machine's time moves both.
const SAME_BOOT_NS: i128 = 5_000_000_000;
/// nettrace headers truncate their wall time to ms.
const WALL_ERROR_NS: u64 = 1_000_000;
/// Error in ns of an unknown offset: the kernel's own clock and the monotonic one were never seen
/// further apart within one boot.
const UNKNOWN_ERROR_NS: u64 = 1_000_000_000;

/// The clock of a recording.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    pub kind: Kind,
    /// Wall time minus clock time, in ns.
    pub wall_ns: Option<i128>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    Monotonic,
    MonotonicRaw,
    /// Counts from 1970.
    Wall,
    /// Windows' performance counter and others; clocks with equal frequencies are the same.
    Ticks(u64),
    #[default]
    Unknown,
}

impl Kind {
    /// Returns whether only Linux and similar systems have such a clock.
    pub fn is_of_linux(self) -> bool {
        matches!(self, Kind::Monotonic | Kind::MonotonicRaw)
    }
}

/// Offset of a clock to another, and its error, both in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offset {
    pub ns: i128,
    pub error_ns: u64,
    pub how: ClockMatch,
}

impl Offset {
    pub const NONE: Offset = Offset {
        ns: 0,
        error_ns: 0,
        how: ClockMatch::Same,
    };
    /// Neither recording states the offset.
    pub const UNKNOWN: Offset = Offset {
        ns: 0,
        error_ns: UNKNOWN_ERROR_NS,
        how: ClockMatch::Assumed,
    };

    /// Describes a recording joined by this clock offset.
    pub fn of(self, name: &str, gives: &'static str) -> JoinedRecording {
        let mut joined = JoinedRecording::new(name, gives, self.how);
        joined.offset_ns = i64::try_from(self.ns).unwrap_or(i64::MAX);
        joined.error_ns = self.error_ns;
        joined
    }
}

impl Clock {
    /// Linux's monotonic clock, of any boot.
    pub const MONOTONIC: Clock = Clock {
        kind: Kind::Monotonic,
        wall_ns: None,
    };

    pub fn of_nettrace(header: &TraceHeader) -> (Self, i128) {
        let frequency = header.qpc_frequency.max(1);
        let start = i128::from(header.qpc_start) * 1_000_000_000 / i128::from(frequency);
        let kind = match (frequency, header.version.0) {
            // Recorders of whole machines write V6, with another clock than the runtimes do.
            (1_000_000_000, 6..) => Kind::MonotonicRaw,
            (1_000_000_000, _) => Kind::Monotonic,
            (other, _) => Kind::Ticks(other),
        };
        let wall = header.start.and_then(|wall| wall.unix_ns());
        let wall_ns = wall.map(|wall| i128::from(wall) - start);
        (Clock { kind, wall_ns }, start)
    }

    /// Returns the clock of an .etl, and its time at the start in ns. Clocks other than the
    /// performance counter are converted to wall time.
    pub fn of_etl(clock: chronosym_etl::Clock, kind: ClockType) -> (Self, i128) {
        let wall = clock.unix_ns(0);
        if kind != ClockType::Qpc {
            let clock = Clock {
                kind: Kind::Wall,
                wall_ns: Some(0),
            };
            return (clock, wall);
        }
        let frequency = clock.frequency().max(1);
        let start = i128::from(clock.start_raw()) * 1_000_000_000 / i128::from(frequency);
        let clock = Clock {
            kind: Kind::Ticks(frequency),
            wall_ns: Some(wall - start),
        };
        (clock, start)
    }

    /// Returns the clock of a perf.data. Reads only the records that determine it.
    pub fn of_perf(reader: &mut Perf<&mut FileBytes>) -> Self {
        // In pipe mode, records describe the events.
        while reader.attrs().is_empty() && matches!(reader.next_record(), Ok(Some(_))) {}
        let id = reader.attrs().iter().find_map(|attr| attr.clock_id);
        let kind = match id {
            Some(1) => Kind::Monotonic,
            Some(4) => Kind::MonotonicRaw,
            Some(0) => Kind::Wall,
            _ => Kind::Unknown,
        };
        let data = reader.info().clock;
        let wall_ns = data.map(|data| i128::from(data.wall_ns) - i128::from(data.clock_ns));
        Clock { kind, wall_ns }
    }

    /// Returns the clock of LTTng traces: that of the first, to which all times are converted.
    pub fn of_ctf<R: Read>(reader: &Ctf<R>) -> Self {
        let Some(clock) = reader.traces().first().map(|trace| trace.clock()) else {
            return Clock::default();
        };
        let kind = match &*clock.name {
            "monotonic" => Kind::Monotonic,
            _ => Kind::Unknown,
        };
        let wall_ns = (clock.wall_ns != 0).then_some(clock.wall_ns);
        Clock { kind, wall_ns }
    }

    /// Returns the offset of this clock to `reference`; `None` if the clocks belong to different
    /// machines or boots, `Err` if that cannot be determined.
    pub fn offset_to(&self, reference: &Clock) -> Option<Result<Offset, ()>> {
        let by_wall = |ns| {
            let (error_ns, how) = (WALL_ERROR_NS, ClockMatch::Wall);
            Some(Ok(Offset { ns, error_ns, how }))
        };
        let walls = self.wall_ns.zip(reference.wall_ns);
        let apart = walls.map(|(own, other)| own - other);
        if self.kind == reference.kind && self.kind != Kind::Unknown {
            return match apart {
                Some(apart) if apart.abs() > SAME_BOOT_NS => None,
                _ => Some(Ok(Offset::NONE)),
            };
        }
        match (apart, self.wall_ns, reference.kind) {
            (Some(apart), ..) => by_wall(apart),
            (None, Some(wall), Kind::Wall) => by_wall(wall),
            _ => Some(Err(())),
        }
    }
}

/// First and last time of each thread, by thread id.
type Threads = HashMap<u64, (u64, u64)>;

/// Estimates the offset of the clock of a runtime's recording to that of a perf.data that does not
/// state it, given that no thread is active before it starts or after it ends.
pub(super) fn estimate(perf: &mut FileBytes, runtime: Nettrace<impl Read>, pid: u32) -> Offset {
    let (mut least, mut most) = (i128::MIN, i128::MAX);
    let seen = events_of_threads(runtime);
    for (thread, (started, ended)) in lives_of_threads(perf, pid) {
        let Some(&(first, last)) = seen.get(&thread) else {
            continue;
        };
        if let Some(started) = started {
            least = least.max(i128::from(started) - i128::from(first));
        }
        if let Some(ended) = ended {
            most = most.min(i128::from(ended) - i128::from(last));
        }
    }
    if least > most || least == i128::MIN || most == i128::MAX {
        return Offset::UNKNOWN;
    }
    Offset {
        ns: (least + most) / 2,
        error_ns: u64::try_from((most - least + 1) / 2).unwrap_or(u64::MAX),
        how: ClockMatch::Estimated,
    }
}

fn events_of_threads(mut reader: Nettrace<impl Read>) -> Threads {
    let mut threads = Threads::default();
    let (_, start) = Clock::of_nettrace(reader.header());
    let start = u64::try_from(start).unwrap_or(0);
    while let Ok(Some(region)) = reader.next_region() {
        for record in region.records() {
            let time = start.saturating_add(record.time_ns);
            let (first, last) = threads.entry(record.capture_thread).or_insert((time, time));
            (*first, *last) = (time.min(*first), time.max(*last));
        }
    }
    threads
}

/// Returns the start and end of each thread of a process, as far as they were recorded.
fn lives_of_threads(perf: &mut FileBytes, pid: u32) -> HashMap<u64, (Option<u64>, Option<u64>)> {
    let mut threads: HashMap<u64, (Option<u64>, Option<u64>)> = HashMap::default();
    if perf.rewind().is_err() {
        return threads;
    }
    let Ok(mut reader) = Perf::open(perf, Options::default()) else {
        return threads;
    };
    while let Ok(Some(record)) = reader.next_record() {
        let Some(time) = record.time_ns else { continue };
        match record.event {
            Event::Fork(task) if task.pid == pid => {
                threads.entry(task.tid.into()).or_default().0 = Some(time);
            }
            Event::Exit(task) if task.pid == pid => {
                threads.entry(task.tid.into()).or_default().1 = Some(time);
            }
            _ => {}
        }
    }
    threads
}
