//! Open symbol files: parsed over their bytes, and cached up to a number of bytes.

use std::any::{Any, TypeId};
use std::sync::Arc;

use chronosym_symbols::lru::WeightedLru;
use chronosym_symbols::mmap::FileData;
use chronosym_symbols::store::{StoreConfig, has_identity};

use crate::options::SymbolOptions;
use crate::search::{FileAt, Search};
use chronosym_core::{NameReason, NativeFrame};

/// Why a file that was found cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum FileError {
    #[error("{0}")]
    Symbols(Arc<chronosym_symbols::Error>),
    #[error("the file at this path was replaced")]
    Replaced,
    #[error("{0}")]
    Pdb(#[from] chronosym_pdb::Error),
    #[error("no PDB in it")]
    NoPdb,
    #[error("its checksum differs from the one in the image")]
    Checksum,
}

impl From<chronosym_symbols::Error> for FileError {
    fn from(error: chronosym_symbols::Error) -> Self {
        FileError::Symbols(Arc::new(error))
    }
}

/// A representation of an open file.
pub(super) trait Open: Any + Send + Sync + Sized {
    /// Parses the bytes of a file, and searches for other files that it names.
    fn open(at: &FileAt, data: FileData, search: &Search) -> Result<Self, FileError>;

    /// Returns the maximum number of bytes that it may allocate in addition to the file's bytes.
    fn unpacked(&self) -> u64 {
        0
    }

    /// Converts its symbols for the cache; returns the number of bytes stored.
    fn convert(&self) -> u64 {
        0
    }
}

/// An open file, or why it cannot be read, which is cached as well.
type Opened = Result<OpenFile, FileError>;

struct OpenFile {
    file: Arc<dyn Any + Send + Sync>,
    convert: fn(&(dyn Any + Send + Sync)) -> u64,
}

/// The frames at an address; none if the file has no name for it.
pub(super) type Frames = Result<Vec<NativeFrame>, NameReason>;

/// Cached results of addresses that were resolved in advance.
type Prepared = WeightedLru<(Arc<FileAt>, chronosym_symbols::Address), Frames>;

/// Open files. Each file is searched for once; the least recently used ones are closed when the
/// total size exceeds the limit.
pub(super) struct Files {
    pub search: Search,
    open: WeightedLru<(Arc<FileAt>, TypeId), Opened>,
    pub prepared: Prepared,
    pub line_share: usize,
}

/// Estimated bytes per open file in addition to its content: tables of contents and decoded values.
const OVERHEAD: u64 = 64 << 10;

impl Files {
    pub(super) fn new(config: StoreConfig, options: &SymbolOptions) -> Self {
        Files {
            search: Search::new(config, options.memory_bytes / 4),
            open: WeightedLru::new(options.open_bytes),
            prepared: WeightedLru::new(options.memory_bytes / 2),
            line_share: options.line_share,
        }
    }

    /// Returns the open file. A file may be replaced at any time: one that differs from the file
    /// that was found is not opened.
    pub(super) fn open<T: Open>(&self, at: &Arc<FileAt>) -> Result<Arc<T>, FileError> {
        let key = (Arc::clone(at), TypeId::of::<T>());
        let opened = self.open.get_or_make(&key, || {
            let data = FileData::map(&at.path).map_err(FileError::from);
            let mut weight = data.as_ref().map_or(0, |data| data.len() as u64);
            let opened = data.and_then(|data| {
                let same = |id| has_identity(&data, id);
                if !at.id.as_ref().is_none_or(same) {
                    return Err(FileError::Replaced);
                }
                let open = T::open(at, data, &self.search)?;
                weight = weight.saturating_add(open.unpacked());
                Ok(OpenFile {
                    file: Arc::new(open),
                    convert: |file| file.downcast_ref::<T>().map_or(0, T::convert),
                })
            });
            (Arc::new(opened), weight.saturating_add(OVERHEAD))
        });
        let open = opened.as_ref().as_ref().map_err(FileError::clone)?;
        // The key includes the type.
        let file = Arc::clone(&open.file);
        file.downcast().map_err(|_| FileError::Replaced)
    }

    /// Converts the symbols of the open files for the cache; returns the number of bytes stored.
    pub(super) fn convert(&self) -> u64 {
        let open = self.open.values();
        let files = open
            .iter()
            .filter_map(|opened| opened.as_ref().as_ref().ok());
        let stored = files.map(|open| (open.convert)(&*open.file));
        stored.fold(0, u64::saturating_add)
    }
}
