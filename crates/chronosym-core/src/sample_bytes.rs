//! The class and time of a logged sample, in few bytes.
//!
//! A sample starts with a byte: bits 0 and 1 have the length of the class less one, bits 2 to 4 the
//! length of the difference to the previous time, bits 5 to 7 the lowest bits of that. The other
//! bits of both follow. Both are read at once, without a branch for each byte.

use chronosym_types::{unzigzag, zigzag};

/// More than the longest sample, which has 13 bytes.
const CHUNK: usize = 16;
const LOW_BITS: u32 = 3;

/// Appends a sample; `difference` is that of its time to the previous one's.
#[inline]
pub(crate) fn push(out: &mut Vec<u8>, class: u32, difference: u64) {
    let difference = zigzag(difference);
    let class_length = bytes_of((class | 1).into());
    let rest = difference >> LOW_BITS;
    // Lengths of 7 and 8 are one, so that three bits suffice.
    let code = bytes_of(rest).min(7);
    let low = (difference as u32) << 5 & 0xff;
    let head = (class_length - 1) | code << 2 | low;
    let word =
        u128::from(head) | u128::from(class) << 8 | u128::from(rest) << (8 + 8 * class_length);
    let used = 1 + class_length + length_of(code);
    // A copy of fixed size, cut afterwards, takes no call.
    let length = out.len() + used as usize;
    out.extend_from_slice(&word.to_le_bytes());
    out.truncate(length);
}

/// Removes the first sample: (class, difference); `None` at the end.
#[inline]
pub(crate) fn take(bytes: &mut &[u8]) -> Option<(u32, u64)> {
    let padded;
    let chunk = match bytes.first_chunk() {
        Some(chunk) => chunk,
        None => {
            padded = padded_chunk(bytes)?;
            &padded
        }
    };
    let word = u128::from_le_bytes(*chunk);
    let head = word as u8;
    let class_length = u32::from(head & 3) + 1;
    let length = length_of(u32::from(head >> 2 & 7));
    *bytes = bytes.get((1 + class_length + length) as usize..)?;
    let class = (word >> 8) as u32 & u32::MAX >> (32 - 8 * class_length);
    let rest = (word >> (8 + 8 * class_length)) as u64;
    let rest = rest & u64::MAX.checked_shr(64 - 8 * length).unwrap_or(0);
    Some((class, unzigzag(rest << LOW_BITS | u64::from(head >> 5))))
}

#[cold]
fn padded_chunk(bytes: &[u8]) -> Option<[u8; CHUNK]> {
    let mut chunk = [0; CHUNK];
    chunk.get_mut(..bytes.len())?.copy_from_slice(bytes);
    (!bytes.is_empty()).then_some(chunk)
}

#[inline]
fn bytes_of(value: u64) -> u32 {
    (u64::BITS - value.leading_zeros()).div_ceil(8)
}

#[inline]
fn length_of(code: u32) -> u32 {
    code + u32::from(code == 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_all_lengths_round_trip() {
        let differences =
            (0..64).flat_map(|bit| [1 << bit, (1 << bit) - 1, (1u64 << bit).wrapping_neg()]);
        let classes = [
            0,
            1,
            0xff,
            0x100,
            0xffff,
            0x1_0000,
            0xff_ffff,
            0x100_0000,
            u32::MAX,
        ];
        let samples: Vec<_> = (differences.chain([u64::MAX]))
            .flat_map(|difference| classes.map(|class| (class, difference)))
            .collect();
        let mut bytes = Vec::new();
        for &(class, difference) in &samples {
            push(&mut bytes, class, difference);
            let mut only = Vec::new();
            push(&mut only, class, difference);
            assert!(only.len() <= 13 && bytes.ends_with(&only));
        }
        let mut rest = bytes.as_slice();
        assert!(std::iter::from_fn(|| take(&mut rest)).eq(samples));
        assert!(rest.is_empty());
    }

    #[test]
    fn most_samples_take_four_bytes() {
        let length = |class, ns: i64| {
            let mut bytes = Vec::new();
            push(&mut bytes, class, ns as u64);
            bytes.len()
        };
        assert_eq!(length(200, 1_000), 3);
        assert_eq!(length(200, -130_000), 4);
        assert_eq!(length(65_000, 1_000), 4);
        assert_eq!(length(65_000, 60_000_000), 6);
    }
}
