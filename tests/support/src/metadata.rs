//! Event type definitions in the forms of each version.

use crate::bytes::Put;
use crate::trace::{FieldKind, FieldSpec, TypeSpec};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    TypeFirst,
    Sized,
    V6,
}

/// V1 and V2, without the record around it.
pub(crate) fn v2(spec: &TypeSpec, guid: bool) -> Vec<u8> {
    let mut out = Vec::new();
    if guid {
        out.put(&spec.provider_guid.unwrap_or_default());
    } else {
        out.put_utf16(&spec.provider);
    }
    out.put_u32(spec.id);
    out.put_u32(spec.version);
    let mut details = Vec::new();
    details.put_u32(spec.id);
    details.put_utf16(&spec.name);
    details.put_u64(spec.keywords);
    details.put_u32(spec.version);
    details.put_u32(spec.level);
    fields(&mut details, &spec.fields, Form::TypeFirst);
    out.put_u32(details.len() as u32);
    out.put(&details);
    out
}

/// V3 and V4; `tags` puts opcode and fields into the tags of .NET 5.
pub(crate) fn v3(id: u32, spec: &TypeSpec, tags: bool) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_u32(id);
    out.put_utf16(&spec.provider);
    out.put_u32(spec.id);
    out.put_utf16(&spec.name);
    out.put_u64(spec.keywords);
    out.put_u32(spec.version);
    out.put_u32(spec.level);
    if !tags {
        fields(&mut out, &spec.fields, Form::TypeFirst);
        return out;
    }
    out.put_u32(0);
    if let Some(opcode) = spec.opcode {
        out.put_u32(1);
        out.put_u8(1);
        out.put_u8(opcode);
    }
    if !spec.fields.is_empty() {
        let mut parameters = Vec::new();
        fields(&mut parameters, &spec.fields, Form::Sized);
        out.put_u32(parameters.len() as u32);
        out.put_u8(2);
        out.put(&parameters);
    }
    out
}

/// A row of a V6 metadata block, without its size.
pub(crate) fn v6(id: u32, spec: &TypeSpec) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_var(id.into());
    out.put_utf8(&spec.provider);
    out.put_var(spec.id.into());
    out.put_utf8(&spec.name);
    fields(&mut out, &spec.fields, Form::V6);
    let mut options = Vec::new();
    if let Some(opcode) = spec.opcode {
        options.put(&[1, opcode]);
    }
    if spec.keywords != 0 {
        options.put_u8(3);
        options.put_u64(spec.keywords);
    }
    for (kind, text) in [(4, &spec.message_template), (5, &spec.description)] {
        if let Some(text) = text {
            options.put_u8(kind);
            options.put_utf8(text);
        }
    }
    for (key, value) in &spec.key_values {
        options.put_u8(6);
        options.put_utf8(key);
        options.put_utf8(value);
    }
    if let Some(guid) = spec.provider_guid {
        options.put_u8(7);
        options.put(&guid);
    }
    if spec.level != 0 {
        options.put(&[8, spec.level as u8]);
    }
    if spec.version != 0 {
        options.put(&[9, spec.version as u8]);
    }
    out.put_sized16(&options);
    out
}

fn fields(out: &mut Vec<u8>, fields: &[FieldSpec], form: Form) {
    match form {
        Form::V6 => out.put_u16(fields.len() as u16),
        Form::TypeFirst | Form::Sized => out.put_u32(fields.len() as u32),
    }
    for field in fields {
        let mut body = Vec::new();
        match form {
            Form::TypeFirst => {
                kind(&mut body, &field.kind, form);
                body.put_utf16(&field.name);
                out.put(&body);
            }
            Form::Sized => {
                body.put_utf16(&field.name);
                kind(&mut body, &field.kind, form);
                out.put_u32(body.len() as u32 + 4);
                out.put(&body);
            }
            Form::V6 => {
                body.put_utf8(&field.name);
                kind(&mut body, &field.kind, form);
                out.put_sized16(&body);
            }
        }
    }
}

fn kind(out: &mut Vec<u8>, field: &FieldKind, form: Form) {
    let put_code = |out: &mut Vec<u8>, code: u8| match form {
        Form::V6 => out.put_u8(code),
        Form::TypeFirst | Form::Sized => out.put_u32(code.into()),
    };
    match field {
        FieldKind::Plain(code) => put_code(out, *code),
        FieldKind::Object(nested) => {
            put_code(out, 1);
            fields(out, nested, form);
        }
        FieldKind::Array(element) => {
            put_code(out, 19);
            kind(out, element, form);
        }
        FieldKind::FixedArray(element, count) => {
            put_code(out, 22);
            kind(out, element, form);
            out.put_u16(*count);
        }
        FieldKind::RelLoc(element) => {
            put_code(out, 24);
            kind(out, element, form);
        }
        FieldKind::DataLoc(element) => {
            put_code(out, 25);
            kind(out, element, form);
        }
    }
}
