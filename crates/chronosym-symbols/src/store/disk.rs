//! Accesses the disk for a search, blocking.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use chronosym_types::hash::HashMap;

use super::name::below;
use crate::unpack_limit::unpack_limit;

/// Maximum number of bytes read of a pointer file.
const MAX_TEXT: u64 = 4096;
/// A listing made within this time after a change of its folder may lack a later change with the
/// same time stamp.
const RACY: Duration = Duration::from_secs(2);

/// Cached folder listings, used while they are current.
#[derive(Debug, Default)]
pub struct Disk {
    listings: Mutex<HashMap<PathBuf, Listed>>,
}

#[derive(Debug)]
struct Listed {
    modified: SystemTime,
    listed: SystemTime,
    names: Arc<Names>,
}

/// From lower-case names to names.
type Names = HashMap<String, Vec<OsString>>;

/// The names in a folder, which rule out most candidates of a search. The default rules out none.
#[derive(Clone, Debug, Default)]
pub struct Listing(Option<Arc<Names>>);

impl Listing {
    /// Returns whether the folder may have an entry of this name, letter case aside: it has, or
    /// could not be listed.
    pub fn may_have(&self, name: &str) -> bool {
        let is_lower = |c: u8| c.is_ascii() && !c.is_ascii_uppercase();
        self.0
            .as_ref()
            .is_none_or(|names| match name.bytes().all(is_lower) {
                true => names.contains_key(name),
                false => names.contains_key(&name.to_lowercase()),
            })
    }
}

impl Disk {
    pub(super) fn list(&self, folder: &Path) -> Listing {
        // Windows ignores letter case itself.
        let by_case = !cfg!(windows);
        Listing(by_case.then(|| self.names(folder).ok()).flatten())
    }

    pub(super) fn find(&self, folder: &Path, candidates: &[Vec<String>]) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = Vec::new();
        for candidate in candidates {
            // The last check; hostile names were rejected before.
            let Some(exact) = below(folder, candidate) else {
                continue;
            };
            let paths = if fs::metadata(&exact).is_ok_and(|m| m.is_file()) {
                vec![exact]
            } else if cfg!(windows) || candidate.is_empty() {
                Vec::new()
            } else {
                self.find_any_case(folder, candidate)
            };
            for path in paths {
                if !files.contains(&path) {
                    files.push(path);
                }
            }
        }
        files
    }

    fn find_any_case(&self, folder: &Path, candidate: &[String]) -> Vec<PathBuf> {
        let mut paths = vec![folder.to_path_buf()];
        for component in candidate {
            let lower = component.to_lowercase();
            let mut next = Vec::new();
            for path in &paths {
                let Ok(names) = self.names(path) else {
                    continue;
                };
                next.extend(
                    names
                        .get(&lower)
                        .into_iter()
                        .flatten()
                        .map(|name| path.join(name)),
                );
            }
            paths = next;
        }
        paths.retain(|path| fs::metadata(path).is_ok_and(|m| m.is_file()));
        paths
    }

    fn names(&self, folder: &Path) -> io::Result<Arc<Names>> {
        let modified = fs::metadata(folder)?.modified()?;
        let listings = || self.listings.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listing) = listings().get(folder)
            && listing.modified == modified
            && listing
                .listed
                .duration_since(modified)
                .is_ok_and(|age| age > RACY)
        {
            return Ok(Arc::clone(&listing.names));
        }
        let listed = SystemTime::now();
        let mut names = Names::default();
        for entry in fs::read_dir(folder)?.flatten() {
            let name = entry.file_name();
            let lower = name.to_string_lossy().to_lowercase();
            names.entry(lower).or_default().push(name);
        }
        for same in names.values_mut() {
            same.sort();
        }
        let names = Arc::new(names);
        let listing = Listed {
            modified,
            listed,
            names: Arc::clone(&names),
        };
        listings().insert(folder.to_path_buf(), listing);
        Ok(names)
    }
}

/// Returns a unique name for a partial file, in this process and others.
pub(super) fn temp_path(folder: &Path) -> PathBuf {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::{SystemTime, UNIX_EPOCH};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let time = SystemTime::now().duration_since(UNIX_EPOCH);
    let time = time.unwrap_or_default().as_nanos();
    let (process, ending) = (std::process::id(), crate::cache::PARTIAL);
    folder.join(format!(".{process}-{time:x}-{count}{ending}"))
}

/// Creates a file in a folder and removes it.
pub(super) fn can_write(folder: &Path) -> io::Result<()> {
    let probe = temp_path(folder);
    create_new(&probe)?;
    fs::remove_file(&probe)
}

pub(super) fn read_text(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_TEXT).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Writes a new file with `write`, and removes it if that fails.
fn write_new(to: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let mut file = create_new(to)?;
    let result = write(&mut file);
    drop(file);
    if result.is_err() {
        let _ = fs::remove_file(to);
    }
    result
}

/// Creates a new file, and its folder, which may have been pruned.
pub(super) fn create_new(to: &Path) -> io::Result<File> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    File::create_new(to)
}

pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = File::open(from)?;
    write_new(to, |target| io::copy(&mut source, target).map(drop))
}

pub(super) fn install(from: &Path, to: &Path) -> io::Result<()> {
    let folder = to.parent().unwrap_or(to);
    let mut last = Ok(());
    // A process that prunes may remove the empty folder before the file is in it.
    for _ in 0..3 {
        fs::create_dir_all(folder)?;
        last = fs::rename(from, to);
        match &last {
            Err(error) if error.kind() == io::ErrorKind::NotFound && from.exists() => {}
            _ => break,
        }
    }
    last
}

pub(super) fn unpack(from: &Path, to: &Path, limit: u64) -> io::Result<bool> {
    let mut source = File::open(from)?;
    let size = source.metadata()?.len();
    let limit = limit.min(unpack_limit(size));
    let mut magic = Vec::new();
    Read::by_ref(&mut source).take(4).read_to_end(&mut magic)?;
    source.seek(SeekFrom::Start(0))?;
    let mut source = BufReader::new(source);
    if magic == b"MSCF" {
        let name = only_file(&mut source)?;
        let mut cabinet = cab::Cabinet::new(&mut source)?;
        let reader = cabinet.read_file(&name)?;
        write_new(to, |file| copy_limited(reader, file, limit))?;
    } else if magic.starts_with(&[0x1f, 0x8b]) {
        let reader = flate2::bufread::MultiGzDecoder::new(source);
        write_new(to, |file| copy_limited(reader, file, limit))?;
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// Returns the name of the only file in a cabinet, which must start where the data starts, as in
/// cabinets of `compress` and SymStore. With another start the reader would decompress everything
/// before it.
///
/// Source: MS-CAB 2.1 (CFHEADER) and 2.3 (CFFILE).
fn only_file<R: Read + Seek>(source: &mut R) -> io::Result<String> {
    let invalid = |why| io::Error::new(io::ErrorKind::InvalidData, why);
    let name = {
        let cabinet = cab::Cabinet::new(&mut *source)?;
        let mut files = cabinet
            .folder_entries()
            .flat_map(|folder| folder.file_entries());
        let name = files.next().map(|file| file.name().to_owned());
        if files.next().is_some() {
            return Err(invalid("a cabinet of several files"));
        }
        name.ok_or_else(|| invalid("an empty cabinet"))?
    };
    let mut u32_at = |at: u64| -> io::Result<u32> {
        let mut bytes = [0; 4];
        source.seek(SeekFrom::Start(at))?;
        source.read_exact(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    };
    let first_file = u32_at(16)?;
    let start = u32_at(u64::from(first_file) + 4)?;
    source.seek(SeekFrom::Start(0))?;
    if start != 0 {
        return Err(invalid("a cabinet whose file does not start at its data"));
    }
    Ok(name)
}

fn copy_limited(reader: impl Read, file: &mut File, limit: u64) -> io::Result<()> {
    let count = io::copy(&mut reader.take(limit.saturating_add(1)), file)?;
    match count > limit {
        true => Err(io::ErrorKind::FileTooLarge.into()),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn cabinet(data: &[u8], method: cab::CompressionType) -> Vec<u8> {
        let mut builder = cab::CabinetBuilder::new();
        builder.add_folder(method).add_file("x.pdb");
        let mut writer = builder.build(io::Cursor::new(Vec::new())).unwrap();
        while let Some(mut file) = writer.next_file().unwrap() {
            file.write_all(data).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    #[test]
    fn unpacks_cabinets_and_gzip_within_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        let data = b"some symbols, ".repeat(10_000);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&data).unwrap();
        let packed = [
            cabinet(&data, cab::CompressionType::MsZip),
            cabinet(&data, cab::CompressionType::None),
            gzip.finish().unwrap(),
        ];
        for (i, packed) in packed.iter().enumerate() {
            let from = dir.path().join("packed");
            let to = dir.path().join(format!("new/{i}"));
            fs::write(&from, packed).unwrap();
            let unpack = |limit| unpack(&from, &to, limit).map_err(|error| error.kind());
            let too_large = Err(io::ErrorKind::FileTooLarge);
            assert_eq!(unpack(data.len() as u64 - 1), too_large);
            assert!(!to.exists(), "it is removed");
            assert_eq!(unpack(data.len() as u64), Ok(true));
            assert_eq!(fs::read(&to).unwrap(), data);
            fs::write(&from, &packed[..packed.len() / 2]).unwrap();
            fs::remove_file(&to).unwrap();
            let damaged = unpack(1 << 20);
            assert!(damaged.is_err() && damaged != too_large);
            assert!(!to.exists(), "it is removed");
        }
    }

    #[test]
    fn other_files_are_not_unpacked() {
        let dir = tempfile::tempdir().unwrap();
        let from = dir.path().join("plain");
        let to = dir.path().join("out");
        for plain in ["", "M", "MSC", "MZ and so on"] {
            fs::write(&from, plain).unwrap();
            assert!(!unpack(&from, &to, 9).unwrap(), "{plain}");
        }
        assert!(!to.exists());
    }

    /// Every byte of a cabinet changed in turn: a failure or some file, never a panic.
    #[test]
    fn damaged_cabinets() {
        let dir = tempfile::tempdir().unwrap();
        let from = dir.path().join("packed");
        let to = dir.path().join("out");
        let good = cabinet(&b"0123456789abcdef".repeat(30), cab::CompressionType::MsZip);
        for at in 0..good.len() {
            for change in [0x01, 0x80, 0xff] {
                let mut bad = good.clone();
                bad[at] ^= change;
                fs::write(&from, &bad).unwrap();
                let _ = unpack(&from, &to, 1 << 20);
                let _ = fs::remove_file(&to);
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn finds_letter_case_aside_and_only_regular_files() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for path in [
            "Foo.PDB/AB1/foo.pdb",
            "foo.pdb/ab1/Foo.pdb",
            "foo.pdb/AB1x",
            "dir/foo.pdb/x",
        ] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let disk = Disk::default();
        let find = |candidate: &[&str]| {
            let candidate = candidate.iter().map(|&c| c.to_owned()).collect();
            let files = disk.find(root, &[candidate]);
            let below = files.iter().map(|f| f.strip_prefix(root).unwrap());
            below.map(|f| f.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(
            find(&["Foo.PDB", "AB1", "foo.pdb"]),
            ["Foo.PDB/AB1/foo.pdb"]
        );
        let both = ["Foo.PDB/AB1/foo.pdb", "foo.pdb/ab1/Foo.pdb"];
        assert_eq!(find(&["FOO.pdb", "Ab1", "FOO.PDB"]), both);
        assert!(find(&["dir", "foo.pdb"]).is_empty(), "a folder");
        assert!(find(&["..", "x"]).is_empty());
        let listing = disk.list(root);
        assert!(listing.may_have("foo.pdb") && listing.may_have("DIR"));
        assert!(!listing.may_have("fo"));
        assert!(disk.list(&root.join("absent")).may_have("fo"));
        // A file created later is found, whether or not the listing is cached.
        fs::write(root.join("New.pdb"), "").unwrap();
        assert_eq!(find(&["new.pdb"]), ["New.pdb"]);
        fs::write(root.join("Newer.pdb"), "").unwrap();
        assert_eq!(find(&["newer.pdb"]), ["Newer.pdb"]);
    }
}
