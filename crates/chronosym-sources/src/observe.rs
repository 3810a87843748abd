//! Looking at every record while a trace is read into a session.

use std::ops::ControlFlow;

use chronosym_events::RawEvent;

/// A record, as an observer sees it before it goes into the session.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Seen<'a> {
    /// The event; [`RawEvent::decode`] and [`RawEvent::fields`] say what is in it.
    pub event: &'a RawEvent<'a>,
    /// The stack that the record carries, innermost address first. In .etl files most stacks are events of their own, which
    /// follow the event that they are of.
    pub stack: &'a [u64],
    /// Progress: of EventPipe traces how many bytes of the source were read, of .etl files how many bytes of payloads.
    pub bytes: u64,
}

/// What an observer is: it sees each record, and says whether reading goes on.
pub type Observer<'o> = dyn FnMut(Seen<'_>) -> ControlFlow<()> + 'o;
