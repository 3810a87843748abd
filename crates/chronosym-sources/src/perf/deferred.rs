//! Samples whose user-space call chains are deferred.

use chronosym_types::hash::HashMap;

use chronosym_core::facts::{self, At};
use chronosym_core::{Session, Walked};

/// A sample, and its frames recorded so far.
type Deferring = (At, Vec<Walked>, facts::Sample);

/// Samples of a thread in the kernel, whose user-space frames follow when it returns to user space.
#[derive(Default)]
struct Deferred {
    cookie: u64,
    samples: Vec<Deferring>,
}

/// Maximum number of waiting samples per thread.
const MOST_DEFERRED: usize = 4096;

/// The waiting samples, by process and thread.
#[derive(Default)]
pub(super) struct Waiting {
    threads: HashMap<(u32, u32), Deferred>,
    /// Number of samples whose frames did not follow.
    pub without: u64,
}

impl Waiting {
    /// Keeps a sample with that cookie until its remaining frames are recorded.
    pub fn defer(&mut self, cookie: u64, sample: Deferring, session: &mut Session) {
        let at = sample.0;
        let tid = at.thread.and_then(|tid| u32::try_from(tid).ok());
        let thread = (at.process.unwrap_or_default(), tid.unwrap_or_default());
        let waiting = self.threads.entry(thread).or_default();
        if waiting.cookie != cookie || waiting.samples.len() >= MOST_DEFERRED {
            self.release(thread, None, session);
        }
        let waiting = self.threads.entry(thread).or_default();
        waiting.cookie = cookie;
        waiting.samples.push(sample);
    }

    /// Releases a thread's waiting samples, with the frames if these have their cookie.
    pub fn release(
        &mut self,
        thread: (u32, u32),
        frames: Option<(u64, &[u64])>,
        session: &mut Session,
    ) {
        let Some(waited) = self.threads.remove(&thread) else {
            return;
        };
        let rest = frames.filter(|(cookie, _)| *cookie == waited.cookie);
        for (at, mut own, stated) in waited.samples {
            match rest {
                Some((_, rest)) => own.extend(rest.iter().copied().map(Walked::from)),
                None => self.without += 1,
            }
            session.sample_walked(at, own.iter().copied(), stated);
        }
    }

    pub fn release_all(&mut self, session: &mut Session) {
        let mut threads: Vec<_> = self.threads.keys().copied().collect();
        threads.sort_unstable();
        for thread in threads {
            self.release(thread, None, session);
        }
    }
}
