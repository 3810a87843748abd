//! The number of allocations follows the new data in a trace, not its number of samples.

use allocation_counter::measure;
use chronosym::facts::At;
use chronosym::{Filter, LiveSession, Options, Payload, Session, StackId, Timeline};
use chronosym_conformance::script;
use chronosym_events::{EventKey, EventSchema, PointerSize, Provider};
use chronosym_support::nettrace::NettraceWriter;
use std::sync::Arc;

const STACKS: u64 = 200;

/// Returns the `i`th stack; all stacks are known beforehand.
fn stack(i: u64) -> Vec<u64> {
    (0..10).map(|depth| 0x1000 * (1 + i * depth)).collect()
}

fn sampler() -> Arc<EventSchema> {
    Arc::new(EventSchema::new(EventKey::Manifest {
        provider: Provider::SampleProfiler,
        id: 0,
        version: 0,
    }))
}

/// Pushes samples `from..to` of known stacks and threads; returns the number of allocations.
fn push(session: &mut Session, stacks: &[StackId], from: u64, to: u64) -> u64 {
    let id = session.event_type(sampler());
    let measured = measure(|| {
        for i in from..to {
            let mut at = At::new(i * 1000).process(1).thread(i % 4);
            at.writer = Some(9);
            let payload = Payload {
                pointer_size: PointerSize::Eight,
                bytes: &[2, 0, 0, 0],
            };
            let stack = stacks[(i % STACKS) as usize];
            session.push(id, at, payload, Some(stack));
        }
    });
    measured.count_total
}

fn session() -> (Session, Vec<StackId>) {
    let mut session = Session::new(Options::default());
    let stacks = (0..STACKS).map(|i| session.intern(stack(i).into_iter()).expect("a stack"));
    let stacks = stacks.collect();
    (session, stacks)
}

#[test]
fn samples_of_known_stacks_cost_the_growth_of_the_log_alone() {
    let (mut session, stacks) = session();
    let first = push(&mut session, &stacks, 0, 10_000);
    assert!(first > 0, "the first samples make what the rest uses");
    let more = push(&mut session, &stacks, 10_000, 210_000);
    // The log grows by doubling or in chunks of many samples.
    assert!(more <= 64, "200,000 samples allocated {more} times");
    let timeline = session.finish();
    assert_eq!(timeline.samples().len(), 210_000);
}

#[test]
fn a_profile_allocates_by_stack_not_by_sample() {
    let profile = |samples| {
        let (mut session, stacks) = session();
        push(&mut session, &stacks, 0, samples);
        let timeline = session.finish();
        let measured = measure(|| {
            let profile = timeline.profile(&Filter::default(), None);
            assert_eq!(profile.samples(), samples);
        });
        measured.count_total
    };
    let (short, long) = (profile(20_000), profile(200_000));
    assert!(long <= short + 16, "{short}, then {long}");
}

#[test]
fn reading_allocates_by_region_and_stack_not_by_event() {
    let trace = |samples: u64| {
        let mut writer = NettraceWriter::v4();
        let sample = writer.event_type("Microsoft-DotNETCore-SampleProfiler", 0, 0);
        for i in 0..samples {
            writer.event(
                sample,
                i as i64,
                1 + i % 4,
                &stack(i % STACKS),
                &[2, 0, 0, 0],
            );
        }
        writer.finish()
    };
    let read = |bytes: &[u8]| -> (u64, Arc<Timeline>) {
        let mut session = Session::new(Options::default());
        let measured = measure(|| {
            chronosym::source::nettrace::read(bytes, &mut session).expect("a trace");
        });
        (measured.count_total, session.finish())
    };
    let (short, long) = (trace(20_000), trace(200_000));
    let ((short, _), (long, timeline)) = (read(&short), read(&long));
    assert_eq!(timeline.samples().len(), 200_000);
    assert!(long <= short + 100, "{short}, then {long}");
}

/// Loads and unloads methods that live for 4 µs each, and forgets ended ones after every
/// thousandth. Returns the peak size in bytes.
fn churn(methods: u64) -> u64 {
    let schema = |id| {
        Arc::new(EventSchema::new(EventKey::Manifest {
            provider: Provider::Runtime,
            id,
            version: 2,
        }))
    };
    let schemas = [schema(143), schema(144)];
    let measured = measure(|| {
        let mut live = LiveSession::new();
        let types = [0, 1].map(|i: usize| live.event_type(schemas[i].clone()));
        for n in 0..methods {
            for (i, id) in [(0, n), (1, n.wrapping_sub(4))] {
                let start = 0x1_0000 + id % 64 * 0x100;
                let payload = Payload {
                    pointer_size: PointerSize::Eight,
                    bytes: &script::method(id, start, 0x80, "Churn").encode(2),
                };
                if id <= n {
                    let at = At::new(n * 1000).process(1).thread(1);
                    live.push(types[i], at, payload);
                }
            }
            if n % 1000 == 999 {
                live.advance(n * 1000);
                live.forget_before((n - 10) * 1000);
            }
        }
    });
    measured.bytes_max
}

#[test]
fn a_live_session_that_forgets_does_not_grow() {
    let (short, long) = (churn(10_000), churn(60_000));
    assert!(long <= short + short / 4, "{short} bytes, then {long}");
}

/// Returns the number of allocations per published load in a live session with this many methods.
fn publishing(methods: u64) -> u64 {
    const MORE: u64 = 256;
    let schema = Arc::new(EventSchema::new(EventKey::Manifest {
        provider: Provider::Runtime,
        id: 143,
        version: 2,
    }));
    let mut live = LiveSession::new();
    let event_type = live.event_type(schema.clone());
    let load = |live: &mut LiveSession, n: u64| {
        let payload = Payload {
            pointer_size: PointerSize::Eight,
            bytes: &script::method(n, 0x1_0000 + n * 0x100, 0x80, "Loaded").encode(2),
        };
        live.push(event_type, At::new(n * 1000).process(1).thread(1), payload);
    };
    (0..methods).for_each(|n| load(&mut live, n));
    live.publish();
    let measured = measure(|| {
        for n in methods..methods + MORE {
            load(&mut live, n);
            live.publish();
        }
    });
    measured.bytes_total / MORE
}

#[test]
fn publishing_takes_time_linear_in_the_changes() {
    let (few, many) = (publishing(1 << 11), publishing(1 << 15));
    assert!(many <= few * 3 / 2, "{few} bytes, then {many}");
}
