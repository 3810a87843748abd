//! The order of the locations of a search.

use std::path::Path;

use super::driver::Driver;
use super::key::debuginfod;
use super::outcome::{AttemptResult, LocatedFile, Outcome, SearchLocation};
use super::request::Reach;
use super::search::{Search, Sink};
use crate::path::{PathElement, Store, is_share};

impl<'s> Sink<'s> {
    fn store(folder: &'s Path) -> Self {
        let cache = false;
        Self { folder, cache }
    }
}

impl<'s, D: Driver> Search<'s, D> {
    /// Searches all locations.
    pub(super) async fn run(mut self) -> Outcome {
        let file = if self.request.wanted.is_identified() {
            self.everywhere().await
        } else {
            let why = "the trace states no identity to verify a file";
            self.miss(SearchLocation::Request, AttemptResult::Refused(why.into()))
        };
        let file = file.ok_or_else(|| self.reason());
        Outcome {
            file,
            attempts: self.attempts,
        }
    }

    async fn everywhere(&mut self) -> Option<LocatedFile> {
        let (config, request) = (self.config, self.request);
        let default = self.default_sink();
        if request.reach != Reach::Stores {
            for folder in &config.folders {
                let file = self.folder(folder, true, default.as_slice());
                if let Some(file) = file.await {
                    return Some(file);
                }
            }
            for folder in &config.trace_folders {
                if let Some(file) = self.trace_folder(folder, default.as_slice()).await {
                    return Some(file);
                }
            }
            for path in &request.trace_paths {
                if let Some(file) = self.trace_path(path).await {
                    return Some(file);
                }
            }
        }
        if request.reach == Reach::Folders {
            return None;
        }
        let mut sink = default;
        let mut cached_from_here = false;
        for element in &config.path.elements {
            let file = match element {
                PathElement::Folder(folder) => {
                    let file = self.folder(folder, true, sink.as_slice());
                    match file.await {
                        Some(file) if cached_from_here && is_share(folder) => {
                            Some(self.copy_down(file, sink.as_slice()).await)
                        }
                        file => file,
                    }
                }
                PathElement::Cache(folder) => {
                    sink = folder.as_deref().map(Sink::store).or(sink);
                    cached_from_here = true;
                    self.cache(sink).await
                }
                PathElement::Chain(stores) => self.chain(stores, sink).await,
            };
            if file.is_some() {
                return file;
            }
        }
        if debuginfod(&request.wanted).is_some() {
            for folder in &config.other_caches {
                if let Some(file) = self.other_cache(folder).await {
                    return Some(file);
                }
            }
            for server in &config.debuginfod {
                if let Some(file) = self.cache(sink).await {
                    return Some(file);
                }
                if let Some(file) = self.server(server, true, sink.as_slice()).await {
                    return Some(file);
                }
            }
        }
        None
    }

    /// Returns a chain of stores, the nearest first: what a farther one has is copied to the nearer
    /// ones.
    async fn chain(&mut self, stores: &'s [Store], sink: Option<Sink<'s>>) -> Option<LocatedFile> {
        let mut nearer: Vec<Sink<'s>> = Vec::new();
        for store in stores {
            let store = match store {
                Store::Server(server) => {
                    if nearer.is_empty() {
                        if let Some(file) = self.cache(sink).await {
                            return Some(file);
                        }
                        nearer.extend(sink);
                    }
                    let file = self.server(server, false, &nearer).await;
                    if file.is_some() {
                        return file;
                    }
                    continue;
                }
                Store::Default => self.default_sink(),
                Store::Folder(folder) => Some(Sink::store(folder)),
            };
            let Some(store) = store else {
                continue;
            };
            // The first store has no nearer one to which a compressed file could be unpacked.
            let sinks = match nearer.is_empty() {
                true => sink.as_slice(),
                false => &nearer,
            };
            let file = match store.cache {
                true => self.cache(Some(store)).await,
                false => self.folder(store.folder, false, sinks).await,
            };
            if let Some(file) = file {
                return Some(self.copy_down(file, &nearer).await);
            }
            nearer.push(store);
        }
        None
    }

    fn default_sink(&self) -> Option<Sink<'s>> {
        let folder = self.config.cache.as_deref()?;
        let cache = true;
        Some(Sink { folder, cache })
    }
}
