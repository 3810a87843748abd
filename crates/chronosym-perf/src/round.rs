//! Sorts records by time.
//!
//! Each processor's records are in order, but processors follow each other. The recorder ends each
//! pass over all processors with a mark: records after it are not older than any before the
//! previous mark.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "sizes of what is in memory, and places in it"
)]

use std::sync::Arc;

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

/// The bytes of records, in two parts.
struct Parts {
    older: Arc<Vec<u8>>,
    newer: Arc<Vec<u8>>,
    /// Position of the first byte of the older part.
    base: usize,
}

impl Parts {
    fn bytes(&self, record: HeldRecord) -> Option<&[u8]> {
        let at = record.start.wrapping_sub(self.base);
        let (part, at) = match at.checked_sub(self.older.len()) {
            Some(at) => (&self.newer, at),
            None => (&self.older, at),
        };
        part.get(at..at + record.len)
    }

    fn is_older(&self, record: &HeldRecord) -> bool {
        record.start.wrapping_sub(self.base) < self.older.len()
    }
}

/// Records that can be delivered, in order.
#[derive(Default)]
pub(crate) struct Ready {
    /// `None` without records.
    parts: Option<Parts>,
    records: Vec<HeldRecord>,
    /// Records before this index have been delivered.
    next: usize,
    /// The greatest time of these records and of those readied before.
    pub(crate) latest: u64,
}

impl Ready {
    pub(crate) fn has_next(&self) -> bool {
        self.next < self.records.len()
    }

    /// Frees the memory of records that have been delivered.
    pub(crate) fn free(&mut self) {
        *self = Ready {
            latest: self.latest,
            ..Ready::default()
        };
    }

    /// Bytes of the parts that hold the records.
    pub(crate) fn size(&self) -> usize {
        let parts = self.parts.as_ref();
        parts.map_or(0, |parts| parts.older.len() + parts.newer.len())
    }

    /// Delivers the next record.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<&[u8]> {
        let &record = self.records.get(self.next)?;
        self.next += 1;
        self.parts.as_ref()?.bytes(record)
    }
}

/// Records that wait for earlier ones.
#[derive(Default)]
pub(crate) struct Round {
    /// The bytes of records up to the last mark that readied some. Those of the records that it
    /// readied may be among them.
    older: Arc<Vec<u8>>,
    /// The bytes of later records.
    newer: Vec<u8>,
    /// Position of the first byte of the older part.
    base: usize,
    /// Parts that readied records may still use.
    used: Vec<Arc<Vec<u8>>>,
    /// Bytes of the records that wait.
    held: usize,
    records: Vec<HeldRecord>,
    /// The greatest time so far, and at the previous mark.
    greatest: u64,
    greatest_before: u64,
    /// The time of the last record pushed, which records without a time inherit.
    last: u64,
    /// The greatest time readied.
    readied: u64,
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

    /// Returns whether later records have been readied.
    pub(crate) fn is_late(&self, time: u64) -> bool {
        time != 0 && time < self.readied
    }

    /// Returns the greatest time so far, 0 if there is none.
    pub(crate) fn greatest(&self) -> u64 {
        self.greatest
    }

    /// Bytes of the records that wait.
    pub(crate) fn size(&self) -> usize {
        self.held + size_of_val(self.records.as_slice())
    }

    /// Returns no records.
    pub(crate) fn nothing(&self) -> Ready {
        Ready {
            latest: self.readied,
            ..Ready::default()
        }
    }

    /// Ends a round: takes the records that are complete now.
    pub(crate) fn mark(&mut self) -> Ready {
        let complete = std::mem::replace(&mut self.greatest_before, self.greatest);
        self.sort();
        let ready = self
            .records
            .partition_point(|record| record.time <= complete);
        self.take(ready)
    }

    /// Takes the older half at the limit.
    pub(crate) fn force(&mut self) -> Ready {
        self.sort();
        self.take(self.records.len().div_ceil(2))
    }

    /// Takes all records.
    pub(crate) fn finish(&mut self) -> Ready {
        self.sort();
        self.take(self.records.len())
    }

    /// Each processor's records are a sorted run, which a stable sort merges.
    fn sort(&mut self) {
        self.records
            .sort_by_key(|record| (record.time, record.is_sample));
    }

    /// Takes the first records. Most bytes stay where they are: a mark readies all records from
    /// before the last mark, so that no record of the older part waits then.
    fn take(&mut self, count: usize) -> Ready {
        let records: Vec<HeldRecord> = self.records.drain(..count).collect();
        let Some(last) = records.last() else {
            return self.nothing();
        };
        self.readied = self.readied.max(last.time);
        self.held -= records.iter().map(|it| it.len).sum::<usize>();
        let parts = Parts {
            older: Arc::clone(&self.older),
            newer: Arc::new(std::mem::take(&mut self.newer)),
            base: self.base,
        };
        let newer = match self.records.iter().any(|record| parts.is_older(record)) {
            true => self.compact(&parts),
            false => {
                self.base = self.base.wrapping_add(parts.older.len());
                Arc::clone(&parts.newer)
            }
        };
        self.used.push(std::mem::replace(&mut self.older, newer));
        Ready {
            parts: Some(parts),
            records,
            next: 0,
            latest: self.readied,
        }
    }

    /// Copies the records that wait if both parts have some: after a limit was reached.
    fn compact(&mut self, parts: &Parts) -> Arc<Vec<u8>> {
        let mut kept = Vec::with_capacity(self.held);
        for record in &mut self.records {
            let start = kept.len();
            kept.extend_from_slice(parts.bytes(*record).unwrap_or_default());
            record.start = start;
        }
        self.base = 0;
        Arc::new(kept)
    }

    /// Reuses the memory of a part whose records were delivered.
    pub(crate) fn reuse(&mut self) {
        let free = |part: &mut Arc<Vec<u8>>| Arc::get_mut(part).is_some();
        if self.newer.capacity() == 0
            && let Some(at) = self.used.iter_mut().position(free)
            && let Ok(mut part) = Arc::try_unwrap(self.used.swap_remove(at))
        {
            part.clear();
            self.newer = part;
        }
    }
}
