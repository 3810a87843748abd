//! IL-to-native maps (rule 13).

/// Entries that map no IL: −1 no mapping, −2 prolog, −3 epilog.
const PROLOG: i32 = -2;

/// The IL-to-native map of one code body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct IlMap {
    /// (native offset, IL offset), by native offset; the events are in IL order.
    entries: Box<[(u32, i32)]>,
}

/// What a map says of a native offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IlOffset {
    /// Bytes from the start of the method's IL.
    pub offset: u32,
    /// How it was found.
    pub source: IlSource,
}

/// How an IL offset was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IlSource {
    /// The entry at or before the native offset has it.
    Mapped,
    /// The native offset lies in the prolog, or in unmapped code right behind it: the method's first sequence point.
    Prolog,
    /// The native offset lies in an epilog or in unmapped code: the nearest entry before it that has an IL offset.
    Nearest,
}

impl IlOffset {
    /// An offset that stands in a map, or is known for certain.
    pub fn mapped(offset: u32) -> Self {
        IlOffset {
            offset,
            source: IlSource::Mapped,
        }
    }
}

impl IlMap {
    pub(crate) fn new(entries: impl Iterator<Item = (i32, u32)>) -> Self {
        let mut entries: Vec<_> = entries.map(|(il, native)| (native, il)).collect();
        entries.sort_by_key(|&(native, _)| native);
        IlMap {
            entries: entries.into(),
        }
    }

    /// The IL offset at `native` bytes from the start of the body.
    pub(crate) fn lookup(&self, native: u32) -> Option<IlOffset> {
        let upto = self.entries.partition_point(|&(start, _)| start <= native);
        let (here, before) = self.entries[..upto].split_last()?;
        // Several entries can share a native offset: those of zero length come first.
        match here.1 {
            il if il >= 0 => Some(IlOffset {
                offset: il as u32,
                source: IlSource::Mapped,
            }),
            PROLOG => Some(IlOffset {
                offset: 0,
                source: IlSource::Prolog,
            }),
            _ => {
                let means = |il: i32| il >= 0 || il == PROLOG;
                match before.iter().rev().find(|&&(_, il)| means(il))?.1 {
                    // Unmapped code behind the prolog, such as what zeroes locals.
                    PROLOG => Some(IlOffset {
                        offset: 0,
                        source: IlSource::Prolog,
                    }),
                    il => Some(IlOffset {
                        offset: il as u32,
                        source: IlSource::Nearest,
                    }),
                }
            }
        }
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unmapped_code_behind_the_prolog_belongs_to_it() {
        let map = IlMap::new([(-2, 0), (-1, 10), (0, 20)].into_iter());
        assert_eq!(
            map.lookup(19),
            Some(IlOffset {
                offset: 0,
                source: IlSource::Prolog
            })
        );
        let without_prolog = IlMap::new([(-1, 0), (0, 20)].into_iter());
        assert_eq!(without_prolog.lookup(19), None);
    }

    #[test]
    fn specials_have_their_own_meaning() {
        let map = IlMap::new([(-2, 0), (0, 10), (7, 30), (3, 20), (-3, 40), (-1, 50)].into_iter());
        assert_eq!(
            map.lookup(5),
            Some(IlOffset {
                offset: 0,
                source: IlSource::Prolog
            })
        );
        assert_eq!(
            map.lookup(10),
            Some(IlOffset {
                offset: 0,
                source: IlSource::Mapped
            })
        );
        assert_eq!(
            map.lookup(29),
            Some(IlOffset {
                offset: 3,
                source: IlSource::Mapped
            })
        );
        assert_eq!(
            map.lookup(44),
            Some(IlOffset {
                offset: 7,
                source: IlSource::Nearest
            })
        );
        assert_eq!(
            map.lookup(99),
            Some(IlOffset {
                offset: 7,
                source: IlSource::Nearest
            })
        );
        assert_eq!(IlMap::new([(0, 4)].into_iter()).lookup(3), None);
    }
}
