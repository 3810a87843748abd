//! Open native object files, and lookups of addresses in them.

use std::sync::Arc;

use chronosym_symbols::identity::{FileIdentity, Wanted};
use chronosym_symbols::mmap::FileData;
use chronosym_symbols::{
    Address, Answer, Answers, DebugFileSearch, Frame, Missing, NativeSymbols, ObjectPath, Query,
    Source,
};

use crate::files::{FileError, Files, Frames, Open};
use crate::search::{FileAt, FileRequest, Search};
use crate::texts::Texts;
use chronosym_core::NativeFrame;
use chronosym_core::file_name;
use chronosym_core::{LineReason, NameReason};

/// A native object file, and the paths of its source files.
pub(super) struct ObjectFile {
    pub symbols: NativeSymbols,
    texts: Texts,
    /// The image, if it is to be opened with a debug file, and whether it is the only source of
    /// symbols.
    next: Option<(Arc<str>, bool)>,
}

impl Open for ObjectFile {
    fn open(at: &FileAt, _: FileData, search: &Search) -> Result<Self, FileError> {
        let debug_files = DebugFileSearch::configured(&at.path, &search.config());
        // One image of a universal file has the UUID.
        let path = match &at.id {
            Some(FileIdentity::Elf {
                build_id: Some(id), ..
            }) => ObjectPath::with_uuid(at.path.clone(), id),
            _ => at.path.clone(),
        };
        let mut symbols = NativeSymbols::open_path_with(&path, debug_files)?;
        if let Some(cache) = search.config().symbol_cache() {
            symbols.use_cache(cache);
        }
        let mut next = None;
        if let Some(debug_file) = &at.debug_file {
            // Without the debug file the image still has its dynamic symbols.
            let is_alone = symbols.set_debug_file(debug_file).is_err();
            next = Some((path_text(at), is_alone));
        }
        if let Some((id, name)) = symbols.missing_supplement() {
            let request = FileRequest::new(Wanted::ElfDebug(id), [file_name(&name)], []);
            let file = search.first([request]);
            if let Some(found) = file.file() {
                symbols.set_supplement(&found.path)?;
            }
        }
        Ok(ObjectFile {
            symbols,
            texts: Texts::default(),
            next,
        })
    }

    fn unpacked(&self) -> u64 {
        self.symbols.unpacked_bytes()
    }

    fn convert(&self) -> u64 {
        self.symbols.convert()
    }
}

/// Returns the path of a file as frames state it.
pub(super) fn path_text(at: &FileAt) -> Arc<str> {
    at.path.to_string_lossy().into()
}

/// Resolves many addresses in one pass and caches the results.
pub(super) fn prepare(files: &Files, at: &Arc<FileAt>, addresses: impl Iterator<Item = Address>) {
    let Ok(file) = files.open::<ObjectFile>(at) else {
        return;
    };
    let addresses: Vec<Address> = addresses.collect();
    let frames = file.frames(&addresses, 0, files.line_share);
    for (&address, frames) in addresses.iter().zip(frames) {
        // Each frame with its part of the names and paths, and the cache entry itself.
        let weight = 200 * (1 + frames.as_ref().map_or(0, Vec::len)) as u64;
        let key = (Arc::clone(at), address);
        files
            .prepared
            .get_or_make(&key, || (Arc::new(frames), weight));
    }
}

/// Returns the frames at an address, innermost first.
pub(super) fn frames(files: &Files, at: &Arc<FileAt>, address: Address) -> Frames {
    if let Some(frames) = files.prepared.get(&(Arc::clone(at), address)) {
        return frames.as_ref().clone();
    }
    match files.open::<ObjectFile>(at) {
        Ok(file) => {
            let mut frames = file.frames(&[address], 1, files.line_share);
            frames.pop().unwrap_or(Ok(Vec::new()))
        }
        Err(_) => Err(NameReason::SymbolFileDamaged),
    }
}

impl ObjectFile {
    /// Returns the frames of each address, in the order of the addresses.
    fn frames(&self, addresses: &[Address], threads: usize, line_share: usize) -> Vec<Frames> {
        let mut query = Query::default();
        (query.threads, query.line_share) = (threads, line_share);
        let mut answers = Answers::new();
        self.symbols.find_all(addresses, &query, &mut answers);
        let next = |frame: &Frame<'_>| {
            let is_next = |alone| alone || frame.source() == Source::DynamicSymbols;
            let next = self.next.as_ref().filter(|(_, alone)| is_next(*alone));
            next.map(|(path, _)| Arc::clone(path))
        };
        let answers = answers.iter();
        answers
            .map(|answer| native_frames(answer, &self.texts, next))
            .collect()
    }
}

/// Converts an answer to frames. `symbol_file` returns the path of the file that a frame is from,
/// if that is not the first file.
pub(super) fn native_frames(
    answer: Answer<'_>,
    texts: &Texts,
    symbol_file: impl Fn(&Frame<'_>) -> Option<Arc<str>>,
) -> Frames {
    match answer.missing() {
        Some(Missing::Damaged) => return Err(NameReason::SymbolFileDamaged),
        Some(Missing::LimitReached) => return Err(NameReason::LimitReached),
        _ => {}
    }
    // Offsets are relative to the start of the enclosing body, for inlinees as for the body itself.
    let body = answer.frames().last();
    let start = body.and_then(|frame| frame.function_start());
    let offset = start.map(|start| answer.address().saturating_sub(start));
    let frames = answer.frames().filter_map(|frame| {
        let line = frame.file().zip(frame.line());
        let mut native = NativeFrame::new(texts.get(frame.demangled()?));
        native.offset = offset;
        native.line = line
            .map(|(path, line)| texts.line(path, line.get(), frame.column()))
            .ok_or(match frame.line_limited() {
                true => LineReason::LimitReached,
                false => LineReason::NoLineInfo,
            });
        native.approximate = frame.source().is_approximate() || frame.line_uncertain();
        native.name_limited = frame.name_limited();
        native.symbol_file = symbol_file(&frame);
        Some(native)
    });
    Ok(frames.collect())
}
