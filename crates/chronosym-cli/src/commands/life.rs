//! When something was there: for people and for programs.

use std::fmt;

use chronosym::{Begin, End, Life};
use serde::Serialize;
use serde_with::skip_serializing_none;

use crate::units::show_time;

/// Times in ns since the trace began. What is absent is not known.
#[skip_serializing_none]
#[derive(Clone, Copy, Default, Serialize)]
pub struct LifeObject {
    from_ns: Option<u64>,
    to_ns: Option<u64>,
    /// Others say so, not its own events.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    from_inferred: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    to_inferred: bool,
    /// When it was there already.
    before_ns: Option<u64>,
    /// When it was there still.
    after_ns: Option<u64>,
}

impl LifeObject {
    /// Whether it was there at a time.
    pub fn contains(&self, time: u64) -> bool {
        self.from_ns.is_none_or(|from| from <= time) && self.to_ns.is_none_or(|to| time < to)
    }
}

/// `begin..end`; `~` where one is inferred, `<` where it was there already, `>` where it was there still.
impl fmt::Display for LifeObject {
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

impl From<Life> for LifeObject {
    fn from(life: Life) -> Self {
        let from_ns = Some(life.from).filter(|&at| at > 0 || life.from_known);
        let to_ns = Some(life.to).filter(|&at| at < u64::MAX);
        LifeObject {
            from_ns,
            to_ns,
            from_inferred: from_ns.is_some() && !life.from_known,
            to_inferred: to_ns.is_some() && !life.to_known,
            ..LifeObject::default()
        }
    }
}

impl From<(Begin, End)> for LifeObject {
    fn from((begin, end): (Begin, End)) -> Self {
        let mut life = LifeObject::default();
        match begin {
            Begin::At(at) => life.from_ns = Some(at),
            Begin::Before(at) => life.before_ns = Some(at),
            Begin::Unbounded => {}
        }
        match end {
            End::At(at) => life.to_ns = Some(at),
            End::After(at) => life.after_ns = Some(at),
            End::Open => {}
        }
        life
    }
}
