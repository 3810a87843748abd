/// Limits of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Maximum size of metadata in bytes; larger metadata is an error. The default is 16 MiB, about
    /// ten times the size of a kernel's tracepoints.
    pub metadata_limit: usize,
    /// Bytes of a packet that are held, one packet per stream; the rest is skipped. 64 MiB unless
    /// set.
    pub packet_limit: usize,
    /// Maximum bytes of the held packets of all streams; the rest is skipped. The default is 1 GiB.
    pub open_limit: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            metadata_limit: 16 << 20,
            packet_limit: 64 << 20,
            open_limit: 1 << 30,
        }
    }
}

impl Options {
    /// With this [`packet_limit`](Self::packet_limit).
    pub fn with_packet_limit(self, packet_limit: usize) -> Self {
        Options {
            packet_limit,
            ..self
        }
    }
}
