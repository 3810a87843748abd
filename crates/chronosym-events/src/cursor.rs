use chronosym_types::{PointerSize, ReadError};

/// What an event says of its subject's life. Events without a life have `Load`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Action {
    /// It begins now.
    #[default]
    Load,
    /// It ends now.
    Unload,
    /// Rundown at the begin of a session: it is alive and began before.
    DCStart,
    /// Rundown at the end of a session: it is alive and ends after.
    DCEnd,
}

/// What tells layouts apart that have the same fields otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    Plain,
    /// Method events that carry names.
    Verbose,
    /// Markers at the begin, not the end, of a rundown.
    Init,
    /// PDB records of the IL behind a native image.
    Il,
    /// User parts of stacks.
    User,
    /// Processes that have ended but are still held.
    Defunct,
}

/// What the event's key says about its layout beyond the version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    pub(crate) action: Action,
    pub(crate) form: Form,
}

impl Shape {
    pub(crate) const PLAIN: Self = Self {
        action: Action::Load,
        form: Form::Plain,
    };
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

    /// Over bytes that no version or shape changes.
    pub(crate) fn plain(bytes: &'a [u8], pointer_size: PointerSize) -> Self {
        Self::new(bytes, 0, pointer_size, Shape::PLAIN)
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
