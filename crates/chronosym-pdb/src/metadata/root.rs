//! The metadata root (ECMA-335 II.24.2.1), its streams, and the rows that identify a module.

use std::fmt;

use super::tables::{Table, Tables};
use crate::blob::compressed;
use crate::bytes::{self, Cursor, text_to_nul};
use crate::{Error, Guid, Result};

const WHAT: &str = "CLI metadata";

/// The metadata of one module, or of a portable PDB. Parsing locates the heaps and tables and reads
/// no row.
#[derive(Clone)]
pub struct Metadata<'d> {
    pub(crate) tables: Tables<'d>,
    strings: &'d [u8],
    guids: &'d [u8],
    blobs: &'d [u8],
    pdb: Option<&'d [u8]>,
}

/// A row of the MethodDef table (II.22.26).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MethodDef<'d> {
    /// RVA of the IL body; 0 for a method without one.
    pub rva: u32,
    /// The plain name.
    pub name: String,
    /// The encoded signature (II.23.2.1).
    pub signature: &'d [u8],
}

impl fmt::Debug for Metadata<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metadata")
            .field("assembly", &self.assembly_name())
            .finish_non_exhaustive()
    }
}

impl<'d> Metadata<'d> {
    /// Reads the metadata root and the layout of the tables.
    ///
    /// # Errors [`Error::NotA`] without the root's signature; [`Error::Truncated`] or
    /// [`Error::Damaged`] if a heap or table exceeds the data.
    pub fn parse(data: &'d [u8]) -> Result<Self> {
        if !data.starts_with(b"BSJB") {
            return Err(Error::NotA { what: WHAT });
        }
        let mut cursor = Cursor::at(data, 12, WHAT);
        let length = cursor.u32()?;
        // The version string.
        cursor.bytes(length as usize)?;
        cursor.u16()?;
        let (mut tables, mut pdb) = (None, None);
        let (mut strings, mut guids, mut blobs) = Default::default();
        let mut all_wide = false;
        for _ in 0..cursor.u16()? {
            let (offset, size) = (cursor.u32()?, cursor.u32()?);
            let name = stream_name(&mut cursor)?;
            let stream = bytes::slice(data, offset as usize, size as usize)
                .ok_or(Error::truncated(WHAT, offset.into(), size.into()))?;
            match name {
                b"#~" | b"#-" => tables = Some(stream),
                b"#Strings" => strings = stream,
                b"#GUID" => guids = stream,
                b"#Blob" => blobs = stream,
                b"#Pdb" => pdb = Some(stream),
                b"#JTD" => all_wide = true,
                _ => {}
            }
        }
        let mut rows = [0; 64];
        if let Some(stream) = pdb {
            type_system_rows(stream, &mut rows)?;
        }
        let tables = tables.ok_or(Error::damaged(WHAT, 0, "no tables"))?;
        Ok(Self {
            tables: Tables::parse(tables, &rows, all_wide)?,
            strings,
            guids,
            blobs,
            pdb,
        })
    }

    /// Returns the `#Pdb` stream of a portable PDB.
    pub(crate) fn pdb_stream(&self) -> Option<&'d [u8]> {
        self.pdb
    }

    /// Returns the number of rows of a table.
    pub fn rows(&self, table: Table) -> u32 {
        self.tables.rows(table)
    }

    /// Returns a string of `#Strings`, cut at 4 KiB; empty if the index is invalid. The runtime
    /// rejects names of more than 1,023 bytes, and any number of rows could share a longer one.
    pub(crate) fn string(&self, index: u32) -> String {
        const MAX_STRING: usize = 4 << 10;
        let rest = self.strings.get(index as usize..).unwrap_or_default();
        text_to_nul(rest.get(..MAX_STRING).unwrap_or(rest))
    }

    /// Returns a GUID by its index from 1; `None` for 0 or an invalid index.
    pub(crate) fn guid(&self, index: u32) -> Option<Guid> {
        let offset = (index as usize).checked_sub(1)?.checked_mul(16)?;
        bytes::guid(self.guids, offset)
    }

    /// Returns a blob of `#Blob`; `None` if it exceeds the heap.
    pub(crate) fn blob(&self, index: u32) -> Option<&'d [u8]> {
        let data = self.blobs.get(index as usize..)?;
        let (length, rest) = compressed(data)?;
        rest.get(..length as usize)
    }

    /// Returns the module version id, unique for each build.
    pub fn mvid(&self) -> Option<Guid> {
        self.guid(self.tables.cell(Table::MODULE, 1, 2))
    }

    /// Returns the assembly's simple name; empty for a module without an assembly row.
    pub fn assembly_name(&self) -> String {
        self.string(self.tables.cell(Table::ASSEMBLY, 1, 7))
    }

    /// Returns the simple name in a row of the AssemblyRef table, from 1.
    pub fn assembly_ref_name(&self, row: u32) -> Option<String> {
        Some(self.string(self.tables.row(Table::ASSEMBLY_REF, row)?.get(6)))
    }

    /// Returns a row of the MethodDef table, from 1.
    pub fn method_def(&self, row: u32) -> Option<MethodDef<'d>> {
        let cells = self.tables.row(Table::METHOD_DEF, row)?;
        Some(MethodDef {
            rva: cells.get(0),
            name: self.string(cells.get(3)),
            signature: self.blob(cells.get(4)).unwrap_or_default(),
        })
    }
}

fn stream_name<'d>(cursor: &mut Cursor<'d>) -> Result<&'d [u8]> {
    // NUL-terminated, padded to a multiple of 4, at most 32 bytes (II.24.2.2).
    let mut copy = cursor.clone();
    for length in 0_usize..32 {
        if copy.u8()? == 0 {
            let name = cursor.bytes(length.saturating_add(4) & !3)?;
            return Ok(name.get(..length).unwrap_or_default());
        }
    }
    Err(cursor.damaged("stream name too long"))
}

fn type_system_rows(pdb: &[u8], rows: &mut [u32; 64]) -> Result<()> {
    // Id (20 bytes), entry point, mask of referenced tables, their row counts.
    let mut cursor = Cursor::at(pdb, 24, "#Pdb stream");
    let mask = cursor.u64()?;
    for (table, count) in rows.iter_mut().enumerate() {
        if mask >> table & 1 == 1 {
            *count = cursor.u32()?;
        }
    }
    Ok(())
}
