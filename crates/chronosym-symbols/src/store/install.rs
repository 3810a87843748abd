//! Installs files in caches and nearer stores: verified first, then moved into place atomically.

use std::path::{Path, PathBuf};

use super::disk::temp_path;
use super::driver::Driver;
use super::key::StoreKey;
use super::layout;
use super::name;
use super::outcome::{AttemptResult, LocatedFile, SearchLocation};
use super::search::{Search, Sink};
use crate::identity::FileIdentity;

impl<'s, D: Driver> Search<'s, D> {
    /// Copies a file of a farther store to the nearer ones. If that fails, returns the file in the
    /// farther store.
    pub(super) async fn copy_down(
        &mut self,
        file: LocatedFile,
        nearer: &[Sink<'s>],
    ) -> LocatedFile {
        let sinks = self.ready(nearer).await;
        let Some(sink) = sinks.first() else {
            return file;
        };
        let temp = temp_path(sink.folder);
        if file.path.starts_with(sink.folder) || self.driver.copy(&file.path, &temp).await.is_err()
        {
            return file;
        }
        let location = SearchLocation::File(file.path.clone());
        let copied = self.store(temp, location, &sinks).await;
        copied.unwrap_or(file)
    }

    /// Verifies a new file in the first sink's folder, moves it to its location there, and copies
    /// it to the other sinks.
    pub(super) async fn store(
        &mut self,
        temp: PathBuf,
        location: SearchLocation,
        sinks: &[Sink<'s>],
    ) -> Option<LocatedFile> {
        let (sink, others) = sinks.split_first()?;
        let Some(id) = self.check(&temp, location.clone()).await else {
            self.driver.remove(&temp).await;
            return None;
        };
        let Some(path) = self.target(sink, &id).await else {
            self.driver.remove(&temp).await;
            return self.miss(
                location,
                AttemptResult::Failed("no key to store it under".into()),
            );
        };
        if let Err(error) = self.driver.install(&temp, &path).await {
            self.driver.remove(&temp).await;
            // Another process may have stored it first, and have it open.
            let location = SearchLocation::File(path.clone());
            let file = self.plain(path, location.clone()).await;
            return file.or_else(|| self.miss(location, AttemptResult::Failed(error.to_string())));
        }
        for other in others {
            self.copy_to(&path, &id, other).await;
        }
        let limit = self.config.cache_limit;
        if sink.cache && limit > 0 && self.memory.prune_due() {
            self.driver.prune(sink.folder, limit).await;
        }
        Some(LocatedFile { path, id })
    }

    async fn copy_to(&mut self, from: &Path, id: &FileIdentity, sink: &Sink<'s>) {
        let temp = temp_path(sink.folder);
        // A store that cannot be written to is skipped, as SymSrv does.
        if self.driver.copy(from, &temp).await.is_ok()
            && let Some(to) = self.target(sink, id).await
            && self.driver.install(&temp, &to).await.is_ok()
        {
            return;
        }
        self.driver.remove(&temp).await;
    }

    /// Returns the location of a file with this identity in a sink.
    async fn target(&self, sink: &Sink<'s>, id: &FileIdentity) -> Option<PathBuf> {
        let fits = |key: &&StoreKey| match id {
            FileIdentity::PortablePdb(_) => !key.symstore,
            FileIdentity::WindowsPdb(_) => key.symstore,
            _ => true,
        };
        let key = &self.keys().iter().find(fits)?.symsrv;
        let index = [vec![layout::TWO_TIER.to_owned()]];
        let two_tier = !self.driver.find(sink.folder, &index).await.is_empty();
        let tier = if two_tier { name::tier(&key[0]) } else { None };
        let parts: Vec<&String> = tier.iter().chain(key).collect();
        name::below(sink.folder, &parts)
    }

    /// Returns the sinks that can be written to. If there are sinks but none is writable, returns a
    /// folder that is removed at the end of the run, so that files can be used but are not kept.
    pub(super) async fn ready_or_temporary(&mut self, sinks: &[Sink<'s>]) -> Vec<Sink<'s>> {
        let mut ready = self.ready(sinks).await;
        if ready.is_empty() && !sinks.is_empty() {
            let folder = self.memory.temporary_folder();
            let cache = false;
            ready.extend(folder.map(|folder| Sink { folder, cache }));
        }
        ready
    }

    /// Returns the sinks that can be written to.
    async fn ready(&mut self, sinks: &[Sink<'s>]) -> Vec<Sink<'s>> {
        let mut ready = Vec::new();
        for sink in sinks {
            match self.driver.prepare(sink.folder, sink.cache).await {
                Ok(()) => ready.push(*sink),
                Err(error) => {
                    let location = SearchLocation::Folder(sink.folder.into());
                    self.note(location, AttemptResult::Failed(error.to_string()));
                }
            }
        }
        ready
    }
}
