//! The boundary of every call: catches panics and stores the failure.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, TryLockError};

use crate::last_error::keep;
use crate::status::{Failure, chronosym_status};

/// Runs a call. A panic is a failure; [`only`] then rejects objects that it may have left half
/// changed.
pub fn call(work: impl FnOnce() -> Result<(), Failure>) -> chronosym_status {
    let failure = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => return chronosym_status::Ok,
        Ok(Err(failure)) => failure,
        Err(panic) => internal(&text_of(&*panic)),
    };
    keep(&failure)
}

fn internal(what: &str) -> Failure {
    Failure::new(
        chronosym_status::Internal,
        format!("internal error: {what}; please report it"),
    )
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a message".to_owned())
}

/// Locks an object that one thread at a time may use.
pub fn only<'m, T>(object: &'m Mutex<T>, what: &str) -> Result<MutexGuard<'m, T>, Failure> {
    object.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => Failure::new(
            chronosym_status::Busy,
            format!("another thread is in a call with this {what}"),
        ),
        TryLockError::Poisoned(_) => internal(&format!("an earlier call with this {what} failed")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_become_failures_and_their_objects_are_refused() {
        let object = Mutex::new(1);
        let status = call(|| {
            let _object = only(&object, "thing")?;
            panic!("{} lost", "everything")
        });
        assert_eq!(status, chronosym_status::Internal);
        assert!(only(&object, "thing").is_err());
    }

    #[test]
    fn two_threads_cannot_use_one_object() {
        let object = Mutex::new(1);
        let _held = only(&object, "thing").unwrap();
        let status = call(|| only(&object, "thing").map(|_| ()));
        assert_eq!(status, chronosym_status::Busy);
    }
}
