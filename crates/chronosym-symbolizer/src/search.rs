//! Looking for files, each once, and what came of it.

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

/// A file, and what it said of itself when it was found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct FileAt {
    pub path: PathBuf,
    /// Nothing for files that have no identity.
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

/// A symbol file that was looked for: where, and what came of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SymbolFile {
    /// What it must be; nothing where the trace gives no identity, so that of no file it is known to be the right one.
    pub wanted: Option<Wanted>,
    /// Where it is, or why there is none.
    pub found: Result<FoundFile, NoFile>,
    /// What the file says of itself, where it is one of its own.
    pub id: Option<FileIdentity>,
    /// Every place looked at, in order.
    pub attempts: Vec<Attempt>,
    /// What shows that it is the one, where that is not the identity that is wanted.
    pub(super) located_by: Option<IdentityKind>,
    /// The file to open: the symbol file, or the image that it is embedded in.
    pub(super) at: Option<Arc<FileAt>>,
}

/// Where a symbol file is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FoundFile {
    /// A file of its own.
    File(PathBuf),
    /// Embedded in this image.
    Embedded(PathBuf),
    /// In the trace.
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
    /// A file that is known to be the right one.
    pub(super) fn at(found: FoundFile, at: Arc<FileAt>) -> Self {
        SymbolFile {
            found: Ok(found),
            at: Some(at),
            ..SymbolFile::unidentified()
        }
    }

    /// Nothing to look for.
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

    /// What shows that the file is the right one: the weakest link, if several files lead to it. Nothing of a file that the trace
    /// contains or the user vouches for.
    pub fn matched_by(&self) -> Option<IdentityKind> {
        let wanted = self.wanted.as_ref().map(Wanted::kind);
        self.found.as_ref().ok().and(self.located_by.or(wanted))
    }

    /// Whether the file is an ELF image without a symbol table: its debug file is missing.
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

    /// The build id that the file has.
    pub(super) fn build_id(&self) -> Option<&BuildId> {
        match self.id.as_ref()? {
            FileIdentity::Elf { build_id, .. } => build_id.as_ref(),
            _ => None,
        }
    }

    /// The file, where it is one of its own.
    pub(super) fn file(&self) -> Option<&Arc<FileAt>> {
        let is_file = matches!(self.found, Ok(FoundFile::File(_)));
        self.at.as_ref().filter(|_| is_file)
    }

    /// Whether it is at hand and knows native addresses, as the PDB of managed code does not.
    pub(super) fn is_native_pdb(&self) -> bool {
        self.found.is_ok() && !matches!(self.id, Some(FileIdentity::PortablePdb(_)))
    }

    /// What a frame says in place of a name that it does not know.
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

    /// What a frame says in place of a line that it does not know.
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

    /// Takes over what another search came to: its file, or its reason where that says more.
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

    /// Holds the file that was found to what else is known of it; one that does not fit is another build's after all.
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

    /// A list of the kernel's functions was named, and it is of this kernel, or of another in this way.
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

    /// The file that was found is damaged after all.
    pub(super) fn damaged(&mut self, path: &Path, why: impl Error) {
        self.found = Err(NoFile::SymbolFileDamaged {
            location: SearchLocation::File(path.to_owned()),
            why: why.to_string(),
        });
    }

    /// About how many bytes it takes.
    pub(super) fn weight(&self) -> u64 {
        1024 + weight_of(&self.attempts)
    }
}

/// About how many bytes the attempts of a search take, with the paths in them.
fn weight_of(attempts: &[Attempt]) -> u64 {
    256 * attempts.len() as u64
}

/// Of several reasons the one that says most is kept.
pub(super) fn rank(reason: &NoFile) -> u8 {
    match reason {
        NoFile::SymbolFileMismatch { .. } => 4,
        NoFile::SymbolFileDamaged { .. } => 3,
        NoFile::Offline => 2,
        NoFile::PathNotTrusted { .. } => 1,
        _ => 0,
    }
}

/// Whether a file of the wanted identity is the right one by what else is known of it; if not, in what it differs.
pub(super) type Check<'a> = &'a (dyn Fn(&Arc<FileAt>) -> Result<(), Box<dyn Error>> + Sync);

/// Nothing else is known of it.
pub(super) const ANY: Check<'static> = &|_| Ok(());

/// A file that is to be found: what it must be, what it may be called, and where the trace says that it was.
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

    /// What is called as its path says.
    pub(super) fn at(wanted: Wanted, path: &str) -> Self {
        FileRequest::new(wanted, [file_name(path)], [path])
    }

    /// An ELF file, which may be a module of the kernel.
    pub(super) fn object(wanted: Wanted, path: &str) -> Self {
        let mut object = FileRequest::at(wanted, path);
        let others = module_files(path).filter(|name| name != file_name(path));
        object.names.extend(others);
        object
    }

    /// A PDB: it is called as its path says or as its image, and lies where it was written or beside the image.
    pub(super) fn pdb(wanted: Wanted, pdb_path: &str, image_path: &str) -> Self {
        let own = format!("{}.pdb", simple_name(image_path));
        let beside = beside(image_path, &own).unwrap_or_default();
        FileRequest::new(
            wanted,
            [file_name(pdb_path), &own],
            [full(pdb_path), &beside],
        )
    }

    /// The image itself, by what its header says.
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

/// Compilers may write a bare name in place of a PDB's path: that is no path.
pub(super) fn full(path: &str) -> &str {
    if path == file_name(path) { "" } else { path }
}

/// The path of a file in the folder of another, whose path is a full one.
pub(super) fn beside(path: &str, name: &str) -> Option<String> {
    let folder = &path[..path.len() - file_name(path).len()];
    (!folder.is_empty() && !name.is_empty()).then(|| format!("{folder}{name}"))
}

/// Searches, each done once: processes share what they load.
#[derive(Debug)]
pub(super) struct Search {
    stores: Stores,
    /// By whether the stores were asked, and the generation.
    done: WeightedLru<(FileRequest, bool, u64), Outcome>,
    generation: AtomicU64,
}

impl Search {
    /// Remembers what came of searches in up to `bytes`.
    pub(super) fn new(config: StoreConfig, bytes: u64) -> Self {
        Search {
            stores: Stores::new(config),
            done: WeightedLru::new(bytes),
            generation: AtomicU64::new(0),
        }
    }

    /// Looks in another folder from now on.
    pub(super) fn add_trace_folder(&self, folder: PathBuf) {
        if self.stores.add_trace_folder(folder) {
            self.generation.fetch_add(1, Ordering::Release);
        }
    }

    /// Where files are looked for.
    pub(super) fn config(&self) -> Arc<StoreConfig> {
        self.stores.config()
    }

    /// Fetches a source file from where a PDB says that it is.
    pub(super) fn fetch_source(
        &self,
        url: &str,
        most: u64,
    ) -> Result<Vec<u8>, chronosym_symbols::store::NotFetched> {
        self.stores.fetch_source(url, most)
    }

    /// Grows with the places that are searched: what was found out before may not hold any more.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Looks in the folders and at the trace's paths (`stores` false), or in the symbol path and at debuginfod.
    pub(super) fn find(&self, sought: &FileRequest, stores: bool) -> Arc<Outcome> {
        let key = (sought.clone(), stores, self.generation());
        self.done.get_or_make(&key, || {
            let outcome = self.look(sought, stores, &read_identity);
            let weight = 512 + weight_of(&outcome.attempts);
            (Arc::new(outcome), weight)
        })
    }

    /// Looks in the folders and at the trace's paths for a file that also `fits`: builds for several machines lie side by side, with
    /// one identity. Done each time: what fits depends on more than the identity.
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

    /// Looks in the folders and at the trace's paths, and adds what came of it: for what no store has a key for.
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

    /// Looks everywhere, and adds what came of it.
    pub(super) fn everywhere(&self, file: &mut SymbolFile, sought: &FileRequest, fits: Check<'_>) {
        self.folders(file, sought, fits);
        if file.found.is_err() {
            self.stores(file, sought, fits);
        }
    }

    /// Looks in the symbol path and at debuginfod, and adds what came of it.
    pub(super) fn stores(&self, file: &mut SymbolFile, sought: &FileRequest, fits: Check<'_>) {
        file.or(&self.find(sought, true));
        file.must_fit(fits);
    }

    /// The file of any of these, the first that there is.
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

/// The id of a PDB; `None` if the trace has zeros in its place.
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
