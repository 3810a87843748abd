//! (process, address, time) to frames: a batch compared with single calls of `Resolver` on a
//! profile-like stream of queries.
#![allow(missing_docs)]

use std::sync::Arc;

use chronosym::facts::{Action, At, Method};
use chronosym::{
    AddressQuery, Options, Position, QueryProcess, ResolvedBatch, Resolver, Session, Timeline, When,
};
use chronosym_benches::measure::measure;
use chronosym_benches::size;
use criterion::Criterion;

const PID: u32 = 7;
const METHODS: u64 = 50_000;

fn timeline() -> Arc<Timeline> {
    let mut session = Session::new(Options::default());
    for id in 0..METHODS {
        let name = format!("Method{id}");
        let method = Method::new(Action::Load, id, 0x7000_0000_0000 + id * 0x400, 0x300);
        let at = At::new(id).process(PID).thread(1);
        session.apply(at, method.named("Name.Space.Type", &*name, "void ()"));
    }
    session.finish()
}

/// Most of a few thousand addresses, again and again, and some of all.
fn queries() -> Vec<AddressQuery> {
    let mut random = 42_u64;
    let mut below = |bound: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) % bound
    };
    let query = |number| {
        let method = if below(8) == 0 {
            below(METHODS)
        } else {
            below(2_000)
        };
        AddressQuery {
            process: QueryProcess::Pid(PID),
            address: 0x7000_0000_0000 + method * 0x400 + below(4) * 0x40,
            time_ns: METHODS + number,
            position: Position::Return,
        }
    };
    (0..size(10_000_000) as u64).map(query).collect()
}

fn main() {
    let mut criterion = Criterion::default().sample_size(10).configure_from_args();
    let (timeline, queries) = (timeline(), queries());
    let count = queries.len() as u64;
    let process = timeline.find_process(PID, None).expect("the process");
    let mut resolver = Resolver::new(&timeline, None);
    let mut batch = ResolvedBatch::default();
    let mut criterion_measure = |name: &str, run: &mut dyn FnMut() -> u64| {
        measure(&mut criterion, "resolve", name, count, run)
    };
    let batched = criterion_measure("batch", &mut || {
        resolver.resolve_batch(&queries, &mut batch);
        batch.frames().len() as u64
    });
    let single = criterion_measure("single", &mut || {
        let resolve = |query: &AddressQuery| {
            let when = When::At(query.time_ns);
            let found = resolver.resolve_addresses(process, &[query.address], when, query.position);
            u64::from(found.is_some())
        };
        queries.iter().map(resolve).sum()
    });
    println!(
        "10 M queries in a batch {batched:.0} ms, singly {single:.0} ms: {:.1} times",
        single / batched
    );
}
