//! The cache of converted symbols: damage, other files, other users, processes at once, eviction.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use chronosym_symbols::cache;
use chronosym_symbols::converted::{CacheUse, Converted, SymbolCache};
use chronosym_symbols::mmap::FileData;
use chronosym_symbols::{Answers, PdbSymbols, Query};

const PDB: &str = "../../testdata/pdb-small/x86_64/small.pdb";
/// RVAs after the code of the small image.
const END: u64 = 0x3000;

/// A PDB and a cache folder.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::copy(PDB, folder.path().join("small.pdb")).unwrap();
        let place = Place { folder };
        age(&place.pdb(), 1);
        place
    }

    fn pdb(&self) -> PathBuf {
        self.folder.path().join("small.pdb")
    }

    fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    fn open(&self, when: CacheUse) -> PdbSymbols {
        open(&self.pdb(), &self.cache(), when)
    }

    /// Converts the PDB.
    fn convert(&self) -> PathBuf {
        let symbols = self.open(CacheUse::Always);
        answers(&symbols);
        assert!(symbols.convert() > 0);
        self.converted().pop().expect("a file")
    }

    /// The files of converted symbols.
    fn converted(&self) -> Vec<PathBuf> {
        files(&self.cache())
            .into_iter()
            .filter(|path| path.extension().is_some_and(|it| it == "symbols"))
            .collect()
    }

    fn is_converted(&self) -> bool {
        self.open(CacheUse::Auto).is_converted(&Query::default())
    }
}

fn open(pdb: &Path, cache: &Path, when: CacheUse) -> PdbSymbols {
    let mut symbols = PdbSymbols::open(FileData::map(pdb).unwrap()).unwrap();
    if let Some(cache) = SymbolCache::new(cache, 1 << 30, when) {
        symbols.use_cache(cache);
    }
    symbols
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => files(&path),
            false => vec![path],
        })
        .collect()
}

fn age(path: &Path, hours: u64) {
    let time = SystemTime::now() - Duration::from_secs(hours * 3600);
    let file = File::options().append(true).open(path).unwrap();
    file.set_modified(time).unwrap();
}

fn answers(symbols: &PdbSymbols) -> Vec<String> {
    let mut out = Answers::new();
    let all: Vec<u64> = (0..END).collect();
    symbols.find_all(&all, &Query::default(), &mut out);
    texts(&out)
}

fn texts(answers: &Answers) -> Vec<String> {
    let frames = |answer: chronosym_symbols::Answer<'_>| {
        let frames = answer.frames().map(|f| {
            let at = (f.file().map(str::to_owned), f.line(), f.column());
            (f.name().map(str::to_owned), at, f.function_start())
        });
        frames.collect::<Vec<_>>()
    };
    let text = |answer: chronosym_symbols::Answer<'_>| {
        format!("{:?} {:?}", answer.missing(), frames(answer))
    };
    answers.iter().map(text).collect()
}

#[test]
fn a_second_process_answers_from_converted_symbols() {
    let place = Place::new();
    let expected = answers(&place.open(CacheUse::Off));
    place.convert();
    let second = place.open(CacheUse::Auto);
    assert!(second.is_converted(&Query::default()));
    assert_eq!(answers(&second), expected);
    assert_eq!(second.convert(), 0, "nothing is left to convert");
    assert!(!place.open(CacheUse::Off).is_converted(&Query::default()));
    let mut other = Query::default();
    other.inlines = false;
    assert!(!second.is_converted(&other), "another query");
}

/// The second process converts large files only.
#[test]
fn a_large_file_is_converted_in_its_second_process() {
    let place = Place::new();
    let use_it = || {
        let symbols = place.open(CacheUse::Auto);
        answers(&symbols);
        symbols.convert()
    };
    assert_eq!([use_it(), use_it()], [0, 0]);
    assert!(!place.cache().exists(), "nothing is noted of a small file");
    // Bytes after the last page belong to no stream.
    let file = File::options().append(true).open(place.pdb()).unwrap();
    file.set_len(9 << 20).unwrap();
    age(&place.pdb(), 1);
    assert_eq!(use_it(), 0);
    assert!(use_it() > 0);
    assert!(place.is_converted());
}

/// A changed file has other answers, whatever its identity.
#[test]
fn a_changed_file_is_read_itself() {
    let place = Place::new();
    place.convert();
    let mut bytes = fs::read(place.pdb()).unwrap();
    // A name in the middle of the file; length and identity stay.
    let at = bytes.windows(5).rposition(|name| name == b"small").unwrap();
    bytes[at] = b'S';
    fs::write(place.pdb(), &bytes).unwrap();
    age(&place.pdb(), 2);
    assert!(!place.is_converted());
    // One that was just modified may change again without a new time.
    fs::write(place.pdb(), &bytes).unwrap();
    let symbols = place.open(CacheUse::Always);
    answers(&symbols);
    assert_eq!(symbols.convert(), 0);
}

/// Files in the cache folder are marked as used by their time.
#[test]
fn use_of_a_cached_file_does_not_change_it() {
    let place = Place::new();
    let pdb = place.cache().join("small.pdb/ID/small.pdb");
    fs::create_dir_all(pdb.parent().unwrap()).unwrap();
    fs::copy(PDB, &pdb).unwrap();
    age(&pdb, 0);
    let symbols = open(&pdb, &place.cache(), CacheUse::Always);
    answers(&symbols);
    assert!(symbols.convert() > 0);
    age(&pdb, 1);
    let again = open(&pdb, &place.cache(), CacheUse::Auto);
    assert!(again.is_converted(&Query::default()));
}

/// Wherever a file is damaged or cut, the answers are those of the symbol file.
#[test]
fn damage_never_gives_other_answers() {
    let place = Place::new();
    let expected = answers(&place.open(CacheUse::Off));
    let path = place.convert();
    let whole = fs::read(&path).unwrap();
    let noticed = std::cell::Cell::new(0);
    let check = |bytes: &[u8], what: &str| {
        fs::write(&path, bytes).unwrap();
        let symbols = place.open(CacheUse::Auto);
        assert_eq!(answers(&symbols), expected, "{what}");
        noticed.set(noticed.get() + usize::from(!path.exists()));
        assert_eq!(path.exists(), symbols.is_converted(&Query::default()));
    };
    for at in (0..whole.len()).step_by(61) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        check(&bytes, &format!("byte {at}"));
    }
    for len in (0..whole.len()).step_by(997) {
        check(&whole[..len], &format!("cut at {len}"));
    }
    assert!(noticed.get() > 100, "{noticed:?}");
    let mut longer = whole.clone();
    longer.push(0);
    check(&longer, "one more byte");
    check(b"", "empty");
    // Another version, with a correct checksum.
    let mut other = whole.clone();
    other[8] += 1;
    check(&other, "another version");
    fs::write(&path, &whole).unwrap();
    assert!(place.is_converted());
}

/// A file under the name of another is not used.
#[test]
fn a_renamed_file_is_not_used() {
    let (place, other) = (Place::new(), Place::new());
    age(&other.pdb(), 5);
    let (own, foreign) = (place.convert(), other.convert());
    assert_ne!(own.file_name(), foreign.file_name());
    fs::copy(&foreign, &own).unwrap();
    assert!(!place.is_converted());
    assert!(!own.exists());
}

#[test]
#[cfg(unix)]
fn only_private_files_are_read() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let path = place.convert();
    let mode = || fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode() & 0o077, 0, "others cannot read it");
    for (mode, is_read) in [(0o666, false), (0o620, false), (0o644, true), (0o600, true)] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(place.is_converted(), is_read, "{mode:o}");
    }
    let elsewhere = place.folder.path().join("elsewhere");
    fs::rename(&path, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    assert!(!place.is_converted(), "a link");
}

/// An unwritable cache changes nothing.
#[test]
fn a_cache_that_cannot_be_written_is_not_used() {
    let place = Place::new();
    fs::write(place.cache(), "a file").unwrap();
    let symbols = place.open(CacheUse::Always);
    assert_eq!(answers(&symbols), answers(&place.open(CacheUse::Off)));
    assert_eq!(symbols.convert(), 0);
}

/// Threads convert the same file, read it, damage it and remove it at the same time.
#[test]
fn many_users_at_once_get_the_same_answers() {
    let place = Place::new();
    let expected = answers(&place.open(CacheUse::Off));
    let path = place.convert();
    std::thread::scope(|scope| {
        for user in 0..6 {
            let (place, path, expected) = (&place, &path, &expected);
            scope.spawn(move || {
                for _ in 0..10 {
                    let symbols = place.open(CacheUse::Always);
                    assert_eq!(answers(&symbols), *expected);
                    symbols.convert();
                    if user == 0 {
                        drop(fs::remove_file(path));
                    }
                }
            });
        }
    });
    let part = |path: &PathBuf| path.extension().is_some_and(|it| it == "part");
    assert_eq!(files(&place.cache()).iter().filter(|p| part(p)).count(), 0);
}

#[test]
fn unused_files_are_removed_by_age_and_size() {
    let place = Place::new();
    let path = place.convert();
    let len = fs::metadata(&path).unwrap().len();
    age(&path, 24 * 89);
    assert_eq!(cache::prune(&place.cache(), 1 << 30).unwrap(), 0);
    assert!(place.is_converted());
    let used = fs::metadata(&path).unwrap().modified().unwrap();
    assert!(
        used.elapsed().unwrap() < Duration::from_secs(3600),
        "used now"
    );
    age(&path, 24 * 91);
    assert_eq!(cache::prune(&place.cache(), 1 << 30).unwrap(), len);
    assert!(!path.exists());
    let path = place.convert();
    age(&path, 1);
    assert_eq!(cache::prune(&place.cache(), len / 2).unwrap(), len);
    assert!(!path.exists());
}

/// The file itself answers, for tools that look into a cache.
#[test]
fn a_file_alone_has_the_answers() {
    let place = Place::new();
    let expected = answers(&place.open(CacheUse::Off));
    let file = Converted::open(fs::read(place.convert()).unwrap()).unwrap();
    let mut out = Answers::new();
    let all: Vec<u64> = (0..END).rev().collect();
    file.find_all(&all, &mut out).unwrap();
    let mut found = texts(&out);
    found.reverse();
    assert_eq!(found, expected);
    assert_eq!(file.addresses(), 0..1 << 32);
    file.find_all(&[1 << 32], &mut out).unwrap();
    assert!(out.get(0).unwrap().missing().is_some());
}
