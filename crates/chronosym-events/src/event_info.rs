//! Descriptions of manifest events that merging adds to a trace: TRACE_EVENT_INFO structures.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "offsets of properties, whose number is compared with the bytes first"
)]

use crate::cursor::Cursor;
use crate::{
    DecodeError, EventKey, EventSchema, Field, FieldType, Guid, PointerSize, Provider, WStr,
};
use chronosym_types::tracelogging::scalar;

/// Offsets in TRACE_EVENT_INFO and EVENT_PROPERTY_INFO (Windows SDK, tdh.h).
const ID: usize = 32;
const PROVIDER_NAME: usize = 52;
const TASK_NAME: usize = 68;
const OPCODE_NAME: usize = 72;
const PROPERTY_COUNT: usize = 100;
const TOP_LEVEL_COUNT: usize = 104;
const PROPERTIES: usize = 112;
const PROPERTY: usize = 24;

const STRUCT: u32 = 1;
const LENGTH_ELSEWHERE: u32 = 2;
const COUNT_ELSEWHERE: u32 = 4;
const FIXED_COUNT: u32 = 0x20;

impl EventSchema {
    /// Returns the schema of the manifest event that a TRACE_EVENT_INFO describes: the payload of
    /// KernelTraceControl's `MetaData/EventInfo`.
    ///
    /// Fields of an unsupported layout are [`FieldType::Unknown`].
    ///
    /// # Errors
    /// [`DecodeError`] when it is shorter than its counts and offsets require.
    pub fn from_event_info(info: &[u8]) -> Result<Self, DecodeError> {
        let mut info = Info::new(info);
        let top_level = info.u32(TOP_LEVEL_COUNT)? as usize;
        let count = info.u32(PROPERTY_COUNT)? as usize;
        info.at(PROPERTIES, count.saturating_mul(PROPERTY))?;
        info.members = count;
        let fields: Vec<_> = (0..top_level.min(count))
            .map(|i| info.field(i, count, true))
            .collect::<Result<_, _>>()?;
        let provider = info.at(0, 16)?.guid()?;
        let provider_name = info.text(PROVIDER_NAME)?;
        let mut descriptor = info.at(ID, 16)?;
        let (id, version, _channel) = (descriptor.u16()?, descriptor.u8()?, descriptor.u8()?);
        let (level, opcode, _task) = (descriptor.u8()?, descriptor.u8()?, descriptor.u16()?);
        let keywords = descriptor.u64()?;
        let (task_name, opcode_name) = (info.text(TASK_NAME)?, info.text(OPCODE_NAME)?);
        let names = (task_name.as_deref(), opcode_name.as_deref());
        let schema = Self::of_manifest(provider, provider_name.as_deref(), id, version, names);
        Ok(schema
            .with_fields(fields)
            .with_descriptor(opcode, level, keywords))
    }

    /// Returns the schema of an event, named after its task and opcode.
    pub(crate) fn of_manifest(
        provider: Guid,
        provider_name: Option<&str>,
        id: u16,
        version: u8,
        (task, opcode): (Option<&str>, Option<&str>),
    ) -> Self {
        // Tools leave out the `win:` of the common opcodes, and `win:Info` altogether.
        let opcode = opcode.map(|opcode| opcode.strip_prefix("win:").unwrap_or(opcode));
        let name = match (task, opcode) {
            (Some(task), Some("Info") | None) => task.to_owned(),
            (Some(task), Some(opcode)) => format!("{task}/{opcode}"),
            (None, opcode) => opcode.unwrap_or_default().to_owned(),
        };
        let schema = Self::new(EventKey::Manifest {
            provider: Provider::from_guid(provider),
            id: id.into(),
            version: version.into(),
        });
        let schema = schema.with_name(&name);
        match provider_name {
            Some(name) => schema.with_provider_name(name),
            None => schema,
        }
    }
}

struct Info<'a> {
    bytes: &'a [u8],
    /// How many members of structs may still be read. Structs may share members, and would
    /// otherwise take time quadratic in the record's size.
    members: usize,
    /// How many bytes of text may still be read, for the same reason.
    text: usize,
}

impl<'a> Info<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            members: 0,
            text: bytes.len(),
        }
    }

    fn at(&self, offset: usize, len: usize) -> Result<Cursor<'a>, DecodeError> {
        let needed = offset.saturating_add(len);
        let short = DecodeError::Short {
            needed,
            found: self.bytes.len(),
        };
        let bytes = self.bytes.get(offset..needed).ok_or(short)?;
        Ok(Cursor::plain(bytes, PointerSize::Eight))
    }

    fn u32(&self, offset: usize) -> Result<u32, DecodeError> {
        Ok(self.at(offset, 4)?.u32()?)
    }

    /// Returns the text at the offset in a field; 0 means none. Names end with blanks in some
    /// manifests.
    fn text(&mut self, offset: usize) -> Result<Option<String>, DecodeError> {
        let start = self.u32(offset)? as usize;
        if start == 0 {
            return Ok(None);
        }
        let rest = self.bytes.len().saturating_sub(start);
        let text: WStr<'_> = self.at(start, rest)?.wide()?;
        let Some(left) = self.text.checked_sub(text.as_bytes().len()) else {
            return Ok(None);
        };
        self.text = left;
        Ok(Some(text.to_string().trim_end().to_owned()).filter(|t| !t.is_empty()))
    }

    fn field(&mut self, index: usize, count: usize, outermost: bool) -> Result<Field, DecodeError> {
        let base = PROPERTIES + index * PROPERTY;
        let flags = self.u32(base)?;
        let name = self.text(base + 4)?.unwrap_or_default();
        let mut types = self.at(base + 8, 4)?;
        let (first, second) = (types.u16()?, types.u16()?);
        let mut sizes = self.at(base + 16, 4)?;
        let (items, length) = (sizes.u16()?, sizes.u16()?);
        let ty = if flags & STRUCT != 0 {
            // Structs hold scalars only, so that members need no more depth.
            let members =
                usize::from(first)..usize::from(first).saturating_add(second.into()).min(count);
            let left = self.members.checked_sub(members.len());
            let Some(left) = left.filter(|_| outermost) else {
                return Ok(Field::new(name, FieldType::Unknown));
            };
            self.members = left;
            FieldType::Object(
                members
                    .map(|i| self.field(i, count, false))
                    .collect::<Result<_, _>>()?,
            )
        } else {
            sized(first, second, length, flags & LENGTH_ELSEWHERE != 0)
        };
        let ty = if flags & COUNT_ELSEWHERE != 0 {
            FieldType::CountedBy(Box::new(ty), items)
        } else if flags & FIXED_COUNT != 0 || items > 1 {
            FieldType::FixedArray(Box::new(ty), items)
        } else {
            ty
        };
        Ok(Field::new(name, ty))
    }
}

/// Returns a scalar whose length is in the description, or in an earlier field.
fn sized(in_type: u16, out_type: u16, length: u16, elsewhere: bool) -> FieldType {
    let narrow = u8::try_from(in_type).unwrap_or(u8::MAX);
    // From a manifest's numbers of out-types to TraceLogging's: text, Boolean, hex.
    let out_type = match out_type {
        1 => 2,
        13 => 3,
        16..=19 => 4,
        _ => 0,
    };
    let unit = match in_type {
        1 => FieldType::Char16,
        2 => FieldType::Char8,
        14 => FieldType::Bytes(1),
        _ => {
            return match in_type {
                300 => FieldType::CountedUtf16,
                301 => FieldType::CountedAnsi,
                307 => FieldType::Char16,
                308 => FieldType::Char8,
                309 => FieldType::Pointer,
                _ => scalar(narrow, out_type),
            };
        }
    };
    match (elsewhere, length, in_type) {
        (true, field, _) => FieldType::CountedBy(Box::new(unit), field),
        (false, 0, 14) => FieldType::Unknown,
        (false, 0, _) => scalar(narrow, out_type),
        (false, len, 14) => FieldType::Bytes(len),
        (false, len, _) => FieldType::FixedArray(Box::new(unit), len),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Flags, name, in-type or first member, out-type or number of members, count, length.
    type Property = (u32, &'static str, u16, u16, u16, u16);

    fn info(top_level: u32, properties: &[Property]) -> Vec<u8> {
        let mut out = vec![0; PROPERTIES + properties.len() * PROPERTY];
        let put = |out: &mut Vec<u8>, at: usize, bytes: &[u8]| {
            out[at..at + bytes.len()].copy_from_slice(bytes)
        };
        let text = |out: &mut Vec<u8>, at: usize, text: &str| {
            let offset = out.len() as u32;
            put(out, at, &offset.to_le_bytes());
            out.extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
        };
        put(&mut out, 0, &[7; 16]);
        put(&mut out, ID, &[5, 1, 2, 0, 4, 11, 0, 0, 0x80]);
        put(
            &mut out,
            PROPERTY_COUNT,
            &(properties.len() as u32).to_le_bytes(),
        );
        put(&mut out, TOP_LEVEL_COUNT, &top_level.to_le_bytes());
        text(&mut out, PROVIDER_NAME, "Some-Provider");
        text(&mut out, TASK_NAME, "Task ");
        text(&mut out, OPCODE_NAME, "win:Start");
        for (i, (flags, name, first, second, count, length)) in properties.iter().enumerate() {
            let base = PROPERTIES + i * PROPERTY;
            put(&mut out, base, &flags.to_le_bytes());
            text(&mut out, base + 4, name);
            put(&mut out, base + 8, &first.to_le_bytes());
            put(&mut out, base + 10, &second.to_le_bytes());
            put(&mut out, base + 16, &count.to_le_bytes());
            put(&mut out, base + 18, &length.to_le_bytes());
        }
        out
    }

    #[test]
    fn fields_of_every_shape() {
        let bytes = info(
            7,
            &[
                (0, "Count", 8, 0, 1, 4),
                (COUNT_ELSEWHERE, "List", 10, 19, 0, 8),
                (LENGTH_ELSEWHERE, "Blob", 14, 0, 1, 0),
                (FIXED_COUNT, "Two", 6, 0, 2, 2),
                (0, "Mac", 14, 0, 1, 6),
                (STRUCT | COUNT_ELSEWHERE, "Pairs", 7, 2, 0, 0),
                (0, "Text", 1, 0, 1, 0),
                (0, "X", 4, 13, 1, 1),
                (0, "Y", 16, 0, 1, 8),
            ],
        );
        let event = EventSchema::from_event_info(&bytes).unwrap();
        assert_eq!((event.id(), event.version()), (Some(0x105), 2));
        assert_eq!(
            (event.level(), event.opcode(), event.keywords()),
            (4, 11, 0x80)
        );
        let pair = vec![
            Field::new("X", FieldType::Bool8),
            Field::new("Y", FieldType::Pointer),
        ];
        let counted = |ty| FieldType::CountedBy(Box::new(ty), 0);
        assert_eq!(
            event.fields().unwrap(),
            [
                Field::new("Count", FieldType::U32),
                Field::new("List", counted(FieldType::Hex64)),
                Field::new("Blob", counted(FieldType::Bytes(1))),
                Field::new("Two", FieldType::FixedArray(Box::new(FieldType::U16), 2)),
                Field::new("Mac", FieldType::Bytes(6)),
                Field::new("Pairs", counted(FieldType::Object(pair))),
                Field::new("Text", FieldType::Utf16),
            ]
        );
        assert_eq!(
            (&*event.name(), event.provider_name().as_ref()),
            ("Task/Start", "Some-Provider")
        );
        let payload = b"\x01\0\0\0\x10\0\0\0\0\0\0\0\xaa\x01\0\x02\0\x01\x02\x03\x04\x05\x06\x01\x20\0\0\0h\0\0\0";
        let raw = crate::RawEvent {
            time_ns: 0,
            process_id: None,
            thread_id: None,
            processor: None,
            pointer_size: PointerSize::Four,
            schema: &event,
            payload,
        };
        assert_eq!(
            raw.fields().unwrap().unwrap().to_string(),
            "Count=1, List=[0x10], Blob=aa, Two=[1, 2], Mac=010203040506, Pairs=[{X=true, Y=0x20}], Text=h"
        );
    }

    #[test]
    fn damage_is_an_error_or_leaves_fields_out() {
        let whole = info(2, &[(0, "A", 8, 0, 1, 4), (STRUCT, "B", 0, 9, 1, 0)]);
        for cut in 0..whole.len() {
            assert!(
                EventSchema::from_event_info(&whole[..cut]).is_err(),
                "{cut}"
            );
        }
        // A struct that holds itself, and counts beyond the properties.
        let own = info(99, &[(STRUCT, "B", 0, 9, 1, 0)]);
        let event = EventSchema::from_event_info(&own).unwrap();
        let inner = vec![Field::new("B", FieldType::Unknown)];
        assert_eq!(
            event.fields().unwrap(),
            [Field::new("B", FieldType::Object(inner))]
        );
        // Structs that all have the same members, and names that are all the same text.
        let shared: Vec<Property> = vec![(STRUCT, "", 0, 500, 1, 0); 500];
        let mut shared = info(500, &shared);
        let name = shared.len() as u32;
        shared.extend([b'n', 0].repeat(10_000));
        shared.extend([0, 0]);
        for property in 0..500 {
            let at = PROPERTIES + property * PROPERTY + 4;
            shared[at..at + 4].copy_from_slice(&name.to_le_bytes());
        }
        let event = EventSchema::from_event_info(&shared).unwrap();
        let fields = event.fields().unwrap();
        let members = |field: &Field| match &field.ty {
            FieldType::Object(members) => members.len(),
            _ => 0,
        };
        assert_eq!(fields.iter().map(members).sum::<usize>(), 500);
        let names: usize = fields.iter().map(|field| field.name.len()).sum();
        assert!(names <= shared.len(), "{names}");
        let mut many = whole.clone();
        many[PROPERTY_COUNT..PROPERTY_COUNT + 4].copy_from_slice(&[0xff; 4]);
        assert!(matches!(
            EventSchema::from_event_info(&many),
            Err(DecodeError::Short { .. })
        ));
    }
}
