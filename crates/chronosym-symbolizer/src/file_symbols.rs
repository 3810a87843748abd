//! The symbols of one native file that the caller names (an object file or a Windows PDB), and the
//! files that complete it.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use chronosym_core::{file_name, simple_name};
use chronosym_pdb::pe::PeImage;
use chronosym_symbols::converted::SymbolCache;
use chronosym_symbols::identity::{BuildId, PdbFormat, PdbId, Wanted};
use chronosym_symbols::mmap::FileData;
use chronosym_symbols::store::{Request, StoreConfig, Stores, read_identity};
use chronosym_symbols::style::{Image, Printer, Style};
use chronosym_symbols::{
    Address, Answers, DataSymbol, DebugFileSearch, Error, LocalVariable, NativeSymbols, ObjectPath,
    PdbSymbols, Query,
};

use crate::function_names::FunctionNames;
use crate::open_error::OpenError;

/// The symbols of one native file.
///
/// # Examples
///
/// ```
/// use std::path::Path;
///
/// use chronosym_symbolizer::chronosym_symbols::{Address, Query};
/// use chronosym_symbolizer::{FileSymbols, StoreConfig};
///
/// let exe = Path::new("../../testdata/pdb-small/x86_64/small.exe");
/// let mut symbols = FileSymbols::of_image(exe, &StoreConfig::default(), false)?; // with small.pdb
/// symbols.resolve(&[Address::Rva(0x1000)], &Query::default());
/// let answer = symbols.answers().get(0).unwrap();
/// assert!(answer.frames().next().unwrap().line().is_some());
/// # Ok::<(), chronosym_symbolizer::OpenError>(())
/// ```
#[derive(Debug)]
pub struct FileSymbols {
    format: Format,
    path: PathBuf,
    /// The name of the image in frames.
    module: String,
    files: OtherFiles,
    answers: Answers,
    damage: BTreeSet<String>,
    functions: OnceLock<FunctionNames>,
}

#[derive(Debug)]
enum Format {
    Object(Box<NativeSymbols>),
    /// With the preferred base of its image, or 0.
    Pdb(PdbSymbols, u64),
}

/// The files that complete an image.
#[derive(Debug, Default)]
struct OtherFiles {
    /// The id of the PDB, whether or not the PDB was found.
    pdb_id: Option<String>,
    /// Why a file was not found; one of a closed list of reasons.
    reason: Option<&'static str>,
    notes: Vec<String>,
    /// Whether the PDB belongs to another build and the caller accepts it.
    other_build: bool,
}

/// Adds the folder of an image in front of the other folders to search.
pub(super) fn with_folder_of(image: Option<&Path>, mut config: StoreConfig) -> StoreConfig {
    let mut folders = image.map_or(Vec::new(), |image| DebugFileSearch::next_to(image).folders);
    for folder in folders.iter_mut().filter(|f| f.as_os_str().is_empty()) {
        *folder = PathBuf::from(".");
    }
    config.folders.splice(0..0, folders);
    config
}

impl FileSymbols {
    /// Opens the symbols of an image: those of its PDB or debug file if it has one, else its own.
    /// The path may name a dSYM bundle, and may select an image of a universal file
    /// ([`ObjectPath::parse`]). Symbol files are searched for in the folder of the image and in the
    /// locations of `config`. Paths recorded in the image are opened only if `recorded_paths` is
    /// set.
    ///
    /// # Errors
    ///
    /// The image cannot be read.
    pub fn of_image(
        path: &Path,
        config: &StoreConfig,
        recorded_paths: bool,
    ) -> Result<Self, OpenError> {
        let mut files = OtherFiles::default();
        if let Some((id, name)) = pdb_of(path) {
            let config = with_folder_of(Some(path), config.clone());
            let problems = config.path.problems.iter();
            files.notes = problems.map(|p| format!("symbol path: {p}")).collect();
            files.pdb_id = Some(format!("{id:#}"));
            let wanted = Wanted::Pdb {
                id,
                stamp: None,
                format: PdbFormat::Windows,
            };
            let request = Request::new(wanted, name.as_str());
            let what = format!("{name} of {}", path.display());
            let cache = config.symbol_cache();
            if let Some(pdb) = files.acquire(&request, config, &what) {
                let mut symbols = Self::of_pdb(&pdb, Some(path), false)?;
                symbols.use_cache(cache);
                return Ok(symbols);
            }
        }
        let mut search = DebugFileSearch::configured(path, config);
        search.recorded_paths = recorded_paths;
        let symbols = NativeSymbols::open_path_with(path, search);
        let mut symbols = symbols.map_err(|error| OpenError::unreadable(path, &error))?;
        files.complete(&mut symbols, path, config);
        let path = ObjectPath::parse(path).file;
        let format = Format::Object(Box::new(symbols));
        let mut symbols = Self::new(format, &path, &path, files);
        symbols.use_cache(config.symbol_cache());
        Ok(symbols)
    }

    /// Answers lookups from converted symbols, where the cache has them
    /// ([`StoreConfig::symbol_cache`]). Call it before the first lookup.
    pub fn use_cache(&mut self, cache: Option<SymbolCache>) {
        match (&mut self.format, cache) {
            (Format::Object(symbols), Some(cache)) => symbols.use_cache(cache),
            (Format::Pdb(pdb, _), Some(cache)) => pdb.use_cache(cache),
            (_, None) => {}
        }
    }

    /// Converts the symbols for the cache, if that is due, as
    /// [`Symbolizer::convert_symbols`](crate::Symbolizer::convert_symbols) does. Returns the number
    /// of bytes stored.
    pub fn convert(&self) -> u64 {
        match &self.format {
            Format::Object(symbols) => symbols.convert(),
            Format::Pdb(pdb, _) => pdb.convert(),
        }
    }

    /// Opens the symbols of a Windows PDB. If the image is given, addresses may be relative to the
    /// image's preferred base. If `any_build` is set, a PDB of another build than the image is
    /// used; a note reports it, and printed frames are marked.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or the PDB belongs to another build.
    pub fn of_pdb(path: &Path, image: Option<&Path>, any_build: bool) -> Result<Self, OpenError> {
        let map =
            |path: &Path| FileData::map(path).map_err(|error| OpenError::unreadable(path, &error));
        let pdb = PdbSymbols::open(map(path)?);
        let pdb = pdb.map_err(|error| OpenError::damaged(path, error))?;
        let id = pdb.with(|pdb| pdb.id());
        let mut base = 0;
        let mut files = OtherFiles {
            pdb_id: Some(format!("{id:#}")),
            ..OtherFiles::default()
        };
        if let Some(image) = image {
            let data = map(image)?;
            let pe = PeImage::parse(&data).map_err(|error| OpenError::damaged(image, error))?;
            base = pe.image_base();
            if let Some(wanted) = pe.native_codeview().map(|codeview| codeview.id)
                && wanted != id
            {
                let pdb = path.to_owned();
                let error = OpenError::OtherPdb { pdb, wanted, id };
                if !any_build {
                    return Err(error);
                }
                files.other_build = true;
                files.notes.push(error.to_string());
            }
        }
        let format = Format::Pdb(pdb, base);
        Ok(Self::new(format, path, image.unwrap_or(path), files))
    }

    fn new(format: Format, path: &Path, image: &Path, files: OtherFiles) -> Self {
        FileSymbols {
            format,
            path: path.to_owned(),
            module: module_name(image),
            files,
            answers: Answers::new(),
            damage: BTreeSet::new(),
            functions: OnceLock::new(),
        }
    }

    /// Returns the build ID, and the id of the PDB or of the Breakpad module.
    pub fn ids(&self) -> Vec<String> {
        let build_id = self.build_id().map(ToString::to_string);
        let pdb_id = self.files.pdb_id.clone();
        let breakpad = match &self.format {
            Format::Object(symbols) => symbols.breakpad_id(),
            Format::Pdb(..) => None,
        };
        let breakpad = breakpad.map(|id| format!("{id:#}"));
        build_id.into_iter().chain(pdb_id).chain(breakpad).collect()
    }

    fn build_id(&self) -> Option<&BuildId> {
        match &self.format {
            Format::Object(symbols) => symbols.build_id(),
            Format::Pdb(..) => None,
        }
    }

    /// Returns the address of the first byte of a section of an object file.
    pub fn section(&self, name: &str) -> Option<u64> {
        match &self.format {
            Format::Object(symbols) => Some(symbols.section(name)?.start),
            Format::Pdb(..) => None,
        }
    }

    /// Returns the ranges of the functions with a name, mangled or demangled, with or without
    /// parameters. The addresses are the virtual addresses that [`FileSymbols::resolve`] takes; for
    /// a PDB without its image they are RVAs.
    pub fn functions_named(&self, name: &str) -> Vec<Range<u64>> {
        let functions = self.functions.get_or_init(|| match &self.format {
            Format::Object(symbols) => FunctionNames::new(symbols.functions()),
            Format::Pdb(pdb, base) => pdb.with(|pdb| {
                let procedures = pdb.functions().filter_map(Result::ok);
                let named = procedures.filter_map(|function| {
                    let start = base.checked_add(function.rva.into())?;
                    let range = start..start.checked_add(function.len.into())?;
                    Some((function.name?.to_string(), range))
                });
                let named: Vec<_> = named.collect();
                let named = named.iter();
                FunctionNames::new(named.map(|(name, range)| (name.as_bytes(), range.clone())))
            }),
        });
        functions.find(name)
    }

    /// Returns the variable or function of an object file that contains a virtual address.
    pub fn data_symbol(&self, address: u64) -> Option<&DataSymbol> {
        match &self.format {
            Format::Object(symbols) => symbols.data_symbol(address),
            Format::Pdb(..) => None,
        }
    }

    /// Returns the file and the line in which the variable at a virtual address of an object file
    /// is declared; the line is 0 if unknown.
    pub fn declaration(&self, address: u64) -> Option<(String, u64)> {
        match &self.format {
            Format::Object(symbols) => symbols.declaration(address),
            Format::Pdb(..) => None,
        }
    }

    /// Returns the parameters and local variables of the function at a virtual address of an object
    /// file.
    pub fn locals(&self, address: u64) -> Vec<LocalVariable> {
        match &self.format {
            Format::Object(symbols) => symbols.locals(address),
            Format::Pdb(..) => Vec::new(),
        }
    }

    /// Returns the virtual address at the start of the only mapping of an executable segment that
    /// is `len` bytes long; `None` if there is none or more than one.
    pub fn mapped_code(&self, len: u64) -> Option<u64> {
        match &self.format {
            Format::Object(symbols) => symbols.mapped_code(len),
            Format::Pdb(..) => None,
        }
    }

    /// Returns whether addresses can be file offsets.
    pub fn has_file_offsets(&self) -> bool {
        matches!(self.format, Format::Object(_))
    }

    /// Resolves addresses. [`FileSymbols::answers`] returns one answer per address, in the same
    /// order.
    pub fn resolve(&mut self, addresses: &[Address], query: &Query) {
        match &self.format {
            Format::Object(symbols) => symbols.find_all(addresses, query, &mut self.answers),
            Format::Pdb(pdb, base) => {
                let rva = |address: &Address| match *address {
                    Address::Rva(rva) => rva,
                    Address::VirtualAddress(address) => address.wrapping_sub(*base),
                    // A PDB does not record the file offsets of its image.
                    Address::FileOffset(_) => u64::MAX,
                };
                let rvas: Vec<u64> = addresses.iter().map(rva).collect();
                pdb.find_all(&rvas, query, &mut self.answers);
            }
        }
        let damage = self.answers.damage().iter();
        match self.format {
            Format::Object(_) => self.damage.extend(damage.cloned()),
            Format::Pdb(..) => {
                let path = self.path.display();
                let damage = damage.map(|error| format!("{path}: {error}"));
                self.damage.extend(damage);
            }
        }
    }

    /// Returns the answers to the addresses resolved last.
    pub fn answers(&self) -> &Answers {
        &self.answers
    }

    /// Prints the answers of the last call of [`FileSymbols::resolve`]; `subtracted` is the value
    /// that was subtracted from the addresses beforehand.
    pub fn printer(&self, style: Style, subtracted: u64) -> Printer<'_> {
        let (base, no_name, offsets) = match &self.format {
            Format::Object(symbols) => (symbols.base(), self.no_name(symbols), false),
            Format::Pdb(..) => (0, "NoName", true),
        };
        Printer::new(style, &self.answers).image(Image {
            module: &self.module,
            base,
            build_id: self.build_id(),
            pdb_id: self.files.pdb_id.as_deref(),
            no_name,
            subtracted,
            offsets,
            other_build: self.files.other_build,
        })
    }

    /// Returns why code has no name, if no other reason is recorded.
    fn no_name(&self, symbols: &NativeSymbols) -> &'static str {
        match self.files.reason {
            _ if !symbols.is_stripped() && symbols.missing_supplement().is_none() => "NoName",
            Some("NoSymbolFile") | None if symbols.has_rejected_debug_file() => {
                "SymbolFileMismatch"
            }
            Some(reason) => reason,
            None => "NoSymbolFile",
        }
    }

    /// Returns descriptions of files that are damaged or were not found.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.files.notes.clone();
        match &self.format {
            Format::Object(symbols) => notes.extend(symbols.missing_files()),
            // The first limitation implies the others.
            Format::Pdb(pdb, _) => {
                let limit = pdb.with(|pdb| pdb.limitations().next());
                let path = self.path.display();
                notes.extend(limit.map(|limit| format!("{path}: {limit}")));
            }
        }
        notes.extend(self.damage.iter().cloned());
        notes
    }
}

impl OtherFiles {
    /// Returns the path of a file. If there is none, adds a note with the reason and the locations
    /// searched.
    fn acquire(&mut self, request: &Request, config: StoreConfig, what: &str) -> Option<PathBuf> {
        let outcome = Stores::new(config).acquire(request, &read_identity);
        let file = outcome.file.map(|file| file.path).map_err(|reason| {
            let attempts = outcome.attempts.iter();
            let attempts: String = attempts.map(|attempt| format!("; {attempt}")).collect();
            self.reason = Some(reason.name());
            self.notes.push(format!("no {what}: {reason}{attempts}"));
        });
        file.ok()
    }

    /// Adds the debug file of a stripped ELF image, and the supplementary file that debug files
    /// share.
    fn complete(&mut self, image: &mut NativeSymbols, path: &Path, config: &StoreConfig) {
        if !image.has_lines() {
            let link = image.debug_link();
            let candidates = match image.build_id().cloned() {
                Some(id) => {
                    let what = format!("debug file of {}", path.display());
                    Vec::from_iter(self.by_build_id(id, path, link, config, &what))
                }
                // Only the checksum in the debug link identifies the file, and stores have no key
                // for it.
                None => {
                    let folders = config.folders.iter();
                    let linked = link
                        .iter()
                        .flat_map(|link| folders.clone().map(move |f| f.join(link)));
                    linked.collect()
                }
            };
            for file in candidates.iter().filter(|file| file.is_file()) {
                match image.set_debug_file(file) {
                    Ok(()) => {
                        *self = OtherFiles::default();
                        break;
                    }
                    Err(error) => self.refuse(file, &error),
                }
            }
        }
        if let Some((id, name)) = image.missing_supplement() {
            let what = format!("supplementary file of {}", path.display());
            let file = self.by_build_id(id, Path::new(&name), None, config, &what);
            if let Some(file) = file
                && let Err(error) = image.set_supplement(&file)
            {
                self.refuse(&file, &error);
            }
        }
    }

    fn refuse(&mut self, file: &Path, error: &Error) {
        self.notes
            .push(format!("{} is not used: {error}", file.display()));
    }

    /// Returns the file with a build ID, if there are locations to search.
    fn by_build_id(
        &mut self,
        id: BuildId,
        path: &Path,
        link: Option<String>,
        config: &StoreConfig,
        what: &str,
    ) -> Option<PathBuf> {
        let path_elements = &config.path.elements;
        if config.folders.is_empty() && path_elements.is_empty() && config.debuginfod.is_empty() {
            return None;
        }
        let own = file_name(&path.to_string_lossy()).to_owned();
        let mut request = Request::new(Wanted::ElfDebug(id), own);
        if let Some(link) = link {
            request = request.or_named(link);
        }
        self.acquire(&request, config.clone(), what)
    }
}

/// Returns the id and the name of the PDB of an image.
fn pdb_of(image: &Path) -> Option<(PdbId, String)> {
    let data = FileData::map(image).ok()?;
    let codeview = PeImage::parse(&data).ok()?.native_codeview()?;
    let name = file_name(&codeview.path);
    // Linkers also write an id into images that have no PDB.
    (!name.is_empty() && !codeview.id.guid.is_zero()).then(|| (codeview.id, name.to_owned()))
}

/// Returns the name of an image in frames: its file name without folder and extension.
pub fn module_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match name.strip_suffix(".pdb") {
        Some(name) => name.to_owned(),
        None => simple_name(&name).to_owned(),
    }
}
