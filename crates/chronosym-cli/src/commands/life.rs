//! When something was there: for people and for programs.

use chronosym::{Begin, End, Life};
use serde::Serialize;

use crate::units::show_time;

/// `begin..end`; `~` where one is inferred.
pub fn show(life: Life) -> String {
    let from = match (life.from, life.from_known) {
        (0, false) => String::new(),
        (at, true) => show_time(at),
        (at, false) => format!("~{}", show_time(at)),
    };
    let to = match (life.to, life.to_known) {
        (u64::MAX, _) => String::new(),
        (at, true) => show_time(at),
        (at, false) => format!("~{}", show_time(at)),
    };
    format!("{from}..{to}")
}

/// `begin..end`; `<` where it was there already, `>` where it was there still.
pub fn show_known(begin: Begin, end: End) -> String {
    let from = match begin {
        Begin::At(at) => show_time(at),
        Begin::Before(at) => format!("<{}", show_time(at)),
        Begin::Unbounded => String::new(),
    };
    let to = match end {
        End::At(at) => show_time(at),
        End::After(at) => format!(">{}", show_time(at)),
        End::Open => String::new(),
    };
    format!("{from}..{to}")
}

/// Times in ns since the trace began. What is absent is not known.
#[derive(Clone, Copy, Default, Serialize)]
pub struct LifeObject {
    #[serde(skip_serializing_if = "Option::is_none")]
    from_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_ns: Option<u64>,
    /// Others say so, not its own events.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    from_inferred: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    to_inferred: bool,
    /// When it was there already.
    #[serde(skip_serializing_if = "Option::is_none")]
    before_ns: Option<u64>,
    /// When it was there still.
    #[serde(skip_serializing_if = "Option::is_none")]
    after_ns: Option<u64>,
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
