//! Conformance suites over real and synthetic traces.
//!
//! The suites themselves are test targets of this package; this library has what they share: the
//! location of test data, the declaration of cases that need it, and how they record.
#![deny(missing_docs)]

pub mod script;

use std::env;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Failed, Trial};

/// Environment variable with the folder of real traces made by others.
pub const CORPUS: &str = "CHRONOSYM_CORPUS";
/// Environment variable with the folder of self-made traces too large for the repository.
pub const TESTDATA: &str = "CHRONOSYM_TESTDATA";

/// A case over the folder that `variable` names: ignored while that is unset, failing when the
/// folder is missing.
pub fn case(
    variable: &'static str,
    name: impl Into<String>,
    run: impl FnOnce(&Path) -> Result<(), Failed> + Send + 'static,
) -> Trial {
    let folder = env::var_os(variable).map(PathBuf::from);
    let ignored = folder.is_none();
    let run = move || {
        let folder = folder.ok_or(format!("{variable} is not set"))?;
        if !folder.is_dir() {
            return Err(
                format!("{variable} names {}, which is no folder", folder.display()).into(),
            );
        }
        run(&folder)
    };
    Trial::test(name, run).with_ignored_flag(ignored)
}

/// Returns a command that records an event of the software clock, which every machine has, with the
/// time that runtimes use; its arguments and the program follow.
pub fn perf_record(event: &str) -> Command {
    let mut command = Command::new("perf");
    command.args(["record", "-q", "-k", "mono", "-e", event]);
    command
}

/// The only member of a zip file whose name ends with `suffix`.
pub fn unzip(path: &Path, suffix: &str) -> Result<Vec<u8>, Failed> {
    let mut archive =
        zip::ZipArchive::new(File::open(path).map_err(|e| format!("{}: {e}", path.display()))?)?;
    let mut found = (0..archive.len()).filter(|i| {
        archive
            .name_for_index(*i)
            .is_some_and(|name| name.is_ok_and(|n| n.ends_with(suffix)))
    });
    let (Some(index), None) = (found.next(), found.next()) else {
        return Err(format!("{} holds no single {suffix}", path.display()).into());
    };
    let mut bytes = Vec::new();
    archive.by_index(index)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}
