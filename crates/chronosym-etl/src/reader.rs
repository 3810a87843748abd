//! Reads the records of a recording.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "counts, and slots and headers, which are named by places of their lists"
)]

use std::mem;

use chronosym_types::PointerSize;

use crate::ahead::Merging;
use crate::buffer::Buffer;
use crate::merge::{Batch, Files, Position};
use crate::record::{Record, RecordContext};
use crate::scan::scan;
use crate::{Clock, Diagnostics, Error, Options, ReadAt, TraceHeader};

/// Reads the records of one recording in global time order.
///
/// Opening walks over the buffer headers; after that only the buffers whose records are next are in
/// memory: one for each processor of the recorded machine.
pub struct Reader<S> {
    merging: Merging<S>,
    /// The records that are next.
    batch: Batch,
    /// Index of the next record in the batch.
    next: usize,
    slots: Vec<OpenBuffer>,
    headers: Vec<TraceHeader>,
    clock: Clock,
    scanned: Diagnostics,
    diagnostics: Diagnostics,
    last_raw: i64,
    options: Options,
    /// Errors that ended the search for buffers, returned after the last record.
    failures: Vec<Error>,
}

/// 5 s in 100 ns: setting the system's clock shifts the boot time, and no system reboots faster.
const SAME_BOOT: u64 = 50_000_000;

/// An open buffer.
struct OpenBuffer {
    bytes: Vec<u8>,
    cpu: u16,
    pointer_size: PointerSize,
}

impl OpenBuffer {
    fn new() -> Self {
        OpenBuffer {
            bytes: Vec::new(),
            cpu: 0,
            pointer_size: PointerSize::Eight,
        }
    }
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
        let files = Files {
            sources,
            buffers,
            max_open_bytes,
        };
        Self {
            merging: Merging::new(files),
            batch: Batch::default(),
            next: 0,
            slots: Vec::new(),
            headers,
            clock,
            diagnostics: scanned.clone(),
            scanned,
            last_raw: i64::MIN,
            options,
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
            let Files {
                sources: own,
                buffers: found,
                ..
            } = reader.merging.into_files().ok_or(Error::Empty)?;
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

    /// Reads, decompresses and merges buffers on another thread, ahead of the records that are
    /// taken, if there is a second processor.
    pub fn read_ahead(&mut self)
    where
        S: Send + Sync + 'static,
    {
        self.merging.read_ahead();
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
        self.merging.rewind();
        self.batch = Batch::default();
        self.next = 0;
        self.last_raw = i64::MIN;
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
    // Inlined: a record is large, and a call copies it once more.
    #[inline(always)]
    pub fn next_readable(&mut self) -> Option<Record<'_>> {
        let position = loop {
            if let Ok(position) = self.advance() {
                break position?;
            }
        };
        self.record(position)
    }

    #[inline(always)]
    fn record(&mut self, position: Position) -> Option<Record<'_>> {
        let Position {
            raw_time,
            slot,
            offset,
        } = position;
        let slot = &self.slots[slot as usize];
        let context = RecordContext {
            time_ns: self.clock.time_ns(raw_time),
            raw_time,
            cpu: slot.cpu,
            pointer_size: slot.pointer_size,
        };
        // Framing has accepted the record: reading it cannot fail.
        let bytes = slot.bytes.get(offset as usize..).unwrap_or_default();
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
            if let Some(position) = self.batch.positions.get(self.next) {
                self.next += 1;
                return Ok(Some(*position));
            }
            if let Some(error) = self.batch.failure.take() {
                return Err(error);
            }
            if self.batch.is_last {
                return self.failures.pop().map_or(Ok(None), Err);
            }
            self.next_batch();
        }
    }

    /// Takes the next batch, and the buffers that are opened with it.
    #[cold]
    fn next_batch(&mut self) {
        self.merging.next(&mut self.batch);
        self.next = 0;
        for opened in &mut self.batch.opened {
            let slot = opened.slot as usize;
            if slot >= self.slots.len() {
                self.slots.resize_with(slot + 1, OpenBuffer::new);
            }
            let slot = &mut self.slots[slot];
            mem::swap(&mut slot.bytes, &mut opened.bytes);
            slot.cpu = opened.cpu;
            slot.pointer_size = self.headers[opened.file as usize].pointer_size;
        }
        self.diagnostics.unordered_buffers += self.batch.unordered_buffers;
        for gap in self.batch.gaps.drain(..) {
            self.diagnostics.gaps.add(gap);
        }
    }
}
