//! Removes temporary files when the process is interrupted.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};

static FILES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
static HANDLER: Once = Once::new();
/// Whether the next signal is counted instead of ending the process.
static CATCHES: AtomicBool = AtomicBool::new(false);
static CAUGHT: AtomicBool = AtomicBool::new(false);

/// The status that shells report for a program ended by Ctrl+C.
const INTERRUPTED: i32 = 130;

/// Removes a file if SIGINT, SIGTERM or SIGHUP (on Windows Ctrl+C or closing the console) ends the process.
pub fn remove_on_signal(path: &Path) {
    with_files(|files| files.push(path.to_owned()));
    // Without a handler the signal still ends the process, and the file stays.
    HANDLER.call_once(|| _ = ctrlc::set_handler(end));
}

/// Takes back [`remove_on_signal`].
pub fn keep(path: &Path) {
    with_files(|files| files.retain(|file| file != path));
}

/// Counts a signal instead of ending the process, until [`release`]. A second one ends the process.
#[cfg(unix)]
pub fn catch() {
    CAUGHT.store(false, Ordering::Relaxed);
    CATCHES.store(true, Ordering::Relaxed);
    HANDLER.call_once(|| _ = ctrlc::set_handler(end));
}

/// Returns whether a signal came since [`catch`].
#[cfg(unix)]
pub fn is_caught() -> bool {
    CAUGHT.load(Ordering::Relaxed)
}

/// Takes back [`catch`].
#[cfg(unix)]
pub fn release() {
    CATCHES.store(false, Ordering::Relaxed);
}

/// Runs on a thread of its own.
fn end() {
    if CATCHES.swap(false, Ordering::Relaxed) {
        CAUGHT.store(true, Ordering::Relaxed);
        return;
    }
    with_files(|files| {
        for file in files.drain(..) {
            _ = std::fs::remove_file(file);
        }
        std::process::exit(INTERRUPTED)
    })
}

fn with_files<T>(act: impl FnOnce(&mut Vec<PathBuf>) -> T) -> T {
    act(&mut FILES.lock().unwrap_or_else(PoisonError::into_inner))
}
