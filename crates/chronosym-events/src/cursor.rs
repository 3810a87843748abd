use chronosym_types::{PointerSize, ReadError};

use crate::Action;

/// What the event's key says about its layout beyond the version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    pub(crate) action: Action,
    /// Method events that carry names.
    pub(crate) verbose: bool,
    /// Markers at the begin, not the end, of a rundown.
    pub(crate) init: bool,
    /// Layouts of the private provider.
    pub(crate) private: bool,
    /// Events whose strings are 8-bit text where the other layout has UTF-16.
    pub(crate) ansi: bool,
    /// PDB records of the IL behind a native image.
    pub(crate) il: bool,
    /// User parts of stacks.
    pub(crate) user: bool,
    /// Processes that have ended but are still held.
    pub(crate) defunct: bool,
    /// The oldest version whose layout is known.
    pub(crate) oldest: u32,
}

impl Shape {
    pub(crate) const fn new(action: Action) -> Self {
        Self {
            action,
            verbose: false,
            init: false,
            private: false,
            ansi: false,
            il: false,
            user: false,
            defunct: false,
            oldest: 0,
        }
    }
    pub(crate) const fn verbose(self) -> Self {
        Self {
            verbose: true,
            ..self
        }
    }
    /// A marker at the begin of a rundown.
    pub(crate) const fn init(self) -> Self {
        Self { init: true, ..self }
    }
    pub(crate) const fn private(self) -> Self {
        Self {
            private: true,
            ..self
        }
    }
    pub(crate) const fn il(self) -> Self {
        Self { il: true, ..self }
    }
    pub(crate) const fn user(self) -> Self {
        Self { user: true, ..self }
    }
    pub(crate) const fn defunct(self) -> Self {
        Self {
            defunct: true,
            ..self
        }
    }
    pub(crate) const fn since(self, oldest: u32) -> Self {
        Self { oldest, ..self }
    }
    pub(crate) const fn ansi(self) -> Self {
        Self { ansi: true, ..self }
    }
}

/// A reading position in one payload, and what its layout depends on.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    bytes: chronosym_types::Cursor<'a>,
    pub(crate) version: u32,
    pub(crate) pointer_size: PointerSize,
    pub(crate) shape: Shape,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(
        payload: &'a [u8],
        version: u32,
        pointer_size: PointerSize,
        shape: Shape,
    ) -> Self {
        Self {
            bytes: chronosym_types::Cursor::new(payload),
            version,
            pointer_size,
            shape,
        }
    }

    /// A pointer of the payload's own width.
    pub(crate) fn pointer(&mut self) -> Result<u64, ReadError> {
        self.bytes.pointer(self.pointer_size)
    }
}

impl<'a> std::ops::Deref for Cursor<'a> {
    type Target = chronosym_types::Cursor<'a>;

    fn deref(&self) -> &Self::Target {
        &self.bytes
    }
}

impl std::ops::DerefMut for Cursor<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.bytes
    }
}
