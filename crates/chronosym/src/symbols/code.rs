//! The machine code of images, out of their files.

use std::path::Path;

use chronosym_pdb::pe::Machine;
use chronosym_symbols::identity::{BuildId, PeId, Wanted};
use chronosym_symbols::mmap::FileData;
use chronosym_symbols::{Address, elf_code};

use super::Symbolizer;
use super::files::{FileError, Open};
use super::pe::ImageFile;
use super::search::{ANY, Search, SymbolFile, distinct};
use crate::images::{Addressing, file_name};
use crate::symbol_source::ImageRef;

/// The bytes of a file.
struct Mapped(FileData);

impl Open for Mapped {
    fn open(_: &Path, data: FileData, _: &Search) -> Result<Self, FileError> {
        Ok(Mapped(data))
    }
}

impl Symbolizer {
    /// The file of an image itself: where it was looked for, and what came of it.
    pub fn image_file(&self, image: &ImageRef<'_>) -> SymbolFile {
        let mut file = SymbolFile::unidentified();
        let wanted = match (image.build_id.and_then(BuildId::parse), image.timestamp) {
            (Some(id), _) => Wanted::ElfImage(id),
            (None, Some(timestamp)) => {
                let Ok(size_of_image) = u32::try_from(image.size) else {
                    return file;
                };
                let pe = PeId {
                    timestamp,
                    size_of_image,
                };
                Wanted::Image {
                    pe: Some(pe),
                    pdb: None,
                }
            }
            (None, None) => return file,
        };
        let names = distinct(vec![file_name(image.path).to_owned()]);
        let paths = distinct(vec![image.path.to_owned()]);
        let search = &self.files.search;
        search.everywhere(&mut file, &wanted, &names, &paths, ANY);
        file
    }

    /// The processor, where it is known, and up to `most` bytes of an image's machine code from an RVA on. `None` where its file is not at hand
    /// ([`Symbolizer::image_file`] says why), or has no bytes there.
    pub fn machine_code(
        &self,
        image: &ImageRef<'_>,
        rva: u64,
        most: usize,
    ) -> Option<(Option<Machine>, Vec<u8>)> {
        let file = self.image_file(image);
        let at = file.file()?;
        let address = match (image.build_id, image.addressing) {
            (None, _) => return pe_code(&*self.files.open::<ImageFile>(at).ok()?, rva, most),
            (_, Addressing::Rva) => Address::Rva(rva),
            (_, Addressing::Virtual) => Address::VirtualAddress(rva),
            (_, Addressing::FileOffset) => Address::FileOffset(rva),
        };
        let open = self.files.open::<Mapped>(at).ok()?;
        let (processor, code) = elf_code(&open.0, address, most)?;
        Some((processor, code.to_vec()))
    }
}

fn pe_code(file: &ImageFile, rva: u64, most: usize) -> Option<(Option<Machine>, Vec<u8>)> {
    file.with(|parts| {
        let code = parts.image.data_at(u32::try_from(rva).ok()?)?;
        let code = code[..code.len().min(most)].to_vec();
        Some((Some(parts.image.machine()), code))
    })
}
