//! What goes into a map: an address range and what is known about the life of the thing in it.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "ranges that are checked when an occupant is made"
)]

use std::num::NonZeroU32;

/// A range of addresses that is never empty: from `start` to `last`, both inclusive.
///
/// The inclusive end is what lets a range touch the top of the address space: `[0, u64::MAX]` is all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AddrRange {
    start: u64,
    last: u64,
}

impl AddrRange {
    /// The range from `start` to `last`, both inclusive; `None` if `last < start`.
    pub const fn new(start: u64, last: u64) -> Option<Self> {
        if last < start {
            None
        } else {
            Some(Self { start, last })
        }
    }

    /// The range of `size` bytes from `start`; `None` if it is empty or runs past the end of the address space (2^64).
    pub const fn sized(start: u64, size: u64) -> Option<Self> {
        if size == 0 {
            return None;
        }
        match start.checked_add(size - 1) {
            Some(last) => Some(Self { start, last }),
            None => None,
        }
    }

    /// The first address.
    pub const fn start(self) -> u64 {
        self.start
    }

    /// The last address, inclusive.
    pub const fn last(self) -> u64 {
        self.last
    }

    /// The size in bytes; `None` for the whole address space, whose size (2^64) no `u64` holds.
    pub const fn size(self) -> Option<u64> {
        (self.last - self.start).checked_add(1)
    }

    /// Whether `addr` lies in the range.
    pub const fn contains(self, addr: u64) -> bool {
        self.start <= addr && addr <= self.last
    }

    /// Whether the two ranges have an address in common.
    pub const fn overlaps(self, other: Self) -> bool {
        self.start <= other.last && other.start <= self.last
    }
}

/// When an occupant began, as far as there is evidence. Times are nanoseconds, or any other monotone `u64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Begin {
    /// It began at this time.
    At(u64),
    /// It was alive at this time and began at some unknown time before.
    Before(u64),
    /// It has been alive since its container began ([`Occupant::not_before`]): sources without times.
    Unbounded,
}

/// When an occupant ended, as far as there is evidence. Times are nanoseconds, or any other monotone `u64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// It ended at this time and is not alive at it (half-open).
    At(u64),
    /// It was alive at this time and ended at some unknown time after.
    After(u64),
    /// Nothing is known.
    Open,
}

/// One thing that occupied an address range for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Occupant {
    /// The addresses it occupied.
    pub range: AddrRange,
    /// What is known of its begin.
    pub begin: Begin,
    /// What is known of its end.
    pub end: End,
    /// When its container (process, module) began: an unknown begin is not before it. 0 if there is none.
    pub not_before: u64,
    /// When its container ended: no life goes beyond it. `u64::MAX` if there is none.
    pub not_after: u64,
}

impl Occupant {
    /// An occupant without a container.
    pub const fn new(range: AddrRange, begin: Begin, end: End) -> Self {
        Self {
            range,
            begin,
            end,
            not_before: 0,
            not_after: u64::MAX,
        }
    }

    /// The instant that its begin is evidence for. It orders occupants, and by it older ones are closed.
    pub(crate) const fn instant(&self) -> u64 {
        match self.begin {
            Begin::At(t) | Begin::Before(t) => t,
            Begin::Unbounded => self.not_before,
        }
    }

    /// Its end by its own evidence and its container's, before any other occupant has a say.
    pub(crate) const fn own_end(&self) -> u64 {
        match self.end {
            End::At(t) if t < self.not_after => t,
            _ => self.not_after,
        }
    }

    /// Whether its own end is one that an event stated.
    pub(crate) const fn end_stated(&self) -> bool {
        matches!(self.end, End::At(t) if t <= self.not_after)
    }

    /// Its begin, when `floor` is the latest end among the older occupants that it overlaps.
    pub(crate) fn from(&self, floor: u64) -> u64 {
        match self.begin {
            Begin::At(t) => t,
            Begin::Before(t) => floor.max(self.not_before).min(t),
            Begin::Unbounded => self.not_before,
        }
    }
}

/// Names an occupant: dense, in the order of insertion. `Option<Id>` is four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(NonZeroU32);

impl Id {
    /// The id of the `index`-th inserted occupant; `None` at `u32::MAX` and beyond.
    pub fn from_index(index: usize) -> Option<Self> {
        u32::try_from(index)
            .ok()
            .and_then(|i| i.checked_add(1))
            .and_then(NonZeroU32::new)
            .map(Self)
    }

    /// The position in the order of insertion, from 0.
    pub const fn index(self) -> usize {
        (self.0.get() - 1) as usize
    }

    /// The form that indexes keep: 0 is no occupant.
    pub(crate) const fn raw(id: Option<Self>) -> u32 {
        match id {
            Some(id) => id.0.get(),
            None => 0,
        }
    }

    pub(crate) const fn from_raw(raw: u32) -> Option<Self> {
        match NonZeroU32::new(raw) {
            Some(n) => Some(Self(n)),
            None => None,
        }
    }
}

/// When an occupant lived: alive at `t` if `from <= t < to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Life {
    /// The first instant of the life.
    pub from: u64,
    /// The end, exclusive. `u64::MAX`: no end is known. Equal to `from`: a life of no length, which answers nothing.
    pub to: u64,
    /// `from` is the begin that the occupant's own evidence states.
    pub from_known: bool,
    /// `to` is the end that the occupant's own evidence states.
    pub to_known: bool,
}

impl Life {
    /// Whether the occupant was alive at `time`.
    pub const fn contains(&self, time: u64) -> bool {
        self.from <= time && time < self.to
    }
}

/// Whose lives at an address are the nearest to a time at which nobody, or somebody else, is alive there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Neighbours {
    /// The last whose life ended at or before the time.
    pub before: Option<(Id, Life)>,
    /// The first whose life begins after the time.
    pub after: Option<(Id, Life)>,
}
