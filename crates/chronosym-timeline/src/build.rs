//! Lays the frozen index out.

use crate::directory::Directory;
use crate::lives::{self, Lives, Segments};
use crate::map::{Known, NARROW, Segment, VersionedMap};
use crate::occupant::{Begin, Id, Occupant};
use crate::regions::Regions;
use crate::versions::{Span, Version, Versions};

impl VersionedMap {
    pub(crate) fn build(occupants: &[Occupant]) -> Self {
        let Segments { bounds, spans } = lives::segments(occupants);
        let lives = lives::lives(occupants, &spans, bounds.len());

        let mut counts = count(&spans, bounds.len());
        let mut next = 0;
        let mut table = segment_table(&counts[0], &mut next);
        let nodes = counts[1..]
            .iter()
            .map(|level| begins(level, &mut next))
            .collect();
        let chunk_shift = Directory::chunk_shift(&bounds);
        let regions = Regions::new(&bounds, 1 << chunk_shift);
        let directory = Directory::new(&bounds, &regions, chunk_shift, |dense| {
            table[dense + 1].earlier |= Segment::IS_DENSE;
        });
        for ((index, segment), &bounds) in table[1..].iter_mut().enumerate().zip(&bounds) {
            segment.offsets = regions.offsets(index, bounds);
        }
        let mut map = Self {
            regions,
            directory,
            table,
            versions: Versions::vacant(next as usize),
            nodes,
            places: vec![u32::MAX; occupants.len()],
            known: occupants
                .iter()
                .zip(&lives.cut_by)
                .map(|(o, cut)| known(o, *cut))
                .collect(),
            cut_by: collect(
                ids(occupants)
                    .zip(&lives.cut_by)
                    .filter_map(|(id, by)| Some((id, (*by)?))),
            ),
            wide: collect(
                ids(occupants)
                    .zip(occupants.iter().zip(&spans))
                    .filter(|(_, (_, s))| is_wide(**s))
                    .map(|(id, (o, _))| (id, o.range)),
            ),
        };
        map.mark_nodes();
        map.fill(&lives, &spans, &mut counts);
        map.versions.make_keys();
        map
    }

    /// Marks the segments under nodes that have versions.
    fn mark_nodes(&mut self) {
        for (level, height) in self.nodes.iter().zip(1..) {
            for (node, versions) in level.windows(2).enumerate() {
                if versions[0] < versions[1] {
                    let end = ((node + 1) << height).min(self.segment_count());
                    for segment in &mut self.table[(node << height) + 1..=end] {
                        segment.earlier |= Segment::IS_BELOW;
                    }
                }
            }
        }
    }

    /// Writes every life where it belongs. In the order of evidence, so that each list comes out in time order.
    fn fill(&mut self, lives: &Lives, spans: &[(u32, u32)], left: &mut [Vec<u32>]) {
        let segments = self.segment_count();
        for &index in &lives.order {
            let index = index as usize;
            let (from, to) = lives.spans[index];
            let life = Span::new(from, to);
            let id = Id::raw(Id::from_index(index));
            places(spans[index], |level, node| {
                let left = &mut left[level][node];
                *left -= 1;
                let version = match level {
                    0 if *left == 0 => {
                        let segment = &mut self.table[node + 1];
                        (segment.life, segment.id) = (life, id);
                        if self.places[index] == u32::MAX {
                            self.places[index] = node as u32;
                        }
                        return;
                    }
                    0 => self.table[node + 2].earlier() - *left as usize,
                    _ => (self.nodes[level - 1][node + 1] - 1 - *left) as usize,
                };
                self.versions.list[version] = Version { life, id };
                if self.places[index] == u32::MAX {
                    self.places[index] = narrow(segments + version);
                }
            });
        }
    }
}

fn ids(occupants: &[Occupant]) -> impl Iterator<Item = Id> {
    (0..occupants.len()).map(|i| Id::from_index(i).expect("the builder gave it an id"))
}

fn collect<T>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.collect();
    items.shrink_to_fit();
    items
}

fn known(occupant: &Occupant, cut_by: Option<Id>) -> Known {
    let begin = if matches!(occupant.begin, Begin::At(_)) {
        Known::BEGIN
    } else {
        0
    };
    let end = match cut_by {
        Some(_) => 0,
        None if occupant.end_stated() => Known::END,
        None if occupant.not_after < u64::MAX => Known::CONTAINED,
        None => 0,
    };
    Known(begin | end)
}

fn is_wide((first, last): (u32, u32)) -> bool {
    (last - first) as usize >= NARROW
}

/// Tells `each` the (level, node) that an occupant of the segments `first..=last` is written to: level 0 are the segments, a node
/// of level l covers 2^l of them. Narrow occupants go to their segments, wide ones to at most two nodes a level.
fn places((first, last): (u32, u32), mut each: impl FnMut(usize, usize)) {
    let (mut begin, mut end) = (first as usize, last as usize + 1);
    if !is_wide((first, last)) {
        return (begin..end).for_each(|segment| each(0, segment));
    }
    let mut level = 0;
    while begin < end {
        if begin & 1 != 0 {
            each(level, begin);
            begin += 1;
        }
        if end & 1 != 0 {
            end -= 1;
            each(level, end);
        }
        (begin, end, level) = (begin >> 1, end >> 1, level + 1);
    }
}

/// How many occupants each segment and each node has, level by level up to the highest that has any.
fn count(spans: &[(u32, u32)], segments: usize) -> Vec<Vec<u32>> {
    let mut counts = vec![vec![0_u32; segments]];
    for &span in spans {
        places(span, |level, node| {
            while counts.len() <= level {
                counts.push(vec![0; (segments >> counts.len()) + 1]);
            }
            counts[level][node] += 1;
        });
    }
    counts
}

/// The segments, vacant, with room for their versions from `next` on: one in the segment itself, the others in the table.
fn segment_table(counts: &[u32], next: &mut u32) -> Vec<Segment> {
    let mut table = Vec::with_capacity(counts.len() + 2);
    for &count in [0].iter().chain(counts).chain(&[0]) {
        let flags = match count {
            0 | 1 => 0,
            2 => Segment::HAS_EARLIER,
            _ => Segment::HAS_EARLIER | Segment::HAS_SEVERAL,
        };
        table.push(Segment {
            earlier: *next | flags,
            ..Segment::VACANT
        });
        *next = narrow(*next as usize + count.saturating_sub(1) as usize);
        assert!(
            *next < Segment::IS_DENSE,
            "fewer than 2^28 earlier versions"
        );
    }
    table
}

/// Where each node's versions begin, and where the last one's end.
fn begins(counts: &[u32], next: &mut u32) -> Vec<u32> {
    let mut begins = Vec::with_capacity(counts.len() + 1);
    for &count in counts {
        begins.push(*next);
        *next = narrow(*next as usize + count as usize);
    }
    begins.push(*next);
    begins
}

fn narrow(position: usize) -> u32 {
    assert!(position < 1 << 31, "fewer than 2^31 segments and versions");
    position as u32
}
