//! Looking for files, each once, and what came of it.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chronosym_symbols::identity::{FileIdentity, PdbId, Wanted};
use chronosym_symbols::lru::WeightedLru;
use chronosym_symbols::store::{
    Attempt, Identify, IdentifyError, NoFile, Outcome, Place, Reach, Request, StoreConfig, Stores,
    Trial, read_identity,
};

use super::files::FileAt;
use crate::evidence::{LineReason, NameReason};
use crate::images::{file_name, simple_name};

/// A symbol file that was looked for: where, and what came of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SymbolFile {
    /// What it must be; nothing where the trace gives no identity, so that no file can be told to be the right one.
    pub wanted: Option<Wanted>,
    /// Where it is, or why there is none.
    pub found: Result<FoundFile, NoFile>,
    /// What the file says of itself, where it is one of its own.
    pub id: Option<FileIdentity>,
    /// Every place looked at, in order.
    pub attempts: Vec<Attempt>,
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
    /// Nothing to look for.
    pub(super) fn unidentified() -> Self {
        SymbolFile {
            wanted: None,
            found: Err(NoFile::NoSymbolFile),
            id: None,
            attempts: Vec::new(),
            at: None,
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

    pub(super) fn name_reason(&self) -> NameReason {
        match &self.found {
            Ok(_) => NameReason::NoName,
            Err(NoFile::SymbolFileMismatch { .. }) => NameReason::SymbolFileMismatch,
            Err(NoFile::SymbolFileDamaged { .. }) => NameReason::SymbolFileDamaged,
            Err(NoFile::PathNotTrusted { .. }) => NameReason::PathNotTrusted,
            Err(NoFile::Offline) => NameReason::Offline,
            Err(_) => NameReason::NoSymbolFile,
        }
    }

    pub(super) fn line_reason(&self) -> LineReason {
        match &self.found {
            Ok(_) => LineReason::NoSequencePoint,
            Err(NoFile::SymbolFileMismatch { .. }) => LineReason::SymbolFileMismatch,
            Err(NoFile::SymbolFileDamaged { .. }) => LineReason::SymbolFileDamaged,
            Err(NoFile::PathNotTrusted { .. }) => LineReason::PathNotTrusted,
            Err(NoFile::Offline) => LineReason::Offline,
            Err(_) => LineReason::NoSymbolFile,
        }
    }

    /// Takes over what another search came to: its file, or its reason where that says more.
    pub(super) fn or(&mut self, outcome: &Outcome) {
        self.attempts.extend(outcome.attempts.iter().cloned());
        match (&self.found, &outcome.file) {
            (Ok(_), _) => {}
            (Err(_), Ok(file)) => {
                self.found = Ok(FoundFile::File(file.path.clone()));
                self.id = Some(file.id.clone());
                self.at = Some(Arc::new(FileAt {
                    path: file.path.clone(),
                    id: Some(file.id.clone()),
                }));
            }
            (Err(known), Err(new)) if telling(new) > telling(known) => {
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
        let place = Place::File(at.path.clone());
        self.attempts.push(Attempt {
            place: place.clone(),
            trial: Trial::Refused(why.to_string()),
        });
        self.found = Err(match (self.wanted.clone(), self.id.take()) {
            (Some(wanted), Some(found)) => NoFile::SymbolFileMismatch {
                wanted,
                found,
                place,
            },
            _ => NoFile::NoSymbolFile,
        });
    }

    /// A list of the kernel's functions was named, and it is of this kernel, or of another in this way.
    pub(super) fn try_kallsyms(&mut self, path: &Path, fits: Result<(), String>) {
        let (trial, found) = match fits {
            Ok(()) => (Trial::Found, Some(FoundFile::File(path.to_owned()))),
            Err(why) => (Trial::Refused(why), None),
        };
        self.attempts.push(Attempt {
            place: Place::File(path.to_owned()),
            trial,
        });
        if let Some(found) = found {
            self.found = Ok(found);
        }
    }

    /// The file that was found is damaged after all.
    pub(super) fn damaged(&mut self, path: &Path, why: impl Error) {
        self.found = Err(NoFile::SymbolFileDamaged {
            place: Place::File(path.to_owned()),
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

/// Of several reasons the most telling one is kept.
fn telling(reason: &NoFile) -> u8 {
    match reason {
        NoFile::SymbolFileMismatch { .. } => 4,
        NoFile::SymbolFileDamaged { .. } => 3,
        NoFile::PathNotTrusted { .. } => 2,
        NoFile::Offline => 1,
        _ => 0,
    }
}

/// Whether a file of the wanted identity is the right one by what else is known of it; if not, in what it differs.
pub(super) type Check<'a> = &'a (dyn Fn(&Arc<FileAt>) -> Result<(), Box<dyn Error>> + Sync);

/// Nothing else is known of it.
pub(super) const ANY: Check<'static> = &|_| Ok(());

/// What a search depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    wanted: Wanted,
    names: Vec<String>,
    trace_paths: Vec<String>,
    stores: bool,
    generation: u64,
}

/// Searches, each done once: processes share what they load.
#[derive(Debug)]
pub(super) struct Search {
    stores: Stores,
    done: WeightedLru<Key, Outcome>,
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

    /// Whether files are opened at the paths that traces and symbol files name.
    #[cfg(any(feature = "pdb", all(feature = "dwarf", feature = "perf")))]
    pub(super) fn trusts_paths(&self) -> bool {
        self.stores.config().trust_trace_paths
    }

    /// Fetches a source file from where a PDB says that it is.
    #[cfg(feature = "pdb")]
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
    pub(super) fn find(
        &self,
        wanted: &Wanted,
        names: &[String],
        trace_paths: &[String],
        stores: bool,
    ) -> Arc<Outcome> {
        let key = Key {
            wanted: wanted.clone(),
            names: names.to_vec(),
            trace_paths: trace_paths.to_vec(),
            stores,
            generation: self.generation(),
        };
        self.done.get_or_make(&key, || {
            let outcome = self.look(wanted, names, trace_paths, stores, &read_identity);
            let weight = 512 + weight_of(&outcome.attempts);
            (Arc::new(outcome), weight)
        })
    }

    /// Looks in the folders and at the trace's paths for a file that also `fits`: builds for several machines lie side by side, with
    /// one identity. Done each time: what fits depends on more than the identity.
    fn find_fitting(
        &self,
        wanted: &Wanted,
        names: &[String],
        trace_paths: &[String],
        fits: Check<'_>,
    ) -> Outcome {
        let identify = |path: &Path, wanted: &Wanted| {
            let id = read_identity(path, wanted)?;
            if wanted.accepts(&id) {
                let at = FileAt {
                    path: path.to_owned(),
                    id: Some(id.clone()),
                };
                fits(&Arc::new(at)).map_err(|why| IdentifyError::Unfit(why.to_string()))?;
            }
            Ok(id)
        };
        self.look(wanted, names, trace_paths, false, &identify)
    }

    fn look(
        &self,
        wanted: &Wanted,
        names: &[String],
        trace_paths: &[String],
        stores: bool,
        identify: &Identify<'_>,
    ) -> Outcome {
        let mut names = names.iter();
        let first = names.next().cloned().unwrap_or_default();
        let mut request = Request::new(wanted.clone(), first).within(if stores {
            Reach::Stores
        } else {
            Reach::Folders
        });
        for name in names {
            request = request.or_named(name);
        }
        for path in trace_paths {
            request = request.at_trace_path(path);
        }
        self.stores.acquire(&request, identify)
    }

    /// Looks in the folders and at the trace's paths, and adds what came of it: for what no store has a key for.
    pub(super) fn folders(
        &self,
        file: &mut SymbolFile,
        wanted: &Wanted,
        names: &[String],
        trace_paths: &[String],
        fits: Check<'_>,
    ) {
        file.wanted.get_or_insert_with(|| wanted.clone());
        let outcome = self.find(wanted, names, trace_paths, false);
        let known = file.attempts.len();
        file.or(&outcome);
        file.must_fit(fits);
        if outcome.file.is_ok() && file.found.is_err() {
            file.attempts.truncate(known);
            file.or(&self.find_fitting(wanted, names, trace_paths, fits));
        }
    }

    /// Looks everywhere, and adds what came of it.
    pub(super) fn everywhere(
        &self,
        file: &mut SymbolFile,
        wanted: &Wanted,
        names: &[String],
        trace_paths: &[String],
        fits: Check<'_>,
    ) {
        self.folders(file, wanted, names, trace_paths, fits);
        if file.found.is_err() {
            file.or(&self.find(wanted, names, trace_paths, true));
            file.must_fit(fits);
        }
    }
}

/// The identity in the symbol stage's terms; nothing where the trace has zeros for "none".
pub(super) fn identity(pdb: Option<&crate::PdbId>) -> Option<PdbId> {
    let pdb = pdb.filter(|pdb| !pdb.guid.is_zero())?;
    Some(PdbId {
        guid: pdb.guid,
        age: pdb.age,
    })
}

/// Names of a PDB: that in its path, and the image's with another ending.
pub(super) fn pdb_names(pdb_path: &str, image_path: &str) -> Vec<String> {
    let simple = simple_name(image_path);
    let mut names = vec![file_name(pdb_path).to_owned()];
    names.push(format!("{simple}.pdb"));
    distinct(names)
}

/// The PDB's path, and the place beside the image.
pub(super) fn pdb_paths(pdb_path: &str, image_path: &str) -> Vec<String> {
    // Compilers may write a bare name: that is no path.
    let mut paths = Vec::new();
    if pdb_path != file_name(pdb_path) {
        paths.push(pdb_path.to_owned());
    }
    let folder = &image_path[..image_path.len() - file_name(image_path).len()];
    if !folder.is_empty() {
        paths.push(format!("{folder}{}.pdb", simple_name(image_path)));
    }
    distinct(paths)
}

pub(super) fn distinct(names: Vec<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for name in names {
        if !name.is_empty() && name != ".pdb" && !kept.contains(&name) {
            kept.push(name);
        }
    }
    kept
}
