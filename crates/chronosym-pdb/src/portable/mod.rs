//! Portable PDBs: source documents, sequence points, Source Link, embedded source and state machines.
//!
//! Format: the portable PDB specification (v1.0), which builds on ECMA-335 metadata. Opening a PDB
//! reads the table of contents; the sequence points of one method are decoded when it is asked for.

mod custom;
mod lines;
mod source_link;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::OnceLock;

use chronosym_types::copied_text;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha384, Sha512};

use crate::blob::BlobReader;
use crate::marks::Marks;
use crate::metadata::{Metadata, Table};
use crate::{Error, Result, bytes};
use crate::{Guid, PortablePdbId};

pub use lines::{SequencePoint, SequencePoints};
pub use source_link::SourceLink;

const WHAT: &str = "portable PDB";

/// A portable PDB. It borrows from the file's bytes; parsing takes some microseconds.
pub struct PortablePdb<'d> {
    data: &'d [u8],
    metadata: Metadata<'d>,
    stream: &'d [u8],
    id: PortablePdbId,
    source_link: OnceLock<Option<SourceLink>>,
    /// In lists of points, by document and blob.
    marks: Marks<(u32, u32), lines::Place<'d>>,
}

/// How a document's hash was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HashAlgorithm {
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
    /// Any other, by its GUID.
    Other(Guid),
}

impl HashAlgorithm {
    /// Whether a hash is that of these bytes; nothing for algorithms that are not known.
    pub fn is_hash_of(self, hash: &[u8], bytes: &[u8]) -> Option<bool> {
        match self {
            HashAlgorithm::Sha1 => Some(Sha1::digest(bytes)[..] == *hash),
            HashAlgorithm::Sha256 => Some(Sha256::digest(bytes)[..] == *hash),
            HashAlgorithm::Other(_) => None,
        }
    }
}

/// A source file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Document<'d> {
    /// The path as the compiler wrote it.
    pub name: String,
    /// How the hash was made; nothing without a hash.
    pub hash_algorithm: Option<HashAlgorithm>,
    /// The hash of the file's bytes; may be empty.
    pub hash: &'d [u8],
}

const SHA1: Guid = Guid::from_u128(0xff1816ec_aa5e_4d10_87f7_6f4963833460);
const SHA256: Guid = Guid::from_u128(0x8829d00f_11b8_4213_878b_770e8597ac16);

/// A path's parts come one by one out of the blob heap; this bounds what they add up to, and their number.
const MAX_NAME: usize = 32 << 10;

impl fmt::Debug for PortablePdb<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PortablePdb")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl<'d> PortablePdb<'d> {
    /// Opens a portable PDB.
    ///
    /// # Errors
    /// [`Error::NotA`] for anything else (a Windows PDB too); those of [`Metadata::parse`].
    pub fn parse(data: &'d [u8]) -> Result<Self> {
        let not = Error::NotA { what: WHAT };
        let metadata = match Metadata::parse(data) {
            Err(Error::NotA { .. }) => return Err(not),
            other => other?,
        };
        let stream = metadata.pdb_stream().ok_or(not)?;
        let id = bytes::guid(stream, 0).zip(bytes::u32(stream, 16));
        let (guid, stamp) = id.ok_or(Error::truncated(WHAT, 0, 20))?;
        let id = PortablePdbId { guid, stamp };
        Ok(Self {
            data,
            metadata,
            stream,
            id,
            source_link: OnceLock::new(),
            marks: Marks::new(data.len()),
        })
    }

    /// Whether `data` starts as a portable PDB (or any CLI metadata) does.
    pub fn sniff(data: &[u8]) -> bool {
        data.starts_with(b"BSJB")
    }

    /// The identity, to be compared with the module's.
    pub fn id(&self) -> PortablePdbId {
        self.id
    }

    /// How many methods the PDB can speak of: the rows of the module's MethodDef table.
    pub fn methods(&self) -> u32 {
        self.metadata.rows(Table::METHOD_DEBUG_INFORMATION)
    }

    /// Compares the checksum that the module holds with that of these bytes, in which the id counts
    /// as zero. Nothing for an unknown algorithm.
    pub fn verify_checksum(&self, algorithm: &str, expected: &[u8]) -> Option<bool> {
        // The stream is a part of the data, so this is its offset.
        let start = self.data.as_ptr().addr();
        let id = self.stream.as_ptr().addr().checked_sub(start)?;
        let (before, after) = self.data.split_at_checked(id)?;
        let parts = [before, &[0; 20], after.get(20..)?];
        fn digest<D: Digest>(parts: [&[u8]; 3]) -> Vec<u8> {
            let mut hash = D::new();
            parts.iter().for_each(|part| hash.update(part));
            hash.finalize().to_vec()
        }
        let found = match algorithm {
            "SHA256" => digest::<Sha256>(parts),
            "SHA384" => digest::<Sha384>(parts),
            "SHA512" => digest::<Sha512>(parts),
            _ => return None,
        };
        Some(found == expected)
    }

    /// A document by its row, from 1.
    pub fn document(&self, row: u32) -> Option<Document<'d>> {
        let cells = self.metadata.tables.row(Table::DOCUMENT, row)?;
        let hash = self.metadata.blob(cells.get(2)).unwrap_or_default();
        let algorithm = self.metadata.guid(cells.get(1)).map(|guid| match guid {
            SHA1 => HashAlgorithm::Sha1,
            SHA256 => HashAlgorithm::Sha256,
            other => HashAlgorithm::Other(other),
        });
        Some(Document {
            name: self.document_name(cells.get(0))?,
            hash_algorithm: algorithm,
            hash,
        })
    }

    /// The documents' rows.
    pub fn documents(&self) -> impl Iterator<Item = u32> + use<> {
        1..=self.metadata.rows(Table::DOCUMENT)
    }

    /// A document name blob: a separator, then blob indexes of the parts.
    fn document_name(&self, blob: u32) -> Option<String> {
        let mut parts = BlobReader::new(self.metadata.blob(blob)?);
        let is_char = |text: &[u8]| String::from_utf8(text.to_vec()).is_ok();
        // One character, of which NUL stands for none; an empty blob has none.
        let length = (1..=4).find(|&n| parts.rest().get(..n).is_some_and(is_char));
        let separator = copied_text(parts.bytes(length.unwrap_or_default())?);
        let (mut name, mut count) = (String::new(), 0_usize);
        let mut between = "";
        while !parts.is_empty() {
            name.push_str(between);
            between = separator.trim_end_matches('\0');
            let part = parts.unsigned()?;
            if part != 0 {
                name.push_str(&copied_text(self.metadata.blob(part)?));
            }
            count = count.saturating_add(1);
            if name.len().max(count) > MAX_NAME {
                return None;
            }
        }
        Some(name)
    }

    /// The sequence points of a method (MethodDef row) in IL order; empty if it has none.
    pub fn lines(&self, method: u32) -> SequencePoints<'d> {
        let (document, blob) = self.points(method);
        let blob = self.metadata.blob(blob).filter(|_| blob != 0);
        SequencePoints::new(document, blob.unwrap_or_default())
    }

    /// The document and the blob of a method's points.
    fn points(&self, method: u32) -> (u32, u32) {
        let (table, tables) = (Table::METHOD_DEBUG_INFORMATION, &self.metadata.tables);
        let row = tables.row(table, method);
        row.map_or((0, 0), |row| (row.get(0), row.get(1)))
    }

    /// A place among a method's points that is before what is looked for.
    fn place(
        &self,
        method: u32,
        is_before: impl Fn(&lines::Place<'d>) -> bool,
    ) -> Option<lines::Place<'d>> {
        let (points, line) = (self.lines(method), None);
        let (bytes, start) = (points.bytes(), lines::Place { points, line });
        (self.marks).last(self.points(method), bytes, start, is_before)
    }

    /// The line of an IL offset: the sequence point at or before it, or, where that one is hidden, the nearest visible one before.
    /// Nothing if there is none.
    pub fn line_at(&self, method: u32, il_offset: u32) -> Option<SequencePoint> {
        let place = self.place(method, |place| place.is_before(il_offset))?;
        let points = place.points;
        let points = points.take_while(|point| point.il_offset <= il_offset);
        let line = points.filter(|point| !point.is_hidden()).last();
        line.or(place.line)
    }

    /// The method's first visible line: where its prolog belongs. Nothing if it has none.
    pub fn first_line(&self, method: u32) -> Option<SequencePoint> {
        let place = self.place(method, |place| place.line.is_none())?;
        { place.points }.find(|point| !point.is_hidden())
    }

    /// The URL of a document's source, by the Source Link map in the PDB.
    pub fn source_link_url(&self, document: u32) -> Option<String> {
        let name = self.document(document)?.name;
        self.source_link()?.url(&name)
    }

    /// The Source Link map; nothing if the PDB has none or it is damaged.
    pub fn source_link(&self) -> Option<&SourceLink> {
        let map = self
            .source_link
            .get_or_init(|| SourceLink::parse(self.source_link_json()?).ok());
        map.as_ref()
    }
}
