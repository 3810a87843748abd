//! The types of ETW records: provider, name and payload layout.

use std::sync::Arc;

use chronosym_etl::{EventKey as RecordKey, ExtendedItem, ReadAt, Reader, Record};
use chronosym_events::kernel::classes;
use chronosym_events::{
    EventKey, EventSchema, Guid, MANIFEST_EVENT_ID, ManifestChunks, Provider, TraceLoggingSchema,
};
use chronosym_types::hash::HashMap;

/// Schemas of the event types of a trace, built on first use.
///
/// TraceLogging records describe themselves. The fields of other events are in manifests, if the
/// trace carries them: merging adds descriptions (`EventInfo`), and EventSources log their manifest
/// as separate events.
#[derive(Debug)]
pub(super) struct Schemas {
    all: Vec<Arc<EventSchema>>,
    /// The types of recent records: most records are of a few types.
    recent: Box<[Option<(RecordKey, u32)>; RECENT]>,
    by_key: HashMap<RecordKey, u32>,
    /// TraceLogging types are identified by their schema.
    trace_logging: HashMap<Guid, HashMap<Box<[u8]>, u32>>,
    descriptions: HashMap<EventKey, EventSchema>,
    /// By provider and process: manifests that are not yet complete.
    manifests: HashMap<(Guid, Option<u32>), ManifestChunks>,
    /// Number of invalid descriptions.
    unreadable: u64,
}

const RECENT: usize = 64;
/// Maximum number of incomplete manifests at one time. Each is logged contiguously, so more than a
/// few indicate corruption.
const MAX_INCOMPLETE: usize = 256;
/// `EventInfo` of KernelTraceControl: the description of one event.
const EVENT_INFO: u8 = 32;

impl Default for Schemas {
    fn default() -> Self {
        Schemas {
            all: Vec::new(),
            recent: Box::new([None; RECENT]),
            by_key: HashMap::default(),
            trace_logging: HashMap::default(),
            descriptions: HashMap::default(),
            manifests: HashMap::default(),
            unreadable: 0,
        }
    }
}

impl Schemas {
    /// Reads a whole trace for the descriptions in it, and rewinds it: many follow the events that
    /// they describe.
    pub fn observe<S: ReadAt>(&mut self, reader: &mut Reader<S>) {
        while let Some(record) = reader.next_readable() {
            self.describe_by(&record);
        }
        self.redescribe();
        reader.rewind();
    }

    /// Returns the number of descriptions that could not be read.
    pub fn unreadable_descriptions(&self) -> u64 {
        self.unreadable
    }

    /// Returns all schemas so far. [`Schemas::redescribe`] replaces those of types whose
    /// descriptions followed.
    pub(super) fn all(&self) -> &[Arc<EventSchema>] {
        &self.all
    }

    /// Returns the index of a record's type in [`Schemas::all`].
    #[inline]
    pub(super) fn index_of(&mut self, record: &Record<'_>) -> u32 {
        if let RecordKey::Manifest { provider, .. } = record.key
            && record.extended_items().next().is_some()
            && let Some(schema) = trace_logging(record)
        {
            let schemas = self.trace_logging.get(&provider);
            if let Some(&index) = schemas.and_then(|of| of.get(schema)) {
                return index;
            }
            let index = self.add(self.schema(record));
            let of_provider = self.trace_logging.entry(provider).or_default();
            of_provider.insert(schema.into(), index);
            return index;
        }
        let slot = slot(&record.key);
        if let Some((key, index)) = &self.recent[slot]
            && *key == record.key
        {
            return *index;
        }
        let index = match self.by_key.get(&record.key) {
            Some(&index) => index,
            None => {
                let index = self.add(self.schema(record));
                self.by_key.insert(record.key, index);
                index
            }
        };
        self.recent[slot] = Some((record.key, index));
        index
    }

    fn add(&mut self, schema: EventSchema) -> u32 {
        let index = self.all.len() as u32;
        self.all.push(Arc::new(schema));
        index
    }

    /// Adopts the descriptions of other types in a record.
    pub(super) fn describe_by(&mut self, record: &Record<'_>) {
        match record.key {
            RecordKey::Classic {
                class,
                opcode: EVENT_INFO,
                ..
            } if class == classes::EVENT_INFO => match EventSchema::from_event_info(record.payload)
            {
                Ok(schema) => self.describe(schema),
                Err(_) => self.unreadable += 1,
            },
            RecordKey::Manifest { provider, id, .. } if u32::from(id) == MANIFEST_EVENT_ID => {
                if self.manifests.len() > MAX_INCOMPLETE {
                    self.unreadable += self.manifests.len() as u64;
                    self.manifests.clear();
                }
                let from = (provider, record.process_id);
                match self.manifests.entry(from).or_default().push(record.payload) {
                    Ok(None) => return,
                    Ok(Some(schemas)) => schemas.into_iter().for_each(|it| self.describe(it)),
                    Err(_) => self.unreadable += 1,
                }
                self.manifests.remove(&from);
            }
            _ => {}
        }
    }

    fn describe(&mut self, schema: EventSchema) {
        self.descriptions.insert(schema.key().clone(), schema);
    }

    /// Applies descriptions to types that preceded them.
    pub(super) fn redescribe(&mut self) {
        for schema in &mut self.all {
            // Built-in schemas cover every version of a runtime; a manifest covers one.
            if !schema.is_typed()
                && let Some(described) = self.descriptions.get(schema.key())
            {
                let (opcode, level, keywords) =
                    (schema.opcode(), schema.level(), schema.keywords());
                *schema = Arc::new(described.clone().with_descriptor(opcode, level, keywords));
            }
        }
    }

    fn schema(&self, record: &Record<'_>) -> EventSchema {
        match record.key {
            RecordKey::Classic {
                class,
                opcode,
                version,
            } => EventSchema::new(EventKey::Classic {
                class,
                opcode,
                version,
            }),
            RecordKey::Manifest {
                provider,
                id,
                version,
                opcode,
                level,
                keyword,
                ..
            } => {
                let provider = Provider::from_guid(provider);
                let name = provider_name(record);
                let described =
                    trace_logging(record).and_then(|item| TraceLoggingSchema::parse(item).ok());
                let schema = match described {
                    Some(described) => {
                        let provider = name.unwrap_or_else(|| provider.to_string());
                        let key = EventKey::Named {
                            provider: provider.into(),
                            name: described.name.into(),
                        };
                        EventSchema::new(key).with_fields(described.fields)
                    }
                    None => {
                        let key = EventKey::Manifest {
                            provider,
                            id: u32::from(id),
                            version: u32::from(version),
                        };
                        let schema = EventSchema::new(key);
                        let described = self.descriptions.get(schema.key());
                        let schema = match described {
                            Some(described) if !schema.is_typed() => described.clone(),
                            _ => schema,
                        };
                        name.iter()
                            .fold(schema, |schema, name| schema.with_provider_name(name))
                    }
                };
                schema.with_descriptor(opcode, level, keyword)
            }
            RecordKey::Group { group, opcode, .. } => named(
                "Windows Kernel",
                format!("Group({group:#04x})/Event({opcode})"),
            ),
            // The provider of a message is recorded only in the PDBs of its binary.
            RecordKey::Message { guid, number } => named(
                "WPP",
                match guid {
                    Guid::ZERO => format!("Message({number})"),
                    guid => format!("{guid}/Message({number})"),
                },
            ),
            RecordKey::Unknown(header) => named("Unknown", format!("Header({header:#04x})")),
            _ => named("Unknown", "Record".to_owned()),
        }
    }
}

/// Returns a schema that has only a name.
fn named(provider: &str, name: String) -> EventSchema {
    EventSchema::new(EventKey::Named {
        provider: provider.into(),
        name: name.into(),
    })
}

/// Returns the slot of a record's type among the recent types.
#[inline]
fn slot(key: &RecordKey) -> usize {
    let mixed = match key {
        RecordKey::Classic { class, opcode, .. } => usize::from(class.0[0]) ^ usize::from(*opcode),
        RecordKey::Manifest { provider, id, .. } => usize::from(provider.0[0]) ^ usize::from(*id),
        // There are few of these, if any.
        _ => 0,
    };
    mixed % RECENT
}

/// Returns the bytes of the schema in a TraceLogging record.
fn trace_logging<'a>(record: &Record<'a>) -> Option<&'a [u8]> {
    record.extended_items().find_map(|item| match item {
        ExtendedItem::SchemaTl(schema) => Some(schema),
        _ => None,
    })
}

fn provider_name(record: &Record<'_>) -> Option<String> {
    record.extended_items().find_map(|item| match item {
        ExtendedItem::ProviderName(name) => Some(name.to_string()),
        _ => None,
    })
}
