//! Which contents an ELF file kept: stripped images lack debug information, debug files lack code.

use object::elf::{SHF_ALLOC, SHF_EXECINSTR};
use object::read::{Object, ObjectSection};
use object::{File, SectionFlags};

/// True unless the bytes of all code were removed, as from a debug file.
pub(crate) fn has_code(file: &File<'_>) -> bool {
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

/// True if there is DWARF or a symbol table, which stripped images do not have.
pub(crate) fn has_debug(file: &File<'_>) -> bool {
    file.sections().any(|section| {
        let name = section.name_bytes().unwrap_or_default();
        let debug = [&b".debug_info"[..], b".zdebug_info", b".symtab"].contains(&name);
        debug && section.file_range().is_some_and(|(_, size)| size > 0)
    })
}
