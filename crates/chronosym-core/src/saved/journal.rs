//! Keeps the input of a session for deltas.

use chronosym_events::{EventSchema, PointerSize};
use rustc_hash::FxHashMap;
use std::io::Write as _;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::DeflateEncoder;

use super::coder::{Coder, put_varint};
use super::crc::crc;
use super::ranks::Ranks;
use super::recording_rows::{self, EventTypeRow};
use super::steps::{self, Step};
use crate::facts::{At, Fact};
use crate::ids::EventTypeId;
use crate::recording::{Loss, TraceFacts};

pub(super) const MAGIC: &[u8; 8] = b"chronod\0";
pub(super) const VERSION: u32 = 2;
/// Lengths in the file and without compression, CRC-32 of the content, and CRC-32 of these 12
/// bytes.
pub(super) const FRAME: usize = 16;

/// The input of a session since the last delta was taken.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    has_header: bool,
    types: Vec<Arc<EventSchema>>,
    /// The numbers of event types in the delta.
    numbers: FxHashMap<EventTypeId, u32>,
    steps: Vec<Step>,
}

impl Journal {
    pub fn event(
        &mut self,
        (id, schema): (EventTypeId, &Arc<EventSchema>),
        at: At,
        pointer_size: PointerSize,
        payload: &[u8],
    ) {
        let number = *self.numbers.entry(id).or_insert_with(|| {
            self.types.push(schema.clone());
            self.types.len() as u32 - 1
        });
        self.steps
            .push(Step::of_event(number, at, pointer_size, payload));
    }

    pub fn fact(&mut self, at: At, fact: &Fact<'_>) {
        self.steps.push(Step::of_fact(at, fact));
    }

    pub fn loss(&mut self, loss: &Loss) {
        self.steps.push(Step::of_loss(loss));
    }

    pub fn perf_map(&mut self, pid: u32, base: u64, text: &[u8]) {
        self.steps.push(Step::of_perf_map(pid, base, text));
    }

    pub fn process_name(&mut self, pid: u32, name: &[u8]) {
        self.steps.push(Step::of_process_name(pid, name));
    }

    /// Returns the bytes to append: none if nothing was pushed. `facts` and `watermark_ns` are
    /// those of the session.
    pub fn take(&mut self, facts: &TraceFacts, watermark_ns: u64) -> Vec<u8> {
        if self.steps.is_empty() {
            return Vec::new();
        }
        let mut out = Vec::new();
        if !std::mem::replace(&mut self.has_header, true) {
            out.extend(MAGIC);
            out.extend(VERSION.to_le_bytes());
        }
        self.numbers.clear();
        let types = std::mem::take(&mut self.types).into_iter();
        let types = types.map(|schema| EventTypeRow {
            schema,
            count: 0,
            stacks: 0,
        });
        let mut content = Vec::new();
        put_varint(&mut content, watermark_ns);
        block(&mut content, vec![facts.clone()], recording_rows::facts);
        block(&mut content, types.collect(), recording_rows::event_type);
        block(&mut content, std::mem::take(&mut self.steps), steps::step);
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        // Writing to memory does not fail.
        let stored = encoder.write_all(&content).and_then(|()| encoder.finish());
        let stored = stored.unwrap_or_default();
        let mut frame = (stored.len() as u32).to_le_bytes().to_vec();
        frame.extend((content.len() as u32).to_le_bytes());
        frame.extend(crc(&stored).to_le_bytes());
        frame.extend(crc(&frame).to_le_bytes());
        out.extend(frame);
        out.extend(stored);
        out
    }
}

/// Appends the number of rows, the length of their block, and the block.
fn block<T>(out: &mut Vec<u8>, rows: Vec<T>, code: impl Fn(&mut Coder<'_>, &mut T)) {
    let mut ranks = Ranks::default();
    let mut coder = Coder::writer(&mut ranks);
    put_varint(out, rows.len() as u64);
    for mut row in rows {
        coder.row();
        code(&mut coder, &mut row);
    }
    let bytes = coder.finish();
    put_varint(out, bytes.len() as u64);
    out.extend(bytes);
}
