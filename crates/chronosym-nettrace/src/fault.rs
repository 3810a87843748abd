//! The effect of an unreadable value on reading.

use chronosym_types::ReadError;

/// Why something could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The bytes end inside it; more of them may complete it.
    Short,
    /// No further bytes can make it valid.
    Bad,
}

pub(crate) type Parsed<T> = Result<T, Fault>;

impl From<ReadError> for Fault {
    #[inline]
    fn from(error: ReadError) -> Self {
        if error.is_incomplete() {
            Self::Short
        } else {
            Self::Bad
        }
    }
}
