//! One record as a line.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::Arc;

use chronosym::EventSelector;
use chronosym_events::{DecodeError, EventKey, EventSchema, FieldList, RawEvent, Value};
use chronosym_types::json::{self, HexNumber};
use serde::{Serialize, Serializer};
use serde_with::skip_serializing_none;

use crate::absent;
use crate::args::EventFormat;
use crate::output::printable;
use crate::units::show_time;

/// Prints records.
pub struct Lines {
    format: EventFormat,
    selectors: Vec<EventSelector>,
    out: Box<dyn Write>,
    /// By the schema's address: each schema is kept, so an address is never reused.
    types: HashMap<*const EventSchema, TypeLine>,
    line: Vec<u8>,
    text: String,
    /// How many are printed at most.
    most: u64,
    printed: u64,
}

/// The constant parts of the lines of one event type.
struct TypeLine {
    schema: Arc<EventSchema>,
    wanted: bool,
    /// The event's name; in text with provider and id.
    name: String,
    undecodable: Option<(u64, DecodeError)>,
}

impl Lines {
    /// Prints at most `most` records of the selected events.
    pub fn new(
        format: EventFormat,
        selectors: Vec<EventSelector>,
        most: Option<usize>,
        out: Box<dyn Write>,
    ) -> Self {
        Lines {
            format,
            selectors,
            out,
            types: HashMap::new(),
            line: Vec::new(),
            text: String::new(),
            most: most.map_or(u64::MAX, |most| most as u64),
            printed: 0,
        }
    }

    /// Returns whether no record was printed.
    pub fn is_empty(&self) -> bool {
        self.printed == 0
    }

    /// Returns whether no further record will be printed.
    pub fn is_full(&self) -> bool {
        self.printed >= self.most
    }

    /// Prints a record of the type that `schema` describes, with the addresses of its stack, leaf
    /// first.
    pub fn push(
        &mut self,
        raw: &RawEvent<'_>,
        schema: &Arc<EventSchema>,
        stack: &[u64],
    ) -> io::Result<()> {
        let of_type = self
            .types
            .entry(Arc::as_ptr(schema))
            .or_insert_with(|| TypeLine {
                schema: schema.clone(),
                wanted: self.selectors.is_empty()
                    || self.selectors.iter().any(|s| s.matches(schema)),
                name: match self.format {
                    EventFormat::Jsonl => schema.name().into_owned(),
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
            EventFormat::Jsonl => {
                let line = Line {
                    time_ns: raw.time_ns,
                    pid: raw.process_id,
                    tid: raw.thread_id,
                    provider: schema.provider_name(),
                    id: schema.id(),
                    // Events identified by name have neither number.
                    version: schema.id().map(|_| schema.version()),
                    name: &of_type.name,
                    fields: fields.map_or(Fields::Payload(raw.payload), Fields::List),
                    stack,
                };
                json::to_writer(&mut self.line, &line)?;
            }
            EventFormat::Text => {
                self.text.clear();
                text(&mut self.text, raw, &of_type.name, fields, stack);
                // Text from a trace must neither control the terminal nor break the line.
                self.line
                    .extend_from_slice(printable(&self.text).as_bytes());
            }
        }
        self.printed += 1;
        self.line.push(b'\n');
        self.out.write_all(&self.line)
    }

    /// Returns whether no record is of a selected event.
    pub fn has_none(&self) -> bool {
        !self.types.values().any(|of_type| of_type.wanted)
    }

    /// Fails if no record is of a selected event, but the trace has others.
    pub fn check(&self) -> anyhow::Result<()> {
        let types = || self.types.values();
        if !self.has_none() || self.types.is_empty() {
            return Ok(());
        }
        let schemas: Vec<_> = types().map(|of_type| &*of_type.schema).collect();
        absent::no_event(&self.selectors, schemas)
    }

    /// Flushes the output; returns notes on undecodable events.
    pub fn finish(&mut self) -> io::Result<Vec<String>> {
        self.out.flush()?;
        let bad = self.types.values().filter_map(|of_type| {
            let (count, error) = of_type.undecodable.as_ref()?;
            let label = chronosym::event_label(&of_type.schema);
            Some(format!(
                "{count} {label} events cannot be decoded and are shown in hex: {error}"
            ))
        });
        let mut notes: Vec<String> = bad.collect();
        notes.sort();
        Ok(notes)
    }
}

/// A line of JSON; absent values are omitted.
#[skip_serializing_none]
#[derive(Serialize)]
struct Line<'a> {
    time_ns: u64,
    pid: Option<u32>,
    tid: Option<u64>,
    provider: &'a str,
    id: Option<u32>,
    version: Option<u32>,
    name: &'a str,
    fields: Fields<'a>,
    #[serde(skip_serializing_if = "<[_]>::is_empty", serialize_with = "addresses")]
    stack: &'a [u64],
}

fn addresses<S: Serializer>(stack: &[u64], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(stack.iter().copied().map(HexNumber))
}

/// The fields of an event, or the payload if it does not decode.
enum Fields<'a> {
    List(FieldList<'a>),
    Payload(&'a [u8]),
}

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Fields::List(fields) => fields.serialize(serializer),
            Fields::Payload(bytes) => {
                let bytes = Some(bytes).filter(|bytes| !bytes.is_empty());
                serializer.collect_map(bytes.map(|bytes| ("Payload", Value::Bytes(bytes))))
            }
        }
    }
}

/// `provider/id name`, or the name of an event without an id.
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
    stack: &[u64],
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
    if !stack.is_empty() {
        let _ = write!(out, "  [stack of {}]", stack.len());
    }
}
