//! The symbols of code in one sorted table.

use std::cmp::Reverse;
use std::ops::Range;

use object::read::{ExportTarget, NameOrOrdinal, Object, ObjectSymbol, ObjectSymbolTable};
use object::{SymbolKind, SymbolSection};

use super::container::{Container, Format};
use super::plt;
use crate::answer::Source;
use crate::mmap::FileData;

/// The number of symbols before an address that are checked for covering it.
const MAX_STEPS_BACK: usize = 32;

/// The longest path in bytes. Without a limit, overlapping strings could each be as long as the
/// file.
const LONGEST_FILE: usize = 4096;

/// Ranks of symbols at one address: the highest wins.
const BOUNDARY: u8 = 0;
const DATA: u8 = 1;
const LABEL: u8 = 2;
const FUNCTION: u8 = 3;

/// Which of several functions at one address names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    /// The largest, then the last of its table, as LLVM chooses.
    Last,
    /// The smallest, then the first of its table, as binutils choose.
    First,
}

#[derive(Clone, Copy, Debug)]
struct SymbolEntry {
    start: u64,
    end: u64,
    /// Offset of the name in the file.
    name: usize,
    /// 0 for the end of code without a name.
    name_len: u32,
    rank: u8,
    is_local: bool,
    source: Source,
    /// Index of the file with the name.
    file_index: u8,
    /// Offset of the name of its source file; 0 if unknown.
    file: usize,
}

/// Another name of the symbol at an address.
#[derive(Clone, Copy, Debug)]
struct Alias {
    start: u64,
    /// Offset and length of the name.
    name: (usize, u32),
    file_index: u8,
}

impl From<&SymbolEntry> for Alias {
    fn from(entry: &SymbolEntry) -> Self {
        Self {
            start: entry.start,
            name: (entry.name, entry.name_len),
            file_index: entry.file_index,
        }
    }
}

/// A symbol that covers an address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Symbol<'a> {
    pub(crate) start: u64,
    /// The name that LLVM's tools choose; of a tool's table, the one that the tool chooses.
    pub(crate) name: &'a [u8],
    /// The alias that programs use, such as `malloc` instead of `__libc_malloc`.
    pub(crate) alias: &'a [u8],
    /// The name of its source file, without the folder.
    pub(crate) file: Option<&'a [u8]>,
    pub(crate) source: Source,
    /// Identifies the symbol within its table.
    pub(crate) key: usize,
}

/// All symbols of code, by address.
#[derive(Debug, Default)]
pub(crate) struct SymbolTable {
    entries: Vec<SymbolEntry>,
    /// Other names of functions at the start of an entry.
    aliases: Vec<Alias>,
    /// Of entries that programs call by another name: that name, by address.
    preferred: Vec<Alias>,
    /// The files with the names.
    files: Vec<FileData>,
}

impl SymbolTable {
    /// Returns the symbols by which LLVM's tools name code: the image's own, and dynamic ones only
    /// if there are no others.
    pub(crate) fn of_llvm(image: &Container) -> Self {
        Self::read_as(image, None, image, Choice::Last)
    }

    /// Returns the symbols of a file as binutils choose among them.
    pub(crate) fn of_gnu(container: &Container, image: &Container) -> Self {
        Self::read_as(container, None, image, Choice::First)
    }

    /// Reads `.symtab`, else `.dynsym` with the table of the mini debug information, else the
    /// exports of a PE image; and the stubs of `image`.
    pub(crate) fn read(container: &Container, mini: Option<Container>, image: &Container) -> Self {
        Self::read_as(container, mini, image, Choice::Last)
    }

    fn read_as(
        container: &Container,
        mini: Option<Container>,
        image: &Container,
        choice: Choice,
    ) -> Self {
        let mut reader = SymbolReader {
            container,
            files: vec![container.data.clone()],
            source: Source::SymbolTable,
            entries: Vec::new(),
        };
        if let Ok(file) = container.file() {
            let code = container.code_sections();
            reader.entries.reserve(file.symbols().size_hint().0);
            reader.add(&code, file.symbols());
            if reader.entries.is_empty() || mini.is_some() {
                reader.source = Source::DynamicSymbols;
                reader.add(&code, file.dynamic_symbols());
            }
            if container.format == Format::Pe {
                reader.add_exports(&file);
            }
        }
        if let Some(mini) = &mini
            && let Ok(file) = mini.file()
        {
            reader.source = Source::SymbolTable;
            reader.files.push(mini.data.clone());
            reader.add(&mini.code_sections(), file.symbols());
        }
        if image.format == Format::Elf
            && let Ok(file) = image.file()
        {
            reader.source = Source::Plt;
            reader.files.push(image.data.clone());
            reader.add_stubs(&file);
        }
        let SymbolReader {
            mut entries, files, ..
        } = reader;
        if choice == Choice::First {
            entries.reverse();
        }
        sort_by_address(&mut entries);
        // Of several symbols at one address the last one wins (the sort is stable).
        let size = |e: &SymbolEntry| e.end.saturating_sub(e.start);
        // A symbol without a size covers nothing.
        let covered = |e: &SymbolEntry| size(e).wrapping_sub(1);
        for group in entries.chunk_by_mut(|a, b| a.start == b.start) {
            match choice {
                Choice::Last => group.sort_by_key(|e| (e.rank, size(e))),
                Choice::First => group.sort_by_key(|e| (e.rank, Reverse(covered(e)))),
            }
        }
        let (mut aliases, mut preferred) = (Vec::new(), Vec::new());
        for group in entries.chunk_by(|a, b| a.start == b.start) {
            if let Some((kept, others @ [_, ..])) = group.split_last() {
                let others = others
                    .iter()
                    .filter(|e| e.rank == FUNCTION && e.source != Source::Plt);
                aliases.extend(others.map(Alias::from));
                preferred.extend(preferred_name(group, kept, &files));
            }
        }
        entries.dedup_by(|next, kept| {
            let same = next.start == kept.start;
            if same {
                *kept = *next;
            }
            same
        });
        // A label without a size within a function is part of it.
        let mut function_end = 0;
        entries.retain(|entry| {
            let is_inner = entry.start < function_end && entry.end == entry.start;
            if entry.rank == FUNCTION {
                function_end = function_end.max(entry.end);
            }
            !(is_inner && entry.rank == LABEL)
        });
        // A symbol without a size extends to the next one or to the end of its section.
        let mut next = None;
        for entry in entries.iter_mut().rev() {
            let start = entry.start;
            if entry.end == start {
                let limit = container
                    .code
                    .iter()
                    .find(|r| r.contains(&start))
                    .map_or(start, |r| r.end);
                entry.end = next.map_or(limit, |next: u64| next.min(limit));
            }
            next = Some(start);
        }
        Self {
            entries,
            aliases,
            preferred,
            files,
        }
    }

    /// Returns true if there are symbols besides the dynamic and exported ones.
    pub(crate) fn has_own(&self) -> bool {
        let mut sources = self.entries.iter().map(|entry| entry.source);
        sources.any(|source| source == Source::SymbolTable)
    }

    /// Returns all functions, under each of their names.
    pub(crate) fn functions(&self) -> impl Iterator<Item = (&[u8], Range<u64>)> {
        let own = self
            .entries
            .iter()
            .filter(|entry| entry.rank > DATA && entry.name_len > 0 && entry.source != Source::Plt);
        let own = own
            .filter_map(|entry| Some((text(&self.files, &entry.into())?, entry.start..entry.end)));
        let aliases = self.aliases.iter().filter_map(|alias| {
            let at = self
                .entries
                .binary_search_by_key(&alias.start, |entry| entry.start);
            let entry = self.entries.get(at.ok()?)?;
            Some((text(&self.files, alias)?, entry.start..entry.end))
        });
        own.chain(aliases)
    }

    /// Returns the addresses at which the result of [`SymbolTable::find`] can change.
    pub(crate) fn boundaries(&self) -> impl Iterator<Item = u64> {
        self.entries
            .iter()
            .flat_map(|entry| [entry.start, entry.end])
    }

    pub(crate) fn find(&self, va: u64) -> Option<Symbol<'_>> {
        let next = self.entries.partition_point(|e| e.start <= va);
        let from = next.saturating_sub(MAX_STEPS_BACK);
        let mut before = (from..next).zip(self.entries.get(from..next)?).rev();
        let (key, entry) = before.find(|(_, entry)| va < entry.end)?;
        if entry.name_len == 0 {
            return None;
        }
        let data = self.files.get(usize::from(entry.file_index))?;
        let name = text(&self.files, &entry.into())?;
        let preferred = self
            .preferred
            .binary_search_by_key(&entry.start, |alias| alias.start);
        let preferred = preferred.ok().and_then(|at| self.preferred.get(at));
        Some(Symbol {
            start: entry.start,
            name,
            alias: preferred.map_or(Some(name), |alias| text(&self.files, alias))?,
            file: data
                .get(entry.file..)
                .filter(|_| entry.file > 0)
                .and_then(|rest| {
                    let end = memchr::memchr(0, rest.get(..LONGEST_FILE).unwrap_or(rest))?;
                    rest.get(..end)
                }),
            source: entry.source,
            key,
        })
    }
}

/// Sorts entries by address; those of one address keep their order. Sorts numbers, and moves each
/// entry once: moving entries at each step would take most of the time for one answer.
fn sort_by_address(entries: &mut [SymbolEntry]) {
    let numbered = entries.iter().zip(0_u64..);
    let mut order: Vec<u128> = numbered
        .map(|(entry, index)| u128::from(entry.start) << 64 | u128::from(index))
        .collect();
    order.sort_unstable();
    for first in 0..order.len() {
        // Each place gets the entry that belongs there, until the first one's is free.
        let mut to = first;
        while let Some(place) = order.get_mut(to) {
            let from = std::mem::replace(place, to as u128) as usize;
            if from == first || from >= entries.len() {
                break;
            }
            entries.swap(to, from);
            to = from;
        }
    }
}

fn text<'a>(files: &'a [FileData], alias: &Alias) -> Option<&'a [u8]> {
    let (offset, len) = alias.name;
    let data = files.get(usize::from(alias.file_index))?;
    data.get(offset..)?.get(..len as usize)
}

/// Returns the name that programs use for the last symbol of a group at one address, if another
/// symbol of its rank and size has it: global names before local ones, then those without a version
/// and with fewer leading underscores, as perf does; then the last.
fn preferred_name(group: &[SymbolEntry], last: &SymbolEntry, files: &[FileData]) -> Option<Alias> {
    let kind = |e: &SymbolEntry| (e.rank, e.end, e.file_index);
    let names = group.iter().rev().take_while(|e| kind(e) == kind(last));
    let preference = |entry: &&SymbolEntry| {
        let name = text(files, &Alias::from(*entry)).unwrap_or_default();
        let underscores = name.iter().take_while(|&&byte| byte == b'_').count();
        let version = usize::from(name.contains(&b'@')).saturating_mul(128);
        (entry.is_local, underscores.saturating_add(version).min(255))
    };
    let best = names.min_by_key(preference)?;
    ((best.name, best.name_len) != (last.name, last.name_len)).then(|| best.into())
}

/// Collects the symbols of one or two files.
struct SymbolReader<'a> {
    /// The file with the code.
    container: &'a Container,
    /// The files with the symbols; the last one is read.
    files: Vec<FileData>,
    /// The table that is read.
    source: Source,
    entries: Vec<SymbolEntry>,
}

impl SymbolReader<'_> {
    fn add<'d>(
        &mut self,
        code_sections: &[bool],
        symbols: impl Iterator<Item = impl ObjectSymbol<'d>>,
    ) {
        let container = self.container;
        let pe = container.format == Format::Pe;
        // The source file of the local symbols that follow.
        let mut file = 0;
        for symbol in symbols {
            let rank = match symbol.kind() {
                SymbolKind::File if !pe => {
                    let name = symbol.name_bytes().unwrap_or_default();
                    file = self
                        .offset_of(name)
                        .filter(|_| !name.is_empty())
                        .unwrap_or(0);
                    continue;
                }
                SymbolKind::Text => FUNCTION,
                SymbolKind::Unknown | SymbolKind::Label => LABEL,
                SymbolKind::Data => DATA,
                // In a linked PE image: the start of the code of one object file, which ends the
                // code of the one before.
                SymbolKind::Section if pe => BOUNDARY,
                _ => continue,
            };
            // The values of symbols in other sections, such as debug sections, are not addresses of
            // code.
            let SymbolSection::Section(index) = symbol.section() else {
                continue;
            };
            if !(code_sections.get(index.0)).is_some_and(|&code| code) {
                continue;
            }
            let mut start = symbol
                .address()
                .wrapping_add(container.section_start(index));
            if container.arm32 && rank == FUNCTION {
                // The lowest bit marks Thumb code; it is not part of the address.
                start &= !1;
            }
            if !container.is_code(start) {
                continue;
            }
            let Ok(name) = symbol.name_bytes() else {
                continue;
            };
            if rank == BOUNDARY {
                let nameless = name.get(..0).unwrap_or_default();
                self.push(start, 0, nameless, rank, true, 0);
                continue;
            }
            // `$x`, `$d` and `$t` mark the kind of the bytes that follow.
            if name.is_empty() || (name.starts_with(b"$") && rank == LABEL) {
                continue;
            }
            // Labels within functions, which the assemblers of RISC-V and LoongArch keep for the
            // linker.
            if rank == LABEL && symbol.is_local() && name.starts_with(b".L") {
                continue;
            }
            // In linked PE images the sizes are leftovers of other uses of auxiliary records.
            let size = if pe { 0 } else { symbol.size() };
            let name = match container.format {
                // The underscore of C names, which all languages have there.
                Format::MachO => name.strip_prefix(b"_").unwrap_or(name),
                _ if container.decorated => undecorated(name),
                _ => name,
            };
            let file = if symbol.is_local() { file } else { 0 };
            let is_local = symbol.is_local();
            self.push(start, size, name, rank, is_local, file);
        }
    }

    /// Adds the stubs of the procedure linkage table, named after the functions that they call.
    fn add_stubs(&mut self, file: &object::File<'_>) {
        let Some(symbols) = file.dynamic_symbol_table() else {
            return;
        };
        for stub in plt::stubs(file) {
            let symbol = symbols.symbol_by_index(stub.symbol).ok();
            if let Some(Ok(name)) = symbol.map(|symbol| symbol.name_bytes())
                && self.container.is_code(stub.start)
            {
                self.push(stub.start, stub.size, name, DATA, false, 0);
            }
        }
    }

    fn add_exports(&mut self, file: &object::File<'_>) {
        self.source = Source::Export;
        let Ok(exports) = file.exports() else { return };
        for export in exports {
            let Ok(export) = export else { return };
            if let (NameOrOrdinal::Name(name), ExportTarget::Address { address }) =
                (export.name(), export.target())
                && !name.is_empty()
                && self.container.is_code(address)
            {
                self.push(address, 0, name, DATA, false, 0);
            }
        }
    }

    /// Offset of a name in the file. Storing it instead of the bytes keeps the table free of
    /// lifetimes.
    fn offset_of(&self, name: &[u8]) -> Option<usize> {
        let data = self.files.last()?;
        let at = (name.as_ptr() as usize).checked_sub(data.as_ptr() as usize)?;
        (at.saturating_add(name.len()) <= data.len()).then_some(at)
    }

    fn push(&mut self, start: u64, size: u64, name: &[u8], rank: u8, is_local: bool, file: usize) {
        let (Some(offset), Ok(name_len)) = (self.offset_of(name), u32::try_from(name.len())) else {
            return;
        };
        self.entries.push(SymbolEntry {
            start,
            end: start.saturating_add(size),
            name: offset,
            name_len,
            rank,
            is_local,
            source: self.source,
            file_index: u8::try_from(self.files.len().saturating_sub(1)).unwrap_or(0),
            file,
        });
    }
}

/// Returns the name of a C function without the calling convention that compilers for 32-bit
/// Windows encode in it: `_cdecl`, `_stdcall@4`, `@fastcall@4`, `vectorcall@@8`. Mangled names of
/// MSVC stay as they are.
fn undecorated(name: &[u8]) -> &[u8] {
    if name.starts_with(b"?") {
        return name;
    }
    let last = name.iter().rposition(|b| !b.is_ascii_digit());
    let rest = name.get(..=last.unwrap_or(0)).unwrap_or(name);
    let (front, sized) = match rest.strip_suffix(b"@") {
        Some(front) if rest.len() < name.len() => (front, true),
        _ => (name, false),
    };
    let plain = match front {
        [own @ .., b'@'] if sized => own,
        [b'_', own @ ..] => own,
        [b'@', own @ ..] if sized => own,
        own => own,
    };
    if plain.is_empty() { name } else { plain }
}

#[cfg(test)]
mod tests {
    use chronosym_support::random::Random;

    use super::*;

    #[test]
    fn entries_of_one_address_keep_their_order() {
        let entry = |start, name| SymbolEntry {
            start,
            end: start,
            name,
            name_len: 1,
            rank: FUNCTION,
            is_local: false,
            source: Source::SymbolTable,
            file_index: 0,
            file: 0,
        };
        let mut random = Random::new(1);
        for len in [0, 1, 2, 3, 10, 1000] {
            let mut entries: Vec<_> = (0..len)
                .map(|name| entry(random.below(100), name))
                .collect();
            let key = |entries: &[SymbolEntry]| -> Vec<_> {
                entries
                    .iter()
                    .map(|entry| (entry.start, entry.name))
                    .collect()
            };
            let mut expected = key(&entries);
            expected.sort_unstable();
            sort_by_address(&mut entries);
            assert_eq!(key(&entries), expected);
        }
    }

    #[test]
    fn calling_conventions_are_taken_off() {
        let cases = [
            ("_main", "main"),
            ("___tmainCRTStartup", "__tmainCRTStartup"),
            ("__ZN6shapes4areaEv", "_ZN6shapes4areaEv"),
            ("_Sleep@4", "Sleep"),
            ("@fast@8", "fast"),
            ("vector@@16", "vector"),
            ("?f@@YAHH@Z", "?f@@YAHH@Z"),
            ("plain", "plain"),
            ("name@", "name@"),
            ("_", "_"),
            ("@1", "@1"),
        ];
        for (name, plain) in cases {
            assert_eq!(undecorated(name.as_bytes()), plain.as_bytes(), "{name}");
        }
    }
}
