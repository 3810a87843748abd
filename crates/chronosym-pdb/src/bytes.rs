//! Checked little-endian reads.

use std::borrow::Cow;

use crate::{Error, Result};

/// `len` bytes at `offset`, or nothing when they leave `data`.
pub(crate) fn slice(data: &[u8], offset: usize, len: usize) -> Option<&[u8]> {
    data.get(offset..offset.checked_add(len)?)
}

pub(crate) fn array<const N: usize>(data: &[u8], offset: usize) -> Option<[u8; N]> {
    slice(data, offset, N)?.try_into().ok()
}

pub(crate) fn u16(data: &[u8], offset: usize) -> Option<u16> {
    array(data, offset).map(u16::from_le_bytes)
}

pub(crate) fn u32(data: &[u8], offset: usize) -> Option<u32> {
    array(data, offset).map(u32::from_le_bytes)
}

/// A reading position in a named structure; the name goes into errors.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'d> {
    data: &'d [u8],
    position: usize,
    what: &'static str,
}

impl<'d> Cursor<'d> {
    pub(crate) fn new(data: &'d [u8], what: &'static str) -> Self {
        Self {
            data,
            position: 0,
            what,
        }
    }

    pub(crate) fn at(data: &'d [u8], position: usize, what: &'static str) -> Self {
        Self {
            data,
            position,
            what,
        }
    }

    pub(crate) fn position(&self) -> usize {
        self.position
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Result<&'d [u8]> {
        let found = slice(self.data, self.position, len).ok_or(Error::Truncated {
            what: self.what,
            offset: self.position as u64,
            size: len as u64,
        })?;
        self.position += len;
        Ok(found)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(self.bytes(N)?);
        Ok(out)
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn damaged(&self, problem: &'static str) -> Error {
        Error::Damaged {
            what: self.what,
            offset: self.position as u64,
            problem,
        }
    }
}

/// Bytes up to the first NUL, as text.
pub(crate) fn text_to_nul(bytes: &[u8]) -> Cow<'_, str> {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end])
}
