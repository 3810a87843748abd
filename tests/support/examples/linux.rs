//! Writes synthetic recordings of Linux to standard output:
//!
//! `cargo run --release -p chronosym-support --example linux -- perf MEGABYTES STACKS > perf.data`
//! writes samples with call chains of 40 frames, STACKS distinct ones;
//! `… -- jitdump LOADS > jit-7.dump` writes a jitdump.

use std::error::Error;
use std::io::{self, Write};

use chronosym_support::perf::{JitdumpWriter, PerfAttr, PerfWriter};

const PID: u32 = 7;
const IMAGE: u64 = 0x40_0000;
const IMAGE_BYTES: u64 = 64 << 20;
const DEPTH: u64 = 40;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut out = io::stdout().lock();
    match arguments.as_slice() {
        ["perf", megabytes, stacks] => perf(megabytes.parse()?, stacks.parse()?, &mut out)?,
        ["jitdump", loads] => out.write_all(&jitdump(loads.parse()?))?,
        _ => return Err("perf MEGABYTES STACKS, or jitdump LOADS, please".into()),
    }
    Ok(())
}

/// A number that looks like chance, the same each time.
fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    number ^ number >> 33
}

/// The frames of a stack, innermost first; stacks that are near each other share their callers.
fn chain(stack: u64, stacks: u64) -> impl Iterator<Item = u64> {
    (0..DEPTH).map(move |up| {
        let shared = (stacks >> up).max(1);
        let node = (stack % shared) << 8 | up;
        IMAGE + mixed(node) % IMAGE_BYTES
    })
}

/// Writes the pipe form, which needs memory for a part only.
fn perf(megabytes: u64, stacks: u64, out: &mut impl Write) -> io::Result<()> {
    const ROUND: u64 = 10_000;
    let mut perf = PerfWriter::new(PerfAttr::default());
    out.write_all(&perf.pipe())?;
    perf.comm(1, PID, PID, "app");
    perf.mmap2(2, PID, IMAGE, IMAGE_BYTES, 0, "/bin/app");
    let (mut written, mut samples) = (0, 0);
    while written < megabytes << 20 {
        for _ in 0..ROUND {
            samples += 1;
            let stack = mixed(samples) % stacks.max(1);
            let frames: Vec<u64> = chain(stack, stacks.max(1)).collect();
            let thread = PID + (stack % 8) as u32;
            perf.sample(10 + samples * 1_000, PID, thread, &frames);
        }
        perf.round();
        out.write_all(perf.records())?;
        written += perf.written() as u64;
        perf = PerfWriter::new(PerfAttr::default());
    }
    Ok(())
}

/// Methods side by side, each loaded once.
fn jitdump(loads: u64) -> Vec<u8> {
    let mut dump = JitdumpWriter::new(false, PID, 0);
    for load in 0..loads {
        let name = format!(
            "Namespace.Type{}::Method{load}(int32)[OptimizedTier1]",
            load % 500
        );
        dump.load(
            1_000 + load,
            PID,
            0x7f00_0000_0000 + load * 64,
            &name,
            &[0x90; 64],
        );
    }
    dump.file().to_vec()
}
