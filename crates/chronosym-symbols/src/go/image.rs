//! The mapped bytes of a Go binary, and the pointers in them.

use chronosym_types::ByteOrder;
use object::read::{Object, ObjectSegment, RelocationTarget};
use object::{BinaryFormat, File};

use super::pclntab::integer;

/// The low bits of a pointer in a chain of fixups, which hold its target (`mach-o/fixup-chains.h`).
const CHAINED_TARGET: u64 = (1 << 36) - 1;

/// Maximum number of structures with the same start that are examined.
const MAX_STRUCTURES: usize = 16;

/// Maximum size in bytes of a structure that relocations state.
const MAX_STRUCTURE: u64 = 48 * 8;

/// The mapped bytes of a file.
pub(super) struct Image<'a> {
    /// Virtual address and bytes of each segment.
    pub(super) segments: Vec<(u64, &'a [u8])>,
    pub(super) order: ByteOrder,
}

impl<'a> Image<'a> {
    pub(super) fn of(file: &File<'a>) -> Self {
        let segments = file.segments();
        let segments = segments.filter_map(|s| Some((s.address(), s.data().ok()?)));
        Self {
            segments: segments.collect(),
            order: match file.is_little_endian() {
                true => ByteOrder::Little,
                false => ByteOrder::Big,
            },
        }
    }

    /// Returns the bytes from a virtual address to the end of its segment.
    pub(super) fn from(&self, address: u64) -> Option<&'a [u8]> {
        self.segments.iter().find_map(|&(start, bytes)| {
            let offset = usize::try_from(address.checked_sub(start)?).ok()?;
            bytes.get(offset..).filter(|rest| !rest.is_empty())
        })
    }
}

/// The numbers of a structure that holds pointers, as they are before the image is loaded.
pub(super) enum Words<'a> {
    /// Stated in place.
    Plain {
        bytes: &'a [u8],
        size: usize,
        order: ByteOrder,
    },
    /// Stated in place in the low bits, counted from the image's base or from 0.
    Chained { bytes: &'a [u8], base: u64 },
    /// Stated by relocations, by offset.
    Relocated { words: Vec<(u64, u64)>, size: usize },
}

impl Words<'_> {
    pub(super) fn get(&self, index: usize) -> Option<u64> {
        match self {
            Self::Plain { bytes, size, order } => {
                integer(bytes, index.checked_mul(*size)?, *size, *order)
            }
            Self::Chained { bytes, base } => {
                let word = integer(bytes, index.checked_mul(8)?, 8, ByteOrder::Little)?;
                base.checked_add(word & CHAINED_TARGET)
            }
            Self::Relocated { words, size } => {
                let offset = index.checked_mul(*size)? as u64;
                let found = words.binary_search_by_key(&offset, |&(offset, _)| offset);
                words.get(found.ok()?).map(|&(_, word)| word)
            }
        }
    }
}

/// Returns the structures that start with the pointers `first` and `second`, which have `size`
/// bytes each.
pub(super) fn structures<'a>(
    file: &File<'a>,
    image: &Image<'a>,
    pair: [u64; 2],
    size: usize,
) -> Vec<Words<'a>> {
    let mut found = plain(image, pair, size);
    if found.is_empty() && file.format() == BinaryFormat::MachO && size == 8 {
        found = chained(image, pair);
    }
    if found.is_empty() {
        found = relocated(file, pair, size);
    }
    found
}

fn plain<'a>(image: &Image<'a>, pair: [u64; 2], size: usize) -> Vec<Words<'a>> {
    let order = image.order;
    let needle = pair.map(|pointer| match order {
        ByteOrder::Little => pointer.to_le_bytes(),
        ByteOrder::Big => pointer
            .rotate_left(if size == 4 { 32 } else { 0 })
            .to_be_bytes(),
    });
    let needle: Vec<u8> = (needle
        .iter()
        .flat_map(|bytes| bytes.iter().take(size))
        .copied())
    .collect();
    let in_segment = |&(_, bytes): &(u64, &'a [u8])| {
        let starts = memchr::memmem::find_iter(bytes, &needle);
        let words = starts.filter_map(|start| {
            let bytes = bytes.get(start..)?;
            Some(Words::Plain { bytes, size, order })
        });
        words.take(MAX_STRUCTURES).collect::<Vec<_>>()
    };
    image.segments.iter().flat_map(in_segment).collect()
}

fn chained<'a>(image: &Image<'a>, [first, second]: [u64; 2]) -> Vec<Words<'a>> {
    let mapped = image.segments.iter().filter(|(_, bytes)| !bytes.is_empty());
    let base = mapped.map(|&(start, _)| start).min().unwrap_or(0);
    let target = |word: &[u8; 8]| u64::from_le_bytes(*word) & CHAINED_TARGET;
    let in_segment = |&(_, bytes): &(u64, &'a [u8])| {
        let (words, _) = bytes.as_chunks::<8>();
        let pairs = words.iter().zip(words.iter().skip(1)).enumerate();
        let words = pairs.filter_map(move |(index, (a, b))| {
            let mut bases = [0, base].into_iter();
            let base = bases.find(|base| base.wrapping_add(target(a)) == first)?;
            let bytes = bytes.get(index.checked_mul(8)?..)?;
            (base.wrapping_add(target(b)) == second).then_some(Words::Chained { bytes, base })
        });
        words.take(MAX_STRUCTURES).collect::<Vec<_>>()
    };
    image.segments.iter().flat_map(in_segment).collect()
}

fn relocated<'a>(file: &File<'a>, [first, second]: [u64; 2], size: usize) -> Vec<Words<'a>> {
    let relocations = || {
        let all = file.dynamic_relocations().into_iter().flatten();
        all.filter_map(|(address, relocation)| {
            let is_stated = !relocation.has_implicit_addend()
                && relocation.target() == RelocationTarget::Absolute;
            is_stated.then_some((address, relocation.addend() as u64))
        })
    };
    let starts = relocations().filter(|&(_, target)| target == first);
    let starts: Vec<u64> = starts
        .map(|(address, _)| address)
        .take(MAX_STRUCTURES)
        .collect();
    let words = starts.into_iter().map(|start| {
        let own = relocations().filter_map(|(address, target)| {
            let offset = address.checked_sub(start)?;
            (offset < MAX_STRUCTURE).then_some((offset, target))
        });
        let mut words: Vec<(u64, u64)> = own.collect();
        words.sort_unstable();
        words.dedup_by_key(|&mut (offset, _)| offset);
        Words::Relocated { words, size }
    });
    words.filter(|words| words.get(1) == Some(second)).collect()
}
