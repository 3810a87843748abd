//! Counts bytes while a recording is read: progress, cancellation, and limits of decompression.

use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use chronosym_etl::ReadAt;

use chronosym_core::{Budget, FREE_OF_RATIO, LimitReached, Limits};

/// Progress of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Bytes read from the inputs, before decompression. Ranges that are read twice count twice.
    pub read: u64,
    /// Total size of the inputs in bytes; `None` if one of them is a pipe.
    pub total: Option<u64>,
}

pub(super) type Watch = dyn Fn(Progress) -> ControlFlow<()> + Send + Sync;

/// Shared by all inputs that are opened together.
pub(super) struct Meter {
    pub limits: Limits,
    watch: Option<Box<Watch>>,
    read: AtomicU64,
    total: AtomicU64,
    unpacked: AtomicU64,
    /// Whether any input is an archive or compressed.
    is_packed: AtomicBool,
    cancelled: AtomicBool,
}

const UNKNOWN: u64 = u64::MAX;

impl Meter {
    pub fn new(limits: Limits, watch: Option<Box<Watch>>) -> Self {
        Meter {
            limits,
            watch,
            read: AtomicU64::new(0),
            total: AtomicU64::new(0),
            unpacked: AtomicU64::new(0),
            is_packed: AtomicBool::new(false),
            cancelled: AtomicBool::new(false),
        }
    }

    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Adds an input's size, if it is known.
    pub fn expect(&self, size: Option<u64>) {
        let total = self.total.load(Ordering::Relaxed);
        let total = size.map_or(UNKNOWN, |size| total.saturating_add(size));
        self.total.store(total, Ordering::Relaxed);
    }

    /// Returns the total size of the inputs in bytes; `None` if one of them is a pipe.
    pub fn input_size(&self) -> Option<u64> {
        Some(self.total.load(Ordering::Relaxed)).filter(|&total| total != UNKNOWN)
    }

    /// Returns the memory budget of the recording.
    pub fn budget(&self) -> Budget {
        // Traces compress five- to tenfold.
        const PACKED: u64 = 8;
        let size = self.input_size();
        let size = size.map(|size| match self.is_packed.load(Ordering::Relaxed) {
            true => size.saturating_mul(PACKED),
            false => size,
        });
        Budget::of(&self.limits, size)
    }

    fn count_read(&self, n: usize) -> io::Result<()> {
        let read = self.read.fetch_add(n as u64, Ordering::Relaxed) + n as u64;
        let Some(watch) = &self.watch else {
            return Ok(());
        };
        let total = self.input_size();
        if self.is_cancelled() || watch(Progress { read, total }).is_break() {
            self.cancelled.store(true, Ordering::Relaxed);
            return Err(io::Error::other(Cancelled));
        }
        Ok(())
    }

    /// Returns how many decompressed bytes may be held at once.
    pub fn may_hold(&self) -> u64 {
        self.limits.held_of(self.total.load(Ordering::Relaxed))
    }

    fn count_unpacked(&self, n: usize) -> io::Result<()> {
        let unpacked = self.unpacked.fetch_add(n as u64, Ordering::Relaxed) + n as u64;
        let (most, ratio) = (self.limits.unpacked_bytes, self.limits.unpacked_ratio);
        let read = self.read.load(Ordering::Relaxed).max(1);
        if unpacked > most {
            Err(io::Error::other(LimitReached::UnpackedBytes(most)))
        } else if unpacked > FREE_OF_RATIO && unpacked / read >= ratio {
            Err(io::Error::other(LimitReached::UnpackedRatio(ratio)))
        } else {
            Ok(())
        }
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.limits.fmt(f)
    }
}

/// The observer cancelled the reading.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("reading was cancelled")]
pub(super) struct Cancelled;

/// Returns an error of this library inside an I/O error.
pub(super) fn is<E: std::error::Error + 'static>(error: &io::Error) -> Option<&E> {
    error.get_ref()?.downcast_ref()
}

/// A source whose bytes are counted.
#[derive(Clone, Debug)]
pub(super) struct Metered<S> {
    pub source: S,
    meter: Arc<Meter>,
    count: fn(&Meter, usize) -> io::Result<()>,
}

impl<S> Metered<S> {
    /// Counts an input's own bytes.
    pub fn input(source: S, meter: &Arc<Meter>) -> Self {
        Metered {
            source,
            meter: meter.clone(),
            count: Meter::count_read,
        }
    }

    /// Counts decompressed bytes.
    pub fn unpacked(source: S, meter: &Arc<Meter>) -> Self {
        meter.is_packed.store(true, Ordering::Relaxed);
        Metered {
            count: Meter::count_unpacked,
            ..Metered::input(source, meter)
        }
    }

    fn count(&self, n: usize) -> io::Result<usize> {
        (self.count)(&self.meter, n).map(|()| n)
    }
}

impl<S: Read> Read for Metered<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.source.read(buffer)?;
        self.count(n)
    }
}

impl<S: Seek> Seek for Metered<S> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.source.seek(to)
    }
}

impl<S: ReadAt> ReadAt for Metered<S> {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.source.read_at(offset, buffer)?;
        self.count(n)
    }

    fn size(&self) -> io::Result<u64> {
        self.source.size()
    }
}
