//! Converted symbols have the answers of the symbol file: names, symbols, files, lines, columns,
//! inlined frames and reasons, in every style, for every byte of the code.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime};

use chronosym_symbols::converted::{CacheUse, SymbolCache};
use chronosym_symbols::demangle::Dialect;
use chronosym_symbols::style::{Printer, Style};
use chronosym_symbols::{Address, Answers, DebugFileSearch, NativeSymbols, PdbSymbols, Query};
use libtest_mimic::Failed;

/// About so many bytes of larger programs are looked up.
const MANY: u64 = 20_000;

/// Opens the symbols of an object file as the matrix does.
pub fn open(path: &Path) -> Result<NativeSymbols, Failed> {
    let mut places = DebugFileSearch::next_to(path);
    places.recorded_paths = true;
    Ok(NativeSymbols::open_path_with(path, places)?)
}

/// The queries that the tools and the library make.
fn queries() -> Vec<Query> {
    let mut all = vec![Query::default(); 5];
    all[1].symbol_names = Some(Dialect::Gnu);
    all[2].symbol_names = Some(Dialect::Llvm);
    all[3].inlines = false;
    all[4].lines = false;
    all
}

/// Checks an object file; one with split units is not converted.
pub fn object(path: &Path, is_split: bool) -> Result<(), Failed> {
    let direct = open(path)?;
    let code = direct.code().iter().map(|range| range.end - range.start);
    let step = usize::try_from(code.sum::<u64>() / MANY)?.max(1);
    let all = direct.code().iter();
    let all = all.flat_map(|r| (r.start..r.end + 9).step_by(step));
    // Outside of the code and of the image, too.
    let all: Vec<Address> = all
        .chain([0, direct.base(), u64::MAX])
        .map(Address::VirtualAddress)
        .collect();
    let find = |symbols: &NativeSymbols, query: &Query, out: &mut Answers| {
        symbols.find_all(&all, query, out);
    };
    settle(path.parent().ok_or("no folder")?)?;
    let cache = tempfile::tempdir()?;
    let cached = || {
        let mut symbols = open(path)?;
        symbols.use_cache(symbol_cache(cache.path())?);
        Ok::<_, Failed>(symbols)
    };
    let first = cached()?;
    for query in queries() {
        let mut answers = Answers::new();
        find(&first, &query, &mut answers);
        if first.is_converted(&query) {
            return Err("converted before it was used".into());
        }
    }
    let stored = first.convert();
    if is_split {
        return match stored {
            0 => Ok(()),
            _ => Err("split units were converted".into()),
        };
    }
    let second = cached()?;
    let (mut expected, mut found) = (Answers::new(), Answers::new());
    for query in queries() {
        if !second.is_converted(&query) {
            return Err(format!("not converted: {query:?}").into());
        }
        find(&direct, &query, &mut expected);
        find(&second, &query, &mut found);
        compare(&query, &expected, &found)?;
        // One at a time, from the end on.
        for (i, &address) in all.iter().enumerate().rev().step_by(997) {
            let mut single = Answers::new();
            second.find(address, &query, &mut single);
            same(&query, &expected, i, &single, 0)?;
        }
    }
    match second.missing_files() == direct.missing_files() {
        true => Ok(()),
        false => Err("other files are missing".into()),
    }
}

/// Checks the PDB of an image.
pub fn pdb(path: &Path, code: &[std::ops::Range<u64>]) -> Result<(), Failed> {
    let map = || chronosym_symbols::mmap::FileData::map(path);
    let direct = PdbSymbols::open(map()?)?;
    let all: Vec<u64> = code
        .iter()
        .flat_map(|range| range.start..range.end + 9)
        .chain([0, 1, u64::from(u32::MAX), u64::from(u32::MAX) + 1, u64::MAX])
        .collect();
    settle(path.parent().ok_or("no folder")?)?;
    let cache = tempfile::tempdir()?;
    let cached = || {
        let mut symbols = PdbSymbols::open(map()?)?;
        symbols.use_cache(symbol_cache(cache.path())?);
        Ok::<_, Failed>(symbols)
    };
    let first = cached()?;
    let (mut expected, mut found) = (Answers::new(), Answers::new());
    for query in queries() {
        first.find_all(&all[..1], &query, &mut found);
    }
    if first.convert() == 0 {
        return Err("not converted".into());
    }
    let second = cached()?;
    for query in queries() {
        if !second.is_converted(&query) {
            return Err(format!("not converted: {query:?}").into());
        }
        direct.find_all(&all, &query, &mut expected);
        second.find_all(&all, &query, &mut found);
        compare(&query, &expected, &found)?;
    }
    Ok(())
}

fn symbol_cache(folder: &Path) -> Result<SymbolCache, Failed> {
    Ok(SymbolCache::new(folder, 0, CacheUse::Always).ok_or("no cache")?)
}

/// Makes files an hour old: those that were just written are not converted.
pub fn settle(folder: &Path) -> Result<(), Failed> {
    let hour = SystemTime::now() - Duration::from_secs(3600);
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_file() {
            File::options()
                .append(true)
                .open(path)?
                .set_modified(hour)?;
        }
    }
    Ok(())
}

fn compare(query: &Query, expected: &Answers, found: &Answers) -> Result<(), Failed> {
    if expected.len() != found.len() || expected.damage() != found.damage() {
        return Err(format!("{query:?}: {:?}", found.damage()).into());
    }
    (0..expected.len()).try_for_each(|i| same(query, expected, i, found, i))
}

fn same(query: &Query, a: &Answers, i: usize, b: &Answers, j: usize) -> Result<(), Failed> {
    let (Some(one), Some(other)) = (a.get(i), b.get(j)) else {
        return Err("no answer".into());
    };
    let fields = |answers: &Answers, answer: &chronosym_symbols::Answer<'_>| {
        let frames = answer.frames().map(|frame| {
            let symbol = frame.symbol_id().map(|id| answers.name(id).to_owned());
            let line = (frame.line(), frame.column(), frame.discriminator());
            let flags = (
                frame.inlined(),
                frame.line_limited(),
                frame.line_uncertain(),
            );
            let names = (frame.name().map(str::to_owned), symbol);
            let file = frame.file().map(str::to_owned);
            let rest = (frame.function_start(), frame.source(), flags);
            (names, file, line, rest)
        });
        let frames: Vec<_> = frames.collect();
        (answer.address(), answer.missing(), frames)
    };
    let (left, right) = (fields(a, &one), fields(b, &other));
    if left != right {
        return Err(format!("{query:?}\n file  {left:x?}\n cache {right:x?}").into());
    }
    if !i.is_multiple_of(16) {
        return Ok(());
    }
    for style in [Style::Text, Style::Gnu, Style::Llvm, Style::Json] {
        let print = |answers: &Answers, answer: &chronosym_symbols::Answer<'_>| {
            let mut text = Vec::new();
            let printer = Printer::new(style, answers);
            let address = answer.address();
            printer.print(&mut text, address, answer).map(|()| text)
        };
        let (left, right) = (print(a, &one)?, print(b, &other)?);
        if left != right {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let (left, right) = (text(&left), text(&right));
            return Err(format!("{query:?}\n file  {left}\n cache {right}").into());
        }
    }
    Ok(())
}
