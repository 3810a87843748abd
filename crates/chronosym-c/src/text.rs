//! Conversion of texts to and from C.

use std::ffi::{CStr, c_char};
use std::path::PathBuf;
use std::str;

use crate::pointers;
use crate::status::Failure;

/// Characters in UTF-8. A terminating zero is not counted and not required. Null with length 0 is
/// the empty text.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct chronosym_text {
    /// The first byte.
    pub data: *const c_char,
    /// The number of bytes.
    pub length: usize,
}

impl chronosym_text {
    /// A text that this library owns.
    pub(crate) fn lent(text: &str) -> Self {
        chronosym_text {
            data: text.as_ptr().cast(),
            length: text.len(),
        }
    }

    /// The characters.
    ///
    /// # Safety
    ///
    /// The text is as C states it, and does not change while the result is in use.
    pub(crate) unsafe fn read<'a>(self, name: &str) -> Result<&'a str, Failure> {
        // SAFETY: as the caller states.
        let bytes = unsafe { pointers::array(self.data.cast::<u8>(), self.length, name)? };
        str::from_utf8(bytes).map_err(|error| {
            Failure::argument(format!(
                "{name} is not UTF-8 at byte {}",
                error.valid_up_to()
            ))
        })
    }
}

/// The text of characters that end with a zero; `None` for null.
///
/// # Safety
///
/// `text` is null or ends with a zero, and does not change while the result is in use.
pub unsafe fn optional<'a>(text: *const c_char, name: &str) -> Result<Option<&'a str>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: not null, and it ends with a zero as the caller states.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str()
        .map(Some)
        .map_err(|_| Failure::argument(format!("{name} is not UTF-8")))
}

/// A path of characters that end with a zero: any bytes on Unix, UTF-8 elsewhere.
///
/// # Safety
///
/// As [`optional`].
pub unsafe fn path(text: *const c_char, name: &str) -> Result<PathBuf, Failure> {
    #[cfg(unix)]
    if !text.is_null() {
        use std::os::unix::ffi::OsStrExt;
        // SAFETY: not null, and it ends with a zero as the caller states.
        let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
        return Ok(std::ffi::OsStr::from_bytes(bytes).into());
    }
    // SAFETY: as the caller states.
    let path = unsafe { optional(text, name)? };
    let null = || Failure::argument(format!("{name} is null"));
    path.map(PathBuf::from).ok_or_else(null)
}
