//! Measures how work grows with its input, on machines that are busy with other work.

use std::time::Duration;

/// A stopwatch of the processor time that the calling thread uses. Waiting for a processor is not
/// counted. Where the system does not report it, elapsed time is measured.
#[derive(Debug)]
pub struct Stopwatch {
    used: Option<Duration>,
    started: std::time::Instant,
}

impl Stopwatch {
    /// Starts.
    pub fn start() -> Self {
        Stopwatch {
            used: thread_time(),
            started: std::time::Instant::now(),
        }
    }

    /// Returns the time used since the start.
    pub fn used(&self) -> Duration {
        match (self.used, thread_time()) {
            (Some(before), Some(now)) => now.saturating_sub(before),
            _ => self.started.elapsed(),
        }
    }
}

/// Returns the processor time of the calling thread: the first number of Linux' `schedstat`, in ns.
fn thread_time() -> Option<Duration> {
    // The kernel brings the number up to date when the thread leaves its processor.
    std::thread::yield_now();
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let used = stat.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(used))
}

/// The size of one measured run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// The base.
    Small,
    /// A fixed multiple of it.
    Large,
}

/// Asserts that the large run takes at most `ratio` times the small one, and `spare` for what does
/// not depend on the size.
///
/// Other work on the machine makes a run longer, never shorter. So runs are repeated until the
/// shortest of each size agree with the bound, at most [`ROUNDS`] times: work that grows faster
/// than the bound allows fails in every round.
///
/// # Panics
///
/// If no round is within the bound.
pub fn assert_growth(
    name: &str,
    ratio: f64,
    spare: Duration,
    mut measure: impl FnMut(Size) -> Duration,
) {
    let mut shortest = [Duration::MAX; 2];
    for _ in 0..ROUNDS {
        // The small run is the cheaper one. Its repetition keeps one slow run from loosening the
        // bound.
        for (of, size) in [(0, Size::Small), (0, Size::Small), (1, Size::Large)] {
            shortest[of] = shortest[of].min(measure(size));
        }
        if shortest[1] <= shortest[0].mul_f64(ratio) + spare {
            return;
        }
    }
    let [small, large] = shortest;
    panic!("{name}: {small:?}, then {large:?}: more than {ratio:.1} times and {spare:?}");
}

/// Rounds of runs until [`assert_growth`] fails.
pub const ROUNDS: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    /// Measures `small` and `large` ms, each increased by what `load` returns for the run.
    fn measured(small: u64, large: u64, mut load: impl FnMut() -> u64) -> std::thread::Result<()> {
        let grows = move || {
            assert_growth("test", 12.0, Duration::ZERO, |size| {
                let ms = if size == Size::Small { small } else { large };
                Duration::from_millis(ms + load())
            });
        };
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(grows))
    }

    #[test]
    fn slow_runs_do_not_fail_and_fast_growth_does() {
        assert!(measured(10, 80, || 0).is_ok());
        let mut runs = 0;
        let mut slow_at_first = || {
            runs += 1;
            if runs <= 3 { 400 } else { 0 }
        };
        assert!(measured(10, 80, &mut slow_at_first).is_ok());
        let mut runs = 0;
        assert!(
            measured(10, 640, || {
                runs += 1;
                runs % 2 * 20
            })
            .is_err()
        );
    }

    #[test]
    fn sleeping_is_not_work() {
        let watch = Stopwatch::start();
        std::thread::sleep(Duration::from_millis(200));
        if watch.used.is_some() {
            assert!(watch.used() < Duration::from_millis(100));
        }
    }
}
