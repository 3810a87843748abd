//! Event types as metadata records define them.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "counts of what was read, and ids below DENSE_IDS"
)]

use std::ops::Range;

use chronosym_types::hash::HashMap;
use chronosym_types::{Cursor, Field, Guid};

use crate::diagnostics::Diagnostics;
use crate::fault::{Fault, Parsed};
use crate::field::{Form, field_list};

/// Position of an [`EventType`] in [`Reader::event_types`](crate::Reader::event_types): stable for
/// the whole read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventTypeIndex(pub u32);

impl EventTypeIndex {
    /// As an index of a slice.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The description of one kind of event in the trace.
///
/// # Examples
///
/// ```
/// use chronosym_nettrace::{Options, Reader};
/// # use chronosym_support::{nettrace::NettraceWriter, trace::{FieldKind, TypeSpec}};
/// # let mut writer = NettraceWriter::v4();
/// # let spec = TypeSpec::new("My-EventSource", 1, 0).named("Request").field("Path", FieldKind::Plain(18));
/// # let request = writer.define(spec);
/// # writer.event(request, 300, 1, &[], &[b'/', 0, 0, 0]);
/// # let trace = writer.finish();
///
/// let mut reader = Reader::new(&trace[..], Options::default())?;
/// let region = reader.next_region()?.unwrap();
/// let event_type = region.event_type(region.record(0).unwrap().event_type).unwrap();
/// assert_eq!((event_type.provider.as_str(), event_type.id), ("My-EventSource", 1));
/// assert_eq!(event_type.name, "Request");
/// assert_eq!(&*event_type.fields.as_ref().unwrap()[0].name, "Path");
/// # Ok::<(), chronosym_nettrace::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventType {
    /// Provider name, or in netperf V1 its GUID as text. Names are compared without regard to case.
    pub provider: String,
    /// Event id within the provider.
    pub id: u32,
    /// Version of the event's payload.
    pub version: u32,
    /// Event name; empty for all events of the native runtime.
    pub name: String,
    /// Keywords, a bit mask.
    pub keywords: u64,
    /// Level: 1 critical to 5 verbose, 0 always.
    pub level: u32,
    /// Opcode, where one is given ("V5" tags, V6).
    pub opcode: Option<u8>,
    /// Fields of the payload in order. Empty when the trace describes none (native runtime events);
    /// `None` when there is a description that cannot be read.
    pub fields: Option<Vec<Field>>,
    /// Provider GUID (netperf V1, V6 option).
    pub provider_guid: Option<Guid>,
    /// Message template (V6 option).
    pub message_template: Option<String>,
    /// Description (V6 option).
    pub description: Option<String>,
    /// Further key-value pairs (V6 option).
    pub key_values: Vec<(String, String)>,
}

impl EventType {
    fn has_known_fields(&self) -> bool {
        let fields = self.fields.as_ref();
        fields.is_some_and(|fields| fields.iter().all(|field| field.ty.is_known()))
    }
}

/// The event type of a metadata id.
#[derive(Clone, Copy)]
pub(crate) struct TypeChoice {
    /// Index of the type, or [`NO_TYPE`].
    pub(crate) event_type: u32,
    pub(crate) kept: Kept,
}

/// Which events of a type become records; others are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    All,
    /// Those at the selected times.
    AtTimes,
    None,
}

pub(crate) const NO_TYPE: u32 = u32::MAX;

const UNDEFINED: TypeChoice = TypeChoice {
    event_type: NO_TYPE,
    kept: Kept::All,
};

/// The types defined so far, and which of them each metadata id names now.
#[derive(Default)]
pub(crate) struct EventTypes {
    types: Vec<EventType>,
    /// For each type which of its events become records.
    kept: Vec<Kept>,
    selection: Selection,
    /// For ids below [`DENSE_IDS`].
    dense: Vec<TypeChoice>,
    sparse: HashMap<u32, TypeChoice>,
    /// By definition without id, to recognize repeated ones.
    by_body: HashMap<Vec<u8>, u32>,
    /// Number of definitions beyond [`MAX_TYPES`].
    left_out: u64,
}

/// Maximum number of types, each of which takes some hundred bytes here and in readers: .NET's
/// providers have a few thousand together.
const MAX_TYPES: usize = 1 << 16;

/// Decides about a type.
type Decides = Box<dyn Fn(&EventType) -> bool + Send>;

/// Decides which events become records.
#[derive(Default)]
struct Selection {
    /// Whether events of a type become records at all.
    wants: Option<Decides>,
    /// The times, in ticks of the raw clock, at which events of some types become records.
    times: Option<(Range<i64>, Decides)>,
}

impl Selection {
    fn kept(&self, event_type: &EventType) -> Kept {
        if self.wants.as_ref().is_some_and(|wants| !wants(event_type)) {
            return Kept::None;
        }
        match &self.times {
            Some((_, is_timed)) if is_timed(event_type) => Kept::AtTimes,
            _ => Kept::All,
        }
    }
}

const DENSE_IDS: u32 = 1 << 16;

impl EventTypes {
    pub(crate) fn all(&self) -> &[EventType] {
        &self.types
    }

    /// From now on decides which types' events become records.
    pub(crate) fn select(&mut self, wants: Decides) {
        self.selection.wants = Some(wants);
        self.select_again();
    }

    /// From now on events of some types become records only at times, in ticks of the raw clock.
    pub(crate) fn select_times(&mut self, times: Range<i64>, is_timed: Decides) {
        self.selection.times = Some((times, is_timed));
        self.select_again();
    }

    fn select_again(&mut self) {
        let kept = self.types.iter().map(|it| self.selection.kept(it));
        self.kept = kept.collect();
        for type_choice in self.dense.iter_mut().chain(self.sparse.values_mut()) {
            let kept = self.kept.get(type_choice.event_type as usize);
            type_choice.kept = kept.copied().unwrap_or(Kept::All);
        }
    }

    /// Returns whether an event at a time, in ticks of the raw clock, is only counted.
    #[inline]
    pub(crate) fn is_counted(&self, type_choice: TypeChoice, time: i64) -> bool {
        match type_choice.kept {
            Kept::All => false,
            Kept::AtTimes => {
                (self.selection.times.as_ref()).is_some_and(|it| !it.0.contains(&time))
            }
            Kept::None => true,
        }
    }

    #[inline]
    pub(crate) fn find(&self, id: u32) -> TypeChoice {
        match self.dense.get(id as usize) {
            Some(type_choice) => *type_choice,
            None => self.sparse.get(&id).copied().unwrap_or(UNDEFINED),
        }
    }

    /// Forgets all ids, but no type (as a V6 sequence point may request).
    pub(crate) fn forget_ids(&mut self) {
        self.dense.clear();
        self.sparse.clear();
    }

    /// Takes in a definition; `body` is its bytes without the id.
    fn define(
        &mut self,
        id: u32,
        body: &[u8],
        read: impl FnOnce() -> Parsed<EventType>,
    ) -> Parsed<()> {
        let event_type = match self.by_body.get(body) {
            Some(&index) => index,
            None if self.types.len() >= MAX_TYPES => {
                self.left_out = self.left_out.saturating_add(1);
                return Ok(());
            }
            None => {
                let index = u32::try_from(self.types.len()).map_err(|_| Fault::Bad)?;
                let new = read()?;
                self.kept.push(self.selection.kept(&new));
                self.types.push(new);
                self.by_body.insert(body.to_vec(), index);
                index
            }
        };
        let kept = self.kept.get(event_type as usize);
        let type_choice = TypeChoice {
            event_type,
            kept: kept.copied().unwrap_or(Kept::All),
        };
        if id < DENSE_IDS {
            let id = id as usize;
            if self.dense.len() <= id {
                self.dense.resize(id + 1, UNDEFINED);
            }
            if let Some(of_id) = self.dense.get_mut(id) {
                *of_id = type_choice;
            }
        } else {
            self.sparse.insert(id, type_choice);
        }
        Ok(())
    }

    /// The payload of a V3 to V5 metadata event.
    pub(crate) fn define_v3(
        &mut self,
        payload: &[u8],
        diagnostics: &mut Diagnostics,
    ) -> Parsed<()> {
        let mut cursor = Cursor::new(payload);
        let id = cursor.u32()?;
        let body = cursor.rest();
        let defined = self.define(id, body, || read_v3(body, diagnostics));
        diagnostics.event_types_left_out = self.left_out;
        defined
    }

    /// Reads the payload of a V1 or V2 metadata event, whose stream offset is its id.
    pub(crate) fn define_v2(
        &mut self,
        offset: u64,
        payload: &[u8],
        guid: bool,
        diagnostics: &mut Diagnostics,
    ) -> Parsed<()> {
        // Only 32 bits of the offset are kept, as in events.
        let [a, b, c, d, ..] = offset.to_le_bytes();
        let defined = self.define(u32::from_le_bytes([a, b, c, d]), payload, || {
            read_v2(payload, guid, diagnostics)
        });
        diagnostics.event_types_left_out = self.left_out;
        defined
    }

    /// An entry of a V6 metadata block.
    pub(crate) fn define_v6(&mut self, entry: &[u8], diagnostics: &mut Diagnostics) -> Parsed<()> {
        let mut cursor = Cursor::new(entry);
        let id = cursor.var_u32()?;
        let body = cursor.rest();
        let defined = self.define(id, body, || read_v6(body, diagnostics));
        diagnostics.event_types_left_out = self.left_out;
        defined
    }
}

fn read_v3(body: &[u8], diagnostics: &mut Diagnostics) -> Parsed<EventType> {
    let mut cursor = Cursor::new(body);
    let mut event_type = EventType {
        provider: cursor.wide()?.to_string(),
        id: cursor.u32()?,
        name: cursor.wide()?.to_string(),
        keywords: cursor.u64()?,
        version: cursor.u32()?,
        level: cursor.u32()?,
        ..EventType::default()
    };
    read_rest_v3(&mut cursor, &mut event_type, diagnostics);
    Ok(event_type)
}

/// The field list and the tags of .NET 5 and later.
fn read_rest_v3(
    cursor: &mut Cursor<'_>,
    event_type: &mut EventType,
    diagnostics: &mut Diagnostics,
) {
    event_type.fields = if cursor.is_at_end() {
        Some(Vec::new())
    } else {
        field_list(cursor, Form::TypeFirst).ok()
    };
    if event_type.fields.is_some() && read_tags(cursor, event_type).is_err() {
        event_type.fields = None;
    }
    diagnostics.unreadable_fields += u64::from(!event_type.has_known_fields());
}

fn read_tags(cursor: &mut Cursor<'_>, event_type: &mut EventType) -> Parsed<()> {
    const OPCODE: u8 = 1;
    const PARAMETERS: u8 = 2;
    while !cursor.is_at_end() {
        let size = cursor.length()?;
        let kind = cursor.u8()?;
        let mut content = Cursor::new(cursor.take(size)?);
        match kind {
            OPCODE => event_type.opcode = Some(content.u8()?),
            PARAMETERS => event_type.fields = field_list(&mut content, Form::Sized).ok(),
            _ => {}
        }
    }
    Ok(())
}

fn read_v2(payload: &[u8], guid: bool, diagnostics: &mut Diagnostics) -> Parsed<EventType> {
    let mut cursor = Cursor::new(payload);
    let mut event_type = EventType::default();
    if guid {
        let guid = cursor.guid()?;
        event_type.provider = guid.to_string();
        event_type.provider_guid = Some(guid);
    } else {
        event_type.provider = cursor.wide()?.to_string();
    }
    event_type.id = cursor.u32()?;
    event_type.version = cursor.u32()?;
    let size = cursor.length()?;
    event_type.fields = Some(Vec::new());
    if size > 0 {
        let mut details = Cursor::new(cursor.take(size)?);
        event_type.id = details.u32()?;
        event_type.name = details.wide()?.to_string();
        event_type.keywords = details.u64()?;
        event_type.version = details.u32()?;
        event_type.level = details.u32()?;
        read_rest_v3(&mut details, &mut event_type, diagnostics);
    }
    Ok(event_type)
}

fn read_v6(body: &[u8], diagnostics: &mut Diagnostics) -> Parsed<EventType> {
    let mut cursor = Cursor::new(body);
    let mut event_type = EventType {
        provider: cursor.var_text()?.to_string(),
        id: cursor.var_u32()?,
        name: cursor.var_text()?.to_string(),
        ..EventType::default()
    };
    // The end of an unreadable field list is unknown.
    event_type.fields = field_list(&mut cursor, Form::V6).ok();
    if event_type.fields.is_some()
        && read_options(&mut cursor, &mut event_type, diagnostics).is_err()
    {
        diagnostics.bad_records += 1;
    }
    diagnostics.unreadable_fields += u64::from(!event_type.has_known_fields());
    Ok(event_type)
}

fn read_options(
    cursor: &mut Cursor<'_>,
    event_type: &mut EventType,
    diagnostics: &mut Diagnostics,
) -> Parsed<()> {
    if cursor.is_at_end() {
        return Ok(());
    }
    let size = usize::from(cursor.u16()?);
    let mut options = Cursor::new(cursor.take(size)?);
    while !options.is_at_end() {
        match options.u8()? {
            1 => event_type.opcode = Some(options.u8()?),
            3 => event_type.keywords = options.u64()?,
            4 => event_type.message_template = Some(options.var_text()?.to_string()),
            5 => event_type.description = Some(options.var_text()?.to_string()),
            6 => event_type.key_values.push((
                options.var_text()?.to_string(),
                options.var_text()?.to_string(),
            )),
            7 => event_type.provider_guid = Some(options.guid()?),
            8 => event_type.level = u32::from(options.u8()?),
            9 => event_type.version = u32::from(options.u8()?),
            // Options have no size, so the end of an unknown one is unknown.
            _ => {
                diagnostics.unknown_options += 1;
                break;
            }
        }
    }
    Ok(())
}
