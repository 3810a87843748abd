//! Lines of JSON, written into one buffer.

use chronosym_events::{EventSchema, FieldList, RawEvent, Value};
use chronosym_types::{append, json};

/// Returns the members of an event type's lines that are the same in all of them, and the name of
/// the next member.
pub fn constant(schema: &EventSchema) -> String {
    let mut out = Vec::new();
    append::member(&mut out, "provider", |out| {
        append::text(out, schema.provider_name());
    });
    if let Some(id) = schema.id() {
        append::member(&mut out, "id", |out| append::number(out, id.into()));
        // Events identified by name have neither number.
        let version = schema.version().into();
        append::member(&mut out, "version", |out| append::number(out, version));
    }
    append::member(&mut out, "name", |out| append::text(out, &schema.name()));
    append::member(&mut out, "fields", |_| {});
    String::from_utf8(out).unwrap_or_default()
}

/// Appends the line of an event: the members in order, without those that have no value. The
/// payload stands for the fields if it does not decode.
pub fn push(
    out: &mut Vec<u8>,
    raw: &RawEvent<'_>,
    constant: &str,
    fields: Option<&FieldList<'_>>,
    stack: &[u64],
) {
    out.extend_from_slice(br#"{"time_ns":"#);
    append::number(out, raw.time_ns);
    if let Some(pid) = raw.process_id {
        append::member(out, "pid", |out| append::number(out, pid.into()));
    }
    if let Some(tid) = raw.thread_id {
        append::member(out, "tid", |out| append::number(out, tid));
    }
    out.extend_from_slice(constant.as_bytes());
    match fields {
        Some(fields) => object(out, fields),
        None if raw.payload.is_empty() => out.extend_from_slice(b"{}"),
        None => {
            out.extend_from_slice(br#"{"Payload":"#);
            value(out, &Value::Bytes(raw.payload));
            out.push(b'}');
        }
    }
    if !stack.is_empty() {
        append::member(out, "stack", |out| {
            append::list(out, b"[]", stack, |out, address| append::hex(out, *address));
        });
    }
    out.push(b'}');
}

fn object(out: &mut Vec<u8>, fields: &FieldList<'_>) {
    append::list(out, b"{}", fields.iter(), |out, (name, it)| {
        append::text(out, name);
        out.push(b':');
        value(out, it);
    });
}

fn value(out: &mut Vec<u8>, it: &Value<'_>) {
    match it {
        Value::U64(number) => append::number(out, *number),
        Value::I64(number) => append::signed(out, *number),
        Value::Hex(number) => append::hex(out, *number),
        Value::Wide(text) => append::wide(out, *text),
        Value::Object(fields) => object(out, fields),
        Value::Array(items) => append::list(out, b"[]", items, value),
        // Writing to memory does not fail.
        other => _ = json::to_writer(out, other),
    }
}

#[cfg(test)]
mod tests {
    use chronosym_events::{EventKey, Field, FieldType, PointerSize, Provider};

    use super::*;

    #[test]
    fn a_line_is_what_serde_writes_of_its_values() {
        let pair = vec![
            Field::new("x", FieldType::Hex8),
            Field::new("y", FieldType::Bool8),
        ];
        let fields = [
            Field::new("is", FieldType::Bool32),
            Field::new("a\"b", FieldType::I16),
            Field::new("h", FieldType::Hex32),
            Field::new("wide", FieldType::Utf16),
            Field::new("narrow", FieldType::CountedAnsi),
            Field::new("of", FieldType::F64),
            Field::new("all", FieldType::Array(Box::new(FieldType::Object(pair)))),
        ];
        let mut payload = vec![1, 0, 0, 0, 0xfe, 0xff, 0xcd, 0xab, 0, 0];
        let text = "ä\"\n\u{202e}".encode_utf16().chain([0]);
        payload.extend(text.flat_map(u16::to_le_bytes));
        payload.extend(b"\x02\0yo");
        payload.extend(1.5f64.to_le_bytes());
        payload.extend([2, 0, 7, 1, 8, 0, 0xee]);
        let key = EventKey::Manifest {
            provider: Provider::from_name("My\"Provider"),
            id: 7,
            version: 2,
        };
        let schema = EventSchema::new(key).with_name("Made").with_fields(fields);
        let mut raw = RawEvent {
            time_ns: 1_000,
            process_id: Some(42),
            thread_id: Some(u64::MAX),
            processor: None,
            pointer_size: PointerSize::Eight,
            schema: &schema,
            payload: &payload,
        };
        let line = |raw: &RawEvent<'_>, fields: Option<&FieldList<'_>>, stack: &[u64]| {
            let mut out = Vec::new();
            push(&mut out, raw, &constant(&schema), fields, stack);
            String::from_utf8(out).unwrap()
        };
        let fields = raw.fields().unwrap().unwrap();
        let same = r#""provider":"My\"Provider","id":7,"version":2,"name":"Made","fields":"#;
        let expected = format!(
            r#"{{"time_ns":1000,"pid":42,"tid":18446744073709551615,{same}{},"stack":["0x10","0xffffffffffffffff"]}}"#,
            json::to_string(&fields).unwrap()
        );
        assert_eq!(line(&raw, Some(&fields), &[0x10, u64::MAX]), expected);
        (raw.process_id, raw.thread_id, raw.payload) = (None, None, &[0xab, 1]);
        let expected = format!(r#"{{"time_ns":1000,{same}{{"Payload":"ab01"}}}}"#);
        assert_eq!(line(&raw, None, &[]), expected);
        raw.payload = &[];
        let expected = format!(r#"{{"time_ns":1000,{same}{{}}}}"#);
        assert_eq!(line(&raw, None, &[]), expected);
    }
}
