//! Lookups that allocate nothing: for profilers that keep bodies, not names.

use chronosym_timeline::Query;

use crate::ids::{BodyIndex, ProcessIndex};
use crate::index::Index;
use crate::resolve::AddressAt;
use crate::terms::Position;
use crate::timeline::Timeline;

/// Queries are passed on in blocks of so many.
const BLOCK: usize = 256;

impl Timeline {
    /// The code body at an address of a process, at a time in ns since the trace began.
    ///
    /// Says nothing of images and of sources without time; [`Timeline::frames`] does.
    pub fn body(
        &self,
        process: ProcessIndex,
        address: u64,
        time_ns: u64,
        position: Position,
    ) -> Option<BodyIndex> {
        let bodies = &self.space(process)?.bodies;
        let address = self.normalise(address);
        let time = AddressAt::new(process, address, time_ns, position).time;
        let find = |address| {
            let (id, _) = bodies.find(address, time)?;
            Some(BodyIndex(id.index() as u32))
        };
        match position {
            Position::Exact => find(address),
            // The call lies before the return address, unless nothing does.
            Position::Return => find(position.looked_up(address)).or_else(|| find(address)),
        }
    }

    /// As [`Timeline::body`] for many at once; answers stand where their queries do. Allocates nothing.
    ///
    /// Faster than asking one by one, the more so the more bodies there are, where queries of one process follow each other.
    ///
    /// # Panics
    ///
    /// If `answers` is not as long as `queries`.
    pub fn bodies_of_batch(&self, queries: &[AddressAt], mut answers: &mut [Option<BodyIndex>]) {
        assert_eq!(queries.len(), answers.len(), "one answer a query");
        for of_process in queries.chunk_by(|a, b| a.process == b.process) {
            for queries in of_process.chunks(BLOCK) {
                let (block, rest) = answers.split_at_mut(queries.len());
                answers = rest;
                self.bodies_of_block(queries, block);
            }
        }
    }

    /// Answers at most [`BLOCK`] queries of one process.
    fn bodies_of_block(&self, queries: &[AddressAt], answers: &mut [Option<BodyIndex>]) {
        let one = |at: &AddressAt| self.body(at.process, at.address, at.time, at.position);
        let process = queries.first().map(|at| at.process);
        let space = process.and_then(|process| self.space(process));
        let Some(Index::Frozen(map)) = space.map(|space| &space.bodies) else {
            for (answer, at) in answers.iter_mut().zip(queries) {
                *answer = one(at);
            }
            return;
        };
        let mut asked = [Query { addr: 0, time: 0 }; BLOCK];
        let mut found = [None; BLOCK];
        let (asked, found) = (&mut asked[..queries.len()], &mut found[..queries.len()]);
        for (query, at) in asked.iter_mut().zip(queries) {
            query.addr = at.position.looked_up(self.normalise(at.address));
            query.time = at.time;
        }
        map.resolve_batch(asked, found);
        for ((answer, at), id) in answers.iter_mut().zip(queries).zip(found) {
            *answer = match id {
                Some(id) => Some(BodyIndex(id.index() as u32)),
                None if at.position == Position::Return => one(at),
                None => None,
            };
        }
    }
}
