//! Time and memory are linear in what a trace has: samples, stacks, threads, processes, methods,
//! modules.

use std::time::Duration;

use allocation_counter::measure;
use chronosym::{Filter, Options, Session};
use chronosym_export::{CallTree, TreeOptions, write_folded};
use chronosym_support::growth::{Size, Stopwatch, assert_growth};
use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::payload::{Method, Module};
use chronosym_support::trace::EventSpec;

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const CODE: u64 = 0x7f10_0000_0000;

/// How many of each a trace has.
#[derive(Clone, Copy)]
struct Numbers {
    samples: u64,
    stacks: u64,
    threads: u64,
    processes: u32,
    methods: u64,
    modules: u64,
}

const FEW: Numbers = Numbers {
    samples: 2_000,
    stacks: 100,
    threads: 4,
    processes: 1,
    methods: 200,
    modules: 1,
};

fn trace(numbers: Numbers) -> Vec<u8> {
    let mut trace = NettraceWriter::v6();
    let load = trace.event_type(RUNTIME, 143, 2);
    let module_load = trace.event_type(RUNTIME, 152, 2);
    let sample = trace.event_type("Microsoft-DotNETCore-SampleProfiler", 0, 0);
    let process = |i: u64| 100 + (i % u64::from(numbers.processes)) as u32;
    let mut time = 0;
    let mut record = |mut spec: EventSpec<'_>, i: u64| {
        time += 1_000;
        spec.time_ns = time;
        spec.process = Some(process(i));
        spec.capture_thread = Some(9);
        trace.record(&spec);
        if i % 1_000 == 999 {
            trace.sequence_point();
        }
    };
    for i in 0..numbers.modules {
        let path = format!("/app/module{i}.dll");
        let module = Module {
            id: 1 + i,
            il_path: &path,
            ..Module::default()
        };
        record(
            EventSpec::new(module_load, 0, 1).payload(&module.encode(2)),
            i,
        );
    }
    for i in 0..numbers.methods {
        let name = format!("Method{i}");
        let method = Method {
            id: 1 + i,
            module: 1 + i % numbers.modules,
            start: CODE + i * 0x100,
            size: 0x100,
            token: 0x0600_0001,
            flags: 8,
            names: Some(("App.Type", &name, "void ()")),
            ..Method::default()
        };
        record(EventSpec::new(load, 0, 1).payload(&method.encode(2)), i);
    }
    for i in 0..numbers.samples {
        let number = i % numbers.stacks;
        let stack = (0..10).map(|depth| {
            let method = (number * if depth < 5 { 1 } else { 0 } + depth * 7) % numbers.methods;
            CODE + method * 0x100 + depth
        });
        let stack: Vec<u64> = stack.collect();
        let spec = EventSpec::new(sample, 0, 1 + i % numbers.threads);
        record(spec.stack(&stack).payload(&2_u32.to_le_bytes()), i);
    }
    trace.finish()
}

/// From the bytes of a trace to folded stacks; returns how many lines they have.
fn fold(trace: &[u8]) -> usize {
    let mut session = Session::new(Options::default());
    chronosym::source::nettrace::read(trace, &mut session).expect("a trace");
    let profile = session.finish().profile(&Filter::default(), None);
    let mut lines = Vec::new();
    write_folded(&CallTree::new(&profile, TreeOptions::default()), &mut lines).expect("memory");
    lines.iter().filter(|&&byte| byte == b'\n').count()
}

/// The most memory that the calling thread holds at a time, in bytes, while it folds a trace: the
/// smallest of some runs. A second thread decodes the trace; what it is ahead by is passed to this
/// thread and depends on what else the machine does.
fn peak(trace: &[u8]) -> u64 {
    let once = || {
        measure(|| {
            fold(trace);
        })
        .bytes_max
    };
    (0..8).map(|_| once()).min().expect("eight runs")
}

/// Twice as many take at most 2.3 times as long, and 2.2 times the memory.
fn check(what: &str, few: Numbers, many: Numbers) {
    let [few, many] = [few, many].map(trace);
    assert!(fold(&few) > 0, "{what}: no stack");
    let [small, large] = [&few, &many].map(|trace| peak(trace));
    let most = small * 22 / 10 + (1 << 16);
    assert!(large <= most, "{what}: {small} bytes, then {large}");
    assert_growth(what, 2.3, Duration::from_millis(5), |size| {
        let trace = if size == Size::Small { &few } else { &many };
        let watch = Stopwatch::start();
        fold(trace);
        watch.used()
    });
}

#[test]
fn twice_as_many_samples() {
    let samples = |samples| Numbers { samples, ..FEW };
    check("samples", samples(20_000), samples(40_000));
}

#[test]
fn twice_as_many_stacks() {
    let stacks = |stacks| Numbers {
        samples: 16_000,
        methods: 1_000,
        stacks,
        ..FEW
    };
    check("stacks", stacks(4_000), stacks(8_000));
}

#[test]
fn twice_as_many_threads() {
    let threads = |threads| Numbers {
        samples: 16_000,
        threads,
        ..FEW
    };
    check("threads", threads(500), threads(1_000));
}

#[test]
fn twice_as_many_processes() {
    let processes = |processes| Numbers {
        samples: 8_000,
        methods: 8_000,
        processes,
        ..FEW
    };
    check("processes", processes(250), processes(500));
}

#[test]
fn twice_as_many_methods() {
    let methods = |methods| Numbers { methods, ..FEW };
    check("methods", methods(7_000), methods(14_000));
}

#[test]
fn twice_as_many_modules() {
    let modules = |modules| Numbers {
        modules,
        methods: 2_000,
        ..FEW
    };
    check("modules", modules(1_000), modules(2_000));
}
