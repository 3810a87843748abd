//! The stores as a user meets them: folders on disk and a real HTTP server on loopback (feature
//! `http`).

mod folders;
mod hostile;
#[cfg(feature = "http")]
mod processes;
mod real;
#[cfg(feature = "http")]
mod remote;
#[cfg(feature = "http")]
mod server;
#[cfg(feature = "http")]
mod tls;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chronosym_symbols::identity::{FileIdentity, Guid, PdbId, PeId, PortablePdbId, Wanted};
use chronosym_symbols::path::SymbolPath;
use chronosym_symbols::store::{
    AttemptResult, IdentifyError, NoFile, Outcome, Request, StoreConfig, Stores,
};

/// The identity, in the form of keys, of the file that most tests search for.
pub const GUID: &str = "497B72F6390A44FC878E5A2D63B6CC4B";

const ID: Guid = Guid::from_u128(0x497b72f6_390a_44fc_878e_5a2d63b6cc4b);

pub fn pdb_id(age: u32) -> PdbId {
    PdbId { guid: ID, age }
}

/// A file of the tests' own format: a line with the kind and the identity, a filling, and a last
/// line by which a truncated one is noticed.
pub fn symbols(id: &str) -> Vec<u8> {
    let filling = "0123456789abcdef".repeat(2000);
    format!("{id}\n{filling}\nEND").into_bytes()
}

pub fn windows(age: u32) -> Vec<u8> {
    symbols(&format!("windows {GUID} {age}"))
}

pub fn portable() -> Vec<u8> {
    symbols(&format!("portable {GUID} 7"))
}

pub fn identify(path: &Path, _: &Wanted) -> Result<FileIdentity, IdentifyError> {
    let text = fs::read(path)?;
    let damaged = |why: &str| IdentifyError::Damaged(why.to_owned());
    let text = String::from_utf8(text).map_err(|_| damaged("no text"))?;
    if !text.ends_with("\nEND") {
        return Err(damaged("truncated"));
    }
    let words: Vec<&str> = text.lines().next().unwrap_or_default().split(' ').collect();
    let guid = || {
        (words[1] == GUID)
            .then_some(ID)
            .ok_or_else(|| damaged("no GUID"))
    };
    let number = |at: usize| words[at].parse().map_err(|_| damaged("no number"));
    match words[0] {
        "windows" => {
            let (guid, age) = (guid()?, number(2)?);
            Ok(FileIdentity::WindowsPdb(PdbId { guid, age }))
        }
        "portable" => {
            let (guid, stamp) = (guid()?, number(2)?);
            Ok(FileIdentity::PortablePdb(PortablePdbId { guid, stamp }))
        }
        "image" => {
            let (timestamp, size_of_image) = (number(1)?, number(2)?);
            let pe = PeId {
                timestamp,
                size_of_image,
            };
            Ok(FileIdentity::Image {
                pe,
                pdbs: Vec::new(),
            })
        }
        "elf" => Ok(FileIdentity::Elf {
            build_id: chronosym_symbols::identity::BuildId::parse(words[1]),
            has_debug: words[2] == "debug",
            has_code: true,
        }),
        _ => Err(damaged("unknown kind")),
    }
}

pub struct Setup {
    pub dir: tempfile::TempDir,
    pub config: StoreConfig,
}

impl Setup {
    /// A cache folder, short timeouts, and `path` for a symbol path, in which `{dir}` is a
    /// temporary folder.
    pub fn new(path: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut config = StoreConfig::new();
        config.cache = Some(dir.path().join("cache"));
        config.path = SymbolPath::parse(&path.replace("{dir}", dir.path().to_str().unwrap()));
        assert!(config.path.problems.is_empty(), "{:?}", config.path);
        config.fetch.back_off = Duration::from_millis(1);
        config.fetch.idle_timeout = Duration::from_secs(20);
        Self { dir, config }
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join(below)
    }

    pub fn write(&self, below: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, contents).unwrap();
        path
    }

    /// Stores of a new run.
    pub fn stores(&self) -> Stores {
        Stores::new(self.config.clone())
    }

    pub fn acquire(&self, request: &Request) -> Outcome {
        self.stores().acquire(request, &identify)
    }

    /// No file that was being written is left anywhere.
    pub fn assert_tidy(&self) {
        for path in files(self.dir.path()) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            assert!(!name.ends_with(".part"), "{}", path.display());
        }
    }
}

pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}

/// `foo.pdb` of age 1, in either format.
pub fn foo() -> Request {
    Request::new(Wanted::pdb(pdb_id(1)), r"D:\build\foo.pdb")
}

#[track_caller]
pub fn found(outcome: &Outcome) -> &Path {
    match &outcome.file {
        Ok(file) => &file.path,
        Err(why) => panic!("{why}: {:#?}", outcome.attempts),
    }
}

#[track_caller]
pub fn missing(outcome: &Outcome) -> &NoFile {
    match &outcome.file {
        Ok(file) => panic!("found {}", file.path.display()),
        Err(why) => why,
    }
}

pub fn trials(outcome: &Outcome) -> Vec<&AttemptResult> {
    outcome.attempts.iter().map(|a| &a.result).collect()
}
