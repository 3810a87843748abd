//! Work on two threads.

use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Returns whether there is another processor.
pub(crate) fn is_available() -> bool {
    thread::available_parallelism().is_ok_and(|processors| processors.get() > 1)
}

/// Returns the results of all parts of some work, in order. Two threads take the parts, if there
/// are several.
pub(crate) fn each<P: Sync, R: Send + Sync>(parts: &[P], work: impl Fn(&P) -> R + Sync) -> Vec<R> {
    if parts.len() < 2 {
        return parts.iter().map(work).collect();
    }
    let results: Vec<_> = parts.iter().map(|_| OnceLock::new()).collect();
    let next = AtomicUsize::new(0);
    let run = || {
        let take = || next.fetch_add(1, Ordering::Relaxed);
        while let at = take()
            && let Some(part) = parts.get(at)
        {
            results[at].get_or_init(|| work(part));
        }
    };
    thread::scope(|scope| {
        // If the thread cannot be spawned, this one takes all parts.
        _ = thread::Builder::new().spawn_scoped(scope, run);
        run();
    });
    results
        .into_iter()
        .filter_map(OnceLock::into_inner)
        .collect()
}

/// Fewer items are not worth a thread.
const MANY: usize = if cfg!(test) { 1 } else { 1 << 14 };

/// Returns the results of two functions that process some items. For many items, another thread
/// runs the second.
pub(crate) fn both<A, B: Send>(
    items: usize,
    here: impl FnOnce() -> A,
    there: impl Fn() -> B + Sync,
) -> (A, B) {
    // Asking for processors takes longer than a few items.
    if items < MANY || !is_available() {
        return (here(), there());
    }
    thread::scope(|scope| {
        let spawned = thread::Builder::new().spawn_scoped(scope, &there);
        let first = here();
        let second = match spawned {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            // The thread cannot be spawned.
            Err(_) => there(),
        };
        (first, second)
    })
}
