//! Traces made to take long: the time to read them grows with their size, not with its square.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chronosym::{Options, Session};
use chronosym_conformance::script::*;
use chronosym_events::{EventKey, EventSchema, Provider};
use chronosym_support::payload::{ILMap, Method};

const MANY: u64 = 60_000;

/// A hundred times what it takes, and a fraction of what the square would.
const LONG: Duration = Duration::from_secs(20);

fn answers(script: Script) -> Answers {
    let start = Instant::now();
    let answers = script.finish();
    let took = start.elapsed();
    assert!(took < LONG, "{took:?}");
    answers
}

#[test]
fn a_module_that_is_unloaded_again_and_again() {
    let mut s = Script::default();
    s.module_load(1, 5, "/app/P.dll");
    for id in 1..=MANY {
        let method = Method {
            module: 5,
            ..method(id, 0x1000 + 64 * id, 64, "A")
        };
        s.load(2, 1, method);
    }
    for _ in 0..MANY {
        s.module_unload(3, 5, "/app/P.dll");
    }
    let answers = answers(s);
    assert_eq!(answers.name(0x1040, 2), "T.A");
    assert_eq!(answers.name(0x1040, 3), "AfterUnload");
}

#[test]
fn maps_of_a_version_that_none_of_many_bodies_has() {
    let mut s = Script::default();
    for at in 1..=MANY {
        s.load(2, 1, method(1, 0x1000 + 64 * at, 64, "A"));
    }
    let map = ILMap {
        id: 1,
        code_version: 77,
        ..ILMap::default()
    };
    for _ in 0..MANY {
        s.event(RUNTIME, 190, 1, 3, 2, &map.encode(1));
    }
    assert_eq!(answers(s).0.unbound_il_maps(), MANY);
}

#[test]
fn event_types_that_only_their_names_tell_apart() {
    let start = Instant::now();
    let mut session = Session::new(Options::default());
    let key = EventKey::Manifest {
        provider: Provider::Name("P".into()),
        id: 1,
        version: 0,
    };
    for _ in 0..2 {
        for name in 0..MANY {
            let schema = EventSchema::new(key.clone()).with_name(&name.to_string());
            session.event_type(Arc::new(schema));
        }
    }
    assert_eq!(session.event_types().len() as u64, MANY);
    let took = start.elapsed();
    assert!(took < LONG, "{took:?}");
}
