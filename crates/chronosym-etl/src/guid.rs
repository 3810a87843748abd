use std::fmt;

/// A GUID as it lies in the file (first three fields little-endian).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Guid(pub [u8; 16]);

impl Guid {
    /// From the four groups of the usual notation: `Guid::new(0x68fdd900, 0x4a3e, 0x11d1, 0x84f4_0000f80464e3)`.
    pub const fn new(a: u32, b: u16, c: u16, d: u64) -> Self {
        let (a, b, c, d) = (
            a.to_le_bytes(),
            b.to_le_bytes(),
            c.to_le_bytes(),
            d.to_be_bytes(),
        );
        Self([
            a[0], a[1], a[2], a[3], b[0], b[1], c[0], c[1], d[0], d[1], d[2], d[3], d[4], d[5],
            d[6], d[7],
        ])
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a0, a1, a2, a3, b0, b1, c0, c1, d @ ..] = self.0;
        let (a, b, c) = (
            u32::from_le_bytes([a0, a1, a2, a3]),
            u16::from_le_bytes([b0, b1]),
            u16::from_le_bytes([c0, c1]),
        );
        write!(f, "{a:08x}-{b:04x}-{c:04x}-{:02x}{:02x}-", d[0], d[1])?;
        d[2..].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
