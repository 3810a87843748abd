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

/// What the search for the next block comes to.
pub(crate) enum Search {
    /// One begins at this position.
    Found(usize),
    /// None begins before this position; from there on more bytes are needed to say.
    NotBefore(usize),
}
