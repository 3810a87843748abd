//! Windows PDB: first answer, 1,000 and 100,000 answers, each from the bytes of the file on,
//! compared with `pdb-addr2line` and `wholesym` for the same addresses; and the text of `symbolize
//! --style llvm`, compared with the frames of `pdb-addr2line` in this layout.
//!
//! `CHRONOSYM_BENCH_PDB` names the file; the default is the small one of the test data, for which
//! lookups dominate.

use std::hint::black_box;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use chronosym_benches::size;
use chronosym_pdb::windows::{Frames, WindowsPdb};
use chronosym_symbols::demangle::Dialect;
use chronosym_symbols::mmap::FileData;
use chronosym_symbols::style::{Printer, Style};
use chronosym_symbols::{Answers, PdbSymbols, Query};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pdb_addr2line::{ContextPdbData, pdb::PDB};

/// Uniform over the code, the same for all.
fn addresses(data: &[u8], count: usize) -> Vec<u32> {
    let pdb = WindowsPdb::open(data).expect("a Windows PDB");
    let functions = || pdb.functions().flatten();
    let first = functions().map(|found| found.rva).min().expect("functions");
    let last = functions()
        .map(|found| found.rva + found.len)
        .max()
        .expect("functions");
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut next = || {
        // xorshift64
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        first + (state % u64::from(last - first)) as u32
    };
    (0..count).map(|_| next()).collect()
}

fn chronosym(data: &[u8], addresses: impl Iterator<Item = u32>) -> usize {
    let pdb = WindowsPdb::open(data).expect("a Windows PDB");
    let mut frames = Frames::new();
    let mut lines = 0;
    for rva in addresses {
        let found = pdb.find(rva, &mut frames).expect("an undamaged file");
        black_box(found);
        lines += frames.iter().filter(|frame| frame.line.is_some()).count();
    }
    lines
}

fn pdb_addr2line(data: &[u8], addresses: impl Iterator<Item = u32>) -> usize {
    let pdb = PDB::open(Cursor::new(data)).expect("a Windows PDB");
    let parts = ContextPdbData::try_from_pdb(pdb).expect("a whole file");
    let context = parts.make_context().expect("a whole file");
    let mut lines = 0;
    for rva in addresses {
        if let Some(found) = context.find_frames(rva).expect("an undamaged file") {
            lines += found
                .frames
                .iter()
                .filter(|frame| frame.line.is_some())
                .count();
        }
    }
    lines
}

/// As `symbolize --style llvm` prints, on one thread.
fn printed(data: &[u8], addresses: &[u32]) -> usize {
    let pdb = PdbSymbols::open(FileData::from(data)).expect("a Windows PDB");
    let mut query = Query::default();
    query.symbol_names = Some(Dialect::Llvm);
    query.threads = 1;
    let mut answers = Answers::new();
    let addresses: Vec<u64> = addresses.iter().map(|&rva| rva.into()).collect();
    pdb.find_all(&addresses, &query, &mut answers);
    let mut text = Vec::new();
    let printer = Printer::new(Style::Llvm, &answers);
    printer.print_all(&mut text).expect("memory");
    text.len()
}

/// The frames of `pdb-addr2line` in the same layout.
fn pdb_addr2line_printed(data: &[u8], addresses: &[u32]) -> usize {
    let pdb = PDB::open(Cursor::new(data)).expect("a Windows PDB");
    let parts = ContextPdbData::try_from_pdb(pdb).expect("a whole file");
    let context = parts.make_context().expect("a whole file");
    let mut text = Vec::new();
    for &rva in addresses {
        let found = context.find_frames(rva).expect("an undamaged file");
        for frame in found.iter().flat_map(|found| &found.frames) {
            let name = frame.function.as_deref().unwrap_or("??");
            let file = frame.file.as_deref().unwrap_or("??");
            let line = frame.line.unwrap_or(0);
            writeln!(text, "{name}\n{file}:{line}:0").expect("memory");
        }
        text.push(b'\n');
    }
    text.len()
}

/// Finds files by identity and path; the file is in the page cache.
fn wholesym(path: &Path, data: &[u8], addresses: impl Iterator<Item = u32>) -> usize {
    use wholesym::{LibraryInfo, LookupAddress, SymbolManager, SymbolManagerConfig, debugid};
    let pdb = WindowsPdb::open(data).expect("a Windows PDB");
    let name = path.file_name().map(|name| name.to_string_lossy());
    let name = name.expect("a file's name").into_owned();
    let id = debugid::DebugId::from_guid_age(&pdb.id().guid.0, pdb.id().age).expect("an identity");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let mut manager = SymbolManager::with_config(SymbolManagerConfig::default());
    manager.add_known_library(LibraryInfo {
        debug_name: Some(name.clone()),
        debug_id: Some(id),
        debug_path: Some(path.to_string_lossy().into()),
        ..LibraryInfo::default()
    });
    let map = runtime
        .block_on(manager.load_symbol_map(&name, id))
        .expect("a symbol map");
    let lines = |rva| {
        let found = runtime.block_on(map.lookup(LookupAddress::Relative(rva)))?;
        let frames = black_box(found).frames?;
        Some(
            frames
                .iter()
                .filter(|frame| frame.line_number.is_some())
                .count(),
        )
    };
    addresses.filter_map(lines).sum()
}

fn pdb(criterion: &mut Criterion) {
    let small =
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../testdata/pdb-small/x86_64/small.pdb");
    let path = std::env::var_os("CHRONOSYM_BENCH_PDB").map_or_else(small, PathBuf::from);
    let data = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let counts = [1, 1_000, 100_000].map(size);
    let all = addresses(&data, counts[2]);
    let mut group = criterion.benchmark_group("pdb");
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3));
    for count in counts {
        let some = &all[..count];
        let mut sorted = some.to_vec();
        sorted.sort_unstable();
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(BenchmarkId::new("chronosym", count), |bencher| {
            bencher.iter(|| chronosym(&data, some.iter().copied()));
        });
        group.bench_function(BenchmarkId::new("chronosym-sorted", count), |bencher| {
            bencher.iter(|| chronosym(&data, sorted.iter().copied()));
        });
        group.bench_function(BenchmarkId::new("pdb-addr2line", count), |bencher| {
            bencher.iter(|| pdb_addr2line(&data, some.iter().copied()));
        });
        group.bench_function(BenchmarkId::new("pdb-addr2line-sorted", count), |bencher| {
            bencher.iter(|| pdb_addr2line(&data, sorted.iter().copied()));
        });
        group.bench_function(BenchmarkId::new("chronosym-printed", count), |bencher| {
            bencher.iter(|| printed(&data, some));
        });
        group.bench_function(
            BenchmarkId::new("pdb-addr2line-printed", count),
            |bencher| {
                bencher.iter(|| pdb_addr2line_printed(&data, some));
            },
        );
        group.bench_function(BenchmarkId::new("wholesym-sorted", count), |bencher| {
            bencher.iter(|| wholesym(&path, &data, sorted.iter().copied()));
        });
    }
    group.finish();
}

criterion_group!(benches, pdb);
criterion_main!(benches);
