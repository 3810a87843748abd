use std::fmt;

/// Displays bytes as lower-case hex digits.
///
/// # Examples
///
/// ```
/// assert_eq!(chronosym_types::Hex(&[0x5f, 0x0d]).to_string(), "5f0d");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hex<'a>(pub &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}
