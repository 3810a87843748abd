//! Simulates a profiler that runs for a day: methods, names and processes come and go, a user
//! interface resolves addresses, and memory does not grow.

mod ui;

use std::alloc::System;

use cap::Cap;
use chronosym::facts::{At, Method, Module, Process};
use chronosym::{Action, DeltaReader, LiveSession, SavedError};

use ui::Ui;

/// The process that is profiled.
const PID: u32 = 42;

#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, usize::MAX);

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
/// Lifetime of a method in seconds; one is loaded each second.
const LIFE: u64 = 100;
/// Interval in seconds at which ended code is forgotten, and the age from which it is.
const KEPT: u64 = 10 * MINUTE;
/// Bytes that may stay of each method and process that has gone.
const GROWTH: usize = 2;

/// Returns the start of the `n`th method. An earlier method of another size had the same start.
fn start(n: u64) -> u64 {
    0x7fa0_0000_0000 + n % 128 * 0x400
}

fn name(n: u64) -> String {
    let meal = ["Breakfast", "Lunch", "Dinner"][(n % 3) as usize];
    format!("{meal}{n}")
}

/// The `n`th method is loaded or unloaded.
fn method(action: Action, n: u64, name: &str) -> Method<'_> {
    let size = 0x100 + (n / 128 % 8) as u32 * 0x60;
    Method::new(action, 0x7f00_0000_0000 + n * 8, start(n), size)
        .named("Day", name, "void  ()")
        .in_module(0x10, 0x0600_0001)
}

/// Another host, which follows the profiler by its deltas.
struct Follower {
    deltas: DeltaReader,
    live: LiveSession,
    ui: Ui,
}

impl Follower {
    fn new() -> Self {
        let live = LiveSession::new();
        let ui = Ui::open(live.reader(), PID);
        let deltas = DeltaReader::new();
        Follower { deltas, live, ui }
    }

    /// Takes what arrived, and forgets what ended before a time.
    fn follow(&mut self, bytes: &[u8], forget_ns: u64) -> Result<(), SavedError> {
        let deltas = &mut self.deltas;
        self.live.read_batch(|session| {
            assert_eq!(deltas.read(bytes, session)?, bytes.len());
            Ok::<_, SavedError>(Some(deltas.watermark_ns()))
        })?;
        self.live.forget_before(forget_ns);
        self.live.publish();
        Ok(())
    }
}

/// Another process, which runs for a second.
fn worker(live: &mut LiveSession, n: u64) {
    let name = format!("worker{n}");
    let at = |time_ns| At::new(time_ns).process(1000 + n as u32 % 500).thread(n);
    live.apply(at(n * SECOND), Process::new(Action::Load, &*name));
    live.apply(at(n * SECOND), method(Action::Load, n, &name));
    live.apply(at((n + 1) * SECOND), Process::new(Action::Unload, ""));
}

/// A moment of the process, in ns since the recording began.
fn at(time_ns: u64) -> At {
    At::new(time_ns).process(PID).thread(1)
}

fn main() {
    let mut live = LiveSession::new();
    live.keep_deltas();
    let ui = Ui::open(live.reader(), PID);
    let mut follower = Follower::new();
    let mut sent = 0;
    live.apply(at(0), Module::new(Action::Load, 0x10, "/app/Day.dll"));
    let (mut after_two_hours, mut most) = (0, 0);
    for now in 1..=24 * HOUR {
        let time = now * SECOND;
        if now > LIFE {
            live.apply(
                at(time - 1),
                method(Action::Unload, now - LIFE, &name(now - LIFE)),
            );
        }
        live.apply(at(time), method(Action::Load, now, &name(now)));
        worker(&mut live, now);
        if now % MINUTE == 0 {
            live.advance(time);
            if now % KEPT == 0 {
                live.forget_before(time - KEPT * SECOND);
            }
            live.publish();
            let delta = live.take_delta();
            sent += delta.len() as u64;
            let followed = follower.follow(&delta, time.saturating_sub(KEPT * SECOND));
            followed.expect("as it was written");
            let then = now - LIFE.min(now) / 2;
            let label = ui.ask(start(then) + 8, time);
            assert_eq!(label, format!("Day!Day.{}", name(then)), "at {now} s");
            assert_eq!(follower.ui.ask(start(then) + 8, time), label, "at {now} s");
            // The address had no code between the previous method and this one.
            let free = ui.ask(start(now), time - 10 * SECOND);
            assert!(!free.contains("Day."), "{free} at {now} s");
        }
        if now % HOUR == 0 {
            let held = MEMORY.allocated();
            println!("hour {:2}: {held} bytes", now / HOUR);
            if now == 2 * HOUR {
                after_two_hours = held;
            }
            most = most.max(held);
        }
    }
    ui.close();
    follower.ui.close();
    println!("{} bytes of deltas a second", sent / (24 * HOUR));
    let growth = most - after_two_hours;
    println!("{growth} bytes more than after two hours");
    // In the profiler, and in its follower.
    let gone = 2 * 2 * 22 * HOUR as usize;
    assert!(growth <= gone * GROWTH, "more than {GROWTH} bytes of each");
}
