//! ReadyToRun's native format (`nativeformatreader.h`): variable-length integers, sparse arrays and
//! hash tables; also the nibble and bit streams of debug information.

use crate::bytes;

/// Returns the unsigned integer at `offset`, and the offset after it. The low bits of the first
/// byte are its length.
pub(super) fn unsigned(data: &[u8], offset: usize) -> Option<(u32, usize)> {
    let (raw, shift, length) = raw(data, offset)?;
    Some((raw >> shift, offset.checked_add(length)?))
}

/// Returns the signed integer at `offset`, and the offset after it.
pub(super) fn signed(data: &[u8], offset: usize) -> Option<(i32, usize)> {
    let (raw, shift, length) = raw(data, offset)?;
    let unused = if length == 5 {
        0
    } else {
        u32::BITS.saturating_sub(shift.saturating_mul(8))
    };
    let value = (raw << unused) as i32 >> unused >> shift;
    Some((value, offset.checked_add(length)?))
}

/// Returns the bytes of an integer, the number of length bits, and its size in bytes.
fn raw(data: &[u8], offset: usize) -> Option<(u32, u32, usize)> {
    let first = *data.get(offset)?;
    let length = (first.trailing_ones() as usize).saturating_add(1);
    match length {
        1..=4 => {
            let mut word = [0; 4];
            let read = bytes::slice(data, offset, length)?;
            word.get_mut(..length)?.copy_from_slice(read);
            Some((
                u32::from_le_bytes(word),
                u32::try_from(length).ok()?,
                length,
            ))
        }
        5 => Some((bytes::u32(data, offset.checked_add(1)?)?, 0, 5)),
        _ => None,
    }
}

/// Reads a table of offsets that are 1, 2 or 4 bytes wide.
fn offset_at(data: &[u8], base: usize, width: u32, index: usize) -> Option<usize> {
    let at = base.checked_add(index.checked_mul(1 << width)?)?;
    Some(match width {
        0 => usize::from(*data.get(at)?),
        1 => usize::from(bytes::u16(data, at)?),
        2 => bytes::u32(data, at)? as usize,
        _ => return None,
    })
}

/// A sparse array (`NativeArray`).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct NativeArray<'d> {
    data: &'d [u8],
    base: usize,
    count: u32,
    width: u32,
}

impl<'d> NativeArray<'d> {
    /// Returns the array at the start of a section.
    pub(super) fn parse(data: &'d [u8]) -> Option<Self> {
        let (header, base) = unsigned(data, 0)?;
        let (count, width) = (header >> 2, header & 3);
        // The table has an offset for every 16 elements, which bounds the count.
        let table = (count.div_ceil(16) as usize).checked_mul(1 << width)?;
        (width < 3 && table <= data.len().saturating_sub(base)).then_some(Self {
            data,
            base,
            count,
            width,
        })
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Offset of element `index` in the section.
    pub(super) fn get(&self, index: u32) -> Option<usize> {
        if index >= self.count {
            return None;
        }
        // Each table entry is the root of a tree of 16 leaves.
        let mut at = self.base.checked_add(offset_at(
            self.data,
            self.base,
            self.width,
            index as usize / 16,
        )?)?;
        for bit in [8, 4, 2, 1] {
            let (value, after) = unsigned(self.data, at)?;
            if index & bit != 0 {
                if value & 2 != 0 {
                    at = at.checked_add(value as usize >> 2)?;
                    continue;
                }
            } else if value & 1 != 0 {
                at = after;
                continue;
            }
            // The only element of this subtree, if any.
            return (value & 3 == 0 && value >> 2 == index & 15).then_some(after);
        }
        Some(at)
    }

    pub(super) fn data(&self) -> &'d [u8] {
        self.data
    }
}

/// A hash table (`NativeHashtable`), enumerated bucket by bucket.
#[derive(Debug, Clone, Copy)]
pub(super) struct NativeHashtable<'d> {
    data: &'d [u8],
    buckets: usize,
    width: u32,
}

impl<'d> NativeHashtable<'d> {
    const BASE: usize = 1;

    pub(super) fn parse(data: &'d [u8]) -> Option<Self> {
        let header = *data.first()?;
        let buckets = 1usize
            .checked_shl(u32::from(header >> 2))
            .filter(|&n| n <= data.len())?;
        let width = u32::from(header & 3);
        let table = buckets.checked_add(1)?.checked_mul(1 << width)?;
        (width < 3 && table < data.len()).then_some(Self {
            data,
            buckets,
            width,
        })
    }

    /// Offsets of all payloads in the section; ends at the first malformed bucket. Overlapping
    /// buckets repeat entries: the caller must limit their number.
    pub(super) fn payloads(&self) -> impl Iterator<Item = usize> + 'd {
        let table = *self;
        (0..table.buckets).flat_map(move |bucket| {
            let at = |index| {
                offset_at(table.data, Self::BASE, table.width, index)?.checked_add(Self::BASE)
            };
            let (mut next, end) = (
                at(bucket).unwrap_or(usize::MAX),
                at(bucket.saturating_add(1)).unwrap_or(0),
            );
            std::iter::from_fn(move || {
                if next >= end {
                    return None;
                }
                // The low byte of the hash precedes the offset.
                let from = next.checked_add(1)?;
                let (distance, after) = signed(table.data, from)?;
                next = after;
                from.checked_add_signed(distance as isize)
            })
        })
    }
}

/// Nibbles, low one first; a number has three bits in each, most significant first.
#[derive(Debug, Clone)]
pub(super) struct Nibbles<'d> {
    data: &'d [u8],
    position: usize,
}

impl<'d> Nibbles<'d> {
    pub(super) fn new(data: &'d [u8]) -> Self {
        Self { data, position: 0 }
    }

    pub(super) fn unsigned(&mut self) -> Option<u32> {
        let mut value = 0u32;
        loop {
            let byte = *self.data.get(self.position / 2)?;
            let nibble = if self.position.is_multiple_of(2) {
                byte & 15
            } else {
                byte >> 4
            };
            self.position = self.position.saturating_add(1);
            value = value << 3 | u32::from(nibble & 7);
            if nibble & 8 == 0 {
                return Some(value);
            }
        }
    }

    /// Returns the bytes from the next whole byte on.
    pub(super) fn rest(&self) -> &'d [u8] {
        self.data
            .get(self.position.div_ceil(2)..)
            .unwrap_or_default()
    }
}

/// A bit stream, least significant bit first.
#[derive(Debug, Clone)]
pub(super) struct Bits<'d> {
    data: &'d [u8],
    position: usize,
}

impl<'d> Bits<'d> {
    pub(super) fn new(data: &'d [u8]) -> Self {
        Self { data, position: 0 }
    }

    /// Returns the next `count` bits, at most 32.
    pub(super) fn take(&mut self, count: u32) -> Option<u32> {
        let (byte, shift) = (self.position / 8, self.position % 8);
        let after = self.position.checked_add(count as usize)?;
        let mut word = [0; 8];
        for (to, from) in word.iter_mut().zip(self.data.get(byte..after.div_ceil(8))?) {
            *to = *from;
        }
        self.position = after;
        let value = u64::from_le_bytes(word) >> shift & !(u64::MAX << count);
        u32::try_from(value).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_every_length() {
        for (bytes, value, length) in [
            (&[0x00][..], 0, 1),
            (&[0xfe], 127, 1),
            (&[0x01, 0x02], 128, 2),
            (&[0xfd, 0xff], 0x3fff, 2),
            (&[0x03, 0x00, 0x02], 0x4000, 3),
            (&[0x07, 0x00, 0x00, 0x02], 0x20_0000, 4),
            (&[0x0f, 0x78, 0x56, 0x34, 0x92], 0x9234_5678, 5),
        ] {
            assert_eq!(unsigned(bytes, 0), Some((value, length)), "{bytes:x?}");
            assert_eq!(unsigned(&bytes[..length - 1], 0), None);
        }
        for (bytes, value) in [
            (&[0xfe][..], -1),
            (&[0x7e], 63),
            (&[0x80], -64),
            (&[0xfd, 0xff], -1),
            (&[0xfb, 0xff, 0xff], -1),
            (&[0xf7, 0xff, 0xff, 0xff], -1),
            (&[0x0f, 0xff, 0xff, 0xff, 0xff], -1),
            (&[0x01, 0x80], -8192),
        ] {
            assert_eq!(signed(bytes, 0), Some((value, bytes.len())), "{bytes:x?}");
        }
        assert_eq!(unsigned(&[0x1f, 0, 0, 0, 0, 0], 0), None);
    }

    #[test]
    fn a_full_and_a_sparse_array_block() {
        // One block; its table entry leads to offset 1. Only element 5: a leaf with that flag.
        let sparse = [(16 << 2) as u8 * 2, 1, 5 << 2 << 1, 0xaa];
        let array = NativeArray::parse(&sparse).unwrap();
        assert_eq!(array.count(), 16);
        let found: Vec<_> = (0..20)
            .filter_map(|index| Some((index, array.get(index)?)))
            .collect();
        assert_eq!(found, [(5, 3)]);
        // A root with both halves, and a leaf in each: elements 3 and 9.
        let both = [
            (16 << 2) as u8 * 2,
            1,
            (2 << 2 | 3) << 1,
            3 << 2 << 1,
            9 << 2 << 1,
            0,
        ];
        let array = NativeArray::parse(&both).unwrap();
        let found: Vec<_> = (0..16)
            .filter_map(|index| Some((index, array.get(index)?)))
            .collect();
        assert_eq!(found, [(3, 4), (9, 5)]);
        // The same with offsets of two and of four bytes.
        for width in [1, 2] {
            let size = 1 << width;
            let table = [(16 << 2 | width) * 2, size].into_iter();
            let table = table.chain((1..size).map(|_| 0));
            let wide: Vec<u8> = table.chain([5 << 2 << 1, 0xaa]).collect();
            let array = NativeArray::parse(&wide).unwrap();
            let found = (0..16).filter_map(|index| Some((index, array.get(index)?)));
            let element = usize::from(size) + 2;
            assert_eq!(found.collect::<Vec<_>>(), [(5, element)], "{width}");
            assert!(NativeArray::parse(&wide[..usize::from(size)]).is_none());
        }
        assert!(NativeArray::parse(&[3 * 2, 0, 0, 0]).is_none());
        // A count that the bytes cannot hold.
        assert!(NativeArray::parse(&[0xff, 0x3f, 0, 0]).is_none());
    }

    #[test]
    fn tables_of_hashes_are_there_in_full() {
        // Two buckets, so three offsets, each with the width's number of bytes.
        for (width, size) in [(0, 3), (1, 6), (2, 12)] {
            let table = [&[1 << 2 | width][..], &vec![0; size]].concat();
            assert!(NativeHashtable::parse(&table).is_some(), "{width}");
            assert!(NativeHashtable::parse(&table[..size]).is_none(), "{width}");
        }
        assert!(NativeHashtable::parse(&[1 << 2 | 3; 64]).is_none());
    }

    #[test]
    fn nibbles_and_bits() {
        // 0o12 = nibbles 1|8, 2; then 7; rounded up to the next byte.
        let mut nibbles = Nibbles::new(&[0x29, 0x07, 0x55]);
        assert_eq!(nibbles.unsigned(), Some(0o12));
        assert_eq!(nibbles.unsigned(), Some(7));
        assert_eq!(nibbles.rest(), [0x55]);
        let mut bits = Bits::new(&[0b1010_0110, 0xff, 0xff, 0xff, 0x7f]);
        assert_eq!(bits.take(2), Some(0b10));
        assert_eq!(bits.take(6), Some(0b10_1001));
        assert_eq!(bits.take(32), Some(0x7fff_ffff));
        assert_eq!(bits.take(1), None);
    }
}
