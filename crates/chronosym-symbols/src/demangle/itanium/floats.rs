//! Floating-point literals as hexadecimal numbers, like `%a` of C's `printf`.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "exponents of 15 bits, and the low bits of a checked number of digits"
)]

use std::fmt::{Result, Write};

/// Returns whether the digits have the length of the type: `f` is `float`, `d` is `double`, `e` is
/// the x87 `long double`.
pub(super) fn is_valid(code: u8, digits: &str) -> bool {
    digits.len()
        == if code == b'f' {
            8
        } else if code == b'd' {
            16
        } else {
            20
        }
}

/// Writes the number whose bytes are `digits`, the most significant first.
pub(super) fn write(out: &mut impl Write, code: u8, digits: &str) -> Result {
    let bits = u128::from_str_radix(digits, 16).unwrap_or(0);
    match code {
        b'f' => {
            let value = f64::from(f32::from_bits(bits as u32));
            double(out, value.to_bits())?;
            out.write_str("f")
        }
        b'd' => double(out, bits as u64),
        _ => {
            long_double(out, bits)?;
            out.write_str("L")
        }
    }
}

fn double(out: &mut impl Write, bits: u64) -> Result {
    const FRACTION: u64 = (1 << 52) - 1;
    let exponent = (bits >> 52 & 0x7ff) as i32;
    let fraction = bits & FRACTION;
    sign(out, bits >> 63 != 0)?;
    match (exponent, fraction) {
        (0x7ff, 0) => out.write_str("inf"),
        (0x7ff, _) => out.write_str("nan"),
        (0, 0) => out.write_str("0x0p+0"),
        (0, _) => number(out, 0, fraction << 12, -1022),
        _ => number(out, 1, fraction << 12, exponent - 1023),
    }
}

/// The integer bit is explicit; the first digit has four bits.
fn long_double(out: &mut impl Write, bits: u128) -> Result {
    let exponent = (bits >> 64 & 0x7fff) as i32;
    let mantissa = bits as u64;
    sign(out, bits >> 79 & 1 != 0)?;
    match (exponent, mantissa << 1) {
        (0x7fff, 0) => out.write_str("inf"),
        (0x7fff, _) => out.write_str("nan"),
        _ if mantissa == 0 => out.write_str("0x0p+0"),
        _ => number(
            out,
            mantissa >> 60,
            mantissa << 4,
            exponent.max(1) - 16383 - 3,
        ),
    }
}

fn sign(out: &mut impl Write, is_negative: bool) -> Result {
    out.write_str(if is_negative { "-" } else { "" })
}

/// Writes a digit, the fraction (from its highest bit on) without trailing zeros, and the exponent.
fn number(out: &mut impl Write, digit: u64, fraction: u64, exponent: i32) -> Result {
    write!(out, "0x{digit:x}")?;
    if fraction != 0 {
        let digits = format!("{fraction:016x}");
        write!(out, ".{}", digits.trim_end_matches('0'))?;
    }
    write!(out, "p{exponent:+}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_by_printf() {
        for (code, digits, expected) in [
            (b'f', "40a00000", "0x1.4p+2f"),
            (b'f', "00000001", "0x1p-149f"),
            (b'f', "ff800000", "-inff"),
            (b'd', "0000000000000000", "0x0p+0"),
            (b'd', "8000000000000001", "-0x0.0000000000001p-1022"),
            (b'd', "3ff0000000000000", "0x1p+0"),
            (b'e', "4000c8f5c28f5c28f800", "0xc.8f5c28f5c28f8p-2L"),
            (b'e', "00000000000000000000", "0x0p+0L"),
        ] {
            assert!(is_valid(code, digits));
            let mut text = String::new();
            write(&mut text, code, digits).unwrap();
            assert_eq!(text, expected);
        }
        assert!(!is_valid(b'f', "40a0"));
    }
}
