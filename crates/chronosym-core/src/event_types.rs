//! The event types of a session with their meanings and counts.

use std::hash::BuildHasher;
use std::sync::Arc;

use chronosym_events::{EventKey, EventSchema, Field};
use chronosym_types::hash::{HashMap, RandomState};
use smallvec::SmallVec;

use crate::ids::EventTypeId;
use crate::meaning::Meaning;
use crate::selection::Options;

/// An event type with its counts.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EventTypeInfo {
    /// Identity and fields of the type.
    pub schema: Arc<EventSchema>,
    /// Number of events.
    pub count: u64,
    /// Number of events with a stack.
    pub stacks: u64,
    /// The meaning of the type, without marks unless the options request markers.
    pub(crate) meaning: Meaning,
    /// Whether the options select the stacks of this type.
    pub(crate) selected: bool,
    /// Whether the options keep the events of this type.
    pub(crate) kept: bool,
    /// Whether events of this type are kept, or are markers.
    pub(crate) noted: bool,
}

impl EventTypeInfo {
    /// Creates a type without events.
    pub(crate) fn new(schema: Arc<EventSchema>, options: &Options) -> Self {
        let (meaning, kept) = (options.meaning(&schema), options.keeps(&schema));
        EventTypeInfo {
            count: 0,
            stacks: 0,
            meaning,
            selected: options.selects(&schema),
            kept,
            noted: kept || meaning.mark.is_some(),
            schema,
        }
    }
}

/// The event types of a session.
#[derive(Debug, Default)]
pub(crate) struct EventTypes {
    pub all: Vec<EventTypeInfo>,
    /// Ids by the hash of the type's identity.
    by_hash: HashMap<u64, SmallVec<[EventTypeId; 1]>>,
    hash: RandomState,
}

impl EventTypes {
    /// Returns the id of a type, registering it if it is new.
    pub fn register(&mut self, schema: Arc<EventSchema>, options: &Options) -> EventTypeId {
        let hash = self.type_hash(&schema);
        let ids = self
            .by_hash
            .get(&hash)
            .map_or(&[][..], |ids| ids.as_slice());
        let same = |id: &&EventTypeId| identity(&self.all[id.index()].schema) == identity(&schema);
        if let Some(&id) = ids.iter().find(same) {
            return id;
        }
        let id = EventTypeId(self.all.len() as u32);
        self.by_hash.entry(hash).or_default().push(id);
        self.all.push(EventTypeInfo::new(schema, options));
        id
    }

    /// Replaces the schema of a type by a better one that arrived after its first event.
    pub fn redescribe(&mut self, id: EventTypeId, schema: &Arc<EventSchema>) {
        let old = &self.all[id.index()].schema;
        if old.key() != schema.key() {
            return;
        }
        if identity(old) != identity(schema) {
            let hash = self.type_hash(schema);
            self.by_hash.entry(hash).or_default().push(id);
        }
        self.all[id.index()].schema.clone_from(schema);
    }

    fn type_hash(&self, schema: &EventSchema) -> u64 {
        self.hash.hash_one(identity(schema))
    }
}

/// Returns the parts of a schema that distinguish event types.
fn identity(schema: &EventSchema) -> (&EventKey, Option<&Arc<str>>, Option<&[Field]>) {
    (schema.key(), schema.event_name(), schema.fields())
}
