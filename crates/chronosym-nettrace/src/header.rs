use chronosym_types::time::SystemTime;
use chronosym_types::{Cursor, PointerSize};

use crate::error::Error;
use crate::fault::Parsed;

/// The two families of EventPipe files.
///
/// Closed: both families of EventPipe files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `.netperf`: versions 1 to 3, .NET Core 2.
    Netperf,
    /// `.nettrace`: version 4 (.NET Core 3 and later) and 6.
    Nettrace,
}

/// The header of a trace.
///
/// # Examples
///
/// ```
/// use chronosym_nettrace::{Format, Options, Reader};
/// # let trace = chronosym_support::nettrace::NettraceWriter::v4().finish();
///
/// let reader = Reader::new(&trace[..], Options::default())?;
/// let header = reader.header();
/// assert_eq!((header.format, header.version), (Format::Nettrace, (4, 0)));
/// assert_eq!((header.process_id, header.processors), (Some(4242), Some(8)));
/// assert_eq!(header.sample_rate_ns, Some(1_000_000));
/// # Ok::<(), chronosym_nettrace::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceHeader {
    /// File family.
    pub format: Format,
    /// Major and minor version of the format. For "V5" files it is 4, as on disk.
    pub version: (u32, u32),
    /// Wall-clock time at [`qpc_start`](Self::qpc_start), UTC; `None` if the header is cut off.
    pub start: Option<SystemTime>,
    /// Raw clock at the start of the trace, in ticks.
    pub qpc_start: i64,
    /// Ticks of the raw clock a second; never 0.
    pub qpc_frequency: u64,
    /// The width of addresses in stacks.
    pub pointer_size: PointerSize,
    /// Process that was traced; in V6 from the `ProcessId` key, absent in traces of a whole
    /// machine.
    pub process_id: Option<u32>,
    /// Hardware threads of the machine.
    pub processors: Option<u32>,
    /// Requested sampling interval, in nanoseconds.
    pub sample_rate_ns: Option<u32>,
    /// Key-value pairs of a V6 header, in file order.
    pub key_values: Vec<(String, String)>,
}

impl TraceHeader {
    /// Creates a header without values.
    pub(crate) fn unknown(format: Format, version: (u32, u32)) -> Self {
        Self {
            format,
            version,
            start: None,
            qpc_start: 0,
            qpc_frequency: 1_000_000_000,
            pointer_size: PointerSize::Eight,
            process_id: None,
            processors: None,
            sample_rate_ns: None,
            key_values: Vec::new(),
        }
    }

    /// SYSTEMTIME, clock and frequency: the part that all versions share.
    pub(crate) fn read_clock(&mut self, cursor: &mut Cursor<'_>) -> Parsed<()> {
        let mut parts = [0u16; 8];
        for part in &mut parts {
            *part = cursor.u16()?;
        }
        self.start = Some(SystemTime(parts));
        self.qpc_start = cursor.i64()?;
        self.qpc_frequency = cursor.u64()?;
        Ok(())
    }

    /// The rest of the V3 to V5 header.
    pub(crate) fn read_process(&mut self, cursor: &mut Cursor<'_>) -> Parsed<u32> {
        let pointer_size = cursor.u32()?;
        self.process_id = Some(cursor.u32()?);
        self.processors = Some(cursor.u32()?);
        self.sample_rate_ns = Some(cursor.u32()?);
        Ok(pointer_size)
    }

    /// The rest of the V6 header.
    pub(crate) fn read_pairs(&mut self, cursor: &mut Cursor<'_>) -> Parsed<u32> {
        let pointer_size = cursor.u32()?;
        for _ in 0..cursor.u32()? {
            let (key, value) = (
                cursor.var_text()?.to_string(),
                cursor.var_text()?.to_string(),
            );
            match key.as_str() {
                "ProcessId" => self.process_id = value.parse().ok(),
                "HardwareThreadCount" => self.processors = value.parse().ok(),
                "ExpectedCPUSamplingRate" => self.sample_rate_ns = value.parse().ok(),
                _ => {}
            }
            self.key_values.push((key, value));
        }
        Ok(pointer_size)
    }

    pub(crate) fn check(&mut self, pointer_size: u32, offset: u64) -> Result<(), Error> {
        let bad = |what, value| Error::BadHeader {
            offset,
            what,
            value,
        };
        self.pointer_size =
            PointerSize::new(pointer_size).ok_or(bad("pointer size", pointer_size.into()))?;
        match self.qpc_frequency.cast_signed() {
            frequency @ ..=0 => Err(bad("clock frequency", frequency)),
            _ => Ok(()),
        }
    }
}
