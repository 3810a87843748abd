//! Source documents: the Document table (0x30).

use chronosym_types::copied_text;
use sha1::{Digest, Sha1};
use sha2::Sha256;

use super::pdb::PortablePdb;
use crate::Guid;
use crate::blob::BlobReader;
use crate::metadata::Table;

/// The algorithm of a document's hash.
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
    /// Returns whether `hash` is the hash of `bytes`; `None` for an unsupported algorithm.
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
    /// The path on the build machine.
    pub name: String,
    /// The algorithm of the hash; `None` without a hash.
    pub hash_algorithm: Option<HashAlgorithm>,
    /// The hash of the file's content; may be empty.
    pub hash: &'d [u8],
}

const SHA1: Guid = Guid::from_u128(0xff1816ec_aa5e_4d10_87f7_6f4963833460);
const SHA256: Guid = Guid::from_u128(0x8829d00f_11b8_4213_878b_770e8597ac16);

/// Bytes of a path, and number of its parts: the parts are blobs, which can be shared.
const MAX_NAME: usize = 32 << 10;

impl<'d> PortablePdb<'d> {
    /// Returns a document by its row, from 1.
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

    /// Returns the rows of all documents.
    pub fn documents(&self) -> impl Iterator<Item = u32> + use<> {
        1..=self.metadata.rows(Table::DOCUMENT)
    }

    /// Decodes a document name blob: a separator, then the blob indexes of the parts.
    fn document_name(&self, blob: u32) -> Option<String> {
        let mut parts = BlobReader::new(self.metadata.blob(blob)?);
        let is_char = |text: &[u8]| String::from_utf8(text.to_vec()).is_ok();
        // One UTF-8 character; NUL for none.
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
}
