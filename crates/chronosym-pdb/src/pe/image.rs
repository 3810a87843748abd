//! The headers, sections and directories of an image.

use std::fmt;

use object::LittleEndian as LE;
use object::pe;
use object::read::coff::SectionTable;
use object::read::pe::{DataDirectories, ImageNtHeaders, ImageOptionalHeader};

use crate::metadata::{IlBody, Metadata};
use crate::{Error, Result};

const WHAT: &str = "PE image";

/// The processor of an image (`IMAGE_FILE_MACHINE_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Machine {
    /// 32-bit x86.
    X86,
    /// x86-64.
    X64,
    /// 32-bit ARM, Thumb-2.
    Arm,
    /// 64-bit ARM.
    Arm64,
    /// Any other COFF machine.
    Other(u16),
}

/// The operating system that an image's code was compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TargetOs {
    /// Windows, and IL-only images of any OS.
    Windows,
    /// Linux.
    Linux,
    /// macOS and other Apple systems.
    Apple,
    /// FreeBSD.
    FreeBsd,
    /// NetBSD.
    NetBsd,
    /// Solaris and illumos.
    SunOs,
}

/// ReadyToRun images for other systems than Windows have the COFF machine XORed with one of these
/// (`IMAGE_FILE_MACHINE_NATIVE_OS_OVERRIDE`).
const OS_OVERRIDES: [(u16, TargetOs); 6] = [
    (0, TargetOs::Windows),
    (0x7b79, TargetOs::Linux),
    (0x4644, TargetOs::Apple),
    (0xadc4, TargetOs::FreeBsd),
    (0x1993, TargetOs::NetBsd),
    (0x1992, TargetOs::SunOs),
];

fn split_machine(coff: u16) -> (Machine, TargetOs) {
    for (word, os) in OS_OVERRIDES {
        let machine = match coff ^ word {
            0x14c => Machine::X86,
            0x8664 => Machine::X64,
            0x1c4 => Machine::Arm,
            0xaa64 => Machine::Arm64,
            _ => continue,
        };
        return (machine, os);
    }
    (Machine::Other(coff), TargetOs::Windows)
}

/// A range of an image in memory (`IMAGE_DATA_DIRECTORY`).
///
/// Closed: callers build it as a literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RvaRange {
    /// The RVA of its first byte.
    pub rva: u32,
    /// Its length in bytes.
    pub size: u32,
}

/// A section (`IMAGE_SECTION_HEADER`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Section<'d> {
    /// The name in the header, at most eight bytes.
    pub name: &'d [u8],
    /// The RVA of its first byte.
    pub rva: u32,
    /// Its size in memory.
    pub virtual_size: u32,
    /// Offset of its data in the file, unchecked.
    pub file_offset: u32,
    /// Size of its data in the file, unchecked.
    pub file_size: u32,
}

/// The CLI header of a managed image (ECMA-335 II.25.3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CorHeader {
    /// The IL metadata.
    pub metadata: RvaRange,
    /// Runtime flags (`COMIMAGE_FLAGS_*`); 4 (`IL_LIBRARY`) marks an image with precompiled code.
    pub flags: u32,
    /// The header of precompiled code; size 0 without one.
    pub managed_native_header: RvaRange,
}

/// The headers of a PE image. Parsing reads nothing else.
#[derive(Clone)]
pub struct PeImage<'d> {
    pub(super) data: &'d [u8],
    file_header: &'d pe::ImageFileHeader,
    sections: SectionTable<'d>,
    directories: DataDirectories<'d>,
    image_base: u64,
    size_of_image: u32,
}

impl fmt::Debug for PeImage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeImage")
            .field("machine", &self.machine())
            .field("target_os", &self.target_os())
            .field("timestamp", &self.timestamp())
            .field("size_of_image", &self.size_of_image)
            .finish_non_exhaustive()
    }
}

fn range(directory: &pe::ImageDataDirectory) -> RvaRange {
    RvaRange {
        rva: directory.virtual_address.get(LE),
        size: directory.size.get(LE),
    }
}

fn not_pe(_: object::read::Error) -> Error {
    Error::NotA { what: WHAT }
}

impl<'d> PeImage<'d> {
    /// Parses the headers of a PE32 or PE32+ file.
    ///
    /// # Errors [`Error::NotA`] if the headers are not those of a PE image.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_pdb::pe::{Machine, PeImage};
    ///
    /// let file = std::fs::read("../../testdata/clr10/workload/PluginA.dll")?;
    /// let image = PeImage::parse(&file)?;
    /// assert!(matches!(image.machine(), Machine::X86));
    /// assert_eq!(image.metadata()?.assembly_name(), "PluginA");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn parse(data: &'d [u8]) -> Result<Self> {
        match object::read::pe::optional_header_magic(data).map_err(not_pe)? {
            pe::IMAGE_NT_OPTIONAL_HDR32_MAGIC => Self::parse_as::<pe::ImageNtHeaders32>(data),
            pe::IMAGE_NT_OPTIONAL_HDR64_MAGIC => Self::parse_as::<pe::ImageNtHeaders64>(data),
            _ => Err(Error::NotA { what: WHAT }),
        }
    }

    fn parse_as<H: ImageNtHeaders>(data: &'d [u8]) -> Result<Self> {
        let dos = pe::ImageDosHeader::parse(data).map_err(not_pe)?;
        let mut offset = dos.nt_headers_offset().into();
        let (headers, directories) = H::parse(data, &mut offset).map_err(not_pe)?;
        let sections = headers.sections(data, offset).map_err(not_pe)?;
        let optional = headers.optional_header();
        Ok(Self {
            data,
            file_header: headers.file_header(),
            sections,
            directories,
            image_base: optional.image_base(),
            size_of_image: optional.size_of_image(),
        })
    }

    /// Returns the whole file.
    pub fn data(&self) -> &'d [u8] {
        self.data
    }

    /// Returns the processor, without a ReadyToRun image's OS override.
    pub fn machine(&self) -> Machine {
        split_machine(self.file_header.machine.get(LE).0).0
    }

    /// Returns the operating system that the code was compiled for.
    pub fn target_os(&self) -> TargetOs {
        split_machine(self.file_header.machine.get(LE).0).1
    }

    /// Returns the COFF time stamp, a hash in deterministic builds. With the image size it is the
    /// key of a PE file in symbol stores.
    pub fn timestamp(&self) -> u32 {
        self.file_header.time_date_stamp.get(LE)
    }

    /// `SizeOfImage`: the size of the image in memory, in bytes.
    pub fn size_of_image(&self) -> u32 {
        self.size_of_image
    }

    /// Returns the preferred load address (`ImageBase`).
    pub fn image_base(&self) -> u64 {
        self.image_base
    }

    /// Returns the sections in file order.
    pub fn sections(&self) -> impl Iterator<Item = Section<'d>> + '_ {
        self.sections.iter().map(|section| Section {
            name: section.raw_name(),
            rva: section.virtual_address.get(LE),
            virtual_size: section.virtual_size.get(LE),
            file_offset: section.pointer_to_raw_data.get(LE),
            file_size: section.size_of_raw_data.get(LE),
        })
    }

    /// Returns the bytes from `rva` to the end of its section's file data.
    pub fn data_at(&self, rva: u32) -> Option<&'d [u8]> {
        self.sections.pe_data_at(self.data, rva)
    }

    /// Returns the bytes of a range; `None` unless the file has all of them.
    pub fn slice(&self, range: RvaRange) -> Option<&'d [u8]> {
        self.data_at(range.rva)?.get(..range.size as usize)
    }

    /// As [`PeImage::slice`], for a range that the image needs.
    pub(crate) fn required(&self, range: RvaRange, what: &'static str) -> Result<&'d [u8]> {
        let truncated = Error::truncated(what, range.rva.into(), range.size.into());
        self.slice(range).ok_or(truncated)
    }

    /// Returns a data directory of the optional header; `None` if it is absent or empty.
    pub fn directory(&self, index: usize) -> Option<RvaRange> {
        self.directories.get(index).map(range)
    }

    /// Returns the CLI header; `None` if the image is not managed.
    pub fn cor_header(&self) -> Option<CorHeader> {
        let range = self.directory(pe::IMAGE_DIRECTORY_ENTRY_COM_DESCRIPTOR)?;
        self.cor_header_at(range.rva)
    }

    /// Returns the CLI header at `rva`: composite images embed those of their components.
    pub fn cor_header_at(&self, rva: u32) -> Option<CorHeader> {
        let (header, _) = object::from_bytes::<pe::ImageCor20Header>(self.data_at(rva)?).ok()?;
        Some(CorHeader {
            metadata: range(&header.meta_data),
            flags: header.flags.get(LE).0,
            managed_native_header: range(&header.managed_native_header),
        })
    }

    /// Returns the IL metadata.
    ///
    /// # Errors
    /// [`Error::NotA`] if the image is not managed; those of [`Metadata::parse`].
    pub fn metadata(&self) -> Result<Metadata<'d>> {
        const WHAT: &str = "managed image";
        let cor = self.cor_header().ok_or(Error::NotA { what: WHAT })?;
        Metadata::parse(self.required(cor.metadata, WHAT)?)
    }

    /// Returns the IL body of a MethodDef row; `None` if it has none or the body exceeds the file.
    pub fn il_body(&self, metadata: &Metadata<'_>, method: u32) -> Option<IlBody<'d>> {
        let rva = metadata.method_def(method)?.rva;
        IlBody::parse(self.data_at(Some(rva).filter(|&rva| rva != 0)?)?)
    }

    /// Returns the RVA of an export; `None` for a forwarder or a malformed entry.
    pub fn export(&self, name: &[u8]) -> Option<u32> {
        let table = self.directories.export_table(self.data, &self.sections);
        let table = table.ok()??;
        table.name_iter().find_map(|(pointer, index)| {
            let exported = table.name_from_pointer(pointer).ok()?;
            let rva = table.address_by_index(index).ok()?;
            (exported == name && !table.is_forward(rva)).then_some(rva)
        })
    }
}
