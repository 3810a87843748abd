//! Converts whole symbol files for the cache: finds the addresses at which answers can change, and
//! looks them up.

use std::time::{Duration, Instant};

use crate::answer::{Address, Answers, Missing};
use crate::converted::{Key, SymbolCache, Table, TableWriter, Tables};
use crate::dwarf::functions::Walk;
use crate::dwarf::unit::{self, Unit};
use crate::mmap::Origin;
use crate::native::NativeSymbols;
use crate::pdb::PdbSymbols;
use crate::query::Query;

/// Smaller files are converted only on request: they are read in a few milliseconds.
const MIN_BYTES: u64 = 8 << 20;

/// The number of addresses of one file, at most.
const MAX_ADDRESSES: usize = 64 << 20;

/// The number of addresses of 32 bits.
const RVAS: u64 = 1 << 32;

/// The number of frames in memory at a time, about.
const FRAMES: usize = 512 << 10;

/// The number of addresses that are looked up at a time, at most and at least.
const MAX_BATCH: usize = 32 << 10;
const MIN_BATCH: usize = 4 << 10;

/// An open PDB keeps what it decoded; it is opened again once it has read this many bytes.
const OPEN_BYTES: u64 = 32 << 20;

/// A file that was modified within this time may be modified again without a new time.
const SETTLED: Duration = Duration::from_secs(10);

/// The answers of a file cannot be converted: it is damaged, or a limit was reached.
struct Refused;

/// When the conversion of a file is abandoned: after 3 s, and 1 s for each 8 MB of the file, unless
/// the user wants it.
struct Deadline(Option<Instant>);

impl Deadline {
    fn of(tables: &Tables, bytes: usize) -> Self {
        let is_wanted = tables.cache().is_some_and(SymbolCache::always);
        let time = Duration::from_secs((bytes as u64 >> 23).saturating_add(3));
        Self(Instant::now().checked_add(time).filter(|_| !is_wanted))
    }

    fn check(&self) -> Result<(), Refused> {
        match self.0.is_some_and(|end| Instant::now() > end) {
            true => Err(Refused),
            false => Ok(()),
        }
    }
}

impl NativeSymbols {
    /// Converts the symbols for the queries so far, if that is due, and stores them in the cache.
    /// Returns the number of bytes stored.
    ///
    /// Split units, Go's function table and Breakpad's files are not converted, nor is a file with
    /// damage.
    pub fn convert(&self) -> u64 {
        let own = (&self.image.data, self.debug(), self.supplement());
        let (image, debug, supplement) = own;
        let files = [
            Some(&debug.data),
            Some(image),
            supplement.map(|it| &it.data),
        ];
        let origins: Vec<&Origin> = files.iter().flatten().filter_map(|d| d.origin()).collect();
        convert(&self.converted, &origins, |query, key| {
            self.converted_file(query, key)
        })
    }

    fn converted_file(&self, query: &Query, key: &Key) -> Result<Table, Refused> {
        if self.tables().is_some() {
            return Err(Refused);
        }
        let code = &self.image.code;
        let base = code.first().map(|range| range.start).ok_or(Refused)?;
        let end = code.last().map(|range| range.end).ok_or(Refused)?;
        let len = end.checked_sub(base).filter(|&len| len <= RVAS);
        let len = len.ok_or(Refused)?;
        let deadline = Deadline::of(&self.converted, self.debug().data.len());
        let (mut addresses, depth) = self.boundaries(query, &deadline, base, end)?;
        addresses.push(base);
        addresses.sort_unstable();
        addresses.dedup();
        let sections = self.sections();
        let unit = |va: u64| match self.image.is_code(va) {
            true => self.index.find(self.debug(), &sections, &self.starts, va),
            false => None,
        };
        // Units are decoded once: their functions need not be adjacent.
        let mut grouped: Vec<(usize, u64)> = addresses
            .iter()
            .map(|&va| (unit(va).unwrap_or(usize::MAX), va))
            .collect();
        grouped.sort_unstable();
        drop(addresses);
        let mut writer = TableWriter::default();
        let mut answers = Answers::new();
        let mut batch: Vec<Address> = Vec::new();
        let size = batch_size(depth);
        let mut units = grouped.chunk_by(|a, b| a.0 == b.0).peekable();
        while let Some(unit) = units.next() {
            for part in unit.chunks(size) {
                batch.extend(part.iter().map(|&(_, va)| Address::VirtualAddress(va)));
                let next = units.peek().map_or(usize::MAX, |next| next.len());
                if part.len() < size && batch.len().saturating_add(next) <= size {
                    continue;
                }
                self.find_directly(&batch, query, &mut answers);
                add(&mut writer, base, &answers)?;
                batch.clear();
                deadline.check()?;
            }
        }
        writer.finish(key, base, len).ok_or(Refused)
    }

    /// Returns the addresses at which answers can change, from `base` up to `end`, and the greatest
    /// number of nested functions.
    fn boundaries(
        &self,
        query: &Query,
        deadline: &Deadline,
        base: u64,
        end: u64,
    ) -> Result<(Vec<u64>, usize), Refused> {
        let debug = self.debug();
        debug.debug.keep_all();
        let sections = self.sections();
        let mut all = Vec::new();
        let mut add = |va: u64| {
            if (base..end).contains(&va) {
                all.push(va);
            }
        };
        for range in &self.image.code {
            add(range.start);
            add(range.end);
        }
        self.symbols().boundaries().for_each(&mut add);
        if let Some(dialect) = query.symbol_names {
            self.tool_symbols(dialect).boundaries().for_each(&mut add);
        }
        if sections.info.len() == 0 {
            return Ok((all, 1));
        }
        self.index
            .each_boundary(debug, &sections, &self.starts, &mut add);
        let mut table = unit::Table::default();
        let (mut depth, mut problem) = (1, None);
        self.starts.each(&sections, |sections, offset| {
            if problem.is_some() {
                return;
            }
            let mut read = || {
                deadline.check()?;
                table.check(sections).map_err(|_| Refused)?;
                let unit = Unit::read(sections, offset, &mut table).map_err(|_| Refused)?;
                if unit.dwo_name.is_some() {
                    return Err(Refused);
                }
                let lines = self.line_tables.read(&unit, query.line_share);
                if let Some(lines) = lines.map_err(|_| Refused)?.filter(|_| query.lines) {
                    let row = |from, to, _: &_| {
                        add(from);
                        add(to);
                    };
                    lines.run(|_| true, row).map_err(|_| Refused)?;
                }
                let nested = Walk::each_boundary(&unit, &table.abbreviations, &mut add);
                depth = depth.max(nested.map_err(|_| Refused)?);
                Ok(())
            };
            problem = read().err();
        });
        match problem {
            Some(problem) => Err(problem),
            None => Ok((all, depth)),
        }
    }
}

impl PdbSymbols {
    /// As [`NativeSymbols::convert`].
    pub fn convert(&self) -> u64 {
        let origins: Vec<&Origin> = self.data().origin().into_iter().collect();
        convert(&self.converted, &origins, |query, key| {
            self.converted_file(query, key)
        })
    }

    fn converted_file(&self, query: &Query, key: &Key) -> Result<Table, Refused> {
        let deadline = Deadline::of(&self.converted, self.data().len());
        let boundaries = self.with(|pdb| pdb.boundaries(MAX_ADDRESSES, || self.release(pdb)));
        let boundaries = boundaries.ok().flatten().ok_or(Refused)?;
        let mut writer = TableWriter::default();
        let mut answers = Answers::new();
        let open = || PdbSymbols::open(self.data().clone()).map_err(|_| Refused);
        let mut symbols = open()?;
        for batch in boundaries.rvas.chunks(batch_size(boundaries.depth)) {
            if symbols.with(|pdb| pdb.bytes_read()) > OPEN_BYTES {
                symbols = open()?;
                self.data().release(0..self.data().len());
            }
            let rvas: Vec<u64> = batch.iter().copied().map(u64::from).collect();
            symbols.find_directly(&rvas, query, &mut answers);
            add(&mut writer, 0, &answers)?;
            deadline.check()?;
        }
        drop((boundaries, answers, symbols));
        writer.finish(key, 0, RVAS).ok_or(Refused)
    }
}

fn batch_size(depth: usize) -> usize {
    let size = FRAMES.checked_div(depth.saturating_add(1)).unwrap_or(0);
    size.clamp(MIN_BATCH, MAX_BATCH)
}

/// Adds the answers of a batch, unless one is incomplete.
fn add(writer: &mut TableWriter, base: u64, answers: &Answers) -> Result<(), Refused> {
    let is_incomplete = |missing| matches!(missing, Missing::Damaged | Missing::LimitReached);
    let mut all = answers.answers.iter();
    if !answers.damage().is_empty() || all.any(|answer| is_incomplete(answer.missing)) {
        return Err(Refused);
    }
    writer.add(base, answers).ok_or(Refused)
}

/// Converts the symbols of a file for the queries that found none, if that is due.
fn convert(
    tables: &Tables,
    origins: &[&Origin],
    file: impl Fn(&Query, &Key) -> Result<Table, Refused>,
) -> u64 {
    let Some(cache) = tables.cache() else {
        return 0;
    };
    let largest = origins.iter().map(|origin| origin.len).max();
    if !cache.always() && largest.unwrap_or(0) < MIN_BYTES {
        return 0;
    }
    // The cache marks its files as used by their time, and never changes them.
    let is_settled = |origin: &&Origin| {
        let age = origin.modified.elapsed();
        origin.path.starts_with(cache.folder())
            || age.is_ok_and(|age| age > SETTLED) && origin.is_current()
    };
    let mut stored = 0_u64;
    for (query, key) in tables.missing() {
        if !origins.iter().all(is_settled) || !cache.is_due(&key) {
            continue;
        }
        match file(&query, &key) {
            Ok(table) if origins.iter().all(is_settled) => {
                stored = stored.saturating_add(store(cache, &key, &table));
            }
            Ok(_) => {}
            Err(Refused) => cache.refuse(&key),
        }
    }
    stored
}

/// Returns the number of bytes stored. A cache that cannot be written to stays as it is.
fn store(cache: &SymbolCache, key: &Key, table: &Table) -> u64 {
    match cache.store(key, table) {
        Ok(()) => table.file_len(),
        Err(_) => 0,
    }
}
