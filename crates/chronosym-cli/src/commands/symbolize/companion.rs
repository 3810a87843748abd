//! The file with the symbols of an image, found as debuggers find it.

use std::path::{Path, PathBuf};

use anyhow::Result;
use chronosym::file_name;
use chronosym_pdb::pe::PeImage;
use chronosym_symbols::NativeSymbols;
use chronosym_symbols::identity::{BuildId, Guid, PdbFormat, PdbId, Wanted};
use chronosym_symbols::mmap::FileData;
use chronosym_symbols::store::{Request, StoreConfig, Stores, read_identity};

use crate::args::Symbols;
use crate::{commands, symbols};

/// The PDB that an image asks for, beside the image or where the options say. Nothing if it is no PE image or asks for none; a note
/// if there is none.
pub fn pdb_of(image: &Path, options: &Symbols, quiet: bool) -> Result<Option<PathBuf>> {
    let mut config = symbols::config(options)?;
    let mut notes = symbols::path_problems(&config);
    let found = wanted(image).and_then(|(wanted, name)| {
        let beside = image
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let beside = beside.unwrap_or(Path::new("."));
        config.folders.insert(0, beside.to_owned());
        let request = Request::new(wanted, name.as_str());
        acquire(&request, config, &format!("{name} of {}", image.display()))
            .map_err(|why| notes.push(why))
            .ok()
    });
    commands::tell(&notes, quiet);
    Ok(found)
}

/// Takes the debug information of a stripped ELF image from where the options say. What came of that, if nothing did.
pub fn add_debug_file(image: &mut NativeSymbols, path: &Path, options: &Symbols) -> Vec<String> {
    let found = match (image.build_id(), image.debug_link()) {
        (Some(id), link) => {
            stored(id, link, path, options).map(|found| found.into_iter().collect())
        }
        // Only the link's checksum tells which file it is, and no store is asked by that.
        (None, Some(link)) => Ok(options
            .symbols
            .iter()
            .map(|dir| dir.join(&link))
            .collect::<Vec<_>>()),
        (None, None) => Ok(Vec::new()),
    };
    let places = match found {
        Ok(places) => places,
        Err(why) => return vec![why],
    };
    let mut notes = Vec::new();
    for place in places.iter().filter(|place| place.is_file()) {
        match image.set_debug_file(place) {
            Ok(()) => return Vec::new(),
            Err(error) => notes.push(format!("{} is not used: {error}", place.display())),
        }
    }
    notes
}

/// The debug file of a build, if the options say where to look; why there is none, if they do.
fn stored(
    id: &BuildId,
    link: Option<String>,
    image: &Path,
    options: &Symbols,
) -> Result<Option<PathBuf>, String> {
    let config = symbols::config(options).map_err(|error| error.to_string())?;
    let path = &config.path;
    if config.folders.is_empty() && path.elements.is_empty() && config.debuginfod.is_empty() {
        return Ok(None);
    }
    let own = file_name(&image.to_string_lossy()).to_owned();
    let mut request = Request::new(Wanted::ElfDebug(id.clone()), own);
    if let Some(link) = link {
        request = request.or_named(link);
    }
    acquire(
        &request,
        config,
        &format!("debug file of {}", image.display()),
    )
    .map(Some)
}

/// Where the file is; else why there is none, and where it was looked for.
fn acquire(request: &Request, config: StoreConfig, what: &str) -> Result<PathBuf, String> {
    let outcome = Stores::new(config).acquire(request, &read_identity);
    outcome.file.map(|found| found.path).map_err(|reason| {
        let attempts = outcome.attempts.iter();
        let tried: String = attempts.map(|attempt| format!("; {attempt}")).collect();
        format!("no {what}: {reason}{tried}")
    })
}

fn wanted(image: &Path) -> Option<(Wanted, String)> {
    let data = FileData::map(image).ok()?;
    let codeview = PeImage::parse(&data).ok()?.native_codeview()?;
    // Linkers give images without a PDB an identity, too.
    let name = file_name(&codeview.path);
    let wanted = Wanted::Pdb {
        id: PdbId {
            guid: Guid(codeview.id.guid.0),
            age: codeview.id.age,
        },
        stamp: None,
        format: PdbFormat::Windows,
    };
    (!name.is_empty() && wanted.is_identified()).then(|| (wanted, name.to_owned()))
}
