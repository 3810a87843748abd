//! Precompiled methods of which only the entry point is known (rule 15).

use chronosym_timeline::{End, Start};
use chronosym_types::hash::HashMap;

use super::ProcessCode;
use crate::body::CodeBody;
use crate::evidence::{Evidence, EvidenceSet};
use crate::ids::BodyIndex;
use crate::life::has_ended;

impl ProcessCode {
    /// Rule 15: gives an extent to precompiled methods of which only the entry point is known.
    pub(super) fn place_entry_points(&mut self) {
        // Ninety-five of a hundred precompiled methods are shorter. What lies further on is most often a method that was
        // called before the recording began: with 4 KiB, 7,494 of 7,530 such frames of an attached recording were wrong.
        const FURTHEST: u64 = 1024;
        let points: Vec<_> = std::mem::take(&mut self.entry_points).into_iter().collect();
        if points.is_empty() {
            return;
        }
        let mut starts: Vec<u64> = self
            .bodies
            .iter()
            .map(|b| b.start)
            .chain(points.iter().map(|p| p.0))
            .collect();
        starts.sort_unstable();
        starts.dedup();
        let known: HashMap<_, _> = self
            .bodies
            .iter()
            .zip(0..)
            .map(|(b, index)| ((b.clr_instance, b.method_id, b.start), BodyIndex(index)))
            .collect();
        // An entry point of 0 is none: the method had no code yet.
        for (start, point) in points.into_iter().filter(|&(start, _)| start != 0) {
            if let Some(&body) = known.get(&(point.clr_instance, point.method_id, start)) {
                let known = &mut self.bodies[body.index()];
                known.evidence.insert(Evidence::EntryPoint);
                continue;
            }
            // It is no start of a method where the code of another stands or comes to stand.
            let stands = |body: BodyIndex| !has_ended(self.bodies[body.index()].end, point.time);
            if self.occupant(start).is_some_and(stands) {
                continue;
            }
            let next = starts
                .get(starts.partition_point(|&s| s <= start))
                .copied()
                .unwrap_or(u64::MAX);
            self.add(
                CodeBody {
                    clr_instance: point.clr_instance,
                    method_id: point.method_id,
                    start,
                    size: (next - start).min(FURTHEST) as u32,
                    name: point.name,
                    evidence: EvidenceSet::of(Evidence::EntryPoint),
                    begin: Start::Before(point.time),
                    end: End::Open,
                    earliest: point.time,
                    approximate: true,
                    ..CodeBody::NONE
                },
                0,
            );
        }
    }
}
