//! The one module of the workspace with `unsafe` code: files mapped into memory.
//!
//! Object files with debug information are hundreds of megabytes of which one answer needs a few pages. Reading them
//! whole would cost more than the answer, so they are mapped, and mapping cannot be expressed in safe Rust: another process
//! may change the file under the mapping. Small files are read, and all of them after [`map_nothing`].
#![allow(unsafe_code)]

use std::fs::File;
use std::io::Read;
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// Files of at most so many bytes are read: that costs no more than to map them.
const SMALL: u64 = 1 << 20;

static MAP_NOTHING: AtomicBool = AtomicBool::new(false);

/// From now on this process reads files whole, however large: what changes or shortens them later changes nothing here.
pub fn map_nothing() {
    MAP_NOTHING.store(true, Ordering::Relaxed);
}

/// The bytes of a file, shared and immutable: mapped, or in memory.
#[derive(Clone)]
pub struct FileData(Source);

#[derive(Clone)]
enum Source {
    Mapped(Arc<memmap2::Mmap>),
    Memory(Arc<[u8]>),
}

impl FileData {
    /// The bytes of a regular file: read where it is small or [`map_nothing`] was called, else mapped read-only.
    ///
    /// Replacing a file by another (unlink, rename) is harmless. A mapped one that is changed in place gives wrong answers or
    /// reasons, since every length and offset is checked when it is used and text is copied before it is checked; one that
    /// is cut short ends the process on most systems: `map_nothing` is for whoever has to fear that.
    ///
    /// # Errors
    /// [`Error::Io`] if it is no regular file, or cannot be opened, read or mapped.
    pub fn map(path: &Path) -> Result<Self> {
        let io = |source| Error::Io {
            path: path.to_owned(),
            source,
        };
        let regular = |meta: std::fs::Metadata| match meta.is_file() {
            true => Ok(meta.len()),
            false => Err(std::io::Error::other("not a regular file")),
        };
        // To open a pipe would wait for whoever writes to it.
        path.metadata().and_then(regular).map_err(io)?;
        let file = File::open(path).map_err(io)?;
        let len = file.metadata().and_then(regular).map_err(io)?;
        if len <= SMALL || MAP_NOTHING.load(Ordering::Relaxed) {
            return read(&file, len).map_err(io);
        }
        // SAFETY: the mapping is private to this type, read-only, and handed out only as `&[u8]` of plain bytes, for which
        // every bit pattern is valid. Every reader checks each length and offset when it uses it and copies text before it
        // checks it, and so survives bytes that another process changes.
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
            let end = range.end.min(map.len());
            let len = end.saturating_sub(end % PAGE).saturating_sub(start);
            if len > 0 {
                // SAFETY: `DontNeed` on a file-backed mapping that is never written drops pages which the next access
                // reads from the file again: the bytes seen through `&[u8]` stay the same.
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
    let most = usize::try_from(len).map_err(std::io::Error::other)?;
    bytes.try_reserve_exact(most)?;
    file.take(len).read_to_end(&mut bytes)?;
    Ok(FileData::from(bytes))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_file_stays_what_it_was_whoever_writes_to_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [7; 5000]).unwrap();
        let data = FileData::map(file.path()).unwrap();
        std::fs::write(file.path(), [8; 10]).unwrap();
        assert_eq!(data[..], [7; 5000]);
    }

    #[test]
    fn what_is_no_regular_file_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        assert!(FileData::map(folder.path()).is_err());
        #[cfg(unix)]
        assert!(FileData::map(Path::new("/dev/zero")).is_err());
    }
}
