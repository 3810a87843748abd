//! The CustomDebugInformation table (0x37): Source Link and embedded source.

use super::pdb::{PortablePdb, WHAT};
use crate::Guid;
use crate::inflate::inflate;
use crate::metadata::{HAS_CUSTOM_DEBUG_INFORMATION, Table, Token};
use crate::{Error, Result, bytes};

const SOURCE_LINK: Guid = Guid::from_u128(0xcc110556_a091_4d38_9fec_25ab9a351a6a);
const EMBEDDED_SOURCE: Guid = Guid::from_u128(0x0e8a571b_6926_466e_b4ad_8ab04611f5fe);

impl<'d> PortablePdb<'d> {
    /// Returns the blob of the custom debug information of this kind for `parent`.
    fn custom(&self, parent: Token, kind: Guid) -> Option<&'d [u8]> {
        let tables = &self.metadata.tables;
        let key = HAS_CUSTOM_DEBUG_INFORMATION.encode(parent)?;
        let first = tables.find(Table::CUSTOM_DEBUG_INFORMATION, key)?;
        let is_sorted = tables.is_sorted(Table::CUSTOM_DEBUG_INFORMATION);
        (first..=tables.rows(Table::CUSTOM_DEBUG_INFORMATION))
            .map_while(|row| tables.row(Table::CUSTOM_DEBUG_INFORMATION, row))
            .take_while(|row| !is_sorted || row.get(0) == key)
            .filter(|row| row.get(0) == key)
            .find(|row| self.metadata.guid(row.get(1)) == Some(kind))
            .and_then(|row| self.metadata.blob(row.get(2)))
    }

    /// Returns the JSON text of the Source Link map.
    pub fn source_link_json(&self) -> Option<&'d [u8]> {
        self.custom(Token::new(Table::MODULE, 1), SOURCE_LINK)
    }

    /// Returns the embedded source of a document; `None` if there is none.
    ///
    /// # Errors [`Error::TooLarge`] beyond `limit` bytes, [`Error::Damaged`] if it does not
    /// decompress.
    pub fn embedded_source(&self, document: u32, limit: usize) -> Result<Option<Vec<u8>>> {
        let Some(blob) = self.custom(Token::new(Table::DOCUMENT, document), EMBEDDED_SOURCE) else {
            return Ok(None);
        };
        let size = bytes::u32(blob, 0).ok_or(Error::damaged(WHAT, 0, "empty source"))?;
        let source = blob.get(4..).unwrap_or_default();
        match size {
            0 if source.len() > limit => Err(Error::TooLarge {
                what: "embedded source",
                size: source.len() as u64,
                limit: limit as u64,
            }),
            0 => Ok(Some(source.to_vec())),
            size => inflate("embedded source", source, size as usize, limit).map(Some),
        }
    }
}
