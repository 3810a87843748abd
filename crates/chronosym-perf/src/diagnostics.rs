use std::ops::Range;

use chronosym_types::Gaps;

/// What was damaged, lost or unknown in a recording, counted.
///
/// It grows while the recording is read and is complete once
/// [`next_record`](crate::Reader::next_record) has returned `None`.
///
/// # Examples
///
/// ```
/// use chronosym_perf::{Options, Reader};
/// # use chronosym_support::perf::{PerfAttr, PerfWriter};
/// # let mut writer = PerfWriter::new(PerfAttr::default());
/// # writer.sample(2, 10, 10, &[0x1010]);
/// # let recording = writer.pipe();
///
/// // The recorder was killed in the middle of a record.
/// let mut reader = Reader::new(&recording[..recording.len() - 8], Options::default())?;
/// while reader.next_record()?.is_some() {}
/// assert!(!reader.diagnostics().is_clean());
/// assert!(reader.diagnostics().gaps.is_cut_short());
/// # Ok::<(), chronosym_perf::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostics {
    /// Bytes read from the source.
    pub bytes_read: u64,
    /// Records read.
    pub records: u64,
    /// `FINISHED_ROUND` marks passed.
    pub rounds: u64,
    /// Bytes of hardware traces (`AUXTRACE`) and of tracepoint formats, skipped.
    pub skipped_bytes: u64,
    /// The recorder was killed before it could write its header: features are missing.
    pub unfinished: bool,
    /// Parts that could not be read as records, by their offsets in the source.
    pub gaps: Gaps,
    /// Records whose content exceeds their size; of a sample, the fields before the fault are
    /// delivered.
    pub bad_records: u64,
    /// Records of unknown types, delivered as [`Event::Other`](crate::Event::Other).
    pub unknown_records: u64,
    /// Samples of an unknown event, skipped.
    pub unknown_events: u64,
    /// Feature sections and records of the recorder that could not be decoded.
    pub bad_sections: u64,
    /// Compressed bytes that could not be decompressed.
    pub bad_compressed_bytes: u64,
    /// Times that records were delivered before their round was over because
    /// [`Options::round_limit`](crate::Options::round_limit) was reached.
    pub forced_rounds: u64,
    /// Records that arrived after later ones had been delivered.
    pub late_records: u64,
    /// Records of any kind that the kernel lost, by `LOST` records.
    pub lost_records: u64,
    /// Samples that the kernel lost, by `LOST_SAMPLES`; mostly the same ones as in `lost_records`.
    pub lost_samples: u64,
    /// Times that the kernel throttled an event.
    pub throttles: u64,
    /// Processes whose mappings the recorder listed incompletely because it timed out.
    pub cut_maps: u64,
    /// Bytes of hardware traces (AUX data), which are skipped.
    pub aux_bytes: u64,
    /// Errors in hardware traces, and `AUX` records that lost data.
    pub aux_faults: u64,
    /// When records were lost, complete at the end of the recording.
    pub loss_windows: Vec<LossWindow>,
    /// Times after which, and up to which, records are missing because a part of the recording
    /// cannot be read, by the clock of the samples.
    pub missing_times: Vec<Range<u64>>,
}

impl Diagnostics {
    /// Returns whether the recording was whole and read entirely, and nothing was lost.
    pub fn is_clean(&self) -> bool {
        let counted = Self {
            bytes_read: self.bytes_read,
            records: self.records,
            rounds: self.rounds,
            skipped_bytes: self.skipped_bytes,
            aux_bytes: self.aux_bytes,
            ..Self::default()
        };
        *self == counted
    }

    /// Adds what was counted while records were gathered; it has neither gaps nor losses.
    pub(crate) fn add_counts(&mut self, gathered: &Self) {
        self.bytes_read = gathered.bytes_read;
        self.unfinished |= gathered.unfinished;
        let counts = [
            (&mut self.records, gathered.records),
            (&mut self.rounds, gathered.rounds),
            (&mut self.skipped_bytes, gathered.skipped_bytes),
            (&mut self.unknown_events, gathered.unknown_events),
            (&mut self.bad_sections, gathered.bad_sections),
            (
                &mut self.bad_compressed_bytes,
                gathered.bad_compressed_bytes,
            ),
            (&mut self.forced_rounds, gathered.forced_rounds),
            (&mut self.late_records, gathered.late_records),
            (&mut self.aux_bytes, gathered.aux_bytes),
            (&mut self.aux_faults, gathered.aux_faults),
        ];
        for (count, more) in counts {
            *count = count.saturating_add(more);
        }
    }

    /// Records that the kernel lost.
    pub fn lost_events(&self) -> u64 {
        self.lost_records
    }
}

/// A time window in which the kernel lost records, by the clock of the samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LossWindow {
    /// Last record of the same ring buffer before the loss; `None` if it is unknown.
    pub from_ns: Option<u64>,
    /// First record of the same ring buffer after the loss; `None` if there is none.
    pub to_ns: Option<u64>,
    /// Records lost.
    pub records: u64,
    /// The process, if the buffer was that of a thread (`perf record --per-thread`).
    pub process: Option<u32>,
    /// Whether all of them were samples: the recorder states at the end how many records each event
    /// lost, and the events that describe processes and mappings lost none.
    pub only_samples: bool,
}

impl LossWindow {
    /// Returns the window that contains both.
    pub(crate) fn join(self, other: Self) -> Self {
        let both = |a: Option<u64>, b: Option<u64>| Some((a?, b?));
        Self {
            from_ns: both(self.from_ns, other.from_ns).map(|(a, b)| a.min(b)),
            to_ns: both(self.to_ns, other.to_ns).map(|(a, b)| a.max(b)),
            records: self.records.saturating_add(other.records),
            process: self.process.filter(|_| self.process == other.process),
            only_samples: self.only_samples && other.only_samples,
        }
    }
}
