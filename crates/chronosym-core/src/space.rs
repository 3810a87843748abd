//! Address spaces: the state of a process by address and time.

use std::sync::Arc;

use chronosym_timeline::{AddrRange, End, Occupant, SegmentMap, Start, VersionedMap};

use crate::body::CodeBody;
use crate::code::ProcessCode;
use crate::images::Image;
use crate::index::Index;
use crate::lifetime::floor;
use crate::process::Process;
use crate::ranges::ForgottenCode;
use crate::state::ProcessState;
use crate::untimed_index::UntimedIndex;

/// The address space of a process, frozen or live.
#[derive(Debug)]
pub(crate) struct AddressSpace {
    pub state: Arc<ProcessState>,
    pub bodies: Index,
    pub images: Index,
    pub untimed: UntimedIndex,
    /// Addresses of code that a live session has dropped.
    pub forgotten: Arc<ForgottenCode>,
}

impl AddressSpace {
    /// Builds the maps of a process whose state is final, for few lookups or many.
    pub fn freeze(process: &Process, mut state: ProcessState, few_lookups: bool) -> Self {
        state.code.finish();
        let of_body = |body| body_occupant(process, &state.code, body);
        let mut bodies = Vec::with_capacity(state.code.bodies.count());
        bodies.extend(state.code.bodies.iter().map(of_body));
        let images = state.images.iter();
        let images = images.map(|image| image_occupant(process, image));
        let freeze = |occupants: Vec<Occupant>| match few_lookups {
            true => Index::Segments(Box::new(SegmentMap::new(&occupants))),
            false => Index::Frozen(Box::new(VersionedMap::new(&occupants))),
        };
        AddressSpace {
            bodies: freeze(bodies),
            images: freeze(images.collect()),
            untimed: UntimedIndex::of(&state.untimed.symbols),
            forgotten: process.forgotten.clone(),
            state: Arc::new(state),
        }
    }
}

/// Returns the range and lifetime of a body by its own events and its containers.
pub(crate) fn body_occupant(process: &Process, code: &ProcessCode, body: &CodeBody) -> Occupant {
    let floor = body
        .module
        .map_or(0, |m| floor(code.modules[m.index()].loaded));
    occupant(
        process,
        body.start,
        body.last(),
        body.loaded,
        body.end,
        floor,
    )
}

pub(crate) fn image_occupant(process: &Process, image: &Image) -> Occupant {
    occupant(
        process,
        image.base,
        image.last(),
        image.loaded,
        image.end,
        0,
    )
}

fn occupant(
    process: &Process,
    first: u64,
    last: u64,
    loaded: Start,
    end: End,
    floor: u64,
) -> Occupant {
    // `last` is never below `first`.
    let range = AddrRange::new(first, last.max(first)).expect("ordered bounds");
    Occupant {
        not_before: floor.max(process.start.unwrap_or(0)),
        not_after: process.end.unwrap_or(u64::MAX),
        ..Occupant::new(range, loaded, end)
    }
}
