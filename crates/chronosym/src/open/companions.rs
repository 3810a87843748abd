//! Files that stand beside a perf.data: jitdumps and perf maps of the processes that it sampled.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{Input, What};

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
            if !self.folders.iter().any(|known| known == folder) {
                self.folders.push(folder.to_owned());
            }
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
            let found = paths.into_iter().find(|path| path.is_file());
            found.map(Path::to_owned)
        })
    }
}

fn first_file<'a>(folders: impl IntoIterator<Item = &'a PathBuf>, name: &str) -> Option<PathBuf> {
    let paths = folders
        .into_iter()
        .flat_map(|folder| [folder.join(name), folder.join(format!("{name}.gz"))]);
    paths.into_iter().find(|path| path.is_file())
}
