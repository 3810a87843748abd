//! The dialects, errors and limits of demanglers.

use std::fmt;

/// The maximum length of a demangled name in bytes: back-references can expand a short name without
/// end.
pub(super) const MAX_OUTPUT: usize = 64 << 10;

/// The maximum number of fragments of a demangled name, which may be empty.
const MAX_FRAGMENTS: usize = 1 << 18;

/// Bytes that are shown of a name that exceeds a limit.
pub(super) const MAX_RAW: usize = 4 << 10;

/// The tool whose spelling is used where tools differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Dialect {
    /// As binutils; Rust names without hashes.
    #[default]
    Plain,
    /// As llvm-symbolizer: `foo(int) (.part.0)`, `'lambda'(int)`, `A<B<int>>`, old Rust names with
    /// their hash.
    Llvm,
    /// As binutils: `foo(int) [clone .part.0]`, `{lambda(int)#1}`, `A<B<int> >`.
    Gnu,
}

/// A mangling scheme, recognised by the prefix of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scheme {
    /// The Itanium C++ ABI, of GCC and Clang; also that of old Rust names.
    Itanium,
    /// Rust (RFC 2603).
    RustV0,
    /// Microsoft C++.
    Msvc,
    /// Swift; not demangled.
    Swift,
    /// D; not demangled.
    D,
}

impl Scheme {
    /// The scheme of a name; `None` if it is not mangled.
    pub fn of(name: &str) -> Option<Self> {
        Some(match name.as_bytes() {
            [b'?', ..] => Self::Msvc,
            [b'_', b'R', ..] | [b'R', ..] => Self::RustV0,
            // Linkers add an underscore; two more mark the functions of blocks.
            [b'_', b'Z', ..] | [b'_', b'_', b'Z', ..] => Self::Itanium,
            [b'_', b'_', b'_', b'Z', ..] | [b'_', b'_', b'_', b'_', b'Z', ..] => Self::Itanium,
            [b'$', b's' | b'S' | b'e', ..] | [b'_', b'$', b's' | b'S' | b'e', ..] => Self::Swift,
            [b'_', b'T', b'0', ..] | [b'_', b'_', b'T', b'0', ..] => Self::Swift,
            [b'_', b'D', b'0'..=b'9', ..] => Self::D,
            _ => return None,
        })
    }
}

/// Why a name is not demangled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unreadable {
    /// It is not mangled, or not validly.
    NotMangled,
    /// It is mangled in a scheme that is recognised but not demangled.
    Unsupported(Scheme),
    /// It is too long, nests too deeply, or would expand to more than 64 KiB.
    LimitReached,
}

impl Unreadable {
    /// The text to show for the name: all of it, or its first 4 KiB if a limit was reached.
    pub fn shown(self, name: &str) -> &str {
        match self {
            Self::NotMangled | Self::Unsupported(_) => name,
            Self::LimitReached => {
                let mut ends = (0..=MAX_RAW.min(name.len())).rev();
                let end = ends.find(|&at| name.is_char_boundary(at));
                &name[..end.unwrap_or(0)]
            }
        }
    }
}

/// Text of at most [`MAX_OUTPUT`] bytes in at most [`MAX_FRAGMENTS`] fragments.
#[derive(Default)]
pub(super) struct Limited {
    pub(super) text: String,
    fragments: usize,
    pub(super) full: bool,
}

impl Limited {
    /// The text, if all of it was written.
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
        self.fragments = self.fragments.saturating_add(1);
        let len = self.text.len().saturating_add(text.len());
        self.full |= len > MAX_OUTPUT || self.fragments > MAX_FRAGMENTS;
        if self.full {
            return Err(fmt::Error);
        }
        self.text.push_str(text);
        Ok(())
    }
}
