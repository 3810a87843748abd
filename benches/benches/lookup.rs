//! (address, time) → body: the frozen map, in single lookups and in blocks, and its peers with the
//! same bodies and streams, batches, building, and the live map. Prints the ratios last.
#![allow(missing_docs)]

use std::cell::Cell;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use chronosym_benches::peers::{BTree, Coi, Iset, Lap, Peer, Sorted, Tree, versioned_map};
use chronosym_benches::size;
use chronosym_benches::workload::{self, Body};
use chronosym_timeline::{AddrRange, End, LiveMap, Occupant, Query, Start, VersionedMap};
use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, Criterion, Throughput};

/// Lookups in an iteration.
const BLOCK: usize = 1000;
/// Queries of a stream: more than the caches hold.
const STREAM: usize = 1 << 20;

/// The first ones are ours.
const NAMES: [&str; 9] = [
    "versioned_map",
    "resolve_batch",
    "live_map",
    "btreemap",
    "binary_search",
    "coitrees",
    "rust-lapper",
    "intervaltree",
    "iset",
];

const OURS: usize = 3;

/// A scenario, and nanoseconds a lookup in the order of `NAMES`.
type Row = (String, Vec<f64>);

fn measure(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    stream: &[Query],
    mut ask: impl FnMut(&[Query]) -> u64,
) -> f64 {
    let best = Cell::new(f64::NAN);
    // Goes on through the stream from iteration to iteration, so that a short stream does not make
    // for warm caches.
    let mut next = 0;
    group.throughput(Throughput::Elements(BLOCK as u64));
    group.bench_function(name, |bencher| {
        bencher.iter_custom(|iterations| {
            let begin = Instant::now();
            for _ in 0..iterations {
                let block = stream.get(next..next + BLOCK).unwrap_or_else(|| {
                    next = 0;
                    &stream[..BLOCK.min(stream.len())]
                });
                next += block.len();
                black_box(ask(block));
            }
            let elapsed = begin.elapsed();
            best.set(
                best.get()
                    .min(elapsed.as_nanos() as f64 / (iterations * BLOCK as u64) as f64),
            );
            elapsed
        });
    });
    best.get()
}

/// The bodies and streams for all structures, and the results.
struct Scenario<'a> {
    name: String,
    streams: &'a [(&'a str, Vec<Query>)],
    figures: Vec<Vec<f64>>,
}

impl Scenario<'_> {
    fn ask(&mut self, criterion: &mut Criterion, mut ask: impl FnMut(&[Query]) -> u64) {
        for ((stream, queries), figures) in self.streams.iter().zip(&mut self.figures) {
            let mut group = criterion.benchmark_group(format!("{}/{stream}", self.name));
            figures.push(measure(&mut group, NAMES[figures.len()], queries, &mut ask));
            group.finish();
        }
    }
}

/// One after the other.
fn each(peer: &impl Peer) -> impl FnMut(&[Query]) -> u64 {
    |queries| {
        let found = |query: &Query| peer.lookup(query.addr, query.time).map_or(0, u64::from);
        queries
            .iter()
            .fold(0, |sum, query| sum.wrapping_add(found(query)))
    }
}

/// A block at once, on one thread.
fn batch(map: &VersionedMap) -> impl FnMut(&[Query]) -> u64 {
    let mut answers = vec![None; BLOCK];
    move |queries| {
        let answers = &mut answers[..queries.len()];
        map.resolve_batch(queries, answers);
        let found = answers.iter().flatten().map(|id| id.index() as u64);
        found.fold(0, u64::wrapping_add)
    }
}

fn occupant(body: &Body) -> Occupant {
    let range = AddrRange::new(body.start, body.last).expect("not empty");
    Occupant::new(range, Start::At(body.from), End::At(body.to))
}

fn live_map(bodies: &[Body]) -> LiveMap {
    let mut live = LiveMap::new();
    for body in bodies {
        live.insert(occupant(body));
    }
    live
}

fn print_bytes(name: &str, map: &VersionedMap) {
    let bytes = map.memory_bytes() as f64 / map.len() as f64;
    println!("{name}: {bytes:.1} bytes a body");
}

fn scenario(
    criterion: &mut Criterion,
    name: &str,
    bodies: &[Body],
    streams: &[(&str, Vec<Query>)],
    rows: &mut Vec<Row>,
) {
    let mut scenario = Scenario {
        name: name.to_owned(),
        streams,
        figures: vec![Vec::new(); streams.len()],
    };
    // One after the other, so that only one is in memory.
    let map = versioned_map(bodies);
    print_bytes(name, &map);
    scenario.ask(criterion, each(&map));
    scenario.ask(criterion, batch(&map));
    drop(map);
    let mut live = live_map(bodies);
    let snapshot = live.snapshot();
    let bytes = live.memory_bytes() as f64 / live.len() as f64;
    println!("{name}: {bytes:.1} bytes a body in a live map");
    scenario.ask(criterion, |queries| {
        let found = |query: &Query| snapshot.lookup(query.addr, query.time).id;
        let found = queries.iter().filter_map(found).map(|id| id.index() as u64);
        found.fold(0, u64::wrapping_add)
    });
    drop((live, snapshot));
    scenario.ask(criterion, each(&BTree::new(bodies)));
    scenario.ask(criterion, each(&Sorted::new(bodies)));
    scenario.ask(criterion, each(&Coi::new(bodies)));
    scenario.ask(criterion, each(&Lap::new(bodies)));
    scenario.ask(criterion, each(&Tree::new(bodies)));
    scenario.ask(criterion, each(&Iset::new(bodies)));
    for ((stream, _), figures) in streams.iter().zip(scenario.figures) {
        rows.push((format!("{name}/{stream}"), figures));
    }
}

fn lookups(criterion: &mut Criterion, rows: &mut Vec<Row>) {
    for (count, label) in [(10_000, "10k"), (100_000, "100k"), (2_000_000, "2M")] {
        for versions in [1, 2, 50] {
            let bodies = workload::bodies(size(count), versions);
            let streams = [
                ("uniform", workload::uniform(&bodies, size(STREAM))),
                ("clustered", workload::clustered(&bodies, size(STREAM))),
            ];
            scenario(
                criterion,
                &format!("lookup/{label}x{versions}"),
                &bodies,
                &streams,
                rows,
            );
        }
    }
    if let Some(path) = std::env::var_os("CHRONOSYM_BENCH_STREAM").map(PathBuf::from) {
        match workload::read(&path) {
            Ok((bodies, queries)) => {
                let name = path
                    .file_stem()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                scenario(criterion, "lookup/file", &bodies, &[(&name, queries)], rows);
                // As many as two million, none of which is hot.
                let copies = 2_000_000_u64.div_ceil(bodies.len() as u64);
                let bodies = workload::side_by_side(&bodies, copies);
                let queries = workload::lives(&bodies, STREAM);
                let name = format!("{name} x {copies}");
                scenario(criterion, "lookup/file", &bodies, &[(&name, queries)], rows);
            }
            Err(error) => panic!("{}: {error}", path.display()),
        }
    }
}

fn batches(criterion: &mut Criterion) {
    let bodies = workload::bodies(size(2_000_000), 1);
    let map = versioned_map(&bodies);
    let queries = workload::uniform(&bodies, size(10_000_000));
    let mut answers = vec![None; queries.len()];
    let mut group = criterion.benchmark_group("batch/2Mx1");
    group.throughput(Throughput::Elements(queries.len() as u64));
    group.bench_function("resolve_batch_10M", |b| {
        b.iter(|| map.resolve_batch(&queries, &mut answers))
    });
    group.finish();
}

fn building(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("freeze");
    for (count, versions, label) in [
        (100_000, 1, "100kx1"),
        (2_000_000, 1, "2Mx1"),
        (2_000_000, 50, "2Mx50"),
    ] {
        let bodies = workload::bodies(size(count), versions);
        group.throughput(Throughput::Elements(bodies.len() as u64));
        group.bench_function(label, |b| b.iter_with_large_drop(|| versioned_map(&bodies)));
        let live = format!("{label}/live_map");
        group.bench_function(live, |b| b.iter_with_large_drop(|| live_map(&bodies)));
        let map = versioned_map(&bodies);
        print_bytes(&format!("freeze/{label}"), &map);
    }
    group.finish();
}

fn live(criterion: &mut Criterion) {
    let bodies = workload::bodies(size(100_000), 2);
    let occupants: Vec<_> = bodies.iter().map(occupant).collect();
    let mut group = criterion.benchmark_group("live/100kx2");
    group.throughput(Throughput::Elements(occupants.len() as u64));
    group.bench_function("insert_with_a_snapshot_every_100", |b| {
        b.iter_batched_ref(
            LiveMap::new,
            |live| {
                for (i, occupant) in occupants.iter().enumerate() {
                    live.insert(*occupant);
                    if i % 100 == 99 {
                        drop(live.snapshot());
                    }
                }
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

fn print(rows: &[Row]) {
    println!("\nBest nanoseconds a lookup, and how many times as long a peer takes:\n");
    print!("{:<28}", "");
    NAMES.iter().for_each(|name| print!("{name:>20}"));
    println!();
    for (scenario, figures) in rows
        .iter()
        .filter(|(_, figures)| figures.iter().any(|f| f.is_finite()))
    {
        print!("{scenario:<28}");
        for figure in figures {
            print!(
                "{:>20}",
                format!("{figure:.1} ({:.1}x)", figure / figures[0])
            );
        }
        let best = figures[OURS..]
            .iter()
            .copied()
            .fold(f64::INFINITY, f64::min);
        println!("   best peer {:.1}x", best / figures[0]);
    }
}

fn main() {
    let quick = |criterion: Criterion| {
        criterion
            .warm_up_time(Duration::from_millis(200))
            .measurement_time(Duration::from_millis(600))
            .sample_size(10)
    };
    let mut criterion = quick(Criterion::default()).configure_from_args();
    let mut rows = Vec::new();
    lookups(&mut criterion, &mut rows);
    batches(&mut criterion);
    building(&mut criterion);
    live(&mut criterion);
    criterion.final_summary();
    print(&rows);
}
