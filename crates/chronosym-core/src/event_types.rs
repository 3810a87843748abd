//! The event types of a session: each once, with what it means and how often it came.

use std::hash::BuildHasher;
use std::sync::Arc;

use chronosym_events::{EventKey, EventSchema, Field};
use chronosym_types::hash::{HashMap, RandomState};
use smallvec::SmallVec;

use crate::ids::EventTypeId;
use crate::meaning::Meaning;
use crate::selection::Options;

/// An event type and how often it came.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EventTypeInfo {
    /// Who the event is.
    pub schema: Arc<EventSchema>,
    /// How many there were.
    pub count: u64,
    /// How many had a stack.
    pub stacks: u64,
    /// Their meaning, without marks unless the options request markers.
    pub(crate) meaning: Meaning,
    /// Whether the options ask for the stacks of this very type.
    pub(crate) selected: bool,
}

/// The event types of a session.
#[derive(Debug, Default)]
pub(crate) struct EventTypes {
    pub all: Vec<EventTypeInfo>,
    /// By the hash of what tells them apart.
    by_hash: HashMap<u64, SmallVec<[EventTypeId; 1]>>,
    hash: RandomState,
}

impl EventTypes {
    /// The id of a type, registered if it is new.
    pub fn register(&mut self, schema: Arc<EventSchema>, options: &Options) -> EventTypeId {
        let hash = self.type_hash(&schema);
        let known = self
            .by_hash
            .get(&hash)
            .map_or(&[][..], |ids| ids.as_slice());
        let same = |id: &&EventTypeId| identity(&self.all[id.index()].schema) == identity(&schema);
        if let Some(&known) = known.iter().find(same) {
            return known;
        }
        let id = EventTypeId(self.all.len() as u32);
        self.by_hash.entry(hash).or_default().push(id);
        self.all.push(EventTypeInfo {
            count: 0,
            stacks: 0,
            meaning: options.meaning(&schema),
            selected: options.selects(&schema),
            schema,
        });
        id
    }

    /// Takes over a better description of a type that came after its first event.
    pub fn redescribe(&mut self, id: EventTypeId, schema: &Arc<EventSchema>) {
        let known = &self.all[id.index()].schema;
        if known.key() != schema.key() {
            return;
        }
        if identity(known) != identity(schema) {
            let hash = self.type_hash(schema);
            self.by_hash.entry(hash).or_default().push(id);
        }
        self.all[id.index()].schema.clone_from(schema);
    }

    fn type_hash(&self, schema: &EventSchema) -> u64 {
        self.hash.hash_one(identity(schema))
    }
}

/// What tells event types apart.
fn identity(schema: &EventSchema) -> (&EventKey, Option<&Arc<str>>, Option<&[Field]>) {
    (schema.key(), schema.event_name(), schema.fields())
}
