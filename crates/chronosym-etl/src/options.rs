/// Limits of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Decompressed bytes of open buffers.
    ///
    /// At the limit the next buffer waits until another one is done, and its records may be late.
    /// At most 1 GiB, which is the default; less if the trace's header states smaller or fewer
    /// buffers.
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
