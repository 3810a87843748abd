use std::borrow::Cow;
use std::sync::Arc;

use crate::cursor::{Cursor, Form, Shape};
use crate::describe::describe;
use crate::kernel::classes;
use crate::rows::{self, Row};
use crate::value::FieldList;
use crate::{
    DecodeError, Event, Field, Guid, MethodEvent, PointerSize, Provider, published, universal,
};

/// The id of the events that carry an EventSource's manifest.
pub const MANIFEST_EVENT_ID: u32 = 0xfffe;

/// Who an event is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum EventKey {
    /// Events of ETW manifests and of EventPipe.
    Manifest {
        /// Who logs it.
        provider: Provider,
        /// The provider's number for it.
        id: u32,
        /// The version of its layout.
        version: u32,
    },
    /// Classic (MOF) events of the Windows kernel; the pointer width is [`RawEvent::pointer_size`].
    Classic {
        /// The class GUID.
        class: Guid,
        /// What happened.
        opcode: u8,
        /// The version of its layout.
        version: u16,
    },
    /// Events known by name: `Universal.*` and TraceLogging.
    Named {
        /// The provider's name.
        provider: Arc<str>,
        /// The event's name.
        name: Arc<str>,
    },
}

impl EventKey {
    /// The event of one of the runtime's providers that its manifest calls `symbol`, as LTTng names tracepoints:
    /// `MethodLoadVerbose_V1` is version 1 of `MethodLoadVerbose`.
    pub fn from_symbol(provider: &Provider, symbol: &str) -> Option<Self> {
        let (id, version) = rows::by_symbol(provider, symbol)?;
        let provider = provider.clone();
        Some(Self::Manifest {
            provider,
            id,
            version,
        })
    }

    fn row(&self) -> Option<&'static Row> {
        match self {
            Self::Manifest { provider, id, .. } => rows::manifest(provider, *id),
            Self::Classic { class, opcode, .. } => rows::classic(*class, *opcode),
            Self::Named { .. } => None,
        }
    }
}

/// What is the same for all events of one type; a reader makes it once.
#[derive(Clone, Debug)]
pub struct EventSchema {
    key: EventKey,
    provider_name: Arc<str>,
    published_name: Option<Cow<'static, str>>,
    event_name: Option<Arc<str>>,
    opcode: u8,
    level: u8,
    keywords: u64,
    fields: Option<Arc<[Field]>>,
    decoder: Option<Decoder>,
}

#[derive(Clone, Debug)]
enum Decoder {
    Row(&'static Row),
    Universal(universal::Plan),
}

impl EventSchema {
    /// The schema of an event type of which nothing but the key is known. Chooses the typed decoder.
    pub fn new(key: EventKey) -> Self {
        let row = key.row();
        let (provider_name, published): (Arc<str>, _) = match &key {
            EventKey::Manifest {
                provider,
                id,
                version,
            } => (
                provider.to_string().into(),
                published::manifest(provider, *id, *version),
            ),
            EventKey::Classic {
                class,
                opcode,
                version,
            } => {
                let name = classes::provider_name(*class);
                let name = name.map_or_else(|| class.to_string(), str::to_owned);
                (name.into(), published::classic(*class, *opcode, *version))
            }
            EventKey::Named { provider, .. } => (provider.clone(), None),
        };
        let published = published.unwrap_or_default();
        let mut schema = Self {
            key,
            provider_name,
            published_name: row.map(|row| row.name.into()).or(published.name),
            event_name: None,
            opcode: 0,
            level: 0,
            keywords: 0,
            fields: published.fields,
            decoder: row.map(Decoder::Row),
        };
        schema.plan_universal();
        schema
    }

    /// Adds the name that the trace gives the event; an empty one is none.
    #[must_use]
    pub fn with_name(mut self, name: &str) -> Self {
        self.event_name = (!name.is_empty()).then(|| name.into());
        self.plan_universal();
        self
    }

    /// Adds the name that the trace gives the provider.
    #[must_use]
    pub fn with_provider_name(mut self, name: &str) -> Self {
        self.provider_name = name.into();
        self
    }

    /// Adds the fields that the trace describes; none at all, as the runtime has it for its own events, say nothing where
    /// the published ones are known.
    #[must_use]
    pub fn with_fields(mut self, fields: impl Into<Arc<[Field]>>) -> Self {
        let fields = fields.into();
        if !fields.is_empty() || self.fields.is_none() {
            self.fields = Some(fields);
        }
        self.plan_universal();
        self
    }

    /// Adds opcode, level and keywords.
    #[must_use]
    pub fn with_descriptor(mut self, opcode: u8, level: u8, keywords: u64) -> Self {
        (self.opcode, self.level, self.keywords) = (opcode, level, keywords);
        self
    }

    /// Who the event is.
    pub fn key(&self) -> &EventKey {
        &self.key
    }

    /// The provider's name, or its GUID where the trace has no name.
    pub fn provider_name(&self) -> &Arc<str> {
        &self.provider_name
    }

    /// The event's name as the trace gives it.
    pub fn event_name(&self) -> Option<&Arc<str>> {
        self.event_name.as_ref()
    }

    /// The opcode.
    pub fn opcode(&self) -> u8 {
        self.opcode
    }

    /// The level: 1 critical to 5 verbose, 0 always.
    pub fn level(&self) -> u8 {
        self.level
    }

    /// The keywords, as bits.
    pub fn keywords(&self) -> u64 {
        self.keywords
    }

    /// The fields that the trace describes, or those published of an event without a typed decoder.
    pub fn fields(&self) -> Option<&[Field]> {
        self.fields.as_deref()
    }

    /// The event's id: the manifest's, or the opcode of a classic event.
    pub fn id(&self) -> Option<u32> {
        match &self.key {
            EventKey::Manifest { id, .. } => Some(*id),
            EventKey::Classic { opcode, .. } => Some((*opcode).into()),
            EventKey::Named { .. } => None,
        }
    }

    /// The version of the event's layout.
    pub fn version(&self) -> u32 {
        match &self.key {
            EventKey::Manifest { version, .. } => *version,
            EventKey::Classic { version, .. } => (*version).into(),
            EventKey::Named { .. } => 0,
        }
    }

    /// The event's published name; without one the trace's own; without that `Event(id)`.
    pub fn name(&self) -> Cow<'_, str> {
        if let EventKey::Named { name, .. } = &self.key {
            return Cow::Borrowed(name);
        }
        match (&self.published_name, &self.event_name) {
            (Some(name), _) => Cow::Borrowed(name),
            (None, Some(name)) => Cow::Borrowed(name),
            (None, None) if self.id() == Some(MANIFEST_EVENT_ID) => Cow::Borrowed("ManifestData"),
            (None, None) => Cow::Owned(format!("Event({})", self.id().unwrap_or_default())),
        }
    }

    /// Whether events of this type decode to an [`Event`].
    pub fn is_typed(&self) -> bool {
        self.decoder.is_some()
    }

    fn plan_universal(&mut self) {
        let (provider, name) = match &self.key {
            EventKey::Named { provider, name } => (Provider::from_name(provider), Some(name)),
            EventKey::Manifest { provider, .. } => (provider.clone(), self.event_name.as_ref()),
            EventKey::Classic { .. } => return,
        };
        // An event without fields (ProcessExit) is described by none.
        let fields = self.fields.as_deref().unwrap_or_default();
        if let Some(name) = name
            && let Some(plan) = universal::Plan::new(&provider, name, fields)
        {
            self.decoder = Some(Decoder::Universal(plan));
        }
    }
}

/// One event in bytes, borrowed from a reader's buffer.
#[derive(Clone, Copy, Debug)]
pub struct RawEvent<'a> {
    /// Nanoseconds since the trace began; earlier events have 0.
    pub time_ns: u64,
    /// The process that it belongs to, where the record says.
    pub process_id: Option<u32>,
    /// The thread that it belongs to, where the record says.
    pub thread_id: Option<u64>,
    /// The processor that logged it.
    pub processor: Option<u32>,
    /// The width of pointers in the payload.
    pub pointer_size: PointerSize,
    /// What is the same for all events of its type.
    pub schema: &'a EventSchema,
    /// Its bytes.
    pub payload: &'a [u8],
}

impl<'a> RawEvent<'a> {
    /// Decodes the payload; `Ok(None)` for events without a typed decoder.
    ///
    /// A version newer than those known is decoded as the newest known one: runtimes only ever append fields.
    ///
    /// # Errors
    /// [`DecodeError`] when the payload ends too early or holds what its layout does not allow.
    pub fn decode(&self) -> Result<Option<Event<'a>>, DecodeError> {
        match &self.schema.decoder {
            None => Ok(None),
            Some(Decoder::Row(row)) => {
                let version = self.schema.version();
                if version < row.oldest {
                    return Err(DecodeError::UnknownVersion(version));
                }
                let mut c = Cursor::new(self.payload, version, self.pointer_size, row.shape);
                (row.decode)(&mut c)
            }
            Some(Decoder::Universal(plan)) => plan
                .decode(self.payload, self.pointer_size)
                .map(|e| Some(Event::Universal(e))),
        }
    }

    /// The fields in order by their published names, or by the trace's own description of them; `Ok(None)` for events of which
    /// neither is known.
    ///
    /// # Errors
    /// [`DecodeError`] as for [`RawEvent::decode`]. Self-described events give no error: what cannot be read is shown in hex.
    pub fn fields(&self) -> Result<Option<FieldList<'a>>, DecodeError> {
        if let Some(event) = self.decode()? {
            return Ok(Some(event.fields()));
        }
        // The runtime's own events come with an empty description, which describes nothing.
        let described = self
            .schema
            .fields()
            .filter(|f| !f.is_empty() || self.payload.is_empty());
        Ok(described.map(|fields| describe(fields, self.payload, self.pointer_size)))
    }

    /// What a method event says that ends too early: all fields of the newest older version that is there in full, or the
    /// body without its names where the strings are missing (seen from .NET 5 on x86). `None` when not even that can be
    /// read, and for other events.
    pub fn method_in_part(&self) -> Option<MethodEvent<'a>> {
        let Some(Decoder::Row(row)) = &self.schema.decoder else {
            return None;
        };
        let bare = Shape {
            form: Form::Plain,
            ..row.shape
        };
        [(1, row.shape), (0, row.shape), (0, bare)]
            .into_iter()
            .find_map(|(version, shape)| {
                let mut c = Cursor::new(self.payload, version, self.pointer_size, shape);
                match (row.decode)(&mut c) {
                    // Every method has a name: an empty one is what follows strings that are missing.
                    Ok(Some(Event::Method(method)))
                        if method.names.is_none_or(|names| !names.name.is_empty()) =>
                    {
                        Some(method)
                    }
                    _ => None,
                }
            })
    }
}
