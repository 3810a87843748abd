//! The text of source files.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chronosym::ModuleRef;
use chronosym::chronosym_pdb::portable::PortablePdb;
use chronosym::symbols::{FoundFile, Symbolizer};

/// Longer files are nobody's source.
const LONGEST: u64 = 16 << 20;
/// Nor are there PDBs of managed code beyond this.
const LARGEST_PDB: u64 = 1 << 30;

/// Where source files may be read from.
pub struct Sources {
    folders: Vec<PathBuf>,
    trusts_paths: bool,
    symbols: Arc<Symbolizer>,
}

impl Sources {
    pub fn new(folders: Vec<PathBuf>, trusts_paths: bool, symbols: Arc<Symbolizer>) -> Self {
        Sources {
            folders,
            trusts_paths,
            symbols,
        }
    }

    /// The text of a file that a PDB names, or why there is none.
    pub fn text(&self, file: &str, module: Option<&ModuleRef<'_>>) -> Result<String, String> {
        if let Some(text) = module.and_then(|module| self.embedded(file, module)) {
            return Ok(text);
        }
        let in_folders = self.folders.iter().find_map(|folder| below(folder, file));
        let path = in_folders.or_else(|| self.trusts_paths.then(|| PathBuf::from(file)));
        let Some(path) = path else {
            return Err(format!(
                "{file} is not in the PDB nor in a folder of --source; --trust-trace-paths would read it where it was compiled"
            ));
        };
        let bytes = read(&path, LONGEST).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// What the module's PDB carries itself.
    fn embedded(&self, file: &str, module: &ModuleRef<'_>) -> Option<String> {
        let Ok(FoundFile::File(path)) = self.symbols.module_pdb(module).found else {
            return None;
        };
        let bytes = read(&path, LARGEST_PDB).ok()?;
        let pdb = PortablePdb::parse(&bytes).ok()?;
        let document = pdb
            .documents()
            .find(|&row| pdb.document(row).is_some_and(|d| d.name == file))?;
        let text = pdb.embedded_source(document, LONGEST as usize).ok()??;
        Some(String::from_utf8_lossy(&text).into_owned())
    }
}

fn read(path: &Path, limit: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other("not a file"));
    }
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(std::io::Error::other(format!("larger than {limit} bytes")));
    }
    Ok(bytes)
}

/// The file in a folder that has the longest end of a path, which may be one of another system. It never leads out of the
/// folder.
fn below(folder: &Path, file: &str) -> Option<PathBuf> {
    let root = folder.canonicalize().ok()?;
    let parts: Vec<&str> = file
        .split(['/', '\\'])
        .filter(|part| !part.is_empty())
        .collect();
    let is_plain = |part: &&str| *part != "." && *part != ".." && !part.contains(':');
    let ends = (0..parts.len()).map(|at| &parts[at..]);
    ends.filter(|end| end.iter().all(is_plain))
        .filter_map(|end| {
            root.join(end.iter().collect::<PathBuf>())
                .canonicalize()
                .ok()
        })
        .find(|path| path.starts_with(&root) && path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_never_leads_out_of_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("src");
        std::fs::create_dir_all(root.join("App")).unwrap();
        std::fs::write(root.join("App/A.cs"), "a").unwrap();
        std::fs::write(folder.path().join("secret"), "s").unwrap();
        let found =
            |file: &str| below(&root, file).map(|path| std::fs::read_to_string(path).unwrap());
        assert_eq!(found("/build/7/src/App/A.cs").as_deref(), Some("a"));
        assert_eq!(found(r"C:\build\App\A.cs").as_deref(), Some("a"));
        assert_eq!(found("A.cs"), None);
        for path in [
            "../secret",
            "/x/../secret",
            "App/../../secret",
            "secret",
            "",
            "/",
            "App",
        ] {
            assert_eq!(found(path), None, "{path}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(folder.path().join("secret"), root.join("link")).unwrap();
            assert_eq!(found("link"), None);
        }
    }
}
