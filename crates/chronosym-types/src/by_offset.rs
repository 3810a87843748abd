//! A table of values by code offset.

/// Values that apply from an offset on, in bytes from the start of the code, sorted by offset.
///
/// # Examples
///
/// ```
/// use chronosym_types::ByOffset;
///
/// let lines = ByOffset::new([(0, 10), (4, 11), (12, 14)].into_iter());
/// assert_eq!(lines.upto(11).last(), Some(&(4, 11)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByOffset<T>(Box<[(u32, T)]>);

impl<T> ByOffset<T> {
    /// Creates a table. Values with equal offsets keep their order.
    pub fn new(entries: impl Iterator<Item = (u32, T)>) -> Self {
        let mut entries: Vec<_> = entries.collect();
        entries.sort_by_key(|&(offset, _)| offset);
        ByOffset(entries.into())
    }

    /// Returns the values up to an offset: the last one applies there.
    pub fn upto(&self, offset: u32) -> &[(u32, T)] {
        let upto = self.0.partition_point(|&(start, _)| start <= offset);
        &self.0[..upto]
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
