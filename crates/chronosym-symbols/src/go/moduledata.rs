//! Finds Go's function table in a file, and reads the runtime's description of the program
//! (`runtime.moduledata`).

use object::File;
use object::read::{Object, ObjectSection};

use super::image::{Image, structures};
use super::inlined::InlineTrees;
use super::pclntab::{Header, Layout, Pclntab};

/// The first address of a function.
const MIN_PC: usize = 20;
/// The start of the text.
const TEXT: usize = 22;
/// Possible indices, depending on the release, of the base address of function data.
const FUNCTION_DATA: std::ops::Range<usize> = 36..48;

/// Sections with the table: of ELF, of position-independent ELF, of Mach-O.
const SECTIONS: [&str; 3] = [".gopclntab", ".data.rel.ro.gopclntab", "__gopclntab"];

/// A function table, with its virtual address.
#[derive(Clone, Copy)]
struct Located<'a> {
    address: u64,
    table: Pclntab<'a>,
}

/// The data necessary to resolve addresses by a function table.
#[derive(Clone, Copy)]
pub(super) struct Module<'a> {
    pub(super) table: Pclntab<'a>,
    /// The address that functions are relative to.
    pub(super) text: u64,
    /// The inline trees.
    pub(super) trees: Option<InlineTrees<'a>>,
}

/// Returns the function table of a file, if it is a Go binary.
pub(super) fn find<'a>(file: &File<'a>) -> Option<Module<'a>> {
    let image = Image::of(file);
    let Located { address, table } = in_section(file, &image).or_else(|| anywhere(file, &image))?;
    if table.header.layout < Layout::Go118 {
        let trees = InlineTrees::at_addresses(&image, table);
        return Some(Module {
            table,
            text: 0,
            trees,
        });
    }
    let names = address.checked_add(table.header.names as u64)?;
    let first = table.function(0)?;
    let modules = structures(file, &image, [address, names], table.header.pointer);
    // Both statements of the first function's address agree.
    let module = modules.iter().find(|module| {
        let start = module
            .get(TEXT)
            .and_then(|text| text.checked_add(first.start));
        start.is_some() && start == module.get(MIN_PC)
    });
    let stated = module.and_then(|module| module.get(TEXT));
    // Without a description (some tools remove it): the linker starts the text section with the
    // text, unless C is linked in.
    let section = || {
        [".text", "__text"]
            .into_iter()
            .find_map(|name| file.section_by_name(name))
    };
    let text = stated
        .or(table.header.text)
        .or_else(|| section().map(|s| s.address()))?;
    let trees = module.and_then(|module| {
        let mut places = FUNCTION_DATA.filter_map(|index| image.from(module.get(index)?));
        places.find_map(|bytes| InlineTrees::at_offsets(bytes, table))
    });
    Some(Module { table, text, trees })
}

fn in_section<'a>(file: &File<'a>, image: &Image<'a>) -> Option<Located<'a>> {
    let section = SECTIONS
        .into_iter()
        .find_map(|name| file.section_by_name(name))?;
    let bytes = section.data().ok()?;
    let header = Header::parse(bytes, image.order)?;
    let table = Pclntab { bytes, header };
    Some(Located {
        address: section.address(),
        table,
    })
}

/// Searches all mapped bytes if no section is named after the table: because there are no sections,
/// because the format has no such section (PE), or because the C linker merged it with others.
fn anywhere<'a>(file: &File<'a>, image: &Image<'a>) -> Option<Located<'a>> {
    let is_pe = file.format() == object::BinaryFormat::Pe;
    let mut sections = file.sections().peekable();
    let is_go = |name: &[u8]| [b".go.buildinfo", &b".note.go.buildid"[..]].contains(&name);
    let searched = is_pe || sections.peek().is_none();
    if !searched && !sections.any(|section| section.name_bytes().is_ok_and(is_go)) {
        return None;
    }
    [0xf1u8, 0xf0, 0xfa, 0xfb].into_iter().find_map(|magic| {
        let needle = match image.order {
            chronosym_types::ByteOrder::Little => [magic, 0xff, 0xff, 0xff, 0, 0],
            chronosym_types::ByteOrder::Big => [0xff, 0xff, 0xff, magic, 0, 0],
        };
        image.segments.iter().find_map(|&(start, bytes)| {
            let mut starts = memchr::memmem::find_iter(bytes, &needle);
            starts.find_map(|offset| {
                let bytes = bytes.get(offset..)?;
                let header = Header::parse(bytes, image.order)?;
                let table = Pclntab { bytes, header };
                let is_table = table.is_plausible();
                let address = start.checked_add(offset as u64)?;
                is_table.then_some(Located { address, table })
            })
        })
    })
}
