//! What events of the runtime mark. Ids are those of the runtime's manifest, `ClrEtwAll.man`.

use chronosym_events::{EventKey, EventSchema, Provider};

/// What a runtime did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum MarkerKind {
    /// It collected garbage.
    Collection,
    /// It held all threads up, most often to collect.
    Pause,
    /// Code threw an exception.
    Exception,
    /// A thread waited for a lock that another one held.
    Contention,
    /// A method was compiled.
    Compilation,
}

impl MarkerKind {
    /// Every member.
    pub const ALL: [MarkerKind; 5] = [
        MarkerKind::Collection,
        MarkerKind::Pause,
        MarkerKind::Exception,
        MarkerKind::Contention,
        MarkerKind::Compilation,
    ];

    /// The spelling in outputs.
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

/// Where in its time an event stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Moment,
    Begin,
    End,
}

/// What an event type marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub kind: MarkerKind,
    pub phase: Phase,
}

impl Mark {
    /// What events of a type mark, if anything.
    pub fn of(schema: &EventSchema) -> Option<Self> {
        let EventKey::Manifest {
            provider: Provider::Runtime,
            id,
            ..
        } = schema.key()
        else {
            return None;
        };
        let (kind, phase) = match id {
            1 => (MarkerKind::Collection, Phase::Begin),
            2 => (MarkerKind::Collection, Phase::End),
            9 => (MarkerKind::Pause, Phase::Begin),
            3 => (MarkerKind::Pause, Phase::End),
            80 => (MarkerKind::Exception, Phase::Moment),
            81 => (MarkerKind::Contention, Phase::Begin),
            91 => (MarkerKind::Contention, Phase::End),
            145 => (MarkerKind::Compilation, Phase::Begin),
            141 | 143 => (MarkerKind::Compilation, Phase::End),
            _ => return None,
        };
        Some(Mark { kind, phase })
    }
}
