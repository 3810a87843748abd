//! A cache of answers by the times at which they are valid.

use std::ops::Range;

use smallvec::SmallVec;

/// Answers with their validity, ordered by time; nearly always a single one.
pub(crate) struct Answers<T>(SmallVec<[(Range<u64>, T); 1]>);

impl<T> Default for Answers<T> {
    fn default() -> Self {
        Answers(SmallVec::new())
    }
}

impl<T> Answers<T> {
    /// Number of answers that start at or before `time`.
    fn begun(&self, time: u64) -> usize {
        self.0.partition_point(|(valid, _)| valid.start <= time)
    }

    #[inline]
    pub(crate) fn at(&self, time: u64) -> Option<&(Range<u64>, T)> {
        if let [only] = self.0.as_slice() {
            return only.0.contains(&time).then_some(only);
        }
        let (last, _) = self.0[..self.begun(time)].split_last()?;
        last.0.contains(&time).then_some(last)
    }

    /// Drops the answer for a time.
    pub(crate) fn remove(&mut self, time: u64) {
        if let Some(last) = self.begun(time).checked_sub(1)
            && self.0[last].0.contains(&time)
        {
            self.0.remove(last);
        }
    }

    /// Stores the answer for a time that had none.
    pub(crate) fn keep(&mut self, time: u64, valid: Range<u64>, answer: T) {
        let at = self.begun(time);
        let start = at.checked_sub(1).map_or(0, |before| self.0[before].0.end);
        let end = self.0.get(at).map_or(u64::MAX, |(after, _)| after.start);
        let valid = valid.start.max(start)..valid.end.min(end);
        self.0.insert(at, (valid, answer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_found_for_their_times_only_and_never_overlap() {
        let mut answers = Answers::default();
        answers.keep(5, 5..10, 'a');
        answers.keep(2, 0..20, 'b');
        answers.keep(15, 0..20, 'b');
        let at = |time| answers.at(time).map(|(_, answer)| *answer);
        assert_eq!(
            [0, 4, 5, 9, 10, 19, 20].map(at),
            [
                Some('b'),
                Some('b'),
                Some('a'),
                Some('a'),
                Some('b'),
                Some('b'),
                None
            ]
        );
        assert_eq!(answers.0.len(), 3);
    }
}
