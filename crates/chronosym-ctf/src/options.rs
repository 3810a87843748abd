/// How much is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Bytes of metadata beyond which it is refused: 16 MiB, some ten times what describes all that a kernel can trace.
    pub metadata_limit: usize,
    /// Bytes of a packet that are held, one packet a stream; what goes beyond is left out: 64 MiB.
    pub packet_limit: usize,
    /// Bytes of the packets of all streams that are held at a time; what goes beyond is left out: 1 GiB.
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
