//! A batch of addresses, from asked to answered: sorted, grouped by unit, the units shared out among threads.

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

use crate::answer::{Address, Answers, Missing, NonZeroId, RawAnswer, RawFrame};
use crate::dwarf::form::Bad;
use crate::dwarf::known::Known;
use crate::dwarf::names::Space;
use crate::dwarf::resolve::{Context, Scratch};
use crate::dwarf::unit::{Sections, Table, Unit};
use crate::native::{NativeSymbols, Query};

/// Fewer units than this are not worth a thread.
const UNITS_PER_THREAD: usize = 16;

/// More addresses than this are likely to want most of what a file holds.
const FEW: usize = 32;

/// Above this size of the debug information a sweep gives pages back that it is done with, in bytes.
const LARGE: usize = 32 << 20;

/// The addresses of one unit, or those of none.
struct Job<'a> {
    unit: Option<usize>,
    wanted: &'a [u64],
}

/// What was found for one address: frames of one worker.
#[derive(Clone, Copy)]
struct Found {
    va: u64,
    start: u32,
    len: u32,
    missing: Missing,
}

impl Found {
    /// The frames from `start` on.
    fn since(start: usize, va: u64, out: &Answers) -> Self {
        Found {
            va,
            start: start as u32,
            len: out.frames.len().saturating_sub(start) as u32,
            missing: Missing::NoName,
        }
    }
}

impl NativeSymbols {
    /// Answers one address, in place of what `out` holds.
    ///
    /// The unit that it lies in is decoded and kept (32 MB of them a file), so that its neighbours are found quickly.
    pub fn find(&self, address: Address, query: &Query, out: &mut Answers) {
        self.find_all(&[address], query, out);
    }

    /// Answers many addresses in the order given, in place of what `out` holds.
    ///
    /// Made for large batches: each part of the file is read once, whatever the order. Addresses may repeat.
    pub fn find_all(&self, addresses: &[Address], query: &Query, out: &mut Answers) {
        out.clear();
        out.lines = query.lines;
        answer(self, addresses, query, out);
        self.damage().for_each(|problem| out.note_damage(problem));
        out.seal();
    }
}

fn answer(symbols: &NativeSymbols, addresses: &[Address], query: &Query, out: &mut Answers) {
    // Sorted by address, each distinct one once.
    let mut asked: Vec<(u64, u32)> = Vec::with_capacity(addresses.len());
    let outside = RawAnswer {
        address: 0,
        start: 0,
        len: 0,
        missing: Missing::OutsideImage,
    };
    out.answers.resize(addresses.len(), outside);
    for ((i, &address), answer) in (0..u32::MAX).zip(addresses).zip(&mut out.answers) {
        let segments = &symbols.image.segments;
        if !segments.has_offsets() && matches!(address, Address::FileOffset(_)) {
            answer.missing = Missing::NoSegment;
        }
        if let Some(va) = segments.virtual_address(address) {
            answer.address = va;
            if symbols.image.is_mapped(va) {
                asked.push((va, i));
            }
        }
    }
    asked.sort_unstable();

    let debug = symbols.debug();
    if asked.len() > FEW {
        debug.debug.keep_all();
    }
    // What is packed is best unpacked while others are decoded: those whose unit is known without asking all units come first.
    let packed = debug.debug.packed_parts(SectionId::DebugInfo, false);
    let (mut listed, mut others) = (Vec::new(), Vec::new());
    for &(va, _) in asked.chunk_by(|a, b| a.0 == b.0).filter_map(<[_]>::first) {
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
    let mut found = sweep(symbols, query, sections, listed, out);
    let unit_of = |va| match sections.info.len() {
        0 => None,
        _ if !symbols.image.is_code(va) => None,
        _ => symbols.index.find(debug, &sections, &symbols.starts, va),
    };
    let others = others.into_iter();
    let others = others
        .map(|va| (unit_of(va).unwrap_or(usize::MAX), va))
        .collect();
    found.extend(sweep(symbols, query, sections, others, out));
    found.sort_unstable_by_key(|found| found.va);
    let answers = asked.chunk_by(|a, b| a.0 == b.0).zip(found);
    for (&(_, i), f) in answers.flat_map(|(same, f)| same.iter().zip(std::iter::repeat(f))) {
        if let Some(answer) = out.answers.get_mut(i as usize) {
            (answer.start, answer.len, answer.missing) = (f.start, f.len, f.missing);
        }
    }
}

/// Answers addresses, each with its unit, by as many threads as is worth it.
fn sweep(
    symbols: &NativeSymbols,
    query: &Query,
    sections: Sections<'_>,
    mut grouped: Vec<(usize, u64)>,
    out: &mut Answers,
) -> Vec<Found> {
    if grouped.is_empty() {
        return Vec::new();
    }
    // In the order in which the units lie in the file.
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
        // Where there is no room for another thread, those that are there do its work.
        let spawn = |_| {
            let thread = std::thread::Builder::new();
            let work = || {
                let mut out = Answers::new();
                let found = sweep.work(&mut out);
                (out, found)
            };
            thread.spawn_scoped(scope, work).ok()
        };
        let others: Vec<_> = (1..threads).map_while(spawn).collect();
        // This thread writes into the caller's buffer; what the others found is added to it.
        let mut found = sweep.work(out);
        for other in others {
            match other.join() {
                Ok((mut part, mut own)) => {
                    let shift = out.append(&mut part);
                    own.iter_mut()
                        .for_each(|found| found.start = found.start.saturating_add(shift));
                    found.append(&mut own);
                }
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        found
    })
}

struct Sweep<'a> {
    symbols: &'a NativeSymbols,
    query: &'a Query,
    sections: Sections<'a>,
    /// Those together whose units are unpacked together: while one thread unpacks, others decode.
    jobs: Vec<&'a [Job<'a>]>,
    wanted: &'a [u64],
    next: AtomicUsize,
    /// File range of `.debug_info`, if its pages are to be given back.
    release: Option<Range<usize>>,
}

impl<'a> Sweep<'a> {
    /// Takes jobs until there are none.
    fn work(&self, out: &mut Answers) -> Vec<Found> {
        let symbols = self.symbols;
        let context = Context {
            main: Space {
                sections: self.sections,
                starts: &symbols.starts,
            },
            supplement: symbols.supplement().map(|container| Space {
                sections: Sections::of(container, false),
                starts: &symbols.supplement_starts,
            }),
            code: &symbols.image.code,
            inlines: self.query.inlines,
            lines: self.query.lines,
            tables: &symbols.line_tables,
            line_share: self.query.line_share,
        };
        let mut scratch = Scratch::default();
        let mut found = Vec::new();
        let mut names = SymbolNames::default();
        let next = || self.jobs.get(self.next.fetch_add(1, Ordering::Relaxed));
        for job in std::iter::from_fn(next).copied().flatten() {
            let wanted = job.wanted;
            let done = found.len();
            // Where the index is not whole, an address without a unit may have one.
            let mut missing = match (job.unit, symbols.index.damage()) {
                (None, Some(bad)) => Some(bad.missing()),
                _ => None,
            };
            if let (Some(offset), [va]) = (job.unit, self.wanted)
                && let Some(answered) = self.known(&mut scratch, offset, *va, context, out)
            {
                missing = answered.0;
                found.extend(answered.1);
            } else if let Some(offset) = job.unit {
                let table = &mut scratch.table;
                let read = table.check(&self.sections);
                match read.and_then(|()| Unit::read(&self.sections, offset, table)) {
                    Ok(unit) => {
                        missing = self.unit(&mut scratch, &unit, context, wanted, out, &mut found);
                        self.release(offset, unit.data.len());
                    }
                    Err(bad) => {
                        missing = Some(bad.missing());
                        out.note_damage(format!("header of the unit at {offset:#x}: {bad}"));
                    }
                }
            }
            if found.len() == done {
                let none = |&va| Found::since(out.frames.len(), va, out);
                found.extend(wanted.iter().map(none));
            }
            for f in found.iter_mut().skip(done) {
                if let Some(missing) = missing {
                    f.missing = missing;
                }
                self.add_symbol(f, &mut names, out);
            }
        }
        found
    }

    /// Answers an only address from what is kept of its unit; `None` where that cannot be done.
    fn known(
        &self,
        scratch: &mut Scratch<'a>,
        offset: usize,
        va: u64,
        context: Context<'a>,
        out: &mut Answers,
    ) -> Option<(Option<Missing>, Option<Found>)> {
        let known = self.symbols.known.get_or_load(&offset, || {
            let mut table = Table::default();
            let unit = Unit::read(&self.sections, offset, &mut table)?;
            // Its entries are in a file of their own.
            if unit.dwo_name.is_some() {
                return Err(Bad::Reference);
            }
            let lines = context.tables.read(&unit, context.line_share);
            let known = Known::read(&unit, table, context.code, lines);
            let weight = known.bytes() as u64;
            Ok((Arc::new(known), weight))
        });
        let known = known.ok()?;
        let unit = Unit::read_again(&self.sections, offset, &known.table).ok()?;
        let mut found = None;
        let each = |out: &mut Answers, _, start: usize| {
            found = Some(Found::since(start, va, out));
        };
        let missing = scratch.resolve_known(&unit, &known, context, va, out, each);
        Some((missing, found))
    }

    fn unit(
        &self,
        scratch: &mut Scratch<'a>,
        unit: &Unit<'a>,
        context: Context<'a>,
        wanted: &[u64],
        out: &mut Answers,
        found: &mut Vec<Found>,
    ) -> Option<Missing> {
        let each = |out: &mut Answers, i: usize, start: usize| {
            found.extend(wanted.get(i).map(|&va| Found::since(start, va, out)));
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
                Some(Err(bad)) => out.note_damage(format!("split unit {:#018x}: {bad}", id.0)),
                None => {}
            }
            let missing = scratch.resolve(unit, None, context, wanted, out, each);
            return damaged.or(missing);
        }
        scratch.resolve(unit, None, context, wanted, out, each)
    }

    /// Completes an answer from the symbol table: where nothing else names it, or where that was asked for.
    fn add_symbol(&self, f: &mut Found, names: &mut SymbolNames, out: &mut Answers) {
        let own = f.start as usize..f.start.saturating_add(f.len) as usize;
        let last = out.frames.get_mut(own).and_then(<[_]>::last_mut);
        let named = last.as_ref().is_some_and(|frame| frame.name.is_some());
        if named && !self.query.symbol_names {
            return;
        }
        let (container, table) = self.symbols.symbols();
        let Some(symbol) = table.find(container, f.va) else {
            if f.len == 0 {
                // The frames of a later address may begin here; an empty answer has none.
                f.start = 0;
            }
            return;
        };
        let (id, file) = *names.entry(symbol.key).or_insert_with(|| {
            let file = symbol.file.filter(|_| self.query.lines);
            let file = file.and_then(|file| out.files.intern(file));
            (out.names.intern(symbol.name), file)
        });
        match last {
            Some(frame) => {
                frame.symbol = id;
                frame.file = frame.file.or(file);
                if !named {
                    frame.name = id;
                    frame.source = symbol.source;
                    if !frame.has_function {
                        (frame.function, frame.has_function) = (symbol.start, true);
                    }
                }
            }
            None => {
                f.start = out.frames.len() as u32;
                f.len = 1;
                out.frames.push(RawFrame {
                    name: id,
                    symbol: id,
                    file,
                    line: 0,
                    column: 0,
                    discriminator: 0,
                    function: symbol.start,
                    has_function: true,
                    inlined: false,
                    plain_names: false,
                    line_limited: false,
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

/// Names of symbols and of their files already interned, by their key.
type SymbolNames = HashMap<usize, (Option<NonZeroId>, Option<NonZeroId>)>;
