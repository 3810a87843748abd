//! Schemas of TraceLogging events, from the extended data item EVENT_SCHEMA_TL of ETW records.

use crate::{Cursor, Field, FieldType, ReadError};

const MAX_DEPTH: usize = 16;

/// The schema that a TraceLogging record has for its own payload.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceLoggingSchema {
    /// The event's name.
    pub name: String,
    /// The fields in the order of the payload.
    pub fields: Vec<Field>,
}

impl TraceLoggingSchema {
    /// Parses the extended data item: u16 size, tag bytes, name, fields (Windows SDK,
    /// TraceLoggingProvider.h).
    ///
    /// A field of an unknown type ends the list with [`FieldType::Unknown`].
    ///
    /// # Errors
    /// [`ReadError`] if the item ends too early or nests too deeply.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_types::{FieldType, TraceLoggingSchema};
    ///
    /// // Size, no tags, the name, and a field `Count` of in-type 8 (32 bits, unsigned).
    /// let item = b"\x12\0\0Request\0Count\0\x08";
    /// let schema = TraceLoggingSchema::parse(item)?;
    /// assert_eq!(schema.name, "Request");
    /// assert_eq!((&*schema.fields[0].name, &schema.fields[0].ty), ("Count", &FieldType::U32));
    /// # Ok::<(), chronosym_types::ReadError>(())
    /// ```
    pub fn parse(item: &[u8]) -> Result<Self, ReadError> {
        let mut c = Cursor::new(item);
        let size = usize::from(c.u16()?);
        let body = size
            .checked_sub(2)
            .ok_or(ReadError::Malformed { offset: 0 })?;
        let body = c.take(body)?;
        let mut c = Cursor::new(body);
        tags(&mut c)?;
        let name = c.narrow()?.to_string();
        let mut fields = Vec::new();
        while !c.is_at_end() {
            fields.push(field(&mut c, 0)?);
        }
        Ok(Self { name, fields })
    }
}

/// Skips tags: seven bits a byte; the highest bit is set if another byte follows.
fn tags(c: &mut Cursor<'_>) -> Result<(), ReadError> {
    while c.u8()? & 0x80 != 0 {}
    Ok(())
}

fn field(c: &mut Cursor<'_>, depth: usize) -> Result<Field, ReadError> {
    let offset = c.position();
    if depth > MAX_DEPTH {
        return Err(ReadError::Malformed { offset });
    }
    let name = c.narrow()?.to_string();
    let in_byte = c.u8()?;
    let mut out_type = 0;
    if in_byte & 0x80 != 0 {
        let out_byte = c.u8()?;
        out_type = out_byte & 0x7f;
        if out_byte & 0x80 != 0 {
            tags(c)?;
        }
    }
    let count = match in_byte & 0x60 {
        0x20 => Some(Some(c.u16()?)),
        0x40 => Some(None),
        0x60 => {
            let len = c.u16()?;
            c.take(len.into())?;
            return Ok(Field::new(name, FieldType::Unknown));
        }
        _ => None,
    };
    let ty = match in_byte & 0x1f {
        24 => {
            // The out-type of a struct is the number of its fields, which follow.
            let mut fields = Vec::new();
            for _ in 0..out_type {
                fields.push(field(c, depth.saturating_add(1))?);
            }
            FieldType::Object(fields)
        }
        in_type => scalar(in_type, out_type),
    };
    let ty = match count {
        None => ty,
        Some(Some(n)) => FieldType::FixedArray(Box::new(ty), n),
        Some(None) => FieldType::Array(Box::new(ty)),
    };
    Ok(Field::new(name, ty))
}

/// Returns the type for an in-type and an out-type, whose numbers TraceLogging and manifests share.
pub fn scalar(in_type: u8, out_type: u8) -> FieldType {
    const STRING: u8 = 2;
    const BOOLEAN: u8 = 3;
    const HEX: u8 = 4;
    match (in_type, out_type) {
        (1, _) => FieldType::Utf16,
        (2, _) => FieldType::Ansi,
        (3, STRING) | (4, STRING) => FieldType::Char8,
        (3 | 4, BOOLEAN) => FieldType::Bool8,
        (4, HEX) => FieldType::Hex8,
        (3, _) => FieldType::I8,
        (4, _) => FieldType::U8,
        (5 | 6, STRING) => FieldType::Char16,
        (6, HEX) => FieldType::Hex16,
        (5, _) => FieldType::I16,
        (6, _) => FieldType::U16,
        (8, HEX) | (20, _) => FieldType::Hex32,
        (7, _) => FieldType::I32,
        (8, _) => FieldType::U32,
        (10, HEX) | (21, _) => FieldType::Hex64,
        (9, _) => FieldType::I64,
        (10, _) => FieldType::U64,
        (11, _) => FieldType::F32,
        (12, _) => FieldType::F64,
        (13, _) => FieldType::Bool32,
        (14 | 25, _) => FieldType::Binary,
        (15, _) => FieldType::Guid,
        (16, _) => FieldType::Pointer,
        (17, _) => FieldType::FileTime,
        (18, _) => FieldType::SystemTime,
        (19, _) => FieldType::Sid,
        (22, _) => FieldType::CountedUtf16,
        (23, _) => FieldType::CountedAnsi,
        _ => FieldType::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Prefixes the size.
    fn item(body: &[u8]) -> Vec<u8> {
        let mut out = ((body.len() + 2) as u16).to_le_bytes().to_vec();
        out.extend(body);
        out
    }

    #[test]
    fn fields_counts_and_structs() {
        let body = b"\x80\x01Event\0a\0\x07b\0\x88\x04c\0\x24\x03\0d\0\x44e\0\x98\x02x\0\x01y\0\x8d\x83\x80\x00f\0\x0c";
        let schema = TraceLoggingSchema::parse(&item(body)).unwrap();
        assert_eq!(schema.name, "Event");
        let nested = vec![
            Field::new("x", FieldType::Utf16),
            Field::new("y", FieldType::Bool32),
        ];
        assert_eq!(
            schema.fields,
            [
                Field::new("a", FieldType::I32),
                Field::new("b", FieldType::Hex32),
                Field::new("c", FieldType::FixedArray(Box::new(FieldType::U8), 3)),
                Field::new("d", FieldType::Array(Box::new(FieldType::U8))),
                Field::new("e", FieldType::Object(nested)),
                Field::new("f", FieldType::F64),
            ]
        );
    }

    #[test]
    fn damage_is_an_error() {
        let whole = item(b"\0Event\0a\0\x24\x03\0b\0\x88\x04");
        assert!(TraceLoggingSchema::parse(&whole).is_ok());
        for cut in 0..whole.len() {
            assert!(TraceLoggingSchema::parse(&whole[..cut]).is_err(), "{cut}");
        }
        let deep = item(&[b"\0E\0".as_slice(), &b"s\0\x98\x01".repeat(40)].concat());
        assert!(matches!(
            TraceLoggingSchema::parse(&deep),
            Err(ReadError::Malformed { .. })
        ));
    }
}
