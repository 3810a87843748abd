//! Differences as unsigned numbers: small ones of either sign stay small.

/// Returns the code of a difference, which is given in two's complement.
///
/// # Examples
///
/// ```
/// use chronosym_types::{unzigzag, zigzag};
///
/// let differences = [0, -1, 1, -2, 63, -64];
/// let codes = differences.map(|it: i64| zigzag(it.cast_unsigned()));
/// assert_eq!(codes, [0, 1, 2, 3, 126, 127]);
/// assert_eq!(codes.map(|code| unzigzag(code).cast_signed()), differences);
/// ```
#[inline]
pub fn zigzag(difference: u64) -> u64 {
    (difference << 1) ^ (difference.cast_signed() >> 63).cast_unsigned()
}

/// Returns the difference of a code.
#[inline]
pub fn unzigzag(code: u64) -> u64 {
    (code >> 1) ^ (code & 1).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_differences_of_either_sign_have_small_codes() {
        let code = |difference: i64| zigzag(difference.cast_unsigned());
        assert_eq!([0, -1, 1, -2, 63, -64].map(code), [0, 1, 2, 3, 126, 127]);
        assert_eq!(code(i64::MIN), u64::MAX);
        for difference in [0, 1, -1, 64, -65, i64::MAX, i64::MIN].map(i64::cast_unsigned) {
            assert_eq!(unzigzag(zigzag(difference)), difference);
        }
    }
}
