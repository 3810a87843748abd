//! Unwind tables of ELF images.

use std::sync::Arc;

use chronosym_symbols::identity::{BuildId, Wanted};
use chronosym_symbols::mmap::FileData;
use chronosym_symbols::unwind::{self, UnwindTable};
use chronosym_types::Registers;

use crate::content;
use crate::elf::ElfAddressing;
use crate::files::{FileError, Open};
use crate::search::{FileAt, FileRequest, Search, SymbolFile};
use crate::symbolizer::Symbolizer;
use chronosym_core::CallerProof;
use chronosym_core::ImageRef;
use chronosym_core::unwind::{
    CallFrames, EhFrame, FileByContent, HeaderIdentity, ImageFiles, Step,
};

/// The unwind table of an ELF file.
struct ElfCallFrames(UnwindTable);

impl Open for ElfCallFrames {
    fn open(_: &FileAt, data: FileData, _: &Search) -> Result<Self, FileError> {
        Ok(ElfCallFrames(UnwindTable::parse(data)?))
    }
}

impl ImageFiles for Symbolizer {
    /// Returns the table of the image itself, which has `.eh_frame`, or of its debug file, which
    /// may have `.debug_frame`.
    fn call_frames(&self, image: &ImageRef<'_>) -> Option<Arc<dyn CallFrames>> {
        let table = |file: SymbolFile| {
            let table = self.files.open::<ElfCallFrames>(file.file()?).ok()?;
            (!table.0.is_empty()).then_some(table as Arc<dyn CallFrames>)
        };
        let debug = || {
            let id = image.build_id.and_then(BuildId::parse)?;
            let request = FileRequest::at(Wanted::ElfDebug(id), image.path);
            table(self.files.search.first([request]))
        };
        table(self.image_file(image)).or_else(debug)
    }

    fn identity(&self, file: &FileByContent<'_>) -> Option<HeaderIdentity> {
        content::find(file, &self.files.search.config())
    }

    fn step_jitted(
        &self,
        frames: EhFrame<'_>,
        address: u64,
        registers: &mut Registers,
        read: &dyn Fn(u64) -> Option<u64>,
    ) -> Step {
        of_table(unwind::step_in(
            frames.bytes,
            frames.address,
            address,
            registers,
            read,
        ))
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
        of_table(self.0.step(address, registers, read))
    }
}

/// Converts a step by an unwind table.
fn of_table(step: unwind::Step) -> Step {
    match step {
        unwind::Step::Caller { is_interrupted } => Step::Caller(match is_interrupted {
            true => CallerProof::Signal,
            false => CallerProof::UnwindTable,
        }),
        unwind::Step::Outermost => Step::Outermost,
        unwind::Step::NoEntry => Step::NoEntry,
        _ => Step::Lost,
    }
}
