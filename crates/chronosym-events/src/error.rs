use chronosym_types::ReadError;

/// Why a payload could not be decoded. Cheap to copy, so callers can count errors at no cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The payload ends before a field of its version does.
    #[error("payload of {found} bytes where at least {needed} are needed")]
    Short {
        /// The minimum number of bytes that the fields read so far need.
        needed: usize,
        /// The length of the payload in bytes.
        found: usize,
    },
    /// A string has no terminator, or a counted one is not text.
    #[error("string at byte {offset} of the payload is not terminated or not text")]
    BadString {
        /// Offset of the string from the start of the payload, in bytes.
        offset: usize,
    },
    /// A value is invalid, such as a variable-length integer of more than ten bytes.
    #[error("value at byte {offset} of the payload is not allowed there")]
    BadValue {
        /// Offset of the value from the start of the payload, in bytes.
        offset: usize,
    },
    /// The version is older than the known ones, and its layout differs from theirs.
    #[error("layout of version {0} of this event is not known")]
    UnknownVersion(u32),
    /// The event's metadata lacks a field that it must have.
    #[error("the event's metadata has no field {0}")]
    MissingField(&'static str),
}

impl From<ReadError> for DecodeError {
    #[inline]
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Ended {
                offset,
                size,
                length,
            } => Self::Short {
                needed: offset.saturating_add(size),
                found: length,
            },
            ReadError::Unterminated { offset } => Self::BadString { offset },
            ReadError::Malformed { offset } => Self::BadValue { offset },
        }
    }
}
