//! The body of a response: text, or a file that is read while it is sent.

use std::fs::File;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use chronosym_etl::ReadAt;
use hyper::body::{Body, Bytes, Frame, SizeHint};

/// Bytes of a file that are in memory at a time, for each response.
const CHUNK: usize = 64 << 10;

pub enum ResponseBody {
    Text(Bytes),
    /// The bytes of a file from an offset to a length.
    File {
        file: Arc<File>,
        offset: u64,
        length: u64,
    },
}

impl ResponseBody {
    /// Returns the whole file, whatever others read from it.
    pub fn file(file: Arc<File>) -> io::Result<Self> {
        let length = file.metadata()?.len();
        let offset = 0;
        Ok(ResponseBody::File {
            file,
            offset,
            length,
        })
    }

    fn next_chunk(&mut self) -> io::Result<Bytes> {
        match self {
            ResponseBody::Text(text) => Ok(std::mem::take(text)),
            ResponseBody::File {
                file,
                offset,
                length,
            } => {
                let rest = length.saturating_sub(*offset);
                let mut chunk = vec![0; CHUNK.min(usize::try_from(rest).unwrap_or(CHUNK))];
                let count = file.read_at(*offset, &mut chunk)?;
                chunk.truncate(count);
                *offset += count as u64;
                Ok(chunk.into())
            }
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Poll::Ready(match self.get_mut().next_chunk() {
            Ok(chunk) if chunk.is_empty() => None,
            chunk => Some(chunk.map(Frame::data)),
        })
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(match self {
            ResponseBody::Text(text) => text.len() as u64,
            ResponseBody::File { offset, length, .. } => length.saturating_sub(*offset),
        })
    }
}
