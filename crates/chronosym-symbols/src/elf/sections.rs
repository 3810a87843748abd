//! The sections that hold debug information, unpacked when they are first looked at.

use std::io::Read;
use std::ops::Range;
use std::sync::OnceLock;

use gimli::SectionId;
use object::read::{CompressionFormat, Object, ObjectSection};

use crate::error::{Error, Result};

/// The most that one section may unpack to, in bytes.
const MAX_UNPACKED: u64 = 2 << 30;

/// The sections that names and lines are made of, and whether their plain or their split form is meant.
const USED: [SectionId; 12] = [
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugAranges,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
    SectionId::DebugCuIndex,
    SectionId::DebugTuIndex,
];

#[derive(Debug)]
struct Section {
    range: Range<usize>,
    packed: CompressionFormat,
    unpacked_size: u64,
    unpacked: OnceLock<Result<Vec<u8>, String>>,
}

/// Where each debug section lies.
#[derive(Debug)]
pub(crate) struct DebugSections {
    plain: [Option<Section>; USED.len()],
    split: [Option<Section>; USED.len()],
}

impl DebugSections {
    pub(crate) fn find(file: &object::File<'_>) -> Self {
        let mut found = Self {
            plain: [const { None }; USED.len()],
            split: [const { None }; USED.len()],
        };
        for section in file.sections() {
            let Ok(name) = section.name_bytes() else {
                continue;
            };
            let Some((slot, split)) = slot(name) else {
                continue;
            };
            let Ok(place) = section.compressed_file_range() else {
                continue;
            };
            let range = usize::try_from(place.offset).ok().and_then(|start| {
                let len = usize::try_from(place.compressed_size).ok()?;
                Some(start..start.checked_add(len)?)
            });
            let Some(range) = range else { continue };
            if range.is_empty() {
                continue;
            }
            let slots = if split {
                &mut found.split
            } else {
                &mut found.plain
            };
            slots[slot] = Some(Section {
                range,
                packed: place.format,
                unpacked_size: place.uncompressed_size,
                unpacked: OnceLock::new(),
            });
        }
        found
    }

    /// The bytes of a section; none if the file lacks it or it cannot be unpacked ([`DebugSections::damage`]).
    pub(crate) fn get<'a>(&'a self, data: &'a [u8], id: SectionId, split: bool) -> &'a [u8] {
        let Some(section) = self.section(id, split) else {
            return &[];
        };
        match section.packed {
            CompressionFormat::None => data.get(section.range.clone()).unwrap_or(&[]),
            _ => section
                .unpacked
                .get_or_init(|| unpack(data, section, id.name()).map_err(|e| e.to_string()))
                .as_deref()
                .unwrap_or(&[]),
        }
    }

    /// The file range of a section that is not compressed.
    pub(crate) fn file_range(&self, id: SectionId) -> Option<Range<usize>> {
        let section = self.section(id, false)?;
        (section.packed == CompressionFormat::None).then(|| section.range.clone())
    }

    pub(crate) fn has(&self, id: SectionId, split: bool) -> bool {
        self.section(id, split).is_some()
    }

    /// What could not be unpacked so far.
    pub(crate) fn damage(&self) -> impl Iterator<Item = &str> {
        self.plain
            .iter()
            .chain(&self.split)
            .flatten()
            .filter_map(|s| s.unpacked.get()?.as_ref().err().map(String::as_str))
    }

    fn section(&self, id: SectionId, split: bool) -> Option<&Section> {
        let slot = USED.iter().position(|&used| used == id)?;
        let slots = if split { &self.split } else { &self.plain };
        slots[slot].as_ref()
    }
}

/// Which section a name means: `.debug_info`, GNU's older compressed `.zdebug_info`, or the split `.debug_info.dwo`.
fn slot(name: &[u8]) -> Option<(usize, bool)> {
    let (name, split) = match name.strip_suffix(b".dwo") {
        Some(name) => (name, true),
        None => (name, false),
    };
    let stem = name
        .strip_prefix(b".debug_")
        .or_else(|| name.strip_prefix(b".zdebug_"))?;
    let slot = USED
        .iter()
        .position(|id| id.name().as_bytes().strip_prefix(b".debug_") == Some(stem))?;
    Some((slot, split))
}

fn unpack(data: &[u8], section: &Section, name: &str) -> Result<Vec<u8>> {
    if section.unpacked_size > MAX_UNPACKED {
        return Err(Error::TooLarge {
            what: name.to_owned(),
            size: section.unpacked_size,
            limit: MAX_UNPACKED,
        });
    }
    let packed = data
        .get(section.range.clone())
        .ok_or_else(|| Error::damaged(name, "it reaches beyond the end of the file"))?;
    let bad = |problem: &dyn std::fmt::Display| Error::damaged(name, problem);
    // The size stated is a hint that is believed up to a generous ratio; the rest grows as it comes.
    let hint = section.unpacked_size.min(packed.len() as u64 * 16 + 4096) as usize;
    let mut out = Vec::with_capacity(hint);
    match section.packed {
        CompressionFormat::Zlib => flate2::read::ZlibDecoder::new(packed)
            .take(section.unpacked_size)
            .read_to_end(&mut out)
            .map_err(|e| bad(&e))?,
        CompressionFormat::Zstandard => {
            let mut packed = packed;
            ruzstd::decoding::StreamingDecoder::new(&mut packed)
                .map_err(|e| bad(&e))?
                .take(section.unpacked_size)
                .read_to_end(&mut out)
                .map_err(|e| bad(&e))?
        }
        _ => return Err(bad(&"its compression is unknown")),
    };
    if out.len() as u64 != section.unpacked_size {
        return Err(bad(&"it unpacks to less than its header says"));
    }
    Ok(out)
}
