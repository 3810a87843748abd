//! The build of an object file, and the contents that it kept: stripped images lack debug
//! information, debug files lack code.

use object::elf::{SHF_ALLOC, SHF_EXECINSTR};
use object::read::{Object, ObjectSection, ObjectSegment, ObjectSymbol, Result};
use object::{BinaryFormat, File, SectionFlags, Segment};

use crate::identity::BuildId;

/// Returns the build ID of an ELF file, or the UUID of a Mach-O file.
pub(crate) fn build_id(file: &File<'_>) -> Result<Option<BuildId>> {
    let uuid = file.mach_uuid()?.and_then(|uuid| BuildId::new(&uuid));
    Ok(file.build_id()?.and_then(BuildId::new).or(uuid))
}

/// Returns the segment of a Mach-O file that has its headers and code.
pub(crate) fn text_segment<'d, 'f>(file: &'f File<'d>) -> Option<Segment<'d, 'f>> {
    let mut segments = file.segments();
    segments.find(|segment| segment.name_bytes() == Ok(Some(b"__TEXT")))
}

/// Returns true unless the bytes of all code were removed, as from a debug file.
pub(crate) fn has_code(file: &File<'_>) -> bool {
    if file.format() == BinaryFormat::MachO {
        return text_segment(file).is_some_and(|segment| segment.file_range().1 > 0);
    }
    let mut code = file.sections().filter(|section| match section.flags() {
        SectionFlags::Elf { sh_flags, .. } => {
            sh_flags.contains(SHF_ALLOC | SHF_EXECINSTR) && section.size() > 0
        }
        _ => false,
    });
    // A file whose sections were removed as well is an image.
    let Some(first) = code.next() else {
        return true;
    };
    first.file_range().is_some() || code.any(|section| section.file_range().is_some())
}

/// Returns true if there is DWARF or a symbol table, which stripped images do not have.
pub(crate) fn has_debug(file: &File<'_>) -> bool {
    // The symbol table is not a section there. A stripped image has those that it imports and
    // exports.
    if file.format() == BinaryFormat::MachO && file.symbols().any(|it| it.is_local()) {
        return true;
    }
    file.sections().any(|section| {
        let name = section.name_bytes().unwrap_or_default();
        let names = [
            &b".debug_info"[..],
            b".zdebug_info",
            b".symtab",
            b"__debug_info",
        ];
        let debug = names.contains(&name);
        debug && section.file_range().is_some_and(|(_, size)| size > 0)
    })
}
