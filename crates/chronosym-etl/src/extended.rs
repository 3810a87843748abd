//! Extended data items: what ETW adds between an `EVENT_HEADER` and the event's payload.

use crate::bytes::{guid_at, u16_at, u32_at, u64_at};
use crate::record::PointerSize;
use crate::tracelogging::{ProviderTraits, Schema};
use crate::{Guid, bytes};

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
    /// Schema of a TraceLogging event.
    SchemaTl(Schema<'a>),
    /// Name and traits of the provider.
    ProviderTraits(ProviderTraits<'a>),
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
pub struct Stack<'a> {
    /// 0, or what the other half (kernel or user) of this stack carries too: it arrives in an event of its own.
    pub match_id: u64,
    /// The addresses.
    pub addresses: Addresses<'a>,
}

/// A reference to a call stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackKey {
    /// As in [`Stack`].
    pub match_id: u64,
    /// Key of the definition.
    pub key: u64,
}

/// A packed array of 32- or 64-bit addresses.
#[derive(Clone, Copy)]
pub struct Addresses<'a> {
    bytes: &'a [u8],
    pointer_size: PointerSize,
}

impl<'a> Addresses<'a> {
    /// Views `bytes` as addresses; a rest too short for one is left out.
    pub fn new(bytes: &'a [u8], pointer_size: PointerSize) -> Self {
        let whole = bytes.len() - bytes.len() % pointer_size.bytes();
        Self {
            bytes: &bytes[..whole],
            pointer_size,
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.pointer_size.bytes()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Width of each.
    pub fn pointer_size(&self) -> PointerSize {
        self.pointer_size
    }

    /// Address number `index`.
    pub fn get(&self, index: usize) -> Option<u64> {
        match self.pointer_size {
            PointerSize::Four => bytes::u32_at(self.bytes, index.checked_mul(4)?).map(u64::from),
            PointerSize::Eight => bytes::u64_at(self.bytes, index.checked_mul(8)?),
        }
    }

    /// All of them, innermost first.
    pub fn iter(
        &self,
    ) -> impl ExactSizeIterator<Item = u64> + DoubleEndedIterator + Clone + use<'a> {
        let this = *self;
        (0..self.len()).map(move |i| this.get(i).unwrap_or_default())
    }
}

impl std::fmt::Debug for Addresses<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.iter().map(|a| format!("{a:#x}")))
            .finish()
    }
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
        while let Some((total, more)) = Self::item(&bytes[at..]) {
            at += total;
            if !more {
                break;
            }
        }
        at
    }

    /// Size of the item at the start of `bytes`, and whether another follows.
    fn item(bytes: &[u8]) -> Option<(usize, bool)> {
        let total = usize::from(u16_at(bytes, 0)?);
        let data = usize::from(u16_at(bytes, 6)?);
        if total < ITEM_HEADER || total > bytes.len() || data > total - ITEM_HEADER {
            return None;
        }
        Some((total, u16_at(bytes, 4)? & 1 != 0))
    }
}

impl<'a> Iterator for ExtendedItems<'a> {
    type Item = ExtendedItem<'a>;

    fn next(&mut self) -> Option<ExtendedItem<'a>> {
        let (total, _) = Self::item(self.rest)?;
        let kind = u16_at(self.rest, 2)?;
        let data = &self.rest[ITEM_HEADER..][..usize::from(u16_at(self.rest, 6)?)];
        self.rest = &self.rest[total..];
        Some(decode(kind, data).unwrap_or(ExtendedItem::Other(kind, data)))
    }
}

fn decode(kind: u16, data: &[u8]) -> Option<ExtendedItem<'_>> {
    let stack = |pointer_size| {
        let match_id = u64_at(data, 0)?;
        Some(ExtendedItem::Stack(Stack {
            match_id,
            addresses: Addresses::new(&data[8..], pointer_size),
        }))
    };
    Some(match kind {
        1 => ExtendedItem::RelatedActivity(guid_at(data, 0)?),
        2 => ExtendedItem::Sid(data),
        3 => ExtendedItem::TerminalSession(u32_at(data, 0)?),
        4 => ExtendedItem::Instance(u32_at(data, 0)?, u32_at(data, 4)?, guid_at(data, 8)?),
        5 => stack(PointerSize::Four)?,
        6 => stack(PointerSize::Eight)?,
        7 => ExtendedItem::PebsIndex(u64_at(data, 0)?),
        8 => ExtendedItem::Counters(Addresses::new(data, PointerSize::Eight)),
        9 => ExtendedItem::PsmKey(u64_at(data, 0)?),
        0xa => ExtendedItem::EventKey(u64_at(data, 0)?),
        0xb => ExtendedItem::SchemaTl(Schema::new(data)?),
        0xc => ExtendedItem::ProviderTraits(ProviderTraits::new(data)?),
        0xd => ExtendedItem::ProcessStartKey(u64_at(data, 0)?),
        0xe => ExtendedItem::ControlGuid(guid_at(data, 0)?),
        0xf => ExtendedItem::QpcDelta(u64_at(data, 0)?),
        0x10 => ExtendedItem::ContainerId(data),
        0x11 => ExtendedItem::StackKey(StackKey {
            match_id: u64_at(data, 0)?,
            key: u32_at(data, 8)?.into(),
        }),
        0x12 => ExtendedItem::StackKey(StackKey {
            match_id: u64_at(data, 0)?,
            key: u64_at(data, 8)?,
        }),
        _ => return None,
    })
}
