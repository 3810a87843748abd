//! The debug directory: which symbol files belong to the image.

use std::borrow::Cow;
use std::io::Read;

use object::pe;

use super::{PeImage, RvaRange};
use crate::bytes::text_to_nul;
use crate::{Error, Result, bytes};
use crate::{Guid, PdbId, PortablePdbId};

/// What a debug directory entry holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DebugKind {
    /// Type 2: the id and path of a PDB.
    CodeView,
    /// Type 16: the build is reproducible.
    Reproducible,
    /// Type 17: a compressed portable PDB.
    EmbeddedPortablePdb,
    /// Type 19: the checksum of the portable PDB.
    PdbChecksum,
    /// Types 20 and 21: the id of a perf map.
    PerfMap,
    /// Any other type.
    Other(u32),
}

/// An entry of the debug directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DebugEntry<'d> {
    /// What it holds.
    pub kind: DebugKind,
    /// The time stamp field.
    pub stamp: u32,
    /// Major version.
    pub major: u16,
    /// Minor version.
    pub minor: u16,
    /// Its data in the file; empty if outside of it.
    pub data: &'d [u8],
}

/// A CodeView entry (`RSDS`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodeView<'d> {
    /// GUID and age.
    pub id: PdbId,
    /// The time stamp of the directory entry.
    pub stamp: u32,
    /// Whether it names a portable PDB (minor version 0x504D). A precompiled Windows image has a
    /// native entry too, and before this one.
    pub portable: bool,
    /// The PDB's path as the linker or compiler wrote it: not to be trusted.
    pub path: Cow<'d, str>,
}

impl CodeView<'_> {
    /// The id that the portable PDB must have; nothing for a native entry.
    pub fn portable_id(&self) -> Option<PortablePdbId> {
        self.portable.then_some(PortablePdbId {
            guid: self.id.guid,
            stamp: self.stamp,
        })
    }
}

/// The checksum of the PDB that was made with the image.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PdbChecksum<'d> {
    /// The algorithm's name, `SHA256` as a rule.
    pub algorithm: Cow<'d, str>,
    /// The checksum.
    pub value: &'d [u8],
}

/// The id of the perf map (`r2rmap`) that was made with a precompiled image.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PerfMapId<'d> {
    /// The signature in file order: not a GUID.
    pub signature: [u8; 16],
    /// The version of the map's format.
    pub version: u32,
    /// The map's file name.
    pub path: Cow<'d, str>,
}

fn codeview<'d>(entry: DebugEntry<'d>) -> Option<CodeView<'d>> {
    let data = entry.data.strip_prefix(b"RSDS")?;
    Some(CodeView {
        id: PdbId {
            guid: Guid(bytes::array(data, 0)?),
            age: bytes::u32(data, 16)?,
        },
        stamp: entry.stamp,
        portable: entry.minor == 0x504d,
        path: text_to_nul(data.get(20..)?),
    })
}

impl<'d> PeImage<'d> {
    /// The entries of the debug directory.
    pub fn debug_directory(&self) -> impl Iterator<Item = DebugEntry<'d>> + use<'d> {
        const ENTRY: usize = 28;
        let image = self.clone();
        let table = image
            .directory(pe::IMAGE_DIRECTORY_ENTRY_DEBUG)
            .and_then(|range| image.slice(range));
        table
            .unwrap_or_default()
            .chunks_exact(ENTRY)
            .map(move |entry| {
                // The chunk has all 28 bytes.
                let u32_at = |offset| bytes::u32(entry, offset).unwrap_or_default();
                let u16_at = |offset| bytes::u16(entry, offset).unwrap_or_default();
                let size = u32_at(16) as usize;
                let data = match u32_at(20) {
                    0 => bytes::slice(image.data, u32_at(24) as usize, size),
                    rva => image.slice(RvaRange {
                        rva,
                        size: u32_at(16),
                    }),
                };
                DebugEntry {
                    kind: match u32_at(12) {
                        2 => DebugKind::CodeView,
                        16 => DebugKind::Reproducible,
                        17 => DebugKind::EmbeddedPortablePdb,
                        19 => DebugKind::PdbChecksum,
                        20 | 21 => DebugKind::PerfMap,
                        other => DebugKind::Other(other),
                    },
                    stamp: u32_at(4),
                    major: u16_at(8),
                    minor: u16_at(10),
                    data: data.unwrap_or_default(),
                }
            })
    }

    /// Every CodeView entry: a precompiled image may name a native and a portable PDB.
    pub fn codeviews(&self) -> impl Iterator<Item = CodeView<'d>> + use<'d> {
        self.debug_directory()
            .filter(|entry| entry.kind == DebugKind::CodeView)
            .filter_map(codeview)
    }

    /// The entry of the IL's portable PDB.
    pub fn portable_codeview(&self) -> Option<CodeView<'d>> {
        self.codeviews().find(|entry| entry.portable)
    }

    /// The entry of the native PDB, or of a classic managed one.
    pub fn native_codeview(&self) -> Option<CodeView<'d>> {
        self.codeviews().find(|entry| !entry.portable)
    }

    /// The checksum of the portable PDB.
    pub fn pdb_checksum(&self) -> Option<PdbChecksum<'d>> {
        let data = self
            .debug_directory()
            .find(|entry| entry.kind == DebugKind::PdbChecksum)?
            .data;
        let end = data.iter().position(|&b| b == 0)?;
        Some(PdbChecksum {
            algorithm: text_to_nul(data),
            value: data.get(end.checked_add(1)?..)?,
        })
    }

    /// The id of the image's perf map.
    pub fn perf_map_id(&self) -> Option<PerfMapId<'d>> {
        self.debug_directory()
            .filter(|entry| entry.kind == DebugKind::PerfMap)
            .find_map(|entry| {
                let data = entry.data.strip_prefix(b"R2RM")?;
                Some(PerfMapId {
                    signature: bytes::array(data, 0)?,
                    version: bytes::u32(data, 16)?,
                    path: text_to_nul(data.get(20..)?),
                })
            })
    }

    /// Unpacks the portable PDB inside the image; nothing if it has none.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if it is longer than `limit` bytes, [`Error::Damaged`] if it does not
    /// unpack to the size it states.
    pub fn embedded_portable_pdb(&self, limit: usize) -> Result<Option<Vec<u8>>> {
        const WHAT: &str = "embedded portable PDB";
        let entry = self
            .debug_directory()
            .find(|entry| entry.kind == DebugKind::EmbeddedPortablePdb);
        let Some(entry) = entry else { return Ok(None) };
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

/// Unpacks raw deflate data that states its unpacked size.
pub(crate) fn inflate(
    what: &'static str,
    packed: &[u8],
    size: usize,
    limit: usize,
) -> Result<Vec<u8>> {
    if size > limit {
        return Err(Error::TooLarge {
            what,
            size: size as u64,
            limit: limit as u64,
        });
    }
    // The stated size is not trusted for the allocation: the vector grows with what really comes.
    let mut out = Vec::new();
    let read = flate2::read::DeflateDecoder::new(packed)
        .take((size as u64).saturating_add(1))
        .read_to_end(&mut out);
    match read {
        Ok(found) if found == size => Ok(out),
        Ok(_) => Err(Error::damaged(what, 0, "its size is not the stated one")),
        Err(_) => Err(Error::damaged(what, 0, "not deflate data")),
    }
}
