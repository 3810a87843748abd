//! The identities that tie a module or an image to its symbol files.

use std::fmt;

use crate::{Guid, Hex};

/// What a module's CodeView entry and a Windows PDB have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PdbId {
    /// The signature.
    pub guid: Guid,
    /// How often the PDB was written since.
    pub age: u32,
}

/// `guid age`, both in the form that the rest of the world prints.
impl fmt::Display for PdbId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} age {}", self.guid, self.age)
    }
}

/// The identity of a portable PDB: the first 20 bytes of its `#Pdb` stream. The GUID stands in the
/// module's CodeView entry, the stamp in that entry's time stamp field; the age there means nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PortablePdbId {
    /// The GUID part.
    pub guid: Guid,
    /// The stamp part.
    pub stamp: u32,
}

impl fmt::Display for PortablePdbId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} stamp {:08x}", self.guid, self.stamp)
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

    /// The bytes of the note.
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

#[cfg(test)]
mod tests {
    use super::*;

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
