//! Cuts the address space into tiles.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "places of lists that are built here; how many there are is checked when they are counted"
)]

use std::mem;

use crate::clock::Clock;
use crate::tile::{Lane, Tile};

/// The low 16 bits of addresses tell those of a tile from each other, unless all of them have the same occupants.
const WIDEST: u64 = u16::MAX as u64;

/// Not more are divided by time together, or four times as many as a segment has: the time that this takes grows with the number
/// of segments and of their occupants, not with its square.
const MOST: usize = 256;

/// Addresses that all have the same occupants.
#[derive(Clone, Copy)]
pub(crate) struct Segment<'a> {
    pub(crate) start: u64,
    pub(crate) last: u64,
    /// The ids of its occupants in time order, without those above the tiles.
    pub(crate) ids: &'a [u32],
    /// Occupants above the tiles begin with it or end before it: a tile must too.
    pub(crate) is_cut: bool,
    /// They end with it, or others begin behind it.
    pub(crate) is_cut_behind: bool,
}

impl Segment<'_> {
    /// Whether it needs tiles of its own.
    fn is_large(&self) -> bool {
        self.last - self.start > WIDEST
    }
}

/// The whole address space in tiles.
pub(crate) struct Layout {
    /// Where each tile begins; the first at address 0.
    pub(crate) starts: Vec<u64>,
    pub(crate) tiles: Vec<Tile>,
    /// The tiles that split tiles lead to.
    pub(crate) branches: Vec<Tile>,
    /// The lists of crowds, one after the other.
    pub(crate) crowds: Vec<u32>,
}

/// The tile that holds an address, by where tiles begin.
pub(crate) fn tile_of(starts: &[u64], addr: u64) -> usize {
    starts.partition_point(|&start| start <= addr) - 1
}

/// An occupant in the tile that is being filled.
#[derive(Clone, Copy)]
struct Placed {
    start: u64,
    last: u64,
    begin: u16,
    end: u16,
    id: u32,
}

impl Placed {
    fn lane(&self) -> Lane {
        Lane {
            start: self.start as u16,
            extent: (self.last - self.start).min(WIDEST) as u16,
            begin: self.begin,
            end: self.end,
            id: self.id,
        }
    }
}

/// Whether a tile with these occupants can have those of a segment too.
fn has_room(open: &[Placed], segment: Segment<'_>) -> bool {
    let new = |id: &&u32| !open.iter().any(|placed| placed.id == **id);
    let room = Tile::LANES.checked_sub(open.len());
    room.is_some_and(|room| segment.ids.iter().filter(new).take(room + 1).count() <= room)
}

/// Divides occupants, which are in the order in which they begin, by time: as many in each group as fit in a tile, more only where
/// too many are there in one tick. Gives `group` the first tick of each and who is there from it to that of the next.
fn divide(occupants: &[Placed], mut group: impl FnMut(u16, &[Placed])) {
    let (mut from, mut open) = (0, Vec::with_capacity(Tile::LANES));
    for &placed in occupants {
        let stays = |other: &Placed| other.end >= placed.begin;
        // More than fit stay in a crowd: the latest tell.
        let staying = open.iter().rev().filter(|other| stays(other));
        if open.len() >= Tile::LANES && staying.take(Tile::LANES).count() < Tile::LANES {
            group(from, &open);
            open.retain(stays);
            from = placed.begin;
        }
        open.push(placed);
    }
    group(from, &open);
}

/// How many tiles occupants take when they are [divided](divide); `None` if there are crowds. Puts more than fit in a tile in the
/// order in which they begin.
fn cost(occupants: &mut [Placed]) -> Option<usize> {
    if occupants.len() <= Tile::LANES {
        return Some(1);
    }
    occupants.sort_by_key(|placed| placed.begin);
    let (mut groups, mut crowds) = (0, false);
    divide(occupants, |_, group| {
        groups += 1;
        crowds |= group.len() > Tile::LANES;
    });
    (!crowds).then(|| with_roots(groups))
}

/// How many tiles so many are with those that lead to them.
fn with_roots(tiles: usize) -> usize {
    if tiles > 1 {
        tiles + with_roots(tiles.div_ceil(Tile::SPLITS))
    } else {
        tiles
    }
}

/// Fills one tile after the other.
pub(crate) struct Cutter<'a> {
    lives: &'a [(u64, u64)],
    clock: Clock,
    layout: Layout,
    /// The tile that is being filled: where it begins, and what is in it.
    start: u64,
    open: Vec<Placed>,
    /// Where in `open` each occupant was when it was there last.
    places: Vec<u32>,
    /// How many tiles it takes; `None` if there are crowds.
    cost: Option<usize>,
    /// Room for those that go on into the next.
    carried: Vec<Placed>,
}

impl<'a> Cutter<'a> {
    pub(crate) fn new(lives: &'a [(u64, u64)], clock: Clock) -> Self {
        Self {
            lives,
            clock,
            layout: Layout {
                starts: Vec::new(),
                tiles: Vec::new(),
                branches: Vec::new(),
                crowds: Vec::new(),
            },
            start: 0,
            open: Vec::new(),
            places: vec![0; lives.len()],
            cost: Some(1),
            carried: Vec::new(),
        }
    }

    /// Adds the next segment, when the one after it starts at `next`. Tiles begin where granules do, if possible: an address
    /// leads to the tile at the first address of its granule.
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
            self.begin_for(segment, if near { floor } else { start });
        }

        // What lies behind is not in the tile, or too far for it.
        let Some(end) = last.checked_add(1).filter(|&end| next != Some(end)) else {
            return;
        };
        if segment.is_cut_behind {
            self.begin(end);
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
            self.begin(near.unwrap_or(end));
        }
    }

    /// Adds a segment to the tile that is being filled, if that takes fewer tiles than one of its own would.
    fn join(&mut self, segment: Segment<'_>) -> bool {
        let Some(before) = self.cost else {
            return false;
        };
        let ids = segment.ids;
        let new = ids.iter().filter(|&&id| self.place(id).is_none());
        let (open, new) = (self.open.len(), new.count());
        if new == 0 || open + new <= Tile::LANES {
            self.add(segment);
            return true;
        }
        if open.max(ids.len()) <= Tile::LANES || open + new > MOST.max(4 * ids.len()) {
            return false;
        }
        let apart = before + with_roots(ids.len().div_ceil(Tile::LANES));
        let alone = self.open.clone();
        self.add(segment);
        let joined = cost(&mut self.open);
        let gains = joined.is_some_and(|joined| joined < apart);
        if gains {
            self.cost = joined;
            self.note_places();
        } else {
            self.open = alone;
        }
        gains
    }

    /// Where the occupant `id` is in the tile that is being filled.
    fn place(&self, id: u32) -> Option<usize> {
        let place = self.places[id as usize - 1] as usize;
        let placed = self.open.get(place)?;
        (placed.id == id).then_some(place)
    }

    fn add(&mut self, segment: Segment<'_>) {
        let Segment {
            start, last, ids, ..
        } = segment;
        for &id in ids {
            if let Some(place) = self.place(id) {
                self.open[place].last = last;
                continue;
            }
            let index = id as usize - 1;
            let (from, to) = self.lives[index];
            self.places[index] = self.open.len() as u32;
            self.open.push(Placed {
                start,
                last,
                begin: self.clock.begin(from),
                end: self.clock.end(to),
                id,
            });
        }
    }

    fn note_places(&mut self) {
        for (placed, place) in self.open.iter().zip(0..) {
            self.places[placed.id as usize - 1] = place;
        }
    }

    /// Begins a tile with a segment: at `floor`, unless those before it that reach behind that leave no room.
    fn begin_for(&mut self, segment: Segment<'_>, floor: u64) {
        let mut carried = mem::take(&mut self.carried);
        carried.clear();
        carried.extend(self.open.iter().filter(|placed| placed.last >= floor));
        let fits = carried.is_empty() || has_room(&carried, segment);
        self.begin(if fits { floor } else { segment.start });
        if fits {
            for placed in &mut carried {
                placed.start = placed.start.max(floor);
            }
            mem::swap(&mut self.open, &mut carried);
        }
        self.carried = carried;
        self.note_places();
        self.add(segment);
        self.cost = cost(&mut self.open);
    }

    /// Begins a tile, unless it would leave none of the addresses before it to the open one.
    fn begin(&mut self, start: u64) {
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
            Tile::new(open.iter().map(Placed::lane))
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

    /// The last tile goes to the top of the address space.
    pub(crate) fn finish(mut self) -> Layout {
        self.close();
        let mut layout = self.layout;
        layout.starts.shrink_to_fit();
        layout.tiles.shrink_to_fit();
        layout.branches.shrink_to_fit();
        layout.crowds.shrink_to_fit();
        layout
    }

    /// A tile for more than fit in one.
    fn split(&mut self, occupants: &[Placed]) -> Tile {
        let mut tiles: Vec<(u16, Tile)> = Vec::new();
        divide(occupants, |from, group| {
            tiles.push((from, self.tile_of(group)));
        });

        while tiles.len() > 1 {
            let groups = tiles.chunks(Tile::SPLITS);
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

    fn tile_of(&mut self, group: &[Placed]) -> Tile {
        if group.len() <= Tile::LANES {
            return Tile::new(group.iter().map(Placed::lane));
        }
        // They are all of one segment.
        let first = self.layout.crowds.len();
        self.layout
            .crowds
            .extend(group.iter().map(|placed| placed.id));
        let narrow = |n: usize| u32::try_from(n).expect("fewer than 2^32 occupants in crowds");
        Tile::crowd(group[0].lane(), narrow(first), narrow(group.len()))
    }
}
