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
    start: usize,
    end: usize,
}

#[derive(Default)]
pub(crate) struct Round {
    bytes: Vec<u8>,
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
    spare: Vec<u8>,
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
        let start = self.bytes.len();
        self.bytes.extend_from_slice(record);
        self.records.push(HeldRecord {
            time,
            is_sample,
            start,
            end: self.bytes.len(),
        });
    }

    /// Returns whether later records have been delivered.
    pub(crate) fn is_late(&self, time: u64) -> bool {
        time != 0 && time < self.delivered
    }

    /// Returns the greatest time so far, 0 if there is none.
    pub(crate) fn greatest(&self) -> u64 {
        self.greatest
    }

    /// Bytes in use.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len() + size_of_val(self.records.as_slice())
    }

    /// Delivers the next record that is ready.
    pub(crate) fn next(&mut self) -> Option<&[u8]> {
        let record = self.records.get(..self.ready)?.get(self.next)?;
        self.next += 1;
        self.delivered = self.delivered.max(record.time);
        self.bytes.get(record.start..record.end)
    }

    pub(crate) fn has_next(&self) -> bool {
        self.next < self.ready
    }

    /// Drops delivered records.
    pub(crate) fn recycle(&mut self) {
        if self.next == 0 {
            return;
        }
        self.spare.clear();
        self.records.drain(..self.next);
        for record in &mut self.records {
            let start = self.spare.len();
            let bytes = self.bytes.get(record.start..record.end);
            self.spare.extend_from_slice(bytes.unwrap_or_default());
            (record.start, record.end) = (start, self.spare.len());
        }
        std::mem::swap(&mut self.bytes, &mut self.spare);
        (self.next, self.ready) = (0, 0);
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
