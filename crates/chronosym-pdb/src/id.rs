//! The identities that tie a module to its symbol files.

use std::fmt;

/// A GUID as its 16 bytes in file order (the first three fields little-endian).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Guid(pub [u8; 16]);

impl Guid {
    /// The GUID `a-b-c-d` as it is usually written.
    pub const fn new(a: u32, b: u16, c: u16, d: [u8; 8]) -> Self {
        let (a, b, c) = (a.to_le_bytes(), b.to_le_bytes(), c.to_le_bytes());
        Self([
            a[0], a[1], a[2], a[3], b[0], b[1], c[0], c[1], d[0], d[1], d[2], d[3], d[4], d[5],
            d[6], d[7],
        ])
    }

    fn fields(&self) -> (u32, u16, u16, [u8; 8]) {
        let b = &self.0;
        (
            u32::from_le_bytes([b[0], b[1], b[2], b[3]]),
            u16::from_le_bytes([b[4], b[5]]),
            u16::from_le_bytes([b[6], b[7]]),
            [b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]],
        )
    }
}

/// The usual form, lower case: `3249d99d-0c40-4931-8610-f4e4fb0b6936`.
/// The alternate form (`{:#}`) is that of symbol store keys: 32 upper-case digits.
impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (a, b, c, d) = self.fields();
        if f.alternate() {
            write!(f, "{a:08X}{b:04X}{c:04X}")?;
            d.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
        } else {
            write!(f, "{a:08x}-{b:04x}-{c:04x}-{:02x}{:02x}-", d[0], d[1])?;
            d[2..].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guid_fields_are_little_endian() {
        let guid = Guid([
            0x9d, 0xd9, 0x49, 0x32, 0x40, 0x0c, 0x31, 0x49, 0x86, 0x10, 0xf4, 0xe4, 0xfb, 0x0b,
            0x69, 0x36,
        ]);
        assert_eq!(guid.to_string(), "3249d99d-0c40-4931-8610-f4e4fb0b6936");
        assert_eq!(format!("{guid:#}"), "3249D99D0C4049318610F4E4FB0B6936");
    }
}
