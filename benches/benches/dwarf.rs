//! Addresses of a large ELF file, each engine in a process of its own: from its start to the last answer, and its peak.
//!
//! `CHRONOSYM_BENCH_ELF` names the file: a release build of a large Rust program with `debug = 2`, 200 MB and more.
//! Without it this very program is used, which shows little. The addresses are spread evenly over `.text`, the same for
//! all engines; the answers (names mangled, files, lines, inlined functions) are looked at, not printed.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use chronosym_symbols::{Address, Answers, NativeSymbols, Query};

const ENGINES: [&str; 3] = ["chronosym", "addr2line", "blazesym"];
const COUNTS: [usize; 3] = [1, 1_000, 100_000];
const RUNS: usize = 5;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, child, engine, count] = &arguments[..]
        && child == "--child"
    {
        let frames = answer(engine, &file(), count.parse().expect("a count"));
        println!("{frames} {}", peak_kib());
        return;
    }
    let path = file();
    // Once over, so that the file is in the page cache for all alike.
    let size = std::fs::read(&path).map_or(0, |bytes| bytes.len());
    println!("{} ({} MB)", path.display(), size / 1_000_000);
    println!(
        "{:<10} {:>8} {:>12} {:>10} {:>9}",
        "engine", "n", "median", "peak MiB", "frames"
    );
    let program = std::env::current_exe().expect("this program");
    for count in COUNTS {
        for engine in ENGINES {
            let mut times = Vec::new();
            let mut said = String::new();
            for _ in 0..RUNS {
                let start = Instant::now();
                let output = Command::new(&program)
                    .args(["--child", engine, &count.to_string()])
                    .output()
                    .expect("a child");
                times.push(start.elapsed());
                assert!(output.status.success(), "{engine} failed");
                said = String::from_utf8_lossy(&output.stdout).into_owned();
            }
            times.sort_unstable();
            let median: Duration = times[RUNS / 2];
            let mut words = said.split_whitespace();
            let frames = words.next().unwrap_or("?");
            let peak: u64 = words.next().and_then(|w| w.parse().ok()).unwrap_or(0);
            println!(
                "{engine:<10} {count:>8} {median:>12.2?} {:>10} {frames:>9}",
                peak / 1024
            );
        }
    }
}

fn file() -> PathBuf {
    std::env::var_os("CHRONOSYM_BENCH_ELF")
        .map(PathBuf::from)
        .unwrap_or_else(|| std::env::current_exe().expect("this program"))
}

/// Addresses spread over the largest executable section, in no order.
fn addresses(symbols: &NativeSymbols, count: usize) -> Vec<u64> {
    let code = symbols.code();
    let text = code.iter().max_by_key(|r| r.end - r.start).expect("code");
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    (0..count)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            text.start + state % (text.end - text.start)
        })
        .collect()
}

/// Answers `count` addresses with one engine; returns the number of frames.
fn answer(engine: &str, path: &Path, count: usize) -> usize {
    let symbols = NativeSymbols::open_path(path).expect("an object file");
    let addresses = addresses(&symbols, count);
    match engine {
        "chronosym" => {
            let asked: Vec<Address> = addresses.into_iter().map(Address::VirtualAddress).collect();
            let mut out = Answers::new();
            symbols.find_all(&asked, &Query::default(), &mut out);
            let mut frames = 0;
            for frame in out.iter().flat_map(|a| a.frames()) {
                black_box((frame.name(), frame.file(), frame.line()));
                frames += 1;
            }
            frames
        }
        "addr2line" => {
            let loader = addr2line::Loader::new(path).expect("a loader");
            let mut count = 0;
            for address in addresses {
                let mut frames = loader.find_frames(address).expect("frames");
                while let Some(frame) = frames.next().expect("a frame") {
                    black_box(
                        frame
                            .function
                            .as_ref()
                            .map(|f| f.raw_name().map(|n| n.len()).ok()),
                    );
                    black_box(&frame.location);
                    count += 1;
                }
            }
            count
        }
        "blazesym" => {
            use blazesym::symbolize::source::{Elf, Source};
            use blazesym::symbolize::{Input, Symbolizer};
            let symbolizer = Symbolizer::builder().enable_demangling(false).build();
            let answers = symbolizer
                .symbolize(&Source::Elf(Elf::new(path)), Input::VirtOffset(&addresses))
                .expect("answers");
            answers
                .iter()
                .filter_map(|a| a.as_sym())
                .map(|sym| {
                    black_box((&sym.name, &sym.code_info));
                    1 + sym.inlined.len()
                })
                .sum()
        }
        other => panic!("no engine {other}"),
    }
}

/// The process's largest resident size, in KiB.
fn peak_kib() -> u64 {
    std::fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let line = status.lines().find(|l| l.starts_with("VmHWM"))?;
            line.split_whitespace().nth(1)?.parse().ok()
        })
        .unwrap_or(0)
}
