//! Searches folders, and paths of the trace.

use std::io;
use std::path::{Path, PathBuf};

use super::disk::temp_path;
use super::driver::Driver;
use super::layout::{self, Form, Pointer};
use super::outcome::{AttemptResult, LocatedFile, SearchLocation};
use super::search::{Search, Sink};
use crate::path::is_share;

impl<'s, D: Driver> Search<'s, D> {
    /// Searches a cache folder, if there is one.
    pub(super) async fn cache(&mut self, sink: Option<Sink<'s>>) -> Option<LocatedFile> {
        let folder = sink?.folder;
        let file = self.folder(folder, false, sink.as_slice());
        let file = file.await?;
        self.driver.touch(&file.path).await;
        Some(file)
    }

    /// Searches a folder in the keyed layouts and, if `flat`, for plain file names first; each
    /// folder once per search.
    pub(super) async fn folder(
        &mut self,
        folder: &'s Path,
        flat: bool,
        sinks: &[Sink<'s>],
    ) -> Option<LocatedFile> {
        if !self.searched.insert((folder, flat)) {
            return None;
        }
        let listing = self.driver.list(folder).await;
        let mut candidates = Vec::new();
        if flat {
            // The user may have named the file itself.
            candidates.push(Vec::new());
            candidates.extend(layout::flat(&self.request.wanted, &self.names, &listing));
        }
        candidates.extend(layout::keyed(self.keys(), &listing));
        let location = SearchLocation::Folder(folder.into());
        self.among(folder, &candidates, location, sinks).await
    }

    /// Searches a folder that came with the trace: its files are used by identity only.
    pub(super) async fn trace_folder(
        &mut self,
        folder: &Path,
        sinks: &[Sink<'s>],
    ) -> Option<LocatedFile> {
        let listing = self.driver.list(folder).await;
        let mut candidates = layout::flat(&self.request.wanted, &self.names, &listing);
        candidates.extend(layout::keyed(self.keys(), &listing));
        let location = SearchLocation::TraceFolder(folder.into());
        self.among(folder, &candidates, location, sinks).await
    }

    /// Searches the cache of another tool by identity. Records only the files that exist.
    pub(super) async fn other_cache(&mut self, folder: &Path) -> Option<LocatedFile> {
        let listing = self.driver.list(folder).await;
        let candidates = layout::flat(&self.request.wanted, &[], &listing);
        for path in self.driver.find(folder, &candidates).await {
            let location = SearchLocation::File(path.clone());
            if let Some(file) = self.plain(path, location).await {
                return Some(file);
            }
        }
        None
    }

    /// Searches for the candidates.
    async fn among(
        &mut self,
        folder: &Path,
        candidates: &[Vec<String>],
        location: SearchLocation,
        sinks: &[Sink<'s>],
    ) -> Option<LocatedFile> {
        let files = match candidates.is_empty() {
            true => Vec::new(),
            false => self.driver.find(folder, candidates).await,
        };
        let is_of_trace = matches!(location, SearchLocation::TraceFolder(_));
        if files.is_empty() {
            self.note(location, AttemptResult::NotFound);
        }
        for path in files {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let form = Form::of_found(&name, &self.names);
            let location = SearchLocation::File(path.clone());
            let file = match form {
                Form::Plain => self.plain(path, location).await,
                Form::Packed => self.packed(path, sinks).await,
                Form::Pointer if is_of_trace => {
                    let why = "a pointer that came with the trace".into();
                    self.miss(location, AttemptResult::Refused(why))
                }
                Form::Pointer => self.pointer(folder, &path, sinks).await,
            };
            if file.is_some() {
                return file;
            }
        }
        None
    }

    async fn packed(&mut self, path: PathBuf, sinks: &[Sink<'s>]) -> Option<LocatedFile> {
        let location = SearchLocation::File(path.clone());
        let sinks = self.ready_or_temporary(sinks).await;
        let Some(sink) = sinks.first() else {
            let why = "no cache folder to unpack it to".into();
            return self.miss(location, AttemptResult::Failed(why));
        };
        let temp = temp_path(sink.folder);
        let limit = self.config.fetch.max_bytes;
        match self.driver.unpack(&path, &temp, limit).await {
            Ok(true) => self.store(temp, location, &sinks).await,
            Ok(false) => self.plain(path, location).await,
            Err(error) => self.miss(location, not_unpacked(&error, limit)),
        }
    }

    /// Follows a pointer file of a folder: to a local file, and to a share only from a share.
    async fn pointer(
        &mut self,
        store: &Path,
        path: &Path,
        sinks: &[Sink<'s>],
    ) -> Option<LocatedFile> {
        let location = SearchLocation::File(path.into());
        let text = self.driver.read_text(path).await.unwrap_or_default();
        let target = match Pointer::parse(&text) {
            Some(Pointer::Path(target)) => PathBuf::from(target),
            Some(Pointer::Message(message)) => {
                return self.miss(
                    location,
                    AttemptResult::Failed(format!("the store says: {message}")),
                );
            }
            None => return self.miss(location, AttemptResult::Failed("it has no target".into())),
        };
        let share = is_share(&target);
        if (share && !is_share(store)) || (!share && !target.is_absolute()) {
            let why = format!("it points to {}", target.display());
            return self.miss(location, AttemptResult::Refused(why));
        }
        let location = SearchLocation::File(target.clone());
        if !self.is_file(&target).await {
            return self.miss(location, AttemptResult::NotFound);
        }
        let name = target.file_name().unwrap_or_default();
        match name.as_encoded_bytes().ends_with(b"_") {
            true => self.packed(target, sinks).await,
            false => self.plain(target, location).await,
        }
    }

    /// Checks a path of the trace: only a plain local path. The file system sees it only if the
    /// trace is trusted.
    pub(super) async fn trace_path(&mut self, text: &str) -> Option<LocatedFile> {
        let location = SearchLocation::TracePath(text.chars().take(4096).collect());
        let path = match local_path(text) {
            Ok(path) if self.config.trust_trace_paths => path,
            Ok(_) => return self.miss(location, AttemptResult::NotTrusted),
            Err(refused) => return self.miss(location, refused),
        };
        if !self.is_file(&path).await {
            return self.miss(location, AttemptResult::NotFound);
        }
        self.plain(path, location).await
    }

    async fn is_file(&self, path: &Path) -> bool {
        !self.driver.find(path, &[Vec::new()]).await.is_empty()
    }
}

/// Returns a path of a trace as one of this machine.
///
/// # Errors
/// [`AttemptResult::Refused`] if it is relative or leads to another machine.
pub fn local_path(text: &str) -> Result<PathBuf, AttemptResult> {
    let path = PathBuf::from(text);
    let is_foreign = is_share(&path) || text.starts_with("//") || text.contains('\0');
    match is_foreign || !path.is_absolute() {
        true => Err(AttemptResult::Refused("not a local path".into())),
        false => Ok(path),
    }
}

/// Returns the result for a compressed file that was not decompressed.
pub(super) fn not_unpacked(error: &io::Error, limit: u64) -> AttemptResult {
    match error.kind() {
        io::ErrorKind::FileTooLarge => AttemptResult::TooLarge(limit),
        _ => AttemptResult::Damaged(error.to_string()),
    }
}
