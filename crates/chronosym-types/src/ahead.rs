//! A thread that works ahead of the one that uses its results.

use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, channel, sync_channel};
use std::thread::{self, JoinHandle};

/// A thread that produces values from a state, ahead of those that are taken. Dropping it ends the
/// thread.
#[derive(Debug)]
pub struct Ahead<T, S> {
    /// `None` only while the thread ends.
    values: Option<Receiver<T>>,
    thread: Option<JoinHandle<Option<S>>>,
}

impl<T: Send + 'static, S: Send + 'static> Ahead<T, S> {
    /// Starts a thread that calls `produce` up to the last value. Each waits until it is taken.
    ///
    /// # Errors
    ///
    /// Returns the state if there is no second processor or no thread can be spawned.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_types::Ahead;
    ///
    /// let next = |number: &mut u32| {
    ///     *number += 1;
    ///     *number
    /// };
    /// if let Ok(mut numbers) = Ahead::start(0, next, |number| *number == 3) {
    ///     let taken: Vec<u32> = std::iter::from_fn(|| numbers.next()).collect();
    ///     assert_eq!(taken, [1, 2, 3]);
    ///     assert_eq!(numbers.end(), Some(3));
    /// }
    /// ```
    pub fn start(state: S, produce: fn(&mut S) -> T, is_last: fn(&T) -> bool) -> Result<Self, S> {
        if thread::available_parallelism().map_or(1, |processors| processors.get()) < 2 {
            return Err(state);
        }
        let (send, values) = sync_channel(0);
        let (give, given) = channel::<S>();
        let produce_all = move || {
            let mut state = given.recv().ok()?;
            loop {
                let value = produce(&mut state);
                let is_last = is_last(&value);
                if send.send(value).is_err() || is_last {
                    return Some(state);
                }
            }
        };
        match thread::Builder::new().spawn(produce_all) {
            Ok(thread) => {
                // The thread waits for it.
                let _ = give.send(state);
                Ok(Ahead {
                    values: Some(values),
                    thread: Some(thread),
                })
            }
            Err(_) => Err(state),
        }
    }
}

impl<T, S> Ahead<T, S> {
    /// Returns the next value, once it is there; `None` after the last one, and if the thread has
    /// panicked.
    pub fn next(&self) -> Option<T> {
        self.values.as_ref()?.recv().ok()
    }

    /// Ends the thread; returns its state.
    ///
    /// # Panics
    ///
    /// If the thread has panicked, with its message.
    pub fn end(&mut self) -> Option<S> {
        self.values = None;
        match self.thread.take()?.join() {
            Ok(state) => state,
            Err(panic) => resume_unwind(panic),
        }
    }
}

impl<T, S> Drop for Ahead<T, S> {
    fn drop(&mut self) {
        self.values = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
