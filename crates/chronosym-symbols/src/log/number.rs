//! Parses numbers as people and tools write them.

/// Parses `0x…` or decimal; bare text with hexadecimal letters or leading zeros is hexadecimal.
pub fn parse_address(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => hex(digits),
        None => text
            .parse()
            .ok()
            .filter(|_| text == "0" || !text.starts_with('0'))
            .or_else(|| hex(text)),
    }
}

/// Parses hexadecimal digits; Windows tools write `` ` `` between the halves of an address,
/// Android's `'`.
pub fn hex(digits: &str) -> Option<u64> {
    let plain = || digits.replace(['`', '\''], "");
    let value = u64::from_str_radix(digits, 16);
    value.or_else(|_| u64::from_str_radix(&plain(), 16)).ok()
}

/// Returns true for text that starts with `0x`.
pub fn is_prefixed(number: &str) -> bool {
    number.starts_with("0x") || number.starts_with("0X")
}

/// Parses the token of a method: `0x06……`.
pub fn method_token(text: &str) -> Option<u32> {
    const METHOD_DEF: u64 = 6;
    let token = parse_address(text).filter(|_| is_prefixed(text))?;
    u32::try_from(token)
        .ok()
        .filter(|_| token >> 24 == METHOD_DEF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_hex_or_decimal() {
        assert_eq!(parse_address("0x10"), Some(16));
        assert_eq!(parse_address("10"), Some(10));
        assert_eq!(parse_address("7fcc"), Some(0x7fcc));
        assert_eq!(parse_address("0000000000401000"), Some(0x40_1000));
        assert_eq!(parse_address("0"), Some(0));
        assert_eq!(
            parse_address("0xfffff801`12345678"),
            Some(0xffff_f801_1234_5678)
        );
        assert_eq!(hex("0000005d'00001000"), Some(0x5d_0000_1000));
        assert_eq!(parse_address("x"), None);
    }
}
