/// Everything about a trace that was not as it should be, counted over all its streams.
///
/// It grows while the trace is read and is complete once [`next_event`](crate::Reader::next_event) has returned `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostics {
    /// Bytes read from all streams.
    pub bytes_read: u64,
    /// Packets begun.
    pub packets: u64,
    /// Events delivered.
    pub events: u64,
    /// Definitions in the metadata that could not be read; events that need them are unknown.
    pub bad_definitions: u64,
    /// Streams of a trace whose metadata is not at hand, left out.
    pub unknown_streams: u64,
    /// Packets of which not all could be read: an event of an unknown type, a length that lies, a header that is none.
    pub bad_packets: u64,
    /// Bytes that were left out in such packets.
    pub bytes_skipped: u64,
    /// Streams that end inside a packet.
    pub cut_streams: u64,
    /// Events whose time lies before that of an event that was delivered; they are delivered with its time.
    pub late_events: u64,
    /// Events for which the recorder had no room.
    pub lost_events: u64,
    /// Packets that the recorder wrote over or that are missing, by their numbers.
    pub lost_packets: u64,
    /// When events were lost.
    pub losses: Vec<Loss>,
}

/// A time in which events of one stream were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// ns on the clock of the first trace.
    pub from_ns: u64,
    /// ns on the clock of the first trace.
    pub to_ns: u64,
    /// How many events; `None` where whole packets are missing.
    pub events: Option<u64>,
}

impl Diagnostics {
    /// Whether all streams were whole and read entirely, and nothing was lost.
    pub fn is_clean(&self) -> bool {
        let counted = Self {
            bytes_read: self.bytes_read,
            packets: self.packets,
            events: self.events,
            ..Self::default()
        };
        *self == counted
    }

    /// Events for which the recorder had no room.
    pub fn lost_events(&self) -> u64 {
        self.lost_events
    }
}
