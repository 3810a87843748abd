//! The time-ordered merge of all buffers.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "slots, of which there are fewer than 2^32, sources and headers are named by places of their lists, which never shrink"
)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::mem;
use std::sync::Arc;

use chronosym_types::{GapCause, PointerSize};

use crate::ahead::{Ahead, Files, Start};
use crate::buffer::{Buffer, Contents};
use crate::record::{Record, RecordContext};
use crate::scan::scan;
use crate::{Clock, Diagnostics, Error, Options, ReadAt, TraceHeader};

/// Reads the records of one recording in global time order.
///
/// Opening walks over the buffer headers; after that only the buffers whose records are next are in
/// memory: one for each processor of the recorded machine.
pub struct Reader<S> {
    files: Arc<Files<S>>,
    headers: Vec<TraceHeader>,
    clock: Clock,
    scanned: Diagnostics,
    diagnostics: Diagnostics,
    next_buffer: usize,
    slots: Vec<OpenBuffer>,
    free: Vec<u32>,
    /// Next record of each open buffer except the current one.
    heap: BinaryHeap<Reverse<Key>>,
    current: Option<u32>,
    /// The current buffer's records come first up to here.
    limit: Key,
    last_raw: i64,
    open_bytes: u64,
    max_open_bytes: u64,
    options: Options,
    compressed: Vec<u8>,
    /// Loads the next buffers, once it has started.
    ahead: Option<Ahead>,
    /// Starts loading ahead, if that is wanted.
    start_ahead: Option<Start<S>>,
    /// Errors that ended the search for buffers, returned after the last record.
    failures: Vec<Error>,
}

/// Total order of the next records of buffers: raw time, then the buffer's position in the files,
/// as one number. The slot of the buffer is in its lowest bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key(i128);

impl Key {
    fn new(time: i64, rank: u32, slot: u32) -> Self {
        let position = u64::from(rank) << 32 | u64::from(slot);
        Key(i128::from(time) << 64 | i128::from(position))
    }

    fn slot(self) -> u32 {
        self.0 as u32
    }
}

const NO_LIMIT: Key = Key(i128::MAX);
/// 5 s in 100 ns: setting the system's clock shifts the boot time, and no system reboots faster.
const SAME_BOOT: u64 = 50_000_000;

/// The position of a record: its buffer's slot and the offset in the buffer.
struct Position {
    slot: usize,
    raw_time: i64,
    offset: u32,
}

/// An open buffer.
#[derive(Default)]
struct OpenBuffer {
    contents: Contents,
    next: usize,
    rank: u32,
    cpu: u16,
    pointer_size: Option<PointerSize>,
}

/// Limit of decompressed bytes: damaged times can make all buffers of a file look simultaneous. At
/// the limit the next buffer waits until another one is done. It is twice the size of one buffer
/// per processor, if plausible. Small files get at most 32 MiB, whatever their buffers decompress
/// to.
fn max_open_bytes(headers: &[TraceHeader], buffers: &[Buffer], options: Options) -> u64 {
    let one_each = |header: &TraceHeader| {
        u64::from(header.buffer_size).saturating_mul(u64::from(header.processors) * 2)
    };
    let all = headers.iter().map(one_each).fold(0, u64::saturating_add);
    let stored = buffers.iter().map(|buffer| u64::from(buffer.stored));
    let stored = stored.fold(0, u64::saturating_add);
    let most = stored.saturating_mul(8).max(32 << 20);
    let all = all.clamp(256 << 20, 1 << 30);
    all.min(most).min(options.open_limit)
}

impl<S: ReadAt> Reader<S> {
    /// Opens one .etl file and finds its buffers.
    ///
    /// # Errors
    /// If `source` cannot be read or does not start with the header of a log of Windows 7 or later.
    /// If a later read fails, the reader has the buffers before it.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_etl::{Options, Reader};
    /// # use chronosym_support::etl::{At, EtlWriter};
    /// # let mut writer = EtlWriter::new(Vec::new(), Default::default()).unwrap();
    /// # writer.sample(At::us(5).pid(1).tid(2), 0x7ff6_1000, 2).unwrap();
    /// # let log = writer.finish().unwrap();
    ///
    /// // `&[u8]` and `File` are sources, and whatever else implements `ReadAt`.
    /// let mut reader = Reader::new(&log[..], Options::default())?;
    /// assert_eq!(reader.header().os_build, 19_045);
    /// let mut times = Vec::new();
    /// while let Some(record) = reader.next_record()? {
    ///     times.push(record.time_ns);
    /// }
    /// assert_eq!(times, [0, 5_000]); // the log file header, then a CPU sample
    /// # Ok::<(), chronosym_etl::Error>(())
    /// ```
    pub fn new(source: S, options: Options) -> Result<Self, Error> {
        let scan = scan(&source)?;
        let mut reader = Self::of(
            vec![source],
            vec![scan.header],
            scan.clock,
            scan.buffers,
            scan.diagnostics,
            options,
        );
        reader.failures.extend(scan.failure);
        Ok(reader)
    }

    fn of(
        sources: Vec<S>,
        headers: Vec<TraceHeader>,
        clock: Clock,
        mut buffers: Vec<Buffer>,
        mut scanned: Diagnostics,
        options: Options,
    ) -> Self {
        let max_open_bytes = max_open_bytes(&headers, &buffers, options);
        buffers.sort_unstable_by_key(|b| (b.first_time, b.cpu, b.sequence, b.rank));
        let count = buffers.len();
        buffers.dedup_by(|copy, first| copy.is_copy_of(first));
        scanned.repeated_buffers += (count - buffers.len()) as u64;
        buffers.sort_unstable_by_key(|b| (b.first_time, b.rank));
        Self {
            files: Arc::new(Files { sources, buffers }),
            headers,
            clock,
            diagnostics: scanned.clone(),
            scanned,
            next_buffer: 0,
            slots: Vec::new(),
            free: Vec::new(),
            heap: BinaryHeap::new(),
            current: None,
            limit: NO_LIMIT,
            last_raw: i64::MIN,
            open_bytes: 0,
            max_open_bytes,
            options,
            compressed: Vec::new(),
            ahead: None,
            start_ahead: None,
            failures: Vec::new(),
        }
    }

    /// Merges several files of one recording (concurrent kernel and user sessions) in time
    /// order. The trace starts with the earliest of them.
    ///
    /// # Errors
    /// If the files' clocks differ (type, frequency, boot time), or none is given.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_etl::{Options, Reader};
    /// # use chronosym_support::etl::{At, EtlWriter};
    /// # let mut user = EtlWriter::new(Vec::new(), Default::default()).unwrap();
    /// # user.sample(At::us(5), 0x7ff6_1000, 2).unwrap();
    /// # let user = user.finish().unwrap();
    /// # let mut kernel = EtlWriter::new(Vec::new(), Default::default()).unwrap();
    /// # kernel.sample(At::us(3), 0x7ff6_1000, 2).unwrap();
    /// # let kernel = kernel.finish().unwrap();
    ///
    /// // The user and the kernel session of one recording, written to two files.
    /// let readers = vec![
    ///     Reader::new(&user[..], Options::default())?,
    ///     Reader::new(&kernel[..], Options::default())?,
    /// ];
    /// let mut reader = Reader::merge(readers)?;
    /// let mut times = Vec::new();
    /// while let Some(record) = reader.next_record()? {
    ///     times.push(record.time_ns);
    /// }
    /// assert_eq!(times, [0, 0, 3_000, 5_000]);
    /// # Ok::<(), chronosym_etl::Error>(())
    /// ```
    pub fn merge(readers: Vec<Self>) -> Result<Self, Error> {
        let earliest = readers.iter().min_by_key(|reader| reader.clock.start_raw);
        let (start, options) = earliest
            .map(|reader| (reader.clock, reader.options))
            .ok_or(Error::Empty)?;
        let mut last_ns = 0;
        let mut headers: Vec<TraceHeader> = Vec::new();
        let (mut sources, mut buffers) = (Vec::new(), Vec::new());
        let (mut scanned, mut failures) = (Diagnostics::default(), Vec::new());
        for (index, reader) in readers.into_iter().enumerate() {
            let header = reader.header();
            if let Some(first) = headers.first() {
                let different = |what| Err(Error::NotOneRecording { index, what });
                if header.clock_type != first.clock_type {
                    return different("clock type");
                } else if reader.clock.frequency != start.frequency {
                    return different("clock frequency");
                } else if header.boot_time.abs_diff(first.boot_time) > SAME_BOOT {
                    return different("boot time");
                }
            }
            let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
            let (file, rank) = (count(sources.len()), count(buffers.len()));
            last_ns = last_ns.max(reader.clock.last_ns);
            // The thread shares the files until it has ended.
            drop(reader.ahead);
            let files = Arc::into_inner(reader.files);
            let Files {
                sources: own,
                buffers: found,
            } = files.ok_or(Error::Empty)?;
            buffers.extend(found.into_iter().map(|buffer| Buffer {
                file: buffer.file + file,
                rank: buffer.rank + rank,
                ..buffer
            }));
            sources.extend(own);
            headers.extend(reader.headers);
            scanned.add_scan(&reader.scanned, file);
            failures.extend(reader.failures);
        }
        let clock = Clock::new(
            start.start_raw,
            start.start_filetime,
            start.frequency,
            last_ns,
        );
        let merged = Self::of(sources, headers, clock, buffers, scanned, options);
        Ok(Self { failures, ..merged })
    }

    /// Reads and decompresses buffers on another thread, ahead of the records that are taken, if
    /// there is a second processor.
    pub fn read_ahead(&mut self)
    where
        S: Send + Sync + 'static,
    {
        self.start_ahead = Some(Ahead::start);
    }

    /// Header of the trace; of the first file if several were merged.
    pub fn header(&self) -> &TraceHeader {
        &self.headers[0]
    }

    /// Headers of all files, in the order in which they were given.
    pub fn headers(&self) -> &[TraceHeader] {
        &self.headers
    }

    /// Returns the trace's clock, for raw times in payloads and for UTC.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Returns the diagnostics so far.
    pub fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }

    /// Starts again with the first record.
    pub fn rewind(&mut self) {
        self.next_buffer = 0;
        self.ahead = None;
        self.heap.clear();
        self.current = None;
        self.last_raw = i64::MIN;
        self.open_bytes = 0;
        self.free = (0..self.slots.len() as u32).collect();
        self.diagnostics = self.scanned.clone();
    }

    /// Returns the next record in time order, `None` at the end. Records of equal time are in file
    /// order.
    ///
    /// Damaged parts are left out and counted in [`diagnostics`](Self::diagnostics).
    ///
    /// # Errors
    /// [`Error::Io`] if a buffer cannot be read, or if opening could not search a whole file;
    /// everything before has been delivered. The part is counted as a gap, and the next call
    /// continues after it.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_etl::{EventKey, Options, Reader};
    /// # use chronosym_support::etl::{At, EtlWriter};
    /// # let mut writer = EtlWriter::new(Vec::new(), Default::default()).unwrap();
    /// # writer.sample(At::us(5).pid(1).tid(2), 0x7ff6_1000, 2).unwrap();
    /// # let log = writer.finish().unwrap();
    ///
    /// let mut reader = Reader::new(&log[..], Options::default())?;
    /// let mut samples = 0;
    /// while let Some(record) = reader.next_record()? {
    ///     // PerfInfo/SampleProfile: the address is first in the payload.
    ///     if let EventKey::Classic { opcode: 46, .. } = record.key {
    ///         let address = u64::from_le_bytes(record.payload[..8].try_into().unwrap());
    ///         assert_eq!(address, 0x7ff6_1000);
    ///         samples += 1;
    ///     }
    /// }
    /// assert_eq!(samples, 1);
    /// # Ok::<(), chronosym_etl::Error>(())
    /// ```
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, Error> {
        match self.advance()? {
            Some(position) => Ok(self.record(position)),
            None => Ok(None),
        }
    }

    /// Like [`next_record`](Self::next_record), but skips unreadable parts, which are counted as
    /// gaps.
    #[inline]
    pub fn next_readable(&mut self) -> Option<Record<'_>> {
        let position = loop {
            if let Ok(position) = self.advance() {
                break position?;
            }
        };
        self.record(position)
    }

    #[inline]
    fn record(&mut self, position: Position) -> Option<Record<'_>> {
        let Position {
            slot,
            raw_time,
            offset,
        } = position;
        let slot = &self.slots[slot];
        let context = RecordContext {
            time_ns: self.clock.time_ns(raw_time),
            raw_time,
            cpu: slot.cpu,
            pointer_size: slot.pointer_size.unwrap_or(PointerSize::Eight),
        };
        // Framing has accepted the record: reading it cannot fail.
        let bytes = slot
            .contents
            .bytes
            .get(offset as usize..)
            .unwrap_or_default();
        let record = Record::read(bytes, context);
        if let Some(record) = &record {
            self.diagnostics.count(record);
            if raw_time < self.last_raw {
                self.diagnostics.late_records += 1;
            } else {
                self.last_raw = raw_time;
            }
            self.diagnostics.clamped_times +=
                u64::from(self.clock.is_outside(raw_time, record.time_ns));
        }
        record
    }

    /// Steps to the next record.
    #[inline]
    fn advance(&mut self) -> Result<Option<Position>, Error> {
        loop {
            let Some(current) = self.current else {
                if !self.choose()? {
                    return self.failures.pop().map_or(Ok(None), Err);
                }
                continue;
            };
            let slot = &mut self.slots[current as usize];
            let Some(&(raw_time, offset)) = slot.contents.index.records.get(slot.next) else {
                self.open_bytes -= slot.contents.bytes.len() as u64;
                self.free.push(current);
                self.current = None;
                continue;
            };
            let key = Key::new(raw_time, slot.rank, current);
            if key <= self.limit {
                slot.next += 1;
                return Ok(Some(Position {
                    slot: current as usize,
                    raw_time,
                    offset,
                }));
            }
            let limit = self.limit;
            let first = self.heap.peek_mut().filter(|first| first.0 <= limit);
            // Swaps the two.
            let first = first.map(|mut first| mem::replace(&mut *first, Reverse(key)).0);
            self.current = first.map(Key::slot);
            if self.current.is_some() {
                self.limit = self.next_limit();
            } else {
                self.heap.push(Reverse(key));
            }
        }
    }

    /// Makes the buffer that has the next record the current one; false if there is none.
    fn choose(&mut self) -> Result<bool, Error> {
        while let Some(key) = self.unopened() {
            if self.heap.peek().is_some_and(|Reverse(open)| *open < key) {
                break;
            }
            self.next_buffer += 1;
            self.open_buffer(self.next_buffer - 1)?;
        }
        self.current = self.heap.pop().map(|Reverse(key)| key.slot());
        self.limit = self.next_limit();
        Ok(self.current.is_some())
    }

    /// Up to where the current buffer's records come first.
    fn next_limit(&self) -> Key {
        let open = self.heap.peek().map_or(NO_LIMIT, |Reverse(key)| *key);
        self.unopened().map_or(open, |key| open.min(key))
    }

    /// Returns the position of the first record of the next unopened buffer in the order of
    /// records.
    fn unopened(&self) -> Option<Key> {
        let buffer = self.files.buffers.get(self.next_buffer)?;
        let wait = self.open_bytes > self.max_open_bytes && !self.heap.is_empty();
        (!wait).then(|| Key::new(buffer.first_time, buffer.rank, 0))
    }

    /// Reads a buffer into a free slot and puts it on the heap, unless nothing in it can be read.
    /// Buffers are opened in their order.
    fn open_buffer(&mut self, number: usize) -> Result<(), Error> {
        let buffer = self.files.buffers[number];
        let at = self.free.pop().unwrap_or_else(|| {
            self.slots.push(OpenBuffer::default());
            self.slots.len() as u32 - 1
        });
        let read = self.load(&buffer, number, at as usize);
        let slot = &mut self.slots[at as usize];
        (slot.next, slot.rank, slot.cpu) = (0, buffer.rank, buffer.cpu);
        slot.pointer_size = Some(self.headers[buffer.file as usize].pointer_size);
        if let Err(source) = read {
            self.free.push(at);
            let gap = buffer.gap(0, GapCause::Unreadable);
            self.diagnostics.gaps.add(gap);
            let offset = buffer.offset;
            return Err(Error::Io { offset, source });
        }
        let Contents { bytes, index } = &slot.contents;
        self.diagnostics.unordered_buffers += u64::from(index.unordered);
        let used = bytes.len() - index.dropped;
        let is_short = bytes.len() < buffer.valid as usize;
        if buffer.cut || is_short || index.dropped > 0 {
            let cause = match buffer.compressed && is_short {
                _ if buffer.cut => GapCause::CutShort,
                true => GapCause::BadCompression,
                false => GapCause::BadRecord,
            };
            self.diagnostics.gaps.add(buffer.gap(used, cause));
        }
        match index.records.first() {
            Some(&(time, _)) => {
                self.open_bytes += bytes.len() as u64;
                self.heap.push(Reverse(Key::new(time, buffer.rank, at)));
            }
            None => self.free.push(at),
        }
        Ok(())
    }

    /// Loads a buffer into a slot, or takes it from the thread that loads ahead.
    fn load(&mut self, buffer: &Buffer, number: usize, slot: usize) -> io::Result<()> {
        if self.ahead.is_none() {
            let start = self.start_ahead;
            self.ahead = start.and_then(|start| start(&self.files, number));
            if self.ahead.is_none() {
                self.start_ahead = None;
            }
        }
        let contents = &mut self.slots[slot].contents;
        let loaded = (self.ahead.as_ref()).and_then(|ahead| ahead.next(mem::take(contents)));
        match loaded {
            Some(loaded) => {
                *contents = loaded?;
                Ok(())
            }
            None => (self.files).load(buffer, &mut self.compressed, contents),
        }
    }
}
