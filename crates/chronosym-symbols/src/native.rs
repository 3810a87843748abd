//! The symbols of one native object file: ELF, Mach-O, or PE with DWARF.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use chronosym_types::hash::HashMap;
use gimli::DwoId;

use crate::breakpad::{BreakpadSymbols, Module};
use crate::converted::{Converted, Input, Key, SymbolCache, Tables};
use crate::demangle::Dialect;
use crate::dwarf::cached_unit::CachedUnit;
use crate::dwarf::index::{UnitIndex, UnitStarts};
use crate::dwarf::lines::LineTables;
use crate::dwarf::names::InfoSection;
use crate::dwarf::split::SplitFile;
use crate::dwarf::unit::{Sections, Table, Unit};
use crate::dwarf::variables::{LocalVariable, Placed, Variables};
use crate::elf::bundle::ObjectPath;
use crate::elf::container::{Container, Format};
use crate::elf::debug_files::{self, DebugFileSearch, Missed};
use crate::elf::segments::Mapping;
use crate::elf::symbols::SymbolTable;
use crate::elf::universal::Choice;
use crate::elf::variables::{self, DataSymbol};
use crate::error::Error;
use crate::error::Result;
use crate::go::GoSymbols;
use crate::identity::{BuildId, PdbId};
use crate::lru::WeightedLru;
use crate::mmap::FileData;
use crate::query::Query;

/// The symbols of one native object file: ELF, Mach-O, or PE with DWARF or a symbol table.
///
/// Opening reads the headers. Everything else is read on demand. Threads may share it.
#[derive(Debug)]
pub struct NativeSymbols {
    pub(crate) image: Container,
    search: DebugFileSearch,
    /// The names of the file. For a link, its own and that of its target.
    names: Vec<OsString>,
    pub(crate) index: UnitIndex,
    pub(crate) starts: UnitStarts,
    pub(crate) supplement_starts: UnitStarts,
    pub(crate) line_tables: LineTables,
    /// With the files that the search rejected.
    debug_file: OnceLock<(Option<Container>, Missed)>,
    supplement: OnceLock<Option<Container>>,
    packages: OnceLock<Vec<Arc<SplitFile>>>,
    other_packages: OnceLock<Vec<Arc<SplitFile>>>,
    split: Mutex<SplitUnits>,
    symbols: OnceLock<Symbols>,
    /// The names that LLVM's and GNU's tools use, if others are used here.
    llvm_symbols: OnceLock<SymbolTable>,
    gnu_symbols: OnceLock<SymbolTable>,
    tables: OnceLock<Option<FunctionTables>>,
    variables: OnceLock<Vec<DataSymbol>>,
    /// Variables at fixed addresses, of the debug information.
    placed: OnceLock<Vec<Placed>>,
    /// Units of single lookups, by their offset.
    pub(crate) cached_units: WeightedLru<usize, CachedUnit>,
    pub(crate) converted: Tables,
}

/// Functions and lines in a format other than DWARF.
#[derive(Debug)]
pub(crate) enum FunctionTables {
    Go(GoSymbols),
    Breakpad(BreakpadSymbols),
}

/// The symbol table, and the problem with the image's mini debug information, if any.
#[derive(Debug)]
struct Symbols {
    table: SymbolTable,
    problem: Option<String>,
}

/// The files of split units.
#[derive(Debug, Default)]
struct SplitUnits {
    /// By unit id; the file's name if it is missing.
    by_id: HashMap<u64, Result<Arc<SplitFile>, String>>,
    /// By path: any number of units may name one.
    files: HashMap<PathBuf, Option<Arc<SplitFile>>>,
}

/// Units that a file caches for single lookups, in bytes.
const MAX_CACHED_UNITS: u64 = 32 << 20;

fn input(file: &Container) -> Input<'_> {
    Input {
        data: &file.data,
        id: file.build_id.as_ref().map_or(&[], BuildId::as_bytes),
    }
}

impl NativeSymbols {
    /// Reads the headers of an object file, which may be compressed by gzip, xz or zstd. Opens no
    /// other file.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for symbol formats that are recognised but not read,
    /// [`Error::UnknownFormat`] for other formats, [`Error::Universal`] for a file of several
    /// images, [`Error::Damaged`] for inconsistent headers.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_symbols::{Address, Answers, NativeSymbols, Query};
    ///
    /// let file = std::fs::read("../../testdata/macho/x86_64/app.dSYM/Contents/Resources/DWARF/app")?;
    /// let symbols = NativeSymbols::open(file)?;
    /// let mut answers = Answers::new();
    /// symbols.find_all(&[Address::VirtualAddress(0x1_0000_0366)], &Query::default(), &mut answers);
    /// let frame = answers.get(0).unwrap().frames().next().unwrap();
    /// assert_eq!(frame.demangled(), Some("shapes::Square::area() const"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(data: impl Into<FileData>) -> Result<Self> {
        let image = Container::parse(data.into())?;
        Ok(Self::with_search(
            image,
            Vec::new(),
            DebugFileSearch::default(),
        ))
    }

    /// Maps an object file, written as in [`ObjectPath::parse`], and reads its headers. The files
    /// that it names are searched next to it ([`DebugFileSearch::next_to`]).
    ///
    /// # Errors
    /// As [`NativeSymbols::open`], and [`Error::Io`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::path::Path;
    ///
    /// use chronosym_symbols::{Address, Answers, NativeSymbols, Query};
    ///
    /// // With the dSYM in its folder.
    /// let symbols = NativeSymbols::open_path(Path::new("../../testdata/macho/x86_64/app"))?;
    /// let mut answers = Answers::new();
    /// symbols.find_all(&[Address::VirtualAddress(0x1_0000_0366)], &Query::default(), &mut answers);
    /// let frame = answers.get(0).unwrap().frames().next().unwrap();
    /// assert_eq!(frame.demangled(), Some("shapes::Square::area() const"));
    /// assert_eq!((frame.file(), frame.line().map(|line| line.get())), (Some("/src/one.cpp"), Some(13)));
    /// # Ok::<(), chronosym_symbols::Error>(())
    /// ```
    pub fn open_path(path: &Path) -> Result<Self> {
        Self::open_path_with(path, DebugFileSearch::next_to(path))
    }

    /// Maps an object file and reads its headers; `search` has the locations of the files that it
    /// names.
    ///
    /// # Errors
    /// As [`NativeSymbols::open`], and [`Error::Io`].
    pub fn open_path_with(path: &Path, search: DebugFileSearch) -> Result<Self> {
        let ObjectPath { file, processor } = ObjectPath::parse(path);
        let choice = processor.as_deref().map_or(Choice::Only, Choice::Processor);
        let image = Container::open_choice(&file, choice)?;
        let path = file.as_path();
        let real = path.canonicalize().ok();
        let paths = [Some(path), real.as_deref()].into_iter().flatten();
        let mut names: Vec<OsString> = paths
            .filter_map(|path| path.file_name().map(OsString::from))
            .collect();
        names.dedup();
        Ok(Self::with_search(image, names, search))
    }

    fn with_search(image: Container, names: Vec<OsString>, search: DebugFileSearch) -> Self {
        Self {
            image,
            search,
            names,
            index: UnitIndex::default(),
            starts: UnitStarts::default(),
            supplement_starts: UnitStarts::default(),
            line_tables: LineTables::default(),
            debug_file: OnceLock::new(),
            supplement: OnceLock::new(),
            packages: OnceLock::new(),
            other_packages: OnceLock::new(),
            split: Mutex::default(),
            symbols: OnceLock::new(),
            llvm_symbols: OnceLock::new(),
            gnu_symbols: OnceLock::new(),
            tables: OnceLock::new(),
            variables: OnceLock::new(),
            placed: OnceLock::new(),
            cached_units: WeightedLru::new(MAX_CACHED_UNITS),
            converted: Tables::default(),
        }
    }

    /// Answers lookups from converted symbols, where the cache has them. Call it before the first
    /// lookup.
    pub fn use_cache(&mut self, cache: SymbolCache) {
        self.converted = Tables::new(cache);
    }

    /// Returns true if a query is answered from converted symbols.
    pub fn is_converted(&self, query: &Query) -> bool {
        self.table(query).is_some()
    }

    /// Returns the converted symbols for a query, if there are some.
    pub(crate) fn table(&self, query: &Query) -> Option<Arc<Converted>> {
        self.converted.get(query, |cache| {
            let debug = Some(self.debug()).filter(|debug| !std::ptr::eq(*debug, &self.image));
            let files = [Some(&self.image), debug, self.supplement()];
            let inputs: Vec<Input<'_>> = files.into_iter().flatten().map(input).collect();
            Key::new(&inputs, query, cache.folder())
        })
    }

    /// Uses the debug information of the file at `path`. Call it before the first lookup.
    ///
    /// # Errors
    /// As [`NativeSymbols::open_path`], and [`Error::NotItsDebugFile`] if the build ID differs or,
    /// without one, the checksum of `.gnu_debuglink`.
    pub fn set_debug_file(&mut self, path: &Path) -> Result<()> {
        let ObjectPath { file, .. } = ObjectPath::parse(path);
        let file = Container::open_choice(&file, debug_files::choice_for(&self.image))?;
        if let Some(problem) = debug_files::difference(&self.image, &file) {
            return Err(Error::NotItsDebugFile { problem });
        }
        self.debug_file = OnceLock::from((Some(file), Missed::default()));
        Ok(())
    }

    /// Returns the name of the separate debug file (`.gnu_debuglink`), if the file names one.
    pub fn debug_link(&self) -> Option<String> {
        let (name, _) = debug_files::debug_link(&self.image)?;
        Some(name.to_string_lossy().into_owned())
    }

    /// Returns the build ID and the path of the supplementary file (`.gnu_debugaltlink`), if it is
    /// missing.
    pub fn missing_supplement(&self) -> Option<(BuildId, String)> {
        if self.supplement().is_some() {
            return None;
        }
        let (path, id) = debug_files::supplement_link(self.debug())?;
        // Copied before it is checked: the file may be mapped and change.
        Some((id, chronosym_types::copied_text(path)))
    }

    /// Uses the supplementary file at `path`. Call it before the first lookup.
    ///
    /// # Errors
    /// As [`NativeSymbols::open_path`]; [`Error::BuildIdMismatch`] if it is another file, and
    /// [`Error::NotItsDebugFile`] if the file names none.
    pub fn set_supplement(&mut self, path: &Path) -> Result<()> {
        let file = Container::open(path)?;
        let Some((_, wanted)) = debug_files::supplement_link(self.debug()) else {
            return Err(Error::NotItsDebugFile {
                problem: "the file names no supplementary file".to_owned(),
            });
        };
        file.expect_build_id(&wanted)?;
        self.supplement = OnceLock::from(Some(file));
        Ok(())
    }

    /// Returns true if the file has neither debug information nor a symbol table other than
    /// `.dynsym`.
    pub fn is_stripped(&self) -> bool {
        !self.debug().debug.has(gimli::SectionId::DebugInfo, false)
            && !self.symbols().has_own()
            && self.tables().is_none()
    }

    /// Returns true if the search found a debug file of another build.
    pub fn has_rejected_debug_file(&self) -> bool {
        let met = self.debug_file.get();
        met.is_some_and(|(_, missed)| missed.other_build)
    }

    /// Returns a description of each file that was missing so far, or is of another build.
    pub fn missing_files(&self) -> Vec<String> {
        if self.search.folders.is_empty() {
            return Vec::new();
        }
        let mut notes = Vec::new();
        if let Some((_, missed)) = self.debug_file.get() {
            notes.clone_from(&missed.notes);
        }
        if let (Some(None), Some((id, path))) = (self.supplement.get(), self.missing_supplement()) {
            notes.push(format!(
                "supplementary file {path} (build id {id}) not found: its names are missing"
            ));
        }
        let split = self.split.lock().unwrap_or_else(PoisonError::into_inner);
        let missing: BTreeSet<&String> = split
            .by_id
            .values()
            .filter_map(|f| f.as_ref().err())
            .collect();
        if let Some(first) = missing.first() {
            let more = match missing.len().saturating_sub(1) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            notes.push(format!(
                "{first}{more} not found: inlined functions of that code are unknown, and its lines may be those of inlined functions"
            ));
        }
        notes
    }

    /// Returns the identity of the module to which a Breakpad symbol file belongs.
    pub fn breakpad_id(&self) -> Option<PdbId> {
        let is_breakpad = self.image.format == Format::Breakpad;
        let module = is_breakpad.then(|| Module::parse(&self.image.data).ok());
        Some(module??.id)
    }

    /// Returns the GNU build ID, or the UUID of a Mach-O file, if the file has one.
    pub fn build_id(&self) -> Option<&BuildId> {
        self.image.build_id.as_ref()
    }

    /// Returns the virtual address of the image's first byte, from which an
    /// [`Address::Rva`](crate::Address::Rva) counts.
    pub fn base(&self) -> u64 {
        self.image.segments.base()
    }

    /// Returns true if file offsets can be looked up: the program headers state where each byte of
    /// the image's file is mapped. Those of a debug file do not.
    pub fn has_offsets(&self) -> bool {
        self.image.segments.has_offsets()
    }

    /// Returns the number to add to file offsets of the image in an executable mapping to get
    /// virtual addresses, for a debug file; `None` if it cannot be proved.
    pub fn offset_bias(&self, mapping: Mapping) -> Option<u64> {
        self.image.segments.offset_bias(mapping)
    }

    /// Returns the virtual addresses of the first loaded section of this name, such as `.text`.
    ///
    /// Objects and kernel modules are not linked, so their sections have no addresses. They are
    /// laid out from 0 here: `.text` first, then other code, then data. So an address in a running
    /// kernel module minus the start of the module is a virtual address of its file.
    pub fn section(&self, name: &str) -> Option<Range<u64>> {
        self.image.section(name)
    }

    /// Returns the functions of the symbol table with their virtual addresses, aliases included; a
    /// function of which no size is recorded extends to the next. Reads the whole table.
    pub fn functions(&self) -> impl Iterator<Item = (&[u8], Range<u64>)> {
        self.symbols().functions()
    }

    /// Returns the variable or function of the symbol table that contains a virtual address.
    pub fn data_symbol(&self, address: u64) -> Option<&DataSymbol> {
        let read = || {
            let symbols = variables::read(&self.image);
            match symbols.is_empty() {
                true => variables::read(self.debug()),
                false => symbols,
            }
        };
        variables::find(self.variables.get_or_init(read), address)
    }

    /// Returns the file and the line in which the variable at a virtual address is declared, by the
    /// debug information; the line is 0 if unknown. The first call reads all entries.
    pub fn declaration(&self, address: u64) -> Option<(String, u64)> {
        let variables = self.dwarf_variables();
        let placed = self.placed.get_or_init(|| variables.placed());
        variables.declaration(placed, address)
    }

    /// Returns the parameters and local variables of the function at a virtual address, those of
    /// calls inlined into it included, by the debug information.
    pub fn locals(&self, address: u64) -> Vec<LocalVariable> {
        let (debug, sections) = (self.debug(), self.sections());
        let unit = self.index.find(debug, &sections, &self.starts, address);
        unit.map_or_else(Vec::new, |unit| {
            let skeleton = Unit::read(&sections, unit, &mut Table::default()).ok();
            let split = skeleton.and_then(|unit| self.split_locals(unit, address));
            split.unwrap_or_else(|| self.dwarf_variables().locals(unit, address))
        })
    }

    /// Returns the variables of a function whose unit is split.
    fn split_locals(&self, unit: Unit<'_>, address: u64) -> Option<Vec<LocalVariable>> {
        let id = unit.dwo_id?;
        let file = self.split_unit(id, unit.comp_dir, unit.dwo_name?)?;
        let split = file.find(id).ok()??;
        Some(split.locals(unit, address))
    }

    fn dwarf_variables(&self) -> Variables<'_> {
        let info = InfoSection {
            sections: self.sections(),
            starts: &self.starts,
        };
        Variables::new(self.debug(), info)
    }

    /// Returns the virtual address of the first page of the executable segment that a mapping of
    /// this length holds as a whole; `None` unless it is exactly one.
    pub fn mapped_code(&self, len: u64) -> Option<u64> {
        self.image.segments.mapped_code(len)
    }

    /// Virtual addresses of the executable sections, sorted.
    pub fn code(&self) -> &[Range<u64>] {
        &self.image.code
    }

    /// Bytes of memory that decompression uses at most for the file and its debug file, in addition
    /// to their own bytes.
    pub fn unpacked_bytes(&self) -> u64 {
        let (own, debug) = (&self.image, self.debug());
        let other = (!std::ptr::eq(own, debug)).then(|| debug.unpacked_bytes());
        own.unpacked_bytes().saturating_add(other.unwrap_or(0))
    }

    /// Returns true if there is debug information with lines, in the file or its debug file, Go's
    /// function table, or a symbol file of Breakpad.
    pub fn has_lines(&self) -> bool {
        self.debug().debug.has(gimli::SectionId::DebugLine, false) || self.tables().is_some()
    }

    /// Damage met so far that concerns the file as a whole.
    pub(crate) fn damage(&self) -> impl Iterator<Item = String> {
        let index = self.index.damage();
        let index = index.map(|bad| format!("extents of the units: {bad}"));
        let symbols = (self.symbols.get()).and_then(|symbols| symbols.problem.clone());
        self.debug().debug.damage().chain(index).chain(symbols)
    }

    /// Returns the file with the debug information: this one or its debug file.
    pub(crate) fn debug(&self) -> &Container {
        let is_breakpad = self.image.format == Format::Breakpad;
        if is_breakpad || self.image.debug.has(gimli::SectionId::DebugInfo, false) {
            return &self.image;
        }
        self.debug_file
            .get_or_init(|| self.search.debug_file(&self.image, &self.names))
            .0
            .as_ref()
            .unwrap_or(&self.image)
    }

    pub(crate) fn supplement(&self) -> Option<&Container> {
        self.supplement
            .get_or_init(|| self.search.supplement(self.debug()))
            .as_ref()
    }

    /// Returns the file of a split unit: a package or a file of its own, opened once. If none has
    /// the unit, the first that should.
    pub(crate) fn split_unit(
        &self,
        id: DwoId,
        comp_dir: Option<&[u8]>,
        name: &[u8],
    ) -> Option<Arc<SplitFile>> {
        let open = |path: &PathBuf| SplitFile::open(path).ok().map(Arc::new);
        let all = |paths: Vec<PathBuf>| paths.iter().filter_map(open).collect();
        let packages = self
            .packages
            .get_or_init(|| all(self.search.packages(&self.names)));
        let mut split = self.split.lock().unwrap_or_else(PoisonError::into_inner);
        let SplitUnits { by_id, files } = &mut *split;
        let find = || {
            let own = self.search.split_unit(comp_dir, name);
            let own = own.into_iter().filter_map(|path| {
                let file = files.entry(path).or_insert_with_key(open);
                file.clone()
            });
            let mut first = None;
            for file in packages.iter().cloned().chain(own) {
                if file.has(id) {
                    return Ok(file);
                }
                first.get_or_insert(file);
            }
            let others = self
                .other_packages
                .get_or_init(|| all(self.search.other_packages()));
            let other = others.iter().find(|file| file.has(id)).cloned();
            other
                .or(first)
                .ok_or_else(|| chronosym_types::copied_text(name))
        };
        by_id
            .entry(id.0)
            .or_insert_with(find)
            .as_ref()
            .ok()
            .cloned()
    }

    pub(crate) fn symbols(&self) -> &SymbolTable {
        let symbols = self.symbols.get_or_init(|| {
            // If the debug file has no symbols, the dynamic symbols of the image.
            let debug = self.debug();
            let named = match debug.has_symbols() {
                true => debug,
                false => &self.image,
            };
            let (mini, problem) = match debug_files::mini_debug_info(&self.image) {
                Ok(mini) => (mini, None),
                Err(error) => (None, Some(error.to_string())),
            };
            Symbols {
                table: SymbolTable::read(named, mini, &self.image),
                problem,
            }
        });
        &symbols.table
    }

    /// Returns the symbols by which the tools of a dialect name code.
    pub(crate) fn tool_symbols(&self, dialect: Dialect) -> &SymbolTable {
        let debug = self.debug();
        let is_own = std::ptr::eq(debug, &self.image);
        match dialect {
            Dialect::Gnu => self.gnu_symbols.get_or_init(|| {
                let named = if debug.has_symbols() {
                    debug
                } else {
                    &self.image
                };
                SymbolTable::of_gnu(named, &self.image)
            }),
            _ if is_own && self.image.has_symbols() => self.symbols(),
            _ => self
                .llvm_symbols
                .get_or_init(|| SymbolTable::of_llvm(&self.image)),
        }
    }

    /// Functions and lines that are not in DWARF, if there are any.
    pub(crate) fn tables(&self) -> Option<&FunctionTables> {
        let data = &self.image.data;
        let tables = self.tables.get_or_init(|| match self.image.format {
            Format::Breakpad => Some(FunctionTables::Breakpad(BreakpadSymbols::new(data.clone()))),
            Format::Elf | Format::Pe | Format::MachO => {
                GoSymbols::find(data).map(FunctionTables::Go)
            }
        });
        tables.as_ref()
    }

    pub(crate) fn sections(&self) -> Sections<'_> {
        let mut sections = Sections::of(self.debug(), false);
        if let Some(supplement) = self.supplement() {
            sections.supplement_str = supplement.debug.get(gimli::SectionId::DebugStr, false);
        }
        sections
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Address;
    use crate::answer::Answers;

    /// The test program is an object file with debug information.
    #[test]
    fn finds_a_function_of_this_very_program() {
        let path = std::env::current_exe().unwrap();
        let symbols = NativeSymbols::open_path(&path).unwrap();
        let mut out = Answers::new();
        // The address of this function is unknown, so all code is looked up.
        let code = symbols.code().to_vec();
        let addresses: Vec<Address> = code
            .iter()
            .flat_map(|r| (r.start..r.end).step_by(64))
            .map(Address::VirtualAddress)
            .collect();
        symbols.find_all(&addresses, &Query::default(), &mut out);
        assert_eq!(out.len(), addresses.len());
        assert!(out.damage().is_empty(), "{:?}", out.damage());
        let own = out.iter().find_map(|answer| {
            answer.frames().find(|f| {
                f.demangled()
                    .is_some_and(|n| n.starts_with(concat!(module_path!(), "::finds_a_function")))
            })
        });
        let own = own.expect("this function is in its own program");
        assert!(own.file().is_some_and(|f| f.ends_with("native.rs")));
    }

    /// Single lookups use cached units.
    #[test]
    fn single_lookups_agree_with_a_batch() {
        let symbols = NativeSymbols::open_path(&std::env::current_exe().unwrap()).unwrap();
        let code = symbols.code().to_vec();
        // Nearby addresses, in about fifty groups.
        let len: u64 = code.iter().map(|r| r.end - r.start).sum();
        let addresses: Vec<Address> = code
            .iter()
            .flat_map(|r| (r.start..r.end).step_by(1 + len as usize / 50))
            .flat_map(|start| (start..start + 100).step_by(7))
            .map(Address::VirtualAddress)
            .collect();
        let print = |answer: crate::Answer<'_>| {
            let frames = answer.frames().map(|f| {
                let line = (f.file(), f.line(), f.column(), f.discriminator());
                format!(
                    "{:?} {line:?} {:x?} {}",
                    f.name(),
                    f.function_start(),
                    f.inlined()
                )
            });
            (frames.collect::<Vec<_>>(), answer.missing())
        };
        let mut batch = Answers::new();
        symbols.find_all(&addresses, &Query::default(), &mut batch);
        let mut single = Answers::new();
        for (&address, expected) in addresses.iter().zip(batch.iter()) {
            symbols.find(address, &Query::default(), &mut single);
            let answer = single.get(0).map(print);
            assert_eq!(answer, Some(print(expected)), "{address:x?}");
        }
        assert!(
            !symbols.cached_units.is_empty() && symbols.cached_units.weight() <= MAX_CACHED_UNITS
        );
    }
}
