use crate::DecodeError;
use crate::cursor::{Cursor, Shape};
use crate::event::Event;
use crate::part::FieldSpec;

/// How the payload of one event type is laid out.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) shape: Shape,
    /// The newest version whose layout is known; newer ones append to it.
    pub(crate) newest: u32,
    pub(crate) decode: for<'a> fn(&mut Cursor<'a>) -> Result<Event<'a>, DecodeError>,
    pub(crate) spec: fn(&mut Vec<FieldSpec>),
}

impl std::fmt::Debug for Layout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Layout")
            .field("shape", &self.shape)
            .field("newest", &self.newest)
            .finish()
    }
}

/// The layout of a payload type: how it becomes an [`Event`], its shape, its newest version.
macro_rules! layout {
    ($wrap:expr, $ty:ty, $shape:expr, $newest:literal) => {
        $crate::layout::Layout {
            shape: $shape,
            newest: $newest,
            decode: |c| Ok($wrap($crate::part::Part::read(c)?)),
            spec: |out| <$ty as $crate::part::Part<'_>>::spec("", "", out),
        }
    };
}
pub(crate) use layout;
