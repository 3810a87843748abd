//! The kinds of markers, and how event types mark them.

/// What a runtime did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum MarkerKind {
    /// A garbage collection.
    Collection,
    /// A suspension of all threads, most often for a garbage collection.
    Pause,
    /// An exception that was thrown.
    Exception,
    /// A thread that waited for a lock.
    Contention,
    /// A compilation of a method.
    Compilation,
}

impl MarkerKind {
    /// All kinds.
    pub const ALL: [MarkerKind; 5] = [
        MarkerKind::Collection,
        MarkerKind::Pause,
        MarkerKind::Exception,
        MarkerKind::Contention,
        MarkerKind::Compilation,
    ];

    /// Returns the spelling in outputs.
    pub const fn as_str(self) -> &'static str {
        match self {
            MarkerKind::Collection => "GC",
            MarkerKind::Pause => "pause",
            MarkerKind::Exception => "exception",
            MarkerKind::Contention => "contention",
            MarkerKind::Compilation => "JIT",
        }
    }
}

/// The part of a marker that an event states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Instant,
    Start,
    End,
}

/// What an event type marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub kind: MarkerKind,
    pub phase: Phase,
}
