//! A live session of weeks: processes, dynamic methods, modules and mappings come and go, while
//! memory and the work of publishing stay constant.
//!
//! `soak_of_weeks` runs as many as a large service has in weeks: `cargo test --release -p
//! chronosym-core --test live_soak -- --ignored`.

use std::sync::Arc;

use allocation_counter::measure;
use chronosym_core::facts::{At, Fact, IlMap, Image, Method, Module, NativeMethod, Process, Stub};
use chronosym_core::{Action, EventTypeId, LiveSession, Loss, Payload, Position};
use chronosym_core::{EventKey, EventSchema, PointerSize, Provider};
use chronosym_support::payload;

const SECOND: u64 = 1_000_000_000;
/// The service that runs all the time.
const SERVICE: u32 = 42;
/// Lifetime of a method, and time for which ended state is kept, in seconds.
const LIFETIME: u64 = 20;
const KEPT: u64 = 20;

/// How much happens.
struct Soak {
    seconds: u64,
    /// Each second.
    methods: u64,
    processes: u64,
}

/// Heap memory after a call of `forget_before`, and the allocations of a new method and its
/// publish: number and bytes.
#[derive(Clone, Copy, Debug)]
struct Sample {
    held: i64,
    publish: (u64, u64),
}

struct World {
    live: LiveSession,
    entry_point: EventTypeId,
    details: EventTypeId,
    bulk_type: EventTypeId,
}

fn runtime_event(live: &mut LiveSession, id: u32, version: u16) -> EventTypeId {
    let provider = Provider::Runtime;
    let key = EventKey::Manifest {
        provider,
        id,
        version: version.into(),
    };
    live.event_type(Arc::new(EventSchema::new(key)))
}

/// Each method has an address of its own.
fn start(n: u64) -> u64 {
    0x7000_0000_0000 + n * 0x200
}

fn service(time_ns: u64) -> At {
    At::new(time_ns).process(SERVICE).thread(1)
}

impl World {
    fn new() -> Self {
        let mut live = LiveSession::new();
        World {
            entry_point: runtime_event(&mut live, 159, 0),
            details: runtime_event(&mut live, 72, 0),
            bulk_type: runtime_event(&mut live, 15, 0),
            live,
        }
    }

    fn push(&mut self, id: EventTypeId, at: At, bytes: &[u8]) {
        let pointer_size = PointerSize::Eight;
        self.live.push(
            id,
            at,
            Payload {
                pointer_size,
                bytes,
            },
        );
    }

    /// A dynamic method with a name of its own is loaded or unloaded.
    fn method(&mut self, action: Action, time: u64, n: u64) {
        let (namespace, name) = (format!("DynamicClass{n}"), format!("Method{n}"));
        let signature = format!("void  (class Argument{n})");
        let method = Method::new(action, n, start(n), 0x180);
        let method = method.named(&*namespace, &*name, &*signature);
        // Each has a thread of its own now and then.
        let at = service(time).thread(n / 100);
        self.live.apply(at, method);
        if action == Action::Load {
            self.live
                .apply(at, IlMap::new(action, n, &[(0, 0), (7, 16)]));
            // A map without a body, a stub, and a method that is never compiled.
            let mut orphan = IlMap::new(action, u64::MAX - n, &[(0, 0)]);
            orphan.version = Some(1);
            self.live.apply(at, orphan);
            self.live.apply(at, Stub::new(n, ["Native", &*name, ""]));
            self.live.apply(at, Fact::JitStart { method_id: !n });
        }
    }

    /// A collectible module with a method and a type, and a library, are loaded or unloaded.
    fn module(&mut self, action: Action, time: u64, n: u64) {
        let (at, id) = (service(time), 0x10_0000 + n);
        let path = format!("/app/plugin{n}.dll");
        let (first, size) = (0x6000_0000_0000 + n * 0x10_0000, 0x8_0000);
        self.live.apply(at, Module::new(action, id, &*path));
        self.live.apply(at, Image::new(action, first, size, &*path));
        if action == Action::Load {
            let method = Method::new(action, !id, start(0) - 0x10_0000 + n % 16 * 0x200, 64);
            let name = format!("Plugin{n}");
            self.live.apply(
                at,
                method
                    .named(&*name, "Run", "void  ()")
                    .in_module(id, 0x0600_0001),
            );
            let (type_name, entry) = (format!("PluginType{n}"), first + 0x1000);
            let types = [(id, id, &*type_name, &[][..])];
            self.push(self.bulk_type, at, &payload::bulk_type(0, &types));
            self.push(
                self.details,
                at,
                &payload::method_details(!id, id, 1, id, &[]),
            );
            let names = ("Plugin", &*name, "");
            self.push(
                self.entry_point,
                at,
                &payload::r2r_entry_point(id, names, entry, 0),
            );
        }
    }

    /// A process starts, has a thread, a module, an image, methods and a jitdump body, and stops,
    /// unless its end is lost.
    fn process(&mut self, time: u64, n: u64) {
        let pid = 1000 + (n % 5000) as u32;
        let at = |after: u64| At::new(time + after).process(pid).thread(n);
        let live = &mut self.live;
        let name = format!("worker{n}");
        live.apply(at(0), Process::new(Action::Load, &*name));
        live.apply(at(1), Fact::ThreadName((&*name).into()));
        live.apply(at(1), Image::new(Action::Load, 0x40_0000, 0x1000, &*name));
        live.apply(at(1), Module::new(Action::Load, 7, &*name));
        for id in 0..5 {
            let method = Method::new(Action::Load, id, 0x1000 * (id + 1), 64).in_module(7, 1);
            live.apply(at(2), method.named(&*name, "Run", "void  ()"));
        }
        let lines = [(0x9000, &*name, 1)];
        let native = NativeMethod::new(&*name, 0x9000, 64).with_lines(&lines);
        live.apply(at(3), native);
        if !n.is_multiple_of(100) {
            live.apply(at(SECOND / 2), Process::new(Action::Unload, ""));
        }
    }

    fn name(&self, address: u64, time: u64) -> Option<String> {
        let timeline = self.live.reader().timeline();
        let process = timeline.find_process(SERVICE, Some(time))?;
        let frames = timeline.frames(process, address, time, Position::Exact, None);
        frames[0].name().ok().map(str::to_owned)
    }

    fn second(&mut self, soak: &Soak, second: u64) -> Option<Sample> {
        let time = second * SECOND;
        for n in second * soak.methods..(second + 1) * soak.methods {
            self.method(Action::Load, time, n);
            if let Some(old) = n.checked_sub(LIFETIME * soak.methods) {
                self.method(Action::Unload, time, old);
            }
        }
        self.module(Action::Load, time, second);
        if let Some(old) = second.checked_sub(LIFETIME) {
            self.module(Action::Unload, time, old);
        }
        for n in second * soak.processes..(second + 1) * soak.processes {
            self.process(time, n);
        }
        self.live.lost(Loss::of_events(time - 10, time - 5, 1));
        self.live.advance(time);
        self.live.publish();
        let newest = (second + 1) * soak.methods - 1;
        let expected = format!("Method{newest} → Native.Method{newest}");
        assert_eq!(self.name(start(newest) + 8, time + 1), Some(expected));
        if !second.is_multiple_of(10) {
            return None;
        }
        self.live.forget_before(time.saturating_sub(KEPT * SECOND));
        self.live.publish();
        let (name, id) = (format!("Single{second}"), u64::MAX / 2 + second);
        let single = |action| Method::new(action, id, 0x1000, 64).named("Type", &*name, "");
        let published = measure(|| {
            self.live.apply(service(time), single(Action::Load));
            self.live.publish();
        });
        self.live.apply(service(time), single(Action::Unload));
        Some(Sample {
            held: 0,
            publish: (published.count_total, published.bytes_total),
        })
    }
}

fn run(soak: &Soak) {
    let mut world = None;
    let (mut held, mut samples) = (0, Vec::new());
    held += measure(|| world = Some(World::new())).bytes_current;
    let mut world = world.expect("it was made");
    for second in 1..=soak.seconds {
        let mut sample = None;
        held += measure(|| sample = world.second(soak, second)).bytes_current;
        samples.extend(sample.map(|sample| Sample { held, ..sample }));
    }
    // Until the first processes and methods have gone, memory grows.
    let settled = &samples[samples.len() / 5..];
    let (early, late) = settled.split_at(settled.len() / 2);
    let most = |samples: &[Sample], of: fn(&Sample) -> u64| samples.iter().map(of).max();
    let compare = |what, of: fn(&Sample) -> u64, slack: u64| {
        let (early, late) = (most(early, of).unwrap_or(0), most(late, of).unwrap_or(0));
        println!("{what}: {early} in the first half, {late} in the second");
        assert!(
            late <= early + early / 20 + slack,
            "{what}: {early}, {late}"
        );
    };
    compare("bytes of memory", |sample| sample.held as u64, 0);
    compare("allocations for a new method", |sample| sample.publish.0, 0);
    // Copies of nodes of tables, whose sizes go up to 4 KiB and start again.
    compare(
        "bytes allocated for a new method",
        |sample| sample.publish.1,
        32 << 10,
    );
}

#[test]
fn memory_and_publishing_follow_what_is_alive() {
    run(&Soak {
        seconds: 500,
        methods: 40,
        processes: 4,
    });
}

#[test]
#[ignore = "takes two minutes in a release build"]
fn soak_of_weeks() {
    run(&Soak {
        seconds: 10_000,
        methods: 1_000,
        processes: 10,
    });
}
