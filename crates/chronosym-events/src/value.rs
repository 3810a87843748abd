use std::borrow::Cow;
use std::fmt;

use chronosym_types::{AStr, Guid, Hex, WStr};

/// The value of a field.
///
/// `Display` and `Serialize` (feature `serde`) agree: ids, addresses, tokens and flags
/// ([`Value::Hex`]) are hex strings, GUIDs and text are strings, arrays are arrays, bytes are a
/// string of hex digits.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Value<'a> {
    /// A Boolean.
    Bool(bool),
    /// A signed number.
    I64(i64),
    /// An unsigned number.
    U64(u64),
    /// An id, address, token or set of flags, displayed as `0x…`.
    Hex(u64),
    /// A number of single precision.
    F32(f32),
    /// A number of double precision.
    F64(f64),
    /// A GUID.
    Guid(Guid),
    /// UTF-16 text of the payload.
    Wide(WStr<'a>),
    /// 8-bit text of the payload.
    Narrow(AStr<'a>),
    /// Text made by the decoder, such as a time.
    Text(Cow<'a, str>),
    /// Bytes of an unknown format.
    Bytes(&'a [u8]),
    /// Several values.
    Array(Vec<Value<'a>>),
    /// Named values.
    Object(FieldList<'a>),
}

/// Named values in the order of the layout.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FieldList<'a>(Vec<(Cow<'a, str>, Value<'a>)>);

impl<'a> FieldList<'a> {
    /// Returns an empty list with room for values.
    pub(crate) fn with_capacity(count: usize) -> Self {
        FieldList(Vec::with_capacity(count))
    }

    pub(crate) fn push(&mut self, name: impl Into<Cow<'a, str>>, value: Value<'a>) {
        self.0.push((name.into(), value));
    }

    /// Returns names and values in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value<'a>)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }

    /// Returns the value of the first field with a name.
    pub fn get(&self, name: &str) -> Option<&Value<'a>> {
        self.iter().find(|(n, _)| *n == name).map(|(_, v)| v)
    }

    /// Returns whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> IntoIterator for FieldList<'a> {
    type Item = (Cow<'a, str>, Value<'a>);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl fmt::Display for Value<'_> {
    /// Text verbatim, numbers in decimal, arrays as `[a, b]`, objects as `{name=value, …}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(v) => v.fmt(f),
            Self::I64(v) => v.fmt(f),
            Self::U64(v) => v.fmt(f),
            Self::Hex(v) => write!(f, "{v:#x}"),
            Self::F32(v) => v.fmt(f),
            Self::F64(v) => v.fmt(f),
            Self::Guid(v) => v.fmt(f),
            Self::Wide(v) => v.fmt(f),
            Self::Narrow(v) => v.fmt(f),
            Self::Text(v) => v.fmt(f),
            Self::Bytes(v) => Hex(v).fmt(f),
            Self::Array(values) => {
                f.write_str("[")?;
                for (i, value) in values.iter().enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    value.fmt(f)?;
                }
                f.write_str("]")
            }
            Self::Object(fields) => write!(f, "{{{fields}}}"),
        }
    }
}

impl fmt::Display for FieldList<'_> {
    /// `name=value, name=value`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, value)) in self.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{name}={value}")?;
        }
        Ok(())
    }
}
