//! Durations as weights of stacks.

use std::sync::Arc;

use chronosym::runtime::{keep_for_durations, weigh_by_duration};
use chronosym::{EventSelector, Options, SampleSelection, Weight};
use chronosym_support::payload::Payload;

use crate::compilations::{load, start};
use crate::exceptions::thrown;
use crate::trace::{RUNTIME, Trace, all, read};

#[test]
fn durations_weigh_the_stacks_of_starts() {
    let selector = |id| EventSelector::parse(&format!("{RUNTIME}/{id}")).unwrap();
    let weights = |events: Vec<EventSelector>| {
        let mut trace = Trace::new();
        let wait = Payload::new().u8(0).u16(7).finish();
        trace.event_with(&[0x10], (81, 1), (100, 1), &wait);
        trace.event_with(&[0x10], (81, 1), (110, 2), &wait);
        trace.event((91, 0), (130, 1), Payload::new().u8(0).u16(7));
        trace.event_with(&[0x20], (145, 1), (200, 1), &start(1, 1, "M"));
        trace.event_with(&[0x30], (80, 1), (205, 1), &thrown("A", "", 0).finish());
        trace.event((143, 1), (250, 1), load(1, 1, 8, "M"));
        let mut options = Options::from(SampleSelection::Events(events));
        keep_for_durations(&mut options);
        let mut timeline = read(&trace.writer.finish(), options);
        weigh_by_duration(Arc::get_mut(&mut timeline).unwrap());
        let mut weights = Vec::new();
        timeline.for_each_weighed_sample(&all(), |it| weights.push((it.time_ns, it.weight)));
        weights
    };
    assert_eq!(
        weights(vec![selector(81), selector(145), selector(80)]),
        [
            (100, Weight::Ns(30)),
            (110, Weight::Unknown),
            (200, Weight::Ns(50)),
            (205, Weight::One),
        ]
    );
    assert_eq!(weights(vec![selector(80)]), [(205, Weight::One)]);
    // All events of the provider have no common unit: each counts once.
    let provider = EventSelector::parse(RUNTIME).unwrap();
    assert!(
        weights(vec![provider])
            .iter()
            .all(|(_, weight)| *weight == Weight::One)
    );
}
