//! Sources of a trace's bytes.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "places up to the ends of the bytes and of the buffer"
)]

#[cfg(any(unix, windows))]
use std::fs::File;
use std::io;
use std::sync::Arc;

/// Reads at any position of a file, a byte slice or anything else that has a length.
///
/// Reads do not move a shared cursor, so one source may serve several readers at a time.
pub trait ReadAt {
    /// Reads up to `buf.len()` bytes at `offset`; fewer (or none) only at the end of the source.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize>;

    /// Length of the source in bytes.
    fn size(&self) -> io::Result<u64>;
}

impl ReadAt for [u8] {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let start = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(self.len());
        let n = buf.len().min(self.len() - start);
        let (to, from) = (buf.get_mut(..n), self.get(start..start + n));
        if let (Some(to), Some(from)) = (to, from) {
            to.copy_from_slice(from);
        }
        Ok(n)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}

impl ReadAt for Vec<u8> {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        self.as_slice().read_at(offset, buf)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}

#[cfg(any(unix, windows))]
impl ReadAt for File {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < buf.len() {
            let rest = buf.get_mut(done..).unwrap_or_default();
            match file_read(self, offset + done as u64, rest) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(done)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

#[cfg(unix)]
fn file_read(file: &File, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buf, offset)
}

#[cfg(windows)]
fn file_read(file: &File, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buf, offset)
}

macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<T: ReadAt + ?Sized> ReadAt for $pointer {
            fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
                (**self).read_at(offset, buf)
            }

            fn size(&self) -> io::Result<u64> {
                (**self).size()
            }
        }
    )*};
}
forward!(&T, Box<T>, Arc<T>);
