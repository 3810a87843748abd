//! When each occupant lived, to the unit of time.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "times of near spans are compared with the zero and have 48 bits; places are those of the list"
)]

use crate::clock::extent;

/// From and to of each occupant, by id: 12 bytes each where the times lie near each other.
pub(crate) struct Spans {
    zero: u64,
    near: Vec<[u32; 3]>,
    far: Vec<(u64, u64)>,
}

/// The code of `u64::MAX`. That of 0 is 0, that of any other time its distance from `zero`, and one more.
const NEVER: u64 = (1 << 48) - 1;

impl Spans {
    pub(crate) fn new(lives: Vec<(u64, u64)>) -> Self {
        let (zero, length) = extent(lives.iter().flat_map(|life| [life.0, life.1]));
        let mut spans = Self {
            zero,
            near: Vec::new(),
            far: Vec::new(),
        };
        if length + 1 < NEVER {
            let packed = |&(from, to): &(u64, u64)| {
                let [from, to] = [from, to].map(|time| spans.code(time));
                [from as u32, to as u32, (from >> 32 | to >> 32 << 16) as u32]
            };
            spans.near = lives.iter().map(packed).collect();
        } else {
            spans.far = lives;
            spans.far.shrink_to_fit();
        }
        spans
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

    /// From and to of the occupant with this index.
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

    pub(crate) fn len(&self) -> usize {
        self.near.len().max(self.far.len())
    }

    /// Who is alive at `time`, of ids that follow one another: 0 if nobody is.
    pub(crate) fn alive(&self, ids: &[u32], time: u64) -> u32 {
        let next = ids.get(self.ended(ids, time)).copied();
        next.filter(|&id| self.of(id).0 <= time).unwrap_or(0)
    }

    /// How many have ended by `time`, of ids that follow one another.
    #[inline]
    fn ended(&self, ids: &[u32], time: u64) -> usize {
        ids.partition_point(|&id| self.of(id).1 <= time)
    }

    #[inline]
    fn of(&self, id: u32) -> (u64, u64) {
        self.get(id as usize - 1)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.near.capacity() * size_of::<[u32; 3]>() + self.far.capacity() * size_of::<(u64, u64)>()
    }
}

/// The nearest to a time, before it and after it, of those that were shown.
pub(crate) struct Nearest<'a> {
    spans: &'a Spans,
    time: u64,
    /// The last that ended by then: 0 if none has.
    pub(crate) before: u32,
    /// The first that begins later: 0 if none does.
    pub(crate) after: u32,
}

impl<'a> Nearest<'a> {
    pub(crate) fn new(spans: &'a Spans, time: u64) -> Self {
        Self {
            spans,
            time,
            before: 0,
            after: 0,
        }
    }

    /// Shows it one.
    pub(crate) fn see(&mut self, id: u32) {
        let order = |id| (self.spans.of(id), id);
        let (from, to) = self.spans.of(id);
        if to <= self.time {
            if self.before == 0 || order(self.before) < order(id) {
                self.before = id;
            }
        } else if from > self.time && (self.after == 0 || order(id) < order(self.after)) {
            self.after = id;
        }
    }

    /// Shows it ids that follow one another.
    pub(crate) fn see_all(&mut self, ids: &[u32]) {
        let next = self.spans.ended(ids, self.time);
        // One of them may be alive.
        let near = next.saturating_sub(1)..ids.len().min(next + 2);
        ids[near].iter().for_each(|&id| self.see(id));
    }
}
