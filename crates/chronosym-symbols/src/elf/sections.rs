//! The sections that hold debug information, unpacked when they are first looked at.

use std::io::Read;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use gimli::{RunTimeEndian, SectionId};
use object::SectionIndex;
use object::read::{CompressionFormat, Object, ObjectSection};

use super::chunks::Chunks;
use super::layout::Layout;
use super::packing;
use crate::error::{Error, Result};
use crate::mmap::FileData;

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

/// Above this size unpacking takes longer than starting a thread, in bytes.
const LARGE: u64 = 1 << 20;

/// Where a section lies.
#[derive(Debug)]
struct Section {
    /// Which section it is, in its plain or its split form.
    id: (bool, SectionId),
    index: SectionIndex,
    range: Range<usize>,
    packed: CompressionFormat,
    unpacked_size: u64,
    /// What it may have.
    limit: u64,
    held: Held,
}

/// What is held of a section.
#[derive(Debug)]
enum Held {
    /// The bytes in the file are what is meant.
    Plain,
    /// As unpacked or relocated, and what went wrong.
    Made(OnceLock<(Vec<u8>, Option<String>)>),
    /// Unpacked part by part.
    Parts(Chunks),
}

/// A section that is read part by part, each of which states its length: units, line tables.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Parts<'a> {
    Whole(&'a [u8]),
    Packed(&'a Chunks),
    /// One part, and where it begins.
    One(usize, &'a [u8]),
}

impl<'a> Parts<'a> {
    /// The bytes from where a part begins, to its end at least.
    pub(crate) fn from(&self, offset: usize) -> Option<&'a [u8]> {
        match *self {
            Self::Whole(bytes) => bytes.get(offset..),
            Self::Packed(chunks) => chunks.from(offset),
            Self::One(start, bytes) => bytes.get(offset.checked_sub(start)?..),
        }
    }

    /// Equal for parts that are unpacked together.
    pub(crate) fn chunk(&self, offset: usize) -> usize {
        match self {
            Self::Packed(_) => Chunks::chunk(offset),
            Self::Whole(_) | Self::One(..) => offset,
        }
    }

    /// Of the whole section, in bytes.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Whole(bytes) | Self::One(_, bytes) => bytes.len(),
            Self::Packed(chunks) => chunks.len(),
        }
    }
}

/// Where each debug section lies.
#[derive(Debug)]
pub(crate) struct DebugSections {
    data: FileData,
    /// If its sections have no addresses of their own.
    layout: Option<Arc<Layout>>,
    /// By id.
    sections: Vec<Section>,
}

impl DebugSections {
    pub(crate) fn find(
        data: &FileData,
        file: &object::File<'_>,
        endian: RunTimeEndian,
        layout: Option<Arc<Layout>>,
    ) -> Self {
        let mut found = Self {
            data: data.clone(),
            layout,
            sections: Vec::new(),
        };
        // What all sections may unpack to: several may lie in the same bytes.
        let mut limit = packing::most(data.len());
        for section in file.sections() {
            let Ok(name) = section.name_bytes() else {
                continue;
            };
            let Some((id, split)) = debug_section(name) else {
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
            let linked = found.layout.is_none() || section.relocations().next().is_none();
            let packed = place.format != CompressionFormat::None;
            let len = usize::try_from(place.uncompressed_size).ok();
            let len = len.filter(|_| place.uncompressed_size <= limit);
            let held = match (id, len) {
                _ if linked && !packed => Held::Plain,
                (SectionId::DebugInfo | SectionId::DebugLine, Some(len)) if linked && !split => {
                    Held::Parts(Chunks::new(
                        data.clone(),
                        range.clone(),
                        place.format,
                        len,
                        endian,
                    ))
                }
                _ => Held::Made(OnceLock::new()),
            };
            let id = (split, id);
            // Of several the last is meant.
            found.sections.retain(|section| section.id != id);
            found.sections.push(Section {
                id,
                index: section.index(),
                range,
                packed: place.format,
                unpacked_size: place.uncompressed_size,
                limit,
                held,
            });
            if packed {
                limit = limit.saturating_sub(place.uncompressed_size.min(limit));
            }
        }
        found.sections.sort_unstable_by_key(|section| section.id);
        found
    }

    /// The bytes of a section that is not read by parts; none if the file lacks it or it cannot be unpacked
    /// ([`DebugSections::damage`]).
    pub(crate) fn get(&self, id: SectionId, split: bool) -> &[u8] {
        let Some(section) = self.section(id, split) else {
            return &[];
        };
        match &section.held {
            Held::Plain => self.data.get(section.range.clone()).unwrap_or(&[]),
            Held::Made(made) => &made.get_or_init(|| self.make(section, id.name())).0,
            Held::Parts(_) => &[],
        }
    }

    /// A section that is read by parts.
    pub(crate) fn parts(&self, id: SectionId, split: bool) -> Parts<'_> {
        match self.packed_parts(id, split) {
            Some(chunks) => Parts::Packed(chunks),
            None => Parts::Whole(self.get(id, split)),
        }
    }

    /// A section that is unpacked part by part.
    pub(crate) fn packed_parts(&self, id: SectionId, split: bool) -> Option<&Chunks> {
        match &self.section(id, split)?.held {
            Held::Parts(chunks) => Some(chunks),
            Held::Plain | Held::Made(_) => None,
        }
    }

    /// Unpacks the large sections that are not read by parts, each in a thread of its own, while this one goes on with what is
    /// to be done `beside`; does nothing where there are none.
    pub(crate) fn unpack_together(&self, split: bool, beside: impl FnOnce()) {
        let waits = |section: &&Section| match &section.held {
            Held::Made(made) if section.id.0 == split => {
                section.unpacked_size > LARGE && made.get().is_none()
            }
            _ => false,
        };
        let mut packed = self.sections.iter().filter(waits).peekable();
        if packed.peek().is_none() {
            return;
        }
        std::thread::scope(|scope| {
            for section in packed {
                let get = move || _ = self.get(section.id.1, split);
                // Without a thread it is unpacked when it is asked for.
                _ = std::thread::Builder::new().spawn_scoped(scope, get);
            }
            beside();
        });
    }

    /// Keeps from now on all that is unpacked, for those who want most of it.
    pub(crate) fn keep_all(&self) {
        for section in &self.sections {
            if let Held::Parts(chunks) = &section.held {
                chunks.keep_all();
            }
        }
    }

    /// The file range of a section that is not compressed.
    pub(crate) fn file_range(&self, id: SectionId) -> Option<Range<usize>> {
        let section = self.section(id, false)?;
        matches!(section.held, Held::Plain).then(|| section.range.clone())
    }

    pub(crate) fn has(&self, id: SectionId, split: bool) -> bool {
        self.section(id, split).is_some()
    }

    /// What there is in memory when all is unpacked.
    pub(crate) fn unpacked_bytes(&self) -> u64 {
        let held = self
            .sections
            .iter()
            .filter(|section| !matches!(section.held, Held::Plain));
        let sizes = held.map(|section| section.unpacked_size.min(section.limit));
        sizes.fold(0, u64::saturating_add)
    }

    /// What could not be unpacked so far.
    pub(crate) fn damage(&self) -> impl Iterator<Item = String> {
        self.sections
            .iter()
            .filter_map(|section| match &section.held {
                Held::Plain => None,
                Held::Made(made) => made.get()?.1.clone(),
                Held::Parts(chunks) => {
                    let problem = chunks.problem()?;
                    Some(Error::damaged(section.id.1.name(), problem).to_string())
                }
            })
    }

    fn section(&self, id: SectionId, split: bool) -> Option<&Section> {
        self.sections
            .iter()
            .find(|section| section.id == (split, id))
    }

    /// Unpacks and relocates a section.
    fn make(&self, section: &Section, name: &str) -> (Vec<u8>, Option<String>) {
        let mut bytes = match unpack(&self.data, section, name) {
            Ok(bytes) => bytes,
            Err(error) => return (Vec::new(), Some(error.to_string())),
        };
        let problem = self.layout.as_ref().and_then(|layout| {
            let file = object::File::parse(&self.data[..]).ok()?;
            let kind = layout.relocate(&file, section.index, &mut bytes).err()?;
            let problem = format!("its relocations are not known: {kind:?}");
            Some(Error::damaged(name, problem).to_string())
        });
        (bytes, problem)
    }
}

/// Which section a name means: `.debug_info`, GNU's older compressed `.zdebug_info`, or the split `.debug_info.dwo`.
fn debug_section(name: &[u8]) -> Option<(SectionId, bool)> {
    let (name, split) = match name.strip_suffix(b".dwo") {
        Some(name) => (name, true),
        None => (name, false),
    };
    let stem = name
        .strip_prefix(b".debug_")
        .or_else(|| name.strip_prefix(b".zdebug_"))?;
    let mut used = USED.into_iter();
    let id = used.find(|id| id.name().as_bytes().strip_prefix(b".debug_") == Some(stem))?;
    Some((id, split))
}

fn unpack(data: &FileData, section: &Section, name: &str) -> Result<Vec<u8>> {
    let (size, limit) = (section.unpacked_size, section.limit);
    if size > limit {
        return Err(Error::TooLarge {
            what: name.to_owned(),
            size,
            limit,
        });
    }
    if section.range.end > data.len() {
        return Err(Error::damaged(
            name,
            "it reaches beyond the end of the file",
        ));
    }
    // The size stated is a hint that is believed up to a generous ratio; the rest grows as it comes.
    let hint = section.range.len().saturating_mul(16).saturating_add(4096);
    let hint = usize::try_from(size).map_or(hint, |size| size.min(hint));
    let mut out = Vec::with_capacity(hint);
    packing::reader(data, section.range.clone(), section.packed)
        .and_then(|reader| reader.take(size).read_to_end(&mut out))
        .map_err(|e| Error::damaged(name, e))?;
    if out.len() as u64 != size {
        return Err(Error::damaged(
            name,
            "it unpacks to less than its header says",
        ));
    }
    Ok(out)
}
