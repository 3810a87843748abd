//! Which recording a session was read from: a second one has no place in it unless both are of one process and clock.

/// How a recording differs from the one that a session was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnotherRecording {
    /// It does not: all of it would count twice.
    #[error("it is the same one")]
    Same,
    /// Another format.
    #[error("it is of another format")]
    Format,
    /// .etl files have to be merged before they are read.
    #[error("it was already read whole")]
    Whole,
    /// Another process, or a process that is not stated.
    #[error("it is of another process")]
    Process,
    /// Another clock, by its frequency or by when it began to count.
    #[error("it has another clock")]
    Clock,
    /// It began before the other: the session's times begin there.
    #[error("it began before it; read the earlier one first")]
    Earlier,
}

/// What tells recordings apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordingId {
    /// An EventPipe session.
    EventPipe {
        /// The process that was recorded.
        process_id: Option<u32>,
        /// The clock at its start, in ticks.
        start: i64,
        /// Ticks a second.
        frequency: u64,
        /// When it began, in ns since 1970-01-01 UTC.
        start_unix_ns: Option<i64>,
    },
    /// What is read as a whole: .etl files, or what `open` joins.
    Whole,
}

/// Setting the time of a machine moves this along; no two machines or boots are so close.
const SAME_CLOCK_NS: i128 = 5_000_000_000;

impl RecordingId {
    /// When this recording begins, in ns since time 0 of a session that was read from `first`. A `live` session may read
    /// recordings that begin at any time of its process and repeat what others said.
    pub(crate) fn follows(self, first: RecordingId, live: bool) -> Result<i64, AnotherRecording> {
        match (first, self) {
            (
                RecordingId::EventPipe {
                    process_id: first_id,
                    start: first_start,
                    frequency,
                    start_unix_ns: first_unix_ns,
                },
                RecordingId::EventPipe {
                    process_id,
                    start,
                    frequency: second_frequency,
                    start_unix_ns,
                },
            ) => {
                let ticks = i128::from(start) - i128::from(first_start);
                let ns = ticks * 1_000_000_000 / i128::from(frequency.max(1));
                let unix_ns = start_unix_ns.zip(first_unix_ns);
                let wall_ns = unix_ns.map(|(later, first)| i128::from(later) - i128::from(first));
                if frequency != second_frequency {
                    Err(AnotherRecording::Clock)
                } else if process_id != first_id {
                    Err(AnotherRecording::Process)
                } else if live {
                    Ok(i64::try_from(ns).unwrap_or(0))
                } else if wall_ns
                    .is_some_and(|wall| wall.abs_diff(ns) > SAME_CLOCK_NS.unsigned_abs())
                {
                    Err(AnotherRecording::Clock)
                } else if ticks == 0 {
                    Err(AnotherRecording::Same)
                } else if process_id.is_none() {
                    Err(AnotherRecording::Process)
                } else if ticks < 0 {
                    Err(AnotherRecording::Earlier)
                } else {
                    i64::try_from(ns).map_err(|_| AnotherRecording::Clock)
                }
            }
            (RecordingId::Whole, RecordingId::Whole) => Err(AnotherRecording::Whole),
            _ => Err(AnotherRecording::Format),
        }
    }
}
