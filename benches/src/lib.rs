//! Input of benches and comparisons with peers, and the peers behind one trait.
#![deny(missing_docs)]

pub mod measure;
pub mod peers;
pub mod trace;
pub mod workload;

/// Returns the size of an input: a hundredth without optimization, where `cargo test --benches` only
/// shows that the benches work.
pub fn size(full: usize) -> usize {
    match cfg!(debug_assertions) {
        true => full.div_ceil(100),
        false => full,
    }
}
