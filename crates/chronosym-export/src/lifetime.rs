//! Lifetimes, as text and as JSON.

use std::fmt;

use chronosym_core::{End, Start};
use serde::ser::SerializeMap;

use crate::object::{Fields, Object};
use crate::units::show_time;

/// A lifetime in ns from the start of the trace.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lifetime {
    from_ns: Option<u64>,
    to_ns: Option<u64>,
    /// `from_ns` is inferred from events of other code.
    from_inferred: bool,
    to_inferred: bool,
    /// The start is not after this time.
    before_ns: Option<u64>,
    /// The end is not before this time.
    after_ns: Option<u64>,
}

impl Fields for Lifetime {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        object
            .some("from_ns", self.from_ns)
            .some("to_ns", self.to_ns)
            .flag("from_inferred", self.from_inferred)
            .flag("to_inferred", self.to_inferred)
            .some("before_ns", self.before_ns)
            .some("after_ns", self.after_ns);
    }
}

/// `start..end`; `~` marks an inferred bound, `<` a start before that time, `>` an end after it.
impl fmt::Display for Lifetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = |at: Option<u64>, inferred, seen: Option<u64>, mark| match (at, seen) {
            (Some(at), _) if inferred => format!("~{}", show_time(at)),
            (Some(at), _) => show_time(at),
            (None, Some(at)) => format!("{mark}{}", show_time(at)),
            (None, None) => String::new(),
        };
        let from = bound(self.from_ns, self.from_inferred, self.before_ns, '<');
        let to = bound(self.to_ns, self.to_inferred, self.after_ns, '>');
        f.pad(&format!("{from}..{to}"))
    }
}

impl From<chronosym_core::Lifetime> for Lifetime {
    fn from(lifetime: chronosym_core::Lifetime) -> Self {
        let from_ns = Some(lifetime.from).filter(|&at| at > 0 || lifetime.from_known);
        let to_ns = Some(lifetime.to).filter(|&at| at < u64::MAX);
        Lifetime {
            from_ns,
            to_ns,
            from_inferred: from_ns.is_some() && !lifetime.from_known,
            to_inferred: to_ns.is_some() && !lifetime.to_known,
            ..Lifetime::default()
        }
    }
}

impl From<(Start, End)> for Lifetime {
    fn from((start, end): (Start, End)) -> Self {
        let mut lifetime = Lifetime::default();
        match start {
            Start::At(at) => lifetime.from_ns = Some(at),
            Start::Before(at) => lifetime.before_ns = Some(at),
            Start::Unbounded => {}
        }
        match end {
            End::At(at) => lifetime.to_ns = Some(at),
            End::After(at) => lifetime.after_ns = Some(at),
            End::Open => {}
        }
        lifetime
    }
}
