//! Sorts records by time.
//!
//! Each processor's records are in order, but processors follow each other. The recorder ends each
//! pass over all processors with a mark: records after it are not older than any before the
//! previous mark.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "sizes of what is in memory, and places in it"
)]

use std::ops::Range;

/// Position and order of a held record.
#[derive(Clone, Copy)]
struct HeldRecord {
    time: u64,
    /// At equal times, samples come last.
    is_sample: bool,
    /// Position of its first byte among all bytes pushed, modulo the size of the address space.
    start: usize,
    len: usize,
}

#[derive(Default)]
pub(crate) struct Round {
    /// The bytes of records, delivered ones included. A mark readies all records from before the
    /// last mark, so that no record of the older part is left once they are delivered.
    older: Vec<u8>,
    newer: Vec<u8>,
    /// Position of the first byte of the older part.
    base: usize,
    /// Bytes of the records that are not delivered.
    held: usize,
    records: Vec<HeldRecord>,
    /// Records before this index have been delivered, those before `ready` can be.
    next: usize,
    ready: usize,
    /// The greatest time so far, and at the previous mark.
    greatest: u64,
    greatest_before: u64,
    /// The time of the last record pushed, which records without a time inherit.
    last: u64,
    /// The greatest time delivered.
    delivered: u64,
    /// The time after which records are missing, and the marks until all times up to which they are
    /// missing have been seen.
    missing: Option<(u64, u8)>,
}

impl Round {
    /// Adds a record; without a time it follows the previous one.
    pub(crate) fn push(&mut self, record: &[u8], time: Option<u64>, is_sample: bool) {
        let time = time.unwrap_or(self.last);
        self.last = time;
        self.greatest = self.greatest.max(time);
        self.records.push(HeldRecord {
            time,
            is_sample,
            start: (self.base).wrapping_add(self.older.len() + self.newer.len()),
            len: record.len(),
        });
        self.newer.extend_from_slice(record);
        self.held += record.len();
    }

    /// Returns whether later records have been delivered.
    pub(crate) fn is_late(&self, time: u64) -> bool {
        time != 0 && time < self.delivered
    }

    /// Returns the greatest time so far, 0 if there is none.
    pub(crate) fn greatest(&self) -> u64 {
        self.greatest
    }

    /// Bytes of the records that wait or can be delivered.
    pub(crate) fn size(&self) -> usize {
        self.held + size_of_val(self.records.as_slice())
    }

    /// Delivers the next record that is ready.
    pub(crate) fn next(&mut self) -> Option<&[u8]> {
        let &record = self.records.get(..self.ready)?.get(self.next)?;
        self.next += 1;
        self.delivered = self.delivered.max(record.time);
        self.bytes(record)
    }

    fn bytes(&self, record: HeldRecord) -> Option<&[u8]> {
        let at = self.place(&record);
        let (part, at) = match at.checked_sub(self.older.len()) {
            Some(at) => (&self.newer, at),
            None => (&self.older, at),
        };
        part.get(at..at + record.len)
    }

    /// Returns where a record is in both parts.
    fn place(&self, record: &HeldRecord) -> usize {
        record.start.wrapping_sub(self.base)
    }

    pub(crate) fn has_next(&self) -> bool {
        self.next < self.ready
    }

    /// Drops delivered records.
    pub(crate) fn recycle(&mut self) {
        if self.next == 0 {
            return;
        }
        self.held -= self
            .records
            .drain(..self.next)
            .map(|it| it.len)
            .sum::<usize>();
        (self.next, self.ready) = (0, 0);
        let is_older = |record: &HeldRecord| self.place(record) < self.older.len();
        if self.records.iter().any(is_older) {
            return self.compact();
        }
        self.base = self.base.wrapping_add(self.older.len());
        self.older.clear();
        std::mem::swap(&mut self.older, &mut self.newer);
    }

    /// Drops the bytes of delivered records if both parts have others: after a limit was reached.
    fn compact(&mut self) {
        let mut records = std::mem::take(&mut self.records);
        let mut kept = Vec::with_capacity(self.held);
        for record in &mut records {
            let start = kept.len();
            kept.extend_from_slice(self.bytes(*record).unwrap_or_default());
            record.start = start;
        }
        (self.base, self.older, self.records) = (0, kept, records);
        self.newer.clear();
    }

    /// Records that records of this round are missing: none is older than what was delivered.
    pub(crate) fn missing(&mut self) {
        self.missing_since(self.delivered);
    }

    /// Records that records are missing, none of which is older than `time`.
    pub(crate) fn missing_since(&mut self, time: u64) {
        const MARKS: u8 = 2;
        let time = time.saturating_sub(1);
        let from = self.missing.map_or(time, |(from, _)| from.min(time));
        self.missing = Some((from, MARKS));
    }

    /// Returns the times after which and up to which records are missing, once that is certain: at
    /// the second mark, or at the end.
    pub(crate) fn missing_times(&mut self, is_end: bool) -> Option<Range<u64>> {
        let (from, marks) = self.missing.as_mut()?;
        *marks -= u8::from(*marks > 0);
        let times = *from..self.greatest.max(*from);
        (is_end || *marks == 0).then(|| {
            self.missing = None;
            times
        })
    }

    /// Ends a round: readies the records that are complete now.
    pub(crate) fn mark(&mut self) {
        let complete = std::mem::replace(&mut self.greatest_before, self.greatest);
        self.sort();
        self.ready = self
            .records
            .partition_point(|record| record.time <= complete);
    }

    /// Readies the older half at the limit.
    pub(crate) fn force(&mut self) {
        self.sort();
        self.ready = self.records.len().div_ceil(2);
    }

    /// Readies all records.
    pub(crate) fn finish(&mut self) {
        self.sort();
        self.ready = self.records.len();
    }

    /// Each processor's records are a sorted run, which a stable sort merges.
    fn sort(&mut self) {
        self.records
            .sort_by_key(|record| (record.time, record.is_sample));
    }
}
