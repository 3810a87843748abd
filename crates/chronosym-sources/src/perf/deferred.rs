//! Samples of which the frames of user space come later.

use chronosym_types::hash::HashMap;

use chronosym_core::facts::{self, At};
use chronosym_core::{Session, Walked};

/// A sample, and the frames of it that were recorded.
type Deferring = (At, Vec<Walked>, facts::Sample);

/// Samples of a thread in the kernel, of which the frames of user space follow once it goes back
/// there.
#[derive(Default)]
struct Deferred {
    cookie: u64,
    samples: Vec<Deferring>,
}

/// Samples that wait for their frames at most, of one thread.
const MOST_DEFERRED: usize = 4096;

/// The samples that wait, by process and thread.
#[derive(Default)]
pub(super) struct Waiting {
    threads: HashMap<(u32, u32), Deferred>,
    /// Samples whose frames did not come.
    pub without: u64,
}

impl Waiting {
    /// Keeps a sample of that cookie until the rest of its frames is known.
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

    /// Hands over the samples of a thread that waited, with the frames if they are those that they
    /// waited for.
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
