//! How the clock of one recording is put on that of another.

use std::io::{Read, Seek};

use chronosym_ctf::Reader as Ctf;
use chronosym_etl::ClockType;
use chronosym_nettrace::{Reader as Nettrace, TraceHeader};
use chronosym_perf::{Event, Options, Reader as Perf};
use chronosym_types::hash::HashMap;

use super::bytes::FileBytes;
use chronosym_core::{ClockMatch, JoinedRecording};

/// Clocks that set out with the same boot are this close on the wall; setting the time of a machine
/// moves them along.
const SAME_BOOT_NS: i128 = 5_000_000_000;
/// nettrace headers have their wall time cut to ms.
const WALL_ERROR_NS: u64 = 1_000_000;
/// Where nothing tells: the kernel's own clock and the monotonic one were never seen further apart
/// on one boot.
const UNKNOWN_ERROR_NS: u64 = 1_000_000_000;

/// The clock of a recording.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    pub kind: Kind,
    /// ns on the wall less ns on the clock.
    pub wall_ns: Option<i128>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    Monotonic,
    MonotonicRaw,
    /// Counts from 1970.
    Wall,
    /// Windows' performance counter and others: the same for what states the same frequency.
    Ticks(u64),
    #[default]
    Unknown,
}

impl Kind {
    /// Whether only Linux and its like have such a clock.
    pub fn is_of_linux(self) -> bool {
        matches!(self, Kind::Monotonic | Kind::MonotonicRaw)
    }
}

/// Offset of a clock to another, and its error.
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
    /// Where nothing tells.
    pub const UNKNOWN: Offset = Offset {
        ns: 0,
        error_ns: UNKNOWN_ERROR_NS,
        how: ClockMatch::Assumed,
    };

    /// What came from a recording by this clock.
    pub fn of(self, name: &str, gives: &'static str) -> JoinedRecording {
        let mut joined = JoinedRecording::new(name, gives, self.how);
        joined.offset_ns = i64::try_from(self.ns).unwrap_or(i64::MAX);
        joined.error_ns = self.error_ns;
        joined
    }
}

impl Clock {
    /// Linux' monotonic clock, of whatever boot.
    pub const MONOTONIC: Clock = Clock {
        kind: Kind::Monotonic,
        wall_ns: None,
    };

    pub fn of_nettrace(header: &TraceHeader) -> (Self, i128) {
        let frequency = header.qpc_frequency.max(1);
        let start = i128::from(header.qpc_start) * 1_000_000_000 / i128::from(frequency);
        let kind = match (frequency, header.version.0) {
            // Recorders of whole machines write V6, with another clock than the runtimes.
            (1_000_000_000, 6..) => Kind::MonotonicRaw,
            (1_000_000_000, _) => Kind::Monotonic,
            (other, _) => Kind::Ticks(other),
        };
        let wall = header.start.and_then(|wall| wall.unix_ns());
        let wall_ns = wall.map(|wall| i128::from(wall) - start);
        (Clock { kind, wall_ns }, start)
    }

    /// Of an .etl, and its time at the begin in ns. Where that does not count the performance
    /// counter it is the wall's.
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

    /// Of a perf.data, of which as much is read as it takes.
    pub fn of_perf(reader: &mut Perf<&mut FileBytes>) -> Self {
        // Pipes tell of events by records.
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

    /// Of traces of LTTng: that of the first, whose times all of them get.
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

    /// Offset of this clock to `reference`; `None` if they are of different machines or boots,
    /// `Err` if neither says.
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

/// By id of the thread: its first and its last time.
type Threads = HashMap<u64, (u64, u64)>;

/// Estimates the offset of the clock of a runtime's recording to that of a perf.data which does not
/// state it: no thread does anything before it starts or after it has ended.
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

/// When threads of a process started and ended, as far as that was seen.
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
