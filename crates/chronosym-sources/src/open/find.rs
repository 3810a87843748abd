//! Finds the traces in the inputs: a queue of candidates, each with its first bytes.

use std::collections::{HashSet, VecDeque};
use std::fs::{DirEntry, File};
use std::io::{self, Cursor, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chronosym_etl::ReadAt;
use flate2::read::MultiGzDecoder;

use super::bytes::{ByteStream, FileBytes, keep};
use super::error::{OpenError, failed, unreadable};
use super::format::{Content, Format, HEAD, describe, innermost, sniff};
use super::image_maps::ImageMaps;
use super::input::{Input, What};
use super::layers::LayerDiagnostics;
use super::meter::{Meter, Metered};
use super::perf_folder::PerfFolder;
use super::salvage::Salvaged;
use super::symbol_entries::is_symbol_file;
use super::zip::{self, Entry, Section};
use chronosym_core::{Diagnostic, DiagnosticKind, LimitReached, file_name};

/// Opened inputs, each with its name.
#[derive(Default)]
pub(super) struct Inputs {
    pub streams: Vec<(String, Format, ByteStream)>,
    pub etl: Vec<(String, FileBytes)>,
    pub perf: Vec<(String, FileBytes)>,
    pub jitdumps: Vec<(String, ByteStream)>,
    pub ctf: CtfFiles,
    /// Maps that name code in the files of a `perf script` text.
    pub image_maps: ImageMaps,
    /// Texts of `perf script`.
    pub scripts: Vec<(String, ByteStream)>,
    /// Perf maps, by process.
    pub maps: Vec<(String, u32, ByteStream)>,
    pub symbols: Vec<Entry>,
}

/// Files of LTTng traces.
#[derive(Default)]
pub(super) struct CtfFiles {
    pub metadata: Vec<(String, ByteStream)>,
    pub streams: Vec<(String, ByteStream)>,
}

/// A file that may be a trace or contain traces.
struct Candidate {
    name: String,
    /// Number of compression layers and archives around it.
    layers: u32,
    /// Whether it is one of many files of a zip file or folder, and may therefore be something
    /// other than a trace.
    in_zip: bool,
    bytes: Bytes,
}

enum Bytes {
    File(File),
    Stream(ByteStream),
}

impl Inputs {
    /// Adds an input that is read sequentially.
    fn add(&mut self, name: String, content: Content, stream: ByteStream) {
        match content {
            Content::Trace(Format::JitDump) => self.jitdumps.push((name, stream)),
            Content::Trace(Format::Ctf) => self.ctf.streams.push((name, stream)),
            Content::Trace(Format::PerfScript) => self.scripts.push((name, stream)),
            Content::Trace(format) => self.streams.push((name, format, stream)),
            Content::CtfMetadata => self.ctf.metadata.push((name, stream)),
            Content::PerfMap(pid) => self.maps.push((name, pid, stream)),
            Content::PerfInfo(pid) => self.image_maps.infos.push((name, pid, stream)),
            Content::ImageMap => {
                let key = file_name(innermost(&name)).to_lowercase();
                self.image_maps.maps.insert(key, stream);
            }
            _ => {}
        }
    }

    fn count(&self) -> usize {
        let (traces, code) = (self.streams.len() + self.etl.len(), self.jitdumps.len());
        let ctf = self.ctf.metadata.len() + self.ctf.streams.len();
        let of_perf = self.perf.len() + self.scripts.len() + self.maps.len();
        traces + code + ctf + of_perf
    }
}

pub(super) struct Finder {
    pub meter: Arc<Meter>,
    pub notes: LayerDiagnostics,
    pub inputs: Inputs,
    /// Whether an input was skipped because too many are open.
    pub is_full: bool,
    /// The format of all inputs, if it is not detected.
    pub format: Option<Format>,
}

impl Finder {
    /// Looks for traces in an input.
    pub fn look_into(&mut self, input: Input) -> Result<(), OpenError> {
        let name = input.name();
        let before = self.inputs.count();
        let folder = match &input.0 {
            What::Path(path) if path.is_dir() => Some(path.clone()),
            _ => None,
        };
        if let Some(folder) = folder {
            self.look_into_folder(&folder)?;
            return match self.inputs.count() == before {
                true => Err(OpenError::Directory { name }),
                false => Ok(()),
            };
        }
        let candidate = self.open(input)?;
        let instead = self.take_apart(candidate)?;
        if self.inputs.count() == before {
            return Err(OpenError::NoTraceInside {
                name,
                found: instead,
            });
        }
        Ok(())
    }

    fn open(&self, input: Input) -> Result<Candidate, OpenError> {
        let name = input.name();
        let bytes = match input.0 {
            What::Path(path) => {
                let file = File::open(&path).map_err(|source| OpenError::Open {
                    name: name.clone(),
                    source,
                })?;
                let metadata = file.metadata().ok();
                let size = metadata.filter(|m| m.is_file()).map(|m| m.len());
                self.meter.expect(size);
                Bytes::File(file)
            }
            What::Stream(_, source) => {
                self.meter.expect(None);
                Bytes::Stream(Box::new(self.metered(source)))
            }
        };
        Ok(Candidate {
            name,
            layers: 0,
            in_zip: false,
            bytes,
        })
    }

    /// Searches the files of a folder and its subfolders in the order of their names. Does not
    /// follow links.
    fn look_into_folder(&mut self, folder: &Path) -> Result<(), OpenError> {
        let mut left = self.meter.limits.zip_entries;
        let mut folders = VecDeque::from([folder.to_owned()]);
        while let Some(folder) = folders.pop_front() {
            let unread = |source| OpenError::Open {
                name: folder.display().to_string(),
                source,
            };
            let entries = std::fs::read_dir(&folder).map_err(unread)?;
            let mut entries: Vec<_> = entries.take(left + 1).flatten().collect();
            entries.sort_by_key(|entry| entry.file_name());
            let parts = self.look_into_perf_folder(&folder, &entries)?;
            for entry in entries {
                let path = entry.path();
                if parts.contains(&path) {
                    continue;
                }
                left = match left.checked_sub(1) {
                    Some(left) => left,
                    None => {
                        let limit = LimitReached::ZipEntries(self.meter.limits.zip_entries);
                        self.notes.limit(&folder.display().to_string(), limit);
                        return Ok(());
                    }
                };
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => folders.push_back(path),
                    Ok(kind) if kind.is_file() => self.look_into_one_of_many(Input::file(path))?,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Adds the recording of a folder of `perf record --threads`. Returns its files.
    fn look_into_perf_folder(
        &mut self,
        folder: &Path,
        entries: &[DirEntry],
    ) -> Result<HashSet<PathBuf>, OpenError> {
        let is_file = |entry: &&DirEntry| entry.file_type().is_ok_and(|kind| kind.is_file());
        let files: Vec<_> = entries.iter().filter(is_file).map(DirEntry::path).collect();
        let name = folder.display().to_string();
        let opened = PerfFolder::open(&files).map_err(|error| unreadable(&name, error))?;
        let Some((whole, parts)) = opened else {
            return Ok(HashSet::default());
        };
        self.meter.expect(whole.size().ok());
        let whole = self.metered(whole);
        self.inputs.perf.push((name, Box::new(whole)));
        Ok(parts.into_iter().collect())
    }

    /// Searches a file of a folder, which need not be a trace.
    fn look_into_one_of_many(&mut self, input: Input) -> Result<(), OpenError> {
        let name = input.name();
        let candidate = match self.open(input) {
            Ok(candidate) => candidate,
            Err(error) => {
                self.notes.damage(&name, error.cause());
                return Ok(());
            }
        };
        let in_zip = true;
        self.take_apart(Candidate {
            in_zip,
            ..candidate
        })
        .map(|_| ())
    }

    /// Unpacks everything in an input. Returns the description of the first unusable content that
    /// has one.
    fn take_apart(&mut self, candidate: Candidate) -> Result<Option<String>, OpenError> {
        let mut instead = None;
        let mut queue = VecDeque::from([candidate]);
        while let Some(candidate) = queue.pop_front() {
            if let Some(useless) = self.step(candidate, &mut queue)? {
                instead.get_or_insert(useless);
            }
        }
        Ok(instead)
    }

    fn metered<S>(&self, source: S) -> Metered<S> {
        Metered::input(source, &self.meter)
    }

    /// Unpacks one candidate. Returns the description of unusable content that has one.
    fn step(
        &mut self,
        candidate: Candidate,
        queue: &mut VecDeque<Candidate>,
    ) -> Result<Option<String>, OpenError> {
        let Candidate {
            name,
            layers,
            in_zip,
            bytes,
        } = candidate;
        let (head, bytes) = match self.head(bytes) {
            Ok(read) => read,
            Err(error) => {
                let kind = match (layers, in_zip) {
                    (0, false) => OpenError::read,
                    _ => OpenError::damaged,
                };
                return self.leave_out(in_zip, &name, failed(&name, error, kind));
            }
        };
        let content = match (sniff(&head, &name), self.format) {
            (it @ (Content::Zip | Content::Gzip | Content::Empty), _) | (it, None) => it,
            (_, Some(format)) => Content::Trace(format),
        };
        if matches!(content, Content::Zip | Content::Gzip) && layers >= self.meter.limits.layers {
            let limit = LimitReached::Layers(self.meter.limits.layers);
            let of = name.clone();
            return self.leave_out(in_zip, &name, OpenError::Limit { name: of, limit });
        }
        let is_open = in_zip && matches!(bytes, Bytes::Stream(_));
        if is_open && !matches!(content, Content::Zip | Content::Gzip) && !self.may_open() {
            return Ok(None);
        }
        match content {
            Content::Trace(Format::Etl) => {
                let file = self.positioned(&name, bytes)?;
                self.inputs.etl.push((name, file));
            }
            Content::Trace(Format::PerfData) => {
                let file = self.positioned(&name, bytes)?;
                self.inputs.perf.push((name, file));
            }
            content if content.is_of_trace() => {
                let stream = self.stream(bytes);
                self.inputs.add(name, content, stream);
            }
            Content::Gzip => {
                let name = short(format!("{name} (gzip)"));
                let inside = self.unpacked(&name, MultiGzDecoder::new(self.stream(bytes)));
                queue.push_back(Candidate {
                    name,
                    layers: layers + 1,
                    in_zip,
                    bytes: Bytes::Stream(Box::new(inside)),
                });
            }
            Content::Zip => {
                let (file, _) = self.file(&name, bytes)?;
                self.zip(file, &name, layers, queue)?;
            }
            Content::Empty if !in_zip => return Err(OpenError::Empty { name }),
            Content::Known(what) if in_zip => return Ok(Some(format!("{what} in {name}"))),
            Content::Unknown | Content::Empty if in_zip => {}
            _ => {
                let found = describe(content, &head);
                return Err(OpenError::NotATrace { name, found });
            }
        }
        Ok(None)
    }

    /// Returns whether one more compressed stream may stay open, which takes some 100 KB. The limit
    /// is 1024, or more if the inputs are large.
    fn may_open(&mut self) -> bool {
        const FREE: u64 = 1024;
        const ROOM: u64 = 128 << 10;
        let may = (self.inputs.count() as u64) < FREE.max(self.meter.may_hold() / ROOM);
        if !may && !std::mem::replace(&mut self.is_full, true) {
            let limit = LimitReached::UnpackedRatio(self.meter.limits.held_ratio());
            self.notes.limit("all that is packed", limit);
        }
        may
    }

    /// Handles an unreadable candidate: one of many is skipped with a diagnostic, a single one
    /// fails, and cancellation is passed on.
    fn leave_out(
        &self,
        is_one_of_many: bool,
        name: &str,
        error: OpenError,
    ) -> Result<Option<String>, OpenError> {
        match error {
            OpenError::Limit { limit, .. } if is_one_of_many => self.notes.limit(name, limit),
            OpenError::Damaged { source, .. } if is_one_of_many => {
                self.notes.damaged_from_here(name, source);
            }
            error => return Err(error),
        }
        Ok(None)
    }

    /// Returns the first bytes of an input, and all of it. A pipe cannot be rewound: the bytes read
    /// are put in front of the rest.
    fn head(&self, mut bytes: Bytes) -> io::Result<(Vec<u8>, Bytes)> {
        let mut head = Vec::new();
        match &mut bytes {
            Bytes::File(file) => file.take(HEAD as u64).read_to_end(&mut head)?,
            Bytes::Stream(stream) => stream.take(HEAD as u64).read_to_end(&mut head)?,
        };
        let rest: ByteStream = match bytes {
            Bytes::File(mut file) => match file.rewind() {
                Ok(()) => return Ok((head, Bytes::File(file))),
                Err(_) => Box::new(self.metered(file)),
            },
            Bytes::Stream(stream) => stream,
        };
        let whole = Cursor::new(head.clone()).chain(rest);
        Ok((head, Bytes::Stream(Box::new(whole))))
    }

    fn stream(&self, bytes: Bytes) -> ByteStream {
        match bytes {
            Bytes::File(file) => Box::new(self.metered(file)),
            Bytes::Stream(stream) => stream,
        }
    }

    /// Makes an input readable at any position.
    fn positioned(&self, name: &str, bytes: Bytes) -> Result<FileBytes, OpenError> {
        Ok(match self.file(name, bytes)? {
            (file, true) => Box::new(self.metered(file)),
            (file, false) => Box::new(file),
        })
    }

    /// Returns a file that can be read at any position, and whether it is the input itself.
    fn file(&self, name: &str, bytes: Bytes) -> Result<(File, bool), OpenError> {
        match bytes {
            Bytes::File(file) => Ok((file, true)),
            Bytes::Stream(stream) => {
                let most = self.meter.limits.unpacked_bytes;
                let kept = keep(Salvaged::new(stream, name, &self.notes), most);
                let (file, whole) = kept.map_err(|error| failed(name, error, OpenError::spool))?;
                if !whole {
                    self.notes.limit(name, LimitReached::UnpackedBytes(most));
                }
                Ok((file, false))
            }
        }
    }

    /// Wraps the output of a decompressor: counts it, and ends it at the first error.
    fn unpacked<S>(&self, name: &str, source: S) -> Salvaged<Metered<S>> {
        let source = Metered::unpacked(source, &self.meter);
        Salvaged::new(source, name, &self.notes)
    }

    fn zip(
        &mut self,
        file: File,
        zip: &str,
        layers: u32,
        queue: &mut VecDeque<Candidate>,
    ) -> Result<(), OpenError> {
        let file = Section::whole(file, &self.meter).map_err(|error| unreadable(zip, error))?;
        let most = self.meter.limits.zip_entries;
        let listing = match zip::list(&file, most) {
            Ok(listing) => listing,
            Err(error) => {
                let text =
                    format!("{zip} is damaged or cut short ({error}); reading the intact part");
                let damage = Diagnostic::new(DiagnosticKind::Damage, text);
                self.notes.push(damage.about(zip));
                return self.zip_without_list(file, zip, layers, queue);
            }
        };
        for entry in listing.entries {
            match entry {
                Ok(entry) if is_symbol_file(&entry.name) => self.inputs.symbols.push(entry),
                Ok(entry) => {
                    let name = short(format!("{zip} ({})", entry.name));
                    let inside = self.unpacked(&name, entry.open());
                    queue.push_back(Candidate {
                        name,
                        layers: layers + 1,
                        in_zip: true,
                        bytes: Bytes::Stream(Box::new(inside)),
                    });
                }
                Err((entry, error)) => {
                    let what = format!("entry {entry} is damaged: {error}");
                    self.notes.damage(zip, what);
                }
            }
        }
        if listing.overlapping > 0 {
            let count = listing.overlapping;
            let what = format!("{count} entries overlap others and were skipped");
            let mut overlapping = Diagnostic::of_file(DiagnosticKind::Damage, zip, what);
            overlapping.count = count;
            self.notes.push(overlapping);
        }
        if listing.more {
            self.notes.limit(zip, LimitReached::ZipEntries(most));
        }
        Ok(())
    }

    /// Reads a zip file without its central directory, which is at the end and missing if the file
    /// is truncated. Each entry can then be reached only through the preceding one.
    fn zip_without_list(
        &self,
        mut file: Section,
        zip: &str,
        layers: u32,
        queue: &mut VecDeque<Candidate>,
    ) -> Result<(), OpenError> {
        for _ in 0..self.meter.limits.zip_entries {
            let Ok(Some(entry)) = ::zip::read::read_zipfile_from_stream(&mut file) else {
                break;
            };
            let inside = entry
                .name()
                .map_or("unnamed entry".into(), |name| name.into_owned());
            let name = short(format!("{zip} ({inside})"));
            let mut entry = self.unpacked(&name, entry);
            let mut head = Vec::new();
            let sniffed = (&mut entry).take(HEAD as u64).read_to_end(&mut head);
            if let Err(error) = sniffed {
                let error = failed(&name, error, OpenError::damaged);
                self.leave_out(true, &name, error)?;
                continue;
            }
            let content = sniff(&head, &name);
            if !content.is_of_trace() && !matches!(content, Content::Zip | Content::Gzip) {
                continue;
            }
            let whole = head.as_slice().chain(entry);
            let kept = keep(whole, self.meter.limits.unpacked_bytes)
                .map_err(|error| failed(&name, error, OpenError::spool))?;
            queue.push_back(Candidate {
                name,
                layers: layers + 1,
                in_zip: true,
                bytes: Bytes::File(kept.0),
            });
        }
        Ok(())
    }
}

/// Shortens a name, so that it does not grow with the layers.
fn short(mut name: String) -> String {
    const MOST: usize = 4096;
    if name.len() > MOST {
        let end = (0..=MOST).rev().find(|&at| name.is_char_boundary(at));
        name.truncate(end.unwrap_or(0));
    }
    name
}
