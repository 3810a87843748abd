//! A profiler that runs for a day: methods come and go, a user interface asks about them, and memory stays what it was.

mod feed;
mod ui;

use std::alloc::System;

use cap::Cap;

use feed::{Feed, Method};
use ui::Ui;

#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, usize::MAX);

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
/// How long a method lives, in seconds; each second one is loaded.
const LIFE: u64 = 100;
/// So often what ended before as long is forgotten, in seconds.
const KEPT: u64 = 10 * MINUTE;
/// Bytes that a day may add to what is held after two hours: about three a method.
const GROWTH: usize = 256 << 10;

/// The `n`th method: its place was used before, by one of another size.
fn method(n: u64) -> Method<'static> {
    Method {
        id: 0x7f00_0000_0000 + n * 8,
        module: 0x10,
        start: 0x7fa0_0000_0000 + n % 128 * 0x400,
        size: 0x100 + (n / 128 % 8) as u32 * 0x60,
        namespace: "Day",
        name: ["Breakfast", "Lunch", "Dinner"][(n % 3) as usize],
    }
}

fn main() {
    let mut feed = Feed::new();
    let ui = Ui::open(feed.live.reader());
    feed.module_load(0, 0x10, "/app/Day.dll");
    let (mut after_two_hours, mut most) = (0, 0);
    for now in 1..=24 * HOUR {
        let time = now * SECOND;
        if now > LIFE {
            feed.method_unload(time - 1, &method(now - LIFE));
        }
        feed.method_load(time, &method(now));
        if now % MINUTE == 0 {
            feed.live.advance(time);
            if now % KEPT == 0 {
                feed.live.forget_before(time - KEPT * SECOND);
            }
            feed.live.publish();
            let then = now - LIFE.min(now) / 2;
            let (there, label) = (method(then), ui.ask(method(then).start + 8, time));
            assert_eq!(label, format!("Day!Day.{}", there.name), "at {now} s");
            // Its place was free when the one before it had gone.
            let free = ui.ask(method(now).start, time - 10 * SECOND);
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
    let growth = most - after_two_hours;
    println!("{growth} bytes more than after two hours");
    assert!(growth <= GROWTH, "more than {GROWTH}");
}
