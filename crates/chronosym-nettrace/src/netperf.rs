//! Events of netperf V1 to V3: whole headers, stacks inline.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "positions and sizes in a region, which has at most 1 GiB, and counts of what was read"
)]

use chronosym_types::Cursor;

use crate::decoder::Decoder;
use crate::event_type::NO_TYPE;
use crate::fault::{Fault, Parsed};
use crate::region::{Context, EventHeader};

/// The location of ids in the metadata of a netperf file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetadataForm {
    /// V1: the record's stream offset; the provider is a GUID.
    OffsetAndGuid,
    /// V2: the record's stream offset.
    Offset,
    /// V3: the first number of the payload.
    Numbered,
}

/// Size of the event that follows, its own size field included.
pub(crate) fn event_size(cursor: &mut Cursor<'_>) -> Parsed<usize> {
    // A copy: the cursor stays in front of the event.
    let mut ahead = *cursor;
    ahead.length()?.checked_add(4).ok_or(Fault::Bad)
}

impl Decoder {
    /// Takes in the event from `at` to `end`, whose first byte has the stream offset `offset`.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a region has at most 1 GiB"
    )]
    pub(crate) fn netperf_event(
        &mut self,
        bytes: &[u8],
        at: usize,
        end: usize,
        offset: u64,
        form: MetadataForm,
    ) -> Parsed<()> {
        let mut cursor = Cursor::starting_at(bytes.get(..end).ok_or(Fault::Bad)?, at + 4);
        let metadata_id = cursor.u32()?;
        let thread = u64::from(cursor.u32()?);
        let time = cursor.i64()?;
        let context = Context {
            activity_id: cursor.guid()?,
            related_activity_id: cursor.guid()?,
            ..Context::NONE
        };
        let payload_size = cursor.length()?;
        let payload_at = cursor.position();
        let payload = cursor.take(payload_size)?;
        let stack_size = cursor.length()?;
        let stack = cursor.take(stack_size)?;
        if metadata_id == 0 {
            self.diagnostics.metadata_records += 1;
            return match form {
                MetadataForm::Numbered => self.types.define_v3(payload, &mut self.diagnostics),
                MetadataForm::Offset | MetadataForm::OffsetAndGuid => {
                    let guid = form == MetadataForm::OffsetAndGuid;
                    self.types
                        .define_v2(offset, payload, guid, &mut self.diagnostics)
                }
            };
        }
        let type_choice = self.types.find(metadata_id);
        if type_choice.event_type == NO_TYPE {
            self.diagnostics.unknown_metadata += 1;
            self.missing();
            return Ok(());
        }
        self.diagnostics.stacks += u64::from(!stack.is_empty());
        self.diagnostics.events += 1;
        self.region.last_time = self.region.last_time.max(time);
        if self.types.is_counted(type_choice, time) {
            self.region.count(type_choice.event_type, !stack.is_empty());
            return Ok(());
        }
        let stack = self.region.stacks.push(stack).ok_or(Fault::Bad)?;
        let context = self.region.context(&context);
        self.region.headers.push(EventHeader {
            time,
            thread,
            capture_thread: thread,
            payload_at: payload_at as u32,
            payload_size: payload_size as u32,
            event_type: type_choice.event_type,
            stack,
            sequence: 0,
            context,
        });
        Ok(())
    }
}

/// Skips the end of the events: an end tag, then a table with one forward reference to this offset,
/// and the offsets of that table and of the trailer. No event has this form.
pub(crate) fn end(cursor: &mut Cursor<'_>, base: u64) -> Parsed<()> {
    const NULL_REFERENCE: u8 = 1;
    const END_OBJECT: u8 = 6;
    let offset = base + cursor.position() as u64;
    if cursor.u8()? != END_OBJECT {
        return Err(Fault::Bad);
    }
    let mut after_null = *cursor;
    if after_null.u8()? == NULL_REFERENCE && skip_reference(&mut after_null, offset)? {
        *cursor = after_null;
        return Ok(());
    }
    if skip_reference(cursor, offset)? {
        Ok(())
    } else {
        Err(Fault::Bad)
    }
}

fn skip_reference(table: &mut Cursor<'_>, offset: u64) -> Parsed<bool> {
    let found = table.u32()? == 1 && u64::from(table.u32()?) == offset & u64::from(u32::MAX);
    if found {
        table.take(8)?;
    }
    Ok(found)
}
