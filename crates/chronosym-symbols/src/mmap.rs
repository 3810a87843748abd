//! The one module of the workspace with `unsafe` code: files mapped into memory.
//!
//! Object files with debug information are hundreds of megabytes of which one answer needs a few pages. Reading them
//! whole would cost more than the answer, so they are mapped, and mapping cannot be expressed in safe Rust: another process
//! may change the file under the mapping.
#![allow(unsafe_code)]

use std::fs::File;
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};

/// The bytes of a file, shared and immutable: mapped, or in memory.
#[derive(Clone)]
pub struct FileData(Source);

#[derive(Clone)]
enum Source {
    Mapped(Arc<memmap2::Mmap>),
    Memory(Arc<[u8]>),
}

impl FileData {
    /// Maps a file read-only.
    ///
    /// The file must not be changed in place while it is mapped: its content would change under the reader, and cut short
    /// it would end the process. Replacing it by another file (unlink, rename) is harmless.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be opened or mapped.
    pub fn map(path: &Path) -> Result<Self> {
        let io = |source| Error::Io {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(io)?;
        let meta = file.metadata().map_err(io)?;
        if !meta.is_file() {
            return Err(io(std::io::Error::other("not a regular file")));
        }
        if meta.len() == 0 {
            return Ok(Self::from(Vec::new()));
        }
        // SAFETY: the mapping is private to this type, read-only, and handed out only as `&[u8]` of plain bytes, for which
        // every bit pattern is valid. That the file is not changed meanwhile is asked of the caller above; every reader
        // checks each length and offset when it uses it, and so survives bytes that changed.
        let map = unsafe { memmap2::Mmap::map(&file) }.map_err(io)?;
        Ok(Self(Source::Mapped(Arc::new(map))))
    }

    /// Gives the pages of a byte range back to the system, to be read from the file again when they are needed.
    ///
    /// Keeps the resident size down in sweeps over large files. A hint: nothing happens where it is not supported.
    pub fn release(&self, range: Range<usize>) {
        #[cfg(unix)]
        if let Source::Mapped(map) = &self.0 {
            // The smallest page there is; a larger one makes the system refuse the call, which changes nothing.
            const PAGE: usize = 4096;
            let start = range.start.next_multiple_of(PAGE);
            let end = range.end.min(map.len()) / PAGE * PAGE;
            if start < end {
                // SAFETY: `DontNeed` on a file-backed mapping that is never written drops pages which the next access
                // reads from the file again: the bytes seen through `&[u8]` stay the same.
                let _ = unsafe {
                    map.unchecked_advise_range(
                        memmap2::UncheckedAdvice::DontNeed,
                        start,
                        end - start,
                    )
                };
            }
        }
        #[cfg(not(unix))]
        let _ = range;
    }
}

impl Deref for FileData {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Source::Mapped(map) => map,
            Source::Memory(bytes) => bytes,
        }
    }
}

impl From<Vec<u8>> for FileData {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Source::Memory(bytes.into()))
    }
}

impl From<Arc<[u8]>> for FileData {
    fn from(bytes: Arc<[u8]>) -> Self {
        Self(Source::Memory(bytes))
    }
}

impl From<&[u8]> for FileData {
    fn from(bytes: &[u8]) -> Self {
        Self(Source::Memory(bytes.into()))
    }
}

impl std::fmt::Debug for FileData {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FileData({} bytes)", self.len())
    }
}
