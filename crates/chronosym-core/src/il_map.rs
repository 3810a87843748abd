//! IL-to-native maps (rule 13).

/// Entries that map no IL: −1 no mapping, −2 prolog, −3 epilog.
const PROLOG: i32 = -2;

/// The IL-to-native map of one code body, in ascending order of native offsets; the events are in
/// IL order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IlMap(Box<[Entry]>);

/// The native offset from which code belongs to an IL offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    native: u32,
    il: i32,
}

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
    pub(crate) fn new(entries: impl Iterator<Item = (i32, u32)>) -> Self {
        let entries = entries.map(|(il, native)| Entry { native, il });
        let mut entries: Box<[Entry]> = entries.collect();
        if !entries.is_sorted_by_key(|entry| entry.native) {
            // Stable: entries of zero length come first.
            entries.sort_by_key(|entry| entry.native);
        }
        IlMap(entries)
    }

    /// Returns the map of (native offset, IL offset) entries.
    pub(crate) fn of(entries: &[(u32, i32)]) -> Self {
        IlMap::new(entries.iter().map(|&(native, il)| (il, native)))
    }

    /// Returns the size in bytes of the entries and of their shared storage.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.0) + 64
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the (native offset, IL offset) entries, by native offset.
    pub(crate) fn entries(&self) -> Vec<(u32, i32)> {
        let entries = self.0.iter();
        entries.map(|entry| (entry.native, entry.il)).collect()
    }

    /// Returns the IL offset at `native` bytes from the start of the body.
    pub(crate) fn lookup(&self, native: u32) -> Option<IlOffset> {
        const BEGIN: IlOffset = IlOffset {
            offset: 0,
            source: IlSource::Prolog,
        };
        let count = self.0.partition_point(|entry| entry.native <= native);
        let (here, before) = self.0[..count].split_last()?;
        // Several entries can share a native offset: those of zero length come first.
        match here.il {
            il if il >= 0 => Some(IlOffset::mapped(il as u32)),
            PROLOG => Some(BEGIN),
            _ => {
                let mut before = before.iter().rev().map(|entry| entry.il);
                match before.find(|&il| il >= 0 || il == PROLOG)? {
                    // Unmapped code after the prolog, such as zeroing of locals.
                    PROLOG => Some(BEGIN),
                    il => Some(IlOffset::new(il as u32, IlSource::Nearest)),
                }
            }
        }
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
