//! The state of a search: the request, and the result of each attempt.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::config::StoreConfig;
use super::driver::Driver;
use super::identify::IdentifyError;
use super::key::{StoreKey, keys};
use super::memory::RunMemory;
use super::name::FileName;
use super::outcome::{Attempt, AttemptResult, LocatedFile, NoFile, SearchLocation};
use super::request::Request;
use crate::identity::FileIdentity;

pub(super) struct Search<'s, D> {
    pub(super) config: &'s StoreConfig,
    pub(super) memory: &'s RunMemory,
    pub(super) driver: &'s D,
    pub(super) request: &'s Request,
    keys: OnceLock<Vec<StoreKey>>,
    pub(super) names: Vec<FileName>,
    pub(super) searched: HashSet<(&'s Path, bool)>,
    pub(super) attempts: Vec<Attempt>,
}

/// A folder that receives fetched files.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sink<'s> {
    pub(super) folder: &'s Path,
    /// The cache folder: pruned and marked, unlike folders that the symbol path names.
    pub(super) cache: bool,
}

impl<'s, D: Driver> Search<'s, D> {
    pub(super) fn new(
        config: &'s StoreConfig,
        memory: &'s RunMemory,
        driver: &'s D,
        request: &'s Request,
    ) -> Self {
        let mut attempts = Vec::new();
        let mut names: Vec<FileName> = Vec::new();
        for text in request.names.iter().filter(|text| !text.is_empty()) {
            match FileName::from_untrusted(text) {
                Some(name) if names.contains(&name) => {}
                Some(name) => names.push(name),
                None => {
                    let shown: String = text.chars().take(100).collect();
                    attempts.push(Attempt {
                        location: SearchLocation::Request,
                        result: AttemptResult::Refused(format!(
                            "{shown:?} is not a usable file name"
                        )),
                    });
                }
            }
        }
        Self {
            config,
            memory,
            driver,
            request,
            keys: OnceLock::new(),
            names,
            searched: HashSet::new(),
            attempts,
        }
    }

    /// Returns the keys of the wanted file, which many searches do not need.
    pub(super) fn keys(&self) -> &[StoreKey] {
        let keys = || keys(&self.request.wanted, &self.names);
        self.keys.get_or_init(keys)
    }

    /// Checks whether the file at `path` is the wanted one; records the result for `location`.
    pub(super) async fn check(
        &mut self,
        path: &Path,
        location: SearchLocation,
    ) -> Option<FileIdentity> {
        let wanted = &self.request.wanted;
        let (result, id) = match self.driver.identify(path, wanted).await {
            Ok(id) if wanted.accepts(&id) => (AttemptResult::Found, Some(id)),
            Ok(id) => (AttemptResult::Mismatch(id), None),
            Err(IdentifyError::Damaged(why)) => (AttemptResult::Damaged(why), None),
            Err(IdentifyError::Unreadable(why)) => (AttemptResult::Failed(why), None),
            Err(IdentifyError::Unfit(why)) => (AttemptResult::Refused(why), None),
        };
        self.note(location, result);
        id
    }

    /// Returns the file at `path`, if it is the wanted one.
    pub(super) async fn plain(
        &mut self,
        path: PathBuf,
        location: SearchLocation,
    ) -> Option<LocatedFile> {
        let id = self.check(&path, location).await?;
        Some(LocatedFile { path, id })
    }

    pub(super) fn note(&mut self, location: SearchLocation, result: AttemptResult) {
        self.attempts.push(Attempt { location, result });
    }

    /// Records why `location` does not have the file.
    pub(super) fn miss<T>(&mut self, location: SearchLocation, result: AttemptResult) -> Option<T> {
        self.note(location, result);
        None
    }

    /// Returns why nothing was found: the most specific reason of all attempts.
    pub(super) fn reason(&self) -> NoFile {
        let mut damaged = None;
        let mut untrusted = None;
        let mut offline = None;
        for Attempt { location, result } in &self.attempts {
            match (result, location) {
                (AttemptResult::Mismatch(found), _) if !self.request.wanted.is_image_of(found) => {
                    return NoFile::SymbolFileMismatch {
                        wanted: self.request.wanted.clone(),
                        found: found.clone(),
                        location: location.clone(),
                    };
                }
                (AttemptResult::Damaged(why), _) if damaged.is_none() => {
                    let (location, why) = (location.clone(), why.clone());
                    damaged = Some(NoFile::SymbolFileDamaged { location, why });
                }
                (AttemptResult::NotTrusted, SearchLocation::TracePath(path))
                    if untrusted.is_none() =>
                {
                    untrusted = Some(NoFile::PathNotTrusted { path: path.clone() });
                }
                (AttemptResult::Offline, _) => offline = Some(NoFile::Offline),
                _ => {}
            }
        }
        let telling = damaged.or(offline).or(untrusted);
        telling.unwrap_or(NoFile::NoSymbolFile)
    }
}
