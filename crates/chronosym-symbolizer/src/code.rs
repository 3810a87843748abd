//! Reads the machine code of images from their files.

use chronosym_pdb::pe::Machine;
use chronosym_symbols::elf_code;
use chronosym_symbols::identity::BuildId;
use chronosym_symbols::mmap::FileData;

use crate::elf::{ElfAddressing, ElfFile};
use crate::files::{FileError, Open};
use crate::mapped;
use crate::pe::ImageFile;
use crate::search::{FileAt, FileRequest, Search, SymbolFile};
use crate::symbolizer::Symbolizer;
use chronosym_core::ImageRef;

/// The bytes of one file.
struct Mapped(FileData);

impl Open for Mapped {
    fn open(_: &FileAt, data: FileData, _: &Search) -> Result<Self, FileError> {
        Ok(Mapped(data))
    }
}

impl Symbolizer {
    /// Returns the file of an image itself: where it was searched for, and the result.
    pub fn image_file(&self, image: &ImageRef<'_>) -> SymbolFile {
        if is_elf(image) {
            return ElfFile::image(image, &self.files.search);
        }
        match FileRequest::image(image) {
            Some(request) => self.files.search.first([request]),
            None => SymbolFile::unidentified(),
        }
    }

    /// Returns the processor, if known, and up to `most` bytes of an image's machine code, starting
    /// at an RVA. `None` if the file is not available ([`Symbolizer::image_file`] states the
    /// reason) or has no bytes at that RVA.
    pub fn machine_code(
        &self,
        image: &ImageRef<'_>,
        rva: u64,
        most: usize,
    ) -> Option<(Option<Machine>, Vec<u8>)> {
        let file = self.image_file(image);
        let at = file.file()?;
        if !is_elf(image) {
            return pe_code(&*self.files.open::<ImageFile>(at).ok()?, rva, most);
        }
        let address = ElfAddressing::of(image).address(rva);
        let open = self.files.open::<Mapped>(at).ok()?;
        let (processor, code) = elf_code(&open.0, address, most)?;
        Some((processor, code.to_vec()))
    }
}

fn is_elf(image: &ImageRef<'_>) -> bool {
    image.part.is_none() && mapped::is_elf(image)
        || image.build_id.and_then(BuildId::parse).is_some()
}

fn pe_code(file: &ImageFile, rva: u64, most: usize) -> Option<(Option<Machine>, Vec<u8>)> {
    file.with(|parts| {
        let code = parts.image.data_at(u32::try_from(rva).ok()?)?;
        let code = code[..code.len().min(most)].to_vec();
        Some((Some(parts.image.machine()), code))
    })
}
