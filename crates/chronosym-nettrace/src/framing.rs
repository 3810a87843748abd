//! How the bytes of a file are framed: as events, objects or blocks.

use crate::netperf::MetadataForm;

/// The first bytes of a .nettrace file.
pub(crate) const NETTRACE: &[u8] = b"Nettrace";

/// Larger blocks than this, event blocks aside, are not read: real ones stay below 1 MB.
pub(crate) const LARGEST_BLOCK: u32 = 256 << 20;

/// How a file is framed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// V1, V2: one event after the other.
    Events(MetadataForm),
    /// V3: objects with blocks of netperf events.
    NetperfObjects,
    /// V4: objects with blocks.
    Objects,
    /// V6: blocks.
    Blocks,
}

/// The result of a search for the next block.
pub(crate) enum Search {
    /// A block starts at this position.
    Found(usize),
    /// No block starts before this position; more bytes are needed to search further.
    NotBefore(usize),
}
