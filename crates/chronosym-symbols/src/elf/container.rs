//! What is read of an object file when it is opened: its headers, nothing else.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object::read::{Object, ObjectSection, ObjectSegment};
use object::{Architecture, SectionFlags, SectionIndex};

use super::layout::Layout;
use super::packing;
use super::sections::DebugSections;
use crate::answer::Address;
use crate::error::{Error, Result};
use crate::identity::BuildId;
use crate::mmap::FileData;

/// The container format of an object file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Elf,
    Pe,
}

/// A part of the file that is mapped.
#[derive(Clone, Debug)]
struct Segment {
    memory: Range<u64>,
    file: Range<u64>,
    executable: bool,
}

/// An object file's headers, and its bytes.
#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) data: FileData,
    pub(crate) format: Format,
    pub(crate) endian: gimli::RunTimeEndian,
    pub(crate) arm32: bool,
    /// True if names in the symbol table say how their functions are called: PE for 32-bit x86.
    pub(crate) decorated: bool,
    pub(crate) build_id: Option<BuildId>,
    pub(crate) debug: DebugSections,
    /// Virtual addresses of code, sorted, disjoint.
    pub(crate) code: Vec<Range<u64>>,
    /// Where the file really lies, if it was opened by its path.
    pub(crate) folder: Option<PathBuf>,
    base: u64,
    segments: Vec<Segment>,
    /// If the file is not linked.
    layout: Option<Arc<Layout>>,
    /// If the file was compressed as a whole.
    was_packed: bool,
}

impl Container {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let mut container = Self::parse(FileData::map(path)?)?;
        let real = path.canonicalize().ok();
        container.folder = real.as_deref().and_then(Path::parent).map(Path::to_owned);
        Ok(container)
    }

    /// Reads the headers of a file, which may be compressed as a whole.
    pub(crate) fn parse(data: FileData) -> Result<Self> {
        let unpacked = packing::whole_file(&data)?;
        let was_packed = unpacked.is_some();
        let data = unpacked.unwrap_or(data);
        let file = parse(&data)?;
        let format = match &file {
            object::File::Elf32(_) | object::File::Elf64(_) => Format::Elf,
            object::File::Pe32(_) | object::File::Pe64(_) => Format::Pe,
            _ => return Err(Error::UnknownFormat),
        };
        let layout = Layout::of(&file).map(Arc::new);
        let segments: Vec<Segment> = match &layout {
            None => file.segments().filter_map(|s| segment(&s)).collect(),
            Some(layout) => file.sections().filter_map(|s| placed(&s, layout)).collect(),
        };
        let base = match format {
            Format::Pe => file.relative_address_base(),
            // Where the system maps the first page of the file: loaders map whole pages.
            Format::Elf => segments
                .iter()
                .map(|s| s.memory.start & !0xfff)
                .min()
                .unwrap_or(0),
        };
        let code_range = |s| code_range(&s, layout.as_deref());
        let mut code: Vec<Range<u64>> = file.sections().filter_map(code_range).collect();
        if code.is_empty() {
            code = segments
                .iter()
                .filter(|s| s.executable)
                .map(|s| s.memory.clone())
                .collect();
        }
        code.sort_unstable_by_key(|r| r.start);
        code.dedup_by(|next, kept| {
            let joins = next.start <= kept.end;
            if joins {
                kept.end = kept.end.max(next.end);
            }
            joins
        });

        let build_id = file.build_id().ok().flatten().and_then(BuildId::new);
        let endian = if file.is_little_endian() {
            gimli::RunTimeEndian::Little
        } else {
            gimli::RunTimeEndian::Big
        };
        let arm32 = file.architecture() == Architecture::Arm;
        let decorated = format == Format::Pe && file.architecture() == Architecture::I386;
        let debug = DebugSections::find(&data, &file, layout.clone());
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
            base,
            segments,
            layout,
            was_packed,
        })
    }

    /// The file again, for what is read of it later. Its headers parsed once, so they parse again.
    pub(crate) fn file(&self) -> Result<object::File<'_>> {
        parse(&self.data)
    }

    /// Virtual address of the image's first byte.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// The virtual address that `address` stands for, if there is one.
    pub(crate) fn virtual_address(&self, address: Address) -> Option<u64> {
        match address {
            Address::VirtualAddress(va) => Some(va),
            Address::Rva(rva) => self.base.checked_add(rva),
            Address::FileOffset(offset) => self
                .segments
                .iter()
                .find(|s| s.file.contains(&offset))
                .and_then(|s| {
                    offset
                        .checked_sub(s.file.start)?
                        .checked_add(s.memory.start)
                }),
        }
    }

    /// The virtual addresses of a section, if it is loaded; of several with its name the first in the file.
    pub(crate) fn section(&self, name: &str) -> Option<Range<u64>> {
        let file = self.file().ok()?;
        let is_it = |found: &[u8]| found == name.as_bytes();
        let mut named = file.sections().filter(|s| s.name_bytes().is_ok_and(is_it));
        named.find_map(|s| loaded(&s, self.layout.as_deref()))
    }

    /// What is to be added to the value of a symbol in a section to make it an address.
    pub(crate) fn section_start(&self, section: SectionIndex) -> u64 {
        let range = self
            .layout
            .as_ref()
            .and_then(|layout| layout.range(section));
        range.map_or(0, |range| range.start)
    }

    /// Which sections hold code, by their index.
    pub(crate) fn code_sections(&self) -> Vec<bool> {
        let mut code = Vec::new();
        for section in self.file().iter().flat_map(|file| file.sections()) {
            let is_code = code_range(&section, self.layout.as_deref()).is_some();
            // They come in the order of their indices, which may leave some out.
            code.resize(section.index().0, false);
            code.push(is_code);
        }
        code
    }

    /// True unless `.comment` names a compiler that is not GCC.
    pub(crate) fn is_all_of_gcc(&self) -> bool {
        let file = self.file().ok();
        let comment = file.as_ref().and_then(|f| f.section_by_name(".comment"));
        let text = comment.and_then(|section| section.data().ok());
        let mut makers = text.unwrap_or_default().split(|&byte| byte == 0);
        makers.all(|maker| maker.is_empty() || maker.starts_with(b"GCC:"))
    }

    pub(crate) fn is_mapped(&self, va: u64) -> bool {
        self.segments.iter().any(|s| s.memory.contains(&va)) || self.is_code(va)
    }

    /// What it comes to hold in memory beside the bytes of its file.
    pub(crate) fn unpacked_bytes(&self) -> u64 {
        let whole = self.data.len() as u64;
        let whole = if self.was_packed { whole } else { 0 };
        whole.saturating_add(self.debug.unpacked_bytes())
    }

    /// True for an address in an executable section.
    pub(crate) fn is_code(&self, va: u64) -> bool {
        contains(&self.code, va)
    }

    /// Checks that this is the build asked for.
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
            | object::FileKind::Pe64,
        ) => object::File::parse(data).map_err(|e| Error::damaged("file header", e)),
        _ => Err(match other_format(data) {
            Some(what) => Error::Unsupported { what },
            None => Error::UnknownFormat,
        }),
    }
}

/// Formats that are known by name only.
fn other_format(data: &[u8]) -> Option<&'static str> {
    let machine = |low, high| matches!([low, high], [0x64, 0x86] | [0x4C, 0x01] | [0x64, 0xAA]);
    Some(match data {
        [0xCE | 0xCF, 0xFA, 0xED, 0xFE, ..] | [0xFE, 0xED, 0xFA, 0xCE | 0xCF, ..] => "Mach-O",
        // Java's classes begin alike; what follows is their version, which is no small number.
        [0xCA, 0xFE, 0xBA, 0xBE | 0xBF, 0, 0, 0, 0..=42, ..] => "Mach-O for several processors",
        [b'M', b'O', b'D', b'U', b'L', b'E', b' ', ..] => "a symbol file of Breakpad",
        [b'!', b'<', b'a', b'r', b'c', b'h', b'>', ..] => "an archive of object files",
        [0, b'a', b's', b'm', ..] => "WebAssembly",
        // COFF, plain or for more sections.
        [0, 0, 0xFF, 0xFF, ..] => "a COFF object file",
        &[low, high, ..] if machine(low, high) => "a COFF object file",
        _ => return None,
    })
}

fn segment<'d>(segment: &impl ObjectSegment<'d>) -> Option<Segment> {
    let (offset, file_size) = segment.file_range();
    let start = segment.address();
    Some(Segment {
        memory: start..start.checked_add(segment.size())?,
        file: offset..offset.checked_add(file_size)?,
        executable: segment.permissions().executable(),
    })
}

/// True if one of the ranges (sorted, disjoint) holds the address.
pub(crate) fn contains(code: &[Range<u64>], va: u64) -> bool {
    let next = code.partition_point(|r| r.start <= va);
    let before = next.checked_sub(1).and_then(|i| code.get(i));
    before.is_some_and(|range| va < range.end)
}

/// A section of a file that is not linked.
fn placed<'d>(section: &impl ObjectSection<'d>, layout: &Layout) -> Option<Segment> {
    let memory = layout.range(section.index())?;
    let file = section.file_range();
    let file = file.and_then(|(offset, size)| Some(offset..offset.checked_add(size)?));
    Some(Segment {
        executable: code_range(section, Some(layout)).is_some(),
        memory,
        file: file.unwrap_or(0..0),
    })
}

/// Where a section is mapped, if it is.
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

/// Where a section of code is mapped; nothing for any other section.
fn code_range<'d>(section: &impl ObjectSection<'d>, layout: Option<&Layout>) -> Option<Range<u64>> {
    let executable = match section.flags() {
        SectionFlags::Elf { sh_flags, .. } => sh_flags.contains(object::elf::SHF_EXECINSTR),
        SectionFlags::Coff { characteristics } => {
            characteristics.contains(object::pe::IMAGE_SCN_MEM_EXECUTE)
        }
        _ => false,
    };
    loaded(section, layout).filter(|range| executable && !range.is_empty())
}
