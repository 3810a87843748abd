//! What demanglers are asked for and what they give.

use std::fmt;

/// A readable name longer than this is none; back references let a short name unfold without end.
pub(super) const MAX_OUTPUT: usize = 64 << 10;

/// In more pieces none is written: a name may unfold to empty ones, too.
const PIECES: usize = 1 << 18;

/// As much is shown of a name that is too long, or unfolds to too much, in bytes.
pub(super) const MAX_RAW: usize = 4 << 10;

/// The tool whose way of writing is followed where they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Dialect {
    /// Readable: Rust without hashes.
    #[default]
    Plain,
    /// As llvm-symbolizer writes: `foo(int) (.part.0)`, `'lambda'(int)`, old Rust names with their hash.
    Llvm,
    /// As binutils write: `foo(int) [clone .part.0]`, `{lambda(int)#1}`.
    Gnu,
}

/// Why a name has no readable form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It is not mangled in a way known here.
    NotMangled,
    /// It is too long, nests too deeply, or would unfold to more than 64 KiB.
    LimitReached,
}

impl Unreadable {
    /// What is shown of the name: all of it or, where a limit was reached, its first 4 KiB.
    pub fn shown(self, name: &str) -> &str {
        match self {
            Self::NotMangled => name,
            Self::LimitReached => {
                let mut ends = (0..=MAX_RAW.min(name.len())).rev();
                let end = ends.find(|&at| name.is_char_boundary(at));
                &name[..end.unwrap_or(0)]
            }
        }
    }
}

/// Text up to [`MAX_OUTPUT`], in so many pieces.
#[derive(Default)]
pub(super) struct Limited {
    pub(super) text: String,
    pieces: usize,
    pub(super) full: bool,
}

impl Limited {
    /// What was written, if all could be.
    pub(super) fn text(self, written: fmt::Result) -> Result<String, Unreadable> {
        match written {
            Ok(()) => Ok(self.text),
            Err(_) if self.full => Err(Unreadable::LimitReached),
            Err(_) => Err(Unreadable::NotMangled),
        }
    }
}

impl fmt::Write for Limited {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.pieces = self.pieces.saturating_add(1);
        let len = self.text.len().saturating_add(text.len());
        self.full |= len > MAX_OUTPUT || self.pieces > PIECES;
        if self.full {
            return Err(fmt::Error);
        }
        self.text.push_str(text);
        Ok(())
    }
}
