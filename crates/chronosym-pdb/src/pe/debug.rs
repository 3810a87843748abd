//! The debug directory (`IMAGE_DEBUG_DIRECTORY`), which identifies the image's symbol files.

use object::{LittleEndian as LE, pe};

use super::image::{PeImage, RvaRange};
use crate::bytes::text_to_nul;
use crate::inflate::inflate;
use crate::{Error, Result, bytes};
use crate::{PdbId, PortablePdbId};

/// Debug types (`IMAGE_DEBUG_TYPE_*`).
const CODEVIEW: u32 = 2;
const EMBEDDED_PORTABLE_PDB: u32 = 17;
const PDB_CHECKSUM: u32 = 19;
const PERF_MAP: [u32; 2] = [20, 21];

/// An entry of the debug directory.
struct DebugDirectoryEntry<'d> {
    header: &'d pe::ImageDebugDirectory,
    /// The entry's data; empty if it exceeds the file.
    data: &'d [u8],
}

/// A CodeView entry (`IMAGE_DEBUG_TYPE_CODEVIEW`, signature `RSDS`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodeView {
    /// The PDB's GUID and age.
    pub id: PdbId,
    /// The time stamp of the directory entry.
    pub stamp: u32,
    /// Whether the PDB is a portable one (minor version 0x504D). In ReadyToRun images for Windows
    /// an entry for a Windows PDB precedes it.
    pub portable: bool,
    /// The PDB's path on the build machine; untrusted.
    pub path: String,
}

impl CodeView {
    /// Returns the id of the portable PDB; `None` if the PDB is a Windows PDB.
    pub fn portable_id(&self) -> Option<PortablePdbId> {
        self.portable.then_some(PortablePdbId {
            guid: self.id.guid,
            stamp: self.stamp,
        })
    }
}

/// The checksum of the image's PDB (`IMAGE_DEBUG_TYPE_PDBCHECKSUM`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PdbChecksum<'d> {
    /// The name of the algorithm, usually `SHA256`.
    pub algorithm: String,
    /// The checksum.
    pub value: &'d [u8],
}

/// The id of a ReadyToRun image's perf map (`r2rmap`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PerfMapId {
    /// The signature in file order; not a GUID.
    pub signature: [u8; 16],
    /// The version of the map's format.
    pub version: u32,
    /// The map's file name.
    pub path: String,
}

fn codeview(entry: DebugDirectoryEntry<'_>) -> Option<CodeView> {
    let data = entry.data.strip_prefix(b"RSDS")?;
    Some(CodeView {
        id: PdbId {
            guid: bytes::guid(data, 0)?,
            age: bytes::u32(data, 16)?,
        },
        stamp: entry.header.time_date_stamp.get(LE),
        portable: entry.header.minor_version.get(LE) == 0x504d,
        path: text_to_nul(data.get(20..)?),
    })
}

impl<'d> PeImage<'d> {
    /// Returns the entries of the given types.
    fn debug_entries(
        &self,
        types: &'static [u32],
    ) -> impl Iterator<Item = DebugDirectoryEntry<'d>> + use<'d> {
        let image = self.clone();
        let table = image.directory(pe::IMAGE_DIRECTORY_ENTRY_DEBUG);
        let table = table
            .and_then(|range| image.slice(range))
            .unwrap_or_default();
        let count = table
            .len()
            .checked_div(size_of::<pe::ImageDebugDirectory>());
        let headers = object::slice_from_bytes(table, count.unwrap_or_default());
        let headers = headers.map_or(&[][..], |(headers, _)| headers);
        let all = headers.iter().map(move |header: &pe::ImageDebugDirectory| {
            let size = header.size_of_data.get(LE);
            let data = match header.address_of_raw_data.get(LE) {
                0 => {
                    let offset = header.pointer_to_raw_data.get(LE);
                    bytes::slice(image.data, offset as usize, size as usize)
                }
                rva => image.slice(RvaRange { rva, size }),
            };
            let data = data.unwrap_or_default();
            DebugDirectoryEntry { header, data }
        });
        all.filter(|entry| types.contains(&entry.header.typ.get(LE).0))
    }

    /// Returns every CodeView entry: a ReadyToRun image can name a Windows PDB and a portable one.
    pub fn codeviews(&self) -> impl Iterator<Item = CodeView> + use<'d> {
        self.debug_entries(&[CODEVIEW]).filter_map(codeview)
    }

    /// Returns the entry of the portable PDB.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_pdb::{pe::PeImage, portable::PortablePdb};
    ///
    /// let image = std::fs::read("../../testdata/clr10/workload/PluginA.dll")?;
    /// let pdb = std::fs::read("../../testdata/clr10/workload/PluginA.pdb")?;
    /// // The image states which PDB is its own.
    /// let codeview = PeImage::parse(&image)?.portable_codeview().unwrap();
    /// assert_eq!(codeview.portable_id(), Some(PortablePdb::parse(&pdb)?.id()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn portable_codeview(&self) -> Option<CodeView> {
        self.codeviews().find(|entry| entry.portable)
    }

    /// Returns the entry of the Windows PDB, native or managed.
    pub fn native_codeview(&self) -> Option<CodeView> {
        self.codeviews().find(|entry| !entry.portable)
    }

    /// Returns the checksum of the portable PDB.
    pub fn pdb_checksum(&self) -> Option<PdbChecksum<'d>> {
        let data = self.debug_entries(&[PDB_CHECKSUM]).next()?.data;
        let end = data.iter().position(|&b| b == 0)?;
        Some(PdbChecksum {
            algorithm: text_to_nul(data),
            value: data.get(end.checked_add(1)?..)?,
        })
    }

    /// Returns the id of the image's perf map.
    pub fn perf_map_id(&self) -> Option<PerfMapId> {
        self.debug_entries(&PERF_MAP).find_map(|entry| {
            let data = entry.data.strip_prefix(b"R2RM")?;
            Some(PerfMapId {
                signature: bytes::array(data, 0)?,
                version: bytes::u32(data, 16)?,
                path: text_to_nul(data.get(20..)?),
            })
        })
    }

    /// Returns whether the image embeds a portable PDB.
    pub fn embeds_portable_pdb(&self) -> bool {
        self.debug_entries(&[EMBEDDED_PORTABLE_PDB])
            .next()
            .is_some()
    }

    /// Decompresses the embedded portable PDB; `None` if there is none.
    ///
    /// # Errors [`Error::TooLarge`] if it exceeds `limit` bytes, [`Error::Damaged`] if it does not
    /// decompress to its stated size.
    pub fn embedded_portable_pdb(&self, limit: usize) -> Result<Option<Vec<u8>>> {
        const WHAT: &str = "embedded portable PDB";
        let Some(entry) = self.debug_entries(&[EMBEDDED_PORTABLE_PDB]).next() else {
            return Ok(None);
        };
        let damaged = |problem| Error::damaged(WHAT, 0, problem);
        let packed = entry
            .data
            .strip_prefix(b"MPDB")
            .ok_or(damaged("no MPDB signature"))?;
        let size = bytes::u32(packed, 0).ok_or(damaged("no size"))?;
        let packed = packed.get(4..).unwrap_or_default();
        inflate(WHAT, packed, size as usize, limit).map(Some)
    }
}
