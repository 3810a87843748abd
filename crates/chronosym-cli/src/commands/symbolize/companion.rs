//! The PDB of a PE image, found as debuggers find it.

use std::path::{Path, PathBuf};

use anyhow::Result;
use chronosym::file_name;
use chronosym_pdb::pe::PeImage;
use chronosym_symbols::identity::{Guid, PdbFormat, PdbId, Wanted};
use chronosym_symbols::mmap::FileData;
use chronosym_symbols::store::{Request, Stores, read_identity};

use crate::args::Symbols;
use crate::{commands, symbols};

/// The PDB that an image asks for, beside the image or where the options say. Nothing if it is no PE image or asks for none; a note
/// if there is none.
pub fn pdb_of(image: &Path, options: &Symbols, quiet: bool) -> Result<Option<PathBuf>> {
    let Some((wanted, name)) = wanted(image) else {
        return Ok(None);
    };
    let mut config = symbols::config(options)?;
    let beside = image
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    config
        .folders
        .insert(0, beside.unwrap_or(Path::new(".")).to_owned());
    let request = Request::new(wanted, name.as_str());
    match Stores::new(config).acquire(&request, &read_identity).file {
        Ok(found) => Ok(Some(found.path)),
        Err(reason) => {
            commands::tell(
                &[format!("no {name} of {}: {reason}", image.display())],
                quiet,
            );
            Ok(None)
        }
    }
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
