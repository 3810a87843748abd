//! When things begin and end, by what events say of them.

use chronosym_events::Action;
use chronosym_timeline::{End, Start};

/// Whether a thing is known to have ended by a time.
pub(crate) fn has_ended(end: End, time: u64) -> bool {
    matches!(end, End::At(at) if at <= time)
}

/// When a thing that an action speaks of began and ended.
pub(crate) fn life_of(action: Action, time: u64) -> (Start, End) {
    match action {
        Action::Load => (Start::At(time), End::Open),
        Action::Unload => (Start::Before(time), End::At(time)),
        Action::DCStart => (Start::Before(time), End::Open),
        Action::DCEnd => (Start::Before(time), End::After(time)),
    }
}

/// From when on a thing can have been there.
pub(crate) fn floor(begin: Start) -> u64 {
    match begin {
        Start::At(time) => time,
        Start::Before(_) | Start::Unbounded => 0,
    }
}

/// Whether a thing is known to have ended.
pub(crate) fn is_over(end: End) -> bool {
    matches!(end, End::At(_))
}
