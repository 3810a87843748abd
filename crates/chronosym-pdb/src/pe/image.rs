//! The headers of an image, and what they lead to.

use std::fmt;

use object::LittleEndian as LE;
use object::pe;
use object::read::coff::SectionTable;
use object::read::pe::{DataDirectories, ImageNtHeaders, ImageOptionalHeader};

use crate::metadata::{IlBody, Metadata};
use crate::{Error, Result};

const WHAT: &str = "PE image";

/// The processor of an image.
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
    /// Any other COFF machine, as the file states it.
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
    /// macOS and its kin.
    Apple,
    /// FreeBSD.
    FreeBsd,
    /// NetBSD.
    NetBsd,
    /// Solaris and illumos.
    SunOs,
}

/// ReadyToRun images for other systems have the COFF machine XORed with one of these words.
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

/// A range of an image in memory, relative to its base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RvaRange {
    /// Where it starts.
    pub rva: u32,
    /// Its length in bytes.
    pub size: u32,
}

/// A section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Section<'d> {
    /// The name in the section header, at most eight bytes.
    pub name: &'d [u8],
    /// Where it is mapped.
    pub rva: u32,
    /// Its size in memory.
    pub virtual_size: u32,
    /// Where its bytes are in the file, as the header states it.
    pub file_offset: u32,
    /// How many bytes of the file it takes, as the header states it.
    pub file_size: u32,
}

/// The CLR header of a managed image (ECMA-335 II.25.3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CorHeader {
    /// The IL metadata.
    pub metadata: RvaRange,
    /// Flags; bit 2 (4): precompiled code stands beside IL.
    pub flags: u32,
    /// Where a precompiled image's own header is; size 0 without one.
    pub managed_native_header: RvaRange,
}

/// The headers of a PE image. Opening it reads nothing else.
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
    /// Reads the headers of a PE32 or PE32+ file.
    ///
    /// # Errors
    /// [`Error::NotA`] if the headers are not those of a PE image.
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

    /// The whole file.
    pub fn data(&self) -> &'d [u8] {
        self.data
    }

    /// The processor, with the OS word of ReadyToRun images undone.
    pub fn machine(&self) -> Machine {
        split_machine(self.file_header.machine.get(LE).0).0
    }

    /// The system that the code was compiled for.
    pub fn target_os(&self) -> TargetOs {
        split_machine(self.file_header.machine.get(LE).0).1
    }

    /// The COFF time stamp: one half of a PE file's key in symbol stores. A hash in reproducible builds.
    pub fn timestamp(&self) -> u32 {
        self.file_header.time_date_stamp.get(LE)
    }

    /// The size of the image in memory: the other half.
    pub fn size_of_image(&self) -> u32 {
        self.size_of_image
    }

    /// The address that the image would like to be loaded at.
    pub fn image_base(&self) -> u64 {
        self.image_base
    }

    /// The sections in file order.
    pub fn sections(&self) -> impl Iterator<Item = Section<'d>> + '_ {
        self.sections.iter().map(|section| Section {
            name: section.raw_name(),
            rva: section.virtual_address.get(LE),
            virtual_size: section.virtual_size.get(LE),
            file_offset: section.pointer_to_raw_data.get(LE),
            file_size: section.size_of_raw_data.get(LE),
        })
    }

    /// The bytes from `rva` to the end of its section's file data.
    pub fn data_at(&self, rva: u32) -> Option<&'d [u8]> {
        self.sections.pe_data_at(self.data, rva)
    }

    /// The bytes of a range, if all of them are in the file.
    pub fn slice(&self, range: RvaRange) -> Option<&'d [u8]> {
        self.data_at(range.rva)?.get(..range.size as usize)
    }

    /// As [`PeImage::slice`], for a range that must be there.
    pub(crate) fn required(&self, range: RvaRange, what: &'static str) -> Result<&'d [u8]> {
        let truncated = Error::truncated(what, range.rva.into(), range.size.into());
        self.slice(range).ok_or(truncated)
    }

    /// A data directory of the optional header; nothing if absent or empty.
    pub fn directory(&self, index: usize) -> Option<RvaRange> {
        self.directories.get(index).map(range)
    }

    /// The CLR header, if the image is managed and the header is in the file.
    pub fn cor_header(&self) -> Option<CorHeader> {
        let range = self.directory(pe::IMAGE_DIRECTORY_ENTRY_COM_DESCRIPTOR)?;
        self.cor_header_at(range.rva)
    }

    /// A CLR header at `rva`: composites embed those of their components.
    pub fn cor_header_at(&self, rva: u32) -> Option<CorHeader> {
        let (header, _) = object::from_bytes::<pe::ImageCor20Header>(self.data_at(rva)?).ok()?;
        Some(CorHeader {
            metadata: range(&header.meta_data),
            flags: header.flags.get(LE).0,
            managed_native_header: range(&header.managed_native_header),
        })
    }

    /// The IL metadata.
    ///
    /// # Errors
    /// [`Error::NotA`] if the image is not managed; those of [`Metadata::parse`].
    pub fn metadata(&self) -> Result<Metadata<'d>> {
        const WHAT: &str = "managed image";
        let cor = self.cor_header().ok_or(Error::NotA { what: WHAT })?;
        Metadata::parse(self.required(cor.metadata, WHAT)?)
    }

    /// The IL body of a MethodDef row; nothing if it has none or the body leaves the file.
    pub fn il_body(&self, metadata: &Metadata<'_>, method: u32) -> Option<IlBody<'d>> {
        let rva = metadata.method_def(method)?.rva;
        IlBody::parse(self.data_at(Some(rva).filter(|&rva| rva != 0)?)?)
    }

    /// The RVA of an export; nothing for a forwarder, or where the entry is damaged.
    pub fn export(&self, name: &[u8]) -> Option<u32> {
        let table = self.directories.export_table(self.data, &self.sections);
        let table = table.ok()??;
        table.name_iter().find_map(|(pointer, index)| {
            let own = table.name_from_pointer(pointer).ok()?;
            let rva = table.address_by_index(index).ok()?;
            (own == name && !table.is_forward(rva)).then_some(rva)
        })
    }
}
