//! Removes temporary files when the process is interrupted.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};

static PATHS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
static HANDLER: Once = Once::new();
/// Whether the next signal is counted instead of ending the process.
static CATCHES: AtomicBool = AtomicBool::new(false);
static CAUGHT: AtomicBool = AtomicBool::new(false);

/// Shells report a program ended by a signal with this status and the number of the signal.
const ENDED_BY_SIGNAL: i32 = 128;

/// Makes a file or folder, if any, that is removed if SIGINT, SIGTERM or SIGHUP (on Windows Ctrl+C or
/// closing the console) ends the process. A signal that arrives during `make` waits for its end.
pub fn make<T, E>(
    make: impl FnOnce() -> Result<T, E>,
    path: impl FnOnce(&T) -> Option<&Path>,
) -> Result<T, E> {
    // Without a handler the signal still ends the process, and the file stays.
    HANDLER.call_once(handle_signals);
    with_paths(|paths| {
        let made = make()?;
        paths.extend(path(&made).map(Path::to_owned));
        Ok(made)
    })
}

/// Takes back [`make`].
pub fn keep(path: &Path) {
    with_paths(|paths| paths.retain(|kept| kept != path));
}

/// Counts a signal instead of ending the process, until [`release`]. A second one ends the process.
#[cfg(unix)]
pub fn catch() {
    CAUGHT.store(false, Ordering::Relaxed);
    CATCHES.store(true, Ordering::Relaxed);
    HANDLER.call_once(handle_signals);
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

#[cfg(unix)]
fn handle_signals() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    let ignored = ignored_signals();
    let handled = [SIGINT, SIGTERM, SIGHUP].into_iter();
    let handled = handled.filter(|signal| ignored >> (signal - 1) & 1 == 0);
    let Ok(mut signals) = Signals::new(handled) else {
        return;
    };
    let thread = std::thread::Builder::new().name("signals".to_owned());
    _ = thread.spawn(move || signals.forever().for_each(end));
}

/// Returns the signals that the process ignores, as bits: those of background jobs, and SIGHUP of
/// `nohup`. Elsewhere than on Linux it is unknown.
#[cfg(unix)]
fn ignored_signals() -> u64 {
    signals("SigIgn:")
}

/// Returns a mask of signals of this process by its name in `/proc`.
#[cfg(unix)]
fn signals(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix(name));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(not(unix))]
fn handle_signals() {
    const INTERRUPT: i32 = 2;
    _ = ctrlc::set_handler(|| end(INTERRUPT));
}

/// Runs on a thread of its own.
fn end(signal: i32) {
    if CATCHES.swap(false, Ordering::Relaxed) {
        CAUGHT.store(true, Ordering::Relaxed);
        return;
    }
    with_paths(|paths| {
        for path in paths.drain(..) {
            if std::fs::remove_file(&path).is_err() {
                _ = std::fs::remove_dir_all(&path);
            }
        }
        std::process::exit(ENDED_BY_SIGNAL + signal)
    })
}

fn with_paths<T>(act: impl FnOnce(&mut Vec<PathBuf>) -> T) -> T {
    act(&mut PATHS.lock().unwrap_or_else(PoisonError::into_inner))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// A signal can arrive as soon as the file exists.
    #[test]
    fn a_file_is_not_older_than_the_handler() {
        let make_one = || {
            let caught = signals("SigCgt:");
            tempfile::NamedTempFile::new().map(|file| (caught, file))
        };
        let (caught, file) = make(make_one, |(_, file)| Some(file.path())).unwrap();
        for signal in [1, 2, 15] {
            assert_eq!(caught >> (signal - 1) & 1, 1, "signal {signal}");
        }
        assert!(with_paths(|paths| paths.contains(&file.path().to_owned())));
        keep(file.path());
        assert!(with_paths(|paths| paths.is_empty()));
    }
}
