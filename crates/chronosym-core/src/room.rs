//! The room that the memory budget of a live session leaves.

/// Whether a live session has reached its memory budget.
#[derive(Debug)]
pub(crate) struct Room {
    /// Number of events until the memory is measured again.
    pub unmeasured: usize,
    pub left: Left,
    /// The loss that the events left out now belong to, by its index in the session.
    pub loss: Option<usize>,
}

/// What a live session still takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Everything.
    All,
    /// Ends of code, images and processes: memory for them is reserved, because dropping what ended
    /// frees memory.
    Ends,
    /// Nothing.
    Nothing,
}

impl Room {
    pub fn new() -> Self {
        Room {
            unmeasured: 0,
            left: Left::All,
            loss: None,
        }
    }

    /// Compares the memory in use with the budget; the next `events` events do not change it much.
    /// An eighth of the budget is for ends.
    pub fn measured(&mut self, used: u64, bytes: u64, events: usize) {
        self.left = match used {
            used if used < bytes - bytes / 8 => Left::All,
            used if used < bytes => Left::Ends,
            _ => Left::Nothing,
        };
        self.unmeasured = events;
        if self.left == Left::All {
            self.loss = None;
        }
    }
}
