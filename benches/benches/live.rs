//! Live sessions beside frozen ones: memory a method, the first publish of many methods, lookups,
//! and publishing one new method in sessions of several sizes. Prints the ratios.
#![allow(missing_docs)]

use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use allocation_counter::measure;
use chronosym::facts::{Action, At, Fact, Image, Method};
use chronosym::{AddressQuery, LiveSession, Options, Position, QueryProcess, Session, Timeline};
use chronosym_benches::workload::profile_like;

const PID: u32 = 7;
const BASE: u64 = 0x7000_0000_0000;
/// Bytes from one method to the next.
const STEP: u64 = 0x200;

fn size(full: usize) -> u64 {
    chronosym_benches::size(full) as u64
}

fn at(pid: u32, time_ns: u64) -> At {
    At::new(time_ns).process(pid).thread(1)
}

/// Loads methods with names of their own, ten in a type, each at another address.
fn load(pid: u32, methods: Range<u64>, apply: impl FnMut(At, Fact<'_>)) {
    load_at(pid, methods, |id| id, apply);
}

/// Loads methods as [`load`], each at the address with the number that `place` returns.
fn load_at(
    pid: u32,
    methods: Range<u64>,
    place: impl Fn(u64) -> u64,
    mut apply: impl FnMut(At, Fact<'_>),
) {
    for id in methods {
        let (namespace, name) = (format!("Name.Space.Type{}", id / 10), format!("Method{id}"));
        let method = Method::new(Action::Load, id, BASE + place(id) * STEP, 0x180);
        let method = method.named(&*namespace, &*name, "void  (int32)");
        apply(at(pid, id), method.into());
    }
}

/// Returns what `make` returns, its duration, and the bytes that it keeps allocated.
fn timed<T>(make: impl FnOnce() -> T) -> (T, Duration, i64) {
    let (mut made, mut duration) = (None, Duration::ZERO);
    let allocated = measure(|| {
        let begin = Instant::now();
        made = Some(make());
        duration = begin.elapsed();
    });
    let made = made.expect("it was made");
    (made, duration, allocated.bytes_current)
}

fn frozen(methods: u64) -> Arc<Timeline> {
    let mut session = Session::new(Options::default());
    load(PID, 0..methods, |at, fact| session.apply(at, fact));
    session.finish()
}

fn live(methods: u64) -> LiveSession {
    let mut live = LiveSession::new();
    load(PID, 0..methods, |at, fact| live.apply(at, fact));
    live.advance(methods);
    live.publish();
    live
}

/// Returns the time of a lookup of any address, in ns: the tenth percentile of short passes, most
/// of which no other program interrupts. With several methods an address, at any time.
fn lookup(timeline: &Timeline, methods: u64, places: u64) -> f64 {
    let process = timeline.find_process(PID, None).expect("the process");
    let mut random = 42_u64;
    let mut below = |most| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % most
    };
    let queries: Vec<(u64, u64)> = (0..size(1_000_000))
        .map(|_| {
            let address = BASE + below(places * STEP);
            (
                address,
                if places < methods {
                    below(methods)
                } else {
                    methods
                },
            )
        })
        .collect();
    let pass = |queries: &[(u64, u64)]| {
        let begin = Instant::now();
        for &(address, time) in queries {
            black_box(timeline.body(process, address, time, Position::Exact));
        }
        begin.elapsed().as_nanos() as f64 / queries.len() as f64
    };
    let mut times: Vec<f64> = (0..4)
        .flat_map(|_| queries.chunks(1_000).map(pass))
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 10]
}

/// Prints the times of lookups in sessions of a number of methods and methods an address.
fn lookups(methods: u64, versions: u64) {
    let places = methods / versions;
    let mut session = Session::new(Options::default());
    let place = |id| id % places;
    load_at(PID, 0..methods, place, |at, fact| session.apply(at, fact));
    let frozen_ns = lookup(&session.finish(), methods, places);
    let mut session = LiveSession::new();
    load_at(PID, 0..methods, place, |at, fact| session.apply(at, fact));
    session.publish();
    let live_ns = lookup(&session.reader().timeline(), methods, places);
    println!(
        "lookup, {methods} methods, {versions} an address: {frozen_ns:.0} ns frozen, {live_ns:.0} ns live: {:.1} times",
        live_ns / frozen_ns
    );
}

/// Prints the times of lookups if as many methods as possible are new since the live session built
/// its last frozen map: every 17th.
fn lookups_after_changes(methods: u64) {
    let unchanged = methods / 17 * 16;
    let place = |id| match id < unchanged {
        true => id + id / 16,
        false => (id - unchanged) * 17 + 16,
    };
    let mut frozen = Session::new(Options::default());
    load_at(PID, 0..methods, place, |at, fact| frozen.apply(at, fact));
    let frozen_ns = lookup(&frozen.finish(), methods, methods);
    let mut live = LiveSession::new();
    for part in [0..unchanged, unchanged..methods] {
        load_at(PID, part, place, |at, fact| live.apply(at, fact));
        live.publish();
    }
    let live_ns = lookup(&live.reader().timeline(), methods, methods);
    println!(
        "lookup, {methods} methods, every 17th new: {frozen_ns:.0} ns frozen, {live_ns:.0} ns live: {:.1} times",
        live_ns / frozen_ns
    );
}

/// Returns the median time to load a method and to publish it, in µs.
fn publish_one(live: &mut LiveSession, methods: u64) -> f64 {
    let mut times = publishes(live, methods, 101);
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}

/// Returns the time to load a method and to publish it, for each of some methods.
fn publishes(live: &mut LiveSession, methods: u64, count: u64) -> Vec<Duration> {
    (0..count)
        .map(|n| {
            let next = methods + n;
            let begin = Instant::now();
            load(PID, next..next + 1, |at, fact| live.apply(at, fact));
            live.publish();
            begin.elapsed()
        })
        .collect()
}

/// Returns the least time of a batch of queries as in a profile, in ms.
fn batch(timeline: &Arc<Timeline>, methods: u64) -> f64 {
    let query = |(method, place)| AddressQuery {
        process: QueryProcess::Pid(PID),
        address: BASE + method * STEP + place * 0x40,
        time_ns: methods,
        position: Position::Return,
    };
    let samples = profile_like(methods.min(50_000)).take(chronosym_benches::size(10_000_000));
    let queries: Vec<AddressQuery> = samples.map(query).collect();
    let mut resolver = chronosym::Resolver::new(timeline, None);
    let mut found = chronosym::ResolvedBatch::default();
    let pass = |_| {
        let begin = Instant::now();
        resolver.resolve_batch(&queries, &mut found);
        begin.elapsed().as_secs_f64() * 1e3
    };
    (0..4).map(pass).fold(f64::INFINITY, f64::min)
}

fn main() {
    let methods = size(1_000_000);
    for (methods, versions) in [
        (10_000, 1),
        (100_000, 1),
        (1_000_000, 1),
        (1_000_000, 2),
        (1_000_000, 50),
    ] {
        lookups(size(methods), versions);
    }
    lookups_after_changes(size(100_000));
    lookups_after_changes(methods);
    let (timeline, build, frozen_bytes) = timed(|| frozen(methods));
    drop(timeline);
    let (mut session, publish, live_bytes) = timed(|| live(methods));
    let timeline = session.reader().timeline();
    let per = |bytes: i64| bytes as f64 / methods as f64;
    let [build, publish] = [build, publish].map(|it| it.as_secs_f64());
    println!(
        "{methods} methods: events to timeline {build:.2} s frozen, {publish:.2} s live: {:.1} times",
        publish / build
    );
    println!(
        "memory a method: {:.0} B frozen, {:.0} B live",
        per(frozen_bytes),
        per(live_bytes)
    );
    println!(
        "10 M queries in a batch: {:.0} ms live",
        batch(&timeline, methods)
    );
    drop(timeline);
    println!("publish of a method:");
    println!(
        "  {:.0} µs with {methods} methods",
        publish_one(&mut session, methods)
    );
    // Enough for the next frozen map.
    let count = methods / 10;
    let times = publishes(&mut session, 2 * methods, count);
    let longest = times.iter().max().map_or(0.0, Duration::as_secs_f64);
    let mean = times.iter().sum::<Duration>().as_secs_f64() / count as f64;
    println!(
        "  of {count} more, {:.0} µs on average, {:.0} ms at most",
        mean * 1e6,
        longest * 1e3
    );
    drop(session);

    let mut session = live(size(10_000));
    println!(
        "  {:.0} µs with {} methods",
        publish_one(&mut session, size(10_000)),
        size(10_000)
    );
    for image in 0..1_000 {
        let path = format!("/lib/image{image}.so");
        let first = 0x1000_0000 + image * 0x10_0000;
        session.apply(
            at(PID, 0),
            Image::new(Action::Load, first, 0x8_0000, &*path),
        );
    }
    session.publish();
    println!(
        "  {:.0} µs with 1,000 images",
        publish_one(&mut session, size(20_000))
    );

    let mut session = live(size(10_000));
    for pid in 0..5_000 {
        load(1000 + pid, 0..2, |at, fact| session.apply(at, fact));
    }
    session.publish();
    println!(
        "  {:.0} µs with 5,000 processes",
        publish_one(&mut session, size(10_000))
    );
}
