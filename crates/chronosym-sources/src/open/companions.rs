//! Files that stand beside a perf.data: jitdumps and perf maps of the processes that it sampled.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::input::{Input, What};
use crate::perf::{Outcome, pid_of_jitdump};

/// Where such files are looked for.
#[derive(Default)]
pub(super) struct Beside {
    folders: Vec<PathBuf>,
    /// Files are opened where a trace says that they were.
    pub trusts_paths: bool,
    /// What processes in containers call themselves, and their ids outside.
    pub pids: Vec<(u32, u32)>,
}

impl Beside {
    pub fn add_folder(&mut self, input: &Input) {
        if let What::Path(path) = &input.0 {
            let folder = path.parent().unwrap_or(Path::new(""));
            let folder = match folder.as_os_str().is_empty() {
                true => Path::new("."),
                false => folder,
            };
            if !self.folders.iter().any(|other| other == folder) {
                self.folders.push(folder.to_owned());
            }
        }
    }

    /// Adds the processes of a perf.data that mapped a jitdump named by another id: the id that they
    /// have for themselves, if only one mapped such a file.
    pub fn find_by_jitdumps(&mut self, perf: &Outcome) {
        let dumps = perf.jitdumps.iter();
        let dumps = dumps.filter_map(|(pid, path)| Some((pid_of_jitdump(path)?, *pid)));
        let dumps: BTreeSet<(u32, u32)> = dumps.collect();
        for &(own, pid) in &dumps {
            let is_only = dumps.range((own, 0)..=(own, u32::MAX)).count() == 1;
            if is_only && own != pid {
                self.add_pid(own, pid);
            }
        }
    }

    /// Adds the id outside of a process, unless its own id has one.
    pub fn add_pid(&mut self, own: u32, pid: u32) {
        if !self.pids.iter().any(|&(inside, _)| inside == own) {
            self.pids.push((own, pid));
        }
    }

    /// The id outside of a process that calls itself so.
    pub fn pid(&self, own: u32) -> u32 {
        let mapped = self.pids.iter().find(|(inside, _)| *inside == own);
        mapped.map_or(own, |&(_, pid)| pid)
    }

    /// What a process that has an id outside calls itself.
    fn own_id(&self, pid: u32) -> u32 {
        let mapped = self.pids.iter().find(|(_, outside)| *outside == pid);
        mapped.map_or(pid, |&(own, _)| own)
    }

    /// The perf map of a process.
    pub fn perf_map(&self, pid: u32) -> Option<PathBuf> {
        let tmp = self.trusts_paths.then(|| PathBuf::from("/tmp"));
        let name = format!("perf-{}.map", self.own_id(pid));
        first_file(self.folders.iter().chain(&tmp), &name)
    }

    /// The jitdump of a process, which may have mapped it at a path.
    pub fn jitdump(&self, pid: u32, mapped: &[(u32, String)]) -> Option<PathBuf> {
        let name = format!("jit-{}.dump", self.own_id(pid));
        first_file(&self.folders, &name).or_else(|| {
            let paths: BTreeSet<&Path> = mapped
                .iter()
                .filter(|(of, _)| self.trusts_paths && *of == pid)
                .map(|(_, path)| Path::new(path))
                .collect();
            let existing = paths.into_iter().find(|path| path.is_file());
            existing.map(Path::to_owned)
        })
    }
}

fn first_file<'a>(folders: impl IntoIterator<Item = &'a PathBuf>, name: &str) -> Option<PathBuf> {
    let paths = folders
        .into_iter()
        .flat_map(|folder| [folder.join(name), folder.join(format!("{name}.gz"))]);
    paths.into_iter().find(|path| path.is_file())
}
