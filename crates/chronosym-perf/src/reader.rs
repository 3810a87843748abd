//! The reader: reads records from the source and delivers them in order.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "counts of what was read, places in a window, and what is left of a section that they lie in"
)]

use std::io::{Read, Seek, SeekFrom};

use chronosym_types::{ByteOrder, Gap, GapCause, Window};

use crate::attr::{Attrs, EventAttr};
use crate::bytes::Cursor;
use crate::compressed::{Unpacked, Unpacker};
use crate::diagnostics::Diagnostics;
use crate::error::Error;
use crate::header::{FileHeader, Header, MAX_SECTION_BYTES, Section};
use crate::info::Info;
use crate::kind::{LAST_OF_KERNEL, USER_TYPE_START, record};
use crate::losses::Losses;
use crate::raw::{RawRecord, misc};
use crate::record::{Event, Record};
use crate::round::Round;

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
    window: Window<R>,
    unpacker: Unpacker,
    file: Option<FileHeader>,
    /// The sections after the records have been read.
    has_features: bool,
    stage: Stage,
    recording: Recording,
    round_limit: usize,
}

/// The state of the reader.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Records,
    /// Decompressed records are still to be delivered.
    Unpacking,
    Ended,
}

/// Records and properties that have been read.
struct Recording {
    order: ByteOrder,
    attrs: Attrs,
    info: Info,
    round: Round,
    diagnostics: Diagnostics,
    losses: Losses,
    /// Time of the first delivered record that could not be decoded, until it is noted.
    bad_since: Option<u64>,
}

enum Step {
    Next,
    RoundEnd,
    End,
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
        let mut window = Window::new(source);
        let header = Header::read(&mut window);
        if let Some(source) = window.take_failure() {
            let offset = window.end_offset();
            return Err(Error::Io { offset, source });
        }
        let Header { order, file } = header?;
        let mut reader = Self {
            window,
            unpacker: Unpacker::default(),
            file,
            has_features: tail.is_some_and(|tail| !tail.is_empty()),
            stage: Stage::Records,
            recording: Recording {
                order,
                attrs: Attrs::default(),
                info: Info::default(),
                round: Round::default(),
                diagnostics: Diagnostics::default(),
                losses: Losses::default(),
                bad_since: None,
            },
            round_limit: options.round_limit,
        };
        if let Some(file) = &reader.file {
            let start = usize::try_from(file.data.offset).unwrap_or(usize::MAX);
            // The source may be shorter.
            reader.window.peek(start);
            let recording = &mut reader.recording;
            let bytes = reader.window.bytes();
            let head = bytes.get(..start).unwrap_or(bytes);
            let base = file.data_end().unwrap_or(u64::MAX);
            let is_after_data = file.attrs.offset >= base && file.attrs.size > 0;
            if is_after_data && tail.is_none() {
                return Err(Error::AttrsAfterData);
            }
            let tail = tail.unwrap_or_default();
            let find = |section: Section| section.of(head, 0).or_else(|| section.of(tail, base));
            recording.read_attrs(file, find);
            recording.diagnostics.unfinished = file.data.size == 0;
            if !tail.is_empty() {
                recording.read_features(file, tail);
            }
            reader.window.discard(start);
        }
        reader.recording.diagnostics.bytes_read = reader.window.end_offset();
        Ok(reader)
    }

    /// Returns the recorded events. In pipe form events and their names may be added while reading.
    pub fn attrs(&self) -> &[EventAttr] {
        self.recording.attrs.all()
    }

    /// Returns properties of machine and recorder.
    pub fn info(&self) -> &Info {
        &self.recording.info
    }

    /// Returns the byte order of the recorded machine.
    pub fn byte_order(&self) -> ByteOrder {
        self.recording.order
    }

    /// Returns the diagnostics so far.
    pub fn diagnostics(&self) -> &Diagnostics {
        &self.recording.diagnostics
    }

    /// Reads up to the next record; false at the end. The record's event is then among
    /// [`attrs`](Self::attrs): in pipe form events are described between records.
    ///
    /// # Errors
    /// As [`next_record`](Self::next_record).
    pub fn has_next(&mut self) -> Result<bool, Error> {
        if !self.recording.round.has_next() {
            self.read_round()?;
        }
        Ok(self.recording.round.has_next())
    }

    /// Returns the next record; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Io`] if the source fails, after everything read before has been delivered. Damage
    /// is counted in [`diagnostics`](Self::diagnostics) and never an error.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, Error> {
        self.has_next()?;
        Ok(self.recording.next())
    }

    /// Reads until records can be delivered, or the end.
    fn read_round(&mut self) -> Result<(), Error> {
        self.recording.round.recycle();
        loop {
            match self.step() {
                Step::Next if self.recording.round.size() <= self.round_limit => {}
                Step::Next => {
                    self.recording.diagnostics.forced_rounds += 1;
                    self.recording.round.force();
                }
                Step::RoundEnd => {
                    self.recording.note_missing(false);
                    self.recording.round.mark();
                }
                Step::End => {
                    self.recording.note_missing(true);
                    self.recording.round.finish();
                    if self.recording.round.has_next() {
                        return Ok(());
                    }
                    self.recording.finish_losses();
                    let offset = self.window.end_offset();
                    return match self.window.take_failure() {
                        Some(source) => Err(Error::Io { offset, source }),
                        None => Ok(()),
                    };
                }
            }
            if self.recording.round.has_next() {
                return Ok(());
            }
        }
    }

    fn step(&mut self) -> Step {
        match self.unpacker.next(self.recording.order) {
            Unpacked::Record(size) => {
                let record = self.unpacker.output().get(..size);
                self.recording.put(record.unwrap_or_default());
                self.unpacker.advance(size);
                return Step::Next;
            }
            Unpacked::Mark => return Step::RoundEnd,
            Unpacked::Nothing => {}
        }
        self.recording.bad_compressed(self.unpacker.bad_bytes);
        match self.stage {
            Stage::Records => self.read_record(),
            Stage::Unpacking => {
                let left = self.unpacker.leftover();
                self.recording
                    .bad_compressed(self.unpacker.bad_bytes + left);
                self.stage = Stage::Ended;
                Step::Next
            }
            Stage::Ended => Step::End,
        }
    }

    /// Reads the next record from the source.
    fn read_record(&mut self) -> Step {
        let order = self.recording.order;
        let end = self.file.as_ref().and_then(FileHeader::data_end);
        let left = end.map_or(u64::MAX, |end| end.saturating_sub(self.window.offset(0)));
        if left == 0 {
            return self.end_of_records();
        }
        let header = self.window.peek(RawRecord::HEADER);
        let size = header.and_then(|header| RawRecord::size(header, order));
        let size = size.filter(|&size| size >= RawRecord::HEADER && size as u64 <= left);
        let bytes = size.and_then(|size| self.window.peek(size));
        let raw = bytes.and_then(|bytes| Some((bytes, RawRecord::new(bytes, order)?)));
        let Some((bytes, raw)) = raw.filter(|(_, raw)| raw.is_plausible()) else {
            return self.find_records(left);
        };
        let mut step = Step::Next;
        let mut skipped = 0;
        match raw.kind {
            ..USER_TYPE_START => self.recording.put(bytes),
            // The formats of tracepoints, and the data of hardware traces, follow their record.
            record::HEADER_TRACING_DATA => {
                let size = Cursor::new(raw.body, order).u32().unwrap_or(0);
                skipped = u64::from(size).next_multiple_of(8);
            }
            record::FINISHED_ROUND => {
                self.recording.diagnostics.rounds += 1;
                if !self.unpacker.mark() {
                    step = Step::RoundEnd;
                }
            }
            record::AUXTRACE => {
                skipped = Cursor::new(raw.body, order).u64().unwrap_or(0);
                let aux_bytes = &mut self.recording.diagnostics.aux_bytes;
                *aux_bytes = aux_bytes.saturating_add(skipped);
            }
            record::AUXTRACE_ERROR => self.recording.diagnostics.aux_faults += 1,
            record::COMPRESSED => self.unpacker.feed(raw.body),
            record::COMPRESSED2 => {
                let mut at = Cursor::new(raw.body, order);
                match at.u64().and_then(|size| at.take_u64(size)) {
                    Some(packed) => self.unpacker.feed(packed),
                    None => self.recording.diagnostics.bad_sections += 1,
                }
            }
            _ => self.recording.put_recorder_record(raw),
        }
        let size = bytes.len();
        self.window.discard(size);
        if skipped > 0 {
            let room = left - size as u64;
            let there = self.window.drop_bytes(0, skipped.min(room));
            self.recording.diagnostics.skipped_bytes += there;
            if there < skipped {
                return self.cut(room - there);
            }
        }
        self.recording.diagnostics.bytes_read = self.window.end_offset();
        step
    }

    /// Skips the remaining `left` bytes, which are not records.
    fn cut(&mut self, left: u64) -> Step {
        let start = self.window.offset(0);
        self.window.drop_bytes(0, left);
        self.cut_from(start)
    }

    fn cut_from(&mut self, start: u64) -> Step {
        let lost = self.window.offset(0) - start;
        let promised = self.file.as_ref().and_then(FileHeader::data_end);
        if lost > 0 || promised.is_some() {
            self.gap(start, GapCause::CutShort);
        }
        self.end_of_records()
    }

    /// Adds a gap from an offset to the current one.
    fn gap(&mut self, start: u64, cause: GapCause) {
        let gap = Gap::new(start, self.window.offset(0) - start, cause);
        self.recording.diagnostics.gaps.add(gap);
        self.recording.round.missing();
    }

    /// Searches the remaining `left` bytes for records. They are aligned to 8 bytes unless some
    /// are compressed, and those cannot be decompressed after a gap.
    fn find_records(&mut self, left: u64) -> Step {
        let start = self.window.offset(0);
        let (mut left, mut at) = (left, start);
        while !self.unpacker.is_used() {
            let step = 8 - usize::try_from(at % 8).unwrap_or(0);
            if left <= step as u64 || !self.window.fill_to(step + RawRecord::HEADER) {
                break;
            }
            self.window.discard(step);
            (at, left) = (at + step as u64, left - step as u64);
            if self.are_records(left) {
                self.gap(start, GapCause::BadRecord);
                return Step::Next;
            }
        }
        self.window.drop_bytes(0, left);
        self.cut_from(start)
    }

    /// Returns whether several records follow, or records up to the end, and one of them has a
    /// time.
    fn are_records(&mut self, left: u64) -> bool {
        const ENOUGH: usize = 4;
        let order = self.recording.order;
        let (mut at, mut is_dated) = (0, false);
        for _ in 0..ENOUGH {
            if is_dated && (at as u64 == left || !self.window.fill_to(at + 1)) {
                return true;
            }
            self.window.fill_to(at + RawRecord::HEADER);
            let header = self.window.bytes().get(at..).unwrap_or_default();
            let size = RawRecord::size(header, order).unwrap_or_default();
            // Rejects most other bytes.
            let is_one = RawRecord::new(header, order).is_some_and(|raw| raw.is_known());
            let end = at + size;
            if !is_one || end as u64 > left || !self.window.fill_to(end) {
                return false;
            }
            let record = self.window.bytes().get(at..end).unwrap_or_default();
            match self.recording.plausible(record) {
                Some(has_time) => is_dated |= has_time,
                None => return false,
            }
            at = end;
        }
        is_dated
    }

    /// Reads the sections after the records.
    fn end_of_records(&mut self) -> Step {
        self.stage = Stage::Unpacking;
        self.unpacker.finish();
        let is_at_end =
            self.file.as_ref().and_then(FileHeader::data_end) == Some(self.window.offset(0));
        if let Some(file) = self.file.take().filter(|_| is_at_end) {
            if !self.has_features {
                while (self.window.bytes().len() as u64) < MAX_SECTION_BYTES
                    && self.window.read_more()
                {}
                self.recording.read_features(&file, self.window.bytes());
            }
            self.window.drop_bytes(0, u64::MAX);
        }
        self.recording.diagnostics.bytes_read = self.window.end_offset();
        Step::Next
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

/// Most ids of all events of a recording: an event has one per processor.
const MAX_IDS: usize = 1 << 20;

impl Recording {
    /// Reads the attributes and their ids, whose sections may overlap.
    fn read_attrs<'a>(&mut self, file: &FileHeader, find: impl Fn(Section) -> Option<&'a [u8]>) {
        let order = self.order;
        let Some(attrs_bytes) = find(file.attrs).filter(|attrs_bytes| !attrs_bytes.is_empty())
        else {
            self.diagnostics.bad_sections += 1;
            return;
        };
        let attr_size = usize::try_from(file.attr_size).unwrap_or(usize::MAX);
        let mut left = MAX_IDS;
        for row in attrs_bytes.chunks_exact(attr_size) {
            let (bytes, ids) = row.split_at(attr_size - 16);
            let mut ids = Cursor::new(ids, order);
            let section = ids.u64().zip(ids.u64());
            let section = section.map(|(offset, size)| Section { offset, size });
            let Some((mut attr, _)) = EventAttr::read(bytes, order) else {
                self.diagnostics.bad_sections += 1;
                continue;
            };
            match section.filter(|section| section.size > 0).map(&find) {
                Some(Some(ids)) if ids.len() / 8 <= left => {
                    left -= ids.len() / 8;
                    let words = Cursor::new(ids, order).words(ids.len() as u64 / 8);
                    attr.ids = words.map_or(Vec::new(), |words| words.iter().collect());
                }
                Some(_) => self.diagnostics.bad_sections += 1,
                None => {}
            }
            self.attrs.push(attr);
        }
    }

    /// Reads the feature sections; `tail` starts with their table.
    fn read_features(&mut self, file: &FileHeader, tail: &[u8]) {
        let base = file.data_end().unwrap_or(u64::MAX);
        for (number, section) in file.features(tail, self.order) {
            let bytes = section.and_then(|section| section.of(tail, base));
            let read = bytes
                .and_then(|bytes| (self.info).feature(number, bytes, self.order, &mut self.attrs));
            if read.is_none() {
                self.diagnostics.bad_sections += 1;
            }
        }
    }

    /// Returns whether a record has a time; `None` if the bytes are not a plausible record.
    fn plausible(&self, bytes: &[u8]) -> Option<bool> {
        const HOUR_NS: u64 = 3_600_000_000_000;
        let raw = RawRecord::new(bytes, self.order)?;
        if raw.kind >= USER_TYPE_START {
            let is_one = raw.kind != record::FINISHED_ROUND || raw.body.is_empty();
            return is_one.then_some(false);
        }
        let attr = self.attrs.of(raw.kind, raw.body, self.order)?;
        let (record, is_whole) = raw.decode(Some(attr));
        let latest = self.round.greatest();
        let is_near = |time: u64| latest == 0 || time.abs_diff(latest) < HOUR_NS;
        let is_one =
            is_whole && bytes.len().is_multiple_of(8) && record.time_ns.is_none_or(is_near);
        is_one.then_some(record.time_ns.is_some())
    }

    /// Keeps a record of the kernel until it can be delivered.
    fn put(&mut self, bytes: &[u8]) {
        let Some(raw) = RawRecord::new(bytes, self.order) else {
            return;
        };
        if raw.kind >= USER_TYPE_START {
            return;
        }
        self.diagnostics.records += 1;
        let attr = self.attrs.of(raw.kind, raw.body, self.order);
        let attr = attr.map(|(_, attr)| attr);
        let is_sample = raw.kind == record::SAMPLE;
        if is_sample && attr.is_none() {
            self.diagnostics.unknown_events += 1;
            return;
        }
        let time = attr.and_then(|attr| attr.time(raw.kind, raw.body, self.order));
        if time.is_some_and(|time| self.round.is_late(time)) {
            self.diagnostics.late_records += 1;
        }
        self.round.push(bytes, time, is_sample);
    }

    /// Decodes a record of the recorder.
    fn put_recorder_record(&mut self, raw: RawRecord<'_>) {
        let (info, attrs) = (&mut self.info, &mut self.attrs);
        let read = info.recorder_record(raw.kind, raw.flags, raw.body, self.order, attrs);
        if read.is_none() {
            self.diagnostics.bad_sections += 1;
        }
    }

    /// Notes how many compressed bytes cannot be decompressed so far.
    fn bad_compressed(&mut self, bytes: u64) {
        if bytes > self.diagnostics.bad_compressed_bytes {
            self.diagnostics.bad_compressed_bytes = bytes;
            self.round.missing();
        }
    }

    /// Notes between which times records are missing, once that is known.
    fn note_missing(&mut self, is_end: bool) {
        if let Some(time) = self.bad_since.take() {
            self.round.missing_since(time);
        }
        let times = self.round.missing_times(is_end);
        self.diagnostics.missing_times.extend(times);
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
        let raw = RawRecord::new(self.round.next()?, self.order)?;
        let attr = self.attrs.of(raw.kind, raw.body, raw.order);
        let (record, whole) = raw.decode(attr);
        let counts = &mut self.diagnostics;
        if !whole {
            counts.bad_records += 1;
            let time = record.time_ns.unwrap_or_default();
            self.bad_since = Some(self.bad_since.map_or(time, |since| since.min(time)));
        }
        let id = || self.attrs.id_of(raw.kind, raw.body, raw.order);
        let windows = &mut counts.loss_windows;
        self.losses.take(&record, id, &self.attrs, windows);
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
