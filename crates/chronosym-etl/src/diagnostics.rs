#![expect(clippy::arithmetic_side_effects, reason = "counts of what was read")]

use chronosym_types::Gaps;

use crate::record::{EventKey, Record};
use crate::{Guid, TraceHeader};

/// What was damaged or lost in a trace so far, counted.
///
/// # Examples
///
/// ```
/// use chronosym_etl::{Options, Reader};
/// # use chronosym_support::etl::{At, EtlWriter};
/// # let mut writer = EtlWriter::new(Vec::new(), Default::default()).unwrap();
/// # writer.sample(At::us(5), 0x7ff6_1000, 2).unwrap();
/// # let log = writer.finish().unwrap();
///
/// // A log whose last 100 bytes were not copied.
/// let cut = &log[..log.len() - 100];
/// let mut reader = Reader::new(cut, Options::default())?;
/// while reader.next_record()?.is_some() {}
/// assert!(reader.diagnostics().is_damaged());
/// assert!(!reader.diagnostics().is_clean());
/// # Ok::<(), chronosym_etl::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostics {
    /// Buffers found.
    pub buffers: u64,
    /// Buffers without records.
    pub empty_buffers: u64,
    /// Records delivered.
    pub records: u64,
    /// Log file header records: more than one in merged traces.
    pub headers: u64,
    /// Events lost, by all log file headers.
    pub events_lost: u64,
    /// Buffers lost, by all log file headers.
    pub buffers_lost: u64,
    /// Buffers whose flags report events lost around them.
    pub buffers_with_lost_events: u64,
    /// Buffers whose flags report a buffer lost before them.
    pub buffers_after_lost_buffer: u64,
    /// `RT_LostEvent` records: a real-time consumer was too slow.
    pub lost_event_records: u64,
    /// The parts that could not be used, and why: those that no buffer header leads to when the
    /// trace is opened, those inside buffers when their records are read. Zeros at the end are the
    /// unused part of a preallocated file.
    pub gaps: Gaps,
    /// Buffers whose records were out of time order; they were sorted.
    pub unordered_buffers: u64,
    /// Buffers that the session wrote and the file lacks, by their numbers and the count in its
    /// header; not counted if parts of the file cannot be read.
    pub missing_buffers: u64,
    /// Buffers that occur twice in the file, by their number and time; skipped the second time.
    pub repeated_buffers: u64,
    /// Records delivered after one with a later time.
    pub late_records: u64,
    /// Records before the trace's start or long after its end; their `time_ns` is clamped.
    pub clamped_times: u64,
}

impl Diagnostics {
    /// Returns whether the trace was whole and read entirely, and nothing was lost.
    pub fn is_clean(&self) -> bool {
        let counted = Self {
            buffers: self.buffers,
            empty_buffers: self.empty_buffers,
            records: self.records,
            headers: self.headers,
            ..Self::default()
        };
        *self == counted
    }

    /// Events that the recorder dropped, as far as it counted them.
    pub fn lost_events(&self) -> u64 {
        self.events_lost
    }

    /// Returns whether events are missing: the trace reports it, buffers are missing, or a part of
    /// the file could not be read.
    pub fn lost_anything(&self) -> bool {
        self.events_lost + self.buffers_lost + self.lost_event_records != 0
            || self.buffers_with_lost_events + self.buffers_after_lost_buffer != 0
            || self.missing_buffers != 0
            || self.is_damaged()
    }

    /// Returns whether part of the file could not be read.
    pub fn is_damaged(&self) -> bool {
        !self.gaps.is_empty()
    }

    /// Adds the counts of the walk over another file's buffers.
    pub(crate) fn add_scan(&mut self, other: &Self, file: u32) {
        self.buffers += other.buffers;
        self.empty_buffers += other.empty_buffers;
        self.buffers_with_lost_events += other.buffers_with_lost_events;
        self.buffers_after_lost_buffer += other.buffers_after_lost_buffer;
        self.missing_buffers += other.missing_buffers;
        self.repeated_buffers += other.repeated_buffers;
        self.gaps.append(&other.gaps, file);
    }

    #[inline]
    pub(crate) fn count(&mut self, record: &Record<'_>) {
        self.records += 1;
        match record.key {
            EventKey::Classic {
                class: EVENT_TRACE,
                opcode: 0,
                ..
            } => {
                self.headers += 1;
                if let Ok(header) = TraceHeader::parse(record.payload, record.pointer_size) {
                    self.events_lost += u64::from(header.events_lost);
                    self.buffers_lost += u64::from(header.buffers_lost);
                }
            }
            EventKey::Classic {
                class: RT_LOST_EVENT,
                ..
            } => self.lost_event_records += 1,
            _ => {}
        }
    }
}

const EVENT_TRACE: Guid = crate::record::GROUP_CLASSES[0];
const RT_LOST_EVENT: Guid = Guid::from_u128(0x6a399ae0_4bc6_4de9_870b_3657f8947e7e);
