//! Searches for files, each once, and records the results.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chronosym_symbols::identity::{BuildId, FileIdentity, IdentityKind, PdbId, PeId, Wanted};
use chronosym_symbols::lru::WeightedLru;
use chronosym_symbols::store::{
    Attempt, AttemptResult, Identify, IdentifyError, NoFile, Outcome, Reach, Request,
    SearchLocation, StoreConfig, Stores, read_identity,
};

use crate::kallsyms::{KallsymsMismatch, module_files};
use chronosym_core::{ImageRef, PdbReference};
use chronosym_core::{LineReason, NameReason};
use chronosym_core::{file_name, simple_name};

/// A file, and the identity it had when it was found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct FileAt {
    pub path: PathBuf,
    /// `None` for files without identity.
    pub id: Option<FileIdentity>,
    /// The file with the debug information of an ELF image.
    pub debug_file: Option<PathBuf>,
}

impl FileAt {
    pub(super) fn new(path: PathBuf, id: Option<FileIdentity>) -> Self {
        FileAt {
            path,
            id,
            debug_file: None,
        }
    }
}

/// A symbol file that was searched for: the locations searched, and the result.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SymbolFile {
    /// The identity it must have. `None` if the trace states none: then no file is known to be the
    /// right one.
    pub wanted: Option<Wanted>,
    /// The location of the file, or why there is none.
    pub found: Result<FoundFile, NoFile>,
    /// The identity in the file, if it is a separate file.
    pub id: Option<FileIdentity>,
    /// Every location searched, in order.
    pub attempts: Vec<Attempt>,
    /// Evidence that this is the right file, if that is not the wanted identity.
    pub(super) located_by: Option<IdentityKind>,
    /// The file to open: the symbol file, or the image in which it is embedded.
    pub(super) at: Option<Arc<FileAt>>,
}

/// The location of a symbol file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FoundFile {
    /// A separate file.
    File(PathBuf),
    /// Embedded in this image.
    Embedded(PathBuf),
    /// Contained in the trace.
    InTrace,
}

impl std::fmt::Display for FoundFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FoundFile::File(path) => write!(f, "{}", path.display()),
            FoundFile::Embedded(path) => write!(f, "{} (embedded)", path.display()),
            FoundFile::InTrace => f.write_str("the trace"),
        }
    }
}

impl SymbolFile {
    /// Returns a file that is known to be the right one.
    pub(super) fn at(found: FoundFile, at: Arc<FileAt>) -> Self {
        SymbolFile {
            found: Ok(found),
            at: Some(at),
            ..SymbolFile::unidentified()
        }
    }

    /// Returns the result for a file without identity, which cannot be searched for.
    pub(super) fn unidentified() -> Self {
        SymbolFile {
            wanted: None,
            found: Err(NoFile::NoSymbolFile),
            id: None,
            attempts: Vec::new(),
            located_by: None,
            at: None,
        }
    }

    /// Returns the evidence that the file is the right one: the weakest if several files lead to
    /// it. `None` for a file that the trace contains or the user vouches for.
    pub fn matched_by(&self) -> Option<IdentityKind> {
        let wanted = self.wanted.as_ref().map(Wanted::kind);
        self.found.as_ref().ok().and(self.located_by.or(wanted))
    }

    /// Returns whether the file is an ELF image without a symbol table: its debug file is missing.
    pub fn is_stripped(&self) -> bool {
        let has_debug_file = self.at.as_ref().is_some_and(|at| at.debug_file.is_some());
        let is_bare = |id| {
            matches!(
                id,
                &FileIdentity::Elf {
                    has_debug: false,
                    ..
                }
            )
        };
        self.found.is_ok() && !has_debug_file && self.id.as_ref().is_some_and(is_bare)
    }

    /// Returns the build ID of the file.
    pub(super) fn build_id(&self) -> Option<&BuildId> {
        match self.id.as_ref()? {
            FileIdentity::Elf { build_id, .. } => build_id.as_ref(),
            _ => None,
        }
    }

    /// Returns the file, if it is a separate file.
    pub(super) fn file(&self) -> Option<&Arc<FileAt>> {
        let is_file = matches!(self.found, Ok(FoundFile::File(_)));
        self.at.as_ref().filter(|_| is_file)
    }

    /// Returns whether it is available and has native addresses, which the PDB of managed code has
    /// not.
    pub(super) fn is_native_pdb(&self) -> bool {
        self.found.is_ok() && !matches!(self.id, Some(FileIdentity::PortablePdb(_)))
    }

    /// Returns the reason for frames that have no name.
    pub(super) fn name_reason(&self) -> NameReason {
        match &self.found {
            Ok(_) => NameReason::NoName,
            Err(none) => {
                let mut all = NameReason::ALL.iter().copied();
                let is_it = |reason: &NameReason| reason.as_str() == none.name();
                all.find(is_it).unwrap_or(NameReason::NoSymbolFile)
            }
        }
    }

    /// Returns the reason for frames that have no line.
    pub(super) fn line_reason(&self) -> LineReason {
        match &self.found {
            Ok(_) => LineReason::NoSequencePoint,
            Err(none) => {
                let mut all = LineReason::ALL.iter().copied();
                let is_it = |reason: &LineReason| reason.as_str() == none.name();
                all.find(is_it).unwrap_or(LineReason::NoSymbolFile)
            }
        }
    }

    /// Merges the result of another search: its file, or its reason if that is more specific.
    pub(super) fn or(&mut self, outcome: &Outcome) {
        self.attempts.extend(outcome.attempts.iter().cloned());
        match (&self.found, &outcome.file) {
            (Ok(_), _) => {}
            (Err(_), Ok(file)) => {
                let (path, id) = (file.path.clone(), Some(file.id.clone()));
                self.found = Ok(FoundFile::File(path.clone()));
                self.id.clone_from(&id);
                self.at = Some(Arc::new(FileAt::new(path, id)));
            }
            (Err(known), Err(new)) if rank(new) > rank(known) => {
                self.found = Err(new.clone());
            }
            _ => {}
        }
    }

    /// Checks the file that was found against further evidence. A mismatch means that it belongs to
    /// another build.
    fn must_fit(&mut self, fits: Check<'_>) {
        let Some(at) = self.file() else {
            return;
        };
        let Err(why) = fits(at) else {
            return;
        };
        let location = SearchLocation::File(at.path.clone());
        self.attempts.push(Attempt {
            location: location.clone(),
            result: AttemptResult::Refused(why.to_string()),
        });
        self.found = Err(match (self.wanted.clone(), self.id.take()) {
            (Some(wanted), Some(found)) => NoFile::SymbolFileMismatch {
                wanted,
                found,
                location,
            },
            _ => NoFile::NoSymbolFile,
        });
    }

    /// Records that a list of the kernel's functions was given, and whether it matches this kernel.
    pub(super) fn try_kallsyms(&mut self, path: &Path, fits: Result<(), KallsymsMismatch>) {
        let result = match fits {
            Ok(()) => {
                self.found = Ok(FoundFile::File(path.to_owned()));
                AttemptResult::Found
            }
            Err(why) => AttemptResult::Refused(why.to_string()),
        };
        let location = SearchLocation::File(path.to_owned());
        self.attempts.push(Attempt { location, result });
    }

    /// Records that the file that was found is damaged.
    pub(super) fn damaged(&mut self, path: &Path, why: impl Error) {
        self.found = Err(NoFile::SymbolFileDamaged {
            location: SearchLocation::File(path.to_owned()),
            why: why.to_string(),
        });
    }

    /// Returns the approximate size in bytes.
    pub(super) fn weight(&self) -> u64 {
        1024 + weight_of(&self.attempts)
    }
}

/// Returns the approximate size in bytes of a search's attempts, including their paths.
fn weight_of(attempts: &[Attempt]) -> u64 {
    256 * attempts.len() as u64
}

/// Ranks reasons: of several, the most specific is kept.
pub(super) fn rank(reason: &NoFile) -> u8 {
    match reason {
        NoFile::SymbolFileMismatch { .. } => 4,
        NoFile::SymbolFileDamaged { .. } => 3,
        NoFile::Offline => 2,
        NoFile::PathNotTrusted { .. } => 1,
        _ => 0,
    }
}

/// Checks a file of the wanted identity against further evidence; the error is the difference.
pub(super) type Check<'a> = &'a (dyn Fn(&Arc<FileAt>) -> Result<(), Box<dyn Error>> + Sync);

/// Accepts every file: no further evidence exists.
pub(super) const ANY: Check<'static> = &|_| Ok(());

/// A file to search for: its identity, its possible names, and its paths in the trace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct FileRequest {
    pub wanted: Wanted,
    pub names: Vec<String>,
    pub paths: Vec<String>,
}

impl FileRequest {
    pub(super) fn new<const N: usize, const P: usize>(
        wanted: Wanted,
        names: [&str; N],
        paths: [&str; P],
    ) -> Self {
        FileRequest {
            wanted,
            names: distinct(names),
            paths: distinct(paths),
        }
    }

    /// Requests a file under the name in its path.
    pub(super) fn at(wanted: Wanted, path: &str) -> Self {
        FileRequest::new(wanted, [file_name(path)], [path])
    }

    /// Requests an ELF file, which may be a kernel module.
    pub(super) fn object(wanted: Wanted, path: &str) -> Self {
        let mut object = FileRequest::at(wanted, path);
        let others = module_files(path).filter(|name| name != file_name(path));
        object.names.extend(others);
        object
    }

    /// Requests a PDB. Its name is that in its path or that of its image; its folder is that in its
    /// path or that of its image.
    pub(super) fn pdb(wanted: Wanted, pdb_path: &str, image_path: &str) -> Self {
        let own = format!("{}.pdb", simple_name(image_path));
        let beside = beside(image_path, &own).unwrap_or_default();
        FileRequest::new(
            wanted,
            [file_name(pdb_path), &own],
            [full(pdb_path), &beside],
        )
    }

    /// Requests the image itself, by the identity in its header.
    pub(super) fn image(image: &ImageRef<'_>) -> Option<Self> {
        let pe = PeId {
            timestamp: image.timestamp?,
            size_of_image: u32::try_from(image.size).ok()?,
        };
        let wanted = Wanted::Image {
            pe: Some(pe),
            pdb: None,
        };
        Some(FileRequest::at(wanted, image.path))
    }
}

/// Returns the path, or an empty string for a bare name, which compilers may write in place of a
/// PDB's path.
pub(super) fn full(path: &str) -> &str {
    if path == file_name(path) { "" } else { path }
}

/// Returns the path of a file in the folder of another, whose path must be a full one.
pub(super) fn beside(path: &str, name: &str) -> Option<String> {
    let folder = &path[..path.len() - file_name(path).len()];
    (!folder.is_empty() && !name.is_empty()).then(|| format!("{folder}{name}"))
}

/// Searches, each done once: processes share what they load.
#[derive(Debug)]
pub(super) struct Search {
    stores: Stores,
    /// Keyed by the request, whether it included the stores, and the generation.
    done: WeightedLru<(Arc<FileRequest>, bool, u64), Outcome>,
    generation: AtomicU64,
}

impl Search {
    /// Creates a search that caches up to `bytes` of outcomes.
    pub(super) fn new(config: StoreConfig, bytes: u64) -> Self {
        Search {
            stores: Stores::new(config),
            done: WeightedLru::new(bytes),
            generation: AtomicU64::new(0),
        }
    }

    /// Adds a folder to search from now on.
    pub(super) fn add_trace_folder(&self, folder: PathBuf) {
        if self.stores.add_trace_folder(folder) {
            self.generation.fetch_add(1, Ordering::Release);
        }
    }

    /// Returns the search locations.
    pub(super) fn config(&self) -> Arc<StoreConfig> {
        self.stores.config()
    }

    /// Downloads a source file from the URL that a PDB states.
    pub(super) fn fetch_source(
        &self,
        url: &str,
        most: u64,
    ) -> Result<Vec<u8>, chronosym_symbols::store::NotFetched> {
        self.stores.fetch_source(url, most)
    }

    /// Increases when locations are added: cached outcomes may be outdated.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Searches the folders and the trace's paths (`stores` false), or the symbol path and
    /// debuginfod.
    pub(super) fn find(&self, sought: &FileRequest, stores: bool) -> Arc<Outcome> {
        let key = (Arc::new(sought.clone()), stores, self.generation());
        self.done.get_or_make(&key, || {
            let outcome = self.look(sought, stores, &read_identity);
            let weight = 512 + weight_of(&outcome.attempts);
            (Arc::new(outcome), weight)
        })
    }

    /// Searches the folders and the trace's paths for a file that also `fits`: builds for several
    /// machines can have one identity and be in one folder. Not cached, because `fits` depends on
    /// more than the identity.
    fn find_fitting(&self, sought: &FileRequest, fits: Check<'_>) -> Outcome {
        let identify = |path: &Path, wanted: &Wanted| {
            let id = read_identity(path, wanted)?;
            if wanted.accepts(&id) {
                let at = FileAt::new(path.to_owned(), Some(id.clone()));
                fits(&Arc::new(at)).map_err(|why| IdentifyError::Unfit(why.to_string()))?;
            }
            Ok(id)
        };
        self.look(sought, false, &identify)
    }

    fn look(&self, sought: &FileRequest, stores: bool, identify: &Identify<'_>) -> Outcome {
        let mut names = sought.names.iter();
        let first = names.next().cloned().unwrap_or_default();
        let reach = match stores {
            true => Reach::Stores,
            false => Reach::Folders,
        };
        let request = Request::new(sought.wanted.clone(), first).within(reach);
        let request = names.fold(request, |request, name| request.or_named(name));
        let paths = sought.paths.iter();
        let request = paths.fold(request, |request, path| request.at_trace_path(path));
        self.stores.acquire(&request, identify)
    }

    /// Searches the folders and the trace's paths, and merges the result: for files for which
    /// stores have no key.
    pub(super) fn folders(&self, file: &mut SymbolFile, sought: &FileRequest, fits: Check<'_>) {
        file.wanted.get_or_insert_with(|| sought.wanted.clone());
        let outcome = self.find(sought, false);
        let known = file.attempts.len();
        file.or(&outcome);
        file.must_fit(fits);
        if outcome.file.is_ok() && file.found.is_err() {
            file.attempts.truncate(known);
            file.or(&self.find_fitting(sought, fits));
        }
    }

    /// Searches all locations, and merges the result.
    pub(super) fn everywhere(&self, file: &mut SymbolFile, sought: &FileRequest, fits: Check<'_>) {
        self.folders(file, sought, fits);
        if file.found.is_err() {
            self.stores(file, sought, fits);
        }
    }

    /// Searches the symbol path and debuginfod, and merges the result.
    pub(super) fn stores(&self, file: &mut SymbolFile, sought: &FileRequest, fits: Check<'_>) {
        file.or(&self.find(sought, true));
        file.must_fit(fits);
    }

    /// Returns the first file that any of these requests finds.
    pub(super) fn first<const N: usize>(&self, sought: [FileRequest; N]) -> SymbolFile {
        let mut file = SymbolFile::unidentified();
        for sought in &sought {
            if file.found.is_err() {
                self.everywhere(&mut file, sought, ANY);
            }
        }
        file
    }
}

/// Returns the id of a PDB; `None` if the trace has zeros in its place.
pub(super) fn identity(pdb: Option<&PdbReference>) -> Option<PdbId> {
    pdb.map(|pdb| pdb.id).filter(|id| !id.guid.is_zero())
}

pub(super) fn distinct<const N: usize>(names: [&str; N]) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for name in names {
        if !name.is_empty() && name != ".pdb" && !kept.iter().any(|known| known == name) {
            kept.push(name.to_owned());
        }
    }
    kept
}
