//! Reads deltas, which a live session appends to a file or stream.
//!
//! | bytes | content |
//! |---|---|
//! | 8 | `chronod` and a zero |
//! | 4 | version of the format |
//! | … | frames: length of the content in the file (4) and without compression (4), CRC-32 of the content (4) and of these 12 bytes (4), and the content, compressed with DEFLATE |

use std::io::Read;

use flate2::read::DeflateDecoder;

use super::coder::{Coder, take_varint};
use super::crc::crc;
use super::error::SavedError;
use super::journal::{FRAME, MAGIC, VERSION};
use super::ranks::NoTexts;
use super::recording_rows::{self, EventTypeRow};
use super::steps::{self, Step, StepKind};
use crate::ids::EventTypeId;
use crate::recording::TraceFacts;
use crate::session::{Payload, Session};

const HEADER: usize = 12;
/// Maximum ratio of a frame's contents to its bytes, beyond the exempt part.
const MAX_RATIO: u64 = 200;
const FREE: u64 = 64 << 20;

/// Reads the deltas of a live session ([`LiveSession::take_delta`](crate::LiveSession::take_delta))
/// into another session, as they arrive: a live one, or one that is finished at the end. It then
/// resolves like the session that wrote them.
#[derive(Debug, Default)]
pub struct DeltaReader {
    /// Number of bytes read from the start of the file.
    read: u64,
    /// Size of the contents so far, in bytes.
    expanded: u64,
    watermark_ns: u64,
}

impl DeltaReader {
    /// Creates a reader at the start of a file or stream.
    pub fn new() -> Self {
        DeltaReader::default()
    }

    /// Returns whether bytes start like deltas.
    pub fn is_delta(head: &[u8]) -> bool {
        head.starts_with(MAGIC)
    }

    /// Returns the time up to which the answers of the writer were final, in ns since its recording
    /// began.
    pub fn watermark_ns(&self) -> u64 {
        self.watermark_ns
    }

    /// Applies the complete frames at the start of `bytes`, and returns their length. `bytes`
    /// follow those of the last call. The rest is the start of a frame that is not yet complete, or
    /// that a crash has truncated.
    ///
    /// # Errors
    ///
    /// [`SavedError`] if they are not deltas, of a later version, or damaged. The frames before
    /// were applied.
    pub fn read(&mut self, bytes: &[u8], session: &mut Session) -> Result<usize, SavedError> {
        let mut rest = bytes;
        if self.read == 0 {
            let known = rest.len().min(MAGIC.len());
            if rest[..known] != MAGIC[..known] {
                return Err(SavedError::NotSaved);
            }
            let Some((head, frames)) = rest.split_at_checked(HEADER) else {
                return Ok(0);
            };
            let found = u32_at(head, MAGIC.len());
            if found == 0 {
                let (part, offset) = ("header", 0);
                return Err(SavedError::Damaged { part, offset });
            }
            if found > VERSION {
                let known = VERSION;
                return Err(SavedError::NewerVersion { found, known });
            }
            (self.read, rest) = (HEADER as u64, frames);
        }
        while let Some((head, content)) = rest.split_at_checked(FRAME) {
            let (stored, length) = (u32_at(head, 0) as usize, u32_at(head, 4));
            let damaged = SavedError::Damaged {
                part: "delta",
                offset: self.read,
            };
            if crc(&head[..12]) != u32_at(head, 12) {
                return Err(damaged);
            }
            let Some((content, after)) = content.split_at_checked(stored) else {
                break;
            };
            if crc(content) != u32_at(head, 8) {
                return Err(damaged);
            }
            self.expanded += u64::from(length);
            let read = self.read + (FRAME + stored) as u64;
            if self.expanded > FREE + MAX_RATIO * read {
                return Err(SavedError::TooLarge {
                    length: read,
                    expanded: self.expanded,
                });
            }
            let content = inflate(content, length).ok_or(damaged.clone())?;
            self.apply(&content, session).ok_or(damaged)?;
            (self.read, rest) = (read, after);
        }
        Ok(bytes.len() - rest.len())
    }

    fn apply(&mut self, mut content: &[u8], session: &mut Session) -> Option<()> {
        self.watermark_ns = self.watermark_ns.max(take_varint(&mut content)?);
        let facts: Vec<TraceFacts> = block(&mut content, recording_rows::facts)?;
        let types: Vec<EventTypeRow> = block(&mut content, recording_rows::event_type)?;
        let steps: Vec<Step> = block(&mut content, steps::step)?;
        if !content.is_empty() {
            return None;
        }
        for facts in facts {
            let reached = session.facts().duration_ns;
            *session.facts() = facts;
            session.facts().duration_ns = session.facts().duration_ns.max(reached);
        }
        let types: Vec<EventTypeId> = types
            .into_iter()
            .map(|row| session.event_type(row.schema))
            .collect();
        for step in &steps {
            let pid = step.at.process;
            match step.kind {
                StepKind::Event => {
                    let (number, pointer_size) = step.event()?;
                    let bytes = &step.bytes;
                    let payload = Payload {
                        pointer_size,
                        bytes,
                    };
                    session.push(*types.get(number)?, step.at, payload, None);
                }
                StepKind::PerfMap => session.image_map(pid?, *step.numbers.first()?, &step.bytes),
                StepKind::ProcessName => session.name_process(pid?, &step.bytes),
                StepKind::Loss => session.lost(step.loss()?),
                _ => step.fact(|at, fact| session.apply(at, fact))?,
            }
        }
        Some(())
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4]
        .iter()
        .rev()
        .fold(0, |number, &byte| number << 8 | u32::from(byte))
}

fn inflate(stored: &[u8], length: u32) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    let mut decoder = DeflateDecoder::new(stored).take(u64::from(length) + 1);
    decoder.read_to_end(&mut content).ok()?;
    (content.len() == length as usize).then_some(content)
}

/// Reads the rows of a block.
fn block<T: Default>(content: &mut &[u8], code: impl Fn(&mut Coder<'_>, &mut T)) -> Option<Vec<T>> {
    let count = usize::try_from(take_varint(content)?).ok()?;
    let length = usize::try_from(take_varint(content)?).ok()?;
    let (block, rest) = content.split_at_checked(length)?;
    *content = rest;
    // Every row takes at least one byte.
    if count > length {
        return None;
    }
    let mut texts = NoTexts;
    let mut coder = Coder::reader(block, &mut texts);
    let mut rows = Vec::new();
    for _ in 0..count {
        let mut row = T::default();
        coder.row();
        code(&mut coder, &mut row);
        if !coder.is_valid() {
            return None;
        }
        rows.push(row);
    }
    coder.is_complete().then_some(rows)
}
