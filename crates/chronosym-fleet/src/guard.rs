//! Decoders of other crates, which panic at some damaged bytes.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static IS_DECODING: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether this thread decodes a table. A panic is then an error about the table, which a
/// panic hook need not report.
pub fn is_decoding() -> bool {
    IS_DECODING.get()
}

/// Turns a panic of a decoder into an error.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let failed = |_| Err("it is damaged".to_owned());
    let outer = IS_DECODING.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(failed);
    IS_DECODING.set(outer);
    result
}
