//! The search itself: straight-line code that asks its driver for every touch of disk and network.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::key::{StoreKey, keys};
use super::layout::{self, Form};
use super::memory::RunMemory;
use super::name::FileName;
use super::outcome::{Attempt, LocatedFile, NoFile, Origin, Outcome, Place, Trial};
use super::step::{Answer, Channel, Progress, Step};
use super::store_in::Sink;
use super::url::ServerUrl;
use super::{IdentifyError, Reach, Request, StoreConfig};
use crate::identity::FileIdentity;
use crate::path::{PathElement, Store, is_share};

/// A search under way, without any input or output of its own.
///
/// ```text
/// loop {
///     match acquisition.step() {
///         Progress::Need(step) => acquisition.answer(do_it(step)),   // await, block, spawn …
///         Progress::Done(outcome) => break outcome,
///     }
/// }
/// ```
pub struct Acquisition {
    search: Pin<Box<dyn Future<Output = Outcome> + Send>>,
    channel: Channel,
    pending: Option<Step>,
    done: Option<Outcome>,
}

impl fmt::Debug for Acquisition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquisition")
            .field("pending", &self.pending)
            .field("done", &self.done)
            .finish_non_exhaustive()
    }
}

impl Acquisition {
    /// Begins a search. `memory` is shared by all searches of a run.
    pub fn new(config: Arc<StoreConfig>, memory: Arc<RunMemory>, request: Request) -> Self {
        let channel = Channel::default();
        let search = Search::new(config, memory, request, channel.clone());
        Self {
            search: Box::pin(search.run()),
            channel,
            pending: None,
            done: None,
        }
    }

    /// What to do next. Says the same again until it is answered.
    pub fn step(&mut self) -> Progress {
        if let Some(step) = &self.pending {
            return Progress::Need(step.clone());
        }
        if self.done.is_none() {
            // The search only ever waits for an answer, never for a wake-up.
            let mut context = Context::from_waker(Waker::noop());
            match self.search.as_mut().poll(&mut context) {
                Poll::Ready(outcome) => self.done = Some(outcome),
                Poll::Pending => self.pending = self.channel.take_step(),
            }
        }
        match (&self.pending, &self.done) {
            (Some(step), _) => Progress::Need(step.clone()),
            (None, Some(outcome)) => Progress::Done(outcome.clone()),
            (None, None) => Progress::Done(Outcome {
                file: Err(NoFile::NoSymbolFile),
                attempts: Vec::new(),
            }),
        }
    }

    /// What came of the step. Without a step under way it is ignored.
    pub fn answer(&mut self, answer: Answer) {
        if self.pending.take().is_some() {
            self.channel.put_answer(answer);
        }
    }
}

pub(super) struct Search {
    pub(super) config: Arc<StoreConfig>,
    pub(super) memory: Arc<RunMemory>,
    pub(super) request: Request,
    pub(super) keys: Vec<StoreKey>,
    pub(super) names: Vec<FileName>,
    channel: Channel,
    attempts: Vec<Attempt>,
    pub(super) searched: HashSet<(PathBuf, bool)>,
}

impl Search {
    fn new(
        config: Arc<StoreConfig>,
        memory: Arc<RunMemory>,
        request: Request,
        channel: Channel,
    ) -> Self {
        let mut attempts = Vec::new();
        let mut names: Vec<FileName> = Vec::new();
        for text in &request.names {
            match FileName::from_untrusted(text) {
                Some(name) if names.contains(&name) => {}
                Some(name) => names.push(name),
                None if text.is_empty() => {}
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
            keys: keys(&request.wanted, &names),
            config,
            memory,
            request,
            names,
            channel,
            attempts,
            searched: HashSet::new(),
        }
    }

    async fn run(mut self) -> Outcome {
        let found = if self.request.wanted.is_identified() {
            self.everywhere().await
        } else {
            let why = "the trace gives no identity to check a file against";
            self.note(Place::Request, Trial::Refused(why.into()));
            None
        };
        let file = found.ok_or_else(|| self.reason());
        Outcome {
            file,
            attempts: self.attempts,
        }
    }

    async fn everywhere(&mut self) -> Option<LocatedFile> {
        let config = Arc::clone(&self.config);
        if self.request.reach != Reach::Stores {
            let sinks: Vec<Sink> = self.default_sink().into_iter().collect();
            for folder in &config.folders {
                if let Some(file) = self.folder(folder, true, &sinks, Origin::Folder).await {
                    return Some(file);
                }
            }
            for folder in &config.trace_folders {
                if let Some(file) = self.trace_folder(folder, &sinks).await {
                    return Some(file);
                }
            }
            for path in self.request.trace_paths.clone() {
                if let Some(file) = self.trace_path(&path).await {
                    return Some(file);
                }
            }
        }
        if self.request.reach == Reach::Folders {
            return None;
        }
        let mut sink = self.default_sink();
        let mut cached_from_here = false;
        for element in &config.path.elements {
            let found = match element {
                PathElement::Folder(folder) => {
                    let sinks: Vec<Sink> = sink.clone().into_iter().collect();
                    let found = self.folder(folder, true, &sinks, Origin::Folder).await;
                    match found {
                        Some(file) if cached_from_here && is_share(folder) => {
                            Some(self.copy_down(file, &sinks).await)
                        }
                        found => found,
                    }
                }
                PathElement::Cache(folder) => {
                    if let Some(folder) = folder {
                        sink = Some(Sink {
                            folder: folder.clone(),
                            cache: false,
                        });
                    }
                    cached_from_here = true;
                    match sink.clone() {
                        Some(sink) => self.cache(&sink).await,
                        None => None,
                    }
                }
                PathElement::Chain(stores) => self.chain(stores, sink.as_ref()).await,
            };
            if found.is_some() {
                return found;
            }
        }
        for server in &config.debuginfod {
            let urls = layout::debuginfod_urls(server, &self.request.wanted);
            if urls.is_empty() {
                break;
            }
            if let Some(sink) = sink.clone()
                && let Some(file) = self.cache(&sink).await
            {
                return Some(file);
            }
            let sinks: Vec<Sink> = sink.clone().into_iter().collect();
            if let Some(file) = self.server(server, Some(urls), &sinks).await {
                return Some(file);
            }
        }
        None
    }

    /// A chain of stores, the nearest first: what a farther one has is copied to the nearer ones.
    async fn chain(&mut self, stores: &[Store], sink: Option<&Sink>) -> Option<LocatedFile> {
        let mut nearer: Vec<Sink> = Vec::new();
        for (i, store) in stores.iter().enumerate() {
            let store = match store {
                Store::Server(server) => {
                    if nearer.is_empty()
                        && let Some(sink) = sink
                    {
                        if let Some(file) = self.cache(sink).await {
                            return Some(file);
                        }
                        nearer.push(sink.clone());
                    }
                    let found = self.server(server, None, &nearer).await;
                    if found.is_some() {
                        return found;
                    }
                    continue;
                }
                Store::Default => self.default_sink(),
                Store::Folder(folder) => Some(Sink {
                    folder: folder.clone(),
                    cache: false,
                }),
            };
            let Some(store) = store else {
                continue;
            };
            let origin = if i + 1 < stores.len() {
                Origin::Cache
            } else {
                Origin::Folder
            };
            let found = if store.cache {
                self.cache(&store).await
            } else {
                self.folder(&store.folder, false, &nearer, origin).await
            };
            if let Some(file) = found {
                return Some(self.copy_down(file, &nearer).await);
            }
            nearer.push(store);
        }
        None
    }

    /// Whether the file at `path` is the wanted one; notes what it is for `place`.
    pub(super) async fn check(&mut self, path: &Path, place: Place) -> Option<FileIdentity> {
        let identify = Step::Identify {
            path: path.into(),
            wanted: self.request.wanted.clone(),
        };
        let (trial, id) = match self.ask(identify).await {
            Answer::Identity(Ok(id)) if self.request.wanted.accepts(&id) => {
                (Trial::Found, Some(id))
            }
            Answer::Identity(Ok(id)) => (Trial::Mismatch(id), None),
            Answer::Identity(Err(IdentifyError::Damaged(why))) => (Trial::Damaged(why), None),
            Answer::Identity(Err(IdentifyError::Unreadable(why))) => (Trial::Failed(why), None),
            Answer::Identity(Err(IdentifyError::Unfit(why))) => (Trial::Refused(why), None),
            answer => (Trial::Failed(failure(answer)), None),
        };
        self.note(place, trial);
        id
    }

    pub(super) async fn find(
        &mut self,
        folder: &Path,
        candidates: Vec<Vec<String>>,
    ) -> Vec<PathBuf> {
        if candidates.is_empty() {
            return Vec::new();
        }
        let find = Step::Find {
            folder: folder.into(),
            candidates,
        };
        match self.ask(find).await {
            Answer::Files(files) => files,
            _ => Vec::new(),
        }
    }

    pub(super) async fn ask(&self, step: Step) -> Answer {
        self.channel.ask(step).await
    }

    pub(super) fn note(&mut self, place: Place, trial: Trial) {
        self.attempts.push(Attempt { place, trial });
    }

    fn default_sink(&self) -> Option<Sink> {
        let folder = self.config.cache.clone()?;
        Some(Sink {
            folder,
            cache: true,
        })
    }

    /// Why nothing was found: the most telling of what was met with.
    fn reason(&self) -> NoFile {
        let mut damaged = None;
        let mut untrusted = None;
        let mut offline = false;
        for Attempt { place, trial } in &self.attempts {
            match trial {
                Trial::Mismatch(found) => {
                    return NoFile::SymbolFileMismatch {
                        wanted: self.request.wanted.clone(),
                        found: found.clone(),
                        place: place.clone(),
                    };
                }
                Trial::Damaged(why) => {
                    damaged.get_or_insert_with(|| NoFile::SymbolFileDamaged {
                        place: place.clone(),
                        why: why.clone(),
                    });
                }
                Trial::NotTrusted => {
                    if let Place::TracePath(path) = place {
                        untrusted
                            .get_or_insert_with(|| NoFile::PathNotTrusted { path: path.clone() });
                    }
                }
                Trial::Offline => offline = true,
                _ => {}
            }
        }
        let offline = offline.then_some(NoFile::Offline);
        damaged
            .or(untrusted)
            .or(offline)
            .unwrap_or(NoFile::NoSymbolFile)
    }

    /// A symbol server, or a debuginfod server with its `urls`.
    async fn server(
        &mut self,
        server: &ServerUrl,
        urls: Option<Vec<(String, Form)>>,
        sinks: &[Sink],
    ) -> Option<LocatedFile> {
        if urls.is_none() && self.keys.is_empty() {
            return None;
        }
        super::remote::search(self, server, urls, sinks).await
    }
}

/// A driver's answer that is not the expected one, as a sentence.
pub(super) fn failure(answer: Answer) -> String {
    match answer {
        Answer::Failed(why) => why,
        _ => "the driver did not do it".into(),
    }
}
