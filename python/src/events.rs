//! Events of a trace, as they are recorded.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use chronosym::EventSelector;
use chronosym::source::EventStream;
use chronosym_events::{EventSchema, FieldList, Value};

use crate::arrow::{Array, Categories, Field, NONE, Texts};
use crate::error::message;

/// Rows of a batch.
const ROWS: usize = 1 << 13;

/// The events of some types.
pub struct Events {
    stream: Box<dyn EventStream + Send>,
    selectors: Vec<EventSelector>,
    /// By the schema's address: each schema is kept, so an address is never reused.
    types: HashMap<usize, EventType>,
    providers: Categories,
    names: Categories,
}

#[derive(Clone)]
struct EventType {
    _schema: Arc<EventSchema>,
    wanted: bool,
    provider: u32,
    name: u32,
    id: u32,
}

impl Events {
    pub fn new(stream: Box<dyn EventStream + Send>, selectors: Vec<EventSelector>) -> Self {
        Events {
            stream,
            selectors,
            types: HashMap::new(),
            providers: Categories::default(),
            names: Categories::default(),
        }
    }

    /// The columns of [`next`](Self::next).
    pub fn fields() -> Field {
        Field::rows(vec![
            Field::u64("time_ns"),
            Field::u32("pid").or_null(),
            Field::u64("thread").or_null(),
            Field::category("provider").or_null(),
            Field::category("name").or_null(),
            Field::u32("id").or_null(),
            Field::text("fields"),
            Field::list("stack", Field::u64("item")),
        ])
    }

    /// The next events; `None` after the last one.
    pub fn next(&mut self) -> Result<Option<Array>, String> {
        let [mut times, mut threads, mut addresses] = [Vec::new(), Vec::new(), Vec::new()];
        let [mut pids, mut providers, mut names, mut ids] =
            [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
        let mut fields = Texts::default();
        let mut json = String::new();
        let mut offsets = vec![0];
        while times.len() < ROWS {
            let event = self.stream.next_event().map_err(|error| message(&error))?;
            let Some(event) = event else {
                break;
            };
            let key = Arc::as_ptr(event.schema).addr();
            let of_type = self.types.entry(key).or_insert_with(|| {
                let schema = event.schema;
                let mut selectors = self.selectors.iter();
                EventType {
                    _schema: schema.clone(),
                    wanted: self.selectors.is_empty() || selectors.any(|it| it.matches(schema)),
                    provider: self.providers.number(schema.provider_name()),
                    name: self.names.number(&schema.name()),
                    id: schema.id().unwrap_or(NONE),
                }
            });
            if !of_type.wanted {
                continue;
            }
            let raw = &event.event;
            times.push(raw.time_ns);
            pids.push(raw.process_id.unwrap_or(NONE));
            threads.push(raw.thread_id.unwrap_or(u64::MAX));
            providers.push(of_type.provider);
            names.push(of_type.name);
            ids.push(of_type.id);
            addresses.extend_from_slice(event.stack);
            offsets.push(addresses.len());
            json.clear();
            match raw.fields() {
                Ok(Some(list)) => write_object(&list, &mut json),
                // The payload of an event whose layout is unknown, or that does not decode.
                _ => {
                    json.push_str("{\"payload\":");
                    write_value(&Value::Bytes(raw.payload), &mut json);
                    json.push('}');
                }
            }
            fields.push(&json);
        }
        if times.is_empty() {
            return Ok(None);
        }
        let columns = vec![
            Array::numbers(times.clone()),
            Array::numbers_or_null(pids, NONE),
            Array::numbers_or_null(threads, u64::MAX),
            self.providers.column(providers),
            self.names.column(names),
            Array::numbers_or_null(ids, NONE),
            fields.take(),
            Array::lists(offsets, addresses),
        ];
        Ok(Some(Array::rows(times.len(), columns)))
    }
}

fn write_text(text: &str, json: &mut String) {
    // Texts can always be written.
    json.push_str(&serde_json::to_string(text).unwrap_or_default());
}

fn write_object(list: &FieldList<'_>, json: &mut String) {
    json.push('{');
    for (index, (name, value)) in list.iter().enumerate() {
        if index > 0 {
            json.push(',');
        }
        write_text(name, json);
        json.push(':');
        write_value(value, json);
    }
    json.push('}');
}

fn write_value(value: &Value<'_>, json: &mut String) {
    // Writing to a string never fails.
    let _ = match value {
        Value::Bool(it) => write!(json, "{it}"),
        Value::I64(it) => write!(json, "{it}"),
        Value::U64(it) => write!(json, "{it}"),
        Value::F32(it) if it.is_finite() => write!(json, "{it}"),
        Value::F64(it) if it.is_finite() => write!(json, "{it}"),
        Value::F32(_) | Value::F64(_) => write!(json, "null"),
        Value::Bytes(bytes) => {
            json.push('"');
            for byte in *bytes {
                let _ = write!(json, "{byte:02x}");
            }
            json.push('"');
            Ok(())
        }
        Value::Array(values) => {
            json.push('[');
            for (index, value) in values.iter().enumerate() {
                if index > 0 {
                    json.push(',');
                }
                write_value(value, json);
            }
            json.push(']');
            Ok(())
        }
        Value::Object(list) => {
            write_object(list, json);
            Ok(())
        }
        // Hexadecimal numbers, GUIDs and texts as they are displayed.
        other => {
            write_text(&other.to_string(), json);
            Ok(())
        }
    };
}
