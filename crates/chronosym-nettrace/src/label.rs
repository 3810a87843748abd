//! V6 label lists: activity ids, overrides and pairs that hang on events.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "positions and sizes in a region, which has at most 1 GiB, and counts of what was read"
)]

use chronosym_types::{Cursor, Guid, unzigzag};

use crate::blob_table::BlobTable;
use crate::fault::{Fault, Parsed};

/// One label of a V6 event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Label {
    /// Activity id, a GUID in wire order.
    ActivityId(Guid),
    /// Related activity id, a GUID in wire order.
    RelatedActivityId(Guid),
    /// Trace id (W3C trace context).
    TraceId([u8; 16]),
    /// Span id (W3C trace context).
    SpanId(u64),
    /// A key and its text.
    Text(String, String),
    /// A key and its number.
    Number(String, i64),
    /// Opcode of this event instead of its type's.
    Opcode(u8),
    /// Keywords of this event instead of its type's.
    Keywords(u64),
    /// Level of this event instead of its type's.
    Level(u8),
    /// Version of this event instead of its type's.
    Version(u8),
}

/// Iterator over the labels of one event.
///
/// # Examples
///
/// ```
/// use chronosym_nettrace::{Label, Options, Reader};
/// # use chronosym_support::{nettrace::NettraceWriter, trace::EventSpec};
/// # let mut writer = NettraceWriter::v6();
/// # let request = writer.event_type("My-EventSource", 1, 0);
/// # let mut spec = EventSpec::new(request, 300, 1);
/// # spec.activity = [7; 16];
/// # writer.record(&spec);
/// # let trace = writer.finish();
///
/// let mut reader = Reader::new(&trace[..], Options::default())?;
/// let region = reader.next_region()?.unwrap();
/// let record = region.record(0).unwrap();
/// let Some(Label::ActivityId(id)) = record.labels().next() else { panic!("no label") };
/// assert_eq!(record.activity_id(), Some(id));
/// # Ok::<(), chronosym_nettrace::Error>(())
/// ```
#[derive(Clone)]
pub struct Labels<'a> {
    cursor: Cursor<'a>,
}

impl std::fmt::Debug for Labels<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

impl<'a> Labels<'a> {
    pub(crate) fn new(list: &'a [u8]) -> Self {
        Self {
            cursor: Cursor::new(list),
        }
    }
}

impl Iterator for Labels<'_> {
    type Item = Label;

    fn next(&mut self) -> Option<Label> {
        // Lists were checked when their block was read.
        read_label(&mut self.cursor).ok().map(|(label, _)| label)
    }
}

/// The label and whether it is the last of its list.
fn read_label(cursor: &mut Cursor<'_>) -> Parsed<(Label, bool)> {
    const LAST: u8 = 0x80;
    let kind = cursor.u8()?;
    let label = match kind & !LAST {
        1 => Label::ActivityId(cursor.guid()?),
        2 => Label::RelatedActivityId(cursor.guid()?),
        3 => Label::TraceId(cursor.array()?),
        4 => Label::SpanId(cursor.u64()?),
        5 => Label::Text(
            cursor.var_text()?.to_string(),
            cursor.var_text()?.to_string(),
        ),
        6 => {
            let key = cursor.var_text()?.to_string();
            Label::Number(key, unzigzag(cursor.var_u64()?).cast_signed())
        }
        7 => Label::Opcode(cursor.u8()?),
        8 => Label::Keywords(cursor.u64()?),
        9 => Label::Level(cursor.u8()?),
        10 => Label::Version(cursor.u8()?),
        _ => return Err(Fault::Bad),
    };
    Ok((label, kind & LAST != 0))
}

/// Reads a label list block: first index, count, lists.
pub(crate) fn read_block(
    labels: &mut BlobTable,
    cursor: &mut Cursor<'_>,
    limit: usize,
) -> Parsed<()> {
    let first = cursor.u32()?;
    let count = cursor.u32()?;
    for offset in 0..count {
        let index = first.checked_add(offset).ok_or(Fault::Bad)?;
        let mut list = *cursor;
        while !read_label(cursor)?.1 {}
        let list = list.take(cursor.position() - list.position())?;
        if labels.size() + list.len() > limit {
            return Err(Fault::Bad);
        }
        labels.insert(index, list).ok_or(Fault::Bad)?;
    }
    Ok(())
}
