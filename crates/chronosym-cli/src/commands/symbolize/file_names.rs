//! How texts and folders name the files of modules.

use std::path::{Path, PathBuf};

use chronosym::file_name;
use chronosym_symbols::log::is_code_file;
use chronosym_symbols::store::FileName;

/// Endings of the images that a PDB without an image may belong to.
pub const IMAGE_ENDINGS: [&str; 3] = ["exe", "dll", "sys"];

/// Returns the names that a request may use for a file: with and without extension, in lower case.
pub fn names(path: &Path) -> [String; 2] {
    [path.file_name(), path.file_stem()]
        .map(|part| part.map_or(String::new(), |p| p.to_string_lossy().to_lowercase()))
}

/// Returns whether a name is more likely that of a file than of a function.
pub fn is_file_name(name: &str) -> bool {
    name.contains(['/', '\\']) || is_code_file(name)
}

/// Returns the name of the symbol file of a module that does not state one.
pub fn symbol_file_of(file: &str) -> String {
    let name = file_name(file);
    match image_stem(name) {
        Some(stem) => format!("{stem}.pdb"),
        None => name.to_owned(),
    }
}

/// Returns the path of a file below a folder that mirrors the file system it comes from.
pub fn below(folder: &Path, file: &str) -> Option<PathBuf> {
    let parts = file.split(['/', '\\']).filter(|part| !part.is_empty());
    let mut path = folder.to_owned();
    for part in parts {
        path.push(FileName::from_untrusted(part)?.as_str());
    }
    Some(path)
}

/// Returns how many trailing components two paths have in common.
pub fn in_common(path: &Path, file: &str) -> usize {
    let own = path.to_string_lossy();
    let parts = |path| str::rsplit(path, ['/', '\\']);
    parts(&own)
        .zip(parts(file))
        .take_while(|(a, b)| a.eq_ignore_ascii_case(b))
        .count()
}

/// Returns the name of an image of Windows without its ending.
fn image_stem(name: &str) -> Option<&str> {
    let (stem, ending) = name.rsplit_once('.')?;
    let mut endings = IMAGE_ENDINGS.iter();
    let is_image = endings.any(|image| image.eq_ignore_ascii_case(ending));
    is_image.then_some(stem)
}

/// Returns the file in a folder that a text means by a name: the one of this name; if there is none,
/// the only image whose ending the text omits, as WinDbg does; otherwise the PDB of the image.
pub fn in_folder(folder: &Path, file: &str) -> Option<PathBuf> {
    let name = FileName::from_untrusted(file)?;
    let exists = |name: &str| Some(folder.join(name)).filter(|path| path.is_file());
    if let Some(path) = exists(name.as_str()) {
        return Some(path);
    }
    let stem = image_stem(name.as_str());
    let with = |ending| exists(&format!("{}.{ending}", stem.unwrap_or(name.as_str())));
    let images = IMAGE_ENDINGS.into_iter().filter(|_| stem.is_none());
    let mut images = images.filter_map(with);
    match (images.next(), images.next()) {
        (None, _) => with("pdb"),
        (image, None) => image,
        _ => None,
    }
}
