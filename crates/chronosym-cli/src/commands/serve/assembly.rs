//! Disassembly.

use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};

/// Disassembles x86 code at an address, up to the first instruction for whose address `ends` is
/// true: (offset in bytes, text). Invalid instructions are shown as such.
pub fn x86(
    bits: u32,
    code: &[u8],
    address: u64,
    mut ends: impl FnMut(u64) -> bool,
) -> Vec<(u64, String)> {
    let mut decoder = Decoder::with_ip(bits, code, address, DecoderOptions::NONE);
    let mut formatter = IntelFormatter::new();
    formatter
        .options_mut()
        .set_space_after_operand_separator(true);
    formatter.options_mut().set_hex_prefix("0x");
    formatter.options_mut().set_hex_suffix("");
    let mut instructions = Vec::new();
    while decoder.can_decode() && !ends(decoder.ip()) {
        let (ip, position) = (decoder.ip(), decoder.position());
        let instruction = decoder.decode();
        if instruction.is_invalid() && decoder.set_position(position + 1).is_ok() {
            decoder.set_ip(ip.wrapping_add(1));
        }
        let mut text = String::new();
        formatter.format(&instruction, &mut text);
        instructions.push((ip.wrapping_sub(address), text));
    }
    instructions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_distinguished() {
        // push rbp; mov rbp, rsp; call +0; an invalid one; ret
        let code = [0x55, 0x48, 0x89, 0xe5, 0xe8, 0, 0, 0, 0, 0x06, 0xc3, 0xcc];
        let shown = x86(64, &code, 0x1000, |at| at >= 0x100b);
        let expected = [
            (0, "push rbp"),
            (1, "mov rbp, rsp"),
            (4, "call 0x0000000000001009"),
            (9, "(bad)"),
            (10, "ret"),
        ];
        let shown: Vec<_> = shown
            .iter()
            .map(|(at, text)| (*at, text.as_str()))
            .collect();
        assert_eq!(shown, expected);
        assert_eq!(
            x86(32, &code[..1], 0, |_| false),
            [(0, "push ebp".to_owned())]
        );
        assert!(x86(64, &[], 0, |_| false).is_empty());
    }
}
