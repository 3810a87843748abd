//! No request derived from a hostile trace leaves the folders of the configuration; custom drivers.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use chronosym_symbols::identity::{BuildId, FileIdentity, PeId, Wanted};
use chronosym_symbols::path::SymbolPath;
use chronosym_symbols::store::{
    Disk, Driver, Fetched, IdentifyError, Outcome, Request, StoreConfig, Stores,
};
use proptest::prelude::*;

use super::pdb_id;

const ROOTS: [&str; 4] = ["/given", "/store", "/down", "/cache"];
const SERVER: &str = "http://host/s/";

fn assert_inside(path: &Path) {
    let plain = path
        .components()
        .all(|c| matches!(c, Component::RootDir | Component::Normal(_)));
    let inside = ROOTS.iter().any(|root| path.starts_with(root));
    let text = path.to_str().unwrap();
    assert!(
        plain && inside && !text.contains(['\\', ':', '\0']),
        "{text:?}"
    );
    let last = path.file_name().unwrap().to_str().unwrap();
    assert!(last.len() < 256, "{last}");
}

fn name() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("..".to_owned()),
        Just(".".to_owned()),
        Just("C:".to_owned()),
        Just("con".to_owned()),
        Just("index2.txt".to_owned()),
        Just("file.ptr".to_owned()),
        Just(".missing".to_owned()),
        Just("x".repeat(300)),
        "[a-z.]{1,8}",
        any::<String>(),
    ];
    let separator = prop_oneof![
        Just("/"),
        Just("\\"),
        Just("//"),
        Just(r"\\"),
        Just("\0"),
        Just("")
    ];
    prop::collection::vec((separator, part), 0..5)
        .prop_map(|parts| parts.into_iter().map(|(s, p)| format!("{s}{p}")).collect())
}

fn wanted() -> impl Strategy<Value = Wanted> {
    let pe = Some(PeId {
        timestamp: 1,
        size_of_image: 2,
    });
    prop_oneof![
        Just(Wanted::pdb(pdb_id(1))),
        Just(Wanted::Image { pe, pdb: None }),
        Just(Wanted::ElfDebug(BuildId::new(&[1, 2, 3]).unwrap())),
        Just(Wanted::ElfImage(BuildId::new(&[1, 2, 3]).unwrap())),
        Just(Wanted::R2rMap {
            signature: Some([1; 16]),
            version: 1
        }),
    ]
}

/// A driver that finds any requested file, or not, according to `choices`.
struct Hostile {
    disk: Disk,
    choices: Mutex<Box<dyn Iterator<Item = u8> + Send>>,
    trace_paths: Vec<String>,
}

impl Hostile {
    fn choice(&self) -> u8 {
        self.choices.lock().unwrap().next().expect("an end")
    }

    fn write(&self, from: &Path, to: &Path) -> io::Result<()> {
        assert_inside(from);
        assert_inside(to);
        match self.choice() % 3 {
            0 => Ok(()),
            _ => Err(io::Error::other("so")),
        }
    }
}

impl Driver for Hostile {
    fn disk(&self) -> &Disk {
        &self.disk
    }

    async fn find(&self, folder: &Path, candidates: &[Vec<String>]) -> Vec<PathBuf> {
        let choice = self.choice();
        if candidates == [Vec::<String>::new()] && !ROOTS.iter().any(|r| folder == Path::new(r)) {
            // Whether a file exists at a path of the trace may be checked, but it is never opened
            // without trust.
            let mut paths = self.trace_paths.iter();
            assert!(paths.any(|path| Path::new(path) == folder), "{folder:?}");
            assert!(!folder.to_str().unwrap().starts_with(r"\\"));
            assert!(folder.is_absolute());
            return Vec::from_iter((choice & 1 == 0).then(|| folder.to_owned()));
        }
        assert_inside(folder);
        let mut files = Vec::new();
        for (i, candidate) in candidates.iter().enumerate() {
            let mut path = folder.to_owned();
            for component in candidate {
                assert!(!component.is_empty() && !component.contains(['/', '\\']));
                path.push(component);
            }
            assert_inside(&path);
            if choice & 1 << (i % 8) != 0 {
                files.push(path);
            }
        }
        files
    }

    async fn identify(&self, path: &Path, _: &Wanted) -> Result<FileIdentity, IdentifyError> {
        assert_inside(path);
        match self.choice() % 4 {
            0 => Ok(FileIdentity::WindowsPdb(pdb_id(1))),
            1 => Ok(FileIdentity::WindowsPdb(pdb_id(2))),
            2 => Err(IdentifyError::Damaged("so".into())),
            _ => Err(IdentifyError::Unreadable("so".into())),
        }
    }

    async fn read_text(&self, path: &Path) -> io::Result<String> {
        assert_inside(path);
        match self.choice() % 3 {
            0 => Err(io::Error::other("so")),
            1 => Ok("PATH:relative".into()),
            _ => Ok(r"\\s\x".into()),
        }
    }

    async fn download(&self, url: &str, to: &Path, _: u64) -> Fetched {
        assert_inside(to);
        let below = url.strip_prefix(SERVER).unwrap_or_else(|| panic!("{url}"));
        let escaped = below
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-._~+%/".contains(&b));
        assert!(
            escaped && !below.split('/').any(|part| ["", ".", ".."].contains(&part)),
            "{url}"
        );
        match self.choice() % 5 {
            0 | 1 => Fetched::Saved,
            2 => status(404, None),
            3 => status(500, None),
            _ => Fetched::Broken("so".into()),
        }
    }

    async fn wait(&self, _: Duration) {}

    async fn prepare(&self, folder: &Path, _: bool) -> io::Result<()> {
        assert_inside(folder);
        Ok(())
    }

    async fn unpack(&self, from: &Path, to: &Path, _: u64) -> io::Result<bool> {
        self.write(from, to)?;
        Ok(self.choice() & 1 == 0)
    }

    async fn copy(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.write(from, to)
    }

    async fn install(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.write(from, to)
    }

    async fn remove(&self, path: &Path) {
        assert_inside(path);
    }

    async fn touch(&self, path: &Path) {
        assert_inside(path);
    }

    async fn recall_missing(&self, cache: &Path, _: &str, _: Duration) -> bool {
        assert_inside(cache);
        self.choice().is_multiple_of(8)
    }

    async fn note_missing(&self, cache: &Path, _: &str) {
        assert_inside(cache);
    }

    async fn prune(&self, cache: &Path, _: u64) {
        assert_inside(cache);
    }
}

fn status(code: u16, retry_after: Option<u64>) -> Fetched {
    Fetched::Status {
        code,
        location: None,
        retry_after: retry_after.map(Duration::from_secs),
    }
}

/// Polls a search to its end; `pending` is called while it waits for its driver.
fn drive(search: impl Future<Output = Outcome>, mut pending: impl FnMut()) -> Outcome {
    let mut search = pin!(search);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match search.as_mut().poll(&mut context) {
            Poll::Ready(outcome) => return outcome,
            Poll::Pending => pending(),
        }
    }
}

#[cfg(unix)]
proptest! {
    #[test]
    fn no_step_leaves_the_folders(
        wanted in wanted(),
        names in prop::collection::vec(name(), 0..3),
        trace_paths in prop::collection::vec(name(), 0..3),
        choices in prop::collection::vec(any::<u8>(), 1..40),
    ) {
        let mut config = StoreConfig::new();
        config.folders.push("/given".into());
        config.path = SymbolPath::parse(&format!("/store;srv*/down*{SERVER}"));
        config.cache = Some("/cache".into());
        let mut request = Request::new(wanted, "first");
        request.names = names;
        request.trace_paths = trace_paths.clone();
        let driver = Hostile {
            disk: Disk::default(),
            choices: Mutex::new(Box::new(choices.into_iter().cycle().take(2000))),
            trace_paths,
        };
        drive(Stores::new(config).search(&request, &driver), || unreachable!("it is done at once"));
    }
}

/// A driver for which the server is always busy, and which lets the caller decide when time has
/// passed.
struct Busy {
    disk: Disk,
    replies: Mutex<Vec<Fetched>>,
    pauses: Mutex<Vec<u128>>,
}

impl Busy {
    fn pauses(&self) -> MutexGuard<'_, Vec<u128>> {
        self.pauses.lock().unwrap()
    }
}

impl Driver for Busy {
    fn disk(&self) -> &Disk {
        &self.disk
    }

    async fn identify(&self, _: &Path, _: &Wanted) -> Result<FileIdentity, IdentifyError> {
        unreachable!("there is no file")
    }

    async fn download(&self, _: &str, _: &Path, _: u64) -> Fetched {
        self.replies.lock().unwrap().remove(0)
    }

    async fn wait(&self, pause: Duration) {
        self.pauses().push(pause.as_millis());
        let mut waited = false;
        std::future::poll_fn(|_| match std::mem::replace(&mut waited, true) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }
}

/// The driver waits before retries: the pause doubles, and a server may request a longer one, up to
/// a limit.
#[test]
fn pauses_are_the_drivers() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = StoreConfig::new();
    let down = dir.path().display();
    config.path = SymbolPath::parse(&format!("srv*{down}*{SERVER}"));
    config.fetch.retries = 4;
    config.fetch.back_off = Duration::from_millis(100);
    let request = Request::new(Wanted::pdb(pdb_id(1)), "foo.pdb");
    let asked = [None, Some(3), Some(0), Some(3600), None];
    let driver = Busy {
        disk: Disk::default(),
        replies: Mutex::new(asked.map(|seconds| status(503, seconds)).into()),
        pauses: Mutex::default(),
    };
    let mut pending = 0;
    let stores = Stores::new(config);
    let outcome = drive(stores.search(&request, &driver), || {
        pending += 1;
        assert_eq!(driver.pauses().len(), pending);
    });
    assert!(outcome.file.is_err());
    assert_eq!(*driver.pauses(), [100, 3000, 400, 10_000]);
    assert!(driver.replies.lock().unwrap().is_empty());
}
