//! Folders of `perf record --threads`: `data` is a perf.data without most of its records, which are
//! in `data.0`, `data.1` and so on, one file per thread of the recorder. They are read as one
//! perf.data: the records of these files, those of `data`, and the features after them
//! (Documentation/perf.data-directory-format.txt).

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use chronosym_etl::ReadAt;

/// Size of the header in bytes: magic, sizes, three sections and 256 bits of features.
const HEADER: usize = 104;
const DATA: usize = 40;
const FEATURES: usize = 72;
/// Size in bytes of an entry in the table of features: offset and size.
const SECTION: u64 = 16;

/// A perf.data in several files.
#[derive(Debug)]
pub(super) struct PerfFolder {
    /// Each with the offset of its first byte in the whole, in order.
    pieces: Vec<(u64, Piece)>,
    size: u64,
    position: u64,
}

/// Bytes of a file, or bytes that replace them.
#[derive(Debug)]
enum Piece {
    Range { file: File, from: u64, size: u64 },
    Bytes(Vec<u8>),
}

impl Piece {
    fn size(&self) -> u64 {
        match self {
            Piece::Range { size, .. } => *size,
            Piece::Bytes(bytes) => bytes.len() as u64,
        }
    }
}

impl PerfFolder {
    /// Opens a folder, if it is one of a recording. Also returns the files that belong to it.
    ///
    /// # Errors
    ///
    /// A file cannot be read.
    pub fn open(files: &[PathBuf]) -> io::Result<Option<(Self, Vec<PathBuf>)>> {
        let name = |path: &Path| {
            path.file_name()
                .map(|name| name.to_string_lossy().into_owned())
        };
        let number = |path: &Path| name(path)?.strip_prefix("data.")?.parse::<u32>().ok();
        let Some(main) = files
            .iter()
            .find(|path| name(path).as_deref() == Some("data"))
        else {
            return Ok(None);
        };
        let mut parts: Vec<_> = files
            .iter()
            .filter_map(|path| Some((number(path)?, path)))
            .collect();
        if parts.is_empty() {
            return Ok(None);
        }
        parts.sort_unstable();
        let file = File::open(main)?;
        let Some(head) = Head::read(&file)? else {
            return Ok(None);
        };
        let mut records = Vec::new();
        for (_, path) in &parts {
            let file = File::open(path)?;
            let size = file.metadata()?.len();
            records.push(Piece::Range {
                file,
                from: 0,
                size,
            });
        }
        let added: u64 = records.iter().map(Piece::size).sum();
        let (before, after) = head.shifted(added);
        let end = file.metadata()?.len();
        let rest = head.data_end.saturating_add(after.len() as u64);
        let range = |from: u64, to: u64| -> io::Result<Piece> {
            let (file, size) = (file.try_clone()?, to.min(end).saturating_sub(from));
            Ok(Piece::Range { file, from, size })
        };
        let mut all = vec![Piece::Bytes(before)];
        all.append(&mut records);
        all.push(range(head.data, head.data_end)?);
        all.push(Piece::Bytes(after));
        all.push(range(rest, end)?);
        let mut size = 0_u64;
        let pieces = all.into_iter().map(|piece| {
            let start = size;
            size = size.saturating_add(piece.size());
            (start, piece)
        });
        let pieces = pieces.collect();
        let whole = PerfFolder {
            pieces,
            size,
            position: 0,
        };
        let parts = parts.into_iter().map(|(_, path)| path);
        Ok(Some((whole, parts.chain([main]).cloned().collect())))
    }
}

/// The parts of `data` that contain file offsets.
struct Head {
    /// All bytes before the records.
    before: Vec<u8>,
    data: u64,
    data_end: u64,
    /// The table of features, which follows the records.
    table: Vec<u8>,
}

impl Head {
    /// `None` if it is not a perf.data in file form of a little-endian machine.
    fn read(file: &File) -> io::Result<Option<Self>> {
        // Limits attributes and their names; larger ones are not in use.
        const LONGEST: u64 = 16 << 20;
        let mut header = [0; HEADER];
        if read_to(file, 0, &mut header)? < HEADER || !header.starts_with(b"PERFILE2") {
            return Ok(None);
        }
        let (data, size) = (number(&header, DATA), number(&header, DATA + 8));
        let data_end = data.saturating_add(size);
        if !(HEADER as u64..LONGEST).contains(&data) || data_end > file.metadata()?.len() {
            return Ok(None);
        }
        let mut before = vec![0; data as usize];
        let read = read_to(file, 0, &mut before)?;
        before.truncate(read);
        let features: u32 = header[FEATURES..]
            .iter()
            .map(|byte| byte.count_ones())
            .sum();
        let mut table = vec![0; (u64::from(features) * SECTION) as usize];
        let read = read_to(file, data_end, &mut table)?;
        table.truncate(read);
        Ok(Some(Head {
            before,
            data,
            data_end,
            table,
        }))
    }

    /// Returns the bytes before the records, and the table of features, for a file with `added`
    /// more bytes of records.
    fn shifted(&self, added: u64) -> (Vec<u8>, Vec<u8>) {
        let (mut before, mut table) = (self.before.clone(), self.table.clone());
        let shift = |bytes: &mut [u8], at: usize, is_moved: bool| {
            if let Some(place) = bytes.get_mut(at..at + 8)
                && is_moved
            {
                let value = u64::from_le_bytes(place.try_into().unwrap_or_default());
                place.copy_from_slice(&value.saturating_add(added).to_le_bytes());
            }
        };
        shift(&mut before, DATA + 8, true);
        for at in (0..table.len()).step_by(SECTION as usize) {
            let is_behind = number(&table, at) >= self.data_end;
            shift(&mut table, at, is_behind);
        }
        (before, table)
    }
}

fn number(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Reads as many bytes as available.
fn read_to(file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match file.read_at(offset.saturating_add(done as u64), rest)? {
            0 => break,
            n => done += n,
        }
    }
    Ok(done)
}

impl ReadAt for PerfFolder {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let begun = self.pieces.partition_point(|(start, _)| *start <= offset);
        // Empty pieces have the same offset as the next one, and precede it.
        let Some((start, piece)) = begun.checked_sub(1).and_then(|at| self.pieces.get(at)) else {
            return Ok(0);
        };
        let within = offset - start;
        let room = usize::try_from(piece.size().saturating_sub(within)).unwrap_or(usize::MAX);
        let most = room.min(buffer.len());
        let buffer = &mut buffer[..most];
        match piece {
            Piece::Range { file, from, .. } => file.read_at(from.saturating_add(within), buffer),
            Piece::Bytes(bytes) => {
                Cursor::new(bytes.get(within as usize..).unwrap_or_default()).read(buffer)
            }
        }
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.size)
    }
}

impl Read for PerfFolder {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.read_at(self.position, buffer)?;
        self.position = self.position.saturating_add(n as u64);
        Ok(n)
    }
}

impl Seek for PerfFolder {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.size.checked_add_signed(by),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
        };
        let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
        self.position = position.ok_or_else(invalid)?;
        Ok(self.position)
    }
}
