use chronosym_types::{PointerSize, ReadError};

/// The action on the subject of an event. Events without a subject have `Load`.
///
/// Closed: a lifetime starts or ends, or a rundown lists it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Action {
    /// The lifetime starts.
    #[default]
    Load,
    /// The lifetime ends.
    Unload,
    /// Rundown when a session starts: the subject is alive and its lifetime started before.
    DCStart,
    /// Rundown when a session ends: the subject is alive and its lifetime ends after.
    DCEnd,
}

/// Distinguishes event types that share a declaration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    Plain,
    /// Method events that carry names.
    Verbose,
    /// Markers at the start, not the end, of a rundown.
    Init,
    /// PDB records of the IL that a native image was compiled from.
    Il,
    /// User parts of stacks.
    User,
    /// Processes that have ended but are still held.
    Defunct,
}

/// The properties of an event's layout that its key determines, apart from the version.
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

/// A position in a payload, with the properties that its layout depends on.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    bytes: chronosym_types::Cursor<'a>,
    pub(crate) version: u32,
    pub(crate) pointer_size: PointerSize,
    pub(crate) shape: Shape,
}

impl<'a> Cursor<'a> {
    #[inline]
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

    /// Creates a cursor over bytes whose layout depends on the pointer size only.
    pub(crate) fn plain(bytes: &'a [u8], pointer_size: PointerSize) -> Self {
        Self::new(bytes, 0, pointer_size, Shape::PLAIN)
    }

    /// Reads a pointer of the payload's pointer size.
    #[inline]
    pub(crate) fn pointer(&mut self) -> Result<u64, ReadError> {
        self.bytes.pointer(self.pointer_size)
    }
}

impl<'a> std::ops::Deref for Cursor<'a> {
    type Target = chronosym_types::Cursor<'a>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.bytes
    }
}

impl std::ops::DerefMut for Cursor<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.bytes
    }
}
