//! Decompression of XPRESS plain LZ77 (MS-XCA 2.3, 2.4): what `COMPRESSION_FORMAT_XPRESS` writes, one stream a buffer.

/// Decompresses `input` into `output` until that is full or the input ends, and returns how many bytes are valid.
///
/// Damaged input ends the stream early; a stream cut off gives what it holds.
pub(crate) fn decompress(input: &[u8], output: &mut [u8]) -> usize {
    let mut at = 0;
    let mut out = 0;
    // The byte whose high nibble holds the next extended length.
    let mut half: Option<u8> = None;
    while let Some(mut flags) = crate::bytes::u32_at(input, at) {
        at += 4;
        let mut left = 32;
        while left > 0 {
            // A run of clear bits is a run of literals.
            let literals = (flags.leading_zeros() as usize).min(left);
            if literals > 0 {
                let n = literals.min(output.len() - out).min(input.len() - at);
                output[out..out + n].copy_from_slice(&input[at..at + n]);
                (at, out) = (at + n, out + n);
                if n < literals {
                    return out;
                }
                left -= literals;
                if left == 0 {
                    break;
                }
                flags <<= literals;
            }
            flags <<= 1;
            left -= 1;
            let Some(token) = crate::bytes::u16_at(input, at) else {
                return out;
            };
            at += 2;
            let distance = usize::from(token >> 3) + 1;
            let mut length = usize::from(token & 7);
            if length == 7 {
                match long_length(input, &mut at, &mut half) {
                    Some(l) => length = l,
                    None => return out,
                }
            }
            length = length.saturating_add(3).min(output.len() - out);
            if distance > out {
                return out;
            }
            copy_match(output, out, distance, length);
            out += length;
        }
        if out == output.len() {
            break;
        }
    }
    out
}

/// The length field of a match whose three bits are all set (before the 3 that is added to every length).
fn long_length(input: &[u8], at: &mut usize, half: &mut Option<u8>) -> Option<usize> {
    let nibble = match half.take() {
        Some(byte) => byte >> 4,
        None => {
            let byte = *input.get(*at)?;
            *at += 1;
            *half = Some(byte);
            byte & 15
        }
    };
    if nibble < 15 {
        return Some(usize::from(nibble) + 7);
    }
    let byte = *input.get(*at)?;
    *at += 1;
    if byte < 255 {
        return Some(usize::from(byte) + 15 + 7);
    }
    let mut long = u32::from(crate::bytes::u16_at(input, *at)?);
    *at += 2;
    if long == 0 {
        long = crate::bytes::u32_at(input, *at)?;
        *at += 4;
    }
    // 16- and 32-bit lengths hold the whole length, which the shorter forms could not.
    if long < 15 + 7 {
        None
    } else {
        usize::try_from(long).ok()
    }
}

#[inline]
fn copy_match(output: &mut [u8], out: usize, distance: usize, length: usize) {
    if distance >= length {
        output.copy_within(out - distance..out - distance + length, out);
    } else {
        for i in out..out + length {
            output[i] = output[i - distance];
        }
    }
}
