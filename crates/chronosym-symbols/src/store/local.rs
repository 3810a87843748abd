//! Looking into folders, and at paths that the trace names.

use std::io;
use std::path::{Path, PathBuf};

use super::driver::Driver;
use super::layout::{self, Form, Pointer};
use super::outcome::{LocatedFile, Place, Trial};
use super::search::{Search, Sink};
use super::store_in::temp_path;
use crate::path::is_share;

impl<'s, D: Driver> Search<'s, D> {
    /// Looks into a folder that caches, if there is one.
    pub(super) async fn cache(&mut self, sink: Option<Sink<'s>>) -> Option<LocatedFile> {
        let folder = sink?.folder;
        let found = self.folder(folder, false, sink.as_slice());
        let file = found.await?;
        self.driver.touch(&file.path).await;
        Some(file)
    }

    /// Looks into a folder: in the keyed layouts and, if `flat`, for plain file names first. Each folder once a search.
    pub(super) async fn folder(
        &mut self,
        folder: &'s Path,
        flat: bool,
        sinks: &[Sink<'s>],
    ) -> Option<LocatedFile> {
        if !self.searched.insert((folder, flat)) {
            return None;
        }
        let mut candidates = Vec::new();
        if flat {
            // The user may have named the file itself.
            candidates.push(Vec::new());
            candidates.extend(layout::flat(&self.request.wanted, &self.names));
        }
        let place = Place::Folder(folder.into());
        self.among(folder, candidates, place, sinks).await
    }

    /// Looks into a folder that came with the trace: what stands there is used by its identity alone.
    pub(super) async fn trace_folder(
        &mut self,
        folder: &Path,
        sinks: &[Sink<'s>],
    ) -> Option<LocatedFile> {
        let candidates = layout::flat(&self.request.wanted, &self.names);
        let place = Place::TraceFolder(folder.into());
        self.among(folder, candidates, place, sinks).await
    }

    /// Looks for the candidates, and in the keyed layouts.
    async fn among(
        &mut self,
        folder: &Path,
        mut candidates: Vec<Vec<String>>,
        place: Place,
        sinks: &[Sink<'s>],
    ) -> Option<LocatedFile> {
        candidates.extend(layout::keyed(&self.keys));
        let files = match candidates.is_empty() {
            true => Vec::new(),
            false => self.driver.find(folder, &candidates).await,
        };
        let is_of_trace = matches!(place, Place::TraceFolder(_));
        if files.is_empty() {
            self.note(place, Trial::NotFound);
        }
        for path in files {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let form = Form::of_found(&name, &self.names);
            let place = Place::File(path.clone());
            let found = match form {
                Form::Plain => self.plain(path, place).await,
                Form::Packed => self.packed(path, sinks).await,
                Form::Pointer if is_of_trace => {
                    let why = "a pointer that came with the trace".into();
                    self.miss(place, Trial::Refused(why))
                }
                Form::Pointer => self.pointer(folder, &path, sinks).await,
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }

    async fn packed(&mut self, path: PathBuf, sinks: &[Sink<'s>]) -> Option<LocatedFile> {
        let place = Place::File(path.clone());
        let sinks = self.ready(sinks).await;
        let Some(sink) = sinks.first() else {
            let why = "no cache folder to unpack it to".into();
            return self.miss(place, Trial::Failed(why));
        };
        let temp = temp_path(sink.folder);
        let limit = self.config.fetch.max_bytes;
        match self.driver.unpack(&path, &temp, limit).await {
            Ok(true) => self.store(temp, place, &sinks).await,
            Ok(false) => self.plain(path, place).await,
            Err(error) => self.miss(place, not_unpacked(&error, limit)),
        }
    }

    /// Follows a pointer file of a folder: to a local file, and to a share only from a share.
    async fn pointer(
        &mut self,
        store: &Path,
        path: &Path,
        sinks: &[Sink<'s>],
    ) -> Option<LocatedFile> {
        let place = Place::File(path.into());
        let text = self.driver.read_text(path).await.unwrap_or_default();
        let target = match Pointer::parse(&text) {
            Some(Pointer::Path(target)) => PathBuf::from(target),
            Some(Pointer::Message(message)) => {
                return self.miss(place, Trial::Failed(format!("the store says: {message}")));
            }
            None => return self.miss(place, Trial::Failed("it points nowhere".into())),
        };
        let share = is_share(&target);
        if (share && !is_share(store)) || (!share && !target.is_absolute()) {
            let why = format!("it points to {}", target.display());
            return self.miss(place, Trial::Refused(why));
        }
        let place = Place::File(target.clone());
        if !self.is_file(&target).await {
            return self.miss(place, Trial::NotFound);
        }
        let name = target.file_name().unwrap_or_default();
        match name.as_encoded_bytes().ends_with(b"_") {
            true => self.packed(target, sinks).await,
            false => self.plain(target, place).await,
        }
    }

    /// A path that the trace names: only a plain local path, and opened only if the trace is trusted.
    pub(super) async fn trace_path(&mut self, text: &str) -> Option<LocatedFile> {
        let place = Place::TracePath(text.chars().take(4096).collect());
        let path = PathBuf::from(text);
        let foreign = is_share(&path) || text.starts_with("//") || text.contains('\0');
        if foreign || !path.is_absolute() {
            let why = "no local path of this machine".into();
            return self.miss(place, Trial::Refused(why));
        }
        if !self.is_file(&path).await {
            return self.miss(place, Trial::NotFound);
        }
        if !self.config.trust_trace_paths {
            return self.miss(place, Trial::NotTrusted);
        }
        self.plain(path, place).await
    }

    async fn is_file(&self, path: &Path) -> bool {
        !self.driver.find(path, &[Vec::new()]).await.is_empty()
    }
}

/// What came of a packed file that was not unpacked.
pub(super) fn not_unpacked(error: &io::Error, limit: u64) -> Trial {
    match error.kind() {
        io::ErrorKind::FileTooLarge => Trial::TooLarge(limit),
        _ => Trial::Damaged(error.to_string()),
    }
}
