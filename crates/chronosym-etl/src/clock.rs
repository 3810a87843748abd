#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "the frequency is not 0, and products of 64 bits fit into 128; the quotient of a rest is below a second"
)]

/// The unit of raw times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClockType {
    /// Ticks of the performance counter, `PerfFreq` a second.
    Qpc,
    /// 100 ns units since 1601 (FILETIME).
    SystemTime,
    /// CPU cycles, at the CPU speed that the header gives.
    CpuCycles,
}

/// Turns raw times into nanoseconds since the start of the trace and into UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    pub(crate) start_raw: i64,
    pub(crate) start_filetime: u64,
    pub(crate) frequency: u64,
    /// ns per tick if that is an integer, else 0.
    pub(crate) ns_per_tick: u64,
    /// Later times are clamped: a damaged time must not extend the trace by centuries.
    pub(crate) last_ns: u64,
}

/// FILETIME of 1970-01-01.
const UNIX_EPOCH: i128 = 116_444_736_000_000_000;
const NS: u64 = 1_000_000_000;

impl Clock {
    pub(crate) fn new(start_raw: i64, start_filetime: u64, frequency: u64, last_ns: u64) -> Self {
        let ns_per_tick = if NS.is_multiple_of(frequency) {
            NS / frequency
        } else {
            0
        };
        Self {
            start_raw,
            start_filetime,
            frequency,
            ns_per_tick,
            last_ns,
        }
    }

    /// Raw time of the trace's start.
    pub fn start_raw(&self) -> i64 {
        self.start_raw
    }

    /// Ticks of raw time a second.
    pub fn frequency(&self) -> u64 {
        self.frequency
    }

    /// Nanoseconds since the start of the trace, rounded down. Times before the start give 0; those
    /// long after the end of the trace give its end.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_etl::{Options, Reader};
    /// # let log = chronosym_support::etl::EtlWriter::new(Vec::new(), Default::default()).unwrap().finish().unwrap();
    ///
    /// let clock = Reader::new(&log[..], Options::default())?.clock();
    /// assert_eq!(clock.frequency(), 10_000_000); // ticks per second
    /// assert_eq!(clock.time_ns(clock.start_raw() + 25), 2_500);
    /// # Ok::<(), chronosym_etl::Error>(())
    /// ```
    #[inline]
    pub fn time_ns(&self, raw_time: i64) -> u64 {
        let ticks = raw_time.saturating_sub(self.start_raw).max(0) as u64;
        let ns = if self.ns_per_tick != 0 {
            ticks.saturating_mul(self.ns_per_tick)
        } else {
            // 10^9 < 2^30, so ticks below 2^34 (and any real frequency) need no 128-bit division.
            let (seconds, rest) = (ticks / self.frequency, ticks % self.frequency);
            let part = match rest.checked_mul(NS) {
                Some(ns) => ns / self.frequency,
                None => (u128::from(rest) * u128::from(NS) / u128::from(self.frequency)) as u64,
            };
            seconds.saturating_mul(NS).saturating_add(part)
        };
        ns.min(self.last_ns)
    }

    /// Returns whether `time_ns`, converted from `raw_time`, was clamped.
    #[inline]
    pub(crate) fn is_outside(&self, raw_time: i64, time_ns: u64) -> bool {
        raw_time < self.start_raw || time_ns == self.last_ns
    }

    /// Nanoseconds since 1970-01-01 UTC of a time since the start of the trace.
    pub fn unix_ns(&self, time_ns: u64) -> i128 {
        (i128::from(self.start_filetime) - UNIX_EPOCH) * 100 + i128::from(time_ns)
    }
}
