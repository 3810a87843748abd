//! The file with the symbols of an image, found as debuggers find it.

use std::path::{Path, PathBuf};

use anyhow::Result;
use chronosym::file_name;
use chronosym_pdb::pe::PeImage;
use chronosym_symbols::identity::{BuildId, Guid, PdbFormat, PdbId, Wanted};
use chronosym_symbols::mmap::FileData;
use chronosym_symbols::store::{Request, StoreConfig, Stores, read_identity};
use chronosym_symbols::{DebugFileSearch, Error, NativeSymbols};

use crate::args::Symbols;
use crate::symbols;

/// What there is of the symbols that lie outside an image.
#[derive(Debug, Default)]
pub struct Companion {
    /// The PDB, if the image is a PE image that asks for one.
    pub pdb: Option<PathBuf>,
    /// Its id, found or not.
    pub pdb_id: Option<String>,
    /// Why a file that was looked for is not there: one of the closed list of reasons.
    pub reason: Option<&'static str>,
    pub notes: Vec<String>,
}

impl Companion {
    /// Where a file is; else notes why there is none, and where it was looked for.
    fn acquire(&mut self, request: &Request, config: StoreConfig, what: &str) -> Option<PathBuf> {
        let outcome = Stores::new(config).acquire(request, &read_identity);
        let found = outcome.file.map(|found| found.path).map_err(|reason| {
            let attempts = outcome.attempts.iter();
            let tried: String = attempts.map(|attempt| format!("; {attempt}")).collect();
            self.reason = Some(reason.name());
            self.notes.push(format!("no {what}: {reason}{tried}"));
        });
        found.ok()
    }
}

/// The PDB that an image asks for, beside the image or where the options say.
pub fn pdb_of(image: &Path, options: &Symbols) -> Result<Companion> {
    let mut found = Companion::default();
    if let Some((id, name)) = wanted(image) {
        let config = beside(Some(image), options)?;
        found.notes = symbols::path_problems(&config);
        found.pdb_id = Some(format!("{id:#}"));
        let wanted = Wanted::Pdb {
            id,
            stamp: None,
            format: PdbFormat::Windows,
        };
        let request = Request::new(wanted, name.as_str());
        found.pdb = found.acquire(&request, config, &format!("{name} of {}", image.display()));
    }
    Ok(found)
}

/// Where the options say to look, after the folder of the image.
pub fn beside(image: Option<&Path>, options: &Symbols) -> Result<StoreConfig> {
    let mut config = symbols::config(options)?;
    let mut folders = image.map_or(Vec::new(), |image| DebugFileSearch::next_to(image).folders);
    for folder in folders.iter_mut().filter(|f| f.as_os_str().is_empty()) {
        *folder = PathBuf::from(".");
    }
    config.folders.splice(0..0, folders);
    Ok(config)
}

/// An error in opening a file, which is named once.
pub fn no_file(error: Error, path: &Path) -> anyhow::Error {
    match error {
        Error::Io { source, .. } => anyhow::Error::new(source),
        other => anyhow::Error::new(other),
    }
    .context(path.display().to_string())
}

/// Takes the debug information of a stripped ELF image, and what that shares with other images', from where is said.
pub fn add_files(
    image: &mut NativeSymbols,
    path: &Path,
    config: &StoreConfig,
    found: &mut Companion,
) {
    if !image.has_lines() {
        let link = image.debug_link();
        let places = match image.build_id().cloned() {
            Some(id) => {
                let what = format!("debug file of {}", path.display());
                Vec::from_iter(found.stored(id, path, link, config, &what))
            }
            // Only the link's checksum tells which file it is, and no store is asked by that.
            None => {
                let folders = link
                    .iter()
                    .flat_map(|link| config.folders.iter().map(move |f| f.join(link)));
                folders.collect()
            }
        };
        for place in places.iter().filter(|place| place.is_file()) {
            match image.set_debug_file(place) {
                Ok(()) => {
                    *found = Companion::default();
                    break;
                }
                Err(error) => found.refuse(place, &error),
            }
        }
    }
    if let Some((id, name)) = image.missing_supplement() {
        let what = format!("supplementary file of {}", path.display());
        let place = found.stored(id, Path::new(&name), None, config, &what);
        if let Some(place) = place
            && let Err(error) = image.set_supplement(&place)
        {
            found.refuse(&place, &error);
        }
    }
}

impl Companion {
    fn refuse(&mut self, place: &Path, error: &Error) {
        self.notes
            .push(format!("{} is not used: {error}", place.display()));
    }

    /// The file with that build id, if it is said where to look.
    fn stored(
        &mut self,
        id: BuildId,
        path: &Path,
        or_named: Option<String>,
        config: &StoreConfig,
        what: &str,
    ) -> Option<PathBuf> {
        let path_elements = &config.path.elements;
        if config.folders.is_empty() && path_elements.is_empty() && config.debuginfod.is_empty() {
            return None;
        }
        let own = file_name(&path.to_string_lossy()).to_owned();
        let mut request = Request::new(Wanted::ElfDebug(id), own);
        if let Some(link) = or_named {
            request = request.or_named(link);
        }
        self.acquire(&request, config.clone(), what)
    }
}

/// The PDB that an image asks for.
fn wanted(image: &Path) -> Option<(PdbId, String)> {
    let data = FileData::map(image).ok()?;
    let codeview = PeImage::parse(&data).ok()?.native_codeview()?;
    let name = file_name(&codeview.path);
    let id = PdbId {
        guid: Guid(codeview.id.guid.0),
        age: codeview.id.age,
    };
    // Linkers give images without a PDB an identity, too.
    (!name.is_empty() && id.guid != Guid([0; 16])).then(|| (id, name.to_owned()))
}
