//! Between which times records are missing, after damage.

use std::ops::Range;

/// The time after which records are missing, and the marks until all times up to which they are
/// missing have been seen.
#[derive(Default)]
pub(crate) struct Missing(Option<(u64, u8)>);

impl Missing {
    /// Records that records are missing, none of which is older than `time`.
    pub(crate) fn since(&mut self, time: u64) {
        const MARKS: u8 = 2;
        let time = time.saturating_sub(1);
        let from = self.0.map_or(time, |(from, _)| from.min(time));
        self.0 = Some((from, MARKS));
    }

    /// Returns the times after which and up to which records are missing, once that is certain: at
    /// the second mark, or at the end. `greatest` is the greatest time so far.
    pub(crate) fn times(&mut self, greatest: u64, is_end: bool) -> Option<Range<u64>> {
        let (from, marks) = self.0.as_mut()?;
        *marks = marks.saturating_sub(1);
        let times = *from..greatest.max(*from);
        (is_end || *marks == 0).then(|| {
            self.0 = None;
            times
        })
    }
}
