//! Compares the map, frozen and live, with the naive model: any history, queried at every edge.

use chronosym_timeline::{AddrRange, End, Id, LiveMap, Occupant, Start, VersionedMap};

use crate::choices::Choices;

#[path = "../../crates/chronosym-timeline/tests/model/judge.rs"]
mod judge;

use judge::Model;

/// More would take too long in the model, which is quadratic and queried at every edge.
const MOST: u64 = 13;

fn occupant(choices: &mut Choices<'_>, before: &[Occupant]) -> Option<Occupant> {
    let range = match choices.below(4) {
        // A range that was used before.
        0 if !before.is_empty() => before[choices.byte() as usize % before.len()].range,
        // Anywhere.
        1 => {
            let (a, b) = (choices.number(), choices.number());
            AddrRange::new(a.min(b), a.max(b))?
        }
        _ => AddrRange::sized(0x1000 + choices.below(64) * 16, 1 + choices.below(256))?,
    };
    let start = match choices.below(4) {
        0 => Start::Before(choices.number()),
        1 => Start::Unbounded,
        _ => Start::At(choices.number()),
    };
    let end = match choices.below(4) {
        0 => End::Open,
        1 => End::After(choices.number()),
        _ => End::At(choices.number()),
    };
    let mut occupant = Occupant::new(range, start, end);
    if choices.below(4) == 0 {
        occupant.not_before = choices.number();
    }
    if choices.below(4) == 0 {
        occupant.not_after = choices.number();
    }
    Some(occupant)
}

/// Frozen and live maps answer as the model does.
pub fn frozen_and_live(data: &[u8]) {
    let mut choices = Choices::new(data);
    let most = 1 + choices.below(MOST) as usize;
    let mut occupants: Vec<Occupant> = Vec::new();
    while !choices.is_done() && occupants.len() < most {
        let next = occupant(&mut choices, &occupants);
        occupants.extend(next);
    }
    let model = Model::new(&occupants);
    let mut live = LiveMap::new();
    for &occupant in &occupants {
        live.insert(Occupant {
            end: End::Open,
            not_after: u64::MAX,
            ..occupant
        });
    }
    // Ends become known later, the last first.
    for (index, occupant) in occupants.iter().enumerate().rev() {
        let id = Id::from_index(index).expect("few");
        live.set_not_after(id, occupant.not_after);
        live.set_end(id, occupant.end);
    }
    let (frozen, live) = (VersionedMap::new(&occupants), live.snapshot());
    for (id, rectangle) in frozen.ids().zip(&model.rectangles) {
        assert_eq!(
            frozen.lifetime(id),
            rectangle.lifetime,
            "{id:?} of {occupants:#?}"
        );
    }
    let times = model.times();
    for address in model.addresses() {
        let expected = model.occupants(address);
        for &time in &times {
            let (answer, nearest) = (model.lookup(address, time), judge::nearest(&expected, time));
            let context = || format!("{address:#x} at {time} of {occupants:#?}");
            assert_eq!(frozen.lookup(address, time), answer, "{}", context());
            assert_eq!(live.lookup(address, time).id, answer, "{}", context());
            for near in [
                frozen.neighbours(address, time),
                live.neighbours(address, time),
            ] {
                assert_eq!(judge::bounds(&near), nearest, "next to {}", context());
            }
        }
    }
}
