//! When recordings end.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::args::Record;
use crate::{interrupt, progress};

/// The end that several recordings have in common.
pub struct Ending {
    /// When the first of them began.
    began: OnceLock<Instant>,
    duration: Option<Duration>,
    is_over: AtomicBool,
    has_reached_size: AtomicBool,
    /// Of all recordings.
    bytes: AtomicU64,
    max_bytes: u64,
}

impl Ending {
    pub fn new(args: &Record) -> Self {
        Ending {
            began: OnceLock::new(),
            duration: args.duration.map(Duration::from_nanos),
            is_over: AtomicBool::new(false),
            has_reached_size: AtomicBool::new(false),
            bytes: AtomicU64::new(0),
            max_bytes: args.max_size.unwrap_or(u64::MAX),
        }
    }

    /// Returns since when the first recording runs.
    pub fn began(&self) -> Instant {
        *self.began.get_or_init(Instant::now)
    }

    /// Ends the recordings.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Whether the recordings are to end.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
            || interrupt::is_caught()
            || self.is_late()
            || self.reaches_size()
    }

    fn is_late(&self) -> bool {
        let began = self.began.get().zip(self.duration);
        began.is_some_and(|(began, duration)| began.elapsed() >= duration)
    }

    fn reaches_size(&self) -> bool {
        let reaches = self.bytes() >= self.max_bytes;
        self.has_reached_size.fetch_or(reaches, Ordering::Relaxed);
        reaches
    }

    /// Whether the recordings ended since they reached their size: the lists of code at their ends
    /// do not count.
    pub fn has_reached_size(&self) -> bool {
        self.has_reached_size.load(Ordering::Relaxed)
    }

    /// Adds bytes of a recording.
    pub fn add(&self, bytes: u64) {
        let all = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        progress::recording(self.began(), all.saturating_add(bytes));
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub fn max_bytes(&self) -> u64 {
        self.max_bytes
    }
}
