//! Cuts the address space into tiles.

use std::mem;

use crate::clock::Clock;
use crate::tile::{Lane, Tile};

/// Largest distance of addresses in a tile, so that 16 bits order them; a tile of a single segment
/// can be larger.
pub(crate) const WIDEST: u64 = u16::MAX as u64;

/// Largest number of occupants that are divided by time together, or four times those of a segment:
/// the work stays linear in segments and their occupants.
const MAX_DIVIDED: usize = 256;

/// A range of addresses that all have the same occupants.
#[derive(Clone, Copy)]
pub(crate) struct Segment<'a> {
    pub(crate) start: u64,
    pub(crate) last: u64,
    /// Ids of its occupants in time order, without wide ones.
    pub(crate) ids: &'a [u32],
    /// A wide occupant starts here or ends just before: a tile must start here.
    pub(crate) is_cut: bool,
    /// A wide occupant ends here, or one starts just after.
    pub(crate) is_cut_after: bool,
}

impl Segment<'_> {
    /// Returns whether it needs tiles of its own.
    fn is_large(&self) -> bool {
        self.last - self.start > WIDEST
    }
}

/// The whole address space, cut into tiles.
pub(crate) struct Layout {
    /// First address of each tile, 0 for the first one.
    pub(crate) starts: Vec<u64>,
    pub(crate) tiles: Vec<Tile>,
    /// The branches of split tiles.
    pub(crate) branches: Vec<Tile>,
    /// Ids of overflow tiles, one list after the other.
    pub(crate) overflow: Vec<u32>,
}

impl Layout {
    /// Appends the tiles of the addresses that follow; their first tile has those before.
    pub(crate) fn before(mut self, next: Layout) -> Layout {
        let (branches, overflow) = (self.branches.len(), self.overflow.len());
        let moved = |tile: &Tile| tile.moved(branches, overflow);
        self.starts.reserve_exact(next.starts.len() - 1);
        self.starts.extend(&next.starts[1..]);
        self.tiles.reserve_exact(next.tiles.len() - 1);
        self.tiles.extend(next.tiles[1..].iter().map(moved));
        self.branches.reserve_exact(next.branches.len());
        self.branches.extend(next.branches.iter().map(moved));
        self.overflow.reserve_exact(next.overflow.len());
        self.overflow.extend(next.overflow);
        self
    }
}

/// Returns the tile that holds an address.
pub(crate) fn tile_of(starts: &[u64], addr: u64) -> usize {
    starts.partition_point(|&start| start <= addr) - 1
}

/// An occupant of the open tile.
#[derive(Clone, Copy)]
struct TileOccupant {
    start: u64,
    last: u64,
    from: u16,
    to: u16,
    id: u32,
}

impl TileOccupant {
    /// Returns its first and last tick.
    fn ticks(&self) -> (u16, u16) {
        (self.from, self.to)
    }

    fn lane(&self) -> Lane {
        Lane {
            start: self.start as u16,
            extent: (self.last - self.start).min(WIDEST) as u16,
            from: self.from,
            to: self.to,
            id: self.id,
        }
    }
}

/// Returns whether a tile with the occupants `open` has room for those of a segment.
fn has_room(open: &[TileOccupant], segment: Segment<'_>) -> bool {
    let new = |id: &&u32| !open.iter().any(|occupant| occupant.id == **id);
    let room = Tile::LANES.checked_sub(open.len());
    room.is_some_and(|room| segment.ids.iter().filter(new).take(room + 1).count() <= room)
}

/// Divides occupants, ordered by start, into groups by time. Each group fits in a tile unless too
/// many occupants share a tick. `ticks` returns the first and last tick of an occupant. Calls
/// `group` with the first tick of each group and its occupants, which are in `open` until the next.
fn divide<T: Copy>(
    occupants: impl Iterator<Item = T>,
    ticks: impl Fn(&T) -> (u16, u16),
    open: &mut Vec<T>,
    mut group: impl FnMut(u16, &[T]),
) {
    let mut from = 0;
    open.clear();
    for next in occupants {
        let starts = ticks(&next).0;
        let stays = |other: &T| ticks(other).1 >= starts;
        // In an overflow group the latest occupants decide.
        let staying = open.iter().rev().filter(|other| stays(other));
        if open.len() >= Tile::LANES && staying.take(Tile::LANES).count() < Tile::LANES {
            group(from, open);
            open.retain(stays);
            from = starts;
        }
        open.push(next);
    }
    group(from, open);
}

/// Returns how many tiles occupants take when they are [divided](divide); `None` if a group
/// overflows. Sorts more occupants than fit in a tile by their start. `ticks` is a buffer.
fn cost(occupants: &mut [TileOccupant], ticks: &mut Vec<(u16, u16)>) -> Option<usize> {
    if occupants.len() <= Tile::LANES {
        return Some(1);
    }
    sort_by_start(occupants);
    let (mut groups, mut overflows) = (0, false);
    let all = occupants.iter().map(TileOccupant::ticks);
    divide(
        all,
        |&own| own,
        ticks,
        |_, group| {
            groups += 1;
            overflows |= group.len() > Tile::LANES;
        },
    );
    (!overflows).then(|| with_roots(groups))
}

/// Sorts occupants whose greater part is sorted already.
fn sort_by_start(occupants: &mut [TileOccupant]) {
    if occupants.len() > MAX_DIVIDED {
        return occupants.sort_by_key(|occupant| occupant.from);
    }
    for i in 1..occupants.len() {
        let from = occupants[i].from;
        if from < occupants[i - 1].from {
            let at = occupants[..i].partition_point(|before| before.from <= from);
            occupants[at..=i].rotate_right(1);
        }
    }
}

/// Returns the size of the tree of split tiles over `tiles` leaves.
fn with_roots(tiles: usize) -> usize {
    if tiles > 1 {
        tiles + with_roots(tiles.div_ceil(Tile::BRANCHES))
    } else {
        tiles
    }
}

/// Fills tiles in address order.
pub(crate) struct Cutter<'a> {
    lifetimes: &'a [(u64, u64)],
    clock: Clock,
    layout: Layout,
    /// First address and occupants of the open tile.
    start: u64,
    open: Vec<TileOccupant>,
    /// Last position in `open` of each occupant.
    positions: Vec<u32>,
    /// Tiles that the open tile takes; `None` if a group overflows.
    cost: Option<usize>,
    /// Buffer for occupants that continue into the next tile, or of the open tile before a segment
    /// joined it.
    carried: Vec<TileOccupant>,
    /// Buffer for [`cost`].
    ticks: Vec<(u16, u16)>,
}

impl<'a> Cutter<'a> {
    pub(crate) fn new(lifetimes: &'a [(u64, u64)], clock: Clock) -> Self {
        Self {
            lifetimes,
            clock,
            layout: Layout {
                starts: Vec::new(),
                tiles: Vec::new(),
                branches: Vec::new(),
                overflow: Vec::new(),
            },
            start: 0,
            open: Vec::new(),
            positions: vec![0; lifetimes.len()],
            cost: Some(1),
            carried: Vec::new(),
            ticks: Vec::new(),
        }
    }

    /// Adds the next segment; the one after it starts at `next`. Tiles start where granules do, if
    /// possible: the directory maps an address to the tile of its granule's first address.
    pub(crate) fn push(
        &mut self,
        segment: Segment<'_>,
        next: Option<u64>,
        granule: impl Fn(u64) -> (u64, u64),
    ) {
        let Segment { start, last, .. } = segment;
        let apart = segment.is_large() || segment.is_cut;
        if apart || last - self.start > WIDEST || !self.join(segment) {
            let floor = granule(start).0;
            let near = !apart && floor > self.start && last - floor <= WIDEST;
            self.start_for(segment, if near { floor } else { start });
        }

        // Addresses after the segment are unoccupied, or too far for the tile.
        let Some(end) = last.checked_add(1).filter(|&end| next != Some(end)) else {
            return;
        };
        if segment.is_cut_after {
            self.start_tile(end);
        } else if next.is_none_or(|next| next - self.start > WIDEST) {
            let (first, rest) = granule(end);
            let ceiling = if first == end {
                Some(end)
            } else {
                rest.checked_add(1)
            };
            let near = ceiling.filter(|&near| {
                near - self.start <= WIDEST && next.is_none_or(|next| near <= next)
            });
            self.start_tile(near.unwrap_or(end));
        }
    }

    /// Adds a segment to the open tile, if that takes fewer tiles than a tile of its own.
    fn join(&mut self, segment: Segment<'_>) -> bool {
        let Some(before) = self.cost else {
            return false;
        };
        let ids = segment.ids;
        let new = ids.iter().filter(|&&id| self.position(id).is_none());
        let (open, new) = (self.open.len(), new.count());
        if new == 0 || open + new <= Tile::LANES {
            self.add(segment);
            return true;
        }
        if open.max(ids.len()) <= Tile::LANES || open + new > MAX_DIVIDED.max(4 * ids.len()) {
            return false;
        }
        let apart = before + with_roots(ids.len().div_ceil(Tile::LANES));
        self.carried.clone_from(&self.open);
        self.add(segment);
        let joined = cost(&mut self.open, &mut self.ticks);
        let gains = joined.is_some_and(|joined| joined < apart);
        if gains {
            self.cost = joined;
            self.note_positions();
        } else {
            mem::swap(&mut self.open, &mut self.carried);
        }
        gains
    }

    /// Returns the position of an occupant in the open tile.
    fn position(&self, id: u32) -> Option<usize> {
        let position = self.positions[id as usize - 1] as usize;
        let occupant = self.open.get(position)?;
        (occupant.id == id).then_some(position)
    }

    fn add(&mut self, segment: Segment<'_>) {
        let Segment {
            start, last, ids, ..
        } = segment;
        for &id in ids {
            if let Some(position) = self.position(id) {
                self.open[position].last = last;
                continue;
            }
            let index = id as usize - 1;
            let (from, to) = self.lifetimes[index];
            self.positions[index] = self.open.len() as u32;
            self.open.push(TileOccupant {
                start,
                last,
                from: self.clock.start_tick(from),
                to: self.clock.end_tick(to),
                id,
            });
        }
    }

    fn note_positions(&mut self) {
        for (occupant, position) in self.open.iter().zip(0..) {
            self.positions[occupant.id as usize - 1] = position;
        }
    }

    /// Starts a tile with a segment: at `floor`, unless occupants that reach across it leave no
    /// room.
    fn start_for(&mut self, segment: Segment<'_>, floor: u64) {
        let mut carried = mem::take(&mut self.carried);
        carried.clear();
        carried.extend(self.open.iter().filter(|occupant| occupant.last >= floor));
        let fits = carried.is_empty() || has_room(&carried, segment);
        self.start_tile(if fits { floor } else { segment.start });
        if fits {
            for occupant in &mut carried {
                occupant.start = occupant.start.max(floor);
            }
            mem::swap(&mut self.open, &mut carried);
        }
        self.carried = carried;
        self.note_positions();
        self.add(segment);
        self.cost = cost(&mut self.open, &mut self.ticks);
    }

    /// Starts a tile; closes the open one if it has addresses or occupants.
    fn start_tile(&mut self, start: u64) {
        if start > self.start || !self.open.is_empty() {
            self.close();
        }
        self.start = start;
        self.cost = Some(1);
    }

    fn close(&mut self) {
        let mut open = mem::take(&mut self.open);
        let branches = self.layout.branches.len();
        let tile = if open.len() <= Tile::LANES {
            Tile::new(open.iter().map(TileOccupant::lane))
        } else {
            self.split(&open)
        };
        let tiles = 1 + self.layout.branches.len() - branches;
        debug_assert!(self.cost.is_none_or(|cost| cost == tiles));
        open.clear();
        self.open = open;
        self.layout.starts.push(self.start);
        self.layout.tiles.push(tile);
    }

    /// Closes the last tile, which extends to the top of the address space.
    pub(crate) fn finish(mut self) -> Layout {
        self.close();
        let mut layout = self.layout;
        layout.starts.shrink_to_fit();
        layout.tiles.shrink_to_fit();
        layout.branches.shrink_to_fit();
        layout.overflow.shrink_to_fit();
        layout
    }

    /// Makes a split tile of more occupants than fit in one.
    fn split(&mut self, occupants: &[TileOccupant]) -> Tile {
        let mut tiles: Vec<(u16, Tile)> = Vec::new();
        let (all, mut open) = (occupants.iter().copied(), Vec::new());
        divide(all, TileOccupant::ticks, &mut open, |from, group| {
            tiles.push((from, self.tile_of(group)));
        });

        while tiles.len() > 1 {
            let groups = tiles.chunks(Tile::BRANCHES);
            tiles = groups
                .map(|children| {
                    let first = self.layout.branches.len();
                    let first = u32::try_from(first).expect("fewer than 2^32 tiles");
                    let tiles = children.iter().map(|child| child.1);
                    self.layout.branches.extend(tiles);
                    let ticks = children[1..].iter().map(|child| child.0);
                    (children[0].0, Tile::split(first, ticks))
                })
                .collect();
        }
        tiles[0].1
    }

    fn tile_of(&mut self, group: &[TileOccupant]) -> Tile {
        if group.len() <= Tile::LANES {
            return Tile::new(group.iter().map(TileOccupant::lane));
        }
        // A group overflows only if its occupants are those of one segment.
        let first = self.layout.overflow.len();
        self.layout
            .overflow
            .extend(group.iter().map(|occupant| occupant.id));
        let narrow = |n: usize| u32::try_from(n).expect("fewer than 2^32 overflow entries");
        Tile::overflow(group[0].lane(), narrow(first), narrow(group.len()))
    }
}
