//! Lost events, counted while a recording is written.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use chronosym_export::show_count;
use chronosym_nettrace::{Error, Options, Reader};

use crate::progress;

/// Time between two notes.
const EVERY: Duration = Duration::from_secs(5);
/// How often the file is read.
const POLL: Duration = Duration::from_millis(200);
/// Memory for the events between two sequence points. Some of more are counted later.
const MEMORY: usize = 16 << 20;

/// Reads a recording behind its writer, which it never delays, and notes losses.
pub struct Losses {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Losses {
    pub fn follow(path: &Path) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (path, over) = (path.to_owned(), is_over.clone());
        // What cannot be read is reported by those who read the recording.
        let thread = thread::Builder::new().name("losses".to_owned());
        let thread = thread.spawn(move || _ = count(&path, over)).ok();
        Losses { is_over, thread }
    }

    /// Reads the rest.
    pub fn end(self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread {
            _ = thread.join();
        }
    }
}

fn count(path: &PathBuf, is_over: Arc<AtomicBool>) -> Result<(), Error> {
    let growing = Growing {
        file: File::open(path).map_err(|source| Error::Io { offset: 0, source })?,
        is_over: is_over.clone(),
    };
    let mut reader = Reader::new(growing, Options::default().with_region_limit(MEMORY))?;
    reader.select(|_| false);
    let mut noted = 0;
    let mut last: Option<Instant> = None;
    loop {
        let is_end = reader.next_region()?.is_none();
        let lost = reader.diagnostics().lost_events();
        let is_due = last.is_none_or(|last| last.elapsed() >= EVERY);
        if lost > noted && (is_end || is_due) {
            (noted, last) = (lost, Some(Instant::now()));
            let so_far = if is_end { "" } else { " so far" };
            progress::note(&format!(
                "{}: {} events lost{so_far}: the runtime's buffer was full (--buffer enlarges it)",
                path.display(),
                show_count(lost)
            ));
        }
        if is_end {
            return Ok(());
        }
    }
}

/// A file that is being written.
struct Growing {
    file: File,
    is_over: Arc<AtomicBool>,
}

impl Read for Growing {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let is_over = self.is_over.load(Ordering::Relaxed);
            let count = self.file.read(into)?;
            if count > 0 || is_over {
                return Ok(count);
            }
            thread::sleep(POLL);
        }
    }
}
