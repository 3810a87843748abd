//! Checks the footer of a Parquet file. The decoder descends into the schema without a limit.
//!
//! The footer is a struct of Thrift's compact protocol (thrift-compact-protocol.md of Apache Thrift);
//! the schema is its second field, a list (parquet.thrift).

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use chronosym_types::unzigzag;

/// Maximum elements of a schema. The tables have fewer than a hundred.
const ELEMENTS: u64 = 256;
/// The field of the schema.
const SCHEMA: i64 = 2;
/// Maximum depth of a value.
const DEPTH: usize = 32;

/// Types of values.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;

/// Fails if the schema of a file is larger than that of any table, or the footer is damaged.
pub fn check(file: &File, size: u64) -> Result<(), String> {
    let footer = read(file, size).ok_or("it has no footer")?;
    let mut values = Values(&footer);
    let sizes = values.sizes_of_lists().ok_or("its footer is damaged")?;
    let mut schemas = sizes.into_iter().filter(|&(field, _)| field == SCHEMA);
    match schemas.find(|&(_, size)| size > ELEMENTS) {
        Some((_, size)) => Err(format!("its schema has {size} elements")),
        None => Ok(()),
    }
}

/// Returns the footer: its length and a magic number end the file.
fn read(mut file: &File, size: u64) -> Option<Vec<u8>> {
    const END: u64 = 8;
    let mut end = [0; END as usize];
    file.seek(SeekFrom::Start(size.checked_sub(END)?)).ok()?;
    file.read_exact(&mut end).ok()?;
    let (length, _) = end.split_first_chunk()?;
    let length = u64::from(u32::from_le_bytes(*length));
    let start = size.checked_sub(END)?.checked_sub(length)?;
    file.seek(SeekFrom::Start(start)).ok()?;
    let mut footer = Vec::new();
    file.take(length).read_to_end(&mut footer).ok()?;
    Some(footer)
}

/// Values that have not been read yet.
struct Values<'a>(&'a [u8]);

impl Values<'_> {
    /// Returns the lists of a struct: field and number of elements.
    fn sizes_of_lists(&mut self) -> Option<Vec<(i64, u64)>> {
        let (mut sizes, mut field) = (Vec::new(), 0);
        while let Some(kind) = self.field(&mut field)? {
            if kind == LIST {
                let (of, size) = self.list()?;
                sizes.push((field, size));
                self.skip_all(of, size, DEPTH)?;
            } else {
                self.skip(kind, DEPTH)?;
            }
        }
        Some(sizes)
    }

    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// Reads the head of the next field; returns its type, and nothing at the end of the struct.
    fn field(&mut self, field: &mut i64) -> Option<Option<u8>> {
        let head = self.byte()?;
        if head == 0 {
            return Some(None);
        }
        *field = match head >> 4 {
            0 => unzigzag(self.varint()?).cast_signed(),
            delta => field.checked_add(delta.into())?,
        };
        Some(Some(head & 0xf))
    }

    /// Reads the head of a list: the type and number of its elements.
    fn list(&mut self) -> Option<(u8, u64)> {
        let head = self.byte()?;
        let size = match head >> 4 {
            0xf => self.varint()?,
            size => size.into(),
        };
        Some((head & 0xf, size))
    }

    /// Skips elements, each of at least one byte.
    fn skip_all(&mut self, kind: u8, count: u64, depth: usize) -> Option<()> {
        (0..count).try_for_each(|_| match kind {
            TRUE | FALSE => self.byte().map(drop),
            kind => self.skip(kind, depth),
        })
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        let take = |values: &mut Self, count: u64| {
            values.0 = values.0.get(usize::try_from(count).ok()?..)?;
            Some(())
        };
        match kind {
            // A field's type is its value.
            TRUE | FALSE => Some(()),
            BYTE => take(self, 1),
            // Integers.
            4..DOUBLE => self.varint().map(drop),
            DOUBLE => take(self, 8),
            BINARY => {
                let length = self.varint()?;
                take(self, length)
            }
            LIST | SET => {
                let (of, size) = self.list()?;
                self.skip_all(of, size, depth)
            }
            MAP => {
                let size = self.varint()?;
                if size == 0 {
                    return Some(());
                }
                let kinds = self.byte()?;
                (0..size).try_for_each(|_| {
                    self.skip_all(kinds >> 4, 1, depth)?;
                    self.skip_all(kinds & 0xf, 1, depth)
                })
            }
            STRUCT => {
                let mut field = 0;
                while let Some(kind) = self.field(&mut field)? {
                    self.skip(kind, depth)?;
                }
                Some(())
            }
            _ => None,
        }
    }
}
