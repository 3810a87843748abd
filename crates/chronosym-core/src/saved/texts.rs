//! Names and strings by rank.

use super::coder::Coder;
use super::error::SavedError;
use super::file::{BlockWriter, SavedTimeline, Table};
use super::ranks::{NoTexts, Ranks, TextSource};
use crate::ids::NameId;
use crate::names::{MethodName, NameTable};
use crate::strings::StringId;

/// Number of names in a block.
const NAMES: usize = 512;
/// Bytes of strings in a block.
const TEXT: usize = 1 << 15;

/// Writes all names and strings that have ranks.
pub(super) fn write<W: std::io::Write>(
    mut ranks: Ranks,
    table: &NameTable,
    out: &mut BlockWriter<W>,
) -> std::io::Result<()> {
    let names = ranks.names_in_order.iter().map(|&name| table.get(name));
    let names: Vec<MethodName> = names.map(|name| name.unwrap_or_default()).collect();
    // Similar strings are next to each other.
    let parts: [fn(&MethodName) -> StringId; 3] =
        [|it| it.namespace, |it| it.name, |it| it.signature];
    for part in parts {
        for name in &names {
            ranks.string(part(name));
        }
    }
    for names in names.chunks(NAMES) {
        let rows = names
            .iter()
            .map(|name| parts.map(|part| ranks.string(part(name))));
        let rows: Vec<[u32; 3]> = rows.collect();
        out.rows(
            Table::Names,
            (0, 0),
            rows,
            &mut Ranks::default(),
            name_parts,
        )?;
    }
    let texts = ranks
        .strings_in_order
        .iter()
        .map(|&id| table.strings.get(id));
    let mut block: Vec<Vec<u8>> = Vec::new();
    let mut bytes = 0;
    for it in texts {
        if bytes > 0 && bytes + it.len() > TEXT {
            let full = std::mem::take(&mut block);
            out.rows(Table::Strings, (0, 0), full, &mut Ranks::default(), text)?;
            bytes = 0;
        }
        bytes += it.len();
        block.push(it.as_bytes().to_vec());
    }
    out.rows(Table::Strings, (0, 0), block, &mut Ranks::default(), text)
}

fn text(coder: &mut Coder<'_>, bytes: &mut Vec<u8>) {
    coder.bytes(bytes);
}

fn name_parts(coder: &mut Coder<'_>, parts: &mut [u32; 3]) {
    for part in parts {
        coder.delta(part);
    }
}

/// A name of a file.
#[derive(Clone, Copy)]
enum Slot {
    Unread,
    Parts([u32; 3]),
    Interned(NameId),
}

/// The names and strings of a file; each block is read on first use.
pub(super) struct Texts<'t> {
    file: &'t SavedTimeline<'t>,
    table: &'t mut NameTable,
    names: Vec<Slot>,
    strings: Vec<Option<StringId>>,
    error: Option<SavedError>,
}

impl<'t> Texts<'t> {
    pub fn new(file: &'t SavedTimeline<'t>, table: &'t mut NameTable) -> Self {
        Texts {
            file,
            table,
            names: vec![Slot::Unread; file.rows(Table::Names)],
            strings: vec![None; file.rows(Table::Strings)],
            error: None,
        }
    }

    /// Returns why a name or string could not be read.
    pub fn error(&mut self) -> Option<SavedError> {
        self.error.take()
    }

    fn read_names(&mut self, index: usize) -> Result<(), SavedError> {
        let (block, first) = self.file.block_of_row(Table::Names, index);
        let rows = self
            .file
            .read::<[u32; 3]>(Table::Names, block, &mut NoTexts, name_parts)?;
        for (slot, parts) in self.names[first..].iter_mut().zip(rows) {
            *slot = Slot::Parts(parts);
        }
        Ok(())
    }

    fn read_strings(&mut self, index: usize) -> Result<(), SavedError> {
        let (block, first) = self.file.block_of_row(Table::Strings, index);
        let (strings, table) = (&mut self.strings[first..], &mut self.table.strings);
        let mut slots = strings.iter_mut();
        self.file.read_bytes(Table::Strings, block, |bytes| {
            let text = std::str::from_utf8(bytes).ok()?;
            *slots.next()? = Some(table.intern(text));
            Some(())
        })
    }
}

impl TextSource for Texts<'_> {
    fn string(&mut self, rank: u32) -> Option<StringId> {
        let Some(index) = (rank as usize).checked_sub(1) else {
            return Some(StringId::EMPTY);
        };
        if self.strings.get(index)?.is_none()
            && let Err(error) = self.read_strings(index)
        {
            self.error.get_or_insert(error);
        }
        self.strings[index]
    }

    fn name(&mut self, rank: u32) -> Option<NameId> {
        let Some(index) = (rank as usize).checked_sub(1) else {
            return Some(NameId::NONE);
        };
        if let Slot::Unread = self.names.get(index)?
            && let Err(error) = self.read_names(index)
        {
            self.error.get_or_insert(error);
        }
        match self.names[index] {
            Slot::Unread => None,
            Slot::Interned(name) => Some(name),
            Slot::Parts([namespace, name, signature]) => {
                let parts = MethodName {
                    namespace: self.string(namespace)?,
                    name: self.string(name)?,
                    signature: self.string(signature)?,
                };
                let name = self.table.intern_parts(parts);
                self.names[index] = Slot::Interned(name);
                Some(name)
            }
        }
    }
}
