/// What a reader may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Bytes of decompressed buffers that are open at a time.
    ///
    /// Beyond them the next buffer waits until one of the others is done, and its records may come late. At most 1 GiB, which
    /// is the default; a trace whose header promises smaller or fewer buffers is held to less.
    pub open_limit: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            open_limit: 1 << 30,
        }
    }
}

impl Options {
    /// These options with another [`open_limit`](Self::open_limit).
    pub fn with_open_limit(mut self, bytes: u64) -> Self {
        self.open_limit = bytes;
        self
    }
}
