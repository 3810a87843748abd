//! The address space of a process: what its state says, by address and time.

use std::sync::Arc;

use chronosym_timeline::{AddrRange, End, Occupant, Start, VersionedMap};

use crate::body::CodeBody;
use crate::code::ProcessCode;
use crate::images::Image;
use crate::index::Index;
use crate::life::floor;
use crate::process::Process;
use crate::ranges::Ranges;
use crate::state::ProcessState;
use crate::untimed_index::UntimedIndex;

/// A process's address space, frozen or as it is now.
#[derive(Debug)]
pub(crate) struct AddressSpace {
    pub state: Arc<ProcessState>,
    pub bodies: Index,
    pub images: Index,
    pub untimed: UntimedIndex,
    /// Where code stood that was dropped since.
    pub forgotten: Arc<Ranges>,
}

impl AddressSpace {
    /// The state of a process of which nothing more is to come.
    pub fn freeze(process: &Process, mut state: ProcessState) -> Self {
        state.code.finish();
        let bodies = state.code.bodies.iter();
        let bodies = bodies.map(|body| body_occupant(process, &state.code, body));
        let images = state.images.iter();
        let images = images.map(|image| image_occupant(process, image));
        let freeze =
            |occupants: Vec<Occupant>| Index::Frozen(Box::new(VersionedMap::new(&occupants)));
        AddressSpace {
            bodies: freeze(bodies.collect()),
            images: freeze(images.collect()),
            untimed: UntimedIndex::of(&state.untimed.rows),
            forgotten: Arc::default(),
            state: Arc::new(state),
        }
    }
}

/// Where and when a body stood, as far as its own events and its containers say.
pub(crate) fn body_occupant(process: &Process, code: &ProcessCode, body: &CodeBody) -> Occupant {
    let floor = body
        .module
        .map_or(0, |m| floor(code.modules[m.index()].begin));
    occupant(
        process,
        body.start,
        body.last(),
        body.begin,
        body.end,
        floor,
    )
}

pub(crate) fn image_occupant(process: &Process, image: &Image) -> Occupant {
    occupant(process, image.base, image.last(), image.begin, image.end, 0)
}

fn occupant(
    process: &Process,
    first: u64,
    last: u64,
    begin: Start,
    end: End,
    floor: u64,
) -> Occupant {
    // `last` never lies before `first`.
    let range = AddrRange::new(first, last.max(first)).expect("ordered bounds");
    Occupant {
        not_before: floor.max(process.start.unwrap_or(0)),
        not_after: process.end.unwrap_or(u64::MAX),
        ..Occupant::new(range, begin, end)
    }
}
