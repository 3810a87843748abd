//! Files of macOS by path: dSYM bundles, and one image of a universal file.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::universal;
use crate::identity::BuildId;
use crate::mmap::FileData;

/// The folder of the files with DWARF in a bundle that `dsymutil` writes.
pub(crate) const DWARF_FOLDER: &str = "Contents/Resources/DWARF";

/// An object file as users write its path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObjectPath {
    /// The file; of a dSYM bundle, the one with the DWARF.
    pub file: PathBuf,
    /// The processor of the image to use, if the file is universal.
    pub processor: Option<String>,
}

impl ObjectPath {
    /// Interprets `FILE`, `NAME.dSYM`, and either with `:PROCESSOR`, as in `libx.dylib:arm64`. A
    /// file whose own name has a colon comes first.
    pub fn parse(path: &Path) -> Self {
        let chosen = || {
            let (start, processor) = path.to_str()?.rsplit_once(':')?;
            let start = Path::new(start);
            let is_chosen = !path.exists() && start.exists();
            is_chosen.then(|| (start, Some(processor.to_owned())))
        };
        let (path, processor) = chosen().unwrap_or((path, None));
        let dwarf = dwarf_files(path);
        // The file in the bundle has the name of the image, which may have been renamed since.
        let own = dwarf
            .iter()
            .find(|file| file.file_name() == path.file_stem());
        let file = own.or(dwarf.first()).map(PathBuf::as_path);
        ObjectPath {
            file: file.unwrap_or(path).to_owned(),
            processor,
        }
    }

    /// Returns the path with `:PROCESSOR` of the image with this UUID, if the file is universal;
    /// else the path as it is.
    pub fn with_uuid(path: PathBuf, uuid: &BuildId) -> PathBuf {
        let data = FileData::map(&path).ok();
        match data.and_then(|data| universal::processor(&data, uuid)) {
            Some(processor) => with_ending(&path, &format!(":{processor}")),
            None => path,
        }
    }
}

/// Returns the files with DWARF in a dSYM bundle, sorted by name; none if the path is not one.
pub(crate) fn dwarf_files(bundle: &Path) -> Vec<PathBuf> {
    match is_bundle(bundle) {
        true => listed(&bundle.join(DWARF_FOLDER)),
        false => Vec::new(),
    }
}

/// Returns true for the name of a dSYM bundle.
pub(crate) fn is_bundle(path: &Path) -> bool {
    path.extension() == Some(OsStr::new("dSYM"))
}

/// Returns a path with more at its end.
pub(crate) fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(ending);
    PathBuf::from(path)
}

/// Returns the files in a folder, sorted by name.
pub(crate) fn listed(folder: &Path) -> Vec<PathBuf> {
    // The empty path is the working directory.
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort_unstable();
    paths
}
