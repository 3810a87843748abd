//! Field descriptions of event payloads, in the three forms that files hold them in.

use crate::cursor::{Cursor, Fault, Parsed};

/// One field of a payload. Fields follow each other without padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name as declared.
    pub name: String,
    /// How its bytes are to be read.
    pub field_type: FieldType,
}

/// How the bytes of a field are to be read. Numbers are little-endian.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldType {
    /// The fields inside follow each other.
    Object(Vec<Field>),
    /// Four bytes, 0 is false.
    Boolean32,
    /// One byte, 0 is false (V6).
    Boolean8,
    /// One UTF-16 code unit.
    Utf16Char,
    /// One UTF-8 code unit (V6). The fields of `Universal.*` events use it for u16-prefixed UTF-8 strings.
    Utf8Char,
    /// One byte, signed.
    Int8,
    /// One byte.
    UInt8,
    /// Two bytes, signed.
    Int16,
    /// Two bytes.
    UInt16,
    /// Four bytes, signed.
    Int32,
    /// Four bytes.
    UInt32,
    /// Eight bytes, signed.
    Int64,
    /// Eight bytes.
    UInt64,
    /// IEEE 754, four bytes.
    Float32,
    /// IEEE 754, eight bytes.
    Float64,
    /// Sixteen bytes, .NET's `decimal`.
    Decimal,
    /// Eight bytes: 100 ns since 1601-01-01 UTC (FILETIME).
    DateTime,
    /// Sixteen bytes.
    Guid,
    /// UTF-16 up to a NUL unit.
    Utf16String,
    /// A u16 count and so many elements.
    Array(Box<FieldType>),
    /// Seven bits a byte, zigzag signed (V6).
    VarInt,
    /// Seven bits a byte (V6).
    VarUInt,
    /// So many elements, without a count in the payload (V6).
    FixedArray(Box<FieldType>, u16),
    /// u16 size and u16 offset, relative to the end of this field, of bytes elsewhere in the payload (V6).
    RelLoc(Box<FieldType>),
    /// u16 size and u16 offset from the payload's start, of bytes elsewhere in the payload (V6).
    DataLoc(Box<FieldType>),
    /// A type that this reader does not know: what follows in the payload cannot be found.
    Unknown,
}

impl FieldType {
    /// Whether it is known through and through.
    pub(crate) fn is_known(&self) -> bool {
        match self {
            Self::Unknown => false,
            Self::Object(fields) => fields.iter().all(|field| field.field_type.is_known()),
            Self::Array(element)
            | Self::FixedArray(element, _)
            | Self::RelLoc(element)
            | Self::DataLoc(element) => element.is_known(),
            _ => true,
        }
    }
}

/// Nesting beyond this is taken for damage; real types are two or three deep.
const MAX_DEPTH: u32 = 16;

const OBJECT: u32 = 1;
const ARRAY: u32 = 19;
const FIXED_ARRAY: u32 = 22;
const REL_LOC: u32 = 24;
const DATA_LOC: u32 = 25;

fn plain_type(code: u32) -> Option<FieldType> {
    Some(match code {
        3 => FieldType::Boolean32,
        4 => FieldType::Utf16Char,
        5 => FieldType::Int8,
        6 => FieldType::UInt8,
        7 => FieldType::Int16,
        8 => FieldType::UInt16,
        9 => FieldType::Int32,
        10 => FieldType::UInt32,
        11 => FieldType::Int64,
        12 => FieldType::UInt64,
        13 => FieldType::Float32,
        14 => FieldType::Float64,
        15 => FieldType::Decimal,
        16 => FieldType::DateTime,
        17 => FieldType::Guid,
        18 => FieldType::Utf16String,
        20 => FieldType::VarInt,
        21 => FieldType::VarUInt,
        23 => FieldType::Utf8Char,
        26 => FieldType::Boolean8,
        _ => return None,
    })
}

/// The form of a field list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// i32 count; i32 type, name. All of V1 to V5.
    TypeFirst,
    /// i32 count; i32 size, name, i32 type. The V2Params tag of "V5" files, which knows arrays.
    Sized,
    /// u16 count; u16 size, UTF-8 name, u8 type. V6.
    V6,
}

pub(crate) fn field_list(cursor: &mut Cursor<'_>, form: Form) -> Parsed<Vec<Field>> {
    nested_list(cursor, form, 0)
}

fn nested_list(cursor: &mut Cursor<'_>, form: Form, depth: u32) -> Parsed<Vec<Field>> {
    if depth > MAX_DEPTH {
        return Err(Fault::Bad);
    }
    let count = match form {
        Form::V6 => usize::from(cursor.u16()?),
        Form::TypeFirst | Form::Sized => cursor.length()?,
    };
    // The smallest field: a type code and an empty name; a size, too, where there is one.
    let least = match form {
        Form::TypeFirst => 6,
        Form::Sized => 10,
        Form::V6 => 4,
    };
    if count > cursor.remaining() / least {
        return Err(Fault::Bad);
    }
    let mut fields = Vec::with_capacity(count);
    for _ in 0..count {
        fields.push(match form {
            Form::TypeFirst => {
                let field_type = field_type(cursor, form, depth)?;
                Field {
                    name: cursor.utf16z()?,
                    field_type,
                }
            }
            Form::Sized | Form::V6 => sized_field(cursor, form, depth)?,
        });
    }
    Ok(fields)
}

/// A field inside its declared size, so that newer writers may append to it and use types of their own.
fn sized_field(cursor: &mut Cursor<'_>, form: Form, depth: u32) -> Parsed<Field> {
    let body = if form == Form::V6 {
        // Excludes itself.
        usize::from(cursor.u16()?)
    } else {
        // Includes itself.
        cursor.length()?.checked_sub(4).ok_or(Fault::Bad)?
    };
    let mut body = Cursor::new(cursor.take(body)?);
    let name = if form == Form::V6 {
        body.utf8()?
    } else {
        body.utf16z()?
    };
    Ok(Field {
        name,
        field_type: field_type(&mut body, form, depth).unwrap_or(FieldType::Unknown),
    })
}

fn field_type(cursor: &mut Cursor<'_>, form: Form, depth: u32) -> Parsed<FieldType> {
    if depth > MAX_DEPTH {
        return Err(Fault::Bad);
    }
    let code = if form == Form::V6 {
        u32::from(cursor.u8()?)
    } else {
        cursor.u32()?
    };
    let mut element = || field_type(cursor, form, depth + 1).map(Box::new);
    Ok(match code {
        OBJECT => FieldType::Object(nested_list(cursor, form, depth + 1)?),
        ARRAY => FieldType::Array(element()?),
        REL_LOC => FieldType::RelLoc(element()?),
        DATA_LOC => FieldType::DataLoc(element()?),
        FIXED_ARRAY => {
            let element = element()?;
            FieldType::FixedArray(element, cursor.u16()?)
        }
        code => plain_type(code).ok_or(Fault::Bad)?,
    })
}
