//! Precompiled methods known by their entry point only (rule 15).

use chronosym_timeline::{End, Start};
use chronosym_types::hash::HashMap;

use super::ProcessCode;
use crate::body::CodeBody;
use crate::evidence::{Evidence, EvidenceSet};
use crate::ids::BodyIndex;
use crate::lifetime::has_ended;

impl ProcessCode {
    /// Rule 15: gives an extent to precompiled methods known by their entry point only.
    pub(super) fn place_entry_points(&mut self) {
        // 95 % of precompiled methods are shorter. Samples further on are mostly in a method called
        // before the recording started: with 4 KiB, 7,494 of 7,530 such frames of an attached
        // recording were wrong.
        const MAX_SIZE: u64 = 1024;
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
        let by_start: HashMap<_, _> = self
            .bodies
            .indexed()
            .map(|(index, b)| {
                (
                    (b.clr_instance, b.method_id, b.start),
                    BodyIndex(index as u32),
                )
            })
            .collect();
        // An entry point of 0 is invalid: the method had no code yet.
        for (start, point) in points.into_iter().filter(|&(start, _)| start != 0) {
            if let Some(&body) = by_start.get(&(point.clr_instance, point.method_id, start)) {
                let body = &mut self.bodies[body.index()];
                body.evidence.insert(Evidence::EntryPoint);
                continue;
            }
            // An address inside other code, now or later, is not the start of a method.
            let is_alive = |body: BodyIndex| !has_ended(self.bodies[body.index()].end, point.time);
            if self.occupant(start).is_some_and(is_alive) {
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
                    size: (next - start).min(MAX_SIZE) as u32,
                    name: point.name,
                    evidence: EvidenceSet::of(Evidence::EntryPoint),
                    loaded: Start::Before(point.time),
                    end: End::Open,
                    confirmed: point.time,
                    earliest: point.time,
                    approximate: true,
                    ..CodeBody::NONE
                },
                0,
            );
        }
    }
}
