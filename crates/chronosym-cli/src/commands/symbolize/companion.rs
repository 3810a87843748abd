//! The file with the symbols of an image, found as debuggers find it.

use std::path::{Path, PathBuf};

use anyhow::Result;
use chronosym::file_name;
use chronosym_pdb::pe::PeImage;
use chronosym_symbols::NativeSymbols;
use chronosym_symbols::identity::{Guid, PdbFormat, PdbId, Wanted};
use chronosym_symbols::mmap::FileData;
use chronosym_symbols::store::{Request, StoreConfig, Stores, read_identity};

use crate::args::Symbols;
use crate::{commands, symbols};

/// The PDB that an image asks for, beside the image or where the options say. Nothing if it is no PE image or asks for none; a note
/// if there is none.
pub fn pdb_of(image: &Path, options: &Symbols, quiet: bool) -> Result<Option<PathBuf>> {
    let mut config = symbols::config(options)?;
    let problems = config.path.problems.iter();
    let mut notes: Vec<String> = problems
        .map(|problem| format!("symbol path: {problem}"))
        .collect();
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

/// The file with the debug information of an ELF image that has none, where the options say. Nothing if no build id tells which;
/// a note if there is none.
pub fn debug_file_of(
    image: &NativeSymbols,
    path: &Path,
    options: &Symbols,
) -> Result<Option<PathBuf>, String> {
    let Some(id) = image.build_id() else {
        return Ok(None);
    };
    let Ok(config) = symbols::config(options) else {
        return Ok(None);
    };
    let nowhere = config.folders.is_empty()
        && config.path.elements.is_empty()
        && config.debuginfod.is_empty();
    if nowhere {
        return Ok(None);
    }
    let own = path.file_name().unwrap_or_default().to_string_lossy();
    let mut request = Request::new(Wanted::ElfDebug(id.clone()), own);
    if let Some(link) = image.debug_link() {
        request = request.or_named(link);
    }
    let what = format!("debug file of {}", path.display());
    acquire(&request, config, &what).map(Some)
}

/// Where the file is; else why there is none, and where it was looked for.
fn acquire(request: &Request, config: StoreConfig, what: &str) -> Result<PathBuf, String> {
    let outcome = Stores::new(config).acquire(request, &read_identity);
    outcome.file.map(|found| found.path).map_err(|reason| {
        let attempts = outcome.attempts.iter();
        let tried: String = attempts.map(|attempt| format!("\n  {attempt}")).collect();
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
