//! Lookups that allocate nothing: for profilers that keep bodies, not names.

use chronosym_timeline::Query;

use crate::body::BodyIndex;
use crate::frame::Position;
use crate::index::Index;
use crate::process::ProcessIndex;
use crate::timeline::Timeline;

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
        let bodies = &self.spaces[process.index()].bodies;
        let address = self.address_mask.apply(address);
        let find = |address| {
            bodies
                .find(address, time_ns)
                .map(|(id, _)| BodyIndex(id.index() as u32))
        };
        match position {
            Position::Exact => find(address),
            // The call lies before the return address, unless nothing does.
            Position::Return => find(position.looked_up(address)).or_else(|| find(address)),
        }
    }

    /// As [`Timeline::body`] for many addresses of one process at once, as they are; answers stand where their queries do.
    ///
    /// Faster than asking one by one, the more so the more bodies there are; a long list is answered on all processors.
    ///
    /// # Panics
    ///
    /// If `answers` is not as long as `queries`.
    pub fn bodies_of_batch(
        &self,
        process: ProcessIndex,
        queries: &[Query],
        answers: &mut [Option<BodyIndex>],
    ) {
        assert_eq!(queries.len(), answers.len(), "one answer a query");
        match &self.spaces[process.index()].bodies {
            Index::Frozen(map) => {
                let mut ids = vec![None; queries.len()];
                map.resolve_batch(queries, &mut ids);
                for (answer, id) in answers.iter_mut().zip(ids) {
                    *answer = id.map(|id| BodyIndex(id.index() as u32));
                }
            }
            Index::Live(_) => {
                for (query, answer) in queries.iter().zip(answers) {
                    *answer = self.body(process, query.addr, query.time, Position::Exact);
                }
            }
        }
    }
}
