//! Identity of the recordings of a session: a second one must be of the same process and clock.

/// Why a recording cannot be added to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnotherRecording {
    /// It was added before: all its events would count twice.
    #[error("it is the same one")]
    Same,
    /// It has another format.
    #[error("it is of another format")]
    Format,
    /// .etl files must be merged before they are read.
    #[error("it was already read completely")]
    Whole,
    /// It covers another process, or does not state its process.
    #[error("it is of another process")]
    Process,
    /// Its clock differs in frequency or origin.
    #[error("it has another clock")]
    Clock,
    /// It starts before the first: the session's times start there.
    #[error("it began earlier; read the earlier one first")]
    Earlier,
}

/// The properties that distinguish recordings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordingId {
    /// An EventPipe session.
    EventPipe {
        /// The recorded process.
        process_id: Option<u32>,
        /// The clock at its start, in ticks.
        start: i64,
        /// Ticks per second.
        frequency: u64,
        /// Start, in ns since 1970-01-01 UTC.
        start_unix_ns: Option<i64>,
    },
    /// A recording that is read as a whole: .etl files, or recordings joined by `open`.
    Whole,
}

/// Setting a machine's time moves the origin; the origins of two machines or boots are never this
/// close.
const SAME_CLOCK_NS: i128 = 5_000_000_000;

impl RecordingId {
    /// Returns the start of this recording, in ns since time 0 of a session that was read from
    /// `first`. A `live` session accepts recordings that start at any time and repeat facts of
    /// others.
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
