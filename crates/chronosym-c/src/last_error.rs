//! The details of the last failure of a thread.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::ptr;

use crate::pointers::{self, Versioned};
use crate::status::{Failure, chronosym_status};

/// The details of a failure. Pointers are valid until the next failure of the same thread.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct chronosym_error {
    /// Set to `sizeof(chronosym_error)`.
    pub size: usize,
    /// The result of the call.
    pub status: chronosym_status,
    /// What happened, in UTF-8; ends with a zero.
    pub message: *const c_char,
    /// The file concerned, or null; ends with a zero.
    pub path: *const c_char,
    /// Offset in that file in bytes, or `UINT64_MAX` if none is known.
    pub offset: u64,
}

impl Versioned for chronosym_error {}

/// The last failure of a thread, as texts that end with a zero.
struct LastError {
    status: chronosym_status,
    message: CString,
    path: Option<CString>,
    offset: Option<u64>,
}

thread_local! {
    static LAST: RefCell<Option<LastError>> = const { RefCell::new(None) };
}

/// A text for C: up to the first zero, if it contains one.
fn c_text(text: &str) -> CString {
    let text = text.split('\0').next().unwrap_or_default();
    CString::new(text).unwrap_or_default()
}

/// Stores a failure for [`chronosym_last_error`].
pub fn keep(failure: &Failure) -> chronosym_status {
    let last = LastError {
        status: failure.status,
        message: c_text(&failure.message),
        path: failure.path.as_deref().map(c_text),
        offset: failure.offset,
    };
    LAST.with_borrow_mut(|it| *it = Some(last));
    failure.status
}

/// Returns the details of the last failure of this thread. Without one the status is `CHRONOSYM_STATUS_OK` and the
/// message is empty.
///
/// # Safety
///
/// `error` is null or points to a `chronosym_error` whose `size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn chronosym_last_error(error: *mut chronosym_error) -> chronosym_status {
    let value = LAST.with_borrow(|last| match last {
        Some(last) => chronosym_error {
            size: 0,
            status: last.status,
            message: last.message.as_ptr(),
            path: last.path.as_ref().map_or(ptr::null(), |path| path.as_ptr()),
            offset: last.offset.unwrap_or(u64::MAX),
        },
        None => chronosym_error {
            size: 0,
            status: chronosym_status::Ok,
            message: c"".as_ptr(),
            path: ptr::null(),
            offset: u64::MAX,
        },
    });
    // SAFETY: the caller passes null or a `chronosym_error` whose size is set.
    match unsafe { pointers::write_versioned(error, value) } {
        Ok(()) => chronosym_status::Ok,
        // Not stored: the requested failure stays the last one.
        Err(failure) => failure.status,
    }
}
