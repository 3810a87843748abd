use crate::cursor::Cursor;
use crate::part::{Counted, Part, Style};
use crate::value::{FieldList, Value};
use crate::{DecodeError, PointerSize};

macro_rules! numbers {
    ($(#[$meta:meta])* $name:ident $item:ident $size:literal $value:ident $as:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
        pub struct $name<'a>(&'a [u8]);

        impl<'a> $name<'a> {
            /// The numbers in order.
            pub fn iter(&self) -> impl ExactSizeIterator<Item = $item> + Clone + use<'a> {
                self.0.chunks_exact($size).map(|b| {
                    let mut bytes = [0; $size];
                    bytes.copy_from_slice(b);
                    $item::from_le_bytes(bytes)
                })
            }

            /// How many there are.
            #[must_use]
            pub fn len(&self) -> usize {
                self.0.len() / $size
            }

            /// Whether there are none.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.0.is_empty()
            }
        }

        impl<'a> Counted<'a> for $name<'a> {
            fn read_counted(c: &mut Cursor<'a>, count: usize) -> Result<Self, DecodeError> {
                c.bytes(count.saturating_mul($size)).map(Self)
            }
        }

        impl<'a> Part<'a> for $name<'a> {
            /// Whatever is left of the payload, in whole elements.
            fn read(c: &mut Cursor<'a>) -> Result<Self, DecodeError> {
                let count = c.rest().len() / $size;
                Self::read_counted(c, count)
            }

            fn list(&self, name: &'static str, _: Style, out: &mut FieldList<'a>) {
                out.push(name, Value::Array(self.iter().map(|n| Value::$value($as::from(n))).collect()));
            }
        }
    };
}

numbers!(
    /// Signed 32-bit numbers of a payload.
    I32s i32 4 I64 i64
);
numbers!(
    /// Unsigned 32-bit numbers of a payload.
    U32s u32 4 U64 u64
);
numbers!(
    /// Ids of a payload, 64 bits each.
    Ids u64 8 Hex u64
);

/// Addresses of a payload, of its own pointer width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses<'a> {
    bytes: &'a [u8],
    pointer_size: PointerSize,
}

impl<'a> Addresses<'a> {
    /// Wraps addresses as they stand in a payload; bytes of an incomplete last one are left out.
    #[must_use]
    pub fn new(bytes: &'a [u8], pointer_size: PointerSize) -> Self {
        let whole = bytes.len() - bytes.len() % pointer_size.bytes();
        Self {
            bytes: &bytes[..whole],
            pointer_size,
        }
    }

    /// The addresses in order, zero-extended.
    pub fn iter(
        &self,
    ) -> impl ExactSizeIterator<Item = u64> + DoubleEndedIterator + Clone + use<'a> {
        let width = self.pointer_size.bytes();
        self.bytes.chunks_exact(width).map(|b| {
            let mut bytes = [0; 8];
            bytes[..b.len()].copy_from_slice(b);
            u64::from_le_bytes(bytes)
        })
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() / self.pointer_size.bytes()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The addresses as they stand in the payload.
    #[must_use]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The width of each address.
    #[must_use]
    pub fn pointer_size(&self) -> PointerSize {
        self.pointer_size
    }
}

impl<'a> Counted<'a> for Addresses<'a> {
    fn read_counted(c: &mut Cursor<'a>, count: usize) -> Result<Self, DecodeError> {
        let size = c.pointer_size;
        c.bytes(count.saturating_mul(size.bytes()))
            .map(|bytes| Self::new(bytes, size))
    }
}

impl<'a> Part<'a> for Addresses<'a> {
    /// Whatever is left of the payload, in whole addresses.
    fn read(c: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        let count = c.rest().len() / c.pointer_size.bytes();
        Self::read_counted(c, count)
    }

    fn list(&self, name: &'static str, _: Style, out: &mut FieldList<'a>) {
        out.push(name, Value::Array(self.iter().map(Value::Hex).collect()));
    }
}
