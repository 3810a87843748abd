//! The size to which compressed data may decompress.

/// Returns the number of bytes to which `packed` bytes may decompress. Real symbol files decompress
/// to five or ten times their size.
pub(crate) fn unpack_limit(packed: u64) -> u64 {
    const FREE: u64 = 8 << 20;
    const RATIO: u64 = 64;
    packed.saturating_mul(RATIO).max(FREE)
}
