//! One record as a line.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::Arc;

use chronosym::EventSelector;
use chronosym_events::{DecodeError, EventKey, EventSchema, FieldList, RawEvent, Value};

use chronosym_export::write_json;
use chronosym_types::escape::push_json;

use crate::args::EventFormat;
use crate::output::printable;
use crate::units::show_time;

/// The addresses of a record's stack, leaf first.
pub enum Stack<'a> {
    Nettrace(chronosym_nettrace::Stack<'a>),
    Etl(chronosym_etl::Addresses<'a>),
    Perf(&'a [u64]),
}

impl Stack<'_> {
    pub fn len(&self) -> usize {
        match self {
            Stack::Nettrace(stack) => stack.len(),
            Stack::Etl(addresses) => addresses.len(),
            Stack::Perf(addresses) => addresses.len(),
        }
    }

    fn each(&self, mut each: impl FnMut(u64)) {
        match self {
            Stack::Nettrace(stack) => stack.addresses().for_each(&mut each),
            Stack::Etl(addresses) => addresses.iter().for_each(&mut each),
            Stack::Perf(addresses) => addresses.iter().copied().for_each(&mut each),
        }
    }
}

/// Prints records.
pub struct Lines {
    format: EventFormat,
    selectors: Vec<EventSelector>,
    out: Box<dyn Write>,
    /// By the schema's place in memory: each is kept, so that no other comes to stand there.
    types: HashMap<*const EventSchema, TypeLine>,
    line: Vec<u8>,
    text: String,
    is_empty: bool,
}

/// What is the same in the lines of one event type.
struct TypeLine {
    schema: Arc<EventSchema>,
    wanted: bool,
    head: String,
    undecodable: Option<(u64, DecodeError)>,
}

impl Lines {
    pub fn new(format: EventFormat, selectors: Vec<EventSelector>, out: Box<dyn Write>) -> Self {
        Lines {
            format,
            selectors,
            out,
            types: HashMap::new(),
            line: Vec::new(),
            text: String::new(),
            is_empty: true,
        }
    }

    /// Whether nothing was printed.
    pub fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Prints a record of the type that `schema` describes.
    pub fn push(
        &mut self,
        raw: &RawEvent<'_>,
        schema: &Arc<EventSchema>,
        stack: Option<Stack<'_>>,
    ) -> io::Result<()> {
        let of_type = self
            .types
            .entry(Arc::as_ptr(schema))
            .or_insert_with(|| TypeLine {
                schema: schema.clone(),
                wanted: self.selectors.is_empty()
                    || self.selectors.iter().any(|s| s.matches(schema)),
                head: match self.format {
                    EventFormat::Jsonl => json_head(schema),
                    EventFormat::Text => text_head(schema),
                },
                undecodable: None,
            });
        if !of_type.wanted {
            return Ok(());
        }
        let fields = raw.fields().unwrap_or_else(|error| {
            let (count, _) = of_type.undecodable.get_or_insert((0, error));
            *count += 1;
            None
        });
        self.line.clear();
        match self.format {
            EventFormat::Jsonl => json(
                &mut self.line,
                &mut self.text,
                raw,
                &of_type.head,
                fields,
                stack,
            ),
            EventFormat::Text => {
                self.text.clear();
                text(&mut self.text, raw, &of_type.head, fields, stack);
                // Text out of a trace must not steer the terminal, nor break the line.
                self.line
                    .extend_from_slice(printable(&self.text).as_bytes());
            }
        }
        self.is_empty = false;
        self.line.push(b'\n');
        self.out.write_all(&self.line)
    }

    /// Writes what is buffered; says what did not decode.
    pub fn finish(&mut self) -> io::Result<Vec<String>> {
        self.out.flush()?;
        let bad = self.types.values().filter_map(|of_type| {
            let (count, error) = of_type.undecodable.as_ref()?;
            let label = chronosym::event_label(&of_type.schema);
            Some(format!(
                "{count} {label} events do not decode and are shown in hex: {error}"
            ))
        });
        let mut notes: Vec<String> = bad.collect();
        notes.sort();
        Ok(notes)
    }
}

/// The members `provider`, `id`, `version`, `name`.
fn json_head(schema: &EventSchema) -> String {
    let mut out = ",\"provider\":".to_owned();
    push_json(schema.provider_name(), &mut out);
    // Events known by name have neither number.
    if let Some(id) = schema.id() {
        let _ = write!(out, ",\"id\":{id},\"version\":{}", schema.version());
    }
    out.push_str(",\"name\":");
    push_json(&schema.name(), &mut out);
    out
}

fn json(
    line: &mut Vec<u8>,
    text: &mut String,
    raw: &RawEvent<'_>,
    head: &str,
    fields: Option<FieldList<'_>>,
    stack: Option<Stack<'_>>,
) {
    text.clear();
    // Writing to a String does not fail.
    let _ = write!(text, "{{\"time_ns\":{}", raw.time_ns);
    if let Some(pid) = raw.process_id {
        let _ = write!(text, ",\"pid\":{pid}");
    }
    if let Some(tid) = raw.thread_id {
        let _ = write!(text, ",\"tid\":{tid}");
    }
    text.push_str(head);
    text.push_str(",\"fields\":");
    line.extend_from_slice(text.as_bytes());
    match fields {
        // Field lists always serialise.
        Some(fields) => {
            let _ = write_json(&fields, line);
        }
        None if raw.payload.is_empty() => line.extend_from_slice(b"{}"),
        None => {
            line.extend_from_slice(b"{\"Payload\":");
            let _ = write_json(&Value::Bytes(raw.payload), line);
            line.push(b'}');
        }
    }
    if let Some(stack) = stack {
        text.clear();
        text.push_str(",\"stack\":[");
        let mut comma = "";
        stack.each(|address| {
            let _ = write!(text, "{comma}\"{address:#x}\"");
            comma = ",";
        });
        text.push(']');
        line.extend_from_slice(text.as_bytes());
    }
    line.push(b'}');
}

/// `provider/id name`; what has no id is known by its name alone.
fn text_head(schema: &EventSchema) -> String {
    let label = chronosym::event_label(schema);
    match schema.key() {
        EventKey::Manifest { .. } => format!("{label} {}", schema.name()),
        _ => label,
    }
}

fn text(
    out: &mut String,
    raw: &RawEvent<'_>,
    head: &str,
    fields: Option<FieldList<'_>>,
    stack: Option<Stack<'_>>,
) {
    let id = |id: Option<u64>| id.map_or("-".to_owned(), |id| id.to_string());
    let thread = format!(
        "{}/{}",
        id(raw.process_id.map(u64::from)),
        id(raw.thread_id)
    );
    let _ = write!(out, "{:>13}  {thread:<13}  {head}", show_time(raw.time_ns));
    match fields {
        Some(fields) if fields.is_empty() => {}
        Some(fields) => {
            let _ = write!(out, "  {fields}");
        }
        None if raw.payload.is_empty() => {}
        None => {
            let _ = write!(out, "  Payload={}", Value::Bytes(raw.payload));
        }
    }
    if let Some(stack) = stack {
        let _ = write!(out, "  [stack of {}]", stack.len());
    }
}
