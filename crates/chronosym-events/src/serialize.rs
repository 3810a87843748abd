//! Values as JSON and other formats of serde.

use chronosym_types::HexText;
use serde::{Serialize, Serializer};

use crate::value::{FieldList, Value};

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Bool(v) => s.serialize_bool(*v),
            Self::I64(v) => s.serialize_i64(*v),
            Self::U64(v) => s.serialize_u64(*v),
            Self::F32(v) => s.serialize_f32(*v),
            Self::F64(v) => s.serialize_f64(*v),
            Self::Text(v) => s.serialize_str(v),
            Self::Array(values) => s.collect_seq(values),
            Self::Object(fields) => fields.serialize(s),
            Self::Hex(v) => s.serialize_str(&HexText::new(*v)),
            Self::Guid(_) | Self::Wide(_) | Self::Narrow(_) | Self::Bytes(_) => s.collect_str(self),
        }
    }
}

impl Serialize for FieldList<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(self.iter())
    }
}
