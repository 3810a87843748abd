//! Cuts the address space into tiles.

use crate::clock::Clock;
use crate::tile::{Lane, Tile};

/// The low 16 bits of addresses tell those of a tile from each other, unless all of them have the same occupants.
const WIDEST: u64 = u16::MAX as u64;

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

/// An occupant's addresses in the tile that is being filled.
#[derive(Clone, Copy)]
struct Placed {
    start: u64,
    last: u64,
    id: u32,
}

/// Fills one tile after the other.
pub(crate) struct Cutter<'a> {
    lives: &'a [(u64, u64)],
    clock: Clock,
    layout: Layout,
    /// The tile that is being filled: where it begins, and what is in it.
    start: u64,
    open: Vec<Placed>,
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
        let count = segment.ids.len();
        let apart = segment.is_large() || segment.is_cut;
        let fits = self.open.len() + count <= Tile::LANES && last - self.start <= WIDEST;
        if apart || !fits {
            let floor = granule(start).0;
            let near = !apart && floor > self.start && last - floor <= WIDEST;
            self.begin_for(count, start, if near { floor } else { start });
        }
        let ids = segment.ids.iter();
        self.open.extend(ids.map(|&id| Placed { start, last, id }));

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

    /// Begins a tile for `count` occupants from `start` on: at `floor`, unless those before them that reach behind it leave no
    /// room.
    fn begin_for(&mut self, count: usize, start: u64, floor: u64) {
        let mut carried = self.open.clone();
        carried.retain(|placed| placed.last >= floor);
        if !carried.is_empty() && carried.len() + count > Tile::LANES {
            return self.begin(start);
        }
        self.begin(floor);
        for placed in &mut carried {
            placed.start = placed.start.max(floor);
        }
        self.open = carried;
    }

    /// Begins a tile, unless it would leave none of the addresses before it to the open one.
    fn begin(&mut self, start: u64) {
        if start > self.start || !self.open.is_empty() {
            self.close();
        }
        self.start = start;
    }

    fn close(&mut self) {
        let open = std::mem::take(&mut self.open);
        let lanes: Vec<Lane> = open.iter().map(|&placed| self.lane(placed)).collect();
        let tile = if lanes.len() <= Tile::LANES {
            Tile::new(&lanes)
        } else {
            self.split(&lanes)
        };
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

    fn lane(&self, placed: Placed) -> Lane {
        let (from, to) = self.lives[placed.id as usize - 1];
        Lane {
            start: placed.start as u16,
            extent: (placed.last - placed.start).min(WIDEST) as u16,
            begin: self.clock.begin(from),
            end: self.clock.end(to),
            id: placed.id,
        }
    }

    /// A tile for more than fit in one, all at the same addresses: they are split by time.
    fn split(&mut self, lanes: &[Lane]) -> Tile {
        let mut tiles: Vec<(u16, Tile)> = Vec::new();
        // The first tick of the tile to come, and who is in it.
        let mut from = 0;
        let mut group: Vec<Lane> = Vec::new();
        for &lane in lanes {
            let staying = group.len() - group.partition_point(|l| l.end < lane.begin);
            if group.len() >= Tile::LANES && staying < Tile::LANES {
                tiles.push((from, self.tile_of(&group)));
                group.drain(..group.len() - staying);
                from = lane.begin;
            }
            group.push(lane);
        }
        tiles.push((from, self.tile_of(&group)));

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

    fn tile_of(&mut self, lanes: &[Lane]) -> Tile {
        if lanes.len() <= Tile::LANES {
            return Tile::new(lanes);
        }
        let first = self.layout.crowds.len();
        self.layout.crowds.extend(lanes.iter().map(|lane| lane.id));
        let narrow = |n: usize| u32::try_from(n).expect("fewer than 2^32 occupants in crowds");
        Tile::crowd(lanes[0], narrow(first), narrow(lanes.len()))
    }
}
