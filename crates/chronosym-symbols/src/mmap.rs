//! Maps files into memory; the only module of the workspace with `unsafe` code.
//!
//! Object files with debug information have hundreds of megabytes, of which one answer needs a few
//! pages, so they are mapped. Safe Rust cannot express that, because another process may change a
//! mapped file. Small files are read instead, and all files after [`map_nothing`].
#![allow(unsafe_code)]

use std::fs::File;
use std::io::Read;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use crate::error::{Error, Result};

/// Files of at most this size in bytes are read, which takes no longer than mapping them.
const SMALL: u64 = 1 << 20;

static MAP_NOTHING: AtomicBool = AtomicBool::new(false);

/// Makes this process read files of any size from now on, so that later changes to them have no
/// effect.
pub fn map_nothing() {
    MAP_NOTHING.store(true, Ordering::Relaxed);
}

/// The bytes of a file, shared and immutable: mapped, or in memory.
#[derive(Clone)]
pub struct FileData {
    source: Source,
    /// `None` for bytes that no file has in this form.
    origin: Option<Arc<Origin>>,
}

/// The file that bytes are from, as it was when it was opened.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) path: PathBuf,
    pub(crate) len: u64,
    pub(crate) modified: SystemTime,
}

impl Origin {
    /// Returns true if the file at the path still has the same length and time.
    pub(crate) fn is_current(&self) -> bool {
        let now = |meta: std::fs::Metadata| Some((meta.len(), meta.modified().ok()?));
        let now = self.path.metadata().ok().and_then(now);
        now == Some((self.len, self.modified))
    }
}

#[derive(Clone)]
enum Source {
    Mapped(Arc<memmap2::Mmap>),
    Memory(Arc<[u8]>),
    /// A range of a file, which is within it.
    Part(Box<FileData>, Range<usize>),
}

impl FileData {
    /// Returns the bytes of a regular file: read if it is small or [`map_nothing`] was called, else
    /// mapped read-only.
    ///
    /// Replacing the file (unlink, rename) is harmless. Changing a mapped file in place can give
    /// wrong answers, but nothing worse: every length and offset is checked when it is used, and
    /// text is copied before it is checked. Truncating a mapped file ends the process on most
    /// systems; [`map_nothing`] prevents that.
    ///
    /// # Errors
    /// [`Error::Io`] if it is not a regular file, or cannot be opened, read or mapped.
    pub fn map(path: &Path) -> Result<Self> {
        let io = |source| Error::Io {
            path: path.to_owned(),
            source,
        };
        let regular = |meta: std::fs::Metadata| match meta.is_file() {
            true => Ok(meta.len()),
            false => Err(std::io::Error::other("not a regular file")),
        };
        // Opening a pipe would wait for a writer.
        path.metadata().and_then(regular).map_err(io)?;
        let file = File::open(path).map_err(io)?;
        let meta = file.metadata().map_err(io)?;
        let modified = meta.modified().ok();
        let len = regular(meta).map_err(io)?;
        let origin = modified.map(|modified| {
            let path = path.to_owned();
            Arc::new(Origin {
                path,
                len,
                modified,
            })
        });
        if len <= SMALL || MAP_NOTHING.load(Ordering::Relaxed) {
            let data = read(&file, len).map_err(io)?;
            return Ok(Self { origin, ..data });
        }
        // SAFETY: the mapping is private to this type, read-only, and passed on only as `&[u8]` of
        // plain bytes, for which every bit pattern is valid. Readers check each length and offset
        // when they use it and copy text before they check it, so they tolerate bytes that another
        // process changes.
        let map = unsafe { memmap2::Mmap::map(&file) }.map_err(io)?;
        let source = Source::Mapped(Arc::new(map));
        Ok(Self { source, origin })
    }

    /// Returns a byte range, which shares these bytes; empty if it is not within them.
    pub fn part(&self, range: Range<usize>) -> Self {
        Self {
            source: Source::Part(Box::new(self.clone()), range),
            origin: self.origin.clone(),
        }
    }

    /// Returns the file that the bytes are from, if they are unchanged bytes of one.
    pub(crate) fn origin(&self) -> Option<&Origin> {
        self.origin.as_deref()
    }

    fn in_memory(bytes: Arc<[u8]>) -> Self {
        Self {
            source: Source::Memory(bytes),
            origin: None,
        }
    }

    /// Releases the pages of a byte range; the system reads them from the file again when they are
    /// used.
    ///
    /// Keeps the resident size small in passes over large files. Has no effect where it is not
    /// supported.
    pub fn release(&self, range: Range<usize>) {
        #[cfg(unix)]
        if let Source::Mapped(map) = &self.source {
            // The smallest page size; with larger pages the system rejects the call, which is
            // harmless.
            const PAGE: usize = 4096;
            let start = range.start.next_multiple_of(PAGE);
            let end = range.end.min(map.len());
            let len = end.saturating_sub(end % PAGE).saturating_sub(start);
            if len > 0 {
                // SAFETY: `DontNeed` on a file-backed mapping that is never written drops pages,
                // which the next access reads from the file again: the bytes seen through `&[u8]`
                // stay the same.
                let _ = unsafe {
                    map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, len)
                };
            }
        }
        #[cfg(not(unix))]
        let _ = range;
    }
}

fn read(file: &File, len: u64) -> std::io::Result<FileData> {
    let mut bytes = Vec::new();
    let size = usize::try_from(len).map_err(std::io::Error::other)?;
    bytes.try_reserve_exact(size)?;
    file.take(len).read_to_end(&mut bytes)?;
    Ok(FileData::from(bytes))
}

impl Deref for FileData {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.source {
            Source::Mapped(map) => map,
            Source::Memory(bytes) => bytes,
            Source::Part(whole, range) => whole.get(range.clone()).unwrap_or_default(),
        }
    }
}

impl From<Vec<u8>> for FileData {
    fn from(bytes: Vec<u8>) -> Self {
        Self::in_memory(bytes.into())
    }
}

impl From<Arc<[u8]>> for FileData {
    fn from(bytes: Arc<[u8]>) -> Self {
        Self::in_memory(bytes)
    }
}

impl From<&[u8]> for FileData {
    fn from(bytes: &[u8]) -> Self {
        Self::in_memory(bytes.into())
    }
}

impl std::fmt::Debug for FileData {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FileData({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_writes_to_a_small_file_have_no_effect() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [7; 5000]).unwrap();
        let data = FileData::map(file.path()).unwrap();
        std::fs::write(file.path(), [8; 10]).unwrap();
        assert_eq!(data[..], [7; 5000]);
    }

    #[test]
    fn only_regular_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        assert!(FileData::map(folder.path()).is_err());
        #[cfg(unix)]
        assert!(FileData::map(Path::new("/dev/zero")).is_err());
    }
}
