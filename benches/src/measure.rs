//! Functions that benches of the engine share: folding a timeline, and the best time of an
//! iteration.

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chronosym::{Filter, Timeline};
use chronosym_export::{CallTree, TreeOptions, write_folded};
use criterion::{Criterion, Throughput};

/// Resolves the samples of a timeline and writes folded stacks to nowhere.
pub fn folded(timeline: &Arc<Timeline>) {
    let profile = timeline.profile(&Filter::default(), None);
    let tree = CallTree::new(&profile, TreeOptions::default());
    write_folded(&tree, &mut io::sink()).expect("a sink takes all");
}

/// Returns the best time of an iteration in milliseconds; infinite if a filter of the command line
/// excludes the bench. `bytes` is the input size of one iteration.
pub fn measure<T>(
    criterion: &mut Criterion,
    group: &str,
    name: &str,
    bytes: u64,
    mut run: impl FnMut() -> T,
) -> f64 {
    let best = Cell::new(f64::INFINITY);
    let mut group = criterion.benchmark_group(group);
    group.throughput(Throughput::Bytes(bytes));
    group.bench_function(name, |bencher| {
        bencher.iter_custom(|iterations| {
            let mut all = Duration::ZERO;
            for _ in 0..iterations {
                let begin = Instant::now();
                std::hint::black_box(run());
                let elapsed = begin.elapsed();
                best.set(best.get().min(elapsed.as_secs_f64() * 1e3));
                all += elapsed;
            }
            all
        });
    });
    group.finish();
    best.get()
}
