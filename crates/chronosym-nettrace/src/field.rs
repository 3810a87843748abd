//! Field descriptions of event payloads, in the three forms that files hold them in.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "depths up to MAX_DEPTH, and a divisor that is not 0"
)]

use chronosym_types::{Cursor, Field, FieldType};

use crate::fault::{Fault, Parsed};

/// Deeper nesting is treated as damage; real types are two or three deep.
const MAX_DEPTH: u32 = 16;

const OBJECT: u32 = 1;
const ARRAY: u32 = 19;
const FIXED_ARRAY: u32 = 22;
const REL_LOC: u32 = 24;
const DATA_LOC: u32 = 25;

/// The form of a field list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// i32 count; i32 type, name. All of V1 to V5.
    TypeFirst,
    /// i32 count; i32 size, name, i32 type. The V2Params tag of "V5" files, which supports arrays.
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
                let ty = field_type(cursor, form, depth)?;
                Field::new(cursor.wide()?.to_string(), ty)
            }
            Form::Sized | Form::V6 => sized_field(cursor, form, depth)?,
        });
    }
    Ok(fields)
}

/// A field inside its declared size, so that newer writers may append to it and use types of their
/// own.
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
        body.var_text()?.to_string()
    } else {
        body.wide()?.to_string()
    };
    let ty = field_type(&mut body, form, depth).unwrap_or(FieldType::Unknown);
    Ok(Field::new(name, ty))
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
        code => FieldType::from_eventpipe_code(code).ok_or(Fault::Bad)?,
    })
}
