//! Addresses of a large ELF file, each engine in a process of its own: from its start to the last
//! answer, its peak, and how many times as long as chronosym it takes.
//!
//! `CHRONOSYM_BENCH_ELF` names the file: a release build of a large Rust program with `debug = 2`,
//! 200 MB and more. Without it this very program is used, which shows little. The addresses are
//! spread evenly over `.text`, the same for all engines; the answers (names mangled, files, lines,
//! inlined functions) are looked at, not printed. The system's `llvm-symbolizer` and `addr2line`,
//! where they are installed, print demangled answers, and so does `chronosym-printed`.

use std::hint::black_box;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use chronosym_benches::size;
use chronosym_symbols::demangle::Dialect;
use chronosym_symbols::style::{Printer, Style};
use chronosym_symbols::{Address, Answers, NativeSymbols, Query};

const ENGINES: [&str; 5] = [
    "chronosym",
    "chronosym-printed",
    "addr2line",
    "blazesym",
    "wholesym",
];
/// The system's tools, with the options that make them print inlined functions and demangled names.
const TOOLS: [(&str, &[&str]); 2] = [
    ("llvm-symbolizer", &["--inlines", "--demangle"]),
    ("addr2line", &["-f", "-i", "-C"]),
];
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
    let bytes = std::fs::read(&path).map_or(0, |content| content.len());
    println!("{} ({} MB)", path.display(), bytes / 1_000_000);
    println!(
        "{:<18} {:>8} {:>12} {:>7} {:>10} {:>9}",
        "engine", "n", "best", "ratio", "peak MiB", "frames"
    );
    let program = std::env::current_exe().expect("this program");
    for count in COUNTS.map(size) {
        let mut own = [Duration::ZERO; 2];
        for engine in ENGINES {
            let mut said = String::new();
            let best = best(size(RUNS), || {
                let output = Command::new(&program)
                    .args(["--child", engine, &count.to_string()])
                    .output()
                    .expect("a child");
                assert!(output.status.success(), "{engine} failed");
                said = String::from_utf8_lossy(&output.stdout).into_owned();
            });
            match engine {
                "chronosym" => own[0] = best,
                "chronosym-printed" => own[1] = best,
                _ => {}
            }
            let ratio = best.as_secs_f64() / own[0].as_secs_f64();
            let mut words = said.split_whitespace();
            let frames = words.next().unwrap_or("?");
            let peak: u64 = words.next().and_then(|w| w.parse().ok()).unwrap_or(0);
            println!(
                "{engine:<18} {count:>8} {best:>12.2?} {ratio:>6.1}x {:>10} {frames:>9}",
                peak / 1024
            );
        }
        let symbols = NativeSymbols::open_path(&path).expect("an object file");
        let list: String = addresses(&symbols, count)
            .iter()
            .map(|address| format!("{address:#x}\n"))
            .collect();
        for (tool, options) in TOOLS {
            // Slower by an order of magnitude: large counts run once.
            let runs = if count > 1_000 { 1 } else { RUNS };
            let mut ran = true;
            let best = best(runs, || ran &= run_tool(tool, options, &path, &list));
            if ran {
                let ratio = best.as_secs_f64() / own[1].as_secs_f64();
                println!(
                    "{:<18} {count:>8} {best:>12.2?} {ratio:>6.1}x",
                    format!("{tool} (tool)")
                );
            }
        }
    }
    one_at_a_time(&path);
}

/// The best of several runs.
fn best(runs: usize, mut run: impl FnMut()) -> Duration {
    let mut once = || {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    (0..runs).map(|_| once()).min().unwrap_or_default()
}

/// Gives a tool the addresses; false if it cannot be run.
fn run_tool(tool: &str, options: &[&str], path: &Path, list: &str) -> bool {
    let child = Command::new(tool)
        .args(options)
        .arg("-e")
        .arg(path)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn();
    let Ok(mut child) = child else { return false };
    if let Some(mut input) = child.stdin.take() {
        input.write_all(list.as_bytes()).expect("a tool that reads");
    }
    child.wait().is_ok_and(|status| status.success())
}

/// Ten thousand lookups, each by itself, among a hundred kilobytes of code.
fn one_at_a_time(path: &Path) {
    const NEAR: u64 = 100 << 10;
    let symbols = NativeSymbols::open_path(path).expect("an object file");
    let all = addresses(&symbols, 10_000);
    let start = all[0];
    let mut out = Answers::new();
    let mut took = Vec::new();
    for address in all.iter().map(|address| start + address % NEAR) {
        let begin = Instant::now();
        symbols.find(
            Address::VirtualAddress(address),
            &Query::default(),
            &mut out,
        );
        took.push(begin.elapsed());
    }
    took.sort_unstable();
    let (half, last) = (took[took.len() / 2], took[took.len() - 1]);
    println!("one at a time, neighbours: median {half:.2?}, longest {last:.2?}");
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
        "chronosym-printed" => {
            let asked: Vec<Address> = addresses.into_iter().map(Address::VirtualAddress).collect();
            let mut query = Query::default();
            query.symbol_names = Some(Dialect::Llvm);
            let mut out = Answers::new();
            symbols.find_all(&asked, &query, &mut out);
            let printer = Printer::new(Style::Llvm, &out);
            printer.print_all(&mut std::io::sink()).expect("a sink");
            out.iter().map(|answer| answer.frames().len()).sum()
        }
        "wholesym" => {
            use wholesym::{LookupAddress, SymbolManager, SymbolManagerConfig};
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            let manager = SymbolManager::with_config(SymbolManagerConfig::default());
            let map = runtime
                .block_on(manager.load_symbol_map_for_binary_at_path(path, None))
                .expect("a symbol map");
            let frames = |address| {
                let found = runtime.block_on(map.lookup(LookupAddress::Svma(address)))?;
                black_box(&found).frames.as_ref().map(Vec::len)
            };
            addresses.into_iter().filter_map(frames).sum()
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
