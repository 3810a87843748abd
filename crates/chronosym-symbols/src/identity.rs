//! Identities of symbol files: what traces and files record about builds.
//!
//! A symbol file is used only if it has the requested identity. A [`Wanted`] is the request, a
//! [`FileIdentity`] is read from a file, and only [`Wanted::accepts`] compares them.

use std::fmt;

use chronosym_types::Hex;
pub use chronosym_types::{BuildId, FileNumber, Guid, IdentityKind, PdbId, PortablePdbId};

/// The identity of a PE image: two fields of its headers.
///
/// Closed: the two fields are the identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct PeId {
    /// `TimeDateStamp` of the COFF header (a hash in deterministic builds).
    pub timestamp: u32,
    /// `SizeOfImage` of the optional header, in bytes.
    pub size_of_image: u32,
}

impl fmt::Display for PeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "timestamp {:08X} size {:x}",
            self.timestamp, self.size_of_image
        )
    }
}

/// The two formats that share the name PDB.
///
/// Closed: there are two formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PdbFormat {
    /// Unknown: module events do not record it.
    Any,
    /// Windows PDB (MSF).
    Windows,
    /// Portable PDB (ECMA-335 metadata).
    Portable,
}

/// The kind and identity of a requested file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Wanted {
    /// A PDB.
    Pdb {
        /// Signature and age; the age counts for Windows PDBs only.
        id: PdbId,
        /// The last four bytes of a portable PDB's id, where the image's debug directory entry
        /// gave its time stamp.
        stamp: Option<u32>,
        /// Which of the two formats.
        format: PdbFormat,
    },
    /// A PE image. At least one identity is needed; each that is given must match.
    Image {
        /// Time stamp and size; without it no store has a key for the image.
        pe: Option<PeId>,
        /// A PDB that the image's debug directory must name. EventPipe traces record no other
        /// identity of an image.
        pdb: Option<PdbId>,
    },
    /// An ELF or Mach-O file (by its UUID) with debug information or a symbol table: a separate
    /// debug file or an unstripped image.
    ElfDebug(BuildId),
    /// The ELF or Mach-O image itself.
    ElfImage(BuildId),
    /// An ELF image without a build ID in the trace. No content identifies the file, so no store
    /// can supply it.
    ElfMapped(Option<FileNumber>),
    /// A Breakpad symbol file, by the id of its `MODULE` record: for a PDB the PDB id; for an ELF
    /// image the first 16 bytes of its build ID, for a Mach-O image its UUID, both with age 0.
    Breakpad(PdbId),
    /// The perf map of a ReadyToRun image.
    R2rMap {
        /// The 16 bytes of the image's perf map debug directory entry, in file order. `None` if the
        /// trace lacks them: the caller must then check the map's rows against the code in the
        /// trace.
        signature: Option<[u8; 16]>,
        /// Its format version.
        version: u32,
    },
}

impl Wanted {
    /// Creates a PDB in either format.
    pub fn pdb(id: PdbId) -> Self {
        Self::Pdb {
            id,
            stamp: None,
            format: PdbFormat::Any,
        }
    }

    /// Returns the Breakpad symbol files that an image with a build ID or a UUID can have: 16 bytes
    /// are either.
    pub fn breakpad(id: &BuildId) -> Vec<Self> {
        let Some((start, rest)) = id.as_bytes().split_first_chunk() else {
            return Vec::new();
        };
        let build_id = Guid(*start);
        let uuid = Guid::from_u128(u128::from_be_bytes(*start));
        let guids = if rest.is_empty() {
            &[uuid, build_id][..]
        } else {
            &[build_id]
        };
        let wanted = |&guid| Self::Breakpad(PdbId { guid, age: 0 });
        guids.iter().map(wanted).collect()
    }

    /// Returns true if there is an identity to check a file against. Without one, no file is
    /// accepted.
    pub fn is_identified(&self) -> bool {
        match self {
            Self::Pdb { id, .. } | Self::Breakpad(id) => !id.guid.is_zero(),
            Self::Image { pe, pdb } => {
                let pe = pe.is_some_and(|pe| pe.size_of_image != 0);
                pe || pdb.is_some_and(|pdb| !pdb.guid.is_zero())
            }
            Self::ElfDebug(_) | Self::ElfImage(_) => true,
            Self::ElfMapped(_) => false,
            Self::R2rMap { signature, .. } => signature != &Some([0; 16]),
        }
    }

    /// Returns the kind of evidence that a file has this identity.
    pub fn kind(&self) -> IdentityKind {
        match self {
            Self::Pdb { .. } | Self::Image { pe: None, .. } | Self::Breakpad(_) => {
                IdentityKind::PdbId
            }
            Self::Image { .. } => IdentityKind::TimestampAndSize,
            Self::ElfDebug(_) | Self::ElfImage(_) => IdentityKind::BuildId,
            Self::ElfMapped(Some(_)) => IdentityKind::FileNumber,
            Self::ElfMapped(None) => IdentityKind::Path,
            Self::R2rMap { .. } => IdentityKind::PerfMapSignature,
        }
    }

    /// Returns whether a file with this identity is the wanted one.
    pub fn accepts(&self, actual: &FileIdentity) -> bool {
        if !self.is_identified() {
            return false;
        }
        match (self, actual) {
            (Self::Pdb { id, format, .. }, FileIdentity::WindowsPdb(actual)) => {
                *format != PdbFormat::Portable && id == actual
            }
            (Self::Pdb { id, stamp, format }, FileIdentity::PortablePdb(actual)) => {
                *format != PdbFormat::Windows
                    && id.guid == actual.guid
                    && stamp.is_none_or(|stamp| stamp == actual.stamp)
            }
            (Self::Image { pe, pdb }, FileIdentity::Image { pe: actual, pdbs }) => {
                pe.is_none_or(|pe| pe == *actual) && pdb.is_none_or(|pdb| pdbs.contains(&pdb))
            }
            (
                Self::ElfDebug(id),
                FileIdentity::Elf {
                    build_id,
                    has_debug,
                    ..
                },
            ) => *has_debug && build_id.as_ref() == Some(id),
            (
                Self::ElfImage(id),
                FileIdentity::Elf {
                    build_id, has_code, ..
                },
            ) => *has_code && build_id.as_ref() == Some(id),
            (Self::Breakpad(id), FileIdentity::Breakpad(actual)) => id == actual,
            (
                Self::R2rMap { signature, version },
                FileIdentity::R2rMap {
                    signature: actual,
                    version: actual_version,
                },
            ) => {
                signature.is_none_or(|signature| signature == *actual) && version == actual_version
            }
            _ => false,
        }
    }
}

impl Wanted {
    /// Returns true if a file may be the debug file of the wanted image, rather than one of another
    /// build.
    pub(crate) fn is_image_of(&self, actual: &FileIdentity) -> bool {
        match (self, actual) {
            (Self::ElfImage(id), FileIdentity::Elf { build_id, .. }) => {
                build_id.as_ref() == Some(id)
            }
            _ => false,
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pdb { id, stamp, format } => {
                f.write_str(match format {
                    PdbFormat::Any => "PDB ",
                    PdbFormat::Windows => "Windows PDB ",
                    PdbFormat::Portable => "portable PDB ",
                })?;
                write!(f, "{id}")?;
                match stamp {
                    Some(stamp) => write!(f, " stamp {stamp:08x}"),
                    None => Ok(()),
                }
            }
            Self::Image { pe, pdb } => {
                f.write_str("PE image")?;
                if let Some(pe) = pe {
                    write!(f, " {pe}")?;
                }
                match pdb {
                    Some(pdb) => write!(f, " of PDB {pdb}"),
                    None => Ok(()),
                }
            }
            Self::ElfDebug(id) => write!(f, "ELF debug file, build id {id}"),
            Self::ElfImage(id) => write!(f, "ELF image, build id {id}"),
            Self::ElfMapped(Some(number)) => write!(f, "ELF image without a build id, {number}"),
            Self::ElfMapped(None) => f.write_str("ELF image without a build id"),
            Self::Breakpad(id) => write!(f, "Breakpad symbol file {id}"),
            Self::R2rMap { signature, version } => {
                write!(f, "r2rmap version {version}")?;
                match signature {
                    Some(signature) => write!(f, " signature {}", Hex(signature)),
                    None => Ok(()),
                }
            }
        }
    }
}

/// The identity that a file records, compared by [`Wanted::accepts`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileIdentity {
    /// A Windows PDB: GUID of the PDB information stream, age of the DBI stream (which is used if
    /// they differ).
    WindowsPdb(PdbId),
    /// A portable PDB: the 20 bytes of its `#Pdb` stream's id.
    PortablePdb(PortablePdbId),
    /// A PE image.
    Image {
        /// Time stamp and size.
        pe: PeId,
        /// Every PDB that its debug directory names: a ReadyToRun image has two.
        pdbs: Vec<PdbId>,
    },
    /// An ELF or Mach-O file.
    Elf {
        /// Its build id note or UUID, if it has one.
        build_id: Option<BuildId>,
        /// Whether it holds DWARF sections or a `.symtab`, which a stripped image does not.
        has_debug: bool,
        /// Whether it holds the code, which a debug file does not.
        has_code: bool,
    },
    /// A Breakpad symbol file: the id of its `MODULE` record.
    Breakpad(PdbId),
    /// A perf map of a ReadyToRun image.
    R2rMap {
        /// The signature of its header row, in file order.
        signature: [u8; 16],
        /// The version of its header row.
        version: u32,
    },
}

impl fmt::Display for FileIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WindowsPdb(id) => write!(f, "Windows PDB {id}"),
            Self::PortablePdb(id) => write!(f, "portable PDB {id}"),
            Self::Image { pe, pdbs } => {
                write!(f, "PE image {pe}")?;
                for pdb in pdbs {
                    write!(f, " of PDB {pdb}")?;
                }
                Ok(())
            }
            Self::Elf {
                build_id,
                has_debug,
                has_code,
            } => {
                match build_id {
                    Some(id) => write!(f, "ELF file, build id {id}")?,
                    None => f.write_str("ELF file without a build id")?,
                }
                f.write_str(if *has_debug { "" } else { ", stripped" })?;
                f.write_str(if *has_code { "" } else { ", without code" })
            }
            Self::Breakpad(id) => write!(f, "Breakpad symbol file {id}"),
            Self::R2rMap { signature, version } => {
                write!(f, "r2rmap version {version} signature {}", Hex(signature))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUID: Guid = Guid([7; 16]);

    #[test]
    fn age_counts_for_windows_pdbs_only() {
        let wanted = Wanted::pdb(PdbId { guid: GUID, age: 3 });
        let windows = |age| FileIdentity::WindowsPdb(PdbId { guid: GUID, age });
        assert!(wanted.accepts(&windows(3)));
        assert!(!wanted.accepts(&windows(4)));
        let portable = FileIdentity::PortablePdb(PortablePdbId {
            guid: GUID,
            stamp: 7,
        });
        assert!(wanted.accepts(&portable));
        let stamped = |stamp| Wanted::Pdb {
            id: PdbId { guid: GUID, age: 1 },
            stamp: Some(stamp),
            format: PdbFormat::Portable,
        };
        assert!(stamped(7).accepts(&portable));
        assert!(!stamped(8).accepts(&portable));
        assert!(!stamped(7).accepts(&windows(1)));
    }

    #[test]
    fn image_identities_must_all_agree() {
        let pe = PeId {
            timestamp: 1,
            size_of_image: 0x2000,
        };
        let pdb = PdbId { guid: GUID, age: 1 };
        let none = PdbId {
            guid: Guid::default(),
            age: 0,
        };
        let actual = FileIdentity::Image {
            pe,
            pdbs: vec![none, pdb],
        };
        let image = |pe, pdb| Wanted::Image { pe, pdb };
        assert!(image(Some(pe), None).accepts(&actual));
        assert!(image(None, Some(pdb)).accepts(&actual));
        assert!(image(Some(pe), Some(pdb)).accepts(&actual));
        let other = PdbId { age: 2, ..pdb };
        assert!(!image(Some(pe), Some(other)).accepts(&actual));
        assert!(!image(None, None).accepts(&actual), "nothing to check");
        assert!(!image(None, Some(none)).accepts(&actual));
    }

    #[test]
    fn stripped_images_and_debug_files_are_distinguished() {
        let id = BuildId::new(&[1, 2, 3]).unwrap();
        let file = |has_debug, has_code| FileIdentity::Elf {
            build_id: Some(id.clone()),
            has_debug,
            has_code,
        };
        let (debug, image) = (Wanted::ElfDebug(id.clone()), Wanted::ElfImage(id.clone()));
        for (has_debug, has_code) in [(true, true), (true, false), (false, true)] {
            let file = file(has_debug, has_code);
            assert_eq!(debug.accepts(&file), has_debug);
            assert_eq!(image.accepts(&file), has_code);
        }
        let none = FileIdentity::Elf {
            build_id: None,
            has_debug: true,
            has_code: true,
        };
        assert!(!Wanted::ElfDebug(id).accepts(&none));
    }
}
