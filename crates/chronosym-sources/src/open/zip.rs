//! Reads the entries of zip files in place.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, PoisonError};

use flate2::Crc;
use flate2::read::DeflateDecoder;
use zip::CompressionMethod;

use super::meter::{Meter, Metered};

/// A range of a file that other readers share; each has its own position.
#[derive(Clone, Debug)]
pub(super) struct Section {
    file: Arc<Mutex<Metered<File>>>,
    start: u64,
    at: u64,
    end: u64,
}

impl Section {
    pub fn whole(mut file: File, meter: &Arc<Meter>) -> io::Result<Self> {
        let end = file.seek(SeekFrom::End(0))?;
        Ok(Section {
            file: Arc::new(Mutex::new(Metered::input(file, meter))),
            start: 0,
            at: 0,
            end,
        })
    }

    fn part(&self, start: u64, end: u64) -> Self {
        Section {
            file: self.file.clone(),
            start,
            at: start,
            end: end.min(self.end),
        }
    }
}

impl Read for Section {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let most = buffer.len().min(room);
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.source.seek(SeekFrom::Start(self.at))?;
        let n = file.read(&mut buffer[..most])?;
        self.at += n as u64;
        Ok(n)
    }
}

impl Seek for Section {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => self.start.checked_add(at),
            SeekFrom::End(by) => self.end.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        match at.filter(|&at| at >= self.start) {
            Some(at) => {
                self.at = at;
                Ok(at - self.start)
            }
            None => Err(io::ErrorKind::InvalidInput.into()),
        }
    }
}

/// An entry of a zip file.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub name: String,
    /// Offset of its header.
    header: u64,
    data: Section,
    deflated: bool,
    crc: u32,
}

impl Entry {
    /// Opens the content, which is verified while it is read. The decompressor allocates its memory
    /// at the first read, since a zip file may have many entries.
    pub fn open(&self) -> impl Read + Send + use<> {
        Checked {
            body: match self.deflated {
                true => Body::Deflated(self.data.clone()),
                false => Body::Stored(self.data.clone()),
            },
            sum: Crc::new(),
            expected: self.crc,
        }
    }
}

/// The content of an entry.
enum Body {
    Stored(Section),
    Deflated(Section),
    Inflating(Box<DeflateDecoder<Section>>),
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Body::Deflated(data) = self {
            *self = Body::Inflating(Box::new(DeflateDecoder::new(data.clone())));
        }
        match self {
            Body::Stored(data) | Body::Deflated(data) => data.read(buffer),
            Body::Inflating(inside) => inside.read(buffer),
        }
    }
}

/// The central directory of a zip file.
pub(super) struct Listing {
    /// In the order of the directory; unreadable entries with their index and the reason.
    pub entries: Vec<Result<Entry, (usize, String)>>,
    /// Number of entries that start within another.
    pub overlapping: u64,
    /// Whether the directory has more entries than these.
    pub more: bool,
}

/// Lists up to `most` entries of a zip file.
pub(super) fn list(file: &Section, most: usize) -> Result<Listing, zip::result::ZipError> {
    let archive = zip::ZipArchive::new(BufReader::new(file.clone()))?;
    let mut entries = Vec::new();
    for index in 0..archive.len().min(most) {
        let entry = archive
            .by_index_data(index)
            .map_err(|error| error.to_string())
            .and_then(|file_entry| {
                let name = file_entry
                    .name()
                    .map_or("unnamed entry".to_owned(), |name| name.into_owned());
                let deflated = match file_entry.compression() {
                    _ if file_entry.encrypted() => return Err("it is encrypted".to_owned()),
                    CompressionMethod::Stored => false,
                    CompressionMethod::Deflated => true,
                    other => return Err(format!("compression {other} is not supported")),
                };
                let header = file_entry.header_start();
                let start = data_start(file, header).map_err(|error| error.to_string())?;
                Ok(Entry {
                    name,
                    header,
                    data: file.part(start, start.saturating_add(file_entry.compressed_size())),
                    deflated,
                    crc: file_entry.crc32(),
                })
            });
        entries.push(entry.map_err(|error| (index, error)));
    }
    let overlapping = drop_overlapping(&mut entries);
    Ok(Listing {
        entries,
        overlapping,
        more: archive.len() > most,
    })
}

/// Returns the offset of an entry's data: after its local header, whose length differs from that of
/// the directory's.
fn data_start(file: &Section, header: u64) -> io::Result<u64> {
    const SIZE: u64 = 30;
    let mut bytes = [0; SIZE as usize];
    file.part(header, header.saturating_add(SIZE))
        .read_exact(&mut bytes)?;
    if !bytes.starts_with(b"PK\x03\x04") {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "it has no header",
        ));
    }
    let names = [26, 28].map(|at| u64::from(u16::from_le_bytes([bytes[at], bytes[at + 1]])));
    Ok(header + SIZE + names[0] + names[1])
}

/// Removes entries that start within another: with them a small file can claim any number of large
/// entries.
fn drop_overlapping(entries: &mut Vec<Result<Entry, (usize, String)>>) -> u64 {
    let places = entries.iter().enumerate().filter_map(|(index, entry)| {
        let entry = entry.as_ref().ok()?;
        Some((entry.header, index, entry.data.end))
    });
    let mut places: Vec<_> = places.collect();
    places.sort_unstable();
    let (mut end, mut overlaps) = (0, vec![false; entries.len()]);
    for (start, index, stop) in places {
        overlaps[index] = start < end;
        end = end.max(stop);
    }
    let all = entries.len();
    let mut overlaps = overlaps.into_iter();
    entries.retain(|_| overlaps.next() != Some(true));
    (all - entries.len()) as u64
}

/// Verifies the data at its end.
struct Checked<S> {
    body: S,
    sum: Crc,
    expected: u32,
}

impl<S: Read> Read for Checked<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.body.read(buffer)?;
        self.sum.update(&buffer[..n]);
        if n == 0 && !buffer.is_empty() && self.sum.sum() != self.expected {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "Invalid checksum",
            ));
        }
        Ok(n)
    }
}
