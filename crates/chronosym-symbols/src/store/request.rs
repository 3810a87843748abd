//! A request for a symbol file.

use crate::identity::Wanted;

/// A request to the stores.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// The kind and identity of the file.
    pub wanted: Wanted,
    /// Its possible names or paths, the likeliest first. Untrusted.
    pub names: Vec<String>,
    /// Paths where the trace recorded it. Untrusted; opened only with
    /// [`StoreConfig::trust_trace_paths`](super::StoreConfig::trust_trace_paths).
    pub trace_paths: Vec<String>,
    /// The locations to search.
    pub reach: Reach,
}

/// The locations to search. The search for embedded symbols is between the two halves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reach {
    /// Everything.
    #[default]
    All,
    /// The user's folders and, if trusted, the trace's paths.
    Folders,
    /// The symbol path and debuginfod.
    Stores,
}

impl Request {
    /// Creates a file called `name`, everywhere.
    pub fn new(wanted: Wanted, name: impl Into<String>) -> Self {
        Self {
            wanted,
            names: vec![name.into()],
            trace_paths: Vec::new(),
            reach: Reach::All,
        }
    }

    /// Adds a possible name, such as the one in a `.gnu_debuglink`.
    #[must_use]
    pub fn or_named(mut self, name: impl Into<String>) -> Self {
        self.names.push(name.into());
        self
    }

    /// Adds a path where the trace recorded the file.
    #[must_use]
    pub fn at_trace_path(mut self, path: impl Into<String>) -> Self {
        self.trace_paths.push(path.into());
        self
    }

    /// Restricts the locations to search.
    #[must_use]
    pub fn within(mut self, reach: Reach) -> Self {
        self.reach = reach;
        self
    }
}
