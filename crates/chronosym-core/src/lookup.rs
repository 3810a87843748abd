//! Lookups that allocate nothing, for profilers that store bodies instead of names.

use chronosym_timeline::Query;

use crate::ids::{BodyIndex, ProcessIndex};
use crate::index::Index;
use crate::resolve::{AddressAt, CodeAt};
use crate::terms::Position;
use crate::timeline::Timeline;

/// Batches are processed in blocks of this size.
const BLOCK: usize = 256;

impl Timeline {
    /// Returns the code body at an address of a process, at a time in ns since the trace began.
    ///
    /// [`Timeline::frames`] also has images, untimed symbols and approximate answers; where it has
    /// a body that was alive, this is the same.
    pub fn body(
        &self,
        process: ProcessIndex,
        address: u64,
        time_ns: u64,
        position: Position,
    ) -> Option<BodyIndex> {
        let space = self.space(process)?;
        let bodies = &space.bodies;
        let address = self.normalise(address);
        let time = AddressAt::new(process, address, time_ns, position).time;
        let find = |address| {
            let id = bodies.id(address, time)?;
            Some(BodyIndex(id.index() as u32))
        };
        match position {
            Position::Exact => find(address),
            // The call precedes the return address, unless no code does.
            Position::Return => {
                let call = position.looked_up(address);
                find(call).or_else(|| {
                    let before = self.locate_exact(process, space, call, time).code;
                    matches!(before, CodeAt::Nothing(_)).then(|| find(address))?
                })
            }
        }
    }

    /// Looks up many addresses as [`Timeline::body`] does; the answer to a query has its index.
    /// Allocates nothing.
    ///
    /// Faster than single lookups if queries of one process are adjacent, increasingly so with the
    /// number of bodies.
    ///
    /// # Panics
    ///
    /// If `answers` and `queries` differ in length.
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

    /// Looks up at most [`BLOCK`] addresses of one process.
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
        let mut keys = [Query { addr: 0, time: 0 }; BLOCK];
        let mut ids = [None; BLOCK];
        let (keys, ids) = (&mut keys[..queries.len()], &mut ids[..queries.len()]);
        for (query, at) in keys.iter_mut().zip(queries) {
            query.addr = at.position.looked_up(self.normalise(at.address));
            query.time = at.time;
        }
        map.resolve_batch(keys, ids);
        for ((answer, at), id) in answers.iter_mut().zip(queries).zip(ids) {
            *answer = match id {
                Some(id) => Some(BodyIndex(id.index() as u32)),
                None if at.position == Position::Return => one(at),
                None => None,
            };
        }
    }
}
