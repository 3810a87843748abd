//! The exact lifetime of each occupant.

use crate::clock::extent;
use crate::occupant::{Id, Lifetime, Neighbours, Stated};

/// Start and end of each occupant by id: 12 bytes each if the times are within 2^48 units.
pub(crate) struct PackedLifetimes {
    zero: u64,
    near: Vec<[u32; 3]>,
    far: Vec<(u64, u64)>,
    stated: Vec<Stated>,
}

/// Code of `u64::MAX`. The code of 0 is 0, that of any other time its distance from `zero` plus 1.
const NEVER: u64 = (1 << 48) - 1;

impl PackedLifetimes {
    pub(crate) fn new(exact: Vec<(u64, u64)>, stated: Vec<Stated>) -> Self {
        let (zero, length) = extent(exact.iter().flat_map(|lifetime| [lifetime.0, lifetime.1]));
        if length + 1 >= NEVER {
            return Self::unpacked(exact, stated);
        }
        let mut lifetimes = Self {
            zero,
            near: Vec::new(),
            far: Vec::new(),
            stated,
        };
        let packed = |&(from, to): &(u64, u64)| {
            let [from, to] = [from, to].map(|time| lifetimes.code(time));
            [from as u32, to as u32, (from >> 32 | to >> 32 << 16) as u32]
        };
        lifetimes.near = exact.iter().map(packed).collect();
        lifetimes
    }

    /// Keeps the lifetimes in 16 bytes each: packing them takes longer than a few lookups.
    pub(crate) fn unpacked(mut exact: Vec<(u64, u64)>, stated: Vec<Stated>) -> Self {
        exact.shrink_to_fit();
        Self {
            zero: 0,
            near: Vec::new(),
            far: exact,
            stated,
        }
    }

    fn code(&self, time: u64) -> u64 {
        match time {
            0 => 0,
            u64::MAX => NEVER,
            time => time - self.zero + 1,
        }
    }

    fn time(&self, code: u64) -> u64 {
        match code {
            0 => 0,
            NEVER => u64::MAX,
            code => self.zero + (code - 1),
        }
    }

    /// Returns start and end of the occupant with this index.
    pub(crate) fn get(&self, index: usize) -> (u64, u64) {
        let Some(&[from, to, high]) = self.near.get(index) else {
            return self.far[index];
        };
        let high = u64::from(high);
        (
            self.time(u64::from(from) | (high & 0xffff) << 32),
            self.time(u64::from(to) | high >> 16 << 32),
        )
    }

    /// Returns the lifetime of an occupant.
    pub(crate) fn lifetime(&self, id: Id) -> Lifetime {
        self.stated[id.index()].lifetime(self.get(id.index()))
    }

    /// Returns occupants by their raw ids, each once, with their lifetimes, in time order.
    pub(crate) fn in_time_order(
        &self,
        ids: impl IntoIterator<Item = u32>,
    ) -> impl Iterator<Item = (Id, Lifetime)> + '_ {
        let mut ids: Vec<Id> = ids.into_iter().filter_map(Id::from_raw).collect();
        ids.sort_unstable_by_key(|id| (self.get(id.index()), *id));
        ids.dedup();
        ids.into_iter().map(|id| (id, self.lifetime(id)))
    }

    pub(crate) fn len(&self) -> usize {
        self.near.len().max(self.far.len())
    }

    /// Returns which of `ids`, ordered by time, is alive at `time`; 0 if none is.
    pub(crate) fn alive(&self, ids: &[u32], time: u64) -> u32 {
        let next = ids.get(self.count_ended(ids, time)).copied();
        next.filter(|&id| self.of(id).0 <= time).unwrap_or(0)
    }

    /// Returns how many of `ids`, ordered by time, have ended by `time`.
    #[inline]
    fn count_ended(&self, ids: &[u32], time: u64) -> usize {
        ids.partition_point(|&id| self.of(id).1 <= time)
    }

    #[inline]
    fn of(&self, id: u32) -> (u64, u64) {
        self.get(id as usize - 1)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.near.capacity() * size_of::<[u32; 3]>()
            + self.far.capacity() * size_of::<(u64, u64)>()
            + self.stated.capacity() * size_of::<Stated>()
    }
}

/// Finds the lifetimes nearest to a time, before and after it.
pub(crate) struct Nearest<'a> {
    lifetimes: &'a PackedLifetimes,
    time: u64,
    /// Last that ended by then; 0 if none has.
    pub(crate) before: u32,
    /// First that starts later; 0 if none does.
    pub(crate) after: u32,
}

impl<'a> Nearest<'a> {
    pub(crate) fn new(lifetimes: &'a PackedLifetimes, time: u64) -> Self {
        Self {
            lifetimes,
            time,
            before: 0,
            after: 0,
        }
    }

    /// Considers an id.
    pub(crate) fn add(&mut self, id: u32) {
        let order = |id| (self.lifetimes.of(id), id);
        let (from, to) = self.lifetimes.of(id);
        if to <= self.time {
            if self.before == 0 || order(self.before) < order(id) {
                self.before = id;
            }
        } else if from > self.time && (self.after == 0 || order(id) < order(self.after)) {
            self.after = id;
        }
    }

    /// Considers ids that are ordered by time.
    pub(crate) fn add_all(&mut self, ids: &[u32]) {
        let next = self.lifetimes.count_ended(ids, self.time);
        // One of them may be alive.
        let near = next.saturating_sub(1)..ids.len().min(next + 2);
        ids[near].iter().for_each(|&id| self.add(id));
    }

    /// Returns the occupants that were found.
    pub(crate) fn found(&self) -> Neighbours {
        let with_lifetime = |id| Id::from_raw(id).map(|id| (id, self.lifetimes.lifetime(id)));
        Neighbours {
            before: with_lifetime(self.before),
            after: with_lifetime(self.after),
        }
    }
}
