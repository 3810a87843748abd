use std::fmt;
use std::str::FromStr;

/// A GUID in wire order: the first three groups little-endian, as ETW, EventPipe and PDB records
/// store them.
///
/// # Examples
///
/// ```
/// use chronosym_types::Guid;
///
/// let runtime: Guid = "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4".parse()?;
/// assert_eq!(runtime.0[..4], [0x23, 0x0d, 0x3c, 0xe1]); // in wire order
/// assert_eq!(runtime, Guid::from_u128(0xe13c0d23_ccbc_4e12_931b_d9cc2eee27e4));
/// assert_eq!(runtime.to_string(), "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4");
/// # Ok::<(), chronosym_types::ParseGuidError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Guid(pub [u8; 16]);

impl Guid {
    /// The all-zero GUID, which payloads use for "none".
    pub const ZERO: Self = Self([0; 16]);

    /// Returns the GUID whose text form without dashes is the 32 hex digits of this number.
    pub const fn from_u128(text_order: u128) -> Self {
        let b = text_order.to_be_bytes();
        Self([
            b[3], b[2], b[1], b[0], b[5], b[4], b[7], b[6], b[8], b[9], b[10], b[11], b[12], b[13],
            b[14], b[15],
        ])
    }

    /// Returns the number whose 32 hex digits are the text form without dashes.
    pub const fn to_u128(self) -> u128 {
        u128::from_be_bytes(Self::from_u128(u128::from_be_bytes(self.0)).0)
    }

    /// Returns whether every byte is zero.
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }
}

/// The usual form, lower case: `3249d99d-0c40-4931-8610-f4e4fb0b6936`.
/// The alternate form (`{:#}`) is that of symbol store keys: 32 upper-case digits without dashes.
impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.to_u128();
        if f.alternate() {
            return write!(f, "{n:032X}");
        }
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            n >> 96,
            n >> 80 & 0xffff,
            n >> 64 & 0xffff,
            n >> 48 & 0xffff,
            n & 0xffff_ffff_ffff
        )
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The error for text that is not a GUID: 32 hex digits in groups of 8-4-4-4-12, optionally with
/// braces or without dashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a GUID: 32 hex digits are expected, in groups of 8-4-4-4-12")]
pub struct ParseGuidError;

impl FromStr for Guid {
    type Err = ParseGuidError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let inner = text
            .strip_prefix('{')
            .and_then(|t| t.strip_suffix('}'))
            .unwrap_or(text);
        let bytes = inner.as_bytes();
        let dashed = bytes.len() == 36;
        if !dashed && bytes.len() != 32 {
            return Err(ParseGuidError);
        }
        let mut n = 0u128;
        for (i, &b) in bytes.iter().enumerate() {
            if dashed && matches!(i, 8 | 13 | 18 | 23) {
                if b != b'-' {
                    return Err(ParseGuidError);
                }
                continue;
            }
            let digit = (b as char).to_digit(16).ok_or(ParseGuidError)?;
            n = n << 4 | u128::from(digit);
        }
        Ok(Self::from_u128(n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4";

    #[test]
    fn text_and_wire_order() {
        let guid: Guid = TEXT.parse().unwrap();
        assert_eq!(
            &guid.0[..8],
            &[0x23, 0x0d, 0x3c, 0xe1, 0xbc, 0xcc, 0x12, 0x4e]
        );
        assert_eq!(guid.to_string(), TEXT);
        assert_eq!(format!("{guid:#}"), "E13C0D23CCBC4E12931BD9CC2EEE27E4");
        assert_eq!(
            guid,
            Guid::from_u128(0xe13c0d23_ccbc_4e12_931b_d9cc2eee27e4)
        );
        assert_eq!(format!("{{{}}}", TEXT.to_uppercase()).parse(), Ok(guid));
        assert_eq!(TEXT.replace('-', "").parse(), Ok(guid));
    }

    #[test]
    fn bad_text_is_refused() {
        for bad in [
            "",
            "e13c0d23",
            &TEXT.replace("4e12", "4g12"),
            &TEXT.replacen('-', "0", 1),
        ] {
            assert_eq!(bad.parse::<Guid>(), Err(ParseGuidError), "{bad}");
        }
    }
}
