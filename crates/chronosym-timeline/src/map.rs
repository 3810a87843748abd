//! The frozen map: built once, then only read.

use std::fmt;
use std::hint::select_unpredictable;
use std::ops::Range;

use crate::directory::{Directory, Hint};
use crate::occupant::{AddrRange, Closed, Id, Life};
use crate::regions::{Offsets, Regions};
use crate::versions::{Span, Versions};

/// An occupant of at most this many segments is written into each; a wider one into few nodes of the tree above them.
pub(crate) const NARROW: usize = 4;

/// A segment of the address space and the latest of those who occupied it: all that most lookups need, in half a cache line.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(crate) struct Segment {
    pub(crate) offsets: Offsets,
    pub(crate) life: Span,
    pub(crate) id: u32,
    /// Where its earlier versions begin in the version table; they end where the next segment's begin. The top bits spare most
    /// lookups the next segment.
    pub(crate) earlier: u32,
}

impl Segment {
    /// No address and no time lies in it.
    pub(crate) const VACANT: Self = Self {
        offsets: Offsets {
            start: u32::MAX,
            extent: 0,
        },
        life: Span::EMPTY,
        id: 0,
        earlier: 0,
    };
    /// The bit of `earlier` that says that there are earlier versions.
    pub(crate) const HAS_EARLIER: u32 = 1 << 31;
    /// The bit of `earlier` that says that there are several.
    pub(crate) const HAS_SEVERAL: u32 = 1 << 30;
    /// The bit of `earlier` that says that a node above has versions.
    pub(crate) const IS_BELOW: u32 = 1 << 29;
    /// The bit of `earlier` that says that it may be found where another segment, near it, should be.
    pub(crate) const IS_DENSE: u32 = 1 << 28;
    /// What a miss needs more than the next version for.
    const LONG_WAY: u32 = Self::HAS_SEVERAL | Self::IS_BELOW | Self::IS_DENSE;
    const FLAGS: u32 = Self::HAS_EARLIER | Self::LONG_WAY;

    #[inline]
    pub(crate) fn earlier(&self) -> usize {
        (self.earlier & !Self::FLAGS) as usize
    }
}

/// What is known of an occupant's begin and end.
#[derive(Clone, Copy)]
pub(crate) struct Known(pub(crate) u8);

impl Known {
    pub(crate) const BEGIN: u8 = 1;
    pub(crate) const END: u8 = 2;
    pub(crate) const CONTAINED: u8 = 4;
}

/// What was at address A at time T: an immutable index that any number of threads can ask at once.
///
/// Lives of occupants that share an address never overlap in time (the [crate] documentation has the rules), so every question
/// has one answer at most. It is made by [`VersionedMapBuilder::freeze`](crate::VersionedMapBuilder::freeze).
pub struct VersionedMap {
    pub(crate) regions: Regions,
    pub(crate) directory: Directory,
    /// The segments in address order, and two vacant ones: one before the first, so that each has one before it, and one that
    /// ends the last one's versions.
    pub(crate) table: Vec<Segment>,
    /// The segments' earlier versions, then those of the nodes; each list in time order.
    pub(crate) versions: Versions,
    /// Above the segments, level by level: where each node's versions begin, and one more. A node of `nodes[l]` covers 2^(l+1)
    /// segments.
    pub(crate) nodes: Vec<Vec<u32>>,
    /// For each occupant its first place: a segment, or, less the number of segments, a version.
    pub(crate) places: Vec<u32>,
    pub(crate) known: Vec<Known>,
    /// Who was cut short and by whom, in the order of the first.
    pub(crate) cut_by: Vec<(Id, Id)>,
    /// The ranges of the occupants that lie in nodes, in the order of their ids.
    pub(crate) wide: Vec<(Id, AddrRange)>,
}

impl VersionedMap {
    /// Who was alive at `addr` at `time`. Allocates nothing.
    ///
    /// `u64::MAX` as a time is the end of all time: nobody is alive then.
    #[inline]
    pub fn lookup(&self, addr: u64, time: u64) -> Option<Id> {
        self.lookup_at(self.directory.hint(addr), addr, time)
    }

    #[inline(always)]
    pub(crate) fn lookup_at(&self, hint: Option<Hint>, addr: u64, time: u64) -> Option<Id> {
        let Some(hint) = hint else {
            return self.lookup_slowly(addr, time);
        };
        // The last that begins in the granule of the address or before, and the one before it: the vacant one is before the first.
        let pair = self.table[hint.segment as usize..].first_chunk::<2>()?;
        let later = usize::from(pair[1].offsets.start <= hint.offset);
        let segment = &pair[later];
        // Selected, not branched to: whether a sample hits is a coin toss. And in few steps: all that wait for memory share the
        // room in which a processor keeps what it cannot do yet.
        let inside = segment.offsets.contains(hint.offset);
        let id = select_unpredictable(inside, segment.id, 0);
        let id = select_unpredictable(segment.life.contains(time), id, 0);
        let missed = select_unpredictable(id == 0, segment.earlier, 0);
        if missed & Segment::LONG_WAY != 0 {
            return self.lookup_others(hint.segment as usize + later, hint.offset, addr, time);
        }
        let Some(first) = self.versions.list.first() else {
            return Id::from_raw(id);
        };
        // Without a branch here too. Who has no earlier version looks at the first there is, which is always in the cache.
        let missed = inside & (missed & Segment::HAS_EARLIER != 0);
        let version = select_unpredictable(missed, segment.earlier(), 0);
        let version = self.versions.list.get(version).unwrap_or(first);
        let id = select_unpredictable(missed & version.lives_at(time), version.id, id);
        Id::from_raw(id)
    }

    /// Reads where [`lookup_at`](Self::lookup_at) will.
    #[inline(always)]
    pub(crate) fn touch(&self, hint: Option<Hint>) -> u32 {
        hint.map_or(0, |hint| self.table[hint.segment as usize + 1].id)
    }

    /// The long way from the place in the table that the short one found.
    #[inline(never)]
    fn lookup_others(&self, place: usize, offset: u32, addr: u64, time: u64) -> Option<Id> {
        let segment = &self.table[place];
        if segment.offsets.contains(offset) {
            self.lookup_earlier(place - 1, time)
        } else if segment.earlier & Segment::IS_DENSE != 0 {
            self.lookup_slowly(addr, time)
        } else {
            None
        }
    }

    /// The long way for any address.
    #[inline(never)]
    fn lookup_slowly(&self, addr: u64, time: u64) -> Option<Id> {
        let index = self.segment_of(addr)?;
        let segment = self.segment(index);
        if segment.life.contains(time) {
            return Id::from_raw(segment.id);
        }
        self.lookup_earlier(index, time)
    }

    /// Who else but the latest occupant of a segment was alive in it at `time`.
    #[inline]
    fn lookup_earlier(&self, index: usize, time: u64) -> Option<Id> {
        let found = self.versions.at(self.earlier(index), time);
        if found != 0 || self.segment(index).earlier & Segment::IS_BELOW == 0 {
            return Id::from_raw(found);
        }
        self.nodes_over(index)
            .find_map(|node| Id::from_raw(self.versions.at(node, time)))
    }

    /// The segment that holds an address.
    fn segment_of(&self, addr: u64) -> Option<usize> {
        let (first, last, offset) = if let Some(candidates) = self.directory.candidates(addr) {
            candidates
        } else {
            let (position, region) = self.regions.holding(addr)?;
            let next = self.regions.list().get(position + 1);
            let end = next.map_or(self.segment_count(), |next| next.first_segment as usize);
            (region.first_segment as usize, end - 1, region.offset(addr))
        };
        let behind = &self.table[first + 2..=last + 1];
        let index = first + behind.partition_point(|s| s.offsets.start <= offset);
        self.segment(index)
            .offsets
            .contains(offset)
            .then_some(index)
    }

    #[inline]
    fn segment(&self, index: usize) -> &Segment {
        &self.table[index + 1]
    }

    /// The number of segments, without the two vacant ones.
    pub(crate) fn segment_count(&self) -> usize {
        self.table.len() - 2
    }

    /// Everything that was ever at `addr`, with its life, in time order: lives of no length too.
    pub fn occupants(&self, addr: u64) -> impl Iterator<Item = (Id, Life)> + '_ {
        let index = self.segment_of(addr);
        let earlier = index.map_or(0..0, |i| self.earlier(i));
        let latest = index.and_then(|i| Id::from_raw(self.segment(i).id));
        let mut above: Vec<Id> = Vec::new();
        if let Some(index) = index.filter(|_| !self.nodes.is_empty()) {
            above.extend(
                self.nodes_over(index)
                    .flatten()
                    .filter_map(|v| Id::from_raw(self.versions.list[v].id)),
            );
            if !above.is_empty() {
                above.extend(
                    earlier
                        .clone()
                        .filter_map(|v| Id::from_raw(self.versions.list[v].id))
                        .chain(latest),
                );
                above.sort_by_key(|&id| {
                    let life = self.life(id);
                    (life.from, life.to, id)
                });
            }
        }
        let mixed = !above.is_empty();
        let plain = earlier
            .filter(move |_| !mixed)
            .filter_map(|v| Id::from_raw(self.versions.list[v].id));
        plain
            .chain(latest.filter(|_| !mixed))
            .chain(above)
            .map(|id| (id, self.life(id)))
    }

    /// When `id` lived.
    ///
    /// # Panics
    /// If `id` is another map's and this one has fewer occupants; so do all methods that take one.
    pub fn life(&self, id: Id) -> Life {
        let place = self.places[id.index()] as usize;
        let life = match self.version(place) {
            None => self.segment(place).life,
            Some(version) => self.versions.list[version].life,
        };
        let known = self.known[id.index()].0;
        Life {
            from: life.from,
            to: life.to(),
            from_known: known & Known::BEGIN != 0,
            to_known: known & Known::END != 0,
        }
    }

    /// Why the life of `id` ends where it does.
    pub fn closed(&self, id: Id) -> Closed {
        let known = self.known[id.index()].0;
        if known & Known::END != 0 {
            Closed::Stated
        } else if let Ok(found) = self.cut_by.binary_search_by_key(&id, |&(cut, _)| cut) {
            Closed::By(self.cut_by[found].1)
        } else if known & Known::CONTAINED != 0 {
            Closed::Container
        } else {
            Closed::Open
        }
    }

    /// The addresses of `id`: a search, for those who do not keep the ranges themselves.
    pub fn range(&self, id: Id) -> AddrRange {
        if let Ok(found) = self.wide.binary_search_by_key(&id, |&(wide, _)| wide) {
            return self.wide[found].1;
        }
        let place = self.places[id.index()] as usize;
        let first = match self.version(place) {
            None => place,
            Some(version) => self.table[1..].partition_point(|s| s.earlier() <= version) - 1,
        };
        let (start, mut last) = self.regions.bounds(first, self.segment(first).offsets);
        for next in first + 1..(first + NARROW).min(self.segment_count()) {
            let bounds = self.regions.bounds(next, self.segment(next).offsets);
            if bounds.0 - 1 != last || !self.is_in(id, next) {
                break;
            }
            last = bounds.1;
        }
        AddrRange::new(start, last).expect("a segment is not empty")
    }

    /// The number of occupants, those with lives of no length too.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are no occupants.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The ids of all occupants, in the order of insertion.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = Id> + '_ {
        (0..self.places.len()).map(|i| Id::from_index(i).expect("as many as were inserted"))
    }

    /// What the map holds on the heap, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.regions.memory_bytes()
            + self.directory.memory_bytes()
            + self.table.capacity() * size_of::<Segment>()
            + self.versions.memory_bytes()
            + self
                .nodes
                .iter()
                .map(|n| n.capacity() * size_of::<u32>())
                .sum::<usize>()
            + self.nodes.capacity() * size_of::<Vec<u32>>()
            + self.places.capacity() * size_of::<u32>()
            + self.known.capacity() * size_of::<Known>()
            + self.cut_by.capacity() * size_of::<(Id, Id)>()
            + self.wide.capacity() * size_of::<(Id, AddrRange)>()
    }

    /// The version that a place in `places` means; `None` if it means a segment.
    fn version(&self, place: usize) -> Option<usize> {
        place.checked_sub(self.segment_count())
    }

    #[inline]
    fn earlier(&self, segment: usize) -> Range<usize> {
        self.segment(segment).earlier()..self.segment(segment + 1).earlier()
    }

    /// The versions of each node over a segment, from the narrowest up.
    #[inline]
    fn nodes_over(&self, segment: usize) -> impl Iterator<Item = Range<usize>> + '_ {
        self.nodes.iter().zip(1..).map(move |(level, height)| {
            let node = segment >> height;
            level[node] as usize..level[node + 1] as usize
        })
    }

    fn is_in(&self, id: Id, segment: usize) -> bool {
        let (raw, earlier) = (Id::raw(Some(id)), self.earlier(segment));
        let to = self.life(id).to;
        let first = self.versions.list[earlier.clone()].partition_point(|v| v.to() < to);
        self.segment(segment).id == raw
            || (earlier.start + first..earlier.end)
                .take_while(|&v| self.versions.list[v].to() == to)
                .any(|v| self.versions.list[v].id == raw)
    }
}

impl fmt::Debug for VersionedMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VersionedMap")
            .field("len", &self.len())
            .field("segments", &self.segment_count())
            .field("memory_bytes", &self.memory_bytes())
            .finish_non_exhaustive()
    }
}
