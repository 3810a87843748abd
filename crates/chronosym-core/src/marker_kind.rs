//! The kinds of markers, and how event types mark them.

use chronosym_types::closed_list;

closed_list! {
    /// A kind of runtime activity.
    #[non_exhaustive]
    MarkerKind {
        /// A garbage collection.
        Collection = "GC",
        /// A suspension of all threads, most often for a garbage collection.
        Pause = "pause",
        /// An exception that was thrown.
        Exception = "exception",
        /// A thread that waited for a lock.
        Contention = "contention",
        /// A compilation of a method.
        Compilation = "JIT",
        /// A suspension of all threads to sample them: wall-clock samples were taken meanwhile, and
        /// the runtime states no other reason.
        SamplerPause = "sampler pause",
    }
}

/// The part of a marker that an event states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Instant,
    Start,
    End,
}

/// The mark of an event type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub kind: MarkerKind,
    pub phase: Phase,
}
