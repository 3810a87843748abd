//! The folder of converted symbols.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::key::Key;
use super::table::Converted;
use super::writer::Table;
use crate::cache;
use crate::mmap::FileData;

/// A file is marked as used at most once in this time.
const TOUCH_AFTER: Duration = Duration::from_secs(3600);

/// The note about a symbol file that cannot be converted.
const REFUSED: &[u8] = b"refused";

/// A symbol file that could not be converted, perhaps for lack of time, is tried again after this
/// time.
const RETRY_AFTER: Duration = Duration::from_secs(24 * 3600);

/// When converted symbols are used and made.
///
/// Closed: three ways to use a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CacheUse {
    /// Neither reads nor writes converted symbols.
    Off,
    /// Converts a large symbol file in the second process that uses it.
    #[default]
    Auto,
    /// Converts every symbol file that is used.
    Always,
}

/// The converted symbols in a cache folder. Any number of processes may use it at once: files appear
/// under their names complete or not at all.
///
/// Only files of this user that no other user can change are read.
#[derive(Clone, Debug)]
pub struct SymbolCache {
    folder: PathBuf,
    limit: u64,
    always: bool,
}

impl SymbolCache {
    /// Returns the converted symbols in a cache folder, which is pruned to `limit` bytes (0: not at
    /// all); `None` if they are not to be used. Creates nothing.
    pub fn new(folder: &Path, limit: u64, when: CacheUse) -> Option<Self> {
        (when != CacheUse::Off).then(|| Self {
            folder: folder.to_owned(),
            limit,
            always: when == CacheUse::Always,
        })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns true if every file is to be converted.
    pub(crate) fn always(&self) -> bool {
        self.always
    }

    fn path(&self, key: &Key, extension: &str) -> PathBuf {
        let name = key.name();
        let folder = self.folder.join(cache::CONVERTED);
        let group = name.get(..2).unwrap_or_default();
        folder.join(group).join(format!("{name}.{extension}"))
    }

    /// Returns the converted symbols with a key. Removes a damaged file.
    pub(crate) fn load(&self, key: &Key) -> Option<Converted> {
        let path = self.path(key, "symbols");
        let meta = fs::symlink_metadata(&path).ok()?;
        if !meta.is_file() || !is_private(&meta) {
            return None;
        }
        let table = Converted::open(FileData::map(&path).ok()?).ok();
        let Some(table) = table.filter(|table| table.is_of(key)) else {
            self.remove(key);
            return None;
        };
        let used = meta.modified().ok()?;
        let age = SystemTime::now().duration_since(used);
        if age.is_ok_and(|age| age > TOUCH_AFTER) {
            drop(cache::touch(&path));
        }
        Some(table)
    }

    /// Removes the converted symbols with a key.
    pub(crate) fn remove(&self, key: &Key) {
        drop(fs::remove_file(self.path(key, "symbols")));
    }

    /// Stores converted symbols, and prunes the cache.
    pub(crate) fn store(&self, key: &Key, table: &Table) -> io::Result<()> {
        self.install(&self.path(key, "symbols"), |file| table.write(file))?;
        drop(fs::remove_file(self.path(key, "used")));
        if self.limit > 0 {
            drop(cache::prune(&self.folder, self.limit));
        }
        Ok(())
    }

    /// Returns whether a symbol file is to be converted now. One that is seen for the first time is
    /// noted.
    pub(crate) fn is_due(&self, key: &Key) -> bool {
        if self.always {
            return true;
        }
        let path = self.path(key, "used");
        let Ok(note) = fs::read(&path) else {
            drop(self.install(&path, |_| Ok(())));
            return false;
        };
        let modified = fs::metadata(&path).and_then(|meta| meta.modified());
        let age = modified.ok().and_then(|modified| modified.elapsed().ok());
        note != REFUSED || age.is_some_and(|age| age > RETRY_AFTER)
    }

    /// Notes that a symbol file cannot be converted.
    pub(crate) fn refuse(&self, key: &Key) {
        drop(self.install(&self.path(key, "used"), |file| file.write_all(REFUSED)));
    }

    /// Moves a complete file to its place, readable by this user only: it may describe a file that
    /// others cannot read.
    fn install(
        &self,
        path: &Path,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        cache::prepare(&self.folder)?;
        fs::create_dir_all(path.parent().unwrap_or(&self.folder))?;
        let mut temp = tempfile::Builder::new()
            .prefix(".")
            .suffix(cache::PARTIAL)
            .tempfile_in(&self.folder)?;
        write(temp.as_file_mut())?;
        temp.persist(path)?;
        Ok(())
    }
}

/// Returns true if this user, and no other, can write a file.
#[cfg(unix)]
fn is_private(meta: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    meta.uid() == rustix::process::geteuid().as_raw() && meta.mode() & 0o022 == 0
}

/// Elsewhere the folder's permissions decide: by default it is in the user's profile.
#[cfg(not(unix))]
fn is_private(_: &fs::Metadata) -> bool {
    true
}
