//! Looking into folders, and at paths that the trace names.

use std::path::{Path, PathBuf};

use super::acquisition::{Search, failure};
use super::layout::{self, Form, Pointer};
use super::outcome::{LocatedFile, Origin, Place, Trial};
use super::step::{Answer, Step};
use super::store_in::{Sink, temp_path};
use crate::path::is_share;

impl Search {
    /// Looks into a folder that caches.
    pub(super) async fn cache(&mut self, sink: &Sink) -> Option<LocatedFile> {
        let sinks = [sink.clone()];
        let file = self
            .folder(&sink.folder, false, &sinks, Origin::Cache)
            .await?;
        let path = file.path.clone();
        self.ask(Step::Touch { path }).await;
        Some(file)
    }

    /// Looks into a folder: in the keyed layouts and, if `flat`, for plain file names first. Each folder once a search.
    pub(super) async fn folder(
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
        let place = Place::Folder(folder.into());
        self.among(folder, candidates, place, sinks, origin).await
    }

    /// Looks into a folder that came with the trace: what stands there is used by its identity alone.
    pub(super) async fn trace_folder(
        &mut self,
        folder: &Path,
        sinks: &[Sink],
    ) -> Option<LocatedFile> {
        let mut candidates = layout::flat(&self.request.wanted, &self.names);
        candidates.extend(layout::keyed(&self.keys));
        let place = Place::TraceFolder(folder.into());
        let origin = Origin::TraceFolder;
        self.among(folder, candidates, place, sinks, origin).await
    }

    async fn among(
        &mut self,
        folder: &Path,
        candidates: Vec<Vec<String>>,
        place: Place,
        sinks: &[Sink],
        origin: Origin,
    ) -> Option<LocatedFile> {
        let files = self.find(folder, candidates).await;
        if files.is_empty() {
            self.note(place, Trial::NotFound);
        }
        for path in files {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let found = match Form::of_found(&name, &self.names) {
                Form::Plain => self.plain(path, origin.clone()).await,
                Form::Packed => self.packed(&path, sinks, origin.clone()).await,
                Form::Pointer if origin == Origin::TraceFolder => {
                    let why = "a pointer that came with the trace".into();
                    self.note(Place::File(path), Trial::Refused(why));
                    None
                }
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
    pub(super) async fn trace_path(&mut self, text: &str) -> Option<LocatedFile> {
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
}
