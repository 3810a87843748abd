use crate::cursor::Cursor;
use crate::part::{Counted, Part, Style};
use crate::value::{FieldList, Value};
use crate::{Addresses, DecodeError};

macro_rules! numbers {
    ($(#[$meta:meta])* $name:ident $item:ident $size:literal $value:ident $as:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
        pub struct $name<'a>(&'a [u8]);

        impl<'a> $name<'a> {
            /// Returns the numbers in order.
            pub fn iter(&self) -> impl ExactSizeIterator<Item = $item> + Clone + use<'a> {
                let (numbers, _) = self.0.as_chunks();
                numbers.iter().map(|bytes| $item::from_le_bytes(*bytes))
            }

        }

        impl<'a> Counted<'a> for $name<'a> {
            fn read_counted(c: &mut Cursor<'a>, count: usize) -> Result<Self, DecodeError> {
                Ok(Self(c.take(count.saturating_mul($size))?))
            }
        }

        impl<'a> Part<'a> for $name<'a> {
            /// Reads the rest of the payload, in whole elements.
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

impl<'a> Counted<'a> for Addresses<'a> {
    fn read_counted(c: &mut Cursor<'a>, count: usize) -> Result<Self, DecodeError> {
        let size = c.pointer_size;
        let bytes = c.take(count.saturating_mul(size.bytes()))?;
        Ok(Self::new(bytes, size))
    }
}

impl<'a> Part<'a> for Addresses<'a> {
    /// Reads the rest of the payload, in whole addresses.
    fn read(c: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        let count = c.rest().chunks_exact(c.pointer_size.bytes()).len();
        Self::read_counted(c, count)
    }

    fn list(&self, name: &'static str, _: Style, out: &mut FieldList<'a>) {
        out.push(name, Value::Array(self.iter().map(Value::Hex).collect()));
    }
}
