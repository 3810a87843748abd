//! Occupants: address ranges with evidence of when something occupied them.

use std::num::NonZeroU32;

/// A non-empty range of addresses: from `start` to `last`, both inclusive.
///
/// The inclusive end lets a range reach the top of the address space: `[0, u64::MAX]` is all of it.
///
/// # Examples
///
/// ```
/// use chronosym_timeline::AddrRange;
///
/// let range = AddrRange::sized(0xffff_ffff_ffff_f000, 0x1000).unwrap();
/// assert_eq!(range.last(), u64::MAX); // closed, so it can reach the top
/// assert_eq!(AddrRange::sized(0x1000, 0), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AddrRange {
    start: u64,
    last: u64,
}

impl AddrRange {
    /// Returns the range from `start` to `last`, both inclusive; `None` if `last < start`.
    pub const fn new(start: u64, last: u64) -> Option<Self> {
        if last < start {
            None
        } else {
            Some(Self { start, last })
        }
    }

    /// Returns the range of `size` bytes from `start`; `None` if it is empty or exceeds the address
    /// space.
    pub const fn sized(start: u64, size: u64) -> Option<Self> {
        if size == 0 {
            return None;
        }
        match start.checked_add(size - 1) {
            Some(last) => Some(Self { start, last }),
            None => None,
        }
    }

    /// Returns the first address.
    pub const fn start(self) -> u64 {
        self.start
    }

    /// Returns the last address, inclusive.
    pub const fn last(self) -> u64 {
        self.last
    }

    /// Returns the size in bytes; `None` for the whole address space, whose size (2^64) exceeds
    /// `u64`.
    pub const fn size(self) -> Option<u64> {
        (self.last - self.start).checked_add(1)
    }

    /// Returns whether `addr` is in the range.
    pub const fn contains(self, addr: u64) -> bool {
        self.start <= addr && addr <= self.last
    }

    /// Returns whether the ranges have an address in common.
    pub const fn overlaps(self, other: Self) -> bool {
        self.start <= other.last && other.start <= self.last
    }
}

/// Evidence of when an occupant started. Times are nanoseconds, or any other monotone `u64`.
///
/// Closed: evidence has one of these forms (rules 1 to 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Start {
    /// It started at this time.
    At(u64),
    /// It was alive at this time and started at some unknown time before.
    Before(u64),
    /// It started with its container ([`Occupant::not_before`]): for sources without times.
    #[default]
    Unbounded,
}

/// Evidence of when an occupant ended. Times are nanoseconds, or any other monotone `u64`.
///
/// Closed: evidence has one of these forms (rules 1 to 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum End {
    /// It ended at this time, at which it is no longer alive.
    At(u64),
    /// It was alive at this time and ended at some unknown time after.
    After(u64),
    /// There is no evidence.
    #[default]
    Open,
}

/// Something that occupied an address range for a time.
///
/// Closed: callers build it as a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Occupant {
    /// The addresses it occupied.
    pub range: AddrRange,
    /// Evidence of its start.
    pub start: Start,
    /// Evidence of its end.
    pub end: End,
    /// Start of its container (process, module): an unknown start is not before it. 0 without one.
    pub not_before: u64,
    /// End of its container: no lifetime extends beyond it. `u64::MAX` without one.
    pub not_after: u64,
}

impl Occupant {
    /// Returns an occupant without a container.
    pub const fn new(range: AddrRange, start: Start, end: End) -> Self {
        Self {
            range,
            start,
            end,
            not_before: 0,
            not_after: u64::MAX,
        }
    }

    /// Returns the instant that its start is evidence for. Occupants are ordered by it, and it ends
    /// older ones.
    pub(crate) const fn instant(&self) -> u64 {
        match self.start {
            Start::At(t) | Start::Before(t) => t,
            Start::Unbounded => self.not_before,
        }
    }

    /// Returns its end by its own evidence and its container's, without other occupants.
    pub(crate) const fn own_end(&self) -> u64 {
        match self.end {
            End::At(t) if t < self.not_after => t,
            _ => self.not_after,
        }
    }

    /// Returns whether its own evidence states its end.
    pub(crate) const fn end_stated(&self) -> bool {
        matches!(self.end, End::At(t) if t <= self.not_after)
    }

    /// Returns its start if `floor` is the latest end among the older occupants that it overlaps.
    pub(crate) fn from(&self, floor: u64) -> u64 {
        match self.start {
            Start::At(t) => t,
            Start::Before(t) => floor.max(self.not_before).min(t),
            Start::Unbounded => self.not_before,
        }
    }
}

/// Identifies an occupant: dense, in the order of insertion. `Option<Id>` has four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(NonZeroU32);

impl Id {
    /// Returns the id of the `index`-th inserted occupant; `None` from `u32::MAX` on.
    pub fn from_index(index: usize) -> Option<Self> {
        u32::try_from(index)
            .ok()
            .and_then(|i| i.checked_add(1))
            .and_then(NonZeroU32::new)
            .map(Self)
    }

    /// Returns the position in the order of insertion, from 0.
    pub const fn index(self) -> usize {
        (self.0.get() - 1) as usize
    }

    /// Returns the id of the occupant inserted `count` later, which exists.
    #[inline(always)]
    pub(crate) const fn plus(self, count: usize) -> Self {
        Self(self.0.saturating_add(count as u32))
    }

    /// Returns the form that indices store.
    pub(crate) const fn raw(self) -> u32 {
        self.0.get()
    }

    /// Returns the id of the form that indices store: 0 for no occupant.
    pub(crate) const fn from_raw(raw: u32) -> Option<Self> {
        match NonZeroU32::new(raw) {
            Some(n) => Some(Self(n)),
            None => None,
        }
    }
}

/// The lifetime of an occupant: it is alive at `t` if `from <= t < to`.
///
/// Closed: callers build it as a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lifetime {
    /// The first instant.
    pub from: u64,
    /// The end, exclusive; `u64::MAX` without a known end. A lifetime with `to == from` is empty.
    pub to: u64,
    /// Whether the occupant's own evidence states `from`.
    pub from_known: bool,
    /// Whether the occupant's own evidence states `to`.
    pub to_known: bool,
}

impl Lifetime {
    /// Returns whether the occupant was alive at `time`.
    pub const fn contains(&self, time: u64) -> bool {
        self.from <= time && time < self.to
    }
}

/// The occupants of an address whose lifetimes are nearest to a time without containing it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Neighbours {
    /// The last that ended at or before the time.
    pub before: Option<(Id, Lifetime)>,
    /// The first that starts after the time.
    pub after: Option<(Id, Lifetime)>,
}

/// Which bounds of a lifetime the occupant's own evidence states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stated(pub(crate) u8);

impl Stated {
    pub(crate) const START: u8 = 1;
    pub(crate) const END: u8 = 2;

    /// Returns those of an occupant with this lifetime.
    pub(crate) fn of(occupant: &Occupant, (from, to): (u64, u64)) -> Self {
        let start = match occupant.start {
            Start::At(_) => Self::START,
            _ => 0,
        };
        let is_own = to == occupant.own_end().max(from);
        let end = match is_own && occupant.end_stated() {
            true => Self::END,
            false => 0,
        };
        Self(start | end)
    }

    pub(crate) fn lifetime(self, (from, to): (u64, u64)) -> Lifetime {
        Lifetime {
            from,
            to,
            from_known: self.0 & Self::START != 0,
            to_known: self.0 & Self::END != 0,
        }
    }
}
