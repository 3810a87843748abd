//! Fields of events without a typed decoder, as tables hold them.

use std::sync::Arc;

use crate::{Field, FieldType};

/// Names and types of fields, in the order of the payload.
pub(crate) type Fields = &'static [(&'static str, Type)];

/// A [`FieldType`] that a table can hold.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Type {
    U8,
    U16,
    U32,
    U64,
    I8,
    I32,
    I64,
    F64,
    Hex16,
    Hex32,
    Hex64,
    Bool32,
    Pointer,
    Guid,
    Utf16,
    Ansi,
    Ipv4,
    Ipv6,
    Port,
    /// UTF-16 text in a place of so many units.
    Text(u16),
    /// So many bytes without a meaning.
    Bytes(u16),
    /// As many bytes as the field at this place among the event's says.
    Blob(u16),
    /// As many values as the field at this place says.
    Many(u16, &'static Type),
    /// As many structs as the field at this place says.
    Structs(u16, Fields),
    /// Of this type, from this version on.
    Since(u32, &'static Type),
}

impl Type {
    fn field_type(self) -> FieldType {
        match self {
            Self::U8 => FieldType::U8,
            Self::U16 => FieldType::U16,
            Self::U32 => FieldType::U32,
            Self::U64 => FieldType::U64,
            Self::I8 => FieldType::I8,
            Self::I32 => FieldType::I32,
            Self::I64 => FieldType::I64,
            Self::F64 => FieldType::F64,
            Self::Hex16 => FieldType::Hex16,
            Self::Hex32 => FieldType::Hex32,
            Self::Hex64 => FieldType::Hex64,
            Self::Bool32 => FieldType::Bool32,
            Self::Pointer => FieldType::Pointer,
            Self::Guid => FieldType::Guid,
            Self::Utf16 => FieldType::Utf16,
            Self::Ansi => FieldType::Ansi,
            Self::Ipv4 => FieldType::Ipv4,
            Self::Ipv6 => FieldType::Ipv6,
            Self::Port => FieldType::Port,
            Self::Text(units) => FieldType::FixedUtf16(units),
            Self::Bytes(count) => FieldType::Bytes(count),
            Self::Blob(count) => FieldType::CountedBy(Box::new(FieldType::Bytes(1)), count),
            Self::Many(count, of) => FieldType::CountedBy(Box::new(of.field_type()), count),
            Self::Structs(count, of) => {
                FieldType::CountedBy(Box::new(FieldType::Object(fields(of, 0))), count)
            }
            Self::Since(_, of) => of.field_type(),
        }
    }
}

/// The fields of a version as a schema has them.
fn fields<C: FromIterator<Field>>(of: Fields, version: u32) -> C {
    of.iter()
        .filter(|(_, ty)| !matches!(ty, Type::Since(first, _) if version < *first))
        .map(|(name, ty)| Field::new(*name, ty.field_type()))
        .collect()
}

/// The row of the newest version that is not newer than `version`; rows are sorted by version.
pub(crate) fn newest(
    rows: impl DoubleEndedIterator<Item = (u32, Fields)>,
    version: u32,
) -> Option<Arc<[Field]>> {
    let (_, of) = rows.rev().find(|row| row.0 <= version)?;
    Some(fields(of, version))
}
