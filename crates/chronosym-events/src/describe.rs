//! Reads payloads by described fields.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "offsets and sizes of 16 bits, and depths up to MAX_DEPTH"
)]

use std::net::{Ipv4Addr, Ipv6Addr};

use chronosym_types::time::{FileTime, SystemTime};

use crate::cursor::Cursor;
use crate::kernel::Sid;
use crate::value::{FieldList, Value};
use crate::{DecodeError, Field, FieldType, PointerSize, WStr};

/// The limit on the nesting of types; deeper ones are shown in hex.
const MAX_DEPTH: usize = 16;

/// Reads a payload by described fields. Never fails: bytes that cannot be read or are left over
/// become a field `Rest` in hex.
pub(crate) fn describe<'a>(
    fields: &'a [Field],
    payload: &'a [u8],
    pointer_size: PointerSize,
) -> FieldList<'a> {
    let mut reader = Reader {
        c: Cursor::plain(payload, pointer_size),
        payload,
        // Located fields may refer to the same bytes, so each value counts.
        budget: payload.len().saturating_mul(2).saturating_add(1024),
        numbers: Vec::with_capacity(fields.len()),
        object_at: 0,
    };
    let mut out = FieldList::with_capacity(fields.len());
    for field in fields {
        let start = reader.c;
        match reader.value(&field.ty, 0) {
            Ok(value) => {
                reader.numbers.push(match value {
                    Value::U64(n) | Value::Hex(n) => Some(n),
                    Value::I64(n) => u64::try_from(n).ok(),
                    _ => None,
                });
                out.push(&*field.name, value);
            }
            Err(_) => {
                reader.c = start;
                break;
            }
        }
    }
    let rest = reader.c.rest();
    if !rest.is_empty() {
        out.push("Rest", Value::Bytes(rest));
    }
    out
}

struct Reader<'a> {
    c: Cursor<'a>,
    payload: &'a [u8],
    budget: usize,
    /// The values of the outermost fields so far that are numbers: counts of later fields.
    numbers: Vec<Option<u64>>,
    /// Where the innermost struct starts.
    object_at: usize,
}

type Result<T> = std::result::Result<T, DecodeError>;

impl<'a> Reader<'a> {
    fn value(&mut self, ty: &'a FieldType, depth: usize) -> Result<Value<'a>> {
        let offset = self.c.position();
        let bad = DecodeError::BadValue { offset };
        self.budget = self.budget.checked_sub(1).ok_or(bad)?;
        if depth > MAX_DEPTH {
            return Err(bad);
        }
        let c = &mut self.c;
        Ok(match ty {
            FieldType::Bool32 => Value::Bool(c.u32()? != 0),
            FieldType::Bool8 => Value::Bool(c.u8()? != 0),
            FieldType::Char16 => Value::Wide(WStr::new(c.take(2)?)),
            FieldType::Char8 => Value::Narrow(crate::AStr::new(c.take(1)?)),
            FieldType::I8 => Value::I64(i64::from(i8::from_le_bytes(c.array()?))),
            FieldType::U8 => Value::U64(c.u8()?.into()),
            FieldType::I16 => Value::I64(i64::from(i16::from_le_bytes(c.array()?))),
            FieldType::U16 => Value::U64(c.u16()?.into()),
            FieldType::I32 => Value::I64(i64::from(i32::from_le_bytes(c.array()?))),
            FieldType::U32 => Value::U64(c.u32()?.into()),
            FieldType::I64 => Value::I64(i64::from_le_bytes(c.array()?)),
            FieldType::U64 => Value::U64(c.u64()?),
            FieldType::Hex8 => Value::Hex(c.u8()?.into()),
            FieldType::Hex16 => Value::Hex(c.u16()?.into()),
            FieldType::Hex32 => Value::Hex(c.u32()?.into()),
            FieldType::Hex64 => Value::Hex(c.u64()?),
            FieldType::Pointer => Value::Hex(c.pointer()?),
            FieldType::F32 => Value::F32(f32::from_le_bytes(c.array()?)),
            FieldType::F64 => Value::F64(f64::from_le_bytes(c.array()?)),
            FieldType::Decimal => Value::Bytes(c.take(16)?),
            FieldType::FileTime => Value::Text(FileTime(c.u64()?).to_string().into()),
            FieldType::SystemTime => {
                let mut parts = [0u16; 8];
                for part in &mut parts {
                    *part = c.u16()?;
                }
                Value::Text(SystemTime(parts).to_string().into())
            }
            FieldType::Guid => Value::Guid(c.guid()?),
            FieldType::Utf16 => Value::Wide(c.wide()?),
            FieldType::Ansi => Value::Narrow(c.narrow()?),
            FieldType::CountedUtf16 => Value::Wide(WStr::new(self.counted()?)),
            FieldType::CountedAnsi => Value::Narrow(crate::AStr::new(self.counted()?)),
            FieldType::Binary => Value::Bytes(self.counted()?),
            FieldType::Sid => Value::Text(Sid::read_bare(c)?.to_string().into()),
            FieldType::VarInt => {
                let n = c.var_u64()?;
                Value::I64((n >> 1) as i64 ^ -((n & 1) as i64))
            }
            FieldType::VarUInt => Value::U64(c.var_u64()?),
            FieldType::Array(item) => {
                let count = c.u16()?;
                self.items(item, count.into(), depth)?
            }
            FieldType::FixedArray(item, count) => self.items(item, (*count).into(), depth)?,
            FieldType::RelLoc(item) => {
                let location = c.u32()?;
                self.located(item, location, self.c.position(), depth)?
            }
            FieldType::DataLoc(item) => {
                let location = c.u32()?;
                self.located(item, location, 0, depth)?
            }
            FieldType::Object(fields) => {
                let outer = std::mem::replace(&mut self.object_at, offset);
                let mut out = FieldList::with_capacity(fields.len());
                for field in fields {
                    let value = self.value(&field.ty, depth + 1)?;
                    out.push(&*field.name, value);
                }
                self.object_at = outer;
                Value::Object(out)
            }
            FieldType::Aligned(ty) => {
                let size = alignment(ty, c.pointer_size).ok_or(bad)?;
                c.take((offset - self.object_at).next_multiple_of(size) + self.object_at - offset)?;
                self.value(ty, depth + 1)?
            }
            FieldType::Bytes(len) => Value::Bytes(c.take((*len).into())?),
            FieldType::CountedBy(item, field) => {
                let count = self
                    .numbers
                    .get(usize::from(*field))
                    .copied()
                    .flatten()
                    .ok_or(bad)?;
                self.items(item, usize::try_from(count).map_err(|_| bad)?, depth)?
            }
            FieldType::FixedUtf16(units) => {
                let text = c.take(2 * usize::from(*units))?;
                Value::Wide(chronosym_types::bytes::wide(text).0)
            }
            FieldType::Ipv4 => Value::Text(Ipv4Addr::from(c.array::<4>()?).to_string().into()),
            FieldType::Ipv6 => Value::Text(Ipv6Addr::from(c.array::<16>()?).to_string().into()),
            FieldType::Port => Value::U64(u16::from_be_bytes(c.array()?).into()),
            _ => return Err(bad),
        })
    }

    fn counted(&mut self) -> Result<&'a [u8]> {
        let len = self.c.u16()?;
        Ok(self.c.take(len.into())?)
    }

    /// Consecutive elements; characters are joined to text.
    fn items(&mut self, item: &'a FieldType, count: usize, depth: usize) -> Result<Value<'a>> {
        match item {
            FieldType::Char8 => {
                return Ok(Value::Narrow(crate::AStr::new(self.c.take(count)?)));
            }
            FieldType::Bytes(1) => return Ok(Value::Bytes(self.c.take(count)?)),
            FieldType::Char16 => {
                let text = self.c.take(count.saturating_mul(2))?;
                return Ok(Value::Wide(WStr::new(text)));
            }
            _ => {}
        }
        let mut values = Vec::new();
        for _ in 0..count {
            values.push(self.value(item, depth + 1)?);
        }
        Ok(Value::Array(values))
    }

    /// Elements at the offset in the low half of `location`, as many as fill the size in its high
    /// half.
    fn located(
        &mut self,
        item: &'a FieldType,
        location: u32,
        base: usize,
        depth: usize,
    ) -> Result<Value<'a>> {
        let (start, size) = (
            base + (location & 0xffff) as usize,
            (location >> 16) as usize,
        );
        let bad = DecodeError::BadValue { offset: start };
        let bytes = self.payload.get(start..start + size).ok_or(bad)?;
        self.budget = self.budget.checked_sub(size).ok_or(bad)?;
        match item {
            FieldType::Char8 => return Ok(Value::Narrow(crate::AStr::new(bytes))),
            FieldType::Char16 => return Ok(Value::Wide(WStr::new(bytes))),
            _ => {}
        }
        let mut inner = Reader {
            c: Cursor::plain(bytes, self.c.pointer_size),
            payload: self.payload,
            budget: self.budget,
            numbers: Vec::new(),
            object_at: 0,
        };
        let mut values = Vec::new();
        while !inner.c.rest().is_empty() {
            let before = inner.c.position();
            values.push(inner.value(item, depth + 1)?);
            if inner.c.position() == before {
                return Err(bad);
            }
        }
        self.budget = inner.budget;
        Ok(Value::Array(values))
    }
}

/// Returns the alignment of a number in bytes.
fn alignment(ty: &FieldType, pointer_size: PointerSize) -> Option<usize> {
    Some(match ty {
        FieldType::U16 => 2,
        FieldType::U32 | FieldType::Hex32 => 4,
        FieldType::U64 | FieldType::Hex64 => 8,
        FieldType::Pointer => pointer_size.bytes(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(fields: &[Field], payload: &[u8]) -> String {
        describe(fields, payload, PointerSize::Eight).to_string()
    }

    #[test]
    fn scalars_and_text() {
        let fields = [
            Field::new("b", FieldType::Bool32),
            Field::new("i", FieldType::I16),
            Field::new("h", FieldType::Hex32),
            Field::new("s", FieldType::Utf16),
            Field::new("c", FieldType::CountedAnsi),
            Field::new("v", FieldType::VarInt),
            Field::new("t", FieldType::FileTime),
        ];
        let mut bytes = vec![1, 0, 0, 0, 0xfe, 0xff, 0xcd, 0xab, 0, 0];
        bytes.extend(b"h\0i\0\0\0");
        bytes.extend(b"\x02\0yo");
        bytes.push(3);
        bytes.extend(132_000_000_000_000_000u64.to_le_bytes());
        assert_eq!(
            show(&fields, &bytes),
            "b=true, i=-2, h=0xabcd, s=hi, c=yo, v=-2, t=2019-04-17T18:40:00Z"
        );
        bytes.push(0xee);
        assert!(show(&fields, &bytes).ends_with(", Rest=ee"));
        assert_eq!(show(&fields, &bytes[..9]), "b=true, i=-2, Rest=cdab00");
    }

    #[test]
    fn arrays_and_objects() {
        let pair = FieldType::Object(vec![
            Field::new("x", FieldType::U8),
            Field::new("y", FieldType::Bool8),
        ]);
        let fields = [
            Field::new("a", FieldType::Array(Box::new(pair))),
            Field::new("f", FieldType::FixedArray(Box::new(FieldType::U16), 2)),
            Field::new("text", FieldType::Array(Box::new(FieldType::Char16))),
        ];
        let bytes = [2, 0, 7, 1, 8, 0, 1, 0, 2, 0, 1, 0, b'z', 0];
        assert_eq!(
            show(&fields, &bytes),
            "a=[{x=7, y=true}, {x=8, y=false}], f=[1, 2], text=z"
        );
    }

    #[test]
    fn located_fields() {
        let fields = [
            Field::new("r", FieldType::RelLoc(Box::new(FieldType::U8))),
            Field::new("d", FieldType::DataLoc(Box::new(FieldType::Char8))),
        ];
        let bytes = [4, 0, 2, 0, 10, 0, 3, 0, 1, 2, b'a', b'b', b'c'];
        assert!(show(&fields, &bytes).starts_with("r=[1, 2], d=abc, Rest="));
        assert_eq!(show(&fields, &[9, 0, 9, 0, 0]), "Rest=0900090000");
    }

    #[test]
    fn deep_and_wide_types_end() {
        let mut ty = FieldType::U8;
        for _ in 0..40 {
            ty = FieldType::FixedArray(Box::new(ty), 1);
        }
        assert_eq!(show(&[Field::new("a", ty)], &[1]), "Rest=01");
        let mut ty = FieldType::Object(Vec::new());
        for _ in 0..10 {
            ty = FieldType::FixedArray(Box::new(ty), u16::MAX);
        }
        assert_eq!(show(&[Field::new("a", ty)], &[1]), "Rest=01");
        // Each level refers to the whole payload.
        let mut ty = FieldType::U8;
        for _ in 0..10 {
            ty = FieldType::DataLoc(Box::new(ty));
        }
        let bytes: Vec<u8> = [0, 0, 0, 4].repeat(256);
        assert!(show(&[Field::new("a", ty)], &bytes).starts_with("Rest="));
        // Each field shows the whole payload again.
        let text = FieldType::DataLoc(Box::new(FieldType::Char8));
        let fields: Vec<Field> = (0..256).map(|_| Field::new("t", text.clone())).collect();
        assert!(show(&fields, &[0, 0, 0, 4].repeat(256)).len() < 16 << 10);
    }
}
