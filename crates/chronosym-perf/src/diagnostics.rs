use chronosym_types::Gaps;

/// Everything about a recording that was not as it should be, counted.
///
/// It grows while the recording is read and is complete once [`next_record`](crate::Reader::next_record) has returned
/// `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostics {
    /// Bytes read from the source.
    pub bytes_read: u64,
    /// Records read.
    pub records: u64,
    /// `FINISHED_ROUND` marks passed.
    pub rounds: u64,
    /// Bytes of hardware traces (`AUXTRACE`) and of tracepoint formats that were stepped over.
    pub skipped_bytes: u64,
    /// The recorder was killed before it could write its header: features are missing.
    pub unfinished: bool,
    /// Parts that could not be read as records, by their offsets in the source.
    pub gaps: Gaps,
    /// Records whose content does not fit their size; of a sample, what stands before the fault is delivered.
    pub bad_records: u64,
    /// Records of a type that this reader does not know, delivered as [`Event::Other`](crate::Event::Other).
    pub unknown_records: u64,
    /// Samples whose event cannot be told, left out.
    pub unknown_events: u64,
    /// Feature sections and recorder's own records that could not be read.
    pub bad_sections: u64,
    /// Compressed bytes that could not be decompressed.
    pub bad_compressed_bytes: u64,
    /// Times that records were delivered before their round was over because
    /// [`Options::round_limit`](crate::Options::round_limit) was reached.
    pub forced_rounds: u64,
    /// Records that came when later ones had been delivered already.
    pub late_records: u64,
    /// Records that the kernel had no room for, by `LOST` records: any kind of record.
    pub lost_records: u64,
    /// Samples that the kernel had no room for, by `LOST_SAMPLES`; mostly the same ones as in `lost_records`.
    pub lost_samples: u64,
    /// Times that the kernel throttled an event.
    pub throttles: u64,
    /// Mappings of a process that were not written out whole because that took too long.
    pub cut_maps: u64,
    /// Faults that the decoder of a hardware trace reported, and `AUX` records that lost data.
    pub aux_faults: u64,
}

impl Diagnostics {
    /// Whether the recording was whole and read entirely, and nothing was lost.
    pub fn is_clean(&self) -> bool {
        let counted = Self {
            bytes_read: self.bytes_read,
            records: self.records,
            rounds: self.rounds,
            skipped_bytes: self.skipped_bytes,
            ..Self::default()
        };
        *self == counted
    }

    /// Records that the kernel had no room for.
    pub fn lost_events(&self) -> u64 {
        self.lost_records
    }
}
