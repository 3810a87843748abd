//! Times in 16 bits, as tiles hold them.

/// Maps times to ticks, monotonically.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    zero: u64,
    /// log2 of the units of time in a tick.
    shift: u32,
}

/// Tick of occupants whose start is unbounded.
const FIRST: u16 = 0;
/// Tick of lifetimes without an end; no time has it.
const ENDLESS: u16 = u16::MAX;
/// Number of ticks without the first and the last.
const TICKS: u64 = (ENDLESS - FIRST - 1) as u64;
/// `shift` of a clock for the whole range of times.
const COARSEST: u32 = u64::BITS - u16::BITS;

impl Clock {
    /// Returns the finest clock that covers all bounds of these lifetimes.
    pub(crate) fn new(lifetimes: &[(u64, u64)]) -> Self {
        let (first, length) = extent(lifetimes.iter().flat_map(|&(from, to)| [from, to]));
        let shift = (0..COARSEST).find(|shift| length >> shift < TICKS);
        let shift = shift.unwrap_or(COARSEST);
        // The first time gets the tick after `FIRST`, if possible; `u64::MAX` gets none.
        let zero = first.saturating_sub(1 << shift);
        let zero = zero.min(u64::MAX - (u64::from(ENDLESS) << shift));
        Self { zero, shift }
    }

    /// Returns the tick of a time; `None` before the first tick and after the last.
    #[inline(always)]
    pub(crate) fn tick_within(self, time: u64) -> Option<u16> {
        let ticks = time.wrapping_sub(self.zero) >> self.shift;
        (ticks < u64::from(ENDLESS)).then_some(ticks as u16)
    }

    /// Returns the tick of a time, or the nearest one.
    pub(crate) fn tick(self, time: u64) -> u16 {
        let nearest = if time < self.zero { FIRST } else { ENDLESS - 1 };
        self.tick_within(time).unwrap_or(nearest)
    }

    /// Returns the tick in which a lifetime starts.
    pub(crate) fn start_tick(self, from: u64) -> u16 {
        if from == 0 { FIRST } else { self.tick(from) }
    }

    /// Returns the tick in which a lifetime ends.
    pub(crate) fn end_tick(self, to: u64) -> u16 {
        if to == u64::MAX {
            ENDLESS
        } else {
            self.tick(to)
        }
    }
}

/// Returns the first of some times and its distance to the last. Ignores 0 and `u64::MAX`, which
/// stand for unknown times.
pub(crate) fn extent(times: impl Iterator<Item = u64>) -> (u64, u64) {
    let (first, last) = times
        .filter(|&time| time > 0 && time < u64::MAX)
        .fold((u64::MAX, 0), |(first, last), time| {
            (first.min(time), last.max(time))
        });
    if last == 0 {
        (0, 0)
    } else {
        (first, last - first)
    }
}
