//! The container: compressed blocks with checksums, and a directory at the end.
//!
//! | bytes | content |
//! |---|---|
//! | 8 | `chronos` and a zero |
//! | 4 | version of the format |
//! | … | blocks, each compressed with DEFLATE |
//! | … | the directory, compressed too |
//! | 24 | offset (8) and length (4) of the directory, its length without compression (4), CRC-32 of the directory (4) and of the trailer's bytes before this one (4) |

use std::io::{self, Write};
use std::ops::Range;

use chronosym_types::closed_list;
use flate2::write::DeflateEncoder;
use flate2::{Compression, Decompress, FlushDecompress, Status};

use super::coder::{Coder, VERSION};
use super::crc::crc;
use super::error::SavedError;
use super::ranks::{NoTexts, Ranks, TextSource};

const MAGIC: &[u8; 8] = b"chronos\0";
const HEADER: usize = 12;
const TRAILER: usize = 24;
/// Maximum ratio of the contents' size to that of the file, beyond the exempt part.
const MAX_RATIO: u64 = 200;
const FREE: u64 = 64 << 20;
/// Bytes to which a byte of DEFLATE expands at most, rounded up.
const MAX_EXPANSION: usize = 1 << 11;

closed_list! {
    /// A table of a file: rows of one kind, in blocks.
    Table {
        Recording = "recording",
        EventTypes = "event types",
        Processes = "processes",
        Threads = "threads",
        Modules = "modules",
        Images = "images",
        Bodies = "code bodies",
        Methods = "inlined methods",
        Precompiled = "precompiled code",
        LoneMaps = "IL maps without code",
        Symbols = "symbols without times",
        Details = "method details",
        Types = "type names",
        Pdbs = "in-memory PDBs",
        Stacks = "stacks",
        Classes = "classes of samples",
        Samples = "samples",
        Markers = "markers",
        Names = "names",
        Strings = "strings",
    }
}

impl Table {
    /// Returns whether files of a version have the table.
    fn is_in(self, version: u32) -> bool {
        version
            >= match self {
                Table::Precompiled => 2,
                Table::LoneMaps => 3,
                _ => 1,
            }
    }
}

/// The key of a block's first row: process, and address or method id.
pub(super) type Key = (u32, u64);

/// A block, as the directory lists it.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    /// The key of its first row. Blocks are sorted by key.
    key: Key,
    /// Number of the first row in the table.
    first: usize,
    rows: usize,
    offset: u64,
    /// Length in the file, and without compression.
    stored: u32,
    length: u32,
    crc: u32,
}

fn block(coder: &mut Coder<'_>, block: &mut Block) {
    coder.delta(&mut block.key.0);
    coder.delta(&mut block.key.1);
    coder.number(&mut block.rows);
    coder.number(&mut block.stored);
    coder.number(&mut block.length);
    coder.number(&mut block.crc);
}

/// Writes blocks, and the directory at the end.
pub(super) struct BlockWriter<W> {
    out: W,
    offset: u64,
    tables: Vec<Vec<Block>>,
}

impl<W: Write> BlockWriter<W> {
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        Ok(BlockWriter {
            out,
            offset: HEADER as u64,
            tables: vec![Vec::new(); Table::ALL.len()],
        })
    }

    /// Writes a block of rows.
    pub fn rows<T>(
        &mut self,
        table: Table,
        key: Key,
        rows: Vec<T>,
        ranks: &mut Ranks,
        mut code: impl FnMut(&mut Coder<'_>, &mut T),
    ) -> io::Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut coder = Coder::writer(ranks);
        let count = rows.len();
        for mut row in rows {
            coder.row();
            code(&mut coder, &mut row);
        }
        let later = &self.tables[table as usize + 1..];
        debug_assert!(later.iter().all(Vec::is_empty), "tables in order");
        let mut block = self.write(&coder.finish())?;
        (block.key, block.rows) = (key, count);
        self.tables[table as usize].push(block);
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<Block> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes)?;
        let stored = encoder.finish()?;
        self.out.write_all(&stored)?;
        let length = |bytes: &[u8]| {
            let length = u32::try_from(bytes.len());
            length.map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))
        };
        let block = Block {
            offset: self.offset,
            stored: length(&stored)?,
            length: length(bytes)?,
            crc: crc(&stored),
            ..Block::default()
        };
        self.offset += u64::from(block.stored);
        Ok(block)
    }

    /// Writes the directory.
    pub fn finish(mut self) -> io::Result<W> {
        let mut tables = std::mem::take(&mut self.tables);
        let mut ranks = Ranks::default();
        let mut coder = Coder::writer(&mut ranks);
        for blocks in &mut tables {
            coder.row();
            coder.list(blocks, 6, block);
        }
        let directory = self.write(&coder.finish())?;
        let mut trailer = directory.offset.to_le_bytes().to_vec();
        trailer.extend(directory.stored.to_le_bytes());
        trailer.extend(directory.length.to_le_bytes());
        trailer.extend(directory.crc.to_le_bytes());
        trailer.extend(crc(&trailer).to_le_bytes());
        self.out.write_all(&trailer)?;
        Ok(self.out)
    }
}

/// A timeline in the saved form, `.chrono`. Its directory has been read; blocks are read on demand.
#[derive(Debug)]
pub struct SavedTimeline<'b> {
    bytes: &'b [u8],
    version: u32,
    tables: Vec<Vec<Block>>,
}

impl<'b> SavedTimeline<'b> {
    /// Returns whether bytes start like a saved timeline.
    pub fn is_saved(head: &[u8]) -> bool {
        head.starts_with(MAGIC)
    }

    /// Opens the bytes of a file: reads its directory.
    ///
    /// # Errors
    ///
    /// [`SavedError`] if the bytes are not a complete saved timeline of a known version.
    pub fn open(bytes: &'b [u8]) -> Result<Self, SavedError> {
        if !Self::is_saved(bytes) {
            return Err(SavedError::NotSaved);
        }
        let length = bytes.len() as u64;
        let cut_short = SavedError::CutShort { length };
        let u32_at = |at: usize| {
            let bytes = bytes.get(at..at + 4)?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?))
        };
        let found = u32_at(MAGIC.len()).ok_or(cut_short.clone())?;
        if found > VERSION {
            let known = VERSION;
            return Err(SavedError::NewerVersion { found, known });
        }
        let at = (bytes.len().checked_sub(TRAILER)).filter(|&at| at >= HEADER);
        let at = at.ok_or(cut_short.clone())?;
        let field = |offset: usize| u32_at(at + offset).unwrap_or(0);
        if crc(&bytes[at..at + TRAILER - 4]) != field(20) {
            return Err(cut_short);
        }
        let directory = Block {
            offset: u64::from(field(0)) | u64::from(field(4)) << 32,
            stored: field(8),
            length: field(12),
            crc: field(16),
            ..Block::default()
        };
        let mut saved = SavedTimeline {
            bytes,
            version: found,
            tables: Vec::new(),
        };
        let damaged = || SavedError::Damaged {
            part: "directory",
            offset: directory.offset,
        };
        if found == 0 || directory.offset + u64::from(directory.stored) != at as u64 {
            return Err(damaged());
        }
        let content = saved.content(&directory).ok_or_else(damaged)?;
        let mut texts = NoTexts;
        let mut coder = Coder::reader(&content, &mut texts);
        for table in Table::ALL {
            let mut blocks = Vec::new();
            if table.is_in(found) {
                coder.row();
                coder.list(&mut blocks, 6, block);
            }
            saved.tables.push(blocks);
        }
        if !coder.is_complete() {
            return Err(damaged());
        }
        let mut expanded = u64::from(directory.length);
        let mut offsets: u64 = HEADER as u64;
        // The tables are in order in the file.
        for blocks in &mut saved.tables {
            let mut first = 0usize;
            for block in blocks {
                (block.offset, block.first) = (offsets, first);
                offsets += u64::from(block.stored);
                expanded += u64::from(block.length);
                first = first.checked_add(block.rows).ok_or_else(damaged)?;
                // Every row takes at least one byte.
                if block.rows > block.length as usize {
                    return Err(damaged());
                }
            }
        }
        if offsets != directory.offset {
            return Err(damaged());
        }
        if expanded > FREE + MAX_RATIO * length {
            return Err(SavedError::TooLarge { length, expanded });
        }
        Ok(saved)
    }

    /// Returns whether samples were saved, too.
    pub fn has_samples(&self) -> bool {
        !self.tables[Table::Classes as usize].is_empty()
    }

    /// Returns the bytes of a block, if they match their checksum.
    fn content(&self, block: &Block) -> Option<Vec<u8>> {
        let from = usize::try_from(block.offset).ok()?;
        let stored = self
            .bytes
            .get(from..from.checked_add(block.stored as usize)?)?;
        if crc(stored) != block.crc {
            return None;
        }
        // No more than DEFLATE can expand to, whatever the directory states.
        let length = block.length as usize;
        let room = length.min(stored.len().saturating_mul(MAX_EXPANSION));
        let mut content = Vec::with_capacity(room);
        let mut decoder = Decompress::new(false);
        let end = decoder.decompress_vec(stored, &mut content, FlushDecompress::Finish);
        (matches!(end, Ok(Status::StreamEnd)) && content.len() == length).then_some(content)
    }

    /// Returns the number of rows of a table.
    pub(super) fn rows(&self, table: Table) -> usize {
        let last = self.tables[table as usize].last();
        last.map_or(0, |block| block.first + block.rows)
    }

    /// Returns the number of blocks of a table.
    pub(super) fn blocks(&self, table: Table) -> usize {
        self.tables[table as usize].len()
    }

    /// Returns the block of a row that is in the table, and its first row.
    pub(super) fn block_of_row(&self, table: Table, row: usize) -> (usize, usize) {
        let blocks = &self.tables[table as usize];
        let block = blocks.partition_point(|block| block.first <= row) - 1;
        (block, blocks[block].first)
    }

    /// Returns the only block that may contain the rows of a key.
    pub(super) fn block_of_key(&self, table: Table, key: Key) -> Option<usize> {
        let blocks = &self.tables[table as usize];
        blocks
            .partition_point(|block| block.key <= key)
            .checked_sub(1)
    }

    /// Returns whether the file lists precompiled code.
    pub(super) fn lists_precompiled(&self) -> bool {
        Table::Precompiled.is_in(self.version)
    }

    /// Returns the blocks that may contain rows of a process.
    pub(super) fn blocks_of_process(&self, table: Table, process: u32) -> Range<usize> {
        let blocks = &self.tables[table as usize];
        let before = blocks.partition_point(|block| block.key <= (process, 0));
        before.saturating_sub(1)..blocks.partition_point(|block| block.key.0 <= process)
    }

    /// Returns the offset of a table in the file, in bytes.
    pub(super) fn offset(&self, table: Table) -> u64 {
        self.tables[table as usize]
            .first()
            .map_or(0, |block| block.offset)
    }

    /// Returns the error about a block.
    pub(super) fn invalid(&self, table: Table, block: usize) -> SavedError {
        SavedError::Damaged {
            part: table.as_str(),
            offset: self.tables[table as usize][block].offset,
        }
    }

    /// Reads the rows of a block.
    pub(super) fn read<T: Default>(
        &self,
        table: Table,
        index: usize,
        texts: &mut dyn TextSource,
        code: impl FnMut(&mut Coder<'_>, &mut T),
    ) -> Result<Vec<T>, SavedError> {
        let mut rows = Vec::new();
        self.read_onto(&mut rows, table, index, texts, code)?;
        Ok(rows)
    }

    /// Appends the rows of a block to others.
    pub(super) fn read_onto<T: Default>(
        &self,
        rows: &mut Vec<T>,
        table: Table,
        index: usize,
        texts: &mut dyn TextSource,
        mut code: impl FnMut(&mut Coder<'_>, &mut T),
    ) -> Result<(), SavedError> {
        let block = &self.tables[table as usize][index];
        let damaged = || self.invalid(table, index);
        let content = self.content(block).ok_or_else(damaged)?;
        let mut coder = Coder::reader(&content, texts);
        coder.version = self.version;
        rows.reserve(block.rows.min(1 << 16));
        for _ in 0..block.rows {
            let row = rows.len();
            rows.push(T::default());
            coder.row();
            code(&mut coder, &mut rows[row]);
            if !coder.is_valid() {
                break;
            }
        }
        match coder.is_complete() {
            true => Ok(()),
            false => Err(damaged()),
        }
    }

    /// Calls `each` with every row of a block whose rows are bytes alone, until it returns `None`.
    pub(super) fn read_bytes(
        &self,
        table: Table,
        index: usize,
        mut each: impl FnMut(&[u8]) -> Option<()>,
    ) -> Result<(), SavedError> {
        let block = &self.tables[table as usize][index];
        let damaged = || self.invalid(table, index);
        let content = self.content(block).ok_or_else(damaged)?;
        let mut texts = NoTexts;
        let mut coder = Coder::reader(&content, &mut texts);
        for _ in 0..block.rows {
            coder.row();
            coder.take_bytes().and_then(&mut each).ok_or_else(damaged)?;
        }
        coder.is_complete().then_some(()).ok_or_else(damaged)
    }

    /// Reads all rows of a table.
    pub(super) fn read_all<T: Default>(
        &self,
        table: Table,
        texts: &mut dyn TextSource,
        mut code: impl FnMut(&mut Coder<'_>, &mut T),
    ) -> Result<Vec<T>, SavedError> {
        let mut rows = Vec::new();
        for block in 0..self.blocks(table) {
            self.read_onto(&mut rows, table, block, texts, &mut code)?;
        }
        Ok(rows)
    }
}
