//! Time and memory are linear in what a .nettrace, .etl or perf.data has: samples, stacks, threads,
//! processes, methods, modules.

use std::time::Duration;

use allocation_counter::measure;
use chronosym::source::EventStream;
use chronosym::source::perf::PerfStream;
use chronosym::{Filter, Options, Session};
use chronosym_etl::Reader as EtlReader;
use chronosym_export::{CallTree, TreeOptions, write_folded};
use chronosym_support::etl::{At, CLR_RUNTIME, EtlWriter, Image, Op, Process, Stack};
use chronosym_support::growth::{Size, Stopwatch, assert_growth};
use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::payload::{Method, Module};
use chronosym_support::perf::{PerfAttr, PerfWriter};
use chronosym_support::trace::EventSpec;

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
/// The first address of images.
const IMAGES: u64 = 0x7f20_0000_0000;
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

#[derive(Clone, Copy, Debug)]
enum Format {
    Nettrace,
    Etl,
    /// Modules are images in which all samples are; there are no methods.
    Perf,
}

const ALL: &[Format] = &[Format::Nettrace, Format::Etl, Format::Perf];

impl Numbers {
    fn pid(&self, i: u64) -> u32 {
        100 + (i % u64::from(self.processes)) as u32
    }

    /// The thread of a sample. There is at least one for each process.
    fn tid(&self, i: u64) -> u32 {
        1 + (i % self.threads.max(self.processes.into())) as u32
    }

    fn name(&self, i: u64) -> String {
        format!("/app/module{i}.dll")
    }

    fn method<'a>(&self, i: u64, name: &'a str) -> Method<'a> {
        Method {
            id: 1 + i,
            module: 1 + i % self.modules,
            start: CODE + i * 0x100,
            size: 0x100,
            token: 0x0600_0001,
            flags: 8,
            names: Some(("App.Type", name, "void ()")),
            ..Method::default()
        }
    }

    /// The stack of a sample, in code that is at these addresses.
    fn stack(&self, i: u64, code: impl Fn(u64) -> u64) -> [u64; 10] {
        let number = i % self.stacks;
        std::array::from_fn(|depth| {
            let depth = depth as u64;
            code(number * u64::from(depth < 5) + depth * 7) + depth
        })
    }

    fn trace(&self, format: Format) -> Vec<u8> {
        match format {
            Format::Nettrace => nettrace(*self),
            Format::Etl => etl(*self).expect("memory"),
            Format::Perf => perf(*self),
        }
    }
}

fn perf(numbers: Numbers) -> Vec<u8> {
    const SIZE: u64 = 0x10_0000;
    let mut trace = PerfWriter::new(PerfAttr::default());
    for i in 0..numbers.processes.into() {
        trace.comm(1 + i, numbers.pid(i), numbers.pid(i), "app");
    }
    let mut time = 1_000;
    for i in 0..numbers.modules.max(numbers.processes.into()) {
        time += 1;
        let (start, name) = (IMAGES + i * SIZE, numbers.name(i % numbers.modules));
        trace.mmap2(time, numbers.pid(i), start, SIZE, 0, &name);
    }
    for i in 0..numbers.samples {
        time += 1_000;
        let tid = numbers.tid(i);
        let image = |n| IMAGES + (tid as u64 - 1 + n) % numbers.modules * SIZE;
        let stack = numbers.stack(i, |n| image(n) + n % 0xffff * 0x10);
        trace.sample(time, numbers.pid(u64::from(tid) - 1), tid, &stack);
    }
    trace.file()
}

fn etl(numbers: Numbers) -> std::io::Result<Vec<u8>> {
    let mut trace = EtlWriter::new(Vec::new(), Default::default())?;
    for i in 0..numbers.processes.into() {
        let process = Process {
            pid: numbers.pid(i),
            image: "app.exe",
            ..Process::default()
        };
        trace.process(At::ns(0), Op::DCStart, &process)?;
    }
    for i in 0..numbers.threads.max(numbers.processes.into()) {
        let (pid, tid) = (numbers.pid(i), numbers.tid(i));
        trace.thread(At::ns(0), Op::DCStart, pid, tid)?;
    }
    for i in 0..numbers.modules {
        let name = numbers.name(i);
        let image = Image {
            base: IMAGES + i * 0x1_0000,
            size: 0x1_0000,
            pid: numbers.pid(i),
            path: &name,
            ..Image::default()
        };
        trace.image(At::ns(1), Op::DCStart, &image)?;
    }
    for i in 0..numbers.methods {
        let name = format!("Method{i}");
        let at = At::ns(2).pid(numbers.pid(i)).tid(1);
        let method = numbers.method(i, &name).encode(1);
        trace.clr(at, CLR_RUNTIME, 143, 1, &method, &[])?;
    }
    for i in 0..numbers.samples {
        let (pid, tid) = (numbers.pid(u64::from(numbers.tid(i)) - 1), numbers.tid(i));
        let at = At::ns(1_000 + i as i64 * 10_000);
        let addresses = numbers.stack(i, |n| CODE + n % numbers.methods * 0x100);
        trace.sample(at, addresses[0], tid)?;
        let stack = Stack {
            event: at,
            pid,
            tid,
            addresses: &addresses,
        };
        trace.stack(At::ns(at.ns + 1_000), &stack)?;
    }
    trace.finish()
}

fn nettrace(numbers: Numbers) -> Vec<u8> {
    let mut trace = NettraceWriter::v6();
    let load = trace.event_type(RUNTIME, 143, 2);
    let module_load = trace.event_type(RUNTIME, 152, 2);
    let sample = trace.event_type("Microsoft-DotNETCore-SampleProfiler", 0, 0);
    let mut time = 0;
    let mut record = |mut spec: EventSpec<'_>, i: u64| {
        time += 1_000;
        spec.time_ns = time;
        spec.process = Some(numbers.pid(i));
        spec.capture_thread = Some(9);
        trace.record(&spec);
        if i % 1_000 == 999 {
            trace.sequence_point();
        }
    };
    for i in 0..numbers.modules {
        let path = numbers.name(i);
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
        let method = numbers.method(i, &name).encode(2);
        record(EventSpec::new(load, 0, 1).payload(&method), i);
    }
    for i in 0..numbers.samples {
        let stack = numbers.stack(i, |n| CODE + n % numbers.methods * 0x100);
        let spec = EventSpec::new(sample, 0, 1 + i % numbers.threads);
        record(spec.stack(&stack).payload(&2_u32.to_le_bytes()), i);
    }
    trace.finish()
}

/// From the bytes of a trace to folded stacks; returns how many lines they have.
fn fold(format: Format, trace: &[u8]) -> usize {
    let mut session = Session::new(Options::default());
    match format {
        Format::Nettrace => {
            chronosym::source::nettrace::read(trace, &mut session).expect("a trace");
        }
        Format::Etl => {
            let reader = EtlReader::new(trace, Default::default()).expect("a trace");
            chronosym::source::etl::read(reader, &mut session).expect("a trace");
        }
        Format::Perf => {
            let mut stream = PerfStream::new(trace, Default::default()).expect("a trace");
            stream.read_into(&mut session).expect("a trace");
        }
    }
    let profile = session.finish().profile(&Filter::default(), None);
    let mut lines = Vec::new();
    write_folded(&CallTree::new(&profile, TreeOptions::default()), &mut lines).expect("memory");
    lines.iter().filter(|&&byte| byte == b'\n').count()
}

/// The most memory that the calling thread holds at a time, in bytes, while it folds a trace: the
/// smallest of some runs. A second thread decodes the trace; what it is ahead by is passed to this
/// thread and depends on what else the machine does.
fn peak(format: Format, trace: &[u8]) -> u64 {
    let once = || {
        measure(|| {
            fold(format, trace);
        })
        .bytes_max
    };
    (0..8).map(|_| once()).min().expect("eight runs")
}

/// Twice as many take at most 2.3 times as long, and 2.2 times the memory.
fn check(what: &str, formats: &[Format], few: Numbers, many: Numbers) {
    for &format in formats {
        let what = format!("{what} of {format:?}");
        let [few, many] = [few, many].map(|numbers| numbers.trace(format));
        assert!(fold(format, &few) > 0, "{what}: no stack");
        let [small, large] = [&few, &many].map(|trace| peak(format, trace));
        let most = small * 22 / 10 + (1 << 16);
        assert!(large <= most, "{what}: {small} bytes, then {large}");
        assert_growth(&what, 2.3, Duration::from_millis(5), |size| {
            let trace = if size == Size::Small { &few } else { &many };
            let watch = Stopwatch::start();
            fold(format, trace);
            watch.used()
        });
    }
}

#[test]
fn twice_as_many_samples() {
    let samples = |samples| Numbers { samples, ..FEW };
    check("samples", ALL, samples(20_000), samples(40_000));
}

#[test]
fn twice_as_many_stacks() {
    let stacks = |stacks| Numbers {
        samples: 16_000,
        methods: 1_000,
        stacks,
        ..FEW
    };
    check("stacks", ALL, stacks(4_000), stacks(8_000));
}

#[test]
fn twice_as_many_threads() {
    let threads = |threads| Numbers {
        samples: 16_000,
        threads,
        ..FEW
    };
    check("threads", ALL, threads(500), threads(1_000));
}

#[test]
fn twice_as_many_processes() {
    let processes = |processes| Numbers {
        samples: 8_000,
        methods: 8_000,
        processes,
        ..FEW
    };
    check("processes", ALL, processes(250), processes(500));
}

#[test]
fn twice_as_many_methods() {
    let methods = |methods| Numbers { methods, ..FEW };
    check("methods", &ALL[..2], methods(7_000), methods(14_000));
}

#[test]
fn twice_as_many_modules() {
    let modules = |modules| Numbers {
        modules,
        methods: 2_000,
        ..FEW
    };
    check("modules", ALL, modules(1_000), modules(2_000));
}
