//! Times in 16 bits, as tiles have them.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "ticks count from the first time on, and shifts are below 64"
)]

use crate::occupant::{End, Occupant};

/// Makes ticks of times: a later time never has a lesser tick.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    zero: u64,
    /// log2 of the units of time in a tick.
    shift: u32,
}

/// The tick in which begins what has been for ever.
const EVER: u16 = 0;
/// The tick of what does not end: that of no time.
const NEVER: u16 = u16::MAX;
/// Ticks, the first and the last left out.
const TICKS: u64 = (NEVER - EVER - 1) as u64;
/// log2 of the units of time in a tick if there is all time in between.
const COARSEST: u32 = u64::BITS - u16::BITS;

impl Clock {
    /// A clock with different ticks for all times that there is evidence of, as far as their distance allows.
    pub(crate) fn new(occupants: &[Occupant]) -> Self {
        let (first, length) = extent(occupants.iter().flat_map(|occupant| {
            let end = match occupant.end {
                End::At(time) | End::After(time) => time,
                End::Open => 0,
            };
            let container = [occupant.not_before, occupant.not_after];
            [occupant.instant(), end].into_iter().chain(container)
        }));
        let shift = (0..COARSEST).find(|shift| length >> shift < TICKS);
        let shift = shift.unwrap_or(COARSEST);
        // The first time has the tick after `EVER`, if possible, and `u64::MAX` has none.
        let zero = first.saturating_sub(1 << shift);
        let zero = zero.min(u64::MAX - (u64::from(NEVER) << shift));
        Self { zero, shift }
    }

    /// The tick of a time; `None` before the first tick and after the last.
    #[inline(always)]
    pub(crate) fn tick_within(self, time: u64) -> Option<u16> {
        let ticks = time.wrapping_sub(self.zero) >> self.shift;
        (ticks < u64::from(NEVER)).then_some(ticks as u16)
    }

    /// The tick of a time, or the nearest.
    pub(crate) fn tick(self, time: u64) -> u16 {
        let nearest = if time < self.zero { EVER } else { NEVER - 1 };
        self.tick_within(time).unwrap_or(nearest)
    }

    /// The tick in which a life begins.
    pub(crate) fn begin(self, from: u64) -> u16 {
        if from == 0 { EVER } else { self.tick(from) }
    }

    /// The tick in which a life ends.
    pub(crate) fn end(self, to: u64) -> u16 {
        if to == u64::MAX { NEVER } else { self.tick(to) }
    }
}

/// The first of some times and how long after it the last is; 0 and `u64::MAX` are no times.
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
