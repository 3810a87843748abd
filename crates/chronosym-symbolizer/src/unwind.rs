//! Unwind tables of ELF images, and what tells a file of this machine from what was mapped.

use std::path::Path;
use std::sync::Arc;

use chronosym_symbols::identity::{BuildId, FileIdentity, Wanted};
use chronosym_symbols::mmap::FileData;
use chronosym_symbols::unwind::{self, UnwindTable};
use chronosym_types::Registers;

use crate::elf::ElfAddressing;
use crate::files::{FileError, Open};
use crate::search::{FileAt, FileRequest, Search};
use crate::symbolizer::Symbolizer;
use chronosym_core::CallerProof;
use chronosym_core::ImageRef;
use chronosym_core::unwind::{CallFrames, FileNumber, ImageFiles, Step};

/// The unwind table of an ELF file.
struct ElfCallFrames(UnwindTable);

impl Open for ElfCallFrames {
    fn open(_: &FileAt, data: FileData, _: &Search) -> Result<Self, FileError> {
        Ok(ElfCallFrames(UnwindTable::parse(data)?))
    }
}

impl ImageFiles for Symbolizer {
    /// Of the image itself, which has `.eh_frame`, or of its debug file, which may have `.debug_frame`.
    fn call_frames(&self, image: &ImageRef<'_>) -> Option<Arc<dyn CallFrames>> {
        let id = image.build_id.and_then(BuildId::parse)?;
        let wanted = [Wanted::ElfImage(id.clone()), Wanted::ElfDebug(id)];
        wanted.into_iter().find_map(|wanted| {
            let file = self
                .files
                .search
                .first([FileRequest::at(wanted, image.path)]);
            let table = self.files.open::<ElfCallFrames>(file.file()?).ok()?;
            (!table.0.is_empty()).then_some(table as Arc<dyn CallFrames>)
        })
    }

    fn build_id(&self, path: &str, file: FileNumber) -> Option<String> {
        if !self.files.search.trusts_paths() || number_of(Path::new(path))? != file {
            return None;
        }
        let data = FileData::map(Path::new(path)).ok()?;
        match chronosym_symbols::store::identity_of(&data) {
            Ok(FileIdentity::Elf { build_id, .. }) => Some(build_id?.to_string()),
            _ => None,
        }
    }
}

impl CallFrames for ElfCallFrames {
    fn step(
        &self,
        image: &ImageRef<'_>,
        rva: u64,
        registers: &mut Registers,
        read: &dyn Fn(u64) -> Option<u64>,
    ) -> Step {
        let of_debug_file = ElfAddressing::of_debug_file(image, |it| self.0.offset_bias(it));
        let addressing = of_debug_file.unwrap_or(ElfAddressing::of(image));
        let address = addressing.address(rva);
        match self.0.step(address, registers, read) {
            unwind::Step::Caller { is_interrupted } => Step::Caller(match is_interrupted {
                true => CallerProof::Signal,
                false => CallerProof::UnwindTable,
            }),
            unwind::Step::Outermost => Step::Outermost,
            unwind::Step::NoEntry => Step::NoEntry,
            _ => Step::Lost,
        }
    }
}

#[cfg(target_os = "linux")]
fn number_of(path: &Path) -> Option<FileNumber> {
    use std::os::unix::fs::MetadataExt;
    let data = path.metadata().ok().filter(|data| data.is_file())?;
    // As the C library packs them.
    let device = data.dev();
    let major = (device >> 8 & 0xfff) | (device >> 32 & !0xfff);
    let minor = (device & 0xff) | (device >> 12 & !0xff);
    Some(FileNumber {
        device: (major as u32, minor as u32),
        inode: data.ino(),
    })
}

#[cfg(not(target_os = "linux"))]
fn number_of(_: &Path) -> Option<FileNumber> {
    None
}
