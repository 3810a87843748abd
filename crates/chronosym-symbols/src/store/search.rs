//! A search under way: what it is for, and what came of the places that were looked at.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::config::StoreConfig;
use super::driver::Driver;
use super::identify::IdentifyError;
use super::key::{StoreKey, keys};
use super::memory::RunMemory;
use super::name::FileName;
use super::outcome::{Attempt, LocatedFile, NoFile, Place, Trial};
use super::request::Request;
use crate::identity::FileIdentity;

pub(super) struct Search<'s, D> {
    pub(super) config: &'s StoreConfig,
    pub(super) memory: &'s RunMemory,
    pub(super) driver: &'s D,
    pub(super) request: &'s Request,
    pub(super) keys: Vec<StoreKey>,
    pub(super) names: Vec<FileName>,
    pub(super) searched: HashSet<(&'s Path, bool)>,
    pub(super) attempts: Vec<Attempt>,
}

/// A folder that takes fetched files.
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
                        place: Place::Request,
                        trial: Trial::Refused(format!("{shown:?} is no usable file name")),
                    });
                }
            }
        }
        Self {
            config,
            memory,
            driver,
            request,
            keys: keys(&request.wanted, &names),
            names,
            searched: HashSet::new(),
            attempts,
        }
    }

    /// Whether the file at `path` is the wanted one; notes what it is for `place`.
    pub(super) async fn check(&mut self, path: &Path, place: Place) -> Option<FileIdentity> {
        let wanted = &self.request.wanted;
        let (trial, id) = match self.driver.identify(path, wanted).await {
            Ok(id) if wanted.accepts(&id) => (Trial::Found, Some(id)),
            Ok(id) => (Trial::Mismatch(id), None),
            Err(IdentifyError::Damaged(why)) => (Trial::Damaged(why), None),
            Err(IdentifyError::Unreadable(why)) => (Trial::Failed(why), None),
            Err(IdentifyError::Unfit(why)) => (Trial::Refused(why), None),
        };
        self.note(place, trial);
        id
    }

    /// The file at `path`, if it is the wanted one.
    pub(super) async fn plain(&mut self, path: PathBuf, place: Place) -> Option<LocatedFile> {
        let id = self.check(&path, place).await?;
        Some(LocatedFile { path, id })
    }

    pub(super) fn note(&mut self, place: Place, trial: Trial) {
        self.attempts.push(Attempt { place, trial });
    }

    /// Notes why `place` does not have the file.
    pub(super) fn miss<T>(&mut self, place: Place, trial: Trial) -> Option<T> {
        self.note(place, trial);
        None
    }

    /// Why nothing was found: the most telling of what was met with.
    pub(super) fn reason(&self) -> NoFile {
        let mut damaged = None;
        let mut untrusted = None;
        let mut offline = None;
        for Attempt { place, trial } in &self.attempts {
            match (trial, place) {
                (Trial::Mismatch(found), _) if !self.request.wanted.is_image_of(found) => {
                    return NoFile::SymbolFileMismatch {
                        wanted: self.request.wanted.clone(),
                        found: found.clone(),
                        place: place.clone(),
                    };
                }
                (Trial::Damaged(why), _) if damaged.is_none() => {
                    let (place, why) = (place.clone(), why.clone());
                    damaged = Some(NoFile::SymbolFileDamaged { place, why });
                }
                (Trial::NotTrusted, Place::TracePath(path)) if untrusted.is_none() => {
                    untrusted = Some(NoFile::PathNotTrusted { path: path.clone() });
                }
                (Trial::Offline, _) => offline = Some(NoFile::Offline),
                _ => {}
            }
        }
        let telling = damaged.or(untrusted).or(offline);
        telling.unwrap_or(NoFile::NoSymbolFile)
    }
}
