//! The search itself: straight-line code that asks its driver for every touch of disk and network.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::key::{StoreKey, keys};
use super::layout::{self, Form, Pointer};
use super::memory::RunMemory;
use super::name::{self, FileName};
use super::outcome::{Attempt, LocatedFile, NoFile, Origin, Outcome, Place, Trial};
use super::step::{Answer, Channel, Progress, Step};
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

/// A folder that takes fetched files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sink {
    pub(super) folder: PathBuf,
    /// The cache folder: pruned and marked, unlike folders that the symbol path names.
    pub(super) cache: bool,
}

pub(super) struct Search {
    pub(super) config: Arc<StoreConfig>,
    pub(super) memory: Arc<RunMemory>,
    pub(super) request: Request,
    pub(super) keys: Vec<StoreKey>,
    names: Vec<FileName>,
    channel: Channel,
    attempts: Vec<Attempt>,
    searched: HashSet<(PathBuf, bool)>,
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

    /// Looks into a folder that caches.
    async fn cache(&mut self, sink: &Sink) -> Option<LocatedFile> {
        let sinks = [sink.clone()];
        let file = self
            .folder(&sink.folder, false, &sinks, Origin::Cache)
            .await?;
        let path = file.path.clone();
        self.ask(Step::Touch { path }).await;
        Some(file)
    }

    /// Looks into a folder: in the keyed layouts and, if `flat`, for plain file names first. Each folder once a search.
    async fn folder(
        &mut self,
        folder: &Path,
        flat: bool,
        sinks: &[Sink],
        origin: Origin,
    ) -> Option<LocatedFile> {
        if !self.searched.insert((folder.to_path_buf(), flat)) {
            return None;
        }
        let mut candidates = Vec::new();
        if flat {
            candidates = layout::flat(&self.request.wanted, &self.names);
            // The user may have named the file itself.
            candidates.insert(0, Vec::new());
        }
        candidates.extend(layout::keyed(&self.keys));
        let files = self.find(folder, candidates).await;
        if files.is_empty() {
            self.note(Place::Folder(folder.into()), Trial::NotFound);
        }
        for path in files {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let found = match Form::of_found(&name, &self.names) {
                Form::Plain => self.plain(path, origin.clone()).await,
                Form::Packed => self.packed(&path, sinks, origin.clone()).await,
                Form::Pointer => self.pointer(folder, &path, sinks).await,
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }

    async fn plain(&mut self, path: PathBuf, origin: Origin) -> Option<LocatedFile> {
        let id = self.check(&path, Place::File(path.clone())).await?;
        Some(LocatedFile { path, origin, id })
    }

    async fn packed(&mut self, path: &Path, sinks: &[Sink], origin: Origin) -> Option<LocatedFile> {
        let place = Place::File(path.into());
        let Some((sink, sinks)) = self.ready(sinks).await else {
            self.note(
                place,
                Trial::Failed("no cache folder to unpack it to".into()),
            );
            return None;
        };
        let temp = temp_path(&sink.folder);
        let unpack = Step::Unpack {
            from: path.into(),
            to: temp.clone(),
            limit: self.config.fetch.max_bytes,
        };
        match self.ask(unpack).await {
            Answer::Done => self.settle(temp, place, &sink, &sinks, origin).await,
            Answer::Known(false) => self.plain(path.into(), origin).await,
            Answer::TooLarge => {
                self.note(place, Trial::TooLarge(self.config.fetch.max_bytes));
                None
            }
            answer => {
                self.note(place, Trial::Damaged(failure(answer)));
                None
            }
        }
    }

    /// Follows a pointer file of a folder: to a local file, and to a share only from a share.
    async fn pointer(&mut self, store: &Path, path: &Path, sinks: &[Sink]) -> Option<LocatedFile> {
        let place = Place::File(path.into());
        let text = match self.ask(Step::ReadText { path: path.into() }).await {
            Answer::Text(text) => text.unwrap_or_default(),
            _ => String::new(),
        };
        let target = match Pointer::parse(&text) {
            Some(Pointer::Path(target)) => PathBuf::from(target),
            Some(Pointer::Message(message)) => {
                self.note(place, Trial::Failed(format!("the store says: {message}")));
                return None;
            }
            None => {
                self.note(place, Trial::Failed("it points nowhere".into()));
                return None;
            }
        };
        let share = is_share(&target);
        if (share && !is_share(store)) || (!share && !target.is_absolute()) {
            let why = format!("it points to {}", target.display());
            self.note(place, Trial::Refused(why));
            return None;
        }
        if self.find(&target, vec![Vec::new()]).await.is_empty() {
            self.note(Place::File(target), Trial::NotFound);
            return None;
        }
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with('_') {
            self.packed(&target, sinks, Origin::Folder).await
        } else {
            self.plain(target, Origin::Folder).await
        }
    }

    /// A path that the trace names: only a plain local path, and opened only if the trace is trusted.
    async fn trace_path(&mut self, text: &str) -> Option<LocatedFile> {
        let place = Place::TracePath(text.chars().take(4096).collect());
        let path = PathBuf::from(text);
        let foreign = is_share(&path) || text.starts_with("//") || text.contains('\0');
        if foreign || !path.is_absolute() {
            self.note(
                place,
                Trial::Refused("no local path of this machine".into()),
            );
            return None;
        }
        if self.find(&path, vec![Vec::new()]).await.is_empty() {
            self.note(place, Trial::NotFound);
            return None;
        }
        if !self.config.trust_trace_paths {
            self.note(place, Trial::NotTrusted);
            return None;
        }
        let id = self.check(&path, place).await?;
        let origin = Origin::TracePath;
        Some(LocatedFile { path, origin, id })
    }

    /// Copies a file of a farther store to the nearer ones; stays with the farther one where that does not work.
    async fn copy_down(&mut self, file: LocatedFile, nearer: &[Sink]) -> LocatedFile {
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
            answer => (Trial::Failed(failure(answer)), None),
        };
        self.note(place, trial);
        id
    }

    async fn find(&mut self, folder: &Path, candidates: Vec<Vec<String>>) -> Vec<PathBuf> {
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

/// A driver's answer that is not the expected one, as a sentence.
pub(super) fn failure(answer: Answer) -> String {
    match answer {
        Answer::Failed(why) => why,
        _ => "the driver did not do it".into(),
    }
}
