//! Extended data items, which ETW adds between an `EVENT_HEADER` and the event's payload.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "positions in a buffer, which has at most 16 MiB"
)]

use chronosym_types::{AStr, Addresses, Cursor, PointerSize, bytes};

const ITEM_HEADER: usize = 8;

/// One extended data item.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ExtendedItem<'a> {
    /// Call stack at the event.
    Stack(Stack<'a>),
    /// Key of a call stack that a later StackWalk event defines.
    StackKey(StackKey),
    /// The description of a TraceLogging event's fields: bytes for
    /// [`TraceLoggingSchema::parse`](chronosym_types::TraceLoggingSchema::parse).
    SchemaTl(&'a [u8]),
    /// Name of the provider, in UTF-8: the start of its traits (TraceLoggingProvider.h).
    ProviderName(AStr<'a>),
    /// An item of any other type (`EVENT_HEADER_EXT_TYPE_*`), or one too short for its type: type
    /// and data.
    Other(u16, &'a [u8]),
}

/// A call stack: addresses with the innermost first. All but the first are return addresses.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Stack<'a> {
    /// Links the kernel and user parts of a stack, which arrive in separate events; 0 if there is
    /// one part.
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

    /// Returns the length in bytes of the chain of items at the start of `bytes`. A broken link
    /// ends it: the rest is payload.
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

    #[inline]
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
        5 => stack(PointerSize::Four)?,
        6 => stack(PointerSize::Eight)?,
        0xb => ExtendedItem::SchemaTl(data),
        0xc => {
            let size = usize::from(bytes::u16(data, 0)?);
            let traits = data.get(2..size.min(data.len()))?;
            ExtendedItem::ProviderName(Cursor::new(traits).narrow().ok()?)
        }
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
