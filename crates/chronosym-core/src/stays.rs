//! How often and how long threads were in the same stack.

/// The samples of one class.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stay {
    pub samples: u64,
    /// Time of the first one, in ns.
    pub first: u64,
    /// Time of the last one, in ns.
    last: u64,
    /// Number of times that the thread changed to this class from another.
    runs: u64,
}

impl Stay {
    /// Returns whether the stack stayed the same for so long that the thread was almost certainly
    /// blocked: in the runtime, only waits last that long without a change of stack.
    pub fn is_unchanged(self) -> bool {
        const TICKS: u64 = 20;
        const NS: u64 = 200_000_000;
        self.samples >= self.runs.saturating_mul(TICKS)
            && self.last.saturating_sub(self.first) >= self.runs.saturating_mul(NS)
    }
}

/// The samples of all classes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stays {
    classes: Vec<Stay>,
    /// The last class of each thread, plus one; 0 for none.
    current: Vec<u32>,
}

impl Stays {
    /// Takes the next sample, in order of arrival.
    pub fn add(&mut self, class: u32, thread: usize, time: u64) {
        let stay = self.count(class);
        if stay.samples == 1 {
            stay.first = time;
        }
        stay.last = stay.last.max(time);
        if thread >= self.current.len() {
            self.current.resize(thread + 1, 0);
        }
        let before = std::mem::replace(&mut self.current[thread], class + 1);
        self.classes[class as usize].runs += u64::from(before != class + 1);
    }

    /// Takes a sample of a thread that is still unknown: only its number counts.
    pub fn count(&mut self, class: u32) -> &mut Stay {
        let class = class as usize;
        if class >= self.classes.len() {
            self.classes.resize(class + 1, Stay::default());
        }
        self.classes[class].samples += 1;
        &mut self.classes[class]
    }

    /// Returns the samples of a class.
    pub fn of(&self, class: usize) -> Stay {
        self.classes.get(class).copied().unwrap_or_default()
    }

    /// Adds up the numbers of samples of classes that turned out to be equal: `joined` has the new
    /// class of each.
    pub fn join(&mut self, joined: &[u32]) {
        let before = std::mem::take(self);
        for (stay, &class) in before.classes.iter().zip(joined) {
            if class != u32::MAX && stay.samples > 0 {
                self.count(class).samples += stay.samples - 1;
            }
        }
    }
}
