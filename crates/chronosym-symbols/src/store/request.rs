//! What is asked for.

use crate::identity::Wanted;

/// One question to the stores.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// What the file must be.
    pub wanted: Wanted,
    /// What it may be called, the likeliest first; full paths will do. Untrusted.
    pub names: Vec<String>,
    /// Paths at which the trace says that it stood. Untrusted; opened only with [`StoreConfig::trust_trace_paths`](super::StoreConfig::trust_trace_paths).
    pub trace_paths: Vec<String>,
    /// Which places to search.
    pub reach: Reach,
}

/// Which places are searched: what is embedded in a module comes between the two halves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reach {
    /// Everything.
    #[default]
    All,
    /// The user's folders and, where trusted, the trace's paths.
    Folders,
    /// The symbol path and debuginfod.
    Stores,
}

impl Request {
    /// A file called `name`, everywhere.
    pub fn new(wanted: Wanted, name: impl Into<String>) -> Self {
        Self {
            wanted,
            names: vec![name.into()],
            trace_paths: Vec::new(),
            reach: Reach::All,
        }
    }

    /// It may also be called `name` (the name in a `.gnu_debuglink`, say).
    #[must_use]
    pub fn or_named(mut self, name: impl Into<String>) -> Self {
        self.names.push(name.into());
        self
    }

    /// The trace says that it stood at `path`.
    #[must_use]
    pub fn at_trace_path(mut self, path: impl Into<String>) -> Self {
        self.trace_paths.push(path.into());
        self
    }

    /// Searches only a part of the places.
    #[must_use]
    pub fn within(mut self, reach: Reach) -> Self {
        self.reach = reach;
        self
    }
}
