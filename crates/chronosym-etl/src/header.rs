//! The log file header: the first record of the first buffer (`TRACE_LOGFILE_HEADER`).

#![expect(
    clippy::arithmetic_side_effects,
    reason = "places in the header, and products of 32 and 64 bits below 2 to the 64"
)]

use chronosym_types::{PointerSize, bytes};

use crate::{ClockType, Error};

/// The log file header: properties of the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceHeader {
    /// Windows version, major and minor (10.0 for Windows 10 and 11; 6.2 for Windows 8).
    pub os_version: (u8, u8),
    /// Windows build number.
    pub os_build: u32,
    /// Version of the log's layout: 1.4 in Windows Vista, 1.5 since Windows 7, 2.0 with large or
    /// compressed buffers.
    pub layout_version: (u8, u8),
    /// Number of logical processors.
    pub processors: u32,
    /// Pointer size of the recorded system's kernel.
    pub pointer_size: PointerSize,
    /// Bytes of a session buffer, uncompressed.
    pub buffer_size: u32,
    /// Buffers that the session wrote; 0 or too small if it was not stopped.
    pub buffers_written: u32,
    /// Start of the recording: FILETIME, UTC.
    pub start_time: u64,
    /// End of the recording: FILETIME, UTC. `None` if it was not stopped.
    pub end_time: Option<u64>,
    /// When the system booted: FILETIME, UTC.
    pub boot_time: u64,
    /// Performance counter ticks a second.
    pub perf_freq: u64,
    /// The unit of raw times.
    pub clock_type: ClockType,
    /// CPU speed in MHz.
    pub cpu_mhz: u32,
    /// Interval of the system timer in 100 ns units.
    pub timer_resolution: u32,
    /// Maximum size of the file in MB, 0 for none.
    pub max_file_size: u32,
    /// How the session logged.
    pub log_file_mode: LogFileMode,
    /// Events that the session could not log, as far as it knew when it stopped.
    pub events_lost: u32,
    /// Buffers that the session could not write.
    pub buffers_lost: u32,
    /// Minutes to add to local time to get UTC.
    pub utc_bias_minutes: i32,
    /// Name of the session.
    pub session_name: String,
    /// Name of the file as the session knew it.
    pub log_file_name: String,
}

/// `EVENT_TRACE_FILE_MODE_*` bits, among them 2 circular, 0x20 preallocated, 0x10000 relogged,
/// 0x2000000 a system logger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LogFileMode(pub u32);

impl LogFileMode {
    /// Returns whether the session was inside one process.
    pub fn is_private(self) -> bool {
        self.0 & 0x800 != 0
    }

    /// Returns whether the oldest buffers were overwritten at the maximum size of the file.
    pub fn is_circular(self) -> bool {
        self.0 & 2 != 0
    }

    /// Returns whether buffers are compressed (each one also has a flag).
    pub fn is_compressed(self) -> bool {
        self.0 & 0x0400_0000 != 0
    }

    /// Returns the number of bytes of a size in the header, in MB or KB.
    fn bytes(self, size: u32) -> u64 {
        const KBYTES: u32 = 0x2000;
        u64::from(size) << if self.0 & KBYTES != 0 { 10 } else { 20 }
    }

    /// Returns whether a file of the session has all its buffers, which are numbered from 0: not if
    /// it was appended to, is one of several, or if buffers were delivered in real time or kept in
    /// memory, too.
    fn numbers_buffers(self) -> bool {
        const APPEND: u32 = 0x4;
        const NEW_FILE: u32 = 0x8;
        const REAL_TIME: u32 = 0x100;
        const BUFFERING: u32 = 0x400;
        self.0 & (APPEND | NEW_FILE | REAL_TIME | BUFFERING) == 0 && !self.is_private()
    }

    /// All processors shared the buffers: records in a buffer need not be in time order.
    pub fn is_shared_by_processors(self) -> bool {
        self.0 & 0x1000_0000 != 0
    }
}

impl TraceHeader {
    /// Parses the payload; `width` is that of the record that carries it.
    pub(crate) fn parse(payload: &[u8], width: PointerSize) -> Result<Self, Error> {
        const SHORT: Error = Error::BadHeader("its record is too short");
        // Two pointers precede the time zone; all after it moves with them.
        let shift = 2 * width.bytes();
        let u32_of = |at| bytes::u32(payload, at).ok_or(SHORT);
        let u64_of = |at| bytes::u64(payload, at).ok_or(SHORT);
        let [os_major, os_minor, major, minor] = bytes::array(payload, 4).ok_or(SHORT)?;
        if (major, minor) < (1, 4) {
            return Err(Error::OldLayout { major, minor });
        }
        let names = payload.get(264 + shift..).ok_or(SHORT)?;
        let (session_name, rest) = bytes::wide(names);
        let (log_file_name, _) = bytes::wide(rest);
        let perf_freq = u64_of(240 + shift)?;
        let clock_type = match u32_of(256 + shift)? {
            2 => ClockType::SystemTime,
            3 => ClockType::CpuCycles,
            _ => ClockType::Qpc,
        };
        Ok(Self {
            os_version: (os_major, os_minor),
            layout_version: (major, minor),
            os_build: u32_of(8)?,
            processors: u32_of(12)?,
            pointer_size: match u32_of(44)? {
                4 => PointerSize::Four,
                8 => PointerSize::Eight,
                _ => return Err(Error::BadHeader("its pointer size is neither 4 nor 8")),
            },
            buffer_size: u32_of(0)?,
            buffers_written: u32_of(36)?,
            start_time: u64_of(248 + shift)?,
            end_time: Some(u64_of(16)?).filter(|time| *time != 0),
            boot_time: u64_of(232 + shift)?,
            perf_freq,
            clock_type,
            cpu_mhz: u32_of(52)?,
            timer_resolution: u32_of(24)?,
            max_file_size: u32_of(28)?,
            log_file_mode: LogFileMode(u32_of(32)?),
            events_lost: u32_of(48)?,
            buffers_lost: u32_of(260 + shift)?,
            utc_bias_minutes: u32_of(56 + shift)? as i32,
            session_name: session_name.to_string(),
            log_file_name: log_file_name.to_string(),
        })
    }

    /// Ticks of raw time a second.
    pub(crate) fn frequency(&self) -> Result<u64, Error> {
        let (frequency, error) = match self.clock_type {
            ClockType::SystemTime => (10_000_000, ""),
            ClockType::CpuCycles => (u64::from(self.cpu_mhz) * 1_000_000, "its CPU speed is 0"),
            ClockType::Qpc => (self.perf_freq, "its performance counter frequency is 0"),
        };
        if frequency == 0 {
            Err(Error::BadHeader(error))
        } else {
            Ok(frequency)
        }
    }

    /// Returns the number of buffers that the session wrote to the file; `None` if it was not
    /// stopped, or if a program that rewrote the file does not state it.
    fn stated_buffers(&self) -> Option<u32> {
        Some(self.buffers_written).filter(|&count| count > 0 && self.end_time.is_some())
    }

    /// Returns how many buffers are missing from a file that has those with these numbers.
    ///
    /// Programs that merge or rewrite files may keep the numbers of other sessions or the count of
    /// another file: if numbers repeat or exceed the count, nothing is known.
    pub(crate) fn missing_buffers(&self, mut numbers: Vec<i64>) -> u64 {
        let mode = self.log_file_mode;
        let stated = self.stated_buffers();
        // A circular file has all buffers until it has its maximum size.
        let bytes = u64::from(stated.unwrap_or(u32::MAX)) * u64::from(self.buffer_size);
        let is_overwritten = mode.is_circular() && bytes > mode.bytes(self.max_file_size);
        if is_overwritten || !mode.numbers_buffers() {
            return 0;
        }
        numbers.sort_unstable();
        let is_distinct = numbers.is_sorted_by(|a, b| a < b);
        let range = (numbers.first().copied(), numbers.last().copied());
        let (Some(0..), Some(last)) = range else {
            return 0;
        };
        let written = stated.map_or(last.saturating_add(1), i64::from);
        if !is_distinct || last >= written {
            return 0;
        }
        written.unsigned_abs().saturating_sub(numbers.len() as u64)
    }

    /// Length of the recording in ns; `None` if it was not stopped.
    pub fn duration_ns(&self) -> Option<u64> {
        self.end_time?
            .checked_sub(self.start_time)?
            .checked_mul(100)
    }
}
