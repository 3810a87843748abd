//! Compilations and lookups of precompiled code.

use chronosym::runtime::{Jit, Report};
use chronosym_support::payload::{
    Payload, jitting_started, r2r_entry_point, r2r_entry_point_start,
};

use crate::trace::{Trace, all};
use chronosym_support::random::Random;

pub fn load(method: u64, size: u32, flags: u32, name: &str) -> Payload {
    let range = Payload::new()
        .u64(method)
        .u64(0x77)
        .u64(0x1000 * method)
        .u32(size);
    let rest = range.u32(0x0600_0001).u32(flags);
    rest.names(("App.Type", name, "void ()")).u16(7)
}

pub fn start(method: u64, il_size: u32, name: &str) -> Vec<u8> {
    let names = ("App.Type", name, "void ()");
    jitting_started(1, method, 0x77, 0x0600_0001, il_size, names, 7)
}

#[test]
fn compilations_have_tiers_sizes_and_their_own_time() {
    let mut trace = Trace::new();
    // B is compiled while A is; the stub's start is not logged; C's code was rejected.
    trace.event_with(&[], (145, 1), (100, 1), &start(1, 50, "A"));
    trace.event_with(&[], (145, 1), (120, 1), &start(2, 20, "B"));
    trace.event((143, 1), (150, 1), load(2, 64, 0x8 | 3 << 7, "B"));
    trace.event((143, 1), (160, 1), load(9, 16, 0x9, "IL_STUB"));
    trace.event((143, 1), (200, 1), load(1, 128, 0x8 | 4 << 7, "A"));
    trace.event_with(&[], (145, 1), (150, 2), &start(3, 10, "C"));
    trace.event((143, 1), (400, 2), load(3, 32, 0x48 | 4 << 7, "C"));
    // Precompiled code, a compilation without an end, and a lookup without a result.
    trace.event((143, 1), (410, 2), load(4, 32, 0, "D"));
    trace.event_with(&[], (145, 1), (420, 2), &start(5, 10, "E"));
    trace.event_with(&[], (160, 0), (430, 2), &r2r_entry_point_start(6, 7));
    let names = ("App.Type", "F", "void ()");
    trace.event_with(&[], (159, 0), (437, 2), &r2r_entry_point(6, names, 0, 7));
    trace.event_with(
        &[],
        (159, 0),
        (440, 2),
        &r2r_entry_point(7, names, 0x7000, 7),
    );
    let jit = Jit::new(&trace.read(Report::Jit), &all());
    let methods: Vec<_> = jit
        .methods
        .iter()
        .map(|it| {
            let tier = it.tier.map(|tier| tier.to_string());
            let name = it.name.as_deref().unwrap();
            (
                name,
                tier,
                it.il_size,
                it.native_size,
                it.duration_ns,
                it.rejected,
            )
        })
        .collect();
    let tier = |name: &str| Some(name.to_owned());
    assert_eq!(
        methods,
        [
            (
                "App.Type.B",
                tier("QuickJitted"),
                Some(20),
                64,
                Some(30),
                false
            ),
            ("App.Type.IL_STUB", None, None, 16, None, false),
            (
                "App.Type.A",
                tier("OptimizedTier1"),
                Some(50),
                128,
                Some(70),
                false
            ),
            (
                "App.Type.C",
                tier("OptimizedTier1"),
                Some(10),
                32,
                Some(250),
                true
            ),
        ]
    );
    let threads: Vec<_> = jit
        .threads
        .iter()
        .map(|it| (it.methods, it.duration_ns))
        .collect();
    assert_eq!(threads, [(1, 250), (3, 100)]);
    // 95 % of 350 ns have passed when C, the last, is ready.
    assert_eq!((jit.duration_ns(), jit.steady_ns()), (350, Some(400)));
    assert_eq!((jit.lookups.found, jit.lookups.not_found), (1, 1));
    assert_eq!(jit.lookups.durations.unwrap().total_ns, 7);
    assert_eq!(jit.unused.without_end, 1);
}

/// A start or load of a method on one thread in the model.
#[derive(Clone, Copy, Debug)]
struct Step {
    time: u64,
    method: u64,
    is_start: bool,
}

/// Returns the self time of each load: its length without the pairs inside it. The start of a load
/// is the last one of the method that no pair has used and that is in no pair.
fn model_of_jit(steps: &[Step]) -> Vec<Option<u64>> {
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    let mut own = Vec::new();
    for (at, step) in steps.iter().enumerate().filter(|(_, step)| !step.is_start) {
        let is_free = |start: usize| pairs.iter().all(|&(from, to)| start < from || start > to);
        let from = (0..at)
            .rev()
            .find(|&i| steps[i].is_start && steps[i].method == step.method && is_free(i));
        own.push(from.map(|from| {
            let ticks = steps[from].time..step.time;
            let within = |tick: &u64| {
                let mut inner = pairs.iter().filter(|&&(start, _)| start > from);
                inner.any(|&(start, end)| (steps[start].time..steps[end].time).contains(tick))
            };
            ticks.filter(|tick| !within(tick)).count() as u64
        }));
        pairs.extend(from.map(|from| (from, at)));
    }
    own
}

#[test]
fn own_times_of_compilations_equal_the_model() {
    let mut random = Random::new(2);
    for _ in 0..300 {
        let mut time = 0;
        let steps: Vec<Step> = (0..24)
            .map(|_| {
                time += random.below(10);
                Step {
                    time,
                    method: random.below(4),
                    is_start: random.below(2) == 0,
                }
            })
            .collect();
        let mut trace = Trace::new();
        for step in &steps {
            let at = (step.time as i64, 1);
            match step.is_start {
                true => trace.event_with(&[], (145, 1), at, &start(step.method, 1, "M")),
                false => trace.event((143, 1), at, load(step.method, 1, 8, "M")),
            }
        }
        let jit = Jit::new(&trace.read(Report::Jit), &all());
        let own: Vec<_> = jit.methods.iter().map(|it| it.duration_ns).collect();
        assert_eq!(own, model_of_jit(&steps), "{steps:?}");
        let starts = steps.iter().filter(|step| step.is_start).count();
        let paired = own.iter().flatten().count();
        assert_eq!(jit.unused.without_end as usize, starts - paired);
    }
}
