//! The symbol files of a native image: an ELF file, a PE image, or a PE file mapped in parts.

use chronosym_core::ImageRef;
use chronosym_symbols::identity::BuildId;

use crate::elf::ElfFile;
use crate::files::{Files, Frames};
use crate::mapped;
use crate::pe_image::PeFiles;
use crate::pe_part::PartFiles;
use crate::search::SymbolFile;

/// The files of one image.
pub(super) enum ImageFiles {
    Elf(ElfFile),
    Pe(PeFiles),
    Part(PartFiles),
}

impl ImageFiles {
    pub(super) fn find(image: &ImageRef<'_>, files: &Files) -> Self {
        let has_build_id = image.build_id.and_then(BuildId::parse).is_some();
        match &image.part {
            Some(part) => ImageFiles::Part(PartFiles::find(image, part, files)),
            None if has_build_id || mapped::is_elf(image) => {
                ImageFiles::Elf(ElfFile::find(image, files))
            }
            None => ImageFiles::Pe(PeFiles::find(image, files)),
        }
    }

    /// Returns the approximate size in bytes.
    pub(super) fn weight(&self) -> u64 {
        match self {
            ImageFiles::Elf(elf) => elf.symbols.weight(),
            ImageFiles::Pe(pe) => pe.weight(),
            ImageFiles::Part(part) => part.weight(),
        }
    }

    /// Returns the file that supplies names, or the one with the most specific reason for having
    /// none.
    pub(super) fn best(&self) -> &SymbolFile {
        match self {
            ImageFiles::Elf(elf) => &elf.symbols,
            ImageFiles::Pe(pe) => pe.best(),
            ImageFiles::Part(part) => part.best(),
        }
    }

    /// Returns the frames at an RVA, innermost first; none if the file has no name for it.
    pub(super) fn frames(&self, files: &Files, rva: u64) -> Frames {
        match self {
            ImageFiles::Elf(elf) => elf.frames(files, rva),
            ImageFiles::Pe(pe) => pe.frames(files, rva),
            ImageFiles::Part(part) => part.frames(files, rva),
        }
    }

    /// Resolves many addresses in one pass and caches the results.
    pub(super) fn prepare(&self, files: &Files, rvas: &[u64]) {
        match self {
            ImageFiles::Elf(elf) => elf.prepare(files, rvas),
            ImageFiles::Pe(pe) => pe.prepare(files, rvas),
            ImageFiles::Part(_) => {}
        }
    }
}
