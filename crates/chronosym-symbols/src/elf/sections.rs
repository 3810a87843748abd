//! The debug sections of a file, decompressed on first use.

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

/// The sections with names, lines and the locations of variables.
const USED: [SectionId; 14] = [
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugAranges,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugLoc,
    SectionId::DebugLocLists,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
    SectionId::DebugCuIndex,
    SectionId::DebugTuIndex,
];

/// Above this size, in bytes, decompression takes longer than starting a thread.
const LARGE: u64 = 1 << 20;

/// Location and content of a section.
#[derive(Debug)]
struct Section {
    /// Whether it is in split form (`.dwo`), and which section it is.
    id: (bool, SectionId),
    index: SectionIndex,
    range: Range<usize>,
    packed: CompressionFormat,
    unpacked_size: u64,
    /// The size to which it may decompress.
    limit: u64,
    storage: Storage,
}

/// The content of a section.
#[derive(Debug)]
enum Storage {
    /// The bytes of the file.
    Plain,
    /// Decompressed or relocated on first use, with the problem if that failed.
    Made(OnceLock<(Vec<u8>, Option<String>)>),
    /// Decompressed by chunks.
    SectionData(Chunks),
}

/// A section that is read by parts (units, line tables), each of which starts with its length.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SectionData<'a> {
    Whole(&'a [u8]),
    Packed(&'a Chunks),
    /// One part and its offset.
    One(usize, &'a [u8]),
}

impl<'a> SectionData<'a> {
    /// Returns the bytes from the start of a part to its end or further.
    pub(crate) fn from(&self, offset: usize) -> Option<&'a [u8]> {
        match *self {
            Self::Whole(bytes) => bytes.get(offset..),
            Self::Packed(chunks) => chunks.from(offset),
            Self::One(start, bytes) => bytes.get(offset.checked_sub(start)?..),
        }
    }

    /// Equal for parts that are decompressed together.
    pub(crate) fn chunk(&self, offset: usize) -> usize {
        match self {
            Self::Packed(_) => Chunks::chunk(offset),
            Self::Whole(_) | Self::One(..) => offset,
        }
    }

    /// Size of the section in bytes.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Whole(bytes) | Self::One(_, bytes) => bytes.len(),
            Self::Packed(chunks) => chunks.len(),
        }
    }
}

/// The debug sections of a file.
#[derive(Debug)]
pub(crate) struct DebugSections {
    data: FileData,
    /// For files that are not linked.
    layout: Option<Arc<Layout>>,
    /// By id.
    sections: Vec<Section>,
}

impl DebugSections {
    /// Of a file without sections.
    pub(crate) fn none(data: &FileData) -> Self {
        Self {
            data: data.clone(),
            layout: None,
            sections: Vec::new(),
        }
    }

    pub(crate) fn find(
        data: &FileData,
        file: &object::File<'_>,
        endian: RunTimeEndian,
        layout: Option<Arc<Layout>>,
    ) -> Self {
        let mut debug = Self::none(data);
        debug.layout = layout;
        // A limit for all sections together: they may share the same bytes.
        let mut limit = packing::max_unpacked(data.len());
        for section in file.sections() {
            let Ok(name) = section.name_bytes() else {
                continue;
            };
            let Some((id, split)) = debug_section(name) else {
                continue;
            };
            let Ok(location) = section.compressed_file_range() else {
                continue;
            };
            let range = usize::try_from(location.offset).ok().and_then(|start| {
                let len = usize::try_from(location.compressed_size).ok()?;
                Some(start..start.checked_add(len)?)
            });
            let Some(range) = range else { continue };
            if range.is_empty() {
                continue;
            }
            let linked = debug.layout.is_none() || section.relocations().next().is_none();
            let packed = location.format != CompressionFormat::None;
            let len = usize::try_from(location.uncompressed_size).ok();
            let len = len.filter(|_| location.uncompressed_size <= limit);
            let storage = match (id, len) {
                _ if linked && !packed => Storage::Plain,
                (SectionId::DebugInfo | SectionId::DebugLine, Some(len)) if linked && !split => {
                    Storage::SectionData(Chunks::new(
                        data.clone(),
                        range.clone(),
                        location.format,
                        len,
                        endian,
                    ))
                }
                _ => Storage::Made(OnceLock::new()),
            };
            let id = (split, id);
            // The last one of a name counts.
            debug.sections.retain(|section| section.id != id);
            debug.sections.push(Section {
                id,
                index: section.index(),
                range,
                packed: location.format,
                unpacked_size: location.uncompressed_size,
                limit,
                storage,
            });
            if packed {
                limit = limit.saturating_sub(location.uncompressed_size.min(limit));
            }
        }
        debug.sections.sort_unstable_by_key(|section| section.id);
        debug
    }

    /// Returns the bytes of a section that is not read by parts; empty if it is missing or cannot
    /// be decompressed ([`DebugSections::damage`]).
    pub(crate) fn get(&self, id: SectionId, split: bool) -> &[u8] {
        let Some(section) = self.section(id, split) else {
            return &[];
        };
        match &section.storage {
            Storage::Plain => self.data.get(section.range.clone()).unwrap_or(&[]),
            Storage::Made(made) => &made.get_or_init(|| self.make(section, id.name())).0,
            Storage::SectionData(_) => &[],
        }
    }

    /// Returns a section that is read by parts.
    pub(crate) fn parts(&self, id: SectionId, split: bool) -> SectionData<'_> {
        match self.packed_parts(id, split) {
            Some(chunks) => SectionData::Packed(chunks),
            None => SectionData::Whole(self.get(id, split)),
        }
    }

    /// Returns a section that is decompressed by chunks.
    pub(crate) fn packed_parts(&self, id: SectionId, split: bool) -> Option<&Chunks> {
        match &self.section(id, split)?.storage {
            Storage::SectionData(chunks) => Some(chunks),
            Storage::Plain | Storage::Made(_) => None,
        }
    }

    /// Decompresses the large sections that are not read by parts, each on its own thread, and
    /// calls `meanwhile` on this one; does neither if there are none.
    pub(crate) fn unpack_together(&self, split: bool, meanwhile: impl FnOnce()) {
        let waits = |section: &&Section| match &section.storage {
            Storage::Made(made) if section.id.0 == split => {
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
                // Without a thread, decompression waits for the first use.
                _ = std::thread::Builder::new().spawn_scoped(scope, get);
            }
            meanwhile();
        });
    }

    /// Keeps all chunks from now on, for batches that need most of them.
    pub(crate) fn keep_all(&self) {
        for section in &self.sections {
            if let Storage::SectionData(chunks) = &section.storage {
                chunks.keep_all();
            }
        }
    }

    /// Returns the file range of a section that is not compressed.
    pub(crate) fn file_range(&self, id: SectionId) -> Option<Range<usize>> {
        let section = self.section(id, false)?;
        matches!(section.storage, Storage::Plain).then(|| section.range.clone())
    }

    pub(crate) fn has(&self, id: SectionId, split: bool) -> bool {
        self.section(id, split).is_some()
    }

    /// Bytes of memory that the sections use at most.
    pub(crate) fn unpacked_bytes(&self) -> u64 {
        let unpacked = self
            .sections
            .iter()
            .filter(|section| !matches!(section.storage, Storage::Plain));
        let sizes = unpacked.map(|section| section.unpacked_size.min(section.limit));
        sizes.fold(0, u64::saturating_add)
    }

    /// Problems of decompression so far.
    pub(crate) fn damage(&self) -> impl Iterator<Item = String> {
        self.sections
            .iter()
            .filter_map(|section| match &section.storage {
                Storage::Plain => None,
                Storage::Made(made) => made.get()?.1.clone(),
                Storage::SectionData(chunks) => {
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

    /// Decompresses and relocates a section.
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

/// Returns the section of a name: `.debug_info`, GNU's older compressed `.zdebug_info`, or the
/// split `.debug_info.dwo`.
fn debug_section(name: &[u8]) -> Option<(SectionId, bool)> {
    // Mach-O, whose names have 16 bytes at most.
    let mach_o = name
        .strip_prefix(b"__debug_")
        .or_else(|| name.strip_prefix(b"__zdebug_"));
    if let Some(stem) = mach_o {
        let is_same = |id: &SectionId| {
            let own = id.name().as_bytes().strip_prefix(b".debug_");
            own.is_some_and(|own| own == stem || own == b"str_offsets" && stem == b"str_offs")
        };
        return Some((USED.into_iter().find(is_same)?, false));
    }
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
    // The stated size is trusted up to a generous ratio.
    let hint = section.range.len().saturating_mul(16).saturating_add(4096);
    let hint = usize::try_from(size).map_or(hint, |size| size.min(hint));
    let mut out = Vec::with_capacity(hint);
    packing::reader(data, section.range.clone(), section.packed)
        .and_then(|reader| reader.take(size).read_to_end(&mut out))
        .map_err(|e| Error::damaged(name, e))?;
    if out.len() as u64 != size {
        return Err(Error::damaged(
            name,
            "its decompressed size is smaller than its header states",
        ));
    }
    Ok(out)
}
