//! Reports of the runtime's own events, from traces written by hand: compares each pairing with a
//! naive model or with numbers counted by hand.

mod allocations;
mod collections;
mod compilations;
mod decisions;
mod exceptions;
mod histories;
mod known;
mod locks;
mod thread_pool;
mod trace;
mod weights;

use chronosym::runtime::{Allocations, Collections, Report};

use crate::trace::{Trace, all, clr};

#[test]
fn an_empty_trace_has_nothing() {
    for report in Report::ALL {
        let mut trace = Trace::new();
        trace.event((200, 0), (10, 1), clr());
        let timeline = trace.read(report);
        assert_eq!(timeline.kept_events().count(), 0);
        assert!(Collections::new(&timeline, &all()).collections.is_empty());
        assert!(Allocations::new(&timeline, &all()).event.is_none());
    }
}
