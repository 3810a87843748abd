//! Decompression of XPRESS plain LZ77 (MS-XCA 2.3, 2.4), the output of `COMPRESSION_FORMAT_XPRESS`,
//! one stream per buffer.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "lengths and distances are checked against the output before they are used"
)]

use chronosym_types::bytes;

/// Bytes at the end of its output that [`decompress`] may overwrite: copies go in steps of fixed
/// size.
pub(crate) const SLACK: usize = 64;

/// Decompresses `input` into `output`, until all but [`SLACK`] bytes of it are full or the input
/// ends, and returns how many are valid.
///
/// Damaged input ends the stream early; a truncated stream yields the bytes before its end.
pub(crate) fn decompress(input: &[u8], output: &mut [u8]) -> usize {
    let size = output.len().saturating_sub(SLACK);
    let mut at = 0;
    let mut out = 0;
    // The byte whose high nibble holds the next extended length.
    let mut half: Option<u8> = None;
    while out < size {
        let Some(flags) = bytes::u32(input, at) else {
            break;
        };
        at += 4;
        // The last set bit is the end marker.
        let mut flags = u64::from(flags) << 32 | 1 << 31;
        loop {
            // A run of clear bits is a run of literals.
            let literals = flags.leading_zeros();
            flags <<= literals;
            let literals = literals as usize;
            if literals > 0 {
                if !copy_literals(input, at, output, out) {
                    let n = (input.len() - at).min(literals).min(size - out);
                    output[out..out + n].copy_from_slice(&input[at..at + n]);
                    if n < literals {
                        return out + n;
                    }
                }
                at += literals;
                out += literals;
            }
            flags <<= 1;
            if out >= size || flags == 0 {
                break;
            }
            let Some(token) = bytes::u16(input, at) else {
                return out;
            };
            at += 2;
            let distance = usize::from(token >> 3) + 1;
            let mut length = usize::from(token & 7);
            if length == 7 {
                match long_length(input, &mut at, &mut half) {
                    Some(long) => length = long,
                    None => return out,
                }
            }
            length = length.saturating_add(3).min(size - out);
            if distance > out {
                return out;
            }
            copy_match(output, out, distance, length);
            out += length;
        }
    }
    out.min(size)
}

/// Copies 32 bytes, the most literals of a run, unless the input has fewer left.
#[inline(always)]
fn copy_literals(input: &[u8], at: usize, output: &mut [u8], out: usize) -> bool {
    let from = input.get(at..).and_then(|from| from.first_chunk::<32>());
    let to = output.get_mut(out..).and_then(|to| to.first_chunk_mut());
    let (Some(from), Some(to)) = (from, to) else {
        return false;
    };
    *to = *from;
    true
}

/// Copies `length` bytes from `distance` before `out`: where they overlap, what was just copied is
/// copied again.
#[inline(always)]
fn copy_match(output: &mut [u8], out: usize, distance: usize, length: usize) {
    if distance >= 32 {
        copy_in_steps::<32>(output, out, distance, length);
    } else if distance >= 8 {
        copy_in_steps::<8>(output, out, distance, length);
    } else {
        // The bytes between the two are repeated within eight bytes, as often as they fit whole.
        const REPEAT: [(u64, usize); 8] = [
            (0, 8),
            (0x0101_0101_0101_0101, 8),
            (0x0001_0001_0001_0001, 8),
            (0x0001_0000_0100_0001, 6),
            (0x0000_0001_0000_0001, 8),
            (0x0000_0100_0000_0001, 5),
            (0x0001_0000_0000_0001, 6),
            (0x0100_0000_0000_0001, 7),
        ];
        let (factor, whole) = REPEAT[distance];
        let first = bytes::u64(output, out - distance).unwrap_or(0);
        let repeated = (first & !(u64::MAX << (8 * distance))).wrapping_mul(factor);
        let mut done = 0;
        while done < length {
            let to = output.get_mut(out + done..);
            if let Some(to) = to.and_then(|to| to.first_chunk_mut()) {
                *to = repeated.to_le_bytes();
            }
            done += whole;
        }
    }
}

/// Copies in steps of `N` bytes, at most the distance; the last one may run over the end.
#[inline(always)]
fn copy_in_steps<const N: usize>(output: &mut [u8], out: usize, distance: usize, length: usize) {
    // Most matches take one step.
    step::<N>(output, out, distance);
    let mut done = N;
    while done < length {
        step::<N>(output, out + done, distance);
        done += N;
    }
}

#[inline(always)]
fn step<const N: usize>(output: &mut [u8], out: usize, distance: usize) {
    let Some((before, to)) = output.split_at_mut_checked(out) else {
        return;
    };
    let from = before.get(out - distance..);
    let from = from.and_then(|from| from.first_chunk::<N>());
    if let (Some(from), Some(to)) = (from, to.first_chunk_mut::<N>()) {
        *to = *from;
    }
}

/// Returns the length field of a match whose three bits are all set (before the 3 that is added to
/// every length).
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
    let mut long = u32::from(bytes::u16(input, *at)?);
    *at += 2;
    if long == 0 {
        long = bytes::u32(input, *at)?;
        *at += 4;
    }
    // 16- and 32-bit lengths hold the whole length, which the shorter forms could not.
    if long < 15 + 7 {
        None
    } else {
        usize::try_from(long).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    fn unpack(input: &[u8], size: usize) -> Vec<u8> {
        let mut output = vec![0xee; size + super::SLACK];
        let n = super::decompress(input, &mut output);
        assert!(n <= size);
        output.truncate(n);
        output
    }

    /// Token by token, as MS-XCA 2.4 words it.
    fn reference(input: &[u8], size: usize) -> Option<Vec<u8>> {
        let (mut at, mut out, mut half) = (0, Vec::new(), None);
        let word = |at: &mut usize, bytes: usize| {
            let value = input
                .get(*at..*at + bytes)?
                .iter()
                .rev()
                .fold(0usize, |v, b| v << 8 | usize::from(*b));
            *at += bytes;
            Some(value)
        };
        while out.len() < size {
            let flags = word(&mut at, 4)? as u32;
            for bit in (0..32).rev() {
                if out.len() >= size || at >= input.len() {
                    break;
                }
                if flags >> bit & 1 == 0 {
                    out.push(word(&mut at, 1)? as u8);
                    continue;
                }
                let token = word(&mut at, 2)?;
                let mut length = token & 7;
                if length == 7 {
                    length = match half.take() {
                        None => {
                            let byte = word(&mut at, 1)?;
                            half = Some(byte >> 4);
                            byte & 15
                        }
                        Some(nibble) => nibble,
                    };
                    if length == 15 {
                        length = word(&mut at, 1)?;
                        if length == 255 {
                            length = word(&mut at, 2)?;
                            if length == 0 {
                                length = word(&mut at, 4)?;
                            }
                            length = length.checked_sub(22)?;
                        }
                        length += 15;
                    }
                    length += 7;
                }
                for _ in 0..length + 3 {
                    if out.len() < size {
                        out.push(*out.get(out.len().checked_sub((token >> 3) + 1)?)?);
                    }
                }
            }
        }
        Some(out)
    }

    fn pack(input: &[u8]) -> Vec<u8> {
        let mut packed = Vec::new();
        chronosym_support::etl::compress(input, &mut packed);
        packed
    }

    /// The two examples of MS-XCA 3.1.
    #[test]
    fn published_examples() {
        let letters = b"abcdefghijklmnopqrstuvwxyz";
        assert_eq!(
            unpack(&[&[0x3f, 0, 0, 0], letters.as_slice()].concat(), 26),
            letters
        );
        let packed = [
            0xff, 0xff, 0xff, 0x1f, 0x61, 0x62, 0x63, 0x17, 0x00, 0x0f, 0xff, 0x26, 0x01,
        ];
        assert_eq!(unpack(&packed, 300), b"abc".repeat(100));
    }

    #[test]
    fn every_length_and_distance_round_trips() {
        for length in (3..300).chain([65_530, 65_545, 70_000, 1 << 20]) {
            for distance in [1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 32, 33, 100, 8192] {
                let seed: Vec<u8> = (0..distance).map(|i| (i * 7 + i / 256) as u8).collect();
                let plain: Vec<u8> = seed
                    .iter()
                    .copied()
                    .cycle()
                    .take(distance + length)
                    .chain([1, 2, 3])
                    .collect();
                assert!(
                    unpack(&pack(&plain), plain.len()) == plain,
                    "length {length}, distance {distance}"
                );
            }
        }
    }

    #[test]
    fn damage_ends_the_output() {
        // A match before the beginning.
        assert_eq!(unpack(&[0, 0, 0, 0x40, b'a', 0x08, 0], 10), b"a");
        // A long length that would fit into a short form.
        assert_eq!(
            unpack(&[0, 0, 0, 0x40, b'a', 7, 0, 0x0f, 0xff, 21, 0], 100),
            b"a"
        );
        // The smallest length of that form.
        let least = [0, 0, 0, 0x40, b'a', 7, 0, 0x0f, 0xff, 22, 0];
        assert_eq!(unpack(&least, 100), [b'a'; 1 + 22 + 3]);
        // A length of 4 GiB is cut to the output.
        assert_eq!(
            unpack(
                &[
                    0, 0, 0, 0x40, b'a', 7, 0, 0x0f, 0xff, 0, 0, 0xff, 0xff, 0xff, 0xff
                ],
                100
            ),
            [b'a'; 100]
        );
    }

    proptest! {
        #[test]
        fn decompression_restores_the_input(
            words in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..20), 1..20),
            order in prop::collection::vec(any::<prop::sample::Index>(), 0..300),
        ) {
            let plain: Vec<u8> = order.iter().flat_map(|i| i.get(&words).clone()).collect();
            let packed = pack(&plain);
            prop_assert_eq!(&unpack(&packed, plain.len()), &plain);
            // Cut off anywhere, it gives a beginning.
            for cut in (0..packed.len()).step_by(7) {
                prop_assert!(plain.starts_with(&unpack(&packed[..cut], plain.len())));
            }
        }

        #[test]
        fn any_input_equals_the_reference(
            input in prop::collection::vec(prop_oneof![any::<u8>(), Just(0), Just(255), 0..16u8], 0..600),
            size in 0..3000usize,
        ) {
            let found = unpack(&input, size);
            match reference(&input, size) {
                Some(expected) => prop_assert_eq!(found, expected),
                None => prop_assert!(found.len() <= size),
            }
        }
    }
}
