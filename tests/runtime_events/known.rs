//! A program that counts its own events: testdata/clr8/known.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chronosym::runtime::{
    Allocations, Collections, Contention, Exceptions, Jit, JitDecisions, Report,
};
use chronosym::{Options, Resolver, Timeline};
use chronosym_conformance::unzip;

use crate::trace::{all, read};

fn known(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/clr8/known");
    folder.join(name)
}

fn known_trace(name: &str, options: Options) -> Arc<Timeline> {
    let zip = known(&format!("{name}.nettrace.zip"));
    read(&unzip(&zip, ".nettrace").expect("a trace"), options)
}

#[test]
fn reports_equal_what_the_program_counted() {
    let truth = std::fs::read(known("events.json")).unwrap();
    let truth: serde_json::Value = serde_json::from_slice(&truth).unwrap();
    let counted = |key: &str| truth[key].as_u64().unwrap();
    let timeline = known_trace("events", Report::options_of(&Report::ALL));
    let near = |seen: u64, key: &str, percent: u64| {
        let exact = counted(key);
        assert!(
            seen.abs_diff(exact) * 100 <= exact * percent,
            "{key}: {seen}, {exact} counted"
        );
    };
    let gc = Collections::new(&timeline, &all());
    // GC.CollectionCount counts a collection in each generation up to its own.
    for (generation, key) in [(0, "gen0"), (1, "gen1"), (2, "gen2")] {
        let of = gc
            .collections
            .iter()
            .filter(|it| it.generation >= Some(generation));
        assert_eq!(of.count() as u64, counted(key), "{key}");
    }
    // GC.GetTotalPauseDuration includes the time in which collections waited for the profiler.
    near(
        gc.pauses.percentiles().unwrap().total_ns + gc.pauses.waited_ns(),
        "pause_ns",
        2,
    );

    let exceptions = Exceptions::new(&timeline, &all()).thrown;
    for (name, key) in [
        ("KnownError", "known"),
        ("System.InvalidOperationException", "invalid"),
        ("System.ArgumentException", "argument"),
    ] {
        let mut of = exceptions
            .iter()
            .filter(|it| it.type_name.as_deref() == Some(name));
        assert_eq!(of.clone().count() as u64, counted(key), "{key}");
        assert!(of.all(|it| it.caught_in.is_some() && it.stack.is_some()));
    }
    let rethrown = exceptions.iter().filter(|it| it.rethrown).count() as u64;
    assert_eq!(rethrown * 2, counted("invalid"));

    let allocations = Allocations::new(&timeline, &all());
    near(allocations.bytes(), "allocated", 1);
    for (name, key) in [
        ("KnownA", "bytes_a"),
        ("KnownB", "bytes_b"),
        ("System.Byte[]", "bytes_l"),
    ] {
        let of = allocations.allocations.iter();
        let of = of.filter(|it| it.type_name.as_deref() == Some(name));
        near(of.map(|it| it.bytes).sum(), key, 1);
    }

    let waits = Contention::new(&timeline, &all());
    let of_program = waits
        .waits
        .iter()
        .filter(|it| it.stack.is_some() && it.lock_id.is_some());
    assert_eq!(of_program.count() as u64, counted("waits"));
    near(waits.duration_ns(), "waited_ns", 1);

    // The runtime counts a little before the process ends.
    let jit = Jit::new(&timeline, &all());
    near(jit.methods.len() as u64, "jitted", 5);
    near(jit.duration_ns(), "jit_ns", 10);
    assert!(jit.methods.iter().all(|it| it.duration_ns.is_some()));
}

#[test]
fn decisions_equal_the_events() {
    let timeline = known_trace("inlining", JitDecisions::options());
    let decisions = JitDecisions::new(&timeline, &all());
    let logged = |names: &[&str]| -> u64 {
        let types = timeline.event_types().iter();
        let of = types.filter(|it| names.contains(&&*it.schema.name()));
        of.map(|it| it.count).sum()
    };
    let bodies = &decisions.bodies;
    let sum = |count: fn(&chronosym::runtime::CompiledBody) -> usize| -> u64 {
        bodies.iter().map(|it| count(it) as u64).sum()
    };
    assert_eq!(
        sum(|it| it.inlined.len()),
        logged(&["MethodJitInliningSucceeded"])
    );
    assert_eq!(
        sum(|it| it.rejected.len()),
        logged(&["MethodJitInliningFailed"])
    );
    let tail_calls = ["MethodJitTailCallSucceeded", "MethodJitTailCallFailed"];
    assert_eq!(sum(|it| it.tail_calls.len()), logged(&tail_calls));
    assert!(bodies.iter().all(|it| it.start.is_some()));
    assert_eq!(decisions.unused, chronosym::runtime::Unused::default());
    // Rich debug info states the same inlined calls of each body, but for calls that left no code.
    let mut resolver = Resolver::new(&timeline, None);
    let (mut compared, mut stated) = (0, 0);
    for body in bodies {
        let process = body.process;
        let index = (timeline.bodies_at(process, body.start.unwrap()).iter())
            .min_by_key(|it| it.lifetime.from.abs_diff(body.time_ns))
            .map(|it| it.index);
        let nodes = resolver.inlinees(process, index.unwrap());
        if nodes.is_empty() {
            continue;
        }
        let inlinees: Vec<_> = nodes.iter().filter(|node| node.parent.is_some()).collect();
        assert!(inlinees.len() <= body.inlined.len(), "{}", body.name);
        // Without symbol files, methods that were never compiled alone have no names.
        let mut callees: Vec<_> = body.inlined.iter().map(|call| &*call.callee).collect();
        for name in inlinees.iter().filter_map(|node| node.function.name()) {
            let at = callees.iter().position(|callee| *callee == name);
            callees.remove(at.unwrap_or_else(|| panic!("{name} in {}", body.name)));
        }
        compared += inlinees.len();
        stated += body.inlined.len();
    }
    assert!(
        compared > 20 && compared * 10 >= stated * 9,
        "{compared} of {stated}"
    );
    // As the program is written: Never may not be inlined, Big has a try block, Small is tiny.
    let hot = bodies
        .iter()
        .filter(|it| &*it.name == "Known.Hot" && !it.inlined.is_empty());
    for body in hot {
        assert!(body.inlined.iter().any(|it| &*it.callee == "Known.Small"));
        let reason = |callee: &str| {
            let mut rejected = body.rejected.iter();
            rejected
                .find(|it| &*it.callee == callee)
                .map(|it| &*it.reason)
        };
        assert_eq!(reason("Known.Never"), Some("noinline per IL/cached result"));
        assert!(reason("Known.Big").is_some());
    }
}
