//! Gathers records from the source until some can be delivered.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "counts of what was read, places in a window, and what is left of a section that they lie in"
)]

use std::io::Read;

use chronosym_types::{ByteOrder, Gap, GapCause, Window};

use crate::attr::{Attrs, EventAttr};
use crate::bytes::Cursor;
use crate::compressed::{Unpacked, Unpacker};
use crate::diagnostics::Diagnostics;
use crate::error::Error;
use crate::header::{FileHeader, Header, MAX_SECTION_BYTES, Section};
use crate::info::Info;
use crate::kind::{USER_TYPE_START, record};
use crate::raw::RawRecord;
use crate::round::{Ready, Round};

/// The recorded events, and properties of machine and recorder.
#[derive(Clone, Default)]
pub(crate) struct Described {
    pub(crate) attrs: Attrs,
    pub(crate) info: Info,
}

/// Gathers the records of a recording.
pub(crate) struct Gatherer<R> {
    window: Window<R>,
    unpacker: Unpacker,
    file: Option<FileHeader>,
    /// The sections after the records have been read.
    has_features: bool,
    stage: Stage,
    found: Found,
    round_limit: usize,
}

/// The state of reading.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Records,
    /// Decompressed records are still to be delivered.
    Unpacking,
    Ended,
}

/// Records that wait and properties, and what is new in the current batch.
struct Found {
    order: ByteOrder,
    described: Described,
    round: Round,
    /// The greatest number of bytes that could not be decompressed.
    bad_compressed_bytes: u64,
    counted: Diagnostics,
    notes: Vec<Note>,
    has_described: bool,
}

/// Records that can be delivered, and what was found while they were gathered.
pub(crate) struct Batch {
    pub(crate) ready: Ready,
    /// Counts without gaps and losses.
    pub(crate) counted: Diagnostics,
    pub(crate) notes: Vec<Note>,
    /// Whether events or properties were described.
    pub(crate) has_described: bool,
    /// Set if no records are left.
    pub(crate) end: Option<Result<(), Error>>,
}

/// A fact from which follows between which times records are missing.
pub(crate) enum Note {
    Gap(Gap),
    BadCompression,
    /// A round ended, or the recording did. States the greatest time of a record so far.
    RoundEnd {
        greatest: u64,
        is_end: bool,
    },
}

enum Step {
    Next,
    RoundEnd,
    End,
}

impl<R: Read> Gatherer<R> {
    /// Reads the header; `tail` has the bytes after the samples, if they were read.
    pub(crate) fn new(source: R, round_limit: usize, tail: Option<&[u8]>) -> Result<Self, Error> {
        let mut window = Window::new(source);
        let header = Header::read(&mut window);
        if let Some(source) = window.take_failure() {
            let offset = window.end_offset();
            return Err(Error::Io { offset, source });
        }
        let Header { order, file } = header?;
        let mut gatherer = Self {
            window,
            unpacker: Unpacker::default(),
            file,
            has_features: tail.is_some_and(|tail| !tail.is_empty()),
            stage: Stage::Records,
            found: Found {
                order,
                described: Described::default(),
                round: Round::default(),
                bad_compressed_bytes: 0,
                counted: Diagnostics::default(),
                notes: Vec::new(),
                has_described: false,
            },
            round_limit,
        };
        if let Some(file) = &gatherer.file {
            let start = usize::try_from(file.data.offset).unwrap_or(usize::MAX);
            // The source may be shorter.
            gatherer.window.peek(start);
            let found = &mut gatherer.found;
            let bytes = gatherer.window.bytes();
            let head = bytes.get(..start).unwrap_or(bytes);
            let base = file.data_end().unwrap_or(u64::MAX);
            let is_after_data = file.attrs.offset >= base && file.attrs.size > 0;
            if is_after_data && tail.is_none() {
                return Err(Error::AttrsAfterData);
            }
            let tail = tail.unwrap_or_default();
            let find = |section: Section| section.of(head, 0).or_else(|| section.of(tail, base));
            found.read_attrs(file, find);
            found.counted.unfinished = file.data.size == 0;
            if !tail.is_empty() {
                found.read_features(file, tail);
            }
            gatherer.window.discard(start);
        }
        Ok(gatherer)
    }

    /// Returns the byte order of the recorded machine.
    pub(crate) fn order(&self) -> ByteOrder {
        self.found.order
    }

    /// Returns the offset after the last byte read.
    pub(crate) fn offset(&self) -> u64 {
        self.window.end_offset()
    }

    /// Returns what was described so far.
    pub(crate) fn described(&mut self) -> &mut Described {
        &mut self.found.described
    }

    /// Reads until records can be delivered, or the end.
    pub(crate) fn gather(&mut self) -> Batch {
        self.found.round.reuse();
        let (mut ready, mut end) = (self.found.round.nothing(), None);
        while !ready.has_next() && end.is_none() {
            match self.step() {
                Step::Next if self.found.round.size() <= self.round_limit => {}
                Step::Next => {
                    self.found.counted.forced_rounds += 1;
                    ready = self.found.round.force();
                }
                Step::RoundEnd => {
                    self.found.note_round_end(false);
                    ready = self.found.round.mark();
                }
                Step::End => {
                    self.found.note_round_end(true);
                    ready = self.found.round.finish();
                    let offset = self.window.end_offset();
                    end = (!ready.has_next()).then(|| match self.window.take_failure() {
                        Some(source) => Err(Error::Io { offset, source }),
                        None => Ok(()),
                    });
                }
            }
        }
        self.batch(ready, end)
    }

    /// Returns a batch of these records with what was found since the last one.
    pub(crate) fn batch(&mut self, ready: Ready, end: Option<Result<(), Error>>) -> Batch {
        let found = &mut self.found;
        found.counted.bytes_read = self.window.end_offset();
        Batch {
            ready,
            counted: std::mem::take(&mut found.counted),
            notes: std::mem::take(&mut found.notes),
            has_described: std::mem::take(&mut found.has_described),
            end,
        }
    }

    fn step(&mut self) -> Step {
        match self.unpacker.next(self.found.order) {
            Unpacked::Record(size) => {
                let record = self.unpacker.output().get(..size);
                self.found.put(record.unwrap_or_default());
                self.unpacker.advance(size);
                return Step::Next;
            }
            Unpacked::Mark => return Step::RoundEnd,
            Unpacked::Nothing => {}
        }
        self.found.bad_compressed(self.unpacker.bad_bytes);
        match self.stage {
            Stage::Records => self.read_record(),
            Stage::Unpacking => {
                let left = self.unpacker.leftover();
                self.found.bad_compressed(self.unpacker.bad_bytes + left);
                self.stage = Stage::Ended;
                Step::Next
            }
            Stage::Ended => Step::End,
        }
    }

    /// Reads the next record from the source.
    fn read_record(&mut self) -> Step {
        let order = self.found.order;
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
            ..USER_TYPE_START => self.found.put(bytes),
            // The formats of tracepoints, and the data of hardware traces, follow their record.
            record::HEADER_TRACING_DATA => {
                let size = Cursor::new(raw.body, order).u32().unwrap_or(0);
                skipped = u64::from(size).next_multiple_of(8);
            }
            record::FINISHED_ROUND => {
                self.found.counted.rounds += 1;
                if !self.unpacker.mark() {
                    step = Step::RoundEnd;
                }
            }
            record::AUXTRACE => {
                skipped = Cursor::new(raw.body, order).u64().unwrap_or(0);
                let aux_bytes = &mut self.found.counted.aux_bytes;
                *aux_bytes = aux_bytes.saturating_add(skipped);
            }
            record::AUXTRACE_ERROR => self.found.counted.aux_faults += 1,
            record::COMPRESSED => self.unpacker.feed(raw.body),
            record::COMPRESSED2 => {
                let mut at = Cursor::new(raw.body, order);
                match at.u64().and_then(|size| at.take_u64(size)) {
                    Some(packed) => self.unpacker.feed(packed),
                    None => self.found.counted.bad_sections += 1,
                }
            }
            _ => self.found.put_recorder_record(raw),
        }
        let size = bytes.len();
        self.window.discard(size);
        if skipped > 0 {
            let room = left - size as u64;
            let there = self.window.drop_bytes(0, skipped.min(room));
            self.found.counted.skipped_bytes += there;
            if there < skipped {
                return self.cut(room - there);
            }
        }
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
        self.found.notes.push(Note::Gap(gap));
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
        let order = self.found.order;
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
            match self.found.plausible(record) {
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
                self.found.read_features(&file, self.window.bytes());
            }
            self.window.drop_bytes(0, u64::MAX);
        }
        Step::Next
    }
}

/// Most ids of all events of a recording: an event has one per processor.
const MAX_IDS: usize = 1 << 20;

impl Found {
    /// Reads the attributes and their ids, whose sections may overlap.
    fn read_attrs<'a>(&mut self, file: &FileHeader, find: impl Fn(Section) -> Option<&'a [u8]>) {
        let order = self.order;
        let Some(attrs_bytes) = find(file.attrs).filter(|attrs_bytes| !attrs_bytes.is_empty())
        else {
            self.counted.bad_sections += 1;
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
                self.counted.bad_sections += 1;
                continue;
            };
            match section.filter(|section| section.size > 0).map(&find) {
                Some(Some(ids)) if ids.len() / 8 <= left => {
                    left -= ids.len() / 8;
                    let words = Cursor::new(ids, order).words(ids.len() as u64 / 8);
                    attr.ids = words.map_or(Vec::new(), |words| words.iter().collect());
                }
                Some(_) => self.counted.bad_sections += 1,
                None => {}
            }
            self.described.attrs.push(attr);
        }
    }

    /// Reads the feature sections; `tail` starts with their table.
    fn read_features(&mut self, file: &FileHeader, tail: &[u8]) {
        self.has_described = true;
        let base = file.data_end().unwrap_or(u64::MAX);
        for (number, section) in file.features(tail, self.order) {
            let bytes = section.and_then(|section| section.of(tail, base));
            let read = bytes.and_then(|bytes| {
                (self.described.info).feature(number, bytes, self.order, &mut self.described.attrs)
            });
            if read.is_none() {
                self.counted.bad_sections += 1;
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
        let attr = self.described.attrs.of(raw.kind, raw.body, self.order)?;
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
        self.counted.records += 1;
        let attr = self.described.attrs.of(raw.kind, raw.body, self.order);
        let attr = attr.map(|(_, attr)| attr);
        let is_sample = raw.kind == record::SAMPLE;
        if is_sample && attr.is_none() {
            self.counted.unknown_events += 1;
            return;
        }
        let time = attr.and_then(|attr| attr.time(raw.kind, raw.body, self.order));
        if time.is_some_and(|time| self.round.is_late(time)) {
            self.counted.late_records += 1;
        }
        self.round.push(bytes, time, is_sample);
    }

    /// Decodes a record of the recorder.
    fn put_recorder_record(&mut self, raw: RawRecord<'_>) {
        self.has_described = true;
        let (info, attrs) = (&mut self.described.info, &mut self.described.attrs);
        let read = info.recorder_record(raw.kind, raw.flags, raw.body, self.order, attrs);
        if read.is_none() {
            self.counted.bad_sections += 1;
        }
    }

    /// Notes how many compressed bytes cannot be decompressed so far.
    fn bad_compressed(&mut self, bytes: u64) {
        if bytes > self.bad_compressed_bytes {
            self.counted.bad_compressed_bytes += bytes - self.bad_compressed_bytes;
            self.bad_compressed_bytes = bytes;
            self.notes.push(Note::BadCompression);
        }
    }

    fn note_round_end(&mut self, is_end: bool) {
        let greatest = self.round.greatest();
        self.notes.push(Note::RoundEnd { greatest, is_end });
    }
}
