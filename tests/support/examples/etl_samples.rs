//! Writes an .etl of CPU samples with stacks, of any size: `etl_samples FILE MEGABYTES plain|keys
//! [--compress]`.
//!
//! Eight processors sample sixteen threads of four processes each millisecond; a thousand methods
//! are loaded, and stacks are drawn from a thousand distinct ones, so that a reader's state does
//! not grow with the file. With `keys`, stacks are referred to by keys of a table of 256 slots;
//! each is defined when another stack takes its slot.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use chronosym_support::etl::{
    At, CLR_RUNTIME, EtlWriter, Image, Op, Options, Process, Stack, StackMode,
};
use chronosym_support::payload::Method;

const CPUS: u16 = 8;
const THREADS: u32 = 16;
const METHODS: u64 = 1_000;
const STACKS: u64 = 1_000;
const DEPTH: usize = 30;
const PLACES: u64 = 256;
const CODE: u64 = 0x7ff8_0000_0000;
const APP: u64 = 0x7ff7_0000_0000;

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [path, megabytes, form, rest @ ..] = args.as_slice() else {
        eprintln!("usage: etl_samples FILE MEGABYTES plain|keys [--compress]");
        std::process::exit(2);
    };
    let limit = megabytes.parse::<u64>().map_err(io::Error::other)? << 20;
    let options = Options {
        cpus: CPUS,
        compress: rest.iter().any(|a| a == "--compress"),
        ..Options::default()
    };
    let counted = Counted {
        out: BufWriter::new(File::create(path)?),
        bytes: 0,
    };
    let mut w = EtlWriter::new(counted, options)?;
    set_up(&mut w)?;
    let samples = samples(&mut w, limit, form == "keys")?;
    w.finish()?;
    println!("{samples} samples");
    Ok(())
}

fn set_up<W: Write>(w: &mut EtlWriter<W>) -> io::Result<()> {
    for pid in pids() {
        let process = Process {
            pid,
            image: "app.exe",
            ..Process::default()
        };
        w.process(At::ns(0), Op::DCStart, &process)?;
        let image = Image {
            base: APP,
            size: 0x10_0000,
            pid,
            path: r"\Device\HarddiskVolume2\app.exe",
            ..Image::default()
        };
        w.image(At::ns(0), Op::DCStart, &image)?;
        for number in 0..METHODS {
            let name = format!("Method{number}");
            let method = Method {
                id: number,
                module: 1,
                start: CODE + number * 0x100,
                size: 0x100,
                token: 0x0600_0001,
                flags: 8,
                names: Some(("Type", &name, "void ()")),
                ..Method::default()
            };
            let at = At::ns(1).pid(pid).tid(1);
            w.clr(at, CLR_RUNTIME, 143, 1, &method.encode(1), &[])?;
        }
    }
    for tid in 1..=THREADS {
        w.thread(At::ns(0), Op::DCStart, pid_of(tid), tid)?;
    }
    Ok(())
}

fn pids() -> impl Iterator<Item = u32> {
    (0..4).map(|i| 1_000 + i)
}

fn pid_of(tid: u32) -> u32 {
    1_000 + tid % 4
}

/// The addresses of a stack, innermost first.
fn stack(number: u64) -> [u64; DEPTH] {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    std::array::from_fn(|depth| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        match depth {
            // The outermost frames are those of every stack.
            20.. => APP + 0x100 * depth as u64,
            _ => CODE + (state >> 33) % METHODS * 0x100 + 0x21,
        }
    })
}

fn samples(w: &mut EtlWriter<Counted>, limit: u64, keys: bool) -> io::Result<u64> {
    let mut table = [u64::MAX; PLACES as usize];
    let mut samples = 0;
    let mut state = 1u64;
    for tick in 1.. {
        if w.output().bytes >= limit {
            break;
        }
        for cpu in 0..CPUS {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            // Few stacks are hot, as in real programs.
            let [a, b, c] = [33, 23, 13].map(|bit| (state >> bit) % STACKS);
            let number = a * b / STACKS * c / STACKS;
            let tid = 1 + (state >> 50) as u32 % THREADS;
            let at = At::ns(tick * 1_000_000 + i64::from(cpu) * 100).cpu(cpu);
            let later = At::ns(at.ns + 20_000).cpu(cpu);
            let addresses = stack(number);
            w.sample(at, addresses[0], tid)?;
            if keys {
                let place = number % PLACES;
                let held = &mut table[place as usize];
                if *held != number {
                    if *held != u64::MAX {
                        w.stack_definition(later, 35, place, &stack(*held))?;
                    }
                    *held = number;
                }
                w.stack_key(later, StackMode::User, at, pid_of(tid), tid, place)?;
            } else {
                let stack = Stack {
                    event: at,
                    pid: pid_of(tid),
                    tid,
                    addresses: &addresses,
                };
                w.stack(later, &stack)?;
            }
            samples += 1;
        }
    }
    for (place, number) in table
        .into_iter()
        .enumerate()
        .filter(|(_, n)| *n != u64::MAX)
    {
        let at = At::ms(100_000_000);
        w.stack_definition(at, 36, place as u64, &stack(number))?;
    }
    Ok(samples)
}

struct Counted {
    out: BufWriter<File>,
    bytes: u64,
}

impl Write for Counted {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let written = self.out.write(data)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
