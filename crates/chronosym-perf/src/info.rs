//! Properties of machine and recorder, from feature sections and the equivalent records.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "a shift of at most 63 bits, and places in an id of 20 bytes"
)]

use chronosym_types::ByteOrder;

use crate::attr::{Attrs, EventAttr};
use crate::bytes::{Cursor, until_nul};
use crate::kind::{feature, record};
use crate::record::BuildId;

/// Properties of machine and recorder. In file form most of them are at the end of the file: they
/// are complete once all records have been read, unless the source is seekable.
///
/// # Examples
///
/// ```
/// use chronosym_perf::{Options, Reader};
/// # use chronosym_support::perf::{PerfAttr, PerfWriter};
/// # let mut writer = PerfWriter::new(PerfAttr::default());
/// # writer.feature(3, [&8u32.to_le_bytes()[..], b"builder\0"].concat()); // HOSTNAME
/// # writer.sample(2, 10, 10, &[0x1010]);
/// # let recording = writer.file();
///
/// let reader = Reader::open(std::io::Cursor::new(&recording), Options::default())?;
/// assert_eq!(reader.info().host_name.as_deref(), Some("builder"));
/// assert_eq!(reader.attrs().len(), 1);
/// # Ok::<(), chronosym_perf::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Info {
    /// Host name.
    pub host_name: Option<String>,
    /// Kernel release.
    pub os_release: Option<String>,
    /// perf's version; of another recorder its name and version: `simpleperf 1.build.10345`.
    pub recorder_version: Option<String>,
    /// `x86_64`, `aarch64`.
    pub arch: Option<String>,
    /// Online processors.
    pub cpus_online: Option<u32>,
    /// Build ids of files with samples.
    pub build_ids: Vec<BuildIdEntry>,
    /// Times of the first and the last sample, in ns on the recording's clock.
    pub sample_times_ns: Option<[u64; 2]>,
    /// Simultaneous readings of two clocks.
    pub clock: Option<ClockData>,
    /// Conversion of processor cycles to times.
    pub time_conversion: Option<TimeConversion>,
}

/// Build id of a mapped file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BuildIdEntry {
    /// The id.
    pub id: BuildId,
    /// Path, or `[kernel.kallsyms]`, `[vdso]` and the like.
    pub name: Vec<u8>,
}

/// Simultaneous readings of the recording's clock and of the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClockData {
    /// ns since 1970-01-01 UTC.
    pub wall_ns: u64,
    /// ns on the recording's clock.
    pub clock_ns: u64,
}

/// Conversion of the processor's cycle counter to the kernel's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimeConversion {
    /// Bits to shift right by.
    pub shift: u64,
    /// Multiplier.
    pub multiplier: u64,
    /// ns at cycle 0.
    pub zero_ns: u64,
}

impl TimeConversion {
    /// Converts cycles to ns, modulo 2^64.
    pub fn ns(&self, cycles: u64) -> u64 {
        let shift = self.shift.min(63) as u32;
        let (whole, part) = (cycles >> shift, cycles & ((1 << shift) - 1));
        let part = (part.wrapping_mul(self.multiplier)) >> shift;
        (self.zero_ns)
            .wrapping_add(whole.wrapping_mul(self.multiplier))
            .wrapping_add(part)
    }
}

fn string(at: &mut Cursor<'_>) -> Option<String> {
    let size = at.u32()?;
    let bytes = at.take(size as usize)?;
    Some(String::from_utf8_lossy(until_nul(bytes)).into_owned())
}

impl BuildIdEntry {
    /// Reads an entry of the feature section or the body of a record; `flags` are those of its
    /// header.
    pub(crate) fn read(mut at: Cursor<'_>, flags: u16) -> Option<Self> {
        const HAS_LENGTH: u16 = 1 << 15;
        at.u32()?;
        let id: &[u8; 20] = at.take(20)?.first_chunk()?;
        let &[length, ..] = at.take(4)?.first_chunk::<4>()?;
        // Without a length, shorter ids are padded with zero words.
        let words = id.chunks(4).rposition(|word| word != [0; 4]);
        let length = match flags & HAS_LENGTH {
            0 => words.map_or(0, |last| 4 * (last + 1)),
            _ => length.into(),
        };
        Some(Self {
            id: BuildId::new(id, length)?,
            name: until_nul(at.rest()).to_vec(),
        })
    }
}

impl Info {
    /// Decodes a feature section; `None` if its content does not fit.
    pub(crate) fn feature(
        &mut self,
        number: u32,
        bytes: &[u8],
        order: ByteOrder,
        attrs: &mut Attrs,
    ) -> Option<()> {
        let mut at = Cursor::new(bytes, order);
        match number {
            feature::BUILD_ID => {
                while !at.rest().is_empty() {
                    at.u32()?;
                    let (flags, size) = (at.u16()?, usize::from(at.u16()?));
                    let entry = at.take(size.checked_sub(8)?)?;
                    self.build_ids
                        .extend(BuildIdEntry::read(Cursor::new(entry, order), flags));
                }
            }
            feature::HOSTNAME => self.host_name = Some(string(&mut at)?),
            feature::SAMPLE_TIME => self.sample_times_ns = Some([at.u64()?, at.u64()?]),
            feature::OSRELEASE => self.os_release = Some(string(&mut at)?),
            feature::VERSION => self.recorder_version = Some(string(&mut at)?),
            feature::ARCH => self.arch = Some(string(&mut at)?),
            feature::NRCPUS => (_, self.cpus_online) = (at.u32()?, Some(at.u32()?)),
            feature::EVENT_DESC => {
                let (count, size) = (at.u32()?, at.u32()?);
                for index in 0..count as usize {
                    at.take(size as usize)?;
                    let (ids, name) = (at.u32()?, string(&mut at)?);
                    let ids: Vec<u64> = at.words(ids.into())?.iter().collect();
                    attrs.name(Some(index), &ids, name);
                }
            }
            feature::SIMPLEPERF_META_INFO => {
                let mut texts = bytes.split(|&byte| byte == 0);
                texts.find(|&key| key == b"simpleperf_version");
                let version = String::from_utf8_lossy(texts.next().unwrap_or_default());
                let text = format!("simpleperf {version}");
                self.recorder_version = Some(text.trim_end().to_owned());
            }
            feature::CLOCK_DATA => {
                at.u64()?;
                self.clock = Some(ClockData {
                    wall_ns: at.u64()?,
                    clock_ns: at.u64()?,
                });
            }
            _ => {}
        }
        Some(())
    }

    /// Decodes a record of the recorder; `None` if its content does not fit.
    pub(crate) fn recorder_record(
        &mut self,
        kind: u32,
        flags: u16,
        body: &[u8],
        order: ByteOrder,
        attrs: &mut Attrs,
    ) -> Option<()> {
        let mut at = Cursor::new(body, order);
        match kind {
            record::HEADER_ATTR => {
                let (mut attr, ids) = EventAttr::read(body, order)?;
                attr.ids = { ids }.words(ids.rest().len() as u64 / 8)?.iter().collect();
                attrs.push(attr);
            }
            record::ID_INDEX => attrs.buffers.read(at)?,
            record::HEADER_BUILD_ID => self.build_ids.push(BuildIdEntry::read(at, flags)?),
            record::EVENT_UPDATE => {
                const NAME: u64 = 2;
                let (what, id) = (at.u64()?, at.u64()?);
                if what == NAME {
                    let name = String::from_utf8_lossy(at.text()).into_owned();
                    attrs.name(None, &[id], name);
                }
            }
            record::TIME_CONV => {
                self.time_conversion = Some(TimeConversion {
                    shift: at.u64()?,
                    multiplier: at.u64()?,
                    zero_ns: at.u64()?,
                });
            }
            record::HEADER_FEATURE => {
                let number = at.u64()?;
                // An unused number without content marks the end of the features.
                if let (Ok(number), false) = (u32::try_from(number), at.rest().is_empty()) {
                    self.feature(number, at.rest(), order, attrs)?;
                }
            }
            _ => {}
        }
        Some(())
    }
}
