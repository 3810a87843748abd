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
use chronosym_benches::workload::profile_like;
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

fn queries() -> Vec<AddressQuery> {
    let query = |(number, (method, place))| AddressQuery {
        process: QueryProcess::Pid(PID),
        address: 0x7000_0000_0000 + method * 0x400 + place * 0x40,
        time_ns: METHODS + number,
        position: Position::Return,
    };
    let samples = (0..size(10_000_000) as u64).zip(profile_like(METHODS));
    samples.map(query).collect()
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
        "{} queries in a batch {batched:.0} ms, singly {single:.0} ms: {:.1} times",
        queries.len(),
        single / batched
    );
}
