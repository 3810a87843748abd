//! BulkType: names of types, many in one event.

use crate::array::Ids;
use crate::cursor::Cursor;
use crate::part::{Counted, Part, Style, payload};
use crate::value::{FieldList, Value};
use crate::{DecodeError, WStr};

payload! {
    /// Types and their names.
    BulkType<'a> {
        /// The number of types.
        count: u32 = "Count",
        /// The runtime instance in the process.
        clr_instance_id: u16 = "ClrInstanceID",
        /// The types.
        types: TypeList<'a> = "Values" as list(count),
    }

    /// One type of a [`BulkType`] event.
    TypeDescription<'a> {
        /// The type's id.
        type_id: u64 = "TypeID" as hex,
        /// The id of its module.
        module_id: u64 = "ModuleID" as hex,
        /// The metadata token of its name.
        type_name_id: u32 = "TypeNameID" as hex,
        /// Flags: 1 delegate, 2 finalizable, 4 COM wrapper, 8 array (rank in bits 8 to 13).
        flags: u32 = "Flags" as hex,
        /// The element type (ECMA-335 II.23.1.16).
        cor_element_type: u8 = "CorElementType" as hex,
        /// The name; empty where the event has the token only.
        name: WStr<'a> = "Name",
        /// The number of type arguments.
        type_parameter_count: u32 = "TypeParameterCount",
        /// The ids of the type arguments.
        type_parameters: Ids<'a> = "TypeParameters" as list(type_parameter_count),
    }
}

/// The types of a [`BulkType`] event; validated when the event was decoded.
#[derive(Clone, Copy)]
pub struct TypeList<'a> {
    first: Cursor<'a>,
    count: usize,
}

impl<'a> TypeList<'a> {
    /// Returns the types in order.
    pub fn iter(&self) -> impl Iterator<Item = TypeDescription<'a>> + use<'a> {
        let mut cursor = self.first;
        (0..self.count).map_while(move |_| TypeDescription::read(&mut cursor).ok())
    }
}

impl PartialEq for TypeList<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl std::fmt::Debug for TypeList<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a> Counted<'a> for TypeList<'a> {
    fn read_counted(c: &mut Cursor<'a>, count: usize) -> Result<Self, DecodeError> {
        let first = *c;
        for _ in 0..count {
            TypeDescription::read(c)?;
        }
        Ok(Self { first, count })
    }
}

impl<'a> Part<'a> for TypeList<'a> {
    fn read(c: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        Self::read_counted(c, 0)
    }

    fn list(&self, name: &'static str, _: Style, out: &mut FieldList<'a>) {
        let values = self.iter().map(|ty| {
            let mut fields = FieldList::default();
            ty.list("", Style::Plain, &mut fields);
            Value::Object(fields)
        });
        out.push(name, Value::Array(values.collect()));
    }
}
