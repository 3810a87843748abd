//! The cache folder on disk: its location, its records of missing files, and its pruning.
//!
//! It has the layout of a symbol store (`name/identity/name`), so other tools can read it. Any
//! number of processes may use it at once: files appear under their names complete or not at all,
//! and pruning removes only files that were not used for a while.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The default size limit of a cache folder in bytes: 10 GiB.
pub const DEFAULT_LIMIT: u64 = 10 << 30;

/// The suffix of partial files.
pub(crate) const PARTIAL: &str = ".part";

/// Marks a folder as a cache of this library (<https://bford.info/cachedir/>): other folders are
/// never pruned, and backup programs skip it.
pub(crate) const TAG: &str = "CACHEDIR.TAG";
const TAG_TEXT: &str = "Signature: 8a477f597d28d172789f06886806bc55\n\
                        # Symbol files fetched by chronosym. May be removed at any time.\n";
/// The folder of converted symbols in a cache folder.
pub(crate) const CONVERTED: &str = "converted";
const MISSING: &str = ".missing";
const PRUNE_LOCK: &str = ".prune";

/// Files used within this time are not pruned: another process may hold their paths.
const GRACE: Duration = Duration::from_secs(300);
/// A partial file of this age belongs to a process that died.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);
/// Records of missing files are removed after this time.
const MAX_RECORD_AGE: Duration = Duration::from_secs(30 * 24 * 3600);
/// Converted symbols that were not used for this time are removed: their symbol file is probably
/// gone.
const MAX_CONVERTED_AGE: Duration = Duration::from_secs(90 * 24 * 3600);
/// Depth of a two-tier store's files below its root, plus one.
const DEPTH: u32 = 5;

/// Returns the folder `chronosym/symbols` in the platform's folder for caches: `%LOCALAPPDATA%`,
/// `~/Library/Caches`, or `$XDG_CACHE_HOME` and else `~/.cache`. `None` if the environment names
/// none.
pub fn default_folder(var: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let folder = |name| {
        var(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let caches = if cfg!(windows) {
        folder("LOCALAPPDATA")?
    } else if cfg!(target_os = "macos") {
        folder("HOME")?.join("Library/Caches")
    } else {
        folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")))?
    };
    Some(caches.join("chronosym").join("symbols"))
}

/// Returns the caches of `perf` (`~/.debug`) and of debuginfod clients (`$DEBUGINFOD_CACHE_PATH`,
/// else `debuginfod_client` in `$XDG_CACHE_HOME` or `~/.cache`).
///
/// Source: `perf-buildid-cache(1)`, `debuginfod_find_debuginfo(3)`.
pub(crate) fn of_other_tools(var: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let folder = |name| var(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let home = folder("HOME");
    let debuginfod = folder("DEBUGINFOD_CACHE_PATH").or_else(|| {
        let caches = folder("XDG_CACHE_HOME").or_else(|| Some(home.as_ref()?.join(".cache")));
        Some(caches?.join("debuginfod_client"))
    });
    let perf = home.map(|home| home.join(".debug"));
    perf.into_iter().chain(debuginfod).collect()
}

/// Creates a cache folder if need be; marks a new or empty one as one that may be pruned.
pub(crate) fn prepare(cache: &Path) -> io::Result<()> {
    fs::create_dir_all(cache)?;
    if fs::read_dir(cache)?.next().is_none() {
        match File::create_new(cache.join(TAG)) {
            Ok(mut tag) => tag.write_all(TAG_TEXT.as_bytes())?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Marks a file as used now.
pub(crate) fn touch(path: &Path) -> io::Result<()> {
    set_modified(path, SystemTime::now())
}

fn set_modified(path: &Path, time: SystemTime) -> io::Result<()> {
    File::options().append(true).open(path)?.set_modified(time)
}

/// Records `what` as missing.
pub(crate) fn note_missing(cache: &Path, what: &str) -> io::Result<()> {
    fs::create_dir_all(cache.join(MISSING))?;
    fs::write(record_path(cache, what), what)
}

/// Returns whether `what` was recorded as missing at most `max_age` ago.
pub(crate) fn recall_missing(cache: &Path, what: &str, max_age: Duration) -> bool {
    let recall = || -> io::Result<bool> {
        let path = record_path(cache, what);
        let record = File::open(&path)?;
        let written = record.metadata()?.modified()?;
        // A future time means that the clock was set back.
        let age = SystemTime::now().duration_since(written);
        if age.is_err() || age.is_ok_and(|age| age >= max_age) {
            drop(record);
            fs::remove_file(&path)?;
            return Ok(false);
        }
        let mut text = String::new();
        record
            .take((what.len() as u64).saturating_add(1))
            .read_to_string(&mut text)?;
        Ok(text == what)
    };
    recall().unwrap_or(false)
}

/// Returns the path of a record, whose name is a hash (FNV-1a, 64 bits) of its text. Hashes may
/// collide, so readers compare the text.
fn record_path(cache: &Path, what: &str) -> PathBuf {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in what.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    cache.join(MISSING).join(format!("{hash:016x}"))
}

/// Removes partial files of dead processes and, if a cache folder exceeds `limit` bytes, its least
/// recently used files until it has at most nine tenths of `limit`. Returns the number of bytes
/// freed.
///
/// Prunes only a folder that was new or empty when it became a cache. Of several processes, one
/// prunes. Files used within the last five minutes stay.
///
/// # Errors
/// The lock file cannot be created or removed.
pub fn prune(cache: &Path, limit: u64) -> io::Result<u64> {
    if !is_ours(cache) {
        return Ok(0);
    }
    let now = SystemTime::now();
    let lock = cache.join(PRUNE_LOCK);
    if let Err(error) = File::create_new(&lock) {
        if error.kind() == io::ErrorKind::AlreadyExists
            && age(&lock, now).is_some_and(|a| a > GRACE)
        {
            // Its process died; the next call prunes.
            fs::remove_file(&lock)?;
        }
        return Ok(0);
    }
    let freed = prune_locked(cache, limit, now);
    fs::remove_file(&lock)?;
    Ok(freed)
}

fn is_ours(cache: &Path) -> bool {
    fs::read(cache.join(TAG)).is_ok_and(|text| text == TAG_TEXT.as_bytes())
}

fn age(path: &Path, now: SystemTime) -> Option<Duration> {
    let modified = fs::symlink_metadata(path).ok()?.modified().ok()?;
    now.duration_since(modified).ok()
}

struct Cached {
    path: PathBuf,
    age: Duration,
    bytes: u64,
}

fn prune_locked(cache: &Path, limit: u64, now: SystemTime) -> u64 {
    let mut files = Vec::new();
    list(cache, DEPTH, now, &mut files);
    let mut freed = 0_u64;
    let mut remove = |file: &Cached| {
        if fs::remove_file(&file.path).is_ok() {
            freed = freed.saturating_add(file.bytes);
            // Removes folders that became empty; fails for others.
            for folder in file.path.ancestors().skip(1).take_while(|f| *f != cache) {
                if fs::remove_dir(folder).is_err() {
                    break;
                }
            }
        }
    };
    let mut total = 0_u64;
    files.retain(|file| {
        let name = file.path.file_name().unwrap_or_default().to_string_lossy();
        let record = file.path.parent() == Some(&cache.join(MISSING));
        let partial = name.starts_with('.') && name.ends_with(PARTIAL);
        let converted = file.path.starts_with(cache.join(CONVERTED));
        let is_old = (record && file.age > MAX_RECORD_AGE)
            || (partial && file.age > ABANDONED)
            || (converted && file.age > MAX_CONVERTED_AGE);
        if is_old {
            remove(file);
        }
        if record || partial || is_old {
            return false;
        }
        total = total.saturating_add(file.bytes);
        true
    });
    if total <= limit {
        return freed;
    }
    files.sort_by(|a, b| b.age.cmp(&a.age).then_with(|| a.path.cmp(&b.path)));
    let target = (limit / 10).saturating_mul(9);
    for file in &files {
        if total <= target || file.age < GRACE {
            break;
        }
        remove(file);
        total = total.saturating_sub(file.bytes);
    }
    freed
}

/// Lists the regular files below a folder, except the cache's own; does not follow symbolic links.
fn list(folder: &Path, depth: u32, now: SystemTime, files: &mut Vec<Cached>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        if metadata.is_dir() {
            if let Some(depth) = depth.checked_sub(1) {
                list(&entry.path(), depth, now, files);
            }
        } else if metadata.is_file() && ![TAG, PRUNE_LOCK].iter().any(|&n| entry.file_name() == n) {
            let modified = metadata.modified().unwrap_or(now);
            files.push(Cached {
                path: entry.path(),
                age: now.duration_since(modified).unwrap_or_default(),
                bytes: metadata.len(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ago(hours: u64) -> SystemTime {
        SystemTime::now() - Duration::from_secs(hours * 3600)
    }

    fn file(cache: &Path, name: &str, bytes: usize, hours: u64) -> PathBuf {
        let path = cache.join(name).join("ID").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, vec![0; bytes]).unwrap();
        set_modified(&path, ago(hours)).unwrap();
        path
    }

    #[test]
    fn platform_folder_is_absolute_or_none() {
        let none = default_folder(|_| None);
        assert_eq!(none, None);
        assert_eq!(default_folder(|_| Some("relative".into())), None);
        if cfg!(all(unix, not(target_os = "macos"))) {
            let xdg = default_folder(|name| (name == "XDG_CACHE_HOME").then(|| "/c".into()));
            assert_eq!(xdg, Some("/c/chronosym/symbols".into()));
            let home = default_folder(|name| match name {
                "HOME" => Some("/h".into()),
                "XDG_CACHE_HOME" => Some("".into()),
                _ => None,
            });
            assert_eq!(home, Some("/h/.cache/chronosym/symbols".into()));
        }
    }

    #[test]
    fn prunes_the_longest_unused_first() {
        let dir = tempfile::tempdir().unwrap();
        let cache = dir.path().join("cache");
        prepare(&cache).unwrap();
        let oldest = file(&cache, "a.pdb", 400, 9);
        let old = file(&cache, "b.pdb", 400, 8);
        let used = file(&cache, "c.pdb", 400, 7);
        let young = file(&cache, "d.pdb", 400, 0);
        touch(&old).unwrap();
        assert_eq!(prune(&cache, 1600).unwrap(), 0, "within the limit");
        assert_eq!(prune(&cache, 1300).unwrap(), 800);
        assert!(!oldest.exists() && !cache.join("a.pdb").exists());
        assert!(old.exists(), "touched");
        assert!(!used.exists());
        assert!(young.exists());
        assert_eq!(prune(&cache, 0).unwrap(), 0, "both were just in use");
        assert!(!cache.join(PRUNE_LOCK).exists());
    }

    #[test]
    fn never_prunes_other_folders() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path();
        let kept = file(store, "a.pdb", 400, 9);
        prepare(store).unwrap();
        assert_eq!(prune(store, 1).unwrap(), 0);
        assert!(kept.exists());
        assert!(!store.join(TAG).exists(), "not marked: it was not empty");
    }

    #[test]
    fn removes_abandoned_files_and_a_dead_lock() {
        let dir = tempfile::tempdir().unwrap();
        let cache = dir.path().join("cache");
        prepare(&cache).unwrap();
        let abandoned = cache.join(".1-2-3.part");
        let current = cache.join(".1-2-4.part");
        for path in [&abandoned, &current] {
            fs::write(path, "x").unwrap();
        }
        set_modified(&abandoned, ago(25)).unwrap();
        let lock = cache.join(PRUNE_LOCK);
        fs::write(&lock, "").unwrap();
        assert_eq!(prune(&cache, 1000).unwrap(), 0, "another process prunes");
        assert!(lock.exists() && abandoned.exists());
        set_modified(&lock, ago(1)).unwrap();
        prune(&cache, 1000).unwrap();
        assert!(!lock.exists(), "that process died");
        prune(&cache, 1000).unwrap();
        assert!(!abandoned.exists());
        assert!(current.exists());
    }

    #[test]
    fn records_of_missing_files_expire() {
        let dir = tempfile::tempdir().unwrap();
        let cache = dir.path();
        let hour = Duration::from_secs(3600);
        assert!(!recall_missing(cache, "x", hour));
        note_missing(cache, "x").unwrap();
        assert!(recall_missing(cache, "x", hour));
        assert!(!recall_missing(cache, "y", hour));
        let record = record_path(cache, "x");
        fs::write(&record, "xy").unwrap();
        assert!(!recall_missing(cache, "x", hour), "another text, same hash");
        fs::write(&record, "x").unwrap();
        set_modified(&record, ago(2)).unwrap();
        assert!(!recall_missing(cache, "x", hour));
        assert!(!record.exists());
        fs::write(&record, "x").unwrap();
        set_modified(&record, SystemTime::now() + 2 * hour).unwrap();
        assert!(!recall_missing(cache, "x", hour), "a clock was set back");
    }
}
