//! Records as lines.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use chronosym::EventSelector;
use chronosym_events::{DecodeError, EventKey, EventSchema, RawEvent};

use super::chunk::{Chunk, TypeHead};
use super::formatters::Formatters;
use super::json_line;
use crate::absent;
use crate::args::EventFormat;

/// Prints records.
pub struct Lines {
    format: EventFormat,
    selectors: Vec<EventSelector>,
    out: Box<dyn Write>,
    /// By the schema's address, the index of each type: schemas are kept, so an address is never
    /// reused. `None` if its records are not printed.
    types: HashMap<*const EventSchema, Option<usize>>,
    heads: Arc<Vec<Arc<TypeHead>>>,
    /// The records that no thread has yet.
    chunk: Chunk,
    formatters: Formatters,
    /// For each type the number of undecodable records, and why the first one is.
    undecodable: HashMap<usize, (u64, DecodeError)>,
    /// How many are printed at most.
    most: u64,
    printed: u64,
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
            heads: Arc::default(),
            chunk: Chunk::default(),
            formatters: Formatters::new(format),
            undecodable: HashMap::new(),
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
        let head = match self.types.get(&Arc::as_ptr(schema)) {
            Some(head) => *head,
            None => self.add_type(schema),
        };
        let Some(head) = head else {
            return Ok(());
        };
        self.chunk.push(raw, head, stack);
        self.printed += 1;
        if self.chunk.is_full() {
            let mut chunk = std::mem::take(&mut self.chunk);
            chunk.heads = self.heads.clone();
            if let Some(formatted) = self.formatters.pass(chunk)? {
                self.chunk = self.write(formatted)?;
            }
        }
        Ok(())
    }

    fn add_type(&mut self, schema: &Arc<EventSchema>) -> Option<usize> {
        let head = TypeHead {
            schema: schema.clone(),
            constant: match self.format {
                EventFormat::Jsonl => json_line::constant(schema),
                EventFormat::Text => text_head(schema),
            },
        };
        let heads = Arc::make_mut(&mut self.heads);
        heads.push(Arc::new(head));
        let is_wanted =
            self.selectors.is_empty() || self.selectors.iter().any(|s| s.matches(schema));
        let index = is_wanted.then_some(heads.len() - 1);
        self.types.insert(Arc::as_ptr(schema), index);
        index
    }

    /// Writes the lines of a chunk; returns it empty.
    fn write(&mut self, mut chunk: Chunk) -> io::Result<Chunk> {
        for &(head, count, error) in &chunk.undecodable {
            self.undecodable.entry(head).or_insert((0, error)).0 += count;
        }
        self.out.write_all(&chunk.lines)?;
        chunk.clear();
        Ok(chunk)
    }

    /// Writes all records so far.
    pub fn write_all(&mut self) -> io::Result<()> {
        while let Some(formatted) = self.formatters.next()? {
            self.write(formatted)?;
        }
        let mut chunk = std::mem::take(&mut self.chunk);
        chunk.heads = self.heads.clone();
        chunk.format(self.format);
        self.chunk = self.write(chunk)?;
        Ok(())
    }

    /// Returns whether no record is of a selected event.
    pub fn has_none(&self) -> bool {
        self.types.values().all(Option::is_none)
    }

    /// Fails if no record is of a selected event, but the trace has others.
    pub fn check(&self) -> anyhow::Result<()> {
        if !self.has_none() || self.types.is_empty() {
            return Ok(());
        }
        let schemas: Vec<_> = self.heads.iter().map(|head| &*head.schema).collect();
        absent::no_event(&self.selectors, schemas, None)
    }

    /// Flushes the output; returns notes on undecodable events.
    pub fn finish(&mut self) -> io::Result<Vec<String>> {
        self.out.flush()?;
        let bad = self.undecodable.iter().map(|(&head, (count, error))| {
            let label = chronosym::event_label(&self.heads[head].schema);
            format!("{count} {label} events cannot be decoded and are shown in hex: {error}")
        });
        let mut notes: Vec<String> = bad.collect();
        notes.sort();
        Ok(notes)
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
