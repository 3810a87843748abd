//! Traces made to take long: the time to read them grows with their size, not with its square.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chronosym::{Options, Session};
use chronosym_conformance::script::*;
use chronosym_events::{EventKey, EventSchema, Provider};
use chronosym_support::payload::{ILMap, Method};

const MANY: u64 = 24_000;

/// Does it for an eighth of [`MANY`] and for all: eight times as much may take a good deal more than eight times as long, on a busy
/// machine, but not 64 times.
fn grows<T>(run: impl Fn(u64) -> T) -> T {
    let timed = |many| {
        let start = Instant::now();
        let found = run(many);
        (start.elapsed(), found)
    };
    let runs = (0..3).map(|_| timed(MANY / 8).0);
    let few = runs.min().unwrap_or_default();
    let (took, found) = timed(MANY);
    let spare = Duration::from_millis(500);
    assert!(took < 24 * few + spare, "{few:?}, then {took:?}");
    found
}

#[test]
fn a_module_that_is_unloaded_again_and_again() {
    let answers = grows(|many| {
        let mut s = Script::default();
        s.module_load(1, 5, "/app/P.dll");
        for id in 1..=many {
            let method = Method {
                module: 5,
                ..method(id, 0x1000 + 64 * id, 64, "A")
            };
            s.load(2, 1, method);
        }
        for _ in 0..many {
            s.module_unload(3, 5, "/app/P.dll");
        }
        s.finish()
    });
    assert_eq!(answers.name(0x1040, 2), "T.A");
    assert_eq!(answers.name(0x1040, 3), "AfterUnload");
}

#[test]
fn maps_of_a_version_that_none_of_many_bodies_has() {
    let answers = grows(|many| {
        let mut s = Script::default();
        for at in 1..=many {
            s.load(2, 1, method(1, 0x1000 + 64 * at, 64, "A"));
        }
        let map = ILMap {
            id: 1,
            code_version: 77,
            ..ILMap::default()
        };
        for _ in 0..many {
            s.event(RUNTIME, 190, 1, 3, 2, &map.encode(1));
        }
        s.finish()
    });
    assert_eq!(answers.0.unbound_il_maps(), MANY);
}

#[test]
fn event_types_that_only_their_names_tell_apart() {
    let session = grows(|many| {
        let mut session = Session::new(Options::default());
        let key = EventKey::Manifest {
            provider: Provider::Name("P".into()),
            id: 1,
            version: 0,
        };
        for _ in 0..2 {
            for name in 0..many {
                let schema = EventSchema::new(key.clone()).with_name(&name.to_string());
                session.event_type(Arc::new(schema));
            }
        }
        session
    });
    assert_eq!(session.event_types().len() as u64, MANY);
}
