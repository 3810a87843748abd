//! Raw clock ticks to nanoseconds since the start of the trace.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "the frequency is not 0, and products of 64 bits fit into 128"
)]

use crate::header::TraceHeader;

const NS_PER_SECOND: u64 = 1_000_000_000;

/// Nanoseconds a tick as a whole number and a 64-bit binary fraction, so that an event costs a
/// multiplication rather than a division.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: i64,
    whole: u64,
    fraction: u64,
}

impl Clock {
    pub(crate) fn new(header: &TraceHeader) -> Self {
        let frequency = header.qpc_frequency.max(1);
        let rest = u128::from(NS_PER_SECOND % frequency);
        // Rounded up: exact as long as ticks × frequency stays below 2^64 (8 hours at 24 MHz), 1 ns
        // off beyond.
        let fraction = (rest << 64).div_ceil(u128::from(frequency));
        Self {
            start: header.qpc_start,
            whole: NS_PER_SECOND / frequency,
            fraction: u64::try_from(fraction).unwrap_or(u64::MAX),
        }
    }

    /// Nanoseconds since the start; 0 for anything before it.
    #[inline]
    pub(crate) fn ns(&self, raw: i64) -> u64 {
        if raw <= self.start {
            return 0;
        }
        let ticks = raw.abs_diff(self.start);
        let whole = ticks.saturating_mul(self.whole);
        if self.fraction == 0 {
            return whole;
        }
        let part = (u128::from(ticks) * u128::from(self.fraction)) >> 64;
        whole.saturating_add(part as u64)
    }

    /// Returns the first tick of the raw clock at which [`ns`](Self::ns) is at least `ns`; the last
    /// tick if there is none.
    pub(crate) fn first_at(&self, ns: u64) -> i64 {
        if ns == 0 {
            return i64::MIN;
        }
        let raw = |ticks| self.start.saturating_add_unsigned(ticks);
        let (mut low, mut high) = (0, u64::MAX);
        while low < high {
            let middle = low.midpoint(high);
            if self.ns(raw(middle)) >= ns {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        raw(low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::Format;

    fn clock(start: i64, frequency: u64) -> Clock {
        let mut header = TraceHeader::unknown(Format::Nettrace, (4, 0));
        header.qpc_start = start;
        header.qpc_frequency = frequency;
        Clock::new(&header)
    }

    #[test]
    fn ticks_become_nanoseconds_at_real_frequencies() {
        for frequency in [
            1_000_000_000u64,
            10_000_000,
            24_000_000,
            3_579_545,
            2_441_406,
            1_000,
            1,
            19_200_000,
        ] {
            let clock = clock(5, frequency);
            for ticks in [
                0u64,
                1,
                2,
                3,
                999,
                1_000_003,
                86_399 * frequency.min(1_000_000),
            ] {
                let exact = u128::from(ticks) * u128::from(NS_PER_SECOND) / u128::from(frequency);
                let ns = clock.ns(5 + ticks.cast_signed());
                assert!(
                    u128::from(ns).abs_diff(exact) <= 1,
                    "{ticks} ticks at {frequency}: {ns}, exactly {exact}"
                );
            }
        }
    }

    #[test]
    fn the_first_tick_at_a_time_is_found() {
        for frequency in [
            1,
            1_000,
            3_579_545,
            24_000_000,
            1_000_000_000,
            3_000_000_000,
        ] {
            let clock = clock(5, frequency);
            for ns in [1, 999, 1_000_000_007, 3_600_000_000_000] {
                let tick = clock.first_at(ns);
                assert!(clock.ns(tick) >= ns && clock.ns(tick - 1) < ns, "{ns}");
            }
        }
        let clock = clock(5, 1_000_000_000);
        assert_eq!((clock.first_at(0), clock.ns(i64::MIN)), (i64::MIN, 0));
        assert_eq!(clock.first_at(u64::MAX), i64::MAX);
    }

    #[test]
    fn times_before_the_start_are_clamped_and_huge_ones_do_not_overflow() {
        let clock = clock(100, 10_000_000);
        assert_eq!(clock.ns(100), 0);
        assert_eq!(clock.ns(99), 0);
        assert_eq!(clock.ns(i64::MIN), 0);
        assert_eq!(clock.ns(101), 100);
        assert_eq!(clock.ns(i64::MAX), u64::MAX);
    }
}
