//! IL-to-native maps (rule 13).

use std::sync::OnceLock;

use chronosym_types::ByOffset;

/// Entries that map no IL: −1 no mapping, −2 prolog, −3 epilog.
const PROLOG: i32 = -2;

/// The IL-to-native map of one code body: IL offsets by native offset; the events are in IL order.
#[derive(Clone, Debug)]
pub(crate) struct IlMap {
    /// The IL offsets in the order of the event, then their native offsets.
    stated: Box<[u32]>,
    /// The entries for lookups, sorted at the first one: samples hit few bodies.
    by_offset: OnceLock<ByOffset<i32>>,
}

impl PartialEq for IlMap {
    fn eq(&self, other: &Self) -> bool {
        self.stated == other.stated || self.entries() == other.entries()
    }
}

impl Eq for IlMap {}

/// An IL offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IlOffset {
    /// Bytes from the start of the method's IL.
    pub offset: u32,
    /// How the offset was found.
    pub source: IlSource,
}

/// How an IL offset was found.
///
/// Closed: an offset is in the map, or one of its neighbours is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IlSource {
    /// From the entry at or before the native offset.
    Mapped,
    /// From the method's first sequence point: the native offset is in the prolog, or in unmapped
    /// code directly after it.
    Prolog,
    /// From the nearest preceding entry with an IL offset: the native offset is in an epilog or in
    /// unmapped code.
    Nearest,
}

impl IlOffset {
    /// Creates an offset.
    pub fn new(offset: u32, source: IlSource) -> Self {
        IlOffset { offset, source }
    }

    /// Creates an offset that a map contains.
    pub fn mapped(offset: u32) -> Self {
        IlOffset::new(offset, IlSource::Mapped)
    }
}

impl IlMap {
    pub(crate) fn new(entries: impl ExactSizeIterator<Item = (i32, u32)> + Clone) -> Self {
        let mut stated = Vec::with_capacity(2 * entries.len());
        stated.extend(entries.clone().map(|(il, _)| il as u32));
        stated.extend(entries.map(|(_, native)| native));
        IlMap {
            stated: stated.into(),
            by_offset: OnceLock::new(),
        }
    }

    /// Returns the size in bytes of the entries and of their shared storage.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.stated) + 96
    }

    /// Returns the entries in the order of the event: (native offset, IL offset).
    fn in_order(&self) -> impl Iterator<Item = (u32, i32)> {
        let (il, native) = self.stated.split_at(self.len());
        let il = il.iter().map(|&il| il as i32);
        native.iter().copied().zip(il)
    }

    /// Returns the IL offset at `native` bytes from the start of the body.
    pub(crate) fn lookup(&self, native: u32) -> Option<IlOffset> {
        const BEGIN: IlOffset = IlOffset {
            offset: 0,
            source: IlSource::Prolog,
        };
        let by_offset = (self.by_offset).get_or_init(|| ByOffset::new(self.in_order()));
        let (here, before) = by_offset.upto(native).split_last()?;
        // Several entries can share a native offset: those of zero length come first.
        match here.1 {
            il if il >= 0 => Some(IlOffset::mapped(il as u32)),
            PROLOG => Some(BEGIN),
            _ => {
                let means = |il: i32| il >= 0 || il == PROLOG;
                match before.iter().rev().find(|&&(_, il)| means(il))?.1 {
                    // Unmapped code after the prolog, such as zeroing of locals.
                    PROLOG => Some(BEGIN),
                    il => Some(IlOffset::new(il as u32, IlSource::Nearest)),
                }
            }
        }
    }

    /// Returns the map of (native offset, IL offset) entries.
    pub(crate) fn of(entries: &[(u32, i32)]) -> Self {
        IlMap::new(entries.iter().map(|&(native, il)| (il, native)))
    }

    /// Returns the (native offset, IL offset) entries, by native offset.
    pub(crate) fn entries(&self) -> Vec<(u32, i32)> {
        let mut entries: Vec<_> = self.in_order().collect();
        entries.sort_by_key(|&(native, _)| native);
        entries
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        self.stated.len() / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_13_specials_have_their_own_meaning() {
        use IlSource::{Mapped, Nearest, Prolog};
        let lookup = |entries: &[(i32, u32)], native| {
            let map = IlMap::new(entries.iter().copied());
            map.lookup(native).map(|il| (il.offset, il.source))
        };
        let map = [(-2, 0), (0, 10), (7, 30), (3, 20), (-3, 40), (-1, 50)];
        for (native, expected) in [
            (5, (0, Prolog)),
            (10, (0, Mapped)),
            (29, (3, Mapped)),
            (44, (7, Nearest)),
            (99, (7, Nearest)),
        ] {
            assert_eq!(lookup(&map, native), Some(expected), "{native}");
        }
        assert_eq!(lookup(&[(0, 4)], 3), None);
        // Unmapped code after the prolog belongs to it.
        assert_eq!(lookup(&[(-2, 0), (-1, 10), (0, 20)], 19), Some((0, Prolog)));
        assert_eq!(lookup(&[(-1, 0), (0, 20)], 19), None);
    }
}
