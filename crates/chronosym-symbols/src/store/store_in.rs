//! Putting files into caches and nearer stores: verified first, then moved to their place at once.

use std::path::{Path, PathBuf};

use super::acquisition::{Search, failure};
use super::key::StoreKey;
use super::layout;
use super::name;
use super::outcome::{LocatedFile, Origin, Place, Trial};
use super::step::{Answer, Step};
use crate::identity::FileIdentity;

/// A folder that takes fetched files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sink {
    pub(super) folder: PathBuf,
    /// The cache folder: pruned and marked, unlike folders that the symbol path names.
    pub(super) cache: bool,
}

impl Search {
    /// Copies a file of a farther store to the nearer ones; stays with the farther one where that does not work.
    pub(super) async fn copy_down(&mut self, file: LocatedFile, nearer: &[Sink]) -> LocatedFile {
        let Some((sink, sinks)) = self.ready(nearer).await else {
            return file;
        };
        if file.path.starts_with(&sink.folder) {
            return file;
        }
        let temp = temp_path(&sink.folder);
        let copy = Step::Copy {
            from: file.path.clone(),
            to: temp.clone(),
        };
        if self.ask(copy).await != Answer::Done {
            return file;
        }
        let place = Place::File(file.path.clone());
        let origin = file.origin.clone();
        match self.settle(temp, place, &sink, &sinks, origin).await {
            Some(copied) => copied,
            None => file,
        }
    }

    /// Verifies a new file in a sink's folder, moves it to its place there, and copies it to the other sinks.
    pub(super) async fn settle(
        &mut self,
        temp: PathBuf,
        place: Place,
        sink: &Sink,
        others: &[Sink],
        origin: Origin,
    ) -> Option<LocatedFile> {
        let Some(id) = self.check(&temp, place.clone()).await else {
            self.ask(Step::Remove { path: temp }).await;
            return None;
        };
        let Some(path) = self.target(sink, &id).await else {
            self.ask(Step::Remove { path: temp }).await;
            let why = "no key to store it under";
            self.note(place, Trial::Failed(why.into()));
            return None;
        };
        let install = Step::Install {
            from: temp.clone(),
            to: path.clone(),
        };
        let answer = self.ask(install).await;
        if answer != Answer::Done {
            self.ask(Step::Remove { path: temp }).await;
            // Another process may have been faster, and have it open.
            let id = self.check(&path, Place::File(path.clone())).await;
            let Some(id) = id else {
                self.note(Place::File(path), Trial::Failed(failure(answer)));
                return None;
            };
            return Some(LocatedFile { path, origin, id });
        }
        for other in others {
            self.copy_to(&path, &id, other).await;
        }
        if sink.cache && self.config.cache_limit > 0 && self.memory.prune_due() {
            let prune = Step::Prune {
                cache: sink.folder.clone(),
                limit: self.config.cache_limit,
            };
            self.ask(prune).await;
        }
        Some(LocatedFile { path, origin, id })
    }

    async fn copy_to(&mut self, from: &Path, id: &FileIdentity, sink: &Sink) {
        let temp = temp_path(&sink.folder);
        let copy = Step::Copy {
            from: from.into(),
            to: temp.clone(),
        };
        // A store that cannot be written to is passed over, as SymSrv does.
        if self.ask(copy).await == Answer::Done
            && let Some(to) = self.target(sink, id).await
        {
            let from = temp.clone();
            if self.ask(Step::Install { from, to }).await == Answer::Done {
                return;
            }
        }
        self.ask(Step::Remove { path: temp }).await;
    }

    /// Where a file of this identity belongs in a sink.
    async fn target(&mut self, sink: &Sink, id: &FileIdentity) -> Option<PathBuf> {
        let portable = matches!(id, FileIdentity::PortablePdb(_));
        let fits = |key: &&StoreKey| match id {
            FileIdentity::PortablePdb(_) | FileIdentity::WindowsPdb(_) => key.symstore != portable,
            _ => true,
        };
        let key = self.keys.iter().find(fits)?.symsrv.clone();
        let index = vec![vec![layout::TWO_TIER.to_owned()]];
        let two_tier = !self.find(&sink.folder, index).await.is_empty();
        let tier = if two_tier { name::tier(&key[0]) } else { None };
        let parts: Vec<String> = tier.into_iter().chain(key).collect();
        name::below(&sink.folder, &parts)
    }

    /// The first sink that can be written to, and the rest.
    pub(super) async fn ready(&mut self, sinks: &[Sink]) -> Option<(Sink, Vec<Sink>)> {
        let mut ready = Vec::new();
        for sink in sinks {
            let prepare = Step::Prepare {
                folder: sink.folder.clone(),
                cache: sink.cache,
            };
            match self.ask(prepare).await {
                Answer::Done => ready.push(sink.clone()),
                answer => {
                    let place = Place::Folder(sink.folder.clone());
                    self.note(place, Trial::Failed(failure(answer)));
                }
            }
        }
        let mut ready = ready.into_iter();
        Some((ready.next()?, ready.collect()))
    }
}

/// A name for a file that is being written: nobody else's, in this process or another.
pub(super) fn temp_path(folder: &Path) -> PathBuf {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::{SystemTime, UNIX_EPOCH};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let time = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let process = std::process::id();
    folder.join(format!(
        ".{process}-{:x}-{count}{}",
        time.as_nanos(),
        crate::cache::PARTIAL
    ))
}
