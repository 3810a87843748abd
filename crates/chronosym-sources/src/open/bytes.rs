//! Byte sources.

use std::fs::File;
use std::io::{self, Read, Seek};

use chronosym_etl::ReadAt;

/// A source that is read sequentially, on any thread.
pub type ByteStream = Box<dyn Read + Send>;

/// A source of this library that can be read at any position.
pub trait Positioned: Read + Seek + ReadAt + Send + Sync {}
impl<T: Read + Seek + ReadAt + Send + Sync> Positioned for T {}

/// A source that can be read sequentially and at any position.
pub type FileBytes = Box<dyn Positioned>;

/// Copies up to `most` bytes of a stream to a temporary file, which can be read at any position.
/// Also returns whether these are all of its bytes.
pub(super) fn keep(source: impl Read, most: u64) -> io::Result<(File, bool)> {
    let mut file = tempfile::tempfile()?;
    let mut source = source.take(most.saturating_add(1));
    let n = io::copy(&mut source, &mut file)?;
    if n > most {
        file.set_len(most)?;
    }
    file.rewind()?;
    Ok((file, n <= most))
}
