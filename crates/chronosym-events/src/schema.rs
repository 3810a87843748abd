use std::borrow::Cow;
use std::sync::Arc;

use crate::cursor::{Action, Cursor, Form, Shape};
use crate::describe::describe;
use crate::kernel::classes;
use crate::layouts::{self, Layout};
use crate::value::FieldList;
use crate::{
    DecodeError, Event, Field, Guid, MethodEvent, PointerSize, Provider, published, universal,
};

/// The id of the events that carry an EventSource's manifest.
pub const MANIFEST_EVENT_ID: u32 = 0xfffe;

/// Identifies an event type.
///
/// Closed: every format identifies its events in one of these ways.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum EventKey {
    /// Events of ETW manifests and of EventPipe.
    Manifest {
        /// The provider that logs it.
        provider: Provider,
        /// The provider's id of it.
        id: u32,
        /// The version of its layout.
        version: u32,
    },
    /// Classic (MOF) events of the Windows kernel; the pointer width is [`RawEvent::pointer_size`].
    Classic {
        /// The class GUID.
        class: Guid,
        /// The opcode.
        opcode: u8,
        /// The version of its layout.
        version: u16,
    },
    /// Events that are identified by name: `Universal.*` and TraceLogging.
    Named {
        /// The provider's name.
        provider: Arc<str>,
        /// The event's name.
        name: Arc<str>,
    },
}

impl EventKey {
    /// Returns the key of the event with a symbol of the CLR's manifest, which LTTng uses to name
    /// tracepoints: `MethodLoadVerbose_V1` is version 1 of `MethodLoadVerbose`.
    pub fn from_symbol(provider: &Provider, symbol: &str) -> Option<Self> {
        let (id, version) = layouts::by_symbol(provider, symbol)?;
        let provider = provider.clone();
        Some(Self::Manifest {
            provider,
            id,
            version,
        })
    }

    fn layout(&self) -> Option<&'static Layout> {
        match self {
            Self::Manifest { provider, id, .. } => layouts::manifest(provider, *id),
            Self::Classic { class, opcode, .. } => layouts::classic(*class, *opcode),
            Self::Named { .. } => None,
        }
    }
}

/// An event type: the properties that all its events share. A reader creates it once.
///
/// # Examples
///
/// ```
/// use chronosym_events::{EventKey, EventSchema, Field, FieldType, Provider};
///
/// let load = EventSchema::new(EventKey::Manifest { provider: Provider::Runtime, id: 143, version: 2 });
/// assert_eq!((load.name().as_ref(), load.is_typed()), ("MethodLoadVerbose", true));
///
/// // An event that its trace describes.
/// let provider = Provider::from_name("My-EventSource");
/// let request = EventSchema::new(EventKey::Manifest { provider, id: 1, version: 0 })
///     .with_name("Request")
///     .with_fields([Field::new("Path", FieldType::Utf16)]);
/// assert_eq!((request.name().as_ref(), request.is_typed()), ("Request", false));
/// ```
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
    Layout(&'static Layout),
    Universal(universal::Plan),
}

impl EventSchema {
    /// Returns the schema of an event type of which only the key is known, with its typed decoder.
    pub fn new(key: EventKey) -> Self {
        let layout = key.layout();
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
            published_name: layout.map(|layout| layout.name.into()).or(published.name),
            event_name: None,
            opcode: 0,
            level: 0,
            keywords: 0,
            fields: published.fields,
            decoder: layout.map(Decoder::Layout),
        };
        schema.plan_universal();
        schema
    }

    /// Adds the event's name from the trace; an empty one counts as none.
    #[must_use]
    pub fn with_name(mut self, name: &str) -> Self {
        self.event_name = (!name.is_empty()).then(|| name.into());
        self.plan_universal();
        self
    }

    /// Adds the provider's name from the trace.
    #[must_use]
    pub fn with_provider_name(mut self, name: &str) -> Self {
        self.provider_name = name.into();
        self
    }

    /// Adds the fields that the trace describes. An empty description, which the CLR writes for its
    /// own events, does not replace published fields.
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

    /// Returns the identity of the event type.
    pub fn key(&self) -> &EventKey {
        &self.key
    }

    /// Returns the provider's name, or its GUID if the trace has no name.
    pub fn provider_name(&self) -> &Arc<str> {
        &self.provider_name
    }

    /// Returns the event's name in the trace.
    pub fn event_name(&self) -> Option<&Arc<str>> {
        self.event_name.as_ref()
    }

    /// Returns the opcode.
    pub fn opcode(&self) -> u8 {
        self.opcode
    }

    /// Returns the level: 1 critical to 5 verbose, 0 always.
    pub fn level(&self) -> u8 {
        self.level
    }

    /// Returns the keywords, as bits.
    pub fn keywords(&self) -> u64 {
        self.keywords
    }

    /// Returns the fields that the trace describes, or the published ones of an event without a
    /// typed decoder.
    pub fn fields(&self) -> Option<&[Field]> {
        self.fields.as_deref()
    }

    /// Returns the event's id: the manifest's, or the opcode of a classic event.
    pub fn id(&self) -> Option<u32> {
        match &self.key {
            EventKey::Manifest { id, .. } => Some(*id),
            EventKey::Classic { opcode, .. } => Some((*opcode).into()),
            EventKey::Named { .. } => None,
        }
    }

    /// Returns the version of the event's layout.
    pub fn version(&self) -> u32 {
        match &self.key {
            EventKey::Manifest { version, .. } => *version,
            EventKey::Classic { version, .. } => (*version).into(),
            EventKey::Named { .. } => 0,
        }
    }

    /// Returns the event's published name, or else its name in the trace, or else `Event(id)`.
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

    /// Returns whether events of this type decode to an [`Event`].
    pub fn is_typed(&self) -> bool {
        self.decoder.is_some()
    }

    /// Returns whether typed events state the end of their subject: an unload or stop.
    pub fn ends(&self) -> bool {
        match &self.decoder {
            Some(Decoder::Layout(layout)) => layout.shape.action == Action::Unload,
            Some(Decoder::Universal(_)) => self.event_name.as_deref() == Some("ProcessExit"),
            None => false,
        }
    }

    fn plan_universal(&mut self) {
        let (provider, name) = match &self.key {
            EventKey::Named { provider, name } => (Provider::from_name(provider), Some(name)),
            EventKey::Manifest { provider, .. } => (provider.clone(), self.event_name.as_ref()),
            EventKey::Classic { .. } => return,
        };
        // Traces do not describe events without fields (ProcessExit).
        let fields = self.fields.as_deref().unwrap_or_default();
        if let Some(name) = name
            && let Some(plan) = universal::Plan::new(&provider, name, fields)
        {
            self.decoder = Some(Decoder::Universal(plan));
        }
    }
}

/// An undecoded event, borrowed from a reader's buffer.
///
/// Closed: callers build it as a literal.
#[derive(Clone, Copy, Debug)]
pub struct RawEvent<'a> {
    /// Nanoseconds since the start of the trace; earlier events have 0.
    pub time_ns: u64,
    /// The process that it belongs to, if the record states it.
    pub process_id: Option<u32>,
    /// The thread that it belongs to, if the record states it.
    pub thread_id: Option<u64>,
    /// The processor that logged it.
    pub processor: Option<u32>,
    /// The size of pointers in the payload.
    pub pointer_size: PointerSize,
    /// Its event type.
    pub schema: &'a EventSchema,
    /// The payload.
    pub payload: &'a [u8],
}

impl<'a> RawEvent<'a> {
    /// Decodes the payload; `Ok(None)` for events without a typed decoder.
    ///
    /// A version newer than the known ones is decoded as the newest known one, because runtimes
    /// append fields.
    ///
    /// # Errors
    /// [`DecodeError`] when the payload ends too early or holds a value that its layout does not
    /// allow.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_events::{Event, EventKey, EventSchema, PointerSize, Provider, RawEvent};
    /// # use chronosym_support::payload::Method;
    ///
    /// let schema = EventSchema::new(EventKey::Manifest { provider: Provider::Runtime, id: 143, version: 2 });
    /// # let names = ("App.Program", "Main", "void ()");
    /// # let payload = Method { start: 0x7f00_1000, size: 64, names: Some(names), ..Default::default() }.encode(2);
    /// let raw = RawEvent {
    ///     time_ns: 100,
    ///     process_id: Some(1),
    ///     thread_id: Some(2),
    ///     processor: None,
    ///     pointer_size: PointerSize::Eight,
    ///     schema: &schema,
    ///     payload: &payload,
    /// };
    /// let Some(Event::Method(method)) = raw.decode()? else { panic!("another event") };
    /// assert_eq!((method.start, method.size), (0x7f00_1000, 64));
    /// assert_eq!(method.names.unwrap().name.to_string(), "Main");
    /// # Ok::<(), chronosym_events::DecodeError>(())
    /// ```
    pub fn decode(&self) -> Result<Option<Event<'a>>, DecodeError> {
        match &self.schema.decoder {
            None => Ok(None),
            Some(Decoder::Layout(layout)) => {
                let version = self.schema.version();
                if version < layout.oldest {
                    return Err(DecodeError::UnknownVersion(version));
                }
                let mut c = Cursor::new(self.payload, version, self.pointer_size, layout.shape);
                (layout.decode)(&mut c)
            }
            Some(Decoder::Universal(plan)) => plan
                .decode(self.payload, self.pointer_size)
                .map(|e| Some(Event::Universal(e))),
        }
    }

    /// Returns the fields in order, by their published names or by the trace's description;
    /// `Ok(None)` for events that have neither.
    ///
    /// # Errors
    /// [`DecodeError`] as for [`RawEvent::decode`]. Described events give no error: bytes that
    /// cannot be read become a field `Rest` in hex.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_events::{EventKey, EventSchema, Field, FieldType, PointerSize, Provider, RawEvent};
    ///
    /// let provider = Provider::from_name("My-EventSource");
    /// let schema = EventSchema::new(EventKey::Manifest { provider, id: 1, version: 0 })
    ///     .with_fields([Field::new("Path", FieldType::Utf16), Field::new("Status", FieldType::U32)]);
    /// let raw = RawEvent {
    ///     time_ns: 0,
    ///     process_id: None,
    ///     thread_id: None,
    ///     processor: None,
    ///     pointer_size: PointerSize::Eight,
    ///     schema: &schema,
    ///     payload: b"/\0\0\0\xc8\0\0\0",
    /// };
    /// let fields = raw.fields()?.unwrap();
    /// assert_eq!(fields.to_string(), "Path=/, Status=200");
    /// assert_eq!(fields.get("Status").unwrap().to_string(), "200");
    /// # Ok::<(), chronosym_events::DecodeError>(())
    /// ```
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

    /// Returns the method of a MethodJittingStarted event without decoding its names; `None` for
    /// other events, and if the payload may be incomplete.
    #[inline]
    pub fn jitted_method(&self) -> Option<u64> {
        const NAMES_AT: usize = 24;
        let EventKey::Manifest {
            provider: Provider::Runtime,
            id: 145,
            version: 1,
        } = self.schema.key
        else {
            return None;
        };
        // After the last of three terminators comes the number of a runtime instance. It is smaller
        // than any character of a name, at which the payload may be cut.
        let (before, instance) = self.payload.split_last_chunk()?;
        let names = before.get(NAMES_AT..)?;
        let is_whole = names.len() >= 6 && names.len() % 2 == 0 && names.ends_with(&[0, 0]);
        let method = u64::from_le_bytes(*self.payload.first_chunk()?);
        (is_whole && u16::from_le_bytes(*instance) < 0x20).then_some(method)
    }

    /// Decodes a method event that ends too early: all fields of the newest older version that is
    /// complete, or the body without its names where the strings are missing (seen from .NET 5 on
    /// x86). `None` when that fails too, and for other events.
    pub fn method_in_part(&self) -> Option<MethodEvent<'a>> {
        let Some(Decoder::Layout(layout)) = &self.schema.decoder else {
            return None;
        };
        let bare = Shape {
            form: Form::Plain,
            ..layout.shape
        };
        [(1, layout.shape), (0, layout.shape), (0, bare)]
            .into_iter()
            .find_map(|(version, shape)| {
                let mut c = Cursor::new(self.payload, version, self.pointer_size, shape);
                match (layout.decode)(&mut c) {
                    // Every method has a name; an empty one was read from the bytes after missing
                    // strings.
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
