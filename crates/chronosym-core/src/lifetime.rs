//! Starts and ends of lifetimes, as events state them.

use chronosym_events::Action;
use chronosym_timeline::{End, Start};

/// Returns whether a lifetime is known to have ended by `time`.
pub(crate) fn has_ended(end: End, time: u64) -> bool {
    matches!(end, End::At(at) if at <= time)
}

/// Returns the bounds that an event states.
pub(crate) fn lifetime_of(action: Action, time: u64) -> (Start, End) {
    match action {
        Action::Load => (Start::At(time), End::Open),
        Action::Unload => (Start::Before(time), End::At(time)),
        Action::DCStart => (Start::Before(time), End::Open),
        Action::DCEnd => (Start::Before(time), End::After(time)),
    }
}

/// Returns the earliest time at which a lifetime can start.
pub(crate) fn floor(start: Start) -> u64 {
    match start {
        Start::At(time) => time,
        Start::Before(_) | Start::Unbounded => 0,
    }
}

/// Returns whether the time of the end is known.
pub(crate) fn is_over(end: End) -> bool {
    matches!(end, End::At(_))
}
