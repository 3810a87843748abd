/// What was damaged, lost or unknown, counted over all streams of a trace.
///
/// It grows while the trace is read and is complete once [`next_event`](crate::Reader::next_event)
/// has returned `None`.
///
/// # Examples
///
/// ```
/// use chronosym_ctf::{Metadata, Options, Reader, Source};
/// # use chronosym_support::ctf::{CtfEvent, CtfLayout, CtfTrace, CtfType, CtfValue};
/// # let mut trace = CtfTrace::new(CtfLayout::default(), &[]);
/// # let id = trace.event("app:request", &[]);
/// # let event = |time| CtfEvent { time, id, context: vec![], fields: vec![] };
/// # let metadata = trace.metadata();
/// # let mut stream = trace.packet(0, 0, 0, &[event(100)]);
/// # stream.extend(trace.packet(1, 12, 0, &[event(200)]));
///
/// // A stream whose tracer discarded 12 events before its second packet ended.
/// let traces = vec![Metadata::parse(&metadata, Options::default())?];
/// let mut reader = Reader::new(Source { traces, streams: vec![&stream[..]] }, Options::default())?;
/// while reader.next_event()?.is_some() {}
/// assert_eq!(reader.diagnostics().lost_events(), 12);
/// # Ok::<(), chronosym_ctf::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostics {
    /// Bytes read from all streams.
    pub bytes_read: u64,
    /// Number of packets started.
    pub packets: u64,
    /// Events delivered.
    pub events: u64,
    /// Definitions in the metadata that could not be parsed; events that need them are unknown.
    pub bad_definitions: u64,
    /// Streams of a trace whose metadata is missing; they are skipped.
    pub unknown_streams: u64,
    /// Packets that could not be read entirely: an unknown event type, a wrong length, a malformed
    /// header.
    pub bad_packets: u64,
    /// Bytes skipped in such packets.
    pub bytes_skipped: u64,
    /// Streams that end inside a packet.
    pub cut_streams: u64,
    /// Events that are earlier than one already delivered; they are delivered with its time.
    pub late_events: u64,
    /// Events that the recorder discarded.
    pub lost_events: u64,
    /// Packets that are missing, by their sequence numbers.
    pub lost_packets: u64,
    /// When events were lost or cannot be read.
    pub losses: Vec<Loss>,
}

/// An interval in which events of one stream were lost, or cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// ns on the clock of the first trace.
    pub from_ns: u64,
    /// ns on the clock of the first trace.
    pub to_ns: u64,
    /// Events lost; `None` if packets are missing or cannot be read entirely.
    pub events: Option<u64>,
}

impl Diagnostics {
    /// Returns whether all streams were whole and read entirely, and nothing was lost.
    pub fn is_clean(&self) -> bool {
        let counted = Self {
            bytes_read: self.bytes_read,
            packets: self.packets,
            events: self.events,
            ..Self::default()
        };
        *self == counted
    }

    /// Events that the recorder discarded.
    pub fn lost_events(&self) -> u64 {
        self.lost_events
    }
}
