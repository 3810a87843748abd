//! The headers of an object file, read when it is opened.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object::read::{Object, ObjectSection};
use object::{Architecture, ObjectKind, SectionFlags, SectionIndex};

use super::contents;
use super::layout::Layout;
use super::packing;
use super::sections::DebugSections;
use super::segments::Segments;
use super::universal::{self, Choice};
use crate::breakpad::Module;
use crate::error::{Error, Result};
use crate::identity::BuildId;
use crate::mmap::FileData;

/// The container format of an object file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Elf,
    Pe,
    MachO,
    /// Text, without sections and segments.
    Breakpad,
}

/// The headers and the bytes of an object file.
#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) data: FileData,
    pub(crate) format: Format,
    pub(crate) endian: gimli::RunTimeEndian,
    pub(crate) arm32: bool,
    /// True if symbol names encode the calling convention: PE for 32-bit x86.
    pub(crate) decorated: bool,
    pub(crate) build_id: Option<BuildId>,
    pub(crate) debug: DebugSections,
    /// Virtual addresses of code: sorted, disjoint ranges.
    pub(crate) code: Vec<Range<u64>>,
    /// The folder of the file, links resolved, if it was opened by path.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) segments: Segments,
    /// For files that are not linked.
    layout: Option<Arc<Layout>>,
    /// True if the file was compressed as a whole.
    was_packed: bool,
}

impl Container {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Self::open_choice(path, Choice::Only)
    }

    /// Opens one image of a file that may be universal.
    pub(crate) fn open_choice(path: &Path, choice: Choice<'_>) -> Result<Self> {
        let mut container = Self::parse_choice(FileData::map(path)?, choice)?;
        let real = path.canonicalize().ok();
        container.folder = real.as_deref().and_then(Path::parent).map(Path::to_owned);
        Ok(container)
    }

    /// Reads the headers of a file, which may be compressed as a whole.
    pub(crate) fn parse(data: FileData) -> Result<Self> {
        Self::parse_choice(data, Choice::Only)
    }

    fn parse_choice(data: FileData, choice: Choice<'_>) -> Result<Self> {
        let unpacked = packing::whole_file(&data)?;
        let was_packed = unpacked.is_some();
        let data = unpacked.unwrap_or(data);
        if Module::sniff(&data) {
            return Self::breakpad(data, was_packed);
        }
        let data = match universal::image(&data, choice)? {
            Some(range) => data.part(range),
            None => data,
        };
        let file = parse(&data)?;
        let format = match &file {
            object::File::Elf32(_) | object::File::Elf64(_) => Format::Elf,
            object::File::Pe32(_) | object::File::Pe64(_) => Format::Pe,
            object::File::MachO32(_) | object::File::MachO64(_) => Format::MachO,
            _ => return Err(Error::UnknownFormat),
        };
        if format == Format::MachO && file.kind() == ObjectKind::Relocatable {
            let what = "a Mach-O object file";
            return Err(Error::Unsupported { what });
        }
        let layout = Layout::of(&file).map(Arc::new);
        let segments = Segments::of(&file, layout.as_deref());
        let code_range = |s| code_range(&s, layout.as_deref());
        let mut code: Vec<Range<u64>> = file.sections().filter_map(code_range).collect();
        if code.is_empty() {
            code = segments.code().collect();
        }
        code.sort_unstable_by_key(|r| r.start);
        code.dedup_by(|next, kept| {
            let joins = next.start <= kept.end;
            if joins {
                kept.end = kept.end.max(next.end);
            }
            joins
        });

        let build_id = contents::build_id(&file).ok().flatten();
        let endian = if file.is_little_endian() {
            gimli::RunTimeEndian::Little
        } else {
            gimli::RunTimeEndian::Big
        };
        let arm32 = file.architecture() == Architecture::Arm;
        let decorated = format == Format::Pe && file.architecture() == Architecture::I386;
        let debug = DebugSections::find(&data, &file, endian, layout.clone());
        drop(file);
        Ok(Self {
            data,
            format,
            endian,
            arm32,
            decorated,
            build_id,
            debug,
            code,
            folder: None,
            segments,
            layout,
            was_packed,
        })
    }

    fn breakpad(data: FileData, was_packed: bool) -> Result<Self> {
        let module = Module::parse(&data)?;
        Ok(Self {
            format: Format::Breakpad,
            endian: gimli::RunTimeEndian::Little,
            arm32: false,
            decorated: false,
            build_id: module.build_id,
            debug: DebugSections::none(&data),
            // Its ranges are known only after reading all records.
            code: std::iter::once(0..u64::MAX).collect(),
            folder: None,
            segments: Segments::none(),
            layout: None,
            was_packed,
            data,
        })
    }

    /// Parses the headers again, for data that is read on demand.
    pub(crate) fn file(&self) -> Result<object::File<'_>> {
        parse(&self.data)
    }

    /// Virtual addresses of the first section with this name, if it is loaded.
    pub(crate) fn section(&self, name: &str) -> Option<Range<u64>> {
        let file = self.file().ok()?;
        let is_same = |other: &[u8]| other == name.as_bytes();
        let mut named = file
            .sections()
            .filter(|s| s.name_bytes().is_ok_and(is_same));
        named.find_map(|s| loaded(&s, self.layout.as_deref()))
    }

    /// Returns true if it has a symbol table of its own.
    pub(crate) fn has_symbols(&self) -> bool {
        self.file()
            .is_ok_and(|file| file.symbols().next().is_some())
    }

    /// Returns the number to add to the value of a symbol in this section to get its address.
    pub(crate) fn section_start(&self, section: SectionIndex) -> u64 {
        let range = self
            .layout
            .as_ref()
            .and_then(|layout| layout.range(section));
        range.map_or(0, |range| range.start)
    }

    /// Returns whether a section holds code, by section index.
    pub(crate) fn code_sections(&self) -> Vec<bool> {
        let mut code = Vec::new();
        for section in self.file().iter().flat_map(|file| file.sections()) {
            let is_code = code_range(&section, self.layout.as_deref()).is_some();
            // Sections come in the order of their indices, which may have gaps.
            code.resize(section.index().0, false);
            code.push(is_code);
        }
        code
    }

    /// Returns true unless `.comment` names a compiler that is not GCC.
    pub(crate) fn is_all_of_gcc(&self) -> bool {
        let file = self.file().ok();
        let comment = file.as_ref().and_then(|f| f.section_by_name(".comment"));
        let text = comment.and_then(|section| section.data().ok());
        let mut makers = text.unwrap_or_default().split(|&byte| byte == 0);
        makers.all(|maker| maker.is_empty() || maker.starts_with(b"GCC:"))
    }

    /// Returns true if the debug information stayed in the object files that a Mach-O image was
    /// linked from (a debug map).
    pub(crate) fn has_debug_map(&self) -> bool {
        let is_mapped = |file: object::File<'_>| !file.object_map().objects().is_empty();
        self.format == Format::MachO && self.file().is_ok_and(is_mapped)
    }

    pub(crate) fn is_mapped(&self, va: u64) -> bool {
        self.segments.contains(va) || self.is_code(va)
    }

    /// Bytes of memory that decompression uses at most, in addition to the bytes of the file.
    pub(crate) fn unpacked_bytes(&self) -> u64 {
        let whole = self.data.len() as u64;
        let whole = if self.was_packed { whole } else { 0 };
        whole.saturating_add(self.debug.unpacked_bytes())
    }

    /// Returns true for an address in an executable section.
    pub(crate) fn is_code(&self, va: u64) -> bool {
        contains(&self.code, va)
    }

    /// Checks that the file has this build ID.
    pub(crate) fn expect_build_id(&self, wanted: &BuildId) -> Result<()> {
        if self.build_id.as_ref() == Some(wanted) {
            return Ok(());
        }
        Err(Error::BuildIdMismatch {
            wanted: wanted.clone(),
            found: self.build_id.clone(),
        })
    }
}

fn parse(data: &[u8]) -> Result<object::File<'_>> {
    match object::FileKind::parse(data) {
        Ok(
            object::FileKind::Elf32
            | object::FileKind::Elf64
            | object::FileKind::Pe32
            | object::FileKind::Pe64
            | object::FileKind::MachO32
            | object::FileKind::MachO64,
        ) => object::File::parse(data).map_err(|e| Error::damaged("file header", e)),
        _ => Err(match other_format(data) {
            Some(what) => Error::Unsupported { what },
            None => Error::UnknownFormat,
        }),
    }
}

/// Names of formats that are not supported.
fn other_format(data: &[u8]) -> Option<&'static str> {
    let machine = |low, high| matches!([low, high], [0x64, 0x86] | [0x4C, 0x01] | [0x64, 0xAA]);
    Some(match data {
        [b'!', b'<', b'a', b'r', b'c', b'h', b'>', ..] => "an archive of object files",
        // In either byte order.
        [b'S', b'Y', b'M', b'C', ..] | [b'C', b'M', b'Y', b'S', ..] => "a SymCache of symbolic",
        [0, b'a', b's', b'm', ..] => "WebAssembly",
        // COFF, plain or with many sections.
        [0, 0, 0xFF, 0xFF, ..] => "a COFF object file",
        &[low, high, ..] if machine(low, high) => "a COFF object file",
        _ => return None,
    })
}

/// Returns true if one of the sorted, disjoint ranges contains the address.
pub(crate) fn contains(code: &[Range<u64>], va: u64) -> bool {
    let next = code.partition_point(|r| r.start <= va);
    let before = next.checked_sub(1).and_then(|i| code.get(i));
    before.is_some_and(|range| va < range.end)
}

/// Virtual addresses of a section, if it is loaded.
fn loaded<'d>(section: &impl ObjectSection<'d>, layout: Option<&Layout>) -> Option<Range<u64>> {
    if let Some(layout) = layout {
        return layout.range(section.index());
    }
    let is_loaded = match section.flags() {
        SectionFlags::Elf { sh_flags, .. } => sh_flags.contains(object::elf::SHF_ALLOC),
        _ => true,
    };
    let start = section.address();
    let end = start.checked_add(section.size())?;
    (is_loaded && start < end).then_some(start..end)
}

/// Virtual addresses of a section with code; `None` for other sections.
fn code_range<'d>(section: &impl ObjectSection<'d>, layout: Option<&Layout>) -> Option<Range<u64>> {
    let executable = match section.flags() {
        SectionFlags::Elf { sh_flags, .. } => sh_flags.contains(object::elf::SHF_EXECINSTR),
        SectionFlags::Coff { characteristics } => {
            characteristics.contains(object::pe::IMAGE_SCN_MEM_EXECUTE)
        }
        SectionFlags::MachO { flags, .. } => {
            flags.contains(object::macho::S_ATTR_PURE_INSTRUCTIONS)
                || flags.contains(object::macho::S_ATTR_SOME_INSTRUCTIONS)
        }
        _ => false,
    };
    loaded(section, layout).filter(|range| executable && !range.is_empty())
}
