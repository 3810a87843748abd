//! Symbol files in the zip file of a trace.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::meter::{Meter, Metered};
use super::zip::Entry;
use chronosym_core::{Timeline, file_name};

/// Symbol files in the zip file that contains a recording: PerfView packs PDBs as
/// `symbols/NAME.pdb/ID/NAME.pdb`.
///
/// An entry is decompressed when its name is requested, into a temporary folder with the layout of
/// a symbol store, which is removed with the last clone. All entries count towards
/// [`Limits::unpacked_bytes`](chronosym_core::Limits::unpacked_bytes). The search for symbol files,
/// not this type, checks their identity.
#[derive(Clone, Debug, Default)]
pub struct SymbolEntries(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    entries: Vec<Entry>,
    meter: Arc<Meter>,
    folder: OnceLock<tempfile::TempDir>,
    unpacked: Mutex<HashSet<usize>>,
}

impl SymbolEntries {
    pub(super) fn new(entries: Vec<Entry>, meter: &Arc<Meter>) -> Self {
        if entries.is_empty() {
            return SymbolEntries(None);
        }
        SymbolEntries(Some(Arc::new(Inner {
            entries,
            meter: meter.clone(),
            folder: OnceLock::new(),
            unpacked: Mutex::default(),
        })))
    }

    /// Returns the names of the entries as the zip file has them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let entries = self.0.iter().flat_map(|inner| &inner.entries);
        entries.map(|entry| entry.name.as_str())
    }

    /// Returns the temporary folder, a symbol store (`NAME/ID/NAME`) with loose files in its root;
    /// `None` if there are no entries. It is made by the first call or by decompression.
    ///
    /// # Errors
    ///
    /// It cannot be made.
    pub fn folder(&self) -> io::Result<Option<&Path>> {
        self.0.as_deref().map(Inner::folder).transpose()
    }

    /// Decompresses every entry whose file has this name (ignoring case), unless it has been
    /// decompressed before. Returns the paths of all entries with the name.
    ///
    /// # Errors
    ///
    /// An entry is damaged, a limit is reached, or a file cannot be written; the incomplete file is
    /// removed.
    pub fn unpack(&self, file_name: &str) -> io::Result<Vec<PathBuf>> {
        let Some(inner) = &self.0 else {
            return Ok(Vec::new());
        };
        let mut unpacked = inner
            .unpacked
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut paths = Vec::new();
        for (index, entry) in inner.entries.iter().enumerate() {
            let Some(parts) = place(&entry.name).filter(|parts| {
                parts
                    .last()
                    .is_some_and(|name| name.eq_ignore_ascii_case(file_name))
            }) else {
                continue;
            };
            let path = parts
                .iter()
                .fold(inner.folder()?.to_owned(), |path, part| path.join(part));
            if !unpacked.contains(&index) {
                inner.unpack(entry, &path)?;
                unpacked.insert(index);
            }
            paths.push(path);
        }
        Ok(paths)
    }

    /// Decompresses every entry whose name is that of a symbol file of the timeline's modules and
    /// images. Returns the folder, if there is one, and the entries that could not be decompressed.
    pub fn unpack_for(&self, timeline: &Timeline) -> (Option<&Path>, Vec<(String, io::Error)>) {
        if self.0.is_none() {
            return (None, Vec::new());
        }
        let pdbs = timeline.processes().flat_map(|process| {
            let modules = timeline.modules(process.index);
            let managed = modules.flat_map(|m| [m.module.managed_pdb, m.module.native_pdb]);
            let images = timeline.images(process.index).map(|view| view.image.pdb);
            managed
                .chain(images)
                .flatten()
                .map(|pdb| file_name(&pdb.path))
        });
        let names: BTreeSet<&str> = pdbs.filter(|name| !name.is_empty()).collect();
        let unpacked = names.into_iter().map(|name| (name, self.unpack(name)));
        let errors = unpacked.filter_map(|(name, result)| Some((name.to_owned(), result.err()?)));
        let errors = errors.collect();
        (self.folder().ok().flatten(), errors)
    }
}

impl Inner {
    fn folder(&self) -> io::Result<&Path> {
        let folder = match self.folder.get() {
            Some(folder) => folder,
            None => {
                let made = tempfile::tempdir()?;
                self.folder.get_or_init(|| made)
            }
        };
        Ok(folder.path())
    }

    fn unpack(&self, entry: &Entry, path: &Path) -> io::Result<()> {
        let folder = path.parent().unwrap_or(self.folder()?);
        fs::create_dir_all(folder)?;
        let mut source = Metered::unpacked(entry.open(), &self.meter);
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        io::copy(&mut source, &mut file)?;
        file.persist(path)?;
        Ok(())
    }
}

/// Extensions of symbol files.
const ENDINGS: [&str; 6] = ["pdb", "r2rmap", "dll", "exe", "debug", "dbg"];

pub(super) fn is_symbol_file(name: &str) -> bool {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    ENDINGS
        .iter()
        .any(|extension| extension.eq_ignore_ascii_case(ending))
        && place(name).is_some()
}

/// Returns the path to which an entry is decompressed: `NAME/ID/NAME` if its path ends like that,
/// else `NAME`. The rest of the path is not used, and no component can lead out of the folder.
fn place(name: &str) -> Option<Vec<&str>> {
    let is_plain = |part: &str| {
        let special = |c: char| c.is_control() || "<>:\"|?*".contains(c);
        !part.is_empty()
            && part.len() <= 255
            && !part.starts_with('.')
            && !part.contains(special)
            && !part.ends_with(['.', ' '])
    };
    let parts: Vec<&str> = name.split(['/', '\\']).collect();
    let file = *parts.last()?;
    let keyed = match parts.as_slice() {
        [.., folder, id, _] if folder.eq_ignore_ascii_case(file) && is_plain(id) => {
            vec![*folder, *id, file]
        }
        _ => vec![file],
    };
    is_plain(file).then_some(keyed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_out_of_the_folder() {
        assert_eq!(
            place("symbols/A.pdb/1F/a.pdb"),
            Some(vec!["A.pdb", "1F", "a.pdb"])
        );
        assert_eq!(
            place(r"x\symbols\A.pdb\1F\A.pdb"),
            Some(vec!["A.pdb", "1F", "A.pdb"])
        );
        assert_eq!(place("ngenpdbs/b.pdb"), Some(vec!["b.pdb"]));
        assert_eq!(place("a.pdb/../a.pdb"), Some(vec!["a.pdb"]));
        for bad in [
            "", "..", "a/", "a/..", "c:a.pdb", "a.pdb ", "x/.pdb", "a\0.pdb",
        ] {
            assert_eq!(place(bad), None, "{bad:?}");
        }
        assert!(is_symbol_file("x/y.PDB") && !is_symbol_file("y.pdbx") && !is_symbol_file("pdb"));
    }
}
