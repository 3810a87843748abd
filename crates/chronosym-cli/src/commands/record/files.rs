//! Names of the files of a recording.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::args::Usage;

/// Derives names from that of `-o`.
pub struct Names {
    output: Option<PathBuf>,
    /// Each process has its id in the names of its files.
    are_several: bool,
    used: BTreeSet<PathBuf>,
}

/// The files of the recording of a process.
pub struct Files {
    pub trace: PathBuf,
    /// What lists the code that was compiled before.
    pub start: PathBuf,
    is_default: bool,
}

impl Names {
    pub fn new(output: Option<&Path>, are_several: bool) -> Result<Self> {
        if output.is_some_and(|output| output.extension().is_none()) {
            bail!(Usage(
                "-o needs an extension: .nettrace, or that of a report such as .html".to_owned()
            ));
        }
        Ok(Names {
            output: output.map(Path::to_owned),
            are_several,
            used: BTreeSet::new(),
        })
    }

    /// The file of `-o`, unless it is the recording.
    pub fn report(&self) -> Option<&Path> {
        let output = self.output.as_deref();
        output.filter(|output| output.extension().is_none_or(|it| it != "nettrace"))
    }

    /// The file with another extension than `-o`, or than the first recording.
    pub fn beside(&self, first: &Path, extension: &str) -> PathBuf {
        let output = self.output.as_deref().unwrap_or(first);
        output.with_extension(extension)
    }

    /// Returns the names for the recording of a process.
    pub fn of(&mut self, name: &str, pid: u32) -> Files {
        let name = name.strip_suffix(".dll").unwrap_or(name);
        let default = PathBuf::from(format!("{name}-{pid}.nettrace"));
        let output = self.output.as_deref().unwrap_or(&default);
        let plain = output.with_extension("nettrace");
        let stem = output.file_stem().unwrap_or_default().to_string_lossy();
        let with_pid = |count: u32| match count {
            1 => output.with_file_name(format!("{stem}-{pid}.nettrace")),
            _ => output.with_file_name(format!("{stem}-{pid}-{count}.nettrace")),
        };
        let alone = (!self.are_several || self.output.is_none()).then_some(plain);
        let mut names = alone.into_iter().chain((1..).map(with_pid));
        let is_free = |name: &PathBuf| !self.used.contains(name);
        let trace = names.find(is_free).unwrap_or(default);
        self.used.insert(trace.clone());
        Files {
            start: trace.with_extension("start.nettrace"),
            trace,
            is_default: self.output.is_none(),
        }
    }
}

impl Files {
    /// Creates the file of the recording. A list of code that belongs to an earlier recording of
    /// this name is removed: it must not be read with the new one.
    pub fn create(&self) -> Result<File> {
        let mut options = OpenOptions::new();
        options.write(true);
        match self.is_default {
            true => options.create_new(true),
            false => options.create(true).truncate(true),
        };
        let file = options.open(&self.trace);
        let file = file.with_context(|| format!("cannot create {}", self.trace.display()))?;
        match std::fs::remove_file(&self.start) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                let what = self.start.display();
                bail!("cannot remove {what}, which belongs to an earlier recording: {error}")
            }
            _ => Ok(file),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(output: &str, are_several: bool) -> Names {
        let output = (!output.is_empty()).then(|| Path::new(output));
        Names::new(output, are_several).expect("a name")
    }

    #[test]
    fn recordings_have_names_of_their_own() {
        let mut one = names("out/app.v2.html", false);
        assert_eq!(one.report(), Some(Path::new("out/app.v2.html")));
        let first = one.of("App.dll", 7);
        assert_eq!(first.trace, Path::new("out/app.v2.nettrace"));
        assert_eq!(first.start, Path::new("out/app.v2.start.nettrace"));
        // Runtimes in child processes, two of which have one id.
        assert_eq!(one.of("App", 8).trace, Path::new("out/app.v2-8.nettrace"));
        assert_eq!(one.of("App", 8).trace, Path::new("out/app.v2-8-2.nettrace"));
        let mut several = names("app.nettrace", true);
        assert_eq!(several.report(), None);
        assert_eq!(several.of("A", 7).trace, Path::new("app-7.nettrace"));
        let mut default = names("", true);
        assert_eq!(default.of("App.dll", 7).trace, Path::new("App-7.nettrace"));
        assert!(Names::new(Some(Path::new("app")), false).is_err());
    }
}
