//! Copies of records, and their lines.

use std::fmt::Write as _;
use std::sync::Arc;

use chronosym_events::{DecodeError, EventSchema, FieldList, PointerSize, RawEvent, Value};

use super::json_line;
use crate::args::EventFormat;
use crate::output::printable;
use crate::units::show_time;

/// The constant parts of the lines of one event type.
pub struct TypeHead {
    pub schema: Arc<EventSchema>,
    /// The same part of all lines: provider, id and name.
    pub constant: String,
}

/// Records whose lines are written together.
#[derive(Default)]
pub struct Chunk {
    records: Vec<Record>,
    payloads: Vec<u8>,
    /// The addresses of all stacks, leaf first.
    stacks: Vec<u64>,
    /// The types of the records, among others.
    pub heads: Arc<Vec<Arc<TypeHead>>>,
    /// The lines, once [`Chunk::format`] has been called.
    pub lines: Vec<u8>,
    /// Types of records that cannot be decoded: how many there are, and why not the first.
    pub undecodable: Vec<(usize, u64, DecodeError)>,
}

/// A record; its payload and stack end at these positions.
struct Record {
    time_ns: u64,
    process_id: Option<u32>,
    thread_id: Option<u64>,
    processor: Option<u32>,
    pointer_size: PointerSize,
    head: usize,
    payload_end: usize,
    stack_end: usize,
}

impl Chunk {
    /// Adds a record of the type with an index among the heads.
    pub fn push(&mut self, raw: &RawEvent<'_>, head: usize, stack: &[u64]) {
        self.payloads.extend_from_slice(raw.payload);
        self.stacks.extend_from_slice(stack);
        self.records.push(Record {
            time_ns: raw.time_ns,
            process_id: raw.process_id,
            thread_id: raw.thread_id,
            processor: raw.processor,
            pointer_size: raw.pointer_size,
            head,
            payload_end: self.payloads.len(),
            stack_end: self.stacks.len(),
        });
    }

    /// Returns whether it is large enough.
    pub fn is_full(&self) -> bool {
        const RECORDS: usize = 1 << 10;
        const BYTES: usize = 1 << 16;
        let bytes = self.payloads.len() + size_of_val(self.stacks.as_slice());
        self.records.len() >= RECORDS || bytes >= BYTES
    }

    /// Removes records and lines; their memory is reused.
    pub fn clear(&mut self) {
        self.records.clear();
        self.payloads.clear();
        self.stacks.clear();
        self.lines.clear();
        self.undecodable.clear();
    }

    /// Makes the lines of the records.
    pub fn format(&mut self, format: EventFormat) {
        let heads = self.heads.clone();
        let (mut payload_at, mut stack_at) = (0, 0);
        let mut text = String::new();
        for record in &self.records {
            let head = &heads[record.head];
            let raw = RawEvent {
                time_ns: record.time_ns,
                process_id: record.process_id,
                thread_id: record.thread_id,
                processor: record.processor,
                pointer_size: record.pointer_size,
                schema: &head.schema,
                payload: &self.payloads[payload_at..record.payload_end],
            };
            let stack = &self.stacks[stack_at..record.stack_end];
            (payload_at, stack_at) = (record.payload_end, record.stack_end);
            let fields = raw.fields().unwrap_or_else(|error| {
                let of_type = |it: &&mut (usize, u64, DecodeError)| it.0 == record.head;
                match self.undecodable.iter_mut().find(of_type) {
                    Some((_, count, _)) => *count += 1,
                    None => self.undecodable.push((record.head, 1, error)),
                }
                None
            });
            match format {
                EventFormat::Jsonl => {
                    let (out, fields) = (&mut self.lines, fields.as_ref());
                    json_line::push(out, &raw, &head.constant, fields, stack);
                }
                EventFormat::Text => {
                    text.clear();
                    append_text(&mut text, &raw, &head.constant, fields, stack);
                    // Text from a trace must neither control the terminal nor break the line.
                    self.lines.extend_from_slice(printable(&text).as_bytes());
                }
            }
            self.lines.push(b'\n');
        }
    }
}

fn append_text(
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
