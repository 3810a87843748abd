//! Where bytes come from.

use std::fs::File;
use std::io::{self, Read, Seek};

use chronosym_etl::ReadAt;

/// Something that is read from front to back, on whatever thread.
pub type ByteStream = Box<dyn Read + Send>;

/// Something of this library's own that is read at any position.
pub trait Positioned: Read + Seek + ReadAt + Send {}
impl<T: Read + Seek + ReadAt + Send> Positioned for T {}

/// Something that is read from front to back, and at any position.
pub type FileBytes = Box<dyn Positioned>;

/// Keeps a stream, `most` bytes of it, where it can be read at any position. Whether that is all of
/// it.
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
