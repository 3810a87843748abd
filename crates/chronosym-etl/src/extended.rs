//! Extended data items: what ETW adds between an `EVENT_HEADER` and the event's payload.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "positions in a buffer, which has at most 16 MiB"
)]

use chronosym_types::{AStr, Addresses, Cursor, PointerSize, bytes};

use crate::Guid;

const ITEM_HEADER: usize = 8;

/// One extended data item (`EVENT_HEADER_EXT_TYPE_*`).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ExtendedItem<'a> {
    /// Activity that this one was started from.
    RelatedActivity(Guid),
    /// Security identifier of the user, in its binary form.
    Sid(&'a [u8]),
    /// Terminal session.
    TerminalSession(u32),
    /// Instance id, parent instance id, parent class.
    Instance(u32, u32, Guid),
    /// Call stack at the event.
    Stack(Stack<'a>),
    /// Key of a call stack that a later StackWalk event defines.
    StackKey(StackKey),
    /// PEBS index.
    PebsIndex(u64),
    /// Hardware performance counters.
    Counters(Addresses<'a>),
    /// PSM key.
    PsmKey(u64),
    /// Unique number of the event.
    EventKey(u64),
    /// What a TraceLogging event says of its fields: bytes for
    /// [`TraceLoggingSchema::parse`](chronosym_types::TraceLoggingSchema::parse).
    SchemaTl(&'a [u8]),
    /// Name of the provider, in UTF-8: its traits begin with it (TraceLoggingProvider.h).
    ProviderName(AStr<'a>),
    /// Number that tells incarnations of one process id apart.
    ProcessStartKey(u64),
    /// Control GUID.
    ControlGuid(Guid),
    /// Difference to the performance counter, for sessions with another clock.
    QpcDelta(u64),
    /// Container id: a GUID in ASCII.
    ContainerId(&'a [u8]),
    /// A type that this crate does not know, or an item too short for its type: type and data.
    Other(u16, &'a [u8]),
}

/// A call stack: addresses with the innermost first. All but the first are return addresses.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Stack<'a> {
    /// 0, or what the other half (kernel or user) of this stack carries too: it arrives in an event of its own.
    pub match_id: u64,
    /// The addresses.
    pub addresses: Addresses<'a>,
}

/// A reference to a call stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StackKey {
    /// As in [`Stack`].
    pub match_id: u64,
    /// Key of the definition.
    pub key: u64,
}

/// Iterator over the extended items of a record.
#[derive(Clone, Debug)]
pub struct ExtendedItems<'a> {
    rest: &'a [u8],
}

impl<'a> ExtendedItems<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Bytes that the chain of items takes at the start of `bytes`. A broken link ends it: what follows is payload.
    pub(crate) fn length(bytes: &[u8]) -> usize {
        let mut at = 0;
        while let Some((total, more)) = Self::item(bytes.get(at..).unwrap_or_default()) {
            at += total;
            if !more {
                break;
            }
        }
        at
    }

    /// Size of the item at the start of `bytes`, and whether another follows.
    fn item(bytes: &[u8]) -> Option<(usize, bool)> {
        let total = usize::from(bytes::u16(bytes, 0)?);
        let data = usize::from(bytes::u16(bytes, 6)?);
        if total < ITEM_HEADER || total > bytes.len() || data > total - ITEM_HEADER {
            return None;
        }
        Some((total, bytes::u16(bytes, 4)? & 1 != 0))
    }
}

impl<'a> Iterator for ExtendedItems<'a> {
    type Item = ExtendedItem<'a>;

    fn next(&mut self) -> Option<ExtendedItem<'a>> {
        let (total, _) = Self::item(self.rest)?;
        let kind = bytes::u16(self.rest, 2)?;
        let size = usize::from(bytes::u16(self.rest, 6)?);
        let data = self.rest.get(ITEM_HEADER..)?.get(..size)?;
        self.rest = self.rest.get(total..).unwrap_or_default();
        Some(decode(kind, data).unwrap_or(ExtendedItem::Other(kind, data)))
    }
}

fn decode(kind: u16, data: &[u8]) -> Option<ExtendedItem<'_>> {
    let stack = |pointer_size| {
        let match_id = bytes::u64(data, 0)?;
        Some(ExtendedItem::Stack(Stack {
            match_id,
            addresses: Addresses::new(data.get(8..).unwrap_or_default(), pointer_size),
        }))
    };
    Some(match kind {
        1 => ExtendedItem::RelatedActivity(bytes::guid(data, 0)?),
        2 => ExtendedItem::Sid(data),
        3 => ExtendedItem::TerminalSession(bytes::u32(data, 0)?),
        4 => ExtendedItem::Instance(
            bytes::u32(data, 0)?,
            bytes::u32(data, 4)?,
            bytes::guid(data, 8)?,
        ),
        5 => stack(PointerSize::Four)?,
        6 => stack(PointerSize::Eight)?,
        7 => ExtendedItem::PebsIndex(bytes::u64(data, 0)?),
        8 => ExtendedItem::Counters(Addresses::new(data, PointerSize::Eight)),
        9 => ExtendedItem::PsmKey(bytes::u64(data, 0)?),
        0xa => ExtendedItem::EventKey(bytes::u64(data, 0)?),
        0xb => ExtendedItem::SchemaTl(data),
        0xc => {
            let size = usize::from(bytes::u16(data, 0)?);
            let traits = data.get(2..size.min(data.len()))?;
            ExtendedItem::ProviderName(Cursor::new(traits).narrow().ok()?)
        }
        0xd => ExtendedItem::ProcessStartKey(bytes::u64(data, 0)?),
        0xe => ExtendedItem::ControlGuid(bytes::guid(data, 0)?),
        0xf => ExtendedItem::QpcDelta(bytes::u64(data, 0)?),
        0x10 => ExtendedItem::ContainerId(data),
        0x11 => ExtendedItem::StackKey(StackKey {
            match_id: bytes::u64(data, 0)?,
            key: bytes::u32(data, 8)?.into(),
        }),
        0x12 => ExtendedItem::StackKey(StackKey {
            match_id: bytes::u64(data, 0)?,
            key: bytes::u64(data, 8)?,
        }),
        _ => return None,
    })
}
