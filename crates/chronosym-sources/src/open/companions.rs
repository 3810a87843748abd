//! Files next to a perf.data: jitdumps and perf maps of the sampled processes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::input::{Input, What};
use crate::perf::{Outcome, pid_of_jitdump};

/// Where such files are searched for.
#[derive(Clone, Default)]
pub(super) struct Beside {
    folders: Vec<PathBuf>,
    /// Whether files are opened at the paths that a trace states.
    pub trusts_paths: bool,
    /// Processes in containers: their own ids, and their ids in the perf.data.
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

    /// Adds the processes of a perf.data that mapped a jitdump named by another id: this is their
    /// own id, if only one process mapped such a file.
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

    /// Adds the perf.data's id of a process, unless its own id has one.
    pub fn add_pid(&mut self, own: u32, pid: u32) {
        if !self.pids.iter().any(|&(inside, _)| inside == own) {
            self.pids.push((own, pid));
        }
    }

    /// Returns the perf.data's id of the process whose own id is `own`.
    pub fn pid(&self, own: u32) -> u32 {
        let mapped = self.pids.iter().find(|(inside, _)| *inside == own);
        mapped.map_or(own, |&(_, pid)| pid)
    }

    /// Returns the own id of a process.
    fn own_id(&self, pid: u32) -> u32 {
        let mapped = self.pids.iter().find(|(_, outside)| *outside == pid);
        mapped.map_or(pid, |&(own, _)| own)
    }

    /// Returns the path of a process's perf map.
    pub fn perf_map(&self, pid: u32) -> Option<PathBuf> {
        let tmp = self.trusts_paths.then(|| PathBuf::from("/tmp"));
        let name = format!("perf-{}.map", self.own_id(pid));
        first_file(self.folders.iter().chain(&tmp), &name)
    }

    /// Returns the path of a process's jitdump, which may be one that it mapped.
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
