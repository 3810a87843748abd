//! Input of EventPipe writers: event types, events, and the header of a trace.

/// Header values of a trace.
#[derive(Clone, Debug)]
pub struct TraceInfo {
    /// SYSTEMTIME: year, month, day of week, day, hour, minute, second, millisecond.
    pub start: [u16; 8],
    /// Raw clock at the start, in ticks.
    pub qpc_start: i64,
    /// Ticks a second.
    pub frequency: u64,
    /// 4 or 8.
    pub pointer_size: u8,
    /// The traced process; V6 threads belong to it unless they state another.
    pub process_id: u32,
    /// Hardware threads.
    pub processors: u32,
    /// Nanoseconds between two samples.
    pub sample_rate_ns: u32,
}

impl Default for TraceInfo {
    fn default() -> Self {
        Self {
            start: [2026, 3, 4, 5, 6, 7, 8, 9],
            qpc_start: 1_000_000,
            frequency: 1_000_000_000,
            pointer_size: 8,
            process_id: 4242,
            processors: 8,
            sample_rate_ns: 1_000_000,
        }
    }
}

impl TraceInfo {
    /// Raw clock of a time in ns since the start.
    pub fn ticks(&self, time_ns: i64) -> i64 {
        let ticks = i128::from(time_ns) * i128::from(self.frequency) / 1_000_000_000;
        self.qpc_start.wrapping_add(ticks as i64)
    }
}

/// An event type of the writer that defined it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId(pub(crate) usize);

/// All properties of an event type. Formats omit those that they cannot store.
#[derive(Clone, Debug, Default)]
pub struct TypeSpec {
    /// Provider name.
    pub provider: String,
    /// Event id.
    pub id: u32,
    /// Payload version.
    pub version: u32,
    /// Event name; the native runtime writes none.
    pub name: String,
    /// Keyword mask.
    pub keywords: u64,
    /// Level.
    pub level: u32,
    /// Opcode ("V5" tag, V6).
    pub opcode: Option<u8>,
    /// Fields.
    pub fields: Vec<FieldSpec>,
    /// Provider GUID in wire order (V1, V6).
    pub provider_guid: Option<[u8; 16]>,
    /// Message template (V6).
    pub message_template: Option<String>,
    /// Description (V6).
    pub description: Option<String>,
    /// Key-value pairs (V6).
    pub key_values: Vec<(String, String)>,
}

impl TypeSpec {
    /// A type without name and fields, as the native runtime defines them.
    pub fn new(provider: &str, id: u32, version: u32) -> Self {
        Self {
            provider: provider.to_owned(),
            id,
            version,
            ..Self::default()
        }
    }

    /// Gives it a name.
    pub fn named(mut self, name: &str) -> Self {
        self.name = name.to_owned();
        self
    }

    /// Gives it another field.
    pub fn field(mut self, name: &str, kind: FieldKind) -> Self {
        self.fields.push(FieldSpec {
            name: name.to_owned(),
            kind,
        });
        self
    }

    /// Sets keywords and level.
    pub fn at_level(mut self, keywords: u64, level: u32) -> Self {
        self.keywords = keywords;
        self.level = level;
        self
    }

    /// Sets the opcode.
    pub fn with_opcode(mut self, opcode: u8) -> Self {
        self.opcode = Some(opcode);
        self
    }
}

/// A field of an event type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldSpec {
    /// Field name.
    pub name: String,
    /// How it is stored.
    pub kind: FieldKind,
}

/// Type of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// A type that its code describes completely.
    Plain(u8),
    /// Fields inside a field.
    Object(Vec<FieldSpec>),
    /// u16 count, elements.
    Array(Box<FieldKind>),
    /// A fixed number of elements.
    FixedArray(Box<FieldKind>, u16),
    /// Bytes elsewhere, relative to the field.
    RelLoc(Box<FieldKind>),
    /// Bytes elsewhere, relative to the payload.
    DataLoc(Box<FieldKind>),
}

impl FieldKind {
    /// Four-byte boolean.
    pub const BOOL32: Self = Self::Plain(3);
    /// One byte.
    pub const U8: Self = Self::Plain(6);
    /// Two bytes.
    pub const U16: Self = Self::Plain(8);
    /// Four bytes, signed.
    pub const I32: Self = Self::Plain(9);
    /// Four bytes.
    pub const U32: Self = Self::Plain(10);
    /// Eight bytes, signed.
    pub const I64: Self = Self::Plain(11);
    /// Eight bytes.
    pub const U64: Self = Self::Plain(12);
    /// Eight-byte float.
    pub const F64: Self = Self::Plain(14);
    /// GUID.
    pub const GUID: Self = Self::Plain(17);
    /// NUL-terminated UTF-16.
    pub const UTF16: Self = Self::Plain(18);
    /// Unsigned varint (V6).
    pub const VAR_U: Self = Self::Plain(21);
    /// UTF-8 code unit (V6); in `Universal.*` a u16-prefixed UTF-8 string.
    pub const UTF8: Self = Self::Plain(23);

    /// An array of elements with a count in front.
    pub fn array_of(element: Self) -> Self {
        Self::Array(Box::new(element))
    }
}

/// An event to be written.
#[derive(Clone, Debug)]
pub struct EventSpec<'a> {
    /// Its type.
    pub event_type: TypeId,
    /// Time in ns since the start of the trace.
    pub time_ns: i64,
    /// OS thread id.
    pub thread: u64,
    /// Process of the thread, if not the header's (V6).
    pub process: Option<u32>,
    /// OS id of the thread that writes it, if not the same (V4 and later).
    pub capture_thread: Option<u64>,
    /// Processor (V4 and later).
    pub processor: u32,
    /// Addresses, leaf first; empty for no stack.
    pub stack: &'a [u64],
    /// Payload bytes.
    pub payload: &'a [u8],
    /// Activity id; zeros for none.
    pub activity: [u8; 16],
    /// Related activity id; zeros for none.
    pub related_activity: [u8; 16],
    /// Further labels (V6).
    pub labels: &'a [LabelSpec],
}

impl<'a> EventSpec<'a> {
    /// An event without stack and payload.
    pub fn new(event_type: TypeId, time_ns: i64, thread: u64) -> Self {
        Self {
            event_type,
            time_ns,
            thread,
            process: None,
            capture_thread: None,
            processor: 0,
            stack: &[],
            payload: &[],
            activity: [0; 16],
            related_activity: [0; 16],
            labels: &[],
        }
    }

    /// With a stack, leaf first.
    pub fn stack(mut self, stack: &'a [u64]) -> Self {
        self.stack = stack;
        self
    }

    /// With a payload.
    pub fn payload(mut self, payload: &'a [u8]) -> Self {
        self.payload = payload;
        self
    }

    /// Sets the process (V6).
    pub fn process(mut self, process: u32) -> Self {
        self.process = Some(process);
        self
    }

    /// Written by another thread.
    pub fn captured_by(mut self, thread: u64) -> Self {
        self.capture_thread = Some(thread);
        self
    }
}

/// A label of a V6 event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LabelSpec {
    /// Activity id.
    Activity([u8; 16]),
    /// Related activity id.
    RelatedActivity([u8; 16]),
    /// Trace id.
    Trace([u8; 16]),
    /// Span id.
    Span(u64),
    /// Key and text.
    Text(String, String),
    /// Key and number.
    Number(String, i64),
    /// Opcode instead of the type's.
    Opcode(u8),
    /// Keywords instead of the type's.
    Keywords(u64),
    /// Level instead of the type's.
    Level(u8),
    /// Version instead of the type's.
    Version(u8),
}
