//! What holds from an offset in code on.

/// (bytes from the start of the code, what holds from there on), by offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByOffset<T>(Box<[(u32, T)]>);

impl<T> ByOffset<T> {
    /// Entries of one offset stay in their order.
    pub fn new(entries: impl Iterator<Item = (u32, T)>) -> Self {
        let mut entries: Vec<_> = entries.collect();
        entries.sort_by_key(|&(offset, _)| offset);
        ByOffset(entries.into())
    }

    /// What begins at or before an offset: the last of it holds there.
    pub fn upto(&self, offset: u32) -> &[(u32, T)] {
        let upto = self.0.partition_point(|&(start, _)| start <= offset);
        &self.0[..upto]
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
