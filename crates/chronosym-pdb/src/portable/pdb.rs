//! An open portable PDB: identity, checksum and lines.

use std::fmt;
use std::sync::OnceLock;

use sha2::{Digest, Sha256, Sha384, Sha512};

use crate::checkpoints::Checkpoints;
use crate::metadata::{Metadata, Table};
use crate::{Error, PortablePdbId, Result, bytes};

use super::sequence_points::{PointPosition, SequencePoint, SequencePoints};
use super::source_link::SourceLink;

pub(super) const WHAT: &str = "portable PDB";

/// A portable PDB. Borrows the file's bytes; parsing takes a few microseconds.
pub struct PortablePdb<'d> {
    data: &'d [u8],
    pub(super) metadata: Metadata<'d>,
    stream: &'d [u8],
    id: PortablePdbId,
    source_link: OnceLock<Option<SourceLink>>,
    /// Checkpoints in the sequence points of methods, by document and blob.
    checkpoints: Checkpoints<(u32, u32), PointPosition<'d>>,
}

impl fmt::Debug for PortablePdb<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PortablePdb")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl<'d> PortablePdb<'d> {
    /// Parses a portable PDB.
    ///
    /// # Errors [`Error::NotA`] for any other file, including a Windows PDB; the errors of
    /// [`Metadata::parse`].
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
            checkpoints: Checkpoints::new(data.len()),
        })
    }

    /// Returns whether `data` starts with the signature of CLI metadata, as a portable PDB does.
    pub fn sniff(data: &[u8]) -> bool {
        data.starts_with(b"BSJB")
    }

    /// Returns the id, which must equal the one in the image's CodeView entry.
    pub fn id(&self) -> PortablePdbId {
        self.id
    }

    /// Returns the number of rows of the MethodDebugInformation table, one for each MethodDef row.
    pub fn method_count(&self) -> u32 {
        self.metadata.rows(Table::METHOD_DEBUG_INFORMATION)
    }

    /// Compares the image's [`PdbChecksum`](crate::pe::PdbChecksum) with the checksum of the file,
    /// in which the id counts as zeros. `None` for an unsupported algorithm.
    pub fn verify_checksum(&self, algorithm: &str, expected: &[u8]) -> Option<bool> {
        // The stream is a slice of the data: this is its offset.
        let start = self.data.as_ptr().addr();
        let id = self.stream.as_ptr().addr().checked_sub(start)?;
        let (before, after) = self.data.split_at_checked(id)?;
        let parts = [before, &[0; 20], after.get(20..)?];
        fn digest<D: Digest>(parts: [&[u8]; 3]) -> Vec<u8> {
            let mut hash = D::new();
            parts.iter().for_each(|part| hash.update(part));
            hash.finalize().to_vec()
        }
        let actual = match algorithm {
            "SHA256" => digest::<Sha256>(parts),
            "SHA384" => digest::<Sha384>(parts),
            "SHA512" => digest::<Sha512>(parts),
            _ => return None,
        };
        Some(actual == expected)
    }

    /// Returns the sequence points of a MethodDef row, in IL order; empty if it has none.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_pdb::portable::PortablePdb;
    ///
    /// let file = std::fs::read("../../testdata/clr10/workload/PluginA.pdb")?;
    /// let pdb = PortablePdb::parse(&file)?;
    /// let points: Vec<_> = pdb.sequence_points(1).filter(|point| !point.is_hidden()).collect();
    /// assert!(points.is_sorted_by_key(|point| point.il_offset));
    /// assert!(points.iter().all(|point| point.start_line == 8)); // all of it is on one line
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sequence_points(&self, method: u32) -> SequencePoints<'d> {
        let (document, blob) = self.points(method);
        let blob = self.metadata.blob(blob).filter(|_| blob != 0);
        SequencePoints::new(document, blob.unwrap_or_default())
    }

    /// Returns the document and the blob of a method's sequence points.
    fn points(&self, method: u32) -> (u32, u32) {
        let (table, tables) = (Table::METHOD_DEBUG_INFORMATION, &self.metadata.tables);
        let row = tables.row(table, method);
        row.map_or((0, 0), |row| (row.get(0), row.get(1)))
    }

    /// Returns the checkpoint nearest to the point looked up.
    fn nearest(
        &self,
        method: u32,
        is_before: impl Fn(&PointPosition<'d>) -> bool,
    ) -> Option<PointPosition<'d>> {
        let (points, line) = (self.sequence_points(method), None);
        let (bytes, start) = (points.bytes(), PointPosition { points, line });
        self.checkpoints
            .nearest(self.points(method), bytes, start, is_before)
    }

    /// Returns the sequence point at or before an IL offset; for a hidden one, the nearest visible
    /// one before it.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_pdb::portable::PortablePdb;
    ///
    /// let file = std::fs::read("../../testdata/clr10/workload/PluginA.pdb")?;
    /// let pdb = PortablePdb::parse(&file)?;
    /// // Method 2 is `Run` of PluginA.cs.
    /// let point = pdb.line_at(2, 0).unwrap();
    /// assert_eq!(point.start_line, 9);
    /// let document = pdb.document(point.document).unwrap();
    /// assert!(document.name.ends_with("PluginA.cs"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn line_at(&self, method: u32, il_offset: u32) -> Option<SequencePoint> {
        let position = self.nearest(method, |position| position.is_before(il_offset))?;
        let points = position.points;
        let points = points.take_while(|point| point.il_offset <= il_offset);
        let line = points.filter(|point| !point.is_hidden()).last();
        line.or(position.line)
    }

    /// Returns the method's first visible sequence point, which covers its prolog.
    pub fn first_line(&self, method: u32) -> Option<SequencePoint> {
        let position = self.nearest(method, |position| position.line.is_none())?;
        { position.points }.find(|point| !point.is_hidden())
    }

    /// Returns the URL of a document by the Source Link map.
    pub fn source_link_url(&self, document: u32) -> Option<String> {
        let name = self.document(document)?.name;
        self.source_link()?.url(&name)
    }

    /// Returns the Source Link map; `None` if the PDB has none or it is malformed.
    pub fn source_link(&self) -> Option<&SourceLink> {
        let map = self
            .source_link
            .get_or_init(|| SourceLink::parse(self.source_link_json()?).ok());
        map.as_ref()
    }
}
