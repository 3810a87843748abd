//! Schemas of the event types of an EventPipe trace.

use std::collections::HashMap;
use std::sync::Arc;

use chronosym_events::{EventKey, EventSchema, PointerSize, Provider, RawEvent};
use chronosym_nettrace::{EventType, EventTypeIndex, Record};

/// The schemas of a reader's event types, built on first use.
#[derive(Debug, Default)]
pub struct Schemas(OfTypes<Arc<EventSchema>>);

impl Schemas {
    /// Returns the schema of a record's type.
    pub fn of(&mut self, types: &[EventType], record: &Record<'_>) -> &Arc<EventSchema> {
        self.0.add(types, Arc::new);
        self.0.of(types, record, Arc::new)
    }
}

/// Values derived from the schemas of a reader's event types.
#[derive(Debug)]
pub(super) struct OfTypes<T> {
    of_type: Vec<T>,
    /// V6 labels can override the version of an event's type.
    of_version: HashMap<(EventTypeIndex, u8), T>,
}

impl<T> Default for OfTypes<T> {
    fn default() -> Self {
        Self {
            of_type: Vec::new(),
            of_version: HashMap::new(),
        }
    }
}

impl<T> OfTypes<T> {
    /// Adds the values of types that are new.
    pub(super) fn add(&mut self, types: &[EventType], mut make: impl FnMut(EventSchema) -> T) {
        for event_type in &types[self.of_type.len()..] {
            self.of_type.push(make(schema(event_type, None)));
        }
    }

    /// Returns the value of a type that has been added.
    #[inline]
    pub(super) fn of_type(&self, index: EventTypeIndex) -> &T {
        &self.of_type[index.index()]
    }

    /// Returns the value for a record whose type has been added.
    #[inline]
    pub(super) fn of(
        &mut self,
        types: &[EventType],
        record: &Record<'_>,
        make: impl FnOnce(EventSchema) -> T,
    ) -> &T {
        match record.version_override() {
            None => self.of_type(record.event_type),
            Some(version) => self.of_version(types, record.event_type, version, make),
        }
    }

    #[cold]
    fn of_version(
        &mut self,
        types: &[EventType],
        index: EventTypeIndex,
        version: u8,
        make: impl FnOnce(EventSchema) -> T,
    ) -> &T {
        self.of_version
            .entry((index, version))
            .or_insert_with(|| make(schema(&types[index.index()], Some(version))))
    }
}

/// Returns the schema that the session needs for an event type.
pub(super) fn schema(event_type: &EventType, version: Option<u8>) -> EventSchema {
    let provider = provider_of(event_type);
    let version = version.map_or(event_type.version, u32::from);
    let key = match provider {
        Provider::UniversalSystem | Provider::UniversalEvents if !event_type.name.is_empty() => {
            EventKey::Named {
                provider: event_type.provider.as_str().into(),
                name: event_type.name.as_str().into(),
            }
        }
        provider => EventKey::Manifest {
            provider,
            id: event_type.id,
            version,
        },
    };
    let opcode = event_type.opcode.unwrap_or(0);
    let level = u8::try_from(event_type.level).unwrap_or(u8::MAX);
    let schema = EventSchema::new(key)
        .with_name(&event_type.name)
        .with_descriptor(opcode, level, event_type.keywords);
    match event_type
        .fields
        .as_deref()
        .filter(|fields| !fields.is_empty())
    {
        Some(fields) => schema.with_fields(fields),
        None => schema,
    }
}

/// Converts a record to an event.
pub(super) fn raw_event<'a>(
    record: &Record<'a>,
    pointer_size: PointerSize,
    schema: &'a EventSchema,
) -> RawEvent<'a> {
    RawEvent {
        time_ns: record.time_ns,
        process_id: record.process_id,
        // 0 means "unknown" in V6 files.
        thread_id: Some(record.thread_id).filter(|&tid| tid != 0),
        processor: record.processor,
        pointer_size,
        schema,
        payload: record.payload,
    }
}

fn provider_of(event_type: &EventType) -> Provider {
    match (
        Provider::from_name(&event_type.provider),
        event_type.provider_guid,
    ) {
        (Provider::Name(name), Some(guid)) => match Provider::from_guid(guid) {
            // Prefer a GUID to a name only if the GUID is a known one, or replaces the name
            // (netperf V1).
            Provider::Guid(guid) if guid.to_string() != *name => Provider::Name(name),
            by_guid => by_guid,
        },
        (by_name, _) => by_name,
    }
}

#[cfg(test)]
mod tests {
    use chronosym_events::Guid;

    use super::*;

    fn provider(name: &str, guid: Option<&Provider>) -> Provider {
        let mut event_type = EventType::default();
        event_type.provider = name.to_owned();
        event_type.provider_guid = guid.and_then(Provider::guid);
        provider_of(&event_type)
    }

    #[test]
    fn providers_are_known_by_name_or_by_guid() {
        let own = Provider::Guid(Guid([0xa5; 16]));
        let text = own.to_string();
        assert_eq!(
            provider("Microsoft-Windows-DotNETRuntime", None),
            Provider::Runtime
        );
        // Written by recorders to which the provider was given by its GUID.
        let braces = "{e13c0d23-ccbc-4e12-931b-d9cc2eee27e4}";
        assert_eq!(
            provider(braces, Some(&Provider::Runtime)),
            Provider::Runtime
        );
        assert_eq!(provider(&text, Some(&own)), own);
        assert_eq!(
            provider("Acme-Events", Some(&own)),
            Provider::Name("Acme-Events".into())
        );
    }
}
