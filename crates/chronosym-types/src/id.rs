//! Identities that match a module or an image with its symbol files.

use std::fmt;

use crate::{Guid, Hex, closed_list};

/// The identity of a Windows PDB, which the CodeView entry of its image repeats.
///
/// Closed: the two fields are the identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PdbId {
    /// Signature.
    pub guid: Guid,
    /// Number of times the PDB was written since it was created.
    pub age: u32,
}

/// Writes `GUID age AGE`. The alternate form (`{:#}`) is the key of symbol stores: 32 upper-case
/// hex digits, then the age in hex.
impl fmt::Display for PdbId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match f.alternate() {
            true => write!(f, "{:#}{:x}", self.guid, self.age),
            false => write!(f, "{} age {}", self.guid, self.age),
        }
    }
}

/// The identity of a portable PDB: the first 20 bytes of its `#Pdb` stream. The CodeView entry of
/// the module repeats the GUID, and its time stamp field the stamp; its age has no meaning.
///
/// Closed: the two fields are the identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PortablePdbId {
    /// GUID part.
    pub guid: Guid,
    /// Stamp part.
    pub stamp: u32,
}

impl fmt::Display for PortablePdbId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} stamp {:08x}", self.guid, self.stamp)
    }
}

/// The GNU build id of an ELF file: the bytes of its `NT_GNU_BUILD_ID` note, 20 for the usual
/// SHA-1.
///
/// # Examples
///
/// ```
/// use chronosym_types::BuildId;
///
/// let id = BuildId::parse("5F0D1a2b").unwrap();
/// assert_eq!(id.as_bytes(), [0x5f, 0x0d, 0x1a, 0x2b]);
/// assert_eq!(id.to_string(), "5f0d1a2b");
/// assert_eq!(BuildId::new(&[0; 20]), None); // what a linker leaves that writes no id
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BuildId(Box<[u8]>);

impl BuildId {
    /// Length limit of a build id in bytes.
    pub const MAX_LEN: usize = 64;

    /// Returns the build id of a note's bytes; `None` for less than 2, more than
    /// [`BuildId::MAX_LEN`], or only zeros.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let usable = (2..=Self::MAX_LEN).contains(&bytes.len()) && bytes.iter().any(|&b| b != 0);
        usable.then(|| Self(bytes.into()))
    }

    /// Parses hex digits of either case.
    pub fn parse(text: &str) -> Option<Self> {
        let (pairs, odd) = text.as_bytes().as_chunks::<2>();
        if !odd.is_empty() || pairs.len() > Self::MAX_LEN {
            return None;
        }
        let bytes: Option<Vec<u8>> = pairs
            .iter()
            .map(|&[high, low]| {
                let high = char::from(high).to_digit(16)?;
                let low = char::from(low).to_digit(16)?;
                u8::try_from(high << 4 | low).ok()
            })
            .collect();
        Self::new(&bytes?)
    }

    /// Returns the bytes of the note.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hex(&self.0).fmt(f)
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildId({self})")
    }
}

/// The number of a file in the kernel that mapped it: device, inode and generation of the inode.
///
/// Closed: callers build it as a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileNumber {
    /// Major and minor device number.
    pub device: (u32, u32),
    /// Its inode.
    pub inode: u64,
    /// Changes when the inode is reused; 0 if unknown.
    pub generation: u64,
}

impl FileNumber {
    /// Returns whether both are of one file, if they are of one machine.
    pub fn is_same_file(&self, other: &Self) -> bool {
        let generations = [self.generation, other.generation];
        (self.device, self.inode) == (other.device, other.inode)
            && (generations.contains(&0) || self.generation == other.generation)
    }
}

impl fmt::Display for FileNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.device;
        write!(f, "device {major}:{minor} inode {}", self.inode)
    }
}

/// A file that a recorder found mapped, with its identity in addition to its path.
///
/// Closed: callers build it as a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MappedFile {
    /// Its number on the recorded machine.
    pub number: FileNumber,
    /// If the recording was made on this machine since it was booted: when it ended, in ns since
    /// 1970-01-01 UTC. The number then identifies a file here that was not changed later.
    pub here_until_ns: Option<u64>,
}

closed_list! {
    /// The evidence that a file is the wanted one, from the strongest to the weakest.
    IdentityKind {
        /// The GNU build id of an ELF file.
        BuildId = "build_id",
        /// GUID and age, or GUID and stamp, of a PDB.
        PdbId = "pdb_id",
        /// The signature of a precompiled image's perf map.
        PerfMapSignature = "perf_map_signature",
        /// Time stamp and size of a PE image.
        TimestampAndSize = "timestamp_and_size",
        /// Device, inode and generation: a file of the machine that recorded it.
        FileNumber = "file_number",
        /// The file's path or name alone: nothing shows that it is the same build.
        Path = "path",
    }
}

impl IdentityKind {
    /// Returns whether the content of a file proves it: other kinds are of a file's location.
    pub fn is_of_content(self) -> bool {
        self < IdentityKind::FileNumber
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pdb_ids_as_text_and_as_keys() {
        let guid = Guid::from_u128(0xe13c0d23_ccbc_4e12_931b_d9cc2eee27e4);
        let id = PdbId { guid, age: 27 };
        assert_eq!(
            id.to_string(),
            "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4 age 27"
        );
        assert_eq!(format!("{id:#}"), "E13C0D23CCBC4E12931BD9CC2EEE27E41b");
    }

    #[test]
    fn build_ids_are_hex_of_a_sensible_length() {
        let id = BuildId::parse("A751ff").unwrap();
        assert_eq!(
            (id.as_bytes(), id.to_string().as_str()),
            ([0xa7, 0x51, 0xff].as_slice(), "a751ff")
        );
        let long = "ab".repeat(BuildId::MAX_LEN + 1);
        for bad in ["", "ab", "abc", "0000", "a75g", "a7é", &long] {
            assert_eq!(BuildId::parse(bad), None, "{bad}");
        }
    }
}
