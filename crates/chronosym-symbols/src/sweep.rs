//! Resolves a batch of addresses: sorts them, groups them by unit, and distributes the units over
//! threads.

#![cfg_attr(
    not(test),
    expect(
        clippy::cast_possible_truncation,
        reason = "places of frames have 32 bits: more of them than that fit no memory"
    )
)]

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chronosym_types::hash::HashMap;
use gimli::SectionId;

use crate::answer::{Address, Answers, Missing, NonZeroId, Source, StoredAnswer, StoredFrame};
use crate::breakpad::BreakpadScratch;
use crate::converted::{Converted, Damaged};
use crate::dwarf::cached_unit::CachedUnit;
use crate::dwarf::form::DwarfError;
use crate::dwarf::names::{InfoSection, References};
use crate::dwarf::resolve::{Context, Scratch};
use crate::dwarf::unit::{Sections, Table, Unit};
use crate::elf::symbols::Symbol;
use crate::go::GoScratch;
use crate::native::{FunctionTables, NativeSymbols};
use crate::query::Query;

/// Minimum number of units per thread.
const UNITS_PER_THREAD: usize = 16;

/// Maximum size of a batch that is likely to need only a part of the file.
const FEW: usize = 32;

/// Above this size of `.debug_info`, in bytes, a sweep releases the pages that it has passed.
const LARGE: usize = 32 << 20;

/// The addresses of one unit, or those without a unit.
struct Job<'a> {
    unit: Option<usize>,
    wanted: &'a [u64],
}

/// Working memory of one worker for tables that are not in DWARF.
#[derive(Default)]
struct TableScratch {
    go: GoScratch,
    breakpad: BreakpadScratch,
}

impl NativeSymbols {
    /// Resolves one address and replaces the content of `out`.
    ///
    /// The unit of the address is decoded and cached (32 MB of units per file), so that nearby
    /// addresses resolve quickly.
    pub fn find(&self, address: Address, query: &Query, out: &mut Answers) {
        self.find_all(&[address], query, out);
    }

    /// Resolves many addresses, in the order given, and replaces the content of `out`.
    ///
    /// Fast for large batches: each part of the file is read once, in any order. Addresses may
    /// repeat.
    pub fn find_all(&self, addresses: &[Address], query: &Query, out: &mut Answers) {
        let table = self.table(query);
        self.find_with(addresses, query, table.as_deref(), out)
            .unwrap_or_else(|Damaged| {
                table
                    .iter()
                    .for_each(|table| self.converted.drop_damaged(table));
                self.find_directly(addresses, query, out);
            });
    }

    /// As [`NativeSymbols::find_all`], without converted symbols.
    pub(crate) fn find_directly(&self, addresses: &[Address], query: &Query, out: &mut Answers) {
        // Without a table none is damaged.
        let found = self.find_with(addresses, query, None, out);
        debug_assert!(found.is_ok());
    }

    fn find_with(
        &self,
        addresses: &[Address],
        query: &Query,
        table: Option<&Converted>,
        out: &mut Answers,
    ) -> Result<(), Damaged> {
        out.clear();
        out.lines = query.lines;
        answer(self, addresses, query, table, out)?;
        self.damage().for_each(|problem| out.note_damage(problem));
        out.seal();
        Ok(())
    }
}

fn answer(
    symbols: &NativeSymbols,
    addresses: &[Address],
    query: &Query,
    table: Option<&Converted>,
    out: &mut Answers,
) -> Result<(), Damaged> {
    // Virtual address and index of each query, sorted.
    let mut queries: Vec<(u64, u32)> = Vec::with_capacity(addresses.len());
    out.answers
        .resize(addresses.len(), StoredAnswer::outside(0));
    for ((i, &address), answer) in (0..u32::MAX).zip(addresses).zip(&mut out.answers) {
        let segments = &symbols.image.segments;
        if !segments.has_offsets() && matches!(address, Address::FileOffset(_)) {
            answer.missing = Missing::NoSegment;
        }
        if let Some(va) = segments.virtual_address(address) {
            answer.address = va;
            if symbols.image.is_mapped(va) {
                queries.push((va, i));
            }
        }
    }
    queries.sort_unstable();

    let is_converted = |va| table.is_some_and(|table| table.covers(va));
    let distinct = || {
        let same = queries.chunk_by(|a, b| a.0 == b.0);
        same.filter_map(<[_]>::first).map(|&(va, _)| va)
    };
    let mut resolved = Vec::new();
    if let Some(table) = table {
        let converted = distinct().filter(|&va| is_converted(va));
        table.resolve(converted, out, |out, va, start| {
            resolved.push(StoredAnswer::since(start, va, out));
        })?;
    }
    let others: Vec<u64> = distinct().filter(|&va| !is_converted(va)).collect();
    if !others.is_empty() {
        resolved.extend(resolve(symbols, &others, query, out));
        resolved.sort_unstable_by_key(|frames| frames.address);
    }
    let answers = queries.chunk_by(|a, b| a.0 == b.0).zip(resolved);
    for (&(_, i), f) in answers.flat_map(|(same, f)| same.iter().zip(std::iter::repeat(f))) {
        if let Some(answer) = out.answers.get_mut(i as usize) {
            (answer.start, answer.len, answer.missing) = (f.start, f.len, f.missing);
        }
    }
    Ok(())
}

/// Resolves distinct, sorted virtual addresses from the debug information and the symbol tables.
fn resolve(
    symbols: &NativeSymbols,
    wanted: &[u64],
    query: &Query,
    out: &mut Answers,
) -> Vec<StoredAnswer> {
    let debug = symbols.debug();
    if wanted.len() > FEW {
        debug.debug.keep_all();
    }
    // Decompression overlaps decoding: addresses whose unit is in `.debug_aranges` come first.
    let packed = debug.debug.packed_parts(SectionId::DebugInfo, false);
    let (mut listed, mut others) = (Vec::new(), Vec::new());
    for &va in wanted {
        let code = packed.filter(|_| symbols.image.is_code(va));
        match code.and_then(|_| symbols.index.listed(debug, va)) {
            Some(unit) => listed.push((unit, va)),
            None => others.push(va),
        }
    }
    let first = listed.iter().map(|&(unit, _)| unit).min();
    debug.debug.unpack_together(false, || {
        packed.zip(first).map(|(packed, unit)| packed.from(unit));
    });
    let sections = symbols.sections();
    let mut resolved = sweep(symbols, query, sections, listed, out);
    let unit_of = |va| match sections.info.len() {
        0 => None,
        _ if !symbols.image.is_code(va) => None,
        _ => symbols.index.find(debug, &sections, &symbols.starts, va),
    };
    let others = others.into_iter();
    let others = others
        .map(|va| (unit_of(va).unwrap_or(usize::MAX), va))
        .collect();
    resolved.extend(sweep(symbols, query, sections, others, out));
    resolved
}

/// Resolves addresses, each with its unit, on as many threads as are worthwhile.
fn sweep(
    symbols: &NativeSymbols,
    query: &Query,
    sections: Sections<'_>,
    mut grouped: Vec<(usize, u64)>,
    out: &mut Answers,
) -> Vec<StoredAnswer> {
    if grouped.is_empty() {
        return Vec::new();
    }
    // In the order of the units in the file.
    grouped.sort_unstable();
    let wanted: Vec<u64> = grouped.iter().map(|&(_, va)| va).collect();
    let mut jobs = Vec::new();
    let mut rest = &*wanted;
    for group in grouped.chunk_by(|a, b| a.0 == b.0) {
        let unit = group.first().map(|first| first.0);
        let (own, others) = rest.split_at(group.len());
        rest = others;
        jobs.push(Job {
            unit: unit.filter(|&unit| unit != usize::MAX),
            wanted: own,
        });
    }
    drop(grouped);
    let chunk = |job: &Job<'_>| job.unit.map(|unit| sections.info.chunk(unit));
    let sweep = Sweep {
        symbols,
        query,
        sections,
        jobs: jobs.chunk_by(|a, b| chunk(a) == chunk(b)).collect(),
        wanted: &wanted,
        next: AtomicUsize::new(0),
        release: symbols
            .debug()
            .debug
            .file_range(SectionId::DebugInfo)
            .filter(|info| info.len() > LARGE && jobs.len() > UNITS_PER_THREAD),
    };
    let available = match query.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        n => n,
    };
    let threads = available.min(jobs.len() / UNITS_PER_THREAD).max(1);
    std::thread::scope(|scope| {
        // If no more threads can be spawned, the others do the work.
        let spawn = |_| {
            let thread = std::thread::Builder::new();
            let work = || {
                let mut out = Answers::new();
                let resolved = sweep.work(&mut out);
                (out, resolved)
            };
            thread.spawn_scoped(scope, work).ok()
        };
        let others: Vec<_> = (1..threads).map_while(spawn).collect();
        // This thread writes into the caller's buffer; the frames of the others are appended.
        let mut resolved = sweep.work(out);
        for other in others {
            match other.join() {
                Ok((mut part, mut own)) => {
                    let shift = out.append(&mut part);
                    own.iter_mut()
                        .for_each(|frames| frames.start = frames.start.saturating_add(shift));
                    resolved.append(&mut own);
                }
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        resolved
    })
}

struct Sweep<'a> {
    symbols: &'a NativeSymbols,
    query: &'a Query,
    sections: Sections<'a>,
    /// Jobs, grouped by the chunk of the section that their units are in: while one thread
    /// decompresses, others decode.
    jobs: Vec<&'a [Job<'a>]>,
    wanted: &'a [u64],
    next: AtomicUsize,
    /// File range of `.debug_info` if its pages are released.
    release: Option<Range<usize>>,
}

impl<'a> Sweep<'a> {
    /// Does jobs until none are left.
    fn work(&self, out: &mut Answers) -> Vec<StoredAnswer> {
        let symbols = self.symbols;
        let context = Context {
            references: References {
                main: InfoSection {
                    sections: self.sections,
                    starts: &symbols.starts,
                },
                supplement: symbols.supplement().map(|container| InfoSection {
                    sections: Sections::of(container, false),
                    starts: &symbols.supplement_starts,
                }),
            },
            code: &symbols.image.code,
            query: self.query,
            tables: &symbols.line_tables,
        };
        let mut scratch = Scratch::default();
        let mut resolved = Vec::new();
        let mut names = SymbolNames::default();
        let mut tables = TableScratch::default();
        let next = || self.jobs.get(self.next.fetch_add(1, Ordering::Relaxed));
        for job in std::iter::from_fn(next).copied().flatten() {
            let wanted = job.wanted;
            let done = resolved.len();
            // With an incomplete index, an address without a unit may have one.
            let mut missing = match (job.unit, symbols.index.damage()) {
                (None, Some(error)) => Some(error.missing()),
                _ => None,
            };
            if let (Some(offset), [va]) = (job.unit, self.wanted)
                && let Some(answered) = self.cached(&mut scratch, offset, *va, context, out)
            {
                missing = answered.0;
                resolved.extend(answered.1);
            } else if let Some(offset) = job.unit {
                let table = &mut scratch.table;
                let read = table.check(&self.sections);
                match read.and_then(|()| Unit::read(&self.sections, offset, table)) {
                    Ok(unit) => {
                        missing =
                            self.unit(&mut scratch, &unit, context, wanted, out, &mut resolved);
                        self.release(offset, unit.data.len());
                    }
                    Err(error) => {
                        missing = Some(error.missing());
                        out.note_damage(format!("header of the unit at {offset:#x}: {error}"));
                    }
                }
            }
            if resolved.len() == done {
                let none = |&va| StoredAnswer::since(out.frames.len(), va, out);
                resolved.extend(wanted.iter().map(none));
            }
            for f in resolved.iter_mut().skip(done) {
                if let Some(missing) = missing {
                    f.missing = missing;
                }
                self.add_tables(f, &mut tables, out);
                self.add_symbol(f, &mut names, out);
            }
        }
        resolved
    }

    /// Resolves a single address in its cached unit; `None` if the unit cannot be cached.
    fn cached(
        &self,
        scratch: &mut Scratch<'a>,
        offset: usize,
        va: u64,
        context: Context<'a>,
        out: &mut Answers,
    ) -> Option<(Option<Missing>, Option<StoredAnswer>)> {
        let cached = self.symbols.cached_units.get_or_load(&offset, || {
            let mut table = Table::default();
            let unit = Unit::read(&self.sections, offset, &mut table)?;
            // The entries of a skeleton are in another file; a cached row has none before it.
            if unit.dwo_name.is_some() || self.query.skip_line_zero {
                return Err(DwarfError::Reference);
            }
            let lines = context.tables.read(&unit, context.query.line_share);
            let cached = CachedUnit::read(&unit, table, context.code, lines);
            let weight = cached.bytes() as u64;
            Ok((Arc::new(cached), weight))
        });
        let cached = cached.ok()?;
        let unit = Unit::read_again(&self.sections, offset, &cached.table).ok()?;
        let mut frames = None;
        let each = |out: &mut Answers, _, start: usize| {
            frames = Some(StoredAnswer::since(start, va, out));
        };
        let missing = scratch.resolve_cached(&unit, &cached, context, va, out, each);
        Some((missing, frames))
    }

    fn unit(
        &self,
        scratch: &mut Scratch<'a>,
        unit: &Unit<'a>,
        context: Context<'a>,
        wanted: &[u64],
        out: &mut Answers,
        resolved: &mut Vec<StoredAnswer>,
    ) -> Option<Missing> {
        let each = |out: &mut Answers, i: usize, start: usize| {
            resolved.extend(wanted.get(i).map(|&va| StoredAnswer::since(start, va, out)));
        };
        if let (Some(id), Some(name)) = (unit.dwo_id, unit.dwo_name) {
            let file = self.symbols.split_unit(id, unit.comp_dir, name);
            let split = file.as_deref().map(|file| file.find(id));
            let damaged = split.is_some().then_some(Missing::Damaged);
            match split {
                Some(Ok(Some(split))) => return split.resolve(unit, context, wanted, out, each),
                Some(Ok(None)) => out.note_damage(format!(
                    "split unit {:#018x}: the file found for it lacks it",
                    id.0
                )),
                Some(Err(error)) => out.note_damage(format!("split unit {:#018x}: {error}", id.0)),
                None => {}
            }
            let missing = scratch.resolve(unit, None, context, wanted, out, each);
            return damaged.or(missing);
        }
        scratch.resolve(unit, None, context, wanted, out, each)
    }

    /// Resolves an address without frames by functions and lines that are not in DWARF.
    fn add_tables(&self, f: &mut StoredAnswer, scratch: &mut TableScratch, out: &mut Answers) {
        if f.len > 0 {
            return;
        }
        let start = out.frames.len();
        match self.symbols.tables() {
            Some(FunctionTables::Go(go)) => {
                if let Err(missing) = go.resolve(f.address, self.query, &mut scratch.go, out) {
                    f.missing = missing;
                    out.note_damage(
                        "Go's function table: functions share too much data".to_owned(),
                    );
                }
            }
            Some(FunctionTables::Breakpad(file)) => {
                file.resolve(f.address, self.query, &mut scratch.breakpad, out);
            }
            None => {}
        }
        if out.frames.len() > start {
            *f = StoredAnswer::since(start, f.address, out);
        }
    }

    /// Adds the name from the symbol table, if there is no other or if it was requested. Without a
    /// request, a function with a reserved name has the name that programs use.
    fn add_symbol(&self, f: &mut StoredAnswer, names: &mut SymbolNames, out: &mut Answers) {
        let own = f.start as usize..f.start.saturating_add(f.len) as usize;
        let last = out.frames.get_mut(own).and_then(<[_]>::last_mut);
        let name = last.as_ref().and_then(|frame| frame.name);
        let named = name.is_some();
        let own = match last.as_ref().zip(name) {
            None => self.symbols.symbols().find(f.address),
            Some((frame, name)) => {
                let name = out.names.get(name.get()).as_bytes();
                let wanted = self.query.symbol_names.is_none() && is_reserved(name);
                let start = frame.function;
                let symbol = wanted.then(|| self.symbols.symbols().find(start)).flatten();
                symbol.filter(|symbol| symbol.start == start && is_alias(symbol, name))
            }
        };
        let tool = self.query.symbol_names;
        let tool = tool.and_then(|dialect| self.symbols.tool_symbols(dialect).find(f.address));
        let mut intern = |symbol: Symbol<'_>, table| {
            let file = symbol.file.filter(|_| self.query.lines);
            *names
                .entry((table, symbol.key))
                .or_insert_with(|| SymbolTexts {
                    name: match symbol.source {
                        // LLVM's and GNU's tools do not name stubs.
                        Source::Plt => None,
                        _ => out.names.intern(symbol.name),
                    },
                    alias: match symbol.source {
                        Source::Plt => out.names.intern(&[symbol.alias, b"@plt"].concat()),
                        _ => out.names.intern(symbol.alias),
                    },
                    file: file.and_then(|file| out.files.intern(file)),
                })
        };
        let tool = tool.map(|symbol| (symbol, intern(symbol, Names::Tool)));
        let own = own.map(|symbol| (symbol, intern(symbol, Names::Own)));
        let Some((symbol, texts)) = own.or(tool) else {
            if f.len == 0 {
                // The frames of a later address may start here.
                f.start = 0;
            }
            return;
        };
        let SymbolTexts { alias, file, .. } = texts;
        let name = tool.and_then(|(_, texts)| texts.name);
        match last {
            Some(frame) => {
                frame.symbol = name;
                frame.file = frame.file.or(file);
                if !named || own.is_some() {
                    frame.name = alias;
                }
                if !named {
                    frame.source = symbol.source;
                    if !frame.has_function {
                        (frame.function, frame.has_function) = (symbol.start, true);
                    }
                }
            }
            None => {
                f.start = out.frames.len() as u32;
                f.len = 1;
                out.frames.push(StoredFrame {
                    name: alias,
                    symbol: name,
                    file,
                    line: 0,
                    column: 0,
                    discriminator: 0,
                    function: symbol.start,
                    has_function: true,
                    inlined: false,
                    plain_names: false,
                    line_limited: false,
                    line_uncertain: false,
                    source: symbol.source,
                });
            }
        }
    }

    fn release(&self, offset: usize, len: usize) {
        if let Some(info) = &self.release {
            let start = info.start.saturating_add(offset);
            let end = start.saturating_add(len);
            self.symbols.debug().data.release(start..end);
        }
    }
}

/// Returns true for the names that C reserves for its implementation, such as `__GI___libc_malloc`;
/// those that start with `__Z` are mangled.
fn is_reserved(name: &[u8]) -> bool {
    name.starts_with(b"__") && !name.starts_with(b"__Z")
}

/// Returns true if a symbol at the start of the function `name` is another name of it, and not the
/// name of a different function that the linker merged with it.
fn is_alias(symbol: &Symbol<'_>, name: &[u8]) -> bool {
    let plain = symbol.alias.iter().position(|&byte| byte != b'_');
    let plain = plain.and_then(|plain| symbol.alias.get(plain..));
    symbol.source != Source::Plt
        && !symbol.alias.contains(&b'@')
        && plain.is_some_and(|plain| memchr::memmem::find(name, plain).is_some())
}

/// The interned texts of symbols, by key.
type SymbolNames = HashMap<(Names, usize), SymbolTexts>;

/// The tools that choose the symbols: this library, or those whose names are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Names {
    Own,
    Tool,
}

/// The interned names of a symbol and of its source file.
#[derive(Clone, Copy)]
struct SymbolTexts {
    name: Option<NonZeroId>,
    alias: Option<NonZeroId>,
    file: Option<NonZeroId>,
}
