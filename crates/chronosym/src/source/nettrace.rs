//! EventPipe traces: nettrace and netperf.

use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;

use chronosym_events::{
    EventKey, EventSchema, Field, FieldType, Guid, PointerSize, Provider, RawEvent,
};
use chronosym_nettrace::{
    Diagnostics, Error, EventType, EventTypeIndex, Format, Options, Reader, Record, Region,
    TraceHeader,
};

use crate::live::LiveSession;
use crate::session::{EventTypeId, Loss, Session};
use crate::stacks::StackId;

/// The schemas of a reader's event types, made as they come up.
#[derive(Debug, Default)]
pub struct Schemas {
    of_type: Vec<Arc<EventSchema>>,
    /// V6 labels can give an event another version than its type has.
    of_version: HashMap<(EventTypeIndex, u8), Arc<EventSchema>>,
}

impl Schemas {
    /// The schema of a record's type.
    pub fn of(&mut self, types: &[EventType], record: &Record<'_>) -> &Arc<EventSchema> {
        while self.of_type.len() < types.len() {
            self.of_type
                .push(Arc::new(schema(&types[self.of_type.len()], None)));
        }
        let index = record.event_type;
        match record.version_override() {
            None => &self.of_type[index.index()],
            Some(version) => self
                .of_version
                .entry((index, version))
                .or_insert_with(|| Arc::new(schema(&types[index.index()], Some(version)))),
        }
    }
}

/// Reads a trace into a session. Damage is counted in the diagnostics; what was readable is in the session.
///
/// # Errors
///
/// Only when the source is no such trace, or cannot be read.
pub fn read(source: impl Read, session: &mut Session) -> Result<Diagnostics, Error> {
    read_with(source, Options::default(), session)
}

/// As [`read`], with options for the reader.
///
/// # Errors
///
/// As [`read`].
pub fn read_with(
    source: impl Read,
    options: Options,
    session: &mut Session,
) -> Result<Diagnostics, Error> {
    let mut reader = Reader::with_options(source, options)?;
    let mut feed = Feed::begin(&mut reader, session);
    while let Some(region) = reader.next_region()? {
        feed.region(&region, session);
        feed.losses(reader.diagnostics(), session);
    }
    feed.losses(reader.diagnostics(), session);
    Ok(reader.diagnostics().clone())
}

/// Reads a trace, perhaps while it is still being written, into a live session.
///
/// What a region of the trace tells (its events up to a sequence point) is published when the region is complete: no
/// event of an earlier time can come after it.
///
/// # Errors
///
/// As [`read`].
pub fn read_live(source: impl Read, live: &mut LiveSession) -> Result<Diagnostics, Error> {
    let mut reader = Reader::new(source)?;
    let mut feed = Feed::begin(&mut reader, live);
    while let Some(region) = reader.next_region()? {
        let last_ns = feed.region(&region, live);
        feed.losses(reader.diagnostics(), live);
        live.advance(last_ns);
        live.publish();
    }
    feed.losses(reader.diagnostics(), live);
    Ok(reader.diagnostics().clone())
}

/// What is kept between the regions of a trace.
#[derive(Default)]
struct Feed {
    known: Vec<(EventTypeId, Arc<EventSchema>)>,
    schemas: Schemas,
    stacks: RegionStacks,
    /// Time and position of the records whose order matters, of the region at hand.
    ordered: Vec<(u64, u32)>,
    losses: usize,
}

impl Feed {
    fn begin<R: Read>(reader: &mut Reader<R>, session: &mut Session) -> Self {
        describe(reader.header(), session);
        let wanted = session.options.clone();
        reader.select(move |event_type| wanted.wants(&schema(event_type, None)));
        Feed::default()
    }

    /// Pushes the events of a region; returns the latest of their times.
    fn region(&mut self, region: &Region<'_>, session: &mut Session) -> u64 {
        for event_type in &region.event_types()[self.known.len()..] {
            let schema = Arc::new(schema(event_type, None));
            self.known
                .push((session.event_type(schema.clone()), schema));
        }
        let last_ns = region.last_time_ns();
        for (index, count) in region.counted() {
            let (id, _) = &self.known[index.index()];
            session.counted(*id, count.events, count.stacks, last_ns);
        }
        self.stacks.begin(region);
        // Only what speaks of code has to come in the order of time.
        self.ordered.clear();
        for (record, position) in region.records().zip(0..) {
            let (id, schema) = &self.known[record.event_type.index()];
            if session.needs_order(*id) {
                self.ordered.push((record.time_ns, position));
            } else {
                let stack = self.stacks.get(region, &record, *id, session);
                push(session, region, &record, *id, schema, stack);
            }
        }
        // Each thread's records stand in order already, and positions keep the order of the file within one time.
        self.ordered.sort();
        for &(_, position) in &self.ordered {
            let Some(record) = region.record(position as usize) else {
                continue;
            };
            let (id, schema) = &self.known[record.event_type.index()];
            let (mut id, mut schema) = (*id, schema);
            if record.version_override().is_some() {
                schema = self.schemas.of(region.event_types(), &record);
                id = session.event_type(schema.clone());
            }
            let stack = self.stacks.get(region, &record, id, session);
            push(session, region, &record, id, schema, stack);
        }
        last_ns
    }

    /// Tells of the losses that were found since the last call.
    fn losses(&mut self, diagnostics: &Diagnostics, session: &mut Session) {
        for window in &diagnostics.loss_windows[self.losses..] {
            session.lost(Loss {
                from_ns: window.from_ns,
                to_ns: window.to_ns,
                events: window.events,
            });
        }
        self.losses = diagnostics.loss_windows.len();
    }
}

/// Stack ids of the rows of a region, each looked up once.
#[derive(Default)]
struct RegionStacks {
    of_row: Vec<Option<Option<StackId>>>,
}

/// Whether an event has a stack, and its id where the session keeps it.
#[derive(Clone, Copy)]
enum RowStack {
    None,
    Unwanted,
    Kept(StackId),
}

impl RegionStacks {
    fn begin(&mut self, region: &Region<'_>) {
        self.of_row.clear();
        self.of_row.resize(region.stack_count(), None);
    }

    #[inline]
    fn get(
        &mut self,
        region: &Region<'_>,
        record: &Record<'_>,
        id: EventTypeId,
        session: &mut Session,
    ) -> RowStack {
        let Some(row) = record.stack else {
            return RowStack::None;
        };
        if !session.wants_stack(id) {
            return RowStack::Unwanted;
        }
        let stack = self.of_row[row.index()]
            .get_or_insert_with(|| session.stacks().intern(region.stack(row).addresses()));
        stack.map_or(RowStack::Unwanted, RowStack::Kept)
    }
}

#[inline]
fn push(
    session: &mut Session,
    region: &Region<'_>,
    record: &Record<'_>,
    id: EventTypeId,
    schema: &EventSchema,
    stack: RowStack,
) {
    let raw = raw_event(region.header(), record, schema);
    let stack = match stack {
        RowStack::None => None,
        RowStack::Unwanted => {
            session.has_stack(id);
            None
        }
        RowStack::Kept(stack) => Some(stack),
    };
    session.push(id, &raw, Some(record.capture_thread), stack);
}

/// A record as an event in bytes.
pub fn raw_event<'a>(
    header: &TraceHeader,
    record: &Record<'a>,
    schema: &'a EventSchema,
) -> RawEvent<'a> {
    RawEvent {
        time_ns: record.time_ns,
        process_id: record.process_id,
        thread_id: Some(record.thread_id),
        processor: record.processor,
        pointer_size: pointer_size(header),
        schema,
        payload: record.payload,
    }
}

fn pointer_size(header: &TraceHeader) -> PointerSize {
    if header.pointer_size == 4 {
        PointerSize::Four
    } else {
        PointerSize::Eight
    }
}

fn describe(header: &TraceHeader, session: &mut Session) {
    let family = match header.format {
        Format::Netperf => "netperf",
        Format::Nettrace => "nettrace",
    };
    let facts = session.facts();
    facts.format = family.to_owned();
    facts.version = match header.version {
        (major, 0) => major.to_string(),
        (major, minor) => format!("{major}.{minor}"),
    };
    facts.start_unix_ns = header
        .start
        .and_then(|start| start.unix_ns())
        .map(i128::from);
    facts.pointer_size = Some(header.pointer_size);
    facts.processors = header.processors;
    facts.sample_interval_ns = header.sample_rate_ns.filter(|&ns| ns > 0).map(u64::from);
    facts.process_id = header.process_id;
}

/// What the session needs to know of an event type.
fn schema(event_type: &EventType, version: Option<u8>) -> EventSchema {
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
        Some(fields) => schema.with_fields(convert_fields(fields)),
        None => schema,
    }
}

fn provider_of(event_type: &EventType) -> Provider {
    match (
        Provider::from_name(&event_type.provider),
        event_type.provider_guid,
    ) {
        (Provider::Name(name), Some(guid)) => match Provider::from_guid(Guid(guid)) {
            // A GUID says more than a name only where it is one that is known, or where it stands for the name (netperf V1).
            Provider::Guid(guid) if guid.to_string() != *name => Provider::Name(name),
            by_guid => by_guid,
        },
        (by_name, _) => by_name,
    }
}

fn convert_fields(fields: &[chronosym_nettrace::Field]) -> Vec<Field> {
    fields
        .iter()
        .map(|field| Field::new(field.name.as_str(), convert_type(&field.field_type)))
        .collect()
}

fn convert_type(field_type: &chronosym_nettrace::FieldType) -> FieldType {
    use chronosym_nettrace::FieldType as From;
    let boxed = |element: &From| Box::new(convert_type(element));
    match field_type {
        From::Object(fields) => FieldType::Object(convert_fields(fields)),
        From::Boolean32 => FieldType::Bool32,
        From::Boolean8 => FieldType::Bool8,
        From::Utf16Char => FieldType::Char16,
        From::Utf8Char => FieldType::Char8,
        From::Int8 => FieldType::I8,
        From::UInt8 => FieldType::U8,
        From::Int16 => FieldType::I16,
        From::UInt16 => FieldType::U16,
        From::Int32 => FieldType::I32,
        From::UInt32 => FieldType::U32,
        From::Int64 => FieldType::I64,
        From::UInt64 => FieldType::U64,
        From::Float32 => FieldType::F32,
        From::Float64 => FieldType::F64,
        From::Decimal => FieldType::Decimal,
        From::DateTime => FieldType::FileTime,
        From::Guid => FieldType::Guid,
        From::Utf16String => FieldType::Utf16,
        From::Array(element) => FieldType::Array(boxed(element)),
        From::VarInt => FieldType::VarInt,
        From::VarUInt => FieldType::VarUInt,
        From::FixedArray(element, count) => FieldType::FixedArray(boxed(element), *count),
        From::RelLoc(element) => FieldType::RelLoc(boxed(element)),
        From::DataLoc(element) => FieldType::DataLoc(boxed(element)),
        _ => FieldType::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(name: &str, guid: Option<&Provider>) -> Provider {
        let mut event_type = EventType::default();
        event_type.provider = name.to_owned();
        event_type.provider_guid = guid.and_then(Provider::guid).map(|guid| guid.0);
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
        // Recorders for which a provider was named by its GUID write that.
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
