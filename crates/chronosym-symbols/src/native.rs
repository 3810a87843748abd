//! One native object file, ELF or PE with DWARF, and what it says about addresses.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use chronosym_types::hash::HashMap;
use gimli::DwoId;

use crate::dwarf::cached_unit::CachedUnit;
use crate::dwarf::index::{UnitIndex, UnitStarts};
use crate::dwarf::lines::LineTables;
use crate::dwarf::split::SplitFile;
use crate::dwarf::unit::Sections;
use crate::elf::container::Container;
use crate::elf::debug_files::{self, DebugFileSearch, Missed};
use crate::elf::segments::Mapping;
use crate::elf::symbols::SymbolTable;
use crate::error::Error;
use crate::error::Result;
use crate::identity::BuildId;
use crate::lru::WeightedLru;
use crate::mmap::FileData;

/// What is wanted of each address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Query {
    /// Give inlined functions frames of their own. Without it there is one frame: the function whose code it is, at the
    /// line of the innermost.
    pub inlines: bool,
    /// Look source lines up.
    pub lines: bool,
    /// Look each address up in the symbol table too, for tools that print its names rather than the debug information's
    /// ([`Frame::symbol_id`](crate::Frame::symbol_id)).
    pub symbol_names: bool,
    /// How many threads a large batch may use; 0 for as many as there are processors.
    pub threads: usize,
    /// For how many units each line table is read, on average: beyond that lines say that a limit was reached
    /// ([`Frame::line_limited`](crate::Frame::line_limited)). 4: tables are a unit's own, or shared by a few.
    pub line_share: usize,
}

impl Default for Query {
    fn default() -> Self {
        Self {
            inlines: true,
            lines: true,
            symbol_names: false,
            threads: 0,
            line_share: 4,
        }
    }
}

/// The symbols of one native object file: ELF, or PE with DWARF or a symbol table.
///
/// Opening reads the headers. Everything else is read when an address needs it, by `&self`: it may be shared by threads.
#[derive(Debug)]
pub struct NativeSymbols {
    pub(crate) image: Container,
    search: DebugFileSearch,
    /// What the file is called, also where it is a link.
    names: Vec<OsString>,
    pub(crate) index: UnitIndex,
    pub(crate) starts: UnitStarts,
    pub(crate) supplement_starts: UnitStarts,
    pub(crate) line_tables: LineTables,
    /// And what was met instead.
    debug_file: OnceLock<(Option<Container>, Missed)>,
    supplement: OnceLock<Option<Container>>,
    packages: OnceLock<Vec<Arc<SplitFile>>>,
    other_packages: OnceLock<Vec<Arc<SplitFile>>>,
    split: Mutex<SplitUnits>,
    symbols: OnceLock<Symbols>,
    /// Units of single lookups, by their offset.
    pub(crate) cached_units: WeightedLru<usize, CachedUnit>,
}

/// The symbol table, and why what the image holds of one besides cannot be read.
#[derive(Debug)]
struct Symbols {
    table: SymbolTable,
    is_of_debug_file: bool,
    problem: Option<String>,
}

/// What was found of split units.
#[derive(Debug, Default)]
struct SplitUnits {
    /// Their files by their ids; of those that are not there, the name.
    by_id: HashMap<u64, Result<Arc<SplitFile>, String>>,
    /// Files by their paths: any number of units may name one.
    files: HashMap<PathBuf, Option<Arc<SplitFile>>>,
}

/// What a file keeps of its units for single lookups, in bytes.
const MAX_CACHED_UNITS: u64 = 32 << 20;

impl NativeSymbols {
    /// Reads the headers of an object file in memory or mapped, which may be compressed by gzip, xz or zstd. No other file is
    /// opened.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for formats of symbols that are known by name only, [`Error::UnknownFormat`] for anything else
    /// but ELF and PE, [`Error::Damaged`] for headers that contradict themselves.
    pub fn open(data: impl Into<FileData>) -> Result<Self> {
        let image = Container::parse(data.into())?;
        Ok(Self::with_search(
            image,
            Vec::new(),
            DebugFileSearch::default(),
        ))
    }

    /// Maps an object file and reads its headers; the files it names are looked for beside it
    /// ([`DebugFileSearch::next_to`]).
    ///
    /// # Errors
    /// As [`NativeSymbols::open`], and [`Error::Io`].
    pub fn open_path(path: &Path) -> Result<Self> {
        Self::open_path_with(path, DebugFileSearch::next_to(path))
    }

    /// Maps an object file and reads its headers; `search` says what else may be opened.
    ///
    /// # Errors
    /// As [`NativeSymbols::open`], and [`Error::Io`].
    pub fn open_path_with(path: &Path, search: DebugFileSearch) -> Result<Self> {
        let image = Container::open(path)?;
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
            cached_units: WeightedLru::new(MAX_CACHED_UNITS),
        }
    }

    /// Takes the debug information from a file found elsewhere. To be called before the first question.
    ///
    /// # Errors
    /// As [`NativeSymbols::open_path`], and [`Error::NotItsDebugFile`] unless the build id says that it is of this build or,
    /// without one, the checksum of `.gnu_debuglink`.
    pub fn set_debug_file(&mut self, path: &Path) -> Result<()> {
        let file = Container::open(path)?;
        if let Some(problem) = debug_files::difference(&self.image, &file) {
            return Err(Error::NotItsDebugFile { problem });
        }
        self.debug_file = OnceLock::from((Some(file), Missed::default()));
        Ok(())
    }

    /// The name of the file that the debug information was moved to (`.gnu_debuglink`), if any was.
    pub fn debug_link(&self) -> Option<String> {
        let (name, _) = debug_files::debug_link(&self.image)?;
        Some(name.to_string_lossy().into_owned())
    }

    /// The build id and the path of the supplementary file that holds what the debug information shares with that of others
    /// (`.gnu_debugaltlink`), where it is named but was not found.
    pub fn missing_supplement(&self) -> Option<(BuildId, String)> {
        if self.supplement().is_some() {
            return None;
        }
        let (path, id) = debug_files::supplement_link(self.debug())?;
        // Copied before it is checked: the file may be mapped.
        Some((id, chronosym_types::copied_text(path)))
    }

    /// Takes the supplementary file from elsewhere. To be called before the first question.
    ///
    /// # Errors
    /// As [`NativeSymbols::open_path`], and [`Error::BuildIdMismatch`] if it is another one, or if none is named.
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

    /// True if nothing but what other images may link to has names: neither debug information nor a symbol table was found.
    pub fn is_stripped(&self) -> bool {
        !self.debug().debug.has(gimli::SectionId::DebugInfo, false) && !self.symbols().1.has_own()
    }

    /// True if a debug file was met that is of another build.
    pub fn has_rejected_debug_file(&self) -> bool {
        let met = self.debug_file.get();
        met.is_some_and(|(_, missed)| missed.other_build)
    }

    /// Which other files were missed so far, or are not of this build.
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
                "supplementary file {path} (build id {id}) not found: names that it holds are not known"
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
                "{first}{more} not found: neither lines nor inlined functions of that code are known"
            ));
        }
        notes
    }

    /// The GNU build id, if the file has one.
    pub fn build_id(&self) -> Option<&BuildId> {
        self.image.build_id.as_ref()
    }

    /// Virtual address of the image's first byte: what an [`Address::Rva`](crate::Address::Rva) counts from.
    pub fn base(&self) -> u64 {
        self.image.segments.base()
    }

    /// True if file offsets can be looked up: the program headers say where each byte of the image's file is mapped. Those of a
    /// debug file do not.
    pub fn has_offsets(&self) -> bool {
        self.image.segments.has_offsets()
    }

    /// What is added to offsets of the image's file in an executable mapping to get virtual addresses, for a debug file; `None`
    /// where nothing proves it.
    pub fn offset_bias(&self, mapping: Mapping) -> Option<u64> {
        self.image.segments.offset_bias(mapping)
    }

    /// The virtual addresses of a section, as `.text`, if it is loaded; of several of one name the first.
    ///
    /// The sections of objects and kernel modules, which are not linked, have no addresses of their own: here code stands at 0,
    /// `.text` first, the rest after it. So an address of a running kernel module less where the module begins is a virtual
    /// address of its file.
    pub fn section(&self, name: &str) -> Option<Range<u64>> {
        self.image.section(name)
    }

    /// Virtual addresses of the executable sections, sorted.
    pub fn code(&self) -> &[Range<u64>] {
        &self.image.code
    }

    /// What the file and that with its debug information come to hold in memory once everything in them was asked for, beside
    /// their bytes as they are, in bytes.
    pub fn unpacked_bytes(&self) -> u64 {
        let (own, debug) = (&self.image, self.debug());
        let other = (!std::ptr::eq(own, debug)).then(|| debug.unpacked_bytes());
        own.unpacked_bytes().saturating_add(other.unwrap_or(0))
    }

    /// True if there is debug information with lines, in the file or its debug file.
    pub fn has_lines(&self) -> bool {
        self.debug().debug.has(gimli::SectionId::DebugLine, false)
    }

    /// What was found to be damaged so far in the file as a whole.
    pub(crate) fn damage(&self) -> impl Iterator<Item = String> {
        let index = self.index.damage();
        let index = index.map(|bad| format!("extents of the units: {bad}"));
        let symbols = (self.symbols.get()).and_then(|symbols| symbols.problem.clone());
        self.debug().debug.damage().chain(index).chain(symbols)
    }

    /// The file with the debug information: this one, or the one its debug link leads to.
    pub(crate) fn debug(&self) -> &Container {
        if self.image.debug.has(gimli::SectionId::DebugInfo, false) {
            return &self.image;
        }
        self.debug_file
            .get_or_init(|| self.search.debug_file(&self.image))
            .0
            .as_ref()
            .unwrap_or(&self.image)
    }

    pub(crate) fn supplement(&self) -> Option<&Container> {
        self.supplement
            .get_or_init(|| self.search.supplement(self.debug()))
            .as_ref()
    }

    /// The file of a split unit, opened once: a package, or a file of its own. Where none has the unit, the first that should.
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

    pub(crate) fn symbols(&self) -> (&Container, &SymbolTable) {
        let debug = self.debug();
        let symbols = self.symbols.get_or_init(|| {
            // Without symbols in the debug file, those that the image is linked by.
            let is_of_debug_file = debug.has_symbols();
            let named = if is_of_debug_file { debug } else { &self.image };
            let (mini, problem) = match debug_files::mini_debug_info(&self.image) {
                Ok(mini) => (mini, None),
                Err(error) => (None, Some(error.to_string())),
            };
            Symbols {
                table: SymbolTable::read(named, mini),
                is_of_debug_file,
                problem,
            }
        });
        match symbols.is_of_debug_file {
            true => (debug, &symbols.table),
            false => (&self.image, &symbols.table),
        }
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

    /// The test program itself is an object file with debug information; it knows where its own functions stand.
    #[test]
    fn finds_a_function_of_this_very_program() {
        let path = std::env::current_exe().unwrap();
        let symbols = NativeSymbols::open_path(&path).unwrap();
        let mut out = Answers::new();
        // Where this function stands is not known beforehand, so the whole code is asked.
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

    /// One at a time, addresses are answered out of what is kept of their unit: in the same words.
    #[test]
    fn single_lookups_agree_with_a_batch() {
        let symbols = NativeSymbols::open_path(&std::env::current_exe().unwrap()).unwrap();
        let code = symbols.code().to_vec();
        // Neighbours, in some fifty places.
        let len: u64 = code.iter().map(|r| r.end - r.start).sum();
        let addresses: Vec<Address> = code
            .iter()
            .flat_map(|r| (r.start..r.end).step_by(1 + len as usize / 50))
            .flat_map(|start| (start..start + 100).step_by(7))
            .map(Address::VirtualAddress)
            .collect();
        let print = |answer: crate::Answer<'_>| {
            let frames = answer.frames().map(|f| {
                let place = (f.file(), f.line(), f.column(), f.discriminator());
                format!(
                    "{:?} {place:?} {:x?} {}",
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
            let found = single.get(0).map(print);
            assert_eq!(found, Some(print(expected)), "{address:x?}");
        }
        assert!(
            !symbols.cached_units.is_empty() && symbols.cached_units.weight() <= MAX_CACHED_UNITS
        );
    }
}
