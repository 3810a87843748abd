//! The samples of an ETW trace and their classes.

use std::hash::{Hash, Hasher};

use chronosym_types::hash::HashMap;

use super::etw_stacks::StackOf;
use chronosym_core::{
    ClassIndex, EventTypeId, SampleClass, SampleKind, Session, ThreadIndex, Weight,
};

/// The owner of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Owner {
    Thread(ThreadIndex),
    /// A thread whose process is not yet known.
    Tid(u32),
}

/// The properties shared by a class of samples, apart from their stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClassKey {
    pub owner: Owner,
    pub event: EventTypeId,
    pub kind: SampleKind,
    pub idle: bool,
    pub stack: StackOf,
}

/// Classes that differ in nothing else are few.
impl Hash for ClassKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let event = (self.event.index() as u64) << 32;
        state.write_u64(self.owner.number() ^ event);
        self.stack.hash(state);
    }
}

impl Owner {
    fn number(self) -> u64 {
        match self {
            Owner::Thread(thread) => thread.index() as u64,
            Owner::Tid(tid) => tid.into(),
        }
    }
}

/// A sample that is to be logged.
#[derive(Debug)]
struct Pending {
    key: ClassKey,
    /// Looked up when it is logged.
    class: ClassIndex,
    time_ns: u64,
    weight: Weight,
}

const RECENT: usize = 64;
/// Most samples that are looked up together.
const PENDING: usize = 256;

/// Logs samples in the order of their arrival.
#[derive(Debug)]
pub(super) struct Samples {
    /// Their stacks are set after the last record.
    classes: HashMap<ClassKey, ClassIndex>,
    /// The classes of recent samples: most are of few classes, such as those of idle processors.
    recent: Box<[Option<(ClassKey, ClassIndex)>; RECENT]>,
    pending: Vec<Pending>,
}

impl Default for Samples {
    fn default() -> Self {
        Samples {
            classes: HashMap::default(),
            recent: Box::new([None; RECENT]),
            pending: Vec::with_capacity(PENDING),
        }
    }
}

impl Samples {
    /// Adds a sample, to be logged by the next [`Samples::log`] at the latest.
    #[inline]
    pub fn push(&mut self, key: ClassKey, time_ns: u64, weight: Weight, session: &mut Session) {
        self.pending.push(Pending {
            key,
            class: ClassIndex::MAX,
            time_ns,
            weight,
        });
        if self.pending.len() == PENDING {
            self.log(session);
        }
    }

    /// Logs the samples that were added.
    pub fn log(&mut self, session: &mut Session) {
        // The classes are looked up one after the other: while one waits for memory, so do the next.
        for at in 0..self.pending.len() {
            self.pending[at].class = self.class(self.pending[at].key, session);
        }
        for sample in self.pending.drain(..) {
            session.log_sample(sample.class, sample.time_ns, sample.weight);
        }
    }

    /// Returns the class with these properties.
    pub fn class(&mut self, key: ClassKey, session: &mut Session) -> ClassIndex {
        let mixed = key.stack.mixed() ^ key.owner.number() << 2;
        let recent = &mut self.recent[mixed as usize % RECENT];
        if let Some((of, class)) = *recent
            && of == key
        {
            return class;
        }
        let class = *self.classes.entry(key).or_insert_with(|| {
            let thread = match key.owner {
                Owner::Thread(thread) => Some(thread),
                Owner::Tid(_) => None,
            };
            session.open_class(SampleClass::open(thread, key.event, key.kind, key.idle))
        });
        *recent = Some((key, class));
        class
    }

    /// Returns all classes in the order of first occurrence, so that the result is deterministic.
    pub fn into_classes(self) -> Vec<(ClassKey, ClassIndex)> {
        let mut classes: Vec<_> = self.classes.into_iter().collect();
        classes.sort_unstable_by_key(|&(_, class)| class);
        classes
    }
}
