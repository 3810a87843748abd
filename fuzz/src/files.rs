//! Symbol files: any bytes as an object file, an image, a PDB or a map, through every accessor.

use std::ops::Range;

use chronosym_pdb::metadata::{Metadata, Table, Token};
use chronosym_pdb::pe::PeImage;
use chronosym_pdb::portable::PortablePdb;
use chronosym_pdb::r2r::{NamedMethodStart, NoAssemblies, R2rImage, R2rMap};
use chronosym_pdb::windows::{Frames, WindowsPdb};
use chronosym_symbols::demangle::Dialect;
use chronosym_symbols::mmap::FileData;
use chronosym_symbols::path::SymbolPath;
use chronosym_symbols::store::identity_of;
use chronosym_symbols::unwind::{Step, UnwindTable, step_in};
use chronosym_symbols::{Address, Answers, NativeSymbols, Query};

use chronosym::symbols::Kallsyms;
use chronosym_types::{Processor, Registers};
use tempfile::NamedTempFile;

use crate::choices::Choices;
use crate::made;

/// An ELF, PE or Mach-O file, or a symbol file of Breakpad: identity, symbol table, debug
/// information, names.
pub fn elf(data: &[u8]) {
    let _ = std::hint::black_box(identity_of(data));
    let Ok(file) = NativeSymbols::open(data) else {
        return;
    };
    std::hint::black_box((file.build_id().is_some(), file.base(), file.has_lines()));
    let spread = |range: &Range<u64>| {
        let len = range.end.saturating_sub(range.start);
        let (start, step) = (range.start, (len / 30).max(1));
        let at = move |index| start.wrapping_add(step.wrapping_mul(index));
        (0..32).map(move |index| Address::VirtualAddress(at(index)))
    };
    let mut addresses: Vec<_> = file.code().iter().take(20).flat_map(spread).collect();
    addresses.extend([0, 0x1000, u64::MAX].map(Address::Rva));
    let mut query = Query::default();
    query.symbol_names = Some(Dialect::Llvm);
    query.threads = 1;
    let mut answers = Answers::new();
    // At once, which reads the units in file order, and one by one, which keeps them.
    file.find_all(&addresses, &query, &mut answers);
    assert_eq!(answers.len(), addresses.len());
    for answer in answers.iter() {
        for frame in answer.frames() {
            std::hint::black_box((frame.demangled(), frame.file(), frame.line()));
        }
    }
    query.declarations = true;
    for &address in addresses.iter().take(40) {
        file.find(address, &query, &mut answers);
        assert_eq!(answers.len(), 1);
    }
    (query.skip_line_zero, query.relative_paths) = (true, true);
    file.find_all(&addresses, &query, &mut answers);
    for frame in answers.iter().flat_map(|answer| answer.frames()) {
        std::hint::black_box((frame.declaration(), frame.line_approximate()));
    }
    for range in file.code().iter().take(8) {
        let found = (file.locals(range.start), file.declaration(range.start));
        std::hint::black_box((found, file.data_symbol(range.start)));
    }
}

/// Debug sections with any content in a valid file. The first bytes are their lengths.
pub fn dwarf(data: &[u8]) {
    const NAMES: [&str; 8] = [
        ".debug_abbrev",
        ".debug_info",
        ".debug_line",
        ".debug_str",
        ".debug_line_str",
        ".debug_rnglists",
        ".debug_addr",
        ".debug_aranges",
    ];
    let mut choices = Choices::new(data);
    let lens = NAMES.map(|_| usize::from(choices.u16()));
    let mut rest = choices.rest();
    let mut sections = vec![(".text", 1, 6, 0x1000, vec![0x90; 0x40])];
    for (name, len) in NAMES.into_iter().zip(lens) {
        let (own, more) = rest.split_at(len.min(rest.len()));
        rest = more;
        if !own.is_empty() {
            sections.push((name, 1, 0, 0, own.to_vec()));
        }
    }
    elf(&made::object::elf(&sections));
}

/// A function table of Go and its inline trees in a valid file. The first bytes are the length of
/// the trees.
pub fn go_table(data: &[u8]) {
    let mut choices = Choices::new(data);
    let len = usize::from(choices.u16());
    let rest = choices.rest();
    let (trees, table) = rest.split_at(len.min(rest.len()));
    elf(&made::go::program_of(table, trees, true));
    elf(&made::go::program_of(table, trees, false));
}

/// Entries of `.eh_frame` in a valid file and of jitted code, and a walk from each kind of address.
pub fn unwind(data: &[u8]) {
    let file = made::object::elf(&[
        (".text", 1, 6, 0x1000, vec![0x90; 0x40]),
        (".eh_frame", 1, 2, 0x2000, data.to_vec()),
    ]);
    let Ok(table) = UnwindTable::parse(FileData::from(file)) else {
        return;
    };
    let of_file = |at: u64, registers: &mut Registers, read: &dyn Fn(u64) -> Option<u64>| {
        table.step(Address::VirtualAddress(at), registers, read)
    };
    let jitted = |at: u64, registers: &mut Registers, read: &dyn Fn(u64) -> Option<u64>| {
        step_in(data, 0x2000, at, registers, read)
    };
    walk(of_file);
    walk(jitted);
}

fn walk(step: impl Fn(u64, &mut Registers, &dyn Fn(u64) -> Option<u64>) -> Step) {
    for address in [0, 0x1000, 0x1020, 0x103f, 0x1040, u64::MAX] {
        let mut registers = Registers::new(Processor::X86_64, address);
        for number in 0..17 {
            registers.set(number, Some(0x7fff_0000 + 8 * u64::from(number)));
        }
        let read = |at: u64| (at % 16 != 8).then_some(at.wrapping_add(0x20));
        for _ in 0..20 {
            let step = step(registers.instruction, &mut registers, &read);
            if !matches!(step, Step::Caller { .. }) {
                break;
            }
        }
    }
}

/// A PE image: its debug directory, managed metadata and precompiled code.
pub fn pe(data: &[u8]) {
    if let Ok(metadata) = Metadata::parse(data) {
        read_metadata(&metadata, None);
    }
    let Ok(image) = PeImage::parse(data) else {
        return;
    };
    let counts = (
        image.sections().count(),
        image.codeviews().count(),
        image.export(b"RTR_HEADER"),
    );
    std::hint::black_box((counts, image.pdb_checksum(), image.perf_map_id()));
    let _ = std::hint::black_box(image.embedded_portable_pdb(1 << 20));
    if let Ok(metadata) = image.metadata() {
        read_metadata(&metadata, Some(&image));
    }
    let Ok(r2r) = R2rImage::open(image) else {
        return;
    };
    for method in r2r.methods().take(1000) {
        let name = r2r.method_name(&method, &NoAssemblies);
        let bounds = r2r.bounds(&method).map_or(0, |bounds| bounds.count());
        std::hint::black_box((name, bounds, r2r.definition(&method)));
        std::hint::black_box((
            r2r.il_offset(&method, method.hot_size / 2, true),
            r2r.method_at(method.start.wrapping_add(3)),
        ));
    }
}

fn read_metadata(metadata: &Metadata<'_>, image: Option<&PeImage<'_>>) {
    std::hint::black_box((metadata.mvid(), metadata.assembly_name()));
    for table in [
        Table::METHOD_DEF,
        Table::MEMBER_REF,
        Table::METHOD_SPEC,
        Table::TYPE_SPEC,
    ] {
        for row in 0..=metadata.rows(table).min(1000) {
            let token = Token::new(table, row);
            if let Some(name) = metadata.method(token) {
                std::hint::black_box((name.owner_text(), name.signature_text()));
            }
            std::hint::black_box(metadata.type_of(token));
            let body = image.filter(|_| table == Table::METHOD_DEF);
            if let Some(body) = body.and_then(|image| image.il_body(metadata, row)) {
                std::hint::black_box((body.calls().count(), body.call_at(7)));
            }
        }
    }
}

/// The kernel's list of its functions, which is read from a file alone.
pub fn kallsyms(data: &[u8]) {
    let file = NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), data).expect("room for it");
    if let Ok(list) = Kallsyms::open(file.path()) {
        std::hint::black_box(format!("{list:?}"));
    }
}

/// An r2rmap.
pub fn r2r_map(data: &[u8]) {
    let Ok(map) = R2rMap::parse(data) else {
        return;
    };
    assert!(map.methods().is_sorted_by_key(|row| row.rva));
    let mut starts = Vec::new();
    for row in map.methods().iter().take(200) {
        let name = row.owner_and_name();
        if let Some(found) = map.method_at(row.rva) {
            assert!(found.rva <= row.rva);
        }
        starts.push(NamedMethodStart {
            address: 0x7f00_0000_0000 + u64::from(row.rva),
            size: Some(row.size),
            name,
        });
    }
    let _ = std::hint::black_box(map.base_of(&starts));
}

/// A portable PDB.
pub fn portable_pdb(data: &[u8]) {
    let Ok(pdb) = PortablePdb::parse(data) else {
        return;
    };
    for row in pdb.documents().take(1000) {
        std::hint::black_box((pdb.document(row), pdb.source_link_url(row)));
        let _ = std::hint::black_box(pdb.embedded_source(row, 1 << 20));
    }
    for row in 0..=pdb.method_count().min(1000) {
        std::hint::black_box((pdb.sequence_points(row).count(), pdb.line_at(row, 20)));
    }
    std::hint::black_box(pdb.verify_checksum("SHA256", &[0; 32]));
}

/// A Windows PDB.
pub fn windows_pdb(data: &[u8]) {
    let Ok(pdb) = WindowsPdb::open(data) else {
        return;
    };
    std::hint::black_box((pdb.id(), pdb.limitations().count()));
    let mut frames = Frames::new();
    let mut ask = |rva: u32| {
        if let Ok(Some(function)) = pdb.find(rva, &mut frames) {
            assert!(!frames.is_empty());
            std::hint::black_box((function, format!("{:?}", &*frames)));
        } else {
            assert!(frames.is_empty());
        }
        let _ = std::hint::black_box(pdb.public_symbol(rva));
    };
    // Addresses in the file, and addresses that no function of it may have.
    for function in pdb.functions().take(300).flatten() {
        ask(function.rva);
        ask(function.rva.wrapping_add(function.len / 2));
        ask(function.rva.wrapping_add(function.len));
    }
    for rva in (0..0x4000).step_by(61) {
        ask(rva);
    }
    ask(u32::MAX);
    for row in 1..20 {
        let _ = std::hint::black_box(pdb.managed_line(0x0600_0000 + row, 7 * row));
    }
}

/// A symbol path.
pub fn symbol_path(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    std::hint::black_box(format!("{:?}", SymbolPath::parse(&text)));
}

/// A crash log: each match is a range of the text, and alternatives follow the match that they
/// belong to.
pub fn crash_log(data: &[u8]) {
    let scan = chronosym_symbols::log::scan(data);
    for found in &scan.found {
        assert!(found.range.start < found.range.end, "{found:?}");
        let text = data.get(found.range.clone()).expect("a part of the text");
        assert!(std::str::from_utf8(text).is_ok(), "{found:?}");
        let mut target = found.target;
        std::hint::black_box(scan.images.complete(&mut target));
    }
    assert!(scan.found.first().is_none_or(|first| !first.is_alternative));
    let images = chronosym_symbols::log::images(data);
    assert_eq!(images.list(), scan.images.list());
}
