//! Which build a file is of: the identities that traces and files carry.
//!
//! A symbol file is used only if its own identity is the one asked for. What is asked for is a [`Wanted`], what a file
//! says of itself is a [`FileId`], and [`Wanted::accepts`] is the only place where the two are compared.

use std::fmt;

/// A GUID, kept as the 16 bytes that files and events hold: three little-endian integers, then eight bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Guid([u8; 16]);

impl Guid {
    /// From the 16 bytes in file order.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// From the four fields of a GUID structure.
    pub fn from_fields(data1: u32, data2: u16, data3: u16, data4: [u8; 8]) -> Self {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&data1.to_le_bytes());
        bytes[4..6].copy_from_slice(&data2.to_le_bytes());
        bytes[6..8].copy_from_slice(&data3.to_le_bytes());
        bytes[8..].copy_from_slice(&data4);
        Self(bytes)
    }

    /// From text: 32 hex digits, with or without dashes and braces, in any case.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text
            .strip_prefix('{')
            .and_then(|t| t.strip_suffix('}'))
            .unwrap_or(text);
        let mut digits = [0u8; 32];
        let mut count = 0;
        for c in text.chars().filter(|&c| c != '-') {
            *digits.get_mut(count)? = u8::try_from(c.to_digit(16)?).ok()?;
            count += 1;
        }
        if count != 32 {
            return None;
        }
        let mut bytes = [0; 16];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = pair[0] << 4 | pair[1];
        }
        bytes[..4].reverse();
        bytes[4..6].reverse();
        bytes[6..8].reverse();
        Some(Self(bytes))
    }

    /// The 16 bytes in file order.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    /// True for the all-zero GUID, which traces write where there is none.
    pub fn is_zero(self) -> bool {
        self.0 == [0; 16]
    }

    /// The bytes in the order in which a GUID is written as text.
    fn text_order(self) -> [u8; 16] {
        let mut bytes = self.0;
        bytes[..4].reverse();
        bytes[4..6].reverse();
        bytes[6..8].reverse();
        bytes
    }

    /// 32 lower-case hex digits without dashes.
    pub(crate) fn simple(self) -> String {
        hex(&self.text_order())
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.simple();
        write!(
            f,
            "{}-{}-{}-{}-{}",
            &text[..8],
            &text[8..12],
            &text[12..16],
            &text[16..20],
            &text[20..]
        )
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Guid({self})")
    }
}

/// Lower-case hex digits of some bytes.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The identity of a PDB as an image's `RSDS` record and a module event state it.
///
/// Displayed as GUID and age in hex, joined by a dash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct PdbId {
    /// The signature.
    pub guid: Guid,
    /// How often the PDB was written under this signature. Says nothing for portable PDBs, whose records always have 1.
    pub age: u32,
}

impl fmt::Display for PdbId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:x}", self.guid, self.age)
    }
}

/// The identity of a PE image: two fields of its headers.
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

/// The GNU build id of an ELF file: the bytes of its `NT_GNU_BUILD_ID` note, 20 for the usual SHA-1.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BuildId(Box<[u8]>);

impl BuildId {
    /// The longest build id taken for one, in bytes.
    pub const MAX_LEN: usize = 64;

    /// From the note's bytes; `None` where they are fewer than 2, more than [`BuildId::MAX_LEN`], or all zero.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let usable = (2..=Self::MAX_LEN).contains(&bytes.len()) && bytes.iter().any(|&b| b != 0);
        usable.then(|| Self(bytes.into()))
    }

    /// From hex digits in any case.
    pub fn parse(text: &str) -> Option<Self> {
        if !text.is_ascii() || !text.len().is_multiple_of(2) || text.len() > 2 * Self::MAX_LEN {
            return None;
        }
        let bytes: Option<Vec<u8>> = text
            .as_bytes()
            .chunks_exact(2)
            .map(|pair| {
                let high = char::from(pair[0]).to_digit(16)?;
                let low = char::from(pair[1]).to_digit(16)?;
                u8::try_from(high << 4 | low).ok()
            })
            .collect();
        Self::new(&bytes?)
    }

    /// The bytes of the note.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Lower-case hex, padded with zero bytes to the 20 that symbol server keys have.
    pub(crate) fn padded(&self) -> String {
        let mut text = hex(&self.0);
        while text.len() < 40 {
            text.push('0');
        }
        text
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildId({self})")
    }
}

/// The two formats that share the name PDB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PdbFormat {
    /// Not known: a module event does not say.
    Any,
    /// Windows PDB (MSF).
    Windows,
    /// Portable PDB (ECMA-335 metadata).
    Portable,
}

/// The file that is asked for: its kind, and the identity that it must have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Wanted {
    /// A PDB.
    Pdb {
        /// Signature and age; the age counts for Windows PDBs only.
        id: PdbId,
        /// The last four bytes of a portable PDB's id, where the image's debug directory entry gave its time stamp.
        stamp: Option<u32>,
        /// Which of the two formats.
        format: PdbFormat,
    },
    /// A PE image. At least one identity is needed; each that is given must agree.
    Image {
        /// Time stamp and size; without it no store has a key for the image.
        pe: Option<PeId>,
        /// A PDB that the image's debug directory must name: all that EventPipe traces tell of an image.
        pdb: Option<PdbId>,
    },
    /// An ELF file with debug information or a symbol table: a separate debug file or an unstripped image.
    ElfDebug(BuildId),
    /// The ELF image itself.
    ElfImage(BuildId),
    /// The perf map of a ReadyToRun image.
    R2rMap {
        /// The 16 bytes of the image's perf map debug directory entry, in file order.
        signature: [u8; 16],
        /// Its format version.
        version: u32,
    },
}

impl Wanted {
    /// A PDB in either format.
    pub fn pdb(id: PdbId) -> Self {
        Self::Pdb {
            id,
            stamp: None,
            format: PdbFormat::Any,
        }
    }

    /// True where there is an identity to check a file against. Without one nothing is ever accepted.
    pub fn is_identified(&self) -> bool {
        match self {
            Self::Pdb { id, .. } => !id.guid.is_zero(),
            Self::Image { pe, pdb } => {
                let pe = pe.is_some_and(|pe| pe.size_of_image != 0);
                pe || pdb.is_some_and(|pdb| !pdb.guid.is_zero())
            }
            Self::ElfDebug(_) | Self::ElfImage(_) => true,
            Self::R2rMap { signature, .. } => signature != &[0; 16],
        }
    }

    /// Whether a file that says `found` of itself is the one wanted.
    pub fn accepts(&self, found: &FileId) -> bool {
        if !self.is_identified() {
            return false;
        }
        match (self, found) {
            (Self::Pdb { id, format, .. }, FileId::WindowsPdb(found)) => {
                *format != PdbFormat::Portable && id == found
            }
            (Self::Pdb { id, stamp, format }, FileId::PortablePdb { guid, stamp: found }) => {
                *format != PdbFormat::Windows
                    && id.guid == *guid
                    && stamp.is_none_or(|stamp| stamp == *found)
            }
            (Self::Image { pe, pdb }, FileId::Image { pe: found, pdbs }) => {
                pe.is_none_or(|pe| pe == *found) && pdb.is_none_or(|pdb| pdbs.contains(&pdb))
            }
            (
                Self::ElfDebug(id),
                FileId::Elf {
                    build_id,
                    has_debug,
                },
            ) => *has_debug && build_id.as_ref() == Some(id),
            (Self::ElfImage(id), FileId::Elf { build_id, .. }) => build_id.as_ref() == Some(id),
            (
                Self::R2rMap { signature, version },
                FileId::R2rMap {
                    signature: found,
                    version: found_version,
                },
            ) => signature == found && version == found_version,
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
            Self::R2rMap { signature, version } => {
                write!(f, "r2rmap version {version} signature {}", hex(signature))
            }
        }
    }
}

/// What a file says of itself: read by whoever knows the format, compared by [`Wanted::accepts`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileId {
    /// A Windows PDB: GUID of the PDB information stream, age of the DBI stream (which counts where they differ).
    WindowsPdb(PdbId),
    /// A portable PDB: the 20 bytes of its `#Pdb` stream's id.
    PortablePdb {
        /// The first 16 bytes.
        guid: Guid,
        /// The last four.
        stamp: u32,
    },
    /// A PE image.
    Image {
        /// Time stamp and size.
        pe: PeId,
        /// Every PDB that its debug directory names: a ReadyToRun image has two.
        pdbs: Vec<PdbId>,
    },
    /// An ELF file.
    Elf {
        /// Its build id note, if it has one.
        build_id: Option<BuildId>,
        /// Whether it holds DWARF sections or a `.symtab`, which a stripped image does not.
        has_debug: bool,
    },
    /// A perf map of a ReadyToRun image.
    R2rMap {
        /// The signature of its header row, in file order.
        signature: [u8; 16],
        /// The version of its header row.
        version: u32,
    },
}

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WindowsPdb(id) => write!(f, "Windows PDB {id}"),
            Self::PortablePdb { guid, stamp } => {
                write!(f, "portable PDB {guid} stamp {stamp:08x}")
            }
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
            } => {
                match build_id {
                    Some(id) => write!(f, "ELF file, build id {id}")?,
                    None => f.write_str("ELF file without a build id")?,
                }
                f.write_str(if *has_debug { "" } else { ", stripped" })
            }
            Self::R2rMap { signature, version } => {
                write!(f, "r2rmap version {version} signature {}", hex(signature))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guid() -> Guid {
        let rest = [0x87, 0x8e, 0x5a, 0x2d, 0x63, 0xb6, 0xcc, 0x4b];
        Guid::from_fields(0x497b_72f6, 0x390a, 0x44fc, rest)
    }

    #[test]
    fn guid_text_and_bytes() {
        let text = "497b72f6-390a-44fc-878e-5a2d63b6cc4b";
        assert_eq!(guid().to_string(), text);
        assert_eq!(Guid::parse(text), Some(guid()));
        assert_eq!(
            Guid::parse("{497B72F6390A44FC878E5A2D63B6CC4B}"),
            Some(guid())
        );
        assert_eq!(guid().to_bytes()[..4], [0xf6, 0x72, 0x7b, 0x49]);
        assert_eq!(Guid::from_bytes(guid().to_bytes()), guid());
        for bad in [
            "",
            "497b72f6",
            &text[1..],
            "g97b72f6-390a-44fc-878e-5a2d63b6cc4b",
        ] {
            assert_eq!(Guid::parse(bad), None, "{bad}");
        }
        assert_eq!(Guid::parse(&"0".repeat(33)), None);
    }

    #[test]
    fn build_id_text_and_padding() {
        let id = BuildId::parse("180A373D6afbabf0eb1f09be1bc45bd7").unwrap();
        assert_eq!(id.to_string(), "180a373d6afbabf0eb1f09be1bc45bd7");
        assert_eq!(id.padded(), "180a373d6afbabf0eb1f09be1bc45bd700000000");
        for bad in ["", "1", "18", "zz00", "0000", "é"] {
            assert_eq!(BuildId::parse(bad), None, "{bad}");
        }
        assert_eq!(BuildId::new(&[1; 65]), None);
    }

    #[test]
    fn age_counts_for_windows_pdbs_only() {
        let wanted = Wanted::pdb(PdbId {
            guid: guid(),
            age: 3,
        });
        let windows = |age| FileId::WindowsPdb(PdbId { guid: guid(), age });
        assert!(wanted.accepts(&windows(3)));
        assert!(!wanted.accepts(&windows(4)));
        let portable = FileId::PortablePdb {
            guid: guid(),
            stamp: 7,
        };
        assert!(wanted.accepts(&portable));
        let stamped = |stamp| Wanted::Pdb {
            id: PdbId {
                guid: guid(),
                age: 1,
            },
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
        let pdb = PdbId {
            guid: guid(),
            age: 1,
        };
        let found = FileId::Image {
            pe,
            pdbs: vec![PdbId::default(), pdb],
        };
        let image = |pe, pdb| Wanted::Image { pe, pdb };
        assert!(image(Some(pe), None).accepts(&found));
        assert!(image(None, Some(pdb)).accepts(&found));
        assert!(image(Some(pe), Some(pdb)).accepts(&found));
        let other = PdbId { age: 2, ..pdb };
        assert!(!image(Some(pe), Some(other)).accepts(&found));
        assert!(!image(None, None).accepts(&found), "nothing to check");
        assert!(!image(None, Some(PdbId::default())).accepts(&found));
    }

    #[test]
    fn stripped_elf_is_no_debug_file() {
        let id = BuildId::new(&[1, 2, 3]).unwrap();
        let file = |has_debug| FileId::Elf {
            build_id: Some(id.clone()),
            has_debug,
        };
        assert!(Wanted::ElfDebug(id.clone()).accepts(&file(true)));
        assert!(!Wanted::ElfDebug(id.clone()).accepts(&file(false)));
        assert!(Wanted::ElfImage(id.clone()).accepts(&file(false)));
        let none = FileId::Elf {
            build_id: None,
            has_debug: true,
        };
        assert!(!Wanted::ElfDebug(id).accepts(&none));
    }
}
