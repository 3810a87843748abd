//! The reader: reads records from the source and delivers them in order.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "counts of what was delivered"
)]

use std::io::{Read, Seek, SeekFrom};

use chronosym_types::{ByteOrder, Window};

use crate::ahead::Gathering;
use crate::attr::EventAttr;
use crate::diagnostics::Diagnostics;
use crate::error::Error;
use crate::gather::{Batch, Described, Gatherer, Note};
use crate::header::{Header, MAX_SECTION_BYTES};
use crate::info::Info;
use crate::kind::LAST_OF_KERNEL;
use crate::losses::Losses;
use crate::missing::Missing;
use crate::raw::{RawRecord, misc};
use crate::record::{Event, Record};
use crate::round::Ready;

/// Limits of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Maximum size in bytes of records that wait for earlier ones: their size and 40 for each.
    ///
    /// At the limit the older half is delivered and [`Diagnostics::forced_rounds`] counts it;
    /// records that are earlier still follow out of order and are counted, too. The default is 256
    /// MiB.
    pub round_limit: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            round_limit: 256 << 20,
        }
    }
}

impl Options {
    /// These options with another [`round_limit`](Self::round_limit).
    pub fn with_round_limit(mut self, bytes: usize) -> Self {
        self.round_limit = bytes;
        self
    }
}

/// Reads the records of a recording in time order.
///
/// Records without a time keep their position in the file; those of the state before the recording
/// come first. At equal times samples come last, and otherwise records are in file order.
pub struct Reader<R> {
    gathering: Gathering<R>,
    delivery: Delivery,
}

/// The records that can be delivered, and what is known from those before.
struct Delivery {
    order: ByteOrder,
    described: Described,
    ready: Ready,
    missing: Missing,
    diagnostics: Diagnostics,
    losses: Losses,
    /// Time of the first delivered record that could not be decoded, until it is noted.
    bad_since: Option<u64>,
}

impl<R: Read> Reader<R> {
    /// Opens a recording in file form or pipe form from any source.
    ///
    /// # Errors
    /// [`Error::WrongFormat`], [`Error::SimpleperfReport`], [`Error::DamagedHeader`],
    /// [`Error::AttrsAfterData`], [`Error::Io`].
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_perf::{Event, Options, Reader};
    /// # use chronosym_support::perf::{PerfAttr, PerfWriter};
    /// # let mut writer = PerfWriter::new(PerfAttr::default());
    /// # writer.comm(1, 10, 10, "app");
    /// # writer.sample(2, 10, 10, &[0x1010, 0x2020]);
    /// # let recording = writer.pipe();
    ///
    /// // Any `Read`, such as the output of `perf record -o -`.
    /// let mut reader = Reader::new(&recording[..], Options::default())?;
    /// let mut samples = 0;
    /// while let Some(record) = reader.next_record()? {
    ///     if let Event::Sample(sample) = record.event {
    ///         assert_eq!((record.time_ns, record.pid), (Some(2), Some(10)));
    ///         assert_eq!(sample.period, Some(1_000_000));
    ///         samples += 1;
    ///     }
    /// }
    /// assert_eq!(samples, 1);
    /// # Ok::<(), chronosym_perf::Error>(())
    /// ```
    pub fn new(source: R, options: Options) -> Result<Self, Error> {
        Self::with_tail(source, options, None)
    }

    /// Opens a reader; `tail` has the bytes after the samples, if they were read.
    fn with_tail(source: R, options: Options, tail: Option<&[u8]>) -> Result<Self, Error> {
        let mut gatherer = Box::new(Gatherer::new(source, options.round_limit, tail)?);
        let opened = gatherer.batch(Ready::default(), None);
        Ok(Self {
            delivery: Delivery {
                order: gatherer.order(),
                described: std::mem::take(gatherer.described()),
                ready: opened.ready,
                missing: Missing::default(),
                diagnostics: opened.counted,
                losses: Losses::default(),
                bad_since: None,
            },
            gathering: Gathering::new(gatherer),
        })
    }

    /// Reads and sorts records on another thread, ahead of those that are taken, once 4 MiB have been
    /// read and if there is a second processor. One more round is in memory then; one of more than
    /// 16 MiB ends the thread. Dropping the reader waits for a read of the source that is under way.
    pub fn read_ahead(&mut self)
    where
        R: Send + 'static,
    {
        self.gathering.read_ahead();
    }

    /// Returns the recorded events. In pipe form events and their names may be added while reading.
    pub fn attrs(&self) -> &[EventAttr] {
        self.delivery.described.attrs.all()
    }

    /// Returns properties of machine and recorder.
    pub fn info(&self) -> &Info {
        &self.delivery.described.info
    }

    /// Returns the byte order of the recorded machine.
    pub fn byte_order(&self) -> ByteOrder {
        self.delivery.order
    }

    /// Returns the diagnostics so far.
    pub fn diagnostics(&self) -> &Diagnostics {
        &self.delivery.diagnostics
    }

    /// Reads up to the next record; false at the end. The record's event is then among
    /// [`attrs`](Self::attrs): in pipe form events are described between records.
    ///
    /// # Errors
    /// As [`next_record`](Self::next_record).
    pub fn has_next(&mut self) -> Result<bool, Error> {
        if !self.delivery.ready.has_next() {
            self.delivery.ready.free();
            if let Some(batch) = self.gathering.next(&mut self.delivery.described) {
                self.delivery.take(batch)?;
            }
        }
        Ok(self.delivery.ready.has_next())
    }

    /// Returns the next record; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Io`] if the source fails, after everything read before has been delivered. Damage
    /// is counted in [`diagnostics`](Self::diagnostics) and never an error.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, Error> {
        self.has_next()?;
        Ok(self.delivery.next())
    }
}

impl<R: Read + Seek> Reader<R> {
    /// Opens a recording from a seekable source: sections after the samples are read first.
    ///
    /// # Errors
    /// As [`new`](Self::new), but for [`Error::AttrsAfterData`].
    pub fn open(mut source: R, options: Options) -> Result<Self, Error> {
        let io = |source| Error::Io { offset: 0, source };
        let mut window = Window::new(&mut source);
        let header = Header::read(&mut window);
        if let Some(failure) = window.take_failure() {
            return Err(io(failure));
        }
        let mut tail = Vec::new();
        if let Some(end) = header?.file.and_then(|file| file.data_end()) {
            source.seek(SeekFrom::Start(end)).map_err(io)?;
            let mut rest = source.by_ref().take(MAX_SECTION_BYTES);
            rest.read_to_end(&mut tail).map_err(io)?;
        }
        source.rewind().map_err(io)?;
        Self::with_tail(source, options, Some(&tail))
    }
}

impl Delivery {
    /// Takes the next batch; all records of those before have been delivered.
    fn take(&mut self, batch: Batch) -> Result<(), Error> {
        let delivered = self.ready.latest;
        self.diagnostics.add_counts(&batch.counted);
        for note in batch.notes {
            match note {
                Note::Gap(gap) => {
                    self.diagnostics.gaps.add(gap);
                    self.missing.since(delivered);
                }
                Note::BadCompression => self.missing.since(delivered),
                Note::RoundEnd { greatest, is_end } => {
                    if let Some(time) = self.bad_since.take() {
                        self.missing.since(time);
                    }
                    let times = self.missing.times(greatest, is_end);
                    self.diagnostics.missing_times.extend(times);
                }
            }
        }
        self.ready = batch.ready;
        if batch.end.is_some() {
            self.finish_losses();
        }
        batch.end.unwrap_or(Ok(()))
    }

    /// Completes the losses once all records have been delivered.
    fn finish_losses(&mut self) {
        let counts = &mut self.diagnostics;
        let bad = [
            counts.bad_records,
            counts.bad_sections,
            counts.bad_compressed_bytes,
        ];
        let is_readable = counts.gaps.is_empty() && bad == [0; 3];
        self.losses.finish(is_readable, &mut counts.loss_windows);
    }

    /// Delivers the next record and counts losses it reports.
    #[inline]
    fn next(&mut self) -> Option<Record<'_>> {
        let raw = RawRecord::new(self.ready.next()?, self.order)?;
        let attrs = &self.described.attrs;
        let attr = attrs.of(raw.kind, raw.body, raw.order);
        let (record, whole) = raw.decode(attr);
        let counts = &mut self.diagnostics;
        if !whole {
            counts.bad_records += 1;
            let time = record.time_ns.unwrap_or_default();
            self.bad_since = Some(self.bad_since.map_or(time, |since| since.min(time)));
        }
        let id = || attrs.id_of(raw.kind, raw.body, raw.order);
        let windows = &mut counts.loss_windows;
        self.losses.take(&record, id, attrs, windows);
        counts.unknown_records += u64::from(raw.kind > LAST_OF_KERNEL);
        match record.event {
            Event::Lost { records, .. } => {
                counts.lost_records = counts.lost_records.saturating_add(records);
            }
            Event::LostSamples { samples, filtered } if !filtered => {
                counts.lost_samples = counts.lost_samples.saturating_add(samples);
            }
            Event::Throttle { ended: false, .. } => counts.throttles += 1,
            Event::Mmap(_) => counts.cut_maps += u64::from(raw.flags & misc::CUT_MAPS != 0),
            Event::Aux { flags, .. } => counts.aux_faults += u64::from(flags & 0b1101 != 0),
            _ => {}
        }
        Some(record)
    }
}
