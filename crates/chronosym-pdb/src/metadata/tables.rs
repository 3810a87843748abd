//! The layout of the metadata tables: ECMA-335 II.22 and II.24.2.6 and, from table 0x30 on, the
//! portable PDB specification.

use std::sync::OnceLock;

use crate::bytes::{self, Cursor};
use crate::{Error, Result};

/// A metadata table, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Table(pub u8);

#[allow(missing_docs)]
impl Table {
    pub const MODULE: Self = Self(0x00);
    pub const TYPE_REF: Self = Self(0x01);
    pub const TYPE_DEF: Self = Self(0x02);
    pub(crate) const FIELD: Self = Self(0x04);
    pub(crate) const METHOD_PTR: Self = Self(0x05);
    pub const METHOD_DEF: Self = Self(0x06);
    pub(crate) const PARAM: Self = Self(0x08);
    pub(crate) const INTERFACE_IMPL: Self = Self(0x09);
    pub const MEMBER_REF: Self = Self(0x0a);
    pub(crate) const DECL_SECURITY: Self = Self(0x0e);
    pub(crate) const STAND_ALONE_SIG: Self = Self(0x11);
    pub(crate) const EVENT: Self = Self(0x14);
    pub(crate) const PROPERTY: Self = Self(0x17);
    pub(crate) const MODULE_REF: Self = Self(0x1a);
    pub const TYPE_SPEC: Self = Self(0x1b);
    pub const ASSEMBLY: Self = Self(0x20);
    pub const ASSEMBLY_REF: Self = Self(0x23);
    pub(crate) const FILE: Self = Self(0x26);
    pub(crate) const EXPORTED_TYPE: Self = Self(0x27);
    pub(crate) const MANIFEST_RESOURCE: Self = Self(0x28);
    pub(crate) const NESTED_CLASS: Self = Self(0x29);
    pub(crate) const GENERIC_PARAM: Self = Self(0x2a);
    pub const METHOD_SPEC: Self = Self(0x2b);
    pub(crate) const GENERIC_PARAM_CONSTRAINT: Self = Self(0x2c);
    pub const DOCUMENT: Self = Self(0x30);
    pub const METHOD_DEBUG_INFORMATION: Self = Self(0x31);
    pub(crate) const LOCAL_SCOPE: Self = Self(0x32);
    pub(crate) const LOCAL_VARIABLE: Self = Self(0x33);
    pub(crate) const LOCAL_CONSTANT: Self = Self(0x34);
    pub(crate) const IMPORT_SCOPE: Self = Self(0x35);
    pub(crate) const CUSTOM_DEBUG_INFORMATION: Self = Self(0x37);
    /// An unused tag of a coded index.
    const NONE: Self = Self(0xff);
}

/// A metadata token (III.1.9): a table and a row of it. Row 0 is null.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub u32);

impl Token {
    /// Returns the token of a row; its upper 8 bits are dropped.
    pub fn new(table: Table, row: u32) -> Self {
        Self(u32::from(table.0) << 24 | row & 0x00ff_ffff)
    }

    /// Returns the table.
    pub fn table(self) -> Table {
        Table((self.0 >> 24) as u8)
    }

    /// Returns the row, from 1.
    pub fn row(self) -> u32 {
        self.0 & 0x00ff_ffff
    }
}

/// A coded index (II.24.2.6): the low bits select the table.
#[derive(Debug)]
pub(crate) struct CodedIndex {
    bits: u8,
    tables: &'static [Table],
}

impl CodedIndex {
    pub(crate) fn decode(&self, value: u32) -> Option<Token> {
        let table = *self
            .tables
            .get((value & !(u32::MAX << self.bits)) as usize)?;
        (table != Table::NONE).then(|| Token::new(table, value >> self.bits))
    }

    pub(crate) fn encode(&self, token: Token) -> Option<u32> {
        let tag = self
            .tables
            .iter()
            .position(|&table| table == token.table())?;
        Some(token.row() << self.bits | u32::try_from(tag).ok()?)
    }
}

macro_rules! coded {
    ($($name:ident $bits:literal: $($table:ident)*;)*) => {
        $(pub(crate) const $name: &CodedIndex = &CodedIndex { bits: $bits, tables: &[$(Table::$table),*] };)*
    };
}

coded! {
    TYPE_DEF_OR_REF 2: TYPE_DEF TYPE_REF TYPE_SPEC;
    HAS_CONSTANT 2: FIELD PARAM PROPERTY;
    HAS_CUSTOM_ATTRIBUTE 5: METHOD_DEF FIELD TYPE_REF TYPE_DEF PARAM INTERFACE_IMPL MEMBER_REF MODULE DECL_SECURITY
        PROPERTY EVENT STAND_ALONE_SIG MODULE_REF TYPE_SPEC ASSEMBLY ASSEMBLY_REF FILE EXPORTED_TYPE MANIFEST_RESOURCE
        GENERIC_PARAM GENERIC_PARAM_CONSTRAINT METHOD_SPEC;
    HAS_FIELD_MARSHAL 1: FIELD PARAM;
    HAS_DECL_SECURITY 2: TYPE_DEF METHOD_DEF ASSEMBLY;
    MEMBER_REF_PARENT 3: TYPE_DEF TYPE_REF MODULE_REF METHOD_DEF TYPE_SPEC;
    HAS_SEMANTICS 1: EVENT PROPERTY;
    METHOD_DEF_OR_REF 1: METHOD_DEF MEMBER_REF;
    MEMBER_FORWARDED 1: FIELD METHOD_DEF;
    IMPLEMENTATION 2: FILE ASSEMBLY_REF EXPORTED_TYPE;
    CUSTOM_ATTRIBUTE_TYPE 3: NONE NONE METHOD_DEF MEMBER_REF NONE;
    RESOLUTION_SCOPE 2: MODULE MODULE_REF ASSEMBLY_REF TYPE_REF;
    TYPE_OR_METHOD_DEF 1: TYPE_DEF METHOD_DEF;
    HAS_CUSTOM_DEBUG_INFORMATION 5: METHOD_DEF FIELD TYPE_REF TYPE_DEF PARAM INTERFACE_IMPL MEMBER_REF MODULE
        DECL_SECURITY PROPERTY EVENT STAND_ALONE_SIG MODULE_REF TYPE_SPEC ASSEMBLY ASSEMBLY_REF FILE EXPORTED_TYPE
        MANIFEST_RESOURCE GENERIC_PARAM GENERIC_PARAM_CONSTRAINT METHOD_SPEC DOCUMENT LOCAL_SCOPE LOCAL_VARIABLE
        LOCAL_CONSTANT IMPORT_SCOPE;
}

/// The type of a column.
enum Column {
    /// An integer of this many bytes.
    Fixed(u8),
    Strings,
    Guids,
    Blobs,
    Row(Table),
    Coded(&'static CodedIndex),
}

const MAX_COLUMNS: usize = 9;

/// Returns the columns of each table.
fn columns(table: usize) -> &'static [Column] {
    use Column::{Blobs as B, Coded as C, Fixed, Guids as G, Row as R, Strings as S};
    use Table as T;
    const U16: Column = Fixed(2);
    const U32: Column = Fixed(4);
    match table {
        0x00 => &[U16, S, G, G, G],
        0x01 => &[C(RESOLUTION_SCOPE), S, S],
        0x02 => &[U32, S, S, C(TYPE_DEF_OR_REF), R(T::FIELD), R(T::METHOD_DEF)],
        0x03 => &[R(T::FIELD)],
        0x04 => &[U16, S, B],
        0x05 => &[R(T::METHOD_DEF)],
        0x06 => &[U32, U16, U16, S, B, R(T::PARAM)],
        0x07 => &[R(T::PARAM)],
        0x08 => &[U16, U16, S],
        0x09 => &[R(T::TYPE_DEF), C(TYPE_DEF_OR_REF)],
        0x0a => &[C(MEMBER_REF_PARENT), S, B],
        0x0b => &[U16, C(HAS_CONSTANT), B],
        0x0c => &[C(HAS_CUSTOM_ATTRIBUTE), C(CUSTOM_ATTRIBUTE_TYPE), B],
        0x0d => &[C(HAS_FIELD_MARSHAL), B],
        0x0e => &[U16, C(HAS_DECL_SECURITY), B],
        0x0f => &[U16, U32, R(T::TYPE_DEF)],
        0x10 => &[U32, R(T::FIELD)],
        0x11 => &[B],
        0x12 => &[R(T::TYPE_DEF), R(T::EVENT)],
        0x13 => &[R(T::EVENT)],
        0x14 => &[U16, S, C(TYPE_DEF_OR_REF)],
        0x15 => &[R(T::TYPE_DEF), R(T::PROPERTY)],
        0x16 => &[R(T::PROPERTY)],
        0x17 => &[U16, S, B],
        0x18 => &[U16, R(T::METHOD_DEF), C(HAS_SEMANTICS)],
        0x19 => &[R(T::TYPE_DEF), C(METHOD_DEF_OR_REF), C(METHOD_DEF_OR_REF)],
        0x1a => &[S],
        0x1b => &[B],
        0x1c => &[U16, C(MEMBER_FORWARDED), S, R(T::MODULE_REF)],
        0x1d => &[U32, R(T::FIELD)],
        0x1e => &[U32, U32],
        0x1f => &[U32],
        0x20 => &[U32, U16, U16, U16, U16, U32, B, S, S],
        0x21 => &[U32],
        0x22 => &[U32, U32, U32],
        0x23 => &[U16, U16, U16, U16, U32, B, S, S, B],
        0x24 => &[U32, R(T::ASSEMBLY_REF)],
        0x25 => &[U32, U32, U32, R(T::ASSEMBLY_REF)],
        0x26 => &[U32, S, B],
        0x27 => &[U32, U32, S, S, C(IMPLEMENTATION)],
        0x28 => &[U32, U32, S, C(IMPLEMENTATION)],
        0x29 => &[R(T::TYPE_DEF), R(T::TYPE_DEF)],
        0x2a => &[U16, U16, C(TYPE_OR_METHOD_DEF), S],
        0x2b => &[C(METHOD_DEF_OR_REF), B],
        0x2c => &[R(T::GENERIC_PARAM), C(TYPE_DEF_OR_REF)],
        0x30 => &[B, G, B, G],
        0x31 => &[R(T::DOCUMENT), B],
        0x32 => &[
            R(T::METHOD_DEF),
            R(T::IMPORT_SCOPE),
            R(T::LOCAL_VARIABLE),
            R(T::LOCAL_CONSTANT),
            U32,
            U32,
        ],
        0x33 => &[U16, U16, S],
        0x34 => &[S, B],
        0x35 => &[R(T::IMPORT_SCOPE), B],
        0x36 => &[R(T::METHOD_DEF), R(T::METHOD_DEF)],
        0x37 => &[C(HAS_CUSTOM_DEBUG_INFORMATION), G, B],
        _ => &[],
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct TableLayout {
    /// Offset of the first row in the stream.
    offset: usize,
    rows: u32,
    row_size: u8,
    /// Offset of each column's end within a row.
    ends: [u8; MAX_COLUMNS],
}

/// First column and number of each row, sorted.
type RowsByKey = Box<[(u32, u32)]>;

/// The `#~` or `#-` stream.
#[derive(Clone)]
pub(crate) struct Tables<'d> {
    data: &'d [u8],
    layouts: Box<[TableLayout; 64]>,
    sorted: u64,
    /// Index of an unsorted table, built on first use.
    by_key: Box<[OnceLock<RowsByKey>; 64]>,
}

impl<'d> Tables<'d> {
    /// `type_system_rows`: row counts of the tables in the module's own metadata (`#Pdb` stream).
    pub(crate) fn parse(
        data: &'d [u8],
        type_system_rows: &[u32; 64],
        all_wide: bool,
    ) -> Result<Self> {
        const WHAT: &str = "metadata tables";
        let mut cursor = Cursor::new(data, WHAT);
        cursor.bytes(6)?;
        let heap_flags = cursor.u8()?;
        cursor.u8()?;
        let valid = cursor.u64()?;
        let sorted = cursor.u64()?;
        let mut rows = *type_system_rows;
        let mut layouts = Box::new([TableLayout::default(); 64]);
        let tables = rows.iter_mut().zip(layouts.iter_mut());
        for (table, (rows, layout)) in tables.enumerate() {
            if valid >> table & 1 == 1 {
                *rows = cursor.u32()?;
                layout.rows = *rows;
            }
        }
        if heap_flags & 0x40 != 0 {
            cursor.u32()?;
        }
        let heap = |bit: u8| {
            if all_wide || heap_flags & bit != 0 {
                4
            } else {
                2
            }
        };
        let index = |limit: u64, rows: u32| {
            if all_wide || u64::from(rows) >= limit {
                4
            } else {
                2
            }
        };
        let count = |table: &Table| rows.get(table.0 as usize).copied().unwrap_or(0);
        let width = |column: &Column| match column {
            Column::Fixed(width) => *width,
            Column::Strings => heap(1),
            Column::Guids => heap(2),
            Column::Blobs => heap(4),
            Column::Row(table) => index(1 << 16, count(table)),
            Column::Coded(coded) => index(
                1 << 16 >> coded.bits,
                coded.tables.iter().map(count).max().unwrap_or(0),
            ),
        };
        let mut offset = cursor.position();
        for (table, layout) in layouts.iter_mut().enumerate() {
            let columns = columns(table);
            if layout.rows > 0 && columns.is_empty() {
                // Tables after this one cannot be located without its row size.
                return Err(Error::damaged(WHAT, 8, "unknown table"));
            }
            for (end, column) in layout.ends.iter_mut().zip(columns) {
                layout.row_size = layout.row_size.saturating_add(width(column));
                *end = layout.row_size;
            }
            layout.offset = offset;
            let size = u64::from(layout.rows).saturating_mul(layout.row_size.into());
            if size > data.len().saturating_sub(offset) as u64 {
                return Err(Error::truncated(WHAT, offset as u64, size));
            }
            offset = offset.saturating_add(usize::try_from(size).unwrap_or(usize::MAX));
        }
        Ok(Self {
            data,
            layouts,
            sorted,
            by_key: Box::new([const { OnceLock::new() }; 64]),
        })
    }

    pub(crate) fn rows(&self, table: Table) -> u32 {
        self.layouts
            .get(table.0 as usize)
            .map_or(0, |layout| layout.rows)
    }

    /// Returns whether the stream's Sorted bit vector has the table.
    pub(crate) fn is_sorted(&self, table: Table) -> bool {
        self.sorted >> table.0 & 1 == 1
    }

    /// Returns a row, from 1.
    pub(crate) fn row(&self, table: Table, row: u32) -> Option<Row<'_, 'd>> {
        let layout = self.layouts.get(table.0 as usize)?;
        let before = row.checked_sub(1).filter(|&before| before < layout.rows)?;
        let size = layout.row_size as usize;
        let start = (before as usize).checked_mul(size)?;
        let data = bytes::slice(self.data, layout.offset.checked_add(start)?, size)?;
        Some(Row { data, layout })
    }

    /// One column of a row; 0 if the row does not exist.
    pub(crate) fn cell(&self, table: Table, row: u32, column: usize) -> u32 {
        self.row(table, row).map_or(0, |row| row.get(column))
    }

    /// Returns the first row whose `column` is not less than `key`, in a table sorted by it.
    pub(crate) fn lower_bound(&self, table: Table, column: usize, key: u32) -> u32 {
        let rows = 1..self.rows(table).saturating_add(1);
        bytes::partition_point(rows, |row| self.cell(table, row, column) < key)
    }

    /// Returns the first row whose first column is `key`, in a sorted or unsorted table.
    pub(crate) fn find(&self, table: Table, key: u32) -> Option<u32> {
        let row = if self.is_sorted(table) {
            self.lower_bound(table, 0, key)
        } else {
            let by_key = self.by_key.get(table.0 as usize)?.get_or_init(|| {
                let rows = 1..=self.rows(table);
                let mut by_key: RowsByKey =
                    rows.map(|row| (self.cell(table, row, 0), row)).collect();
                by_key.sort_unstable();
                by_key
            });
            let at = by_key.partition_point(|&(cell, _)| cell < key);
            by_key.get(at)?.1
        };
        (row <= self.rows(table) && self.cell(table, row, 0) == key).then_some(row)
    }
}

/// One row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'t, 'd> {
    data: &'d [u8],
    layout: &'t TableLayout,
}

impl Row<'_, '_> {
    /// Returns the value of a column; coded indexes are not decoded.
    pub(crate) fn get(&self, column: usize) -> u32 {
        let end = |column: usize| self.layout.ends.get(column).map_or(0, |&end| end as usize);
        let start = column.checked_sub(1).map_or(0, end);
        let cell = self.data.get(start..end(column)).unwrap_or_default();
        let mut value = [0; 4];
        for (to, from) in value.iter_mut().zip(cell) {
            *to = *from;
        }
        u32::from_le_bytes(value)
    }
}
