//! What compressed data may unpack to.

/// The most bytes that `packed` bytes may unpack to. Real symbol files unpack to five or ten times their size.
pub(crate) fn unpack_limit(packed: u64) -> u64 {
    const FREE: u64 = 8 << 20;
    const RATIO: u64 = 64;
    packed.saturating_mul(RATIO).max(FREE)
}
