//! ELF images without a build ID in the trace: the file at their path is used if it is the one that
//! was mapped, or if the user vouches for it.

#![cfg(target_os = "linux")]

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use chronosym::facts::MappedFile;
use chronosym::symbols::{NoFile, StoreConfig, SymbolFile, SymbolOptions, Symbolizer};
use chronosym::{Addressing, FileNumber, ImageRef, SymbolSource};
use chronosym_symbols::identity::IdentityKind;

/// When the program that ran was built, and when its recording ended.
const BUILT: u64 = 1_000_000_000;
const ENDED_NS: u64 = (BUILT + 60) * 1_000_000_000;

/// A copy of this test's own program, called `program`, in its folder.
struct Program(tempfile::TempDir);

impl Program {
    fn new() -> Self {
        let program = Program(tempfile::tempdir().expect("a folder"));
        let own = std::env::current_exe().expect("a path");
        std::fs::copy(own, program.path()).expect("a copy");
        program.change(BUILT);
        program
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("program")
    }

    fn change(&self, seconds: u64) {
        let file = std::fs::File::options().append(true).open(self.path());
        let time = UNIX_EPOCH + Duration::from_secs(seconds);
        file.and_then(|file| file.set_modified(time))
            .expect("a time");
    }

    /// As the kernel numbers it.
    fn mapped(&self, here_until_ns: Option<u64>) -> MappedFile {
        let data = self.path().metadata().expect("a file");
        let device = data.dev();
        let major = (device >> 8 & 0xfff) as u32;
        let minor = (device & 0xff | device >> 12 & 0xfff00) as u32;
        MappedFile {
            number: FileNumber {
                device: (major, minor),
                inode: data.ino(),
                generation: 7,
            },
            here_until_ns,
        }
    }

    fn find(&self, file: Option<MappedFile>, change: impl FnOnce(&mut StoreConfig)) -> SymbolFile {
        self.symbolizer(change)
            .image_symbols(&image(&self.path(), file))
    }

    fn symbolizer(&self, change: impl FnOnce(&mut StoreConfig)) -> Symbolizer {
        let mut config = StoreConfig::new();
        change(&mut config);
        Symbolizer::new(config, SymbolOptions::default())
    }
}

fn image(path: &Path, file: Option<MappedFile>) -> ImageRef<'_> {
    let mut image = ImageRef::new(path.to_str().expect("text"));
    image.addressing = Addressing::FileOffset;
    image.size = 1 << 20;
    image.file = file;
    image
}

fn nothing(_: &mut StoreConfig) {}

fn trust(config: &mut StoreConfig) {
    config.trust_trace_paths = true;
}

// Rule 24.
#[test]
fn a_recording_of_this_boot_finds_the_file_by_its_number() {
    let program = Program::new();
    let here = Some(program.mapped(Some(ENDED_NS)));
    assert_eq!(
        program.find(here, nothing).matched_by(),
        Some(IdentityKind::FileNumber)
    );
    // Recordings of other machines need trust.
    let elsewhere = program.find(Some(program.mapped(None)), nothing);
    assert!(
        matches!(elsewhere.found, Err(NoFile::PathNotTrusted { .. })),
        "{elsewhere:?}"
    );
    let trusted = program.find(Some(program.mapped(None)), trust);
    assert_eq!(trusted.matched_by(), Some(IdentityKind::FileNumber));
}

#[test]
fn a_file_that_was_replaced_or_changed_since_is_another() {
    let program = Program::new();
    let here = program.mapped(Some(ENDED_NS));
    let mut other = here;
    other.number.inode += 1;
    for change in [nothing, trust] {
        let replaced = program.find(Some(other), change);
        assert!(replaced.found.is_err(), "{replaced:?}");
    }
    program.change(BUILT + 61);
    for change in [nothing, trust] {
        let changed = program.find(Some(here), change);
        assert!(changed.found.is_err(), "{changed:?}");
        let why = changed.attempts[0].to_string();
        assert!(why.contains("was replaced"), "{why}");
    }
}

#[test]
fn a_trusted_path_alone_yields_approximate_names() {
    let program = Program::new();
    let mut other = program.mapped(None);
    other.number.inode += 1;
    for file in [None, Some(other)] {
        assert!(program.find(file, nothing).found.is_err());
        assert_eq!(
            program.find(file, trust).matched_by(),
            Some(IdentityKind::Path)
        );
    }
    let path = program.path();
    let bytes = std::fs::read(&path).expect("bytes");
    let symbols = program.symbolizer(trust);
    let offsets = (0x1000..bytes.len() as u64).step_by(4096);
    let guesses = offsets.filter_map(|at| symbols.native(&image(&path, None), at).ok());
    let guesses: Vec<_> = guesses.flatten().collect();
    assert!(guesses.len() > 100 && guesses.iter().all(|frame| frame.approximate));
}

#[test]
fn a_file_given_by_the_user_precedes_folders() {
    let program = Program::new();
    let path = Path::new("/elsewhere/program");
    let find = |folder: &Path| {
        let symbolizer = program.symbolizer(|config| config.folders = vec![folder.to_owned()]);
        symbolizer.image_symbols(&image(path, None)).matched_by()
    };
    assert_eq!(find(&program.path()), Some(IdentityKind::Path));
    assert_eq!(find(program.0.path()), None);
    assert_eq!(find(Path::new("/etc/hostname")), None);
}

#[test]
fn paths_to_other_machines_and_relative_ones_are_never_opened() {
    let program = Program::new();
    for path in [
        "//server/share/program",
        "program",
        "[vdso]",
        "/no/such/file",
    ] {
        let symbols = program.symbolizer(trust);
        let file = symbols.image_symbols(&image(Path::new(path), None));
        assert!(file.found.is_err(), "{path}");
        assert!(
            file.wanted.is_some(),
            "{path}: there is something to look for"
        );
    }
}
