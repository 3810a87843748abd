//! Traces crafted to take long: the time to read them is linear in their size.

use std::sync::Arc;
use std::time::Duration;

use chronosym::{Action, Options, Session, facts};
use chronosym_conformance::script::*;
use chronosym_events::{EventKey, EventSchema, Provider};
use chronosym_support::growth::{Size, Stopwatch, assert_growth};
use chronosym_support::payload::{ILMap, Method};

const MANY: u64 = 24_000;

/// Runs it for an eighth of [`MANY`] and for all: eight times as much may take up to 24 times the
/// processor time, for caches; 64 times would be quadratic.
fn grows<T>(run: impl Fn(u64) -> T) -> T {
    let mut found = None;
    assert_growth("crafted trace", 24.0, Duration::from_millis(500), |size| {
        let watch = Stopwatch::start();
        let result = run(if size == Size::Small { MANY / 8 } else { MANY });
        let used = watch.used();
        found = Some(result);
        used
    });
    found.expect("it ran")
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
fn a_process_that_ends_again_and_again() {
    let timeline = grows(|many| {
        let mut session = Session::new(Options::default());
        let at = |time| facts::At::new(time).process(7).thread(1);
        let code = |action, id| facts::Method::new(action, id, 0x1000 + 64 * id, 64);
        for id in 1..=many {
            session.apply(at(1), code(Action::Load, id));
            session.apply(at(1), facts::Module::new(Action::Load, id, "/app/P.dll"));
        }
        for time in 0..many {
            session.apply(at(2 + 2 * time), facts::Process::new(Action::Unload, ""));
            // A rundown states that it was still there: it ends once more.
            session.apply(at(3 + 2 * time), code(Action::DCEnd, 1 + time % 2));
        }
        session.apply(at(2 + 2 * many), facts::Process::new(Action::Unload, ""));
        session.finish()
    });
    let process = timeline.find_process(7, None).expect("it is there");
    let ends: Vec<_> = timeline
        .bodies(process)
        .map(|body| body.lifetime.to)
        .collect();
    assert_eq!(ends.len() as u64, MANY);
    assert_eq!(ends[..3], [2 * MANY, 2 * MANY + 2, 2]);
}

#[test]
fn event_types_that_differ_only_in_name() {
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
