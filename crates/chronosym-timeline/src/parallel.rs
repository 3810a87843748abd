//! Work on two threads.

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
