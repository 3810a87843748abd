//! The ring buffers into which the kernel wrote records.

use chronosym_types::hash::HashMap;

use crate::bytes::Cursor;
use crate::record::Record;

/// A ring buffer: of a processor or, with `perf record --per-thread`, of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Buffer {
    Processor(u32),
    Thread(u32),
}

/// The buffers of a recording, as far as the recorder lists them.
#[derive(Clone, Default)]
pub(crate) struct Buffers {
    /// By the ids of events.
    by_id: HashMap<u64, Buffer>,
    /// The only buffer, if there is one.
    only: Option<Buffer>,
    /// Whether there are buffers of processors, and of threads.
    of_processors: bool,
    of_threads: bool,
}

impl Buffers {
    /// Reads the body of an `ID_INDEX` record: for each id its buffer's number, processor and
    /// thread.
    pub(crate) fn read(&mut self, mut at: Cursor<'_>) -> Option<()> {
        const NO_PROCESSOR: u64 = u64::MAX;
        for _ in 0..at.u64()? {
            let (id, _, cpu, tid) = (at.u64()?, at.u64()?, at.u64()?, at.u64()?);
            let buffer = match cpu {
                NO_PROCESSOR => Buffer::Thread(u32::try_from(tid).ok()?),
                _ => Buffer::Processor(u32::try_from(cpu).ok()?),
            };
            self.only = match self.by_id.is_empty() {
                true => Some(buffer),
                false => self.only.filter(|only| *only == buffer),
            };
            match buffer {
                Buffer::Processor(_) => self.of_processors = true,
                Buffer::Thread(_) => self.of_threads = true,
            }
            self.by_id.insert(id, buffer);
        }
        Some(())
    }

    /// Returns the buffer of an event's id.
    pub(crate) fn of_id(&self, id: u64) -> Option<Buffer> {
        self.by_id.get(&id).copied()
    }

    /// Returns the buffer in which a record was. `id` returns that of the event that wrote it; most
    /// records state their processor, which suffices.
    pub(crate) fn of(
        &self,
        record: &Record<'_>,
        id: impl FnOnce() -> Option<u64>,
    ) -> Option<Buffer> {
        match record.cpu {
            Some(cpu) if !self.of_threads => Some(Buffer::Processor(cpu)),
            _ if self.only.is_some() => self.only,
            _ => id().and_then(|id| self.of_id(id)).or_else(|| {
                let are_threads = self.of_threads && !self.of_processors;
                record.tid.filter(|_| are_threads).map(Buffer::Thread)
            }),
        }
    }
}
