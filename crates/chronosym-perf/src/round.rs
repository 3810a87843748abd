//! Puts records into the order of their times.
//!
//! Each processor's records stand in order, but one processor's after another's. The recorder ends each pass over all
//! processors with a mark: what comes after it is not older than anything before the mark before it.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "sizes of what is in memory, and places in it"
)]

/// Where a held record stands, and in which order it comes.
#[derive(Clone, Copy)]
struct Row {
    time: u64,
    /// Of one time, samples come last.
    is_sample: bool,
    start: usize,
    end: usize,
}

#[derive(Default)]
pub(crate) struct Round {
    bytes: Vec<u8>,
    rows: Vec<Row>,
    /// Rows before this one have been handed out, those before `ready` are to be.
    next: usize,
    ready: usize,
    /// The greatest time so far, and what it was at the mark before.
    greatest: u64,
    greatest_before: u64,
    /// The time of the last record put in, which one without a time takes over.
    last: u64,
    /// The time up to which records were handed out.
    delivered: u64,
    spare: Vec<u8>,
}

impl Round {
    /// Puts a record in; without a time it stays behind the one before it.
    pub(crate) fn push(&mut self, record: &[u8], time: Option<u64>, is_sample: bool) {
        let time = time.unwrap_or(self.last);
        self.last = time;
        self.greatest = self.greatest.max(time);
        let start = self.bytes.len();
        self.bytes.extend_from_slice(record);
        self.rows.push(Row {
            time,
            is_sample,
            start,
            end: self.bytes.len(),
        });
    }

    /// Whether a record of this time comes too late.
    pub(crate) fn is_late(&self, time: u64) -> bool {
        time != 0 && time < self.delivered
    }

    /// The greatest time so far, 0 if there is none.
    pub(crate) fn greatest(&self) -> u64 {
        self.greatest
    }

    /// Bytes in use.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len() + size_of_val(self.rows.as_slice())
    }

    /// The next record that is ready.
    pub(crate) fn next(&mut self) -> Option<&[u8]> {
        let row = self.rows.get(..self.ready)?.get(self.next)?;
        self.next += 1;
        self.delivered = self.delivered.max(row.time);
        self.bytes.get(row.start..row.end)
    }

    pub(crate) fn has_next(&self) -> bool {
        self.next < self.ready
    }

    /// Forgets what was handed out.
    pub(crate) fn recycle(&mut self) {
        if self.next == 0 {
            return;
        }
        self.spare.clear();
        self.rows.drain(..self.next);
        for row in &mut self.rows {
            let start = self.spare.len();
            let record = self.bytes.get(row.start..row.end);
            self.spare.extend_from_slice(record.unwrap_or_default());
            (row.start, row.end) = (start, self.spare.len());
        }
        std::mem::swap(&mut self.bytes, &mut self.spare);
        (self.next, self.ready) = (0, 0);
    }

    /// Makes ready what the mark of a round says is complete.
    pub(crate) fn mark(&mut self) {
        let complete = std::mem::replace(&mut self.greatest_before, self.greatest);
        self.sort();
        self.ready = self.rows.partition_point(|row| row.time <= complete);
    }

    /// Makes the older half ready, for want of room.
    pub(crate) fn force(&mut self) {
        self.sort();
        self.ready = self.rows.len().div_ceil(2);
    }

    /// Makes all ready.
    pub(crate) fn finish(&mut self) {
        self.sort();
        self.ready = self.rows.len();
    }

    /// The rows of a processor are a run already, which a stable sort merges.
    fn sort(&mut self) {
        self.rows.sort_by_key(|row| (row.time, row.is_sample));
    }
}
