//! Progress of reading: on a terminal only, once it has taken half a second.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use chronosym_types::escape::terminal;

/// Delay of the first line; updates follow at a quarter of it or slower.
const PATIENCE: Duration = Duration::from_millis(500);

static BEGIN: OnceLock<Instant> = OnceLock::new();
static ENDED: AtomicBool = AtomicBool::new(false);
static QUIET: AtomicBool = AtomicBool::new(false);
static SHOWN: AtomicBool = AtomicBool::new(false);
static LAST_MS: AtomicU64 = AtomicU64::new(0);

/// Enables progress if standard error is a terminal.
pub fn begin(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
    if !quiet && io::stderr().is_terminal() {
        let _ = BEGIN.set(Instant::now());
    }
}

/// Disables progress, for commands that write results while they read.
pub fn end() {
    clear();
    ENDED.store(true, Ordering::Relaxed);
}

/// Clears the progress line before other output.
pub fn clear() {
    if SHOWN.swap(false, Ordering::Relaxed) {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
}

/// Writes a diagnostic to standard error, unless suppressed.
pub fn note(note: &str) {
    hint(&format!("note: {note}"));
}

/// Writes diagnostics to standard error, unless suppressed.
pub fn notes(notes: &[impl Display]) {
    notes.iter().for_each(|text| note(&text.to_string()));
}

/// Writes a hint to standard error, unless only errors are requested.
pub fn hint(text: &str) {
    if !QUIET.load(Ordering::Relaxed) {
        say(text);
    }
}

/// Writes a line to standard error, ignoring errors.
pub fn say(text: &str) {
    clear();
    let _ = writeln!(io::stderr(), "chronosym: {}", terminal(text));
}

/// Updates the number of bytes read.
pub fn show(done: u64, total: Option<u64>) {
    let mb = |bytes: u64| bytes / 1_000_000;
    update(|| match total {
        Some(total) if total > 0 => format!(
            "reading: {} of {} MB ({} %)",
            mb(done),
            mb(total),
            done.min(total).saturating_mul(100) / total
        ),
        _ => format!("reading: {} MB", mb(done)),
    });
}

/// Updates the time and size of a recording.
#[cfg(unix)]
pub fn recording(since: Instant, bytes: u64) {
    update(|| {
        let seconds = since.elapsed().as_secs();
        format!("{seconds} s, {:.1} MB", bytes as f64 / 1e6)
    });
}

fn update(text: impl FnOnce() -> String) {
    let Some(begin) = BEGIN.get() else {
        return;
    };
    let now = begin.elapsed();
    let ms = now.as_millis() as u64;
    let since = ms.saturating_sub(LAST_MS.load(Ordering::Relaxed));
    let too_soon = now < PATIENCE || since < PATIENCE.as_millis() as u64 / 4;
    if too_soon || ENDED.load(Ordering::Relaxed) {
        return;
    }
    LAST_MS.store(ms, Ordering::Relaxed);
    SHOWN.store(true, Ordering::Relaxed);
    let _ = write!(io::stderr(), "\r\x1b[K{}", text());
}
