//! One module (compiland): its procedures by address and its line tables.

use super::address_map::SectionOffset;
use super::dbi::ModuleInfo;
use super::inline::{self, Budget, Context, Sites, Slot};
use super::lines::{AddressedTable, InlineeLine, LineTable, Subsections, inlinee_lines};
use super::msf::Msf;
use super::symbols::{FunctionKind, Record, S_END, S_PROC_ID_END};
use crate::bytes;
use crate::{Error, Result};
use std::borrow::Cow;
use std::sync::OnceLock;

const WHAT: &str = "module stream";
/// Signature of C13 symbols, before the first record.
const C13: u32 = 4;

/// A named range of code.
#[derive(Debug, Clone, Copy)]
pub(super) struct Procedure {
    offset: u32,
    pub(super) len: u32,
    /// Offset of the record in the module's symbols.
    pub(super) record: u32,
    /// The line table with the same start.
    pub(super) table: Option<LineTable>,
    section: u16,
    pub(super) kind: FunctionKind,
}

impl Procedure {
    pub(super) fn start(&self) -> SectionOffset {
        SectionOffset {
            section: self.section,
            offset: self.offset,
        }
    }

    pub(super) fn contains(&self, address: SectionOffset) -> bool {
        address.is_within(self.start(), self.len)
    }
}

#[derive(Debug)]
pub(super) struct Module<'a> {
    data: Cow<'a, [u8]>,
    symbols: u32,
    c13: u32,
    /// Sorted by address; procedures of one address (folded functions) keep the order of their
    /// records.
    pub(super) procedures: Box<[Procedure]>,
    pub(super) lines: Subsections,
    inlinees: OnceLock<Box<[InlineeLine]>>,
    /// One for each procedure, made on first use.
    sites: OnceLock<Box<[Slot]>>,
    separated: OnceLock<Box<[SeparatedChunk]>>,
    /// Exported local ids and their ids in the file, sorted.
    exports: OnceLock<Box<[(u32, u32)]>>,
}

/// A separated code chunk of a procedure (S_SEPCODE).
#[derive(Debug)]
struct SeparatedChunk {
    parent: SectionOffset,
    record: u32,
    start: SectionOffset,
}

impl<'a> Module<'a> {
    /// `None` if the module has no symbols.
    pub(super) fn read(msf: &Msf<'a>, info: &ModuleInfo<'_>) -> Result<Option<Self>> {
        let stream = match info.stream {
            Some(number) => msf.stream(number, WHAT)?,
            None => None,
        };
        let Some(stream) = stream else {
            return Ok(None);
        };
        let c13 = info.symbols.saturating_add(info.c11);
        let data = stream.bytes(0, c13.saturating_add(info.c13))?;
        let symbols = data.get(..info.symbols as usize).unwrap_or_default();
        let mut procedures = match bytes::u32(symbols, 0) {
            None => Vec::new(),
            Some(C13) => procedures(symbols)?,
            Some(version) => {
                return Err(Error::Unsupported {
                    what: WHAT,
                    version,
                });
            }
        };
        let lines = Subsections::scan(data.get(c13 as usize..).unwrap_or_default())?;
        join(&mut procedures, &lines);
        Ok(Some(Self {
            symbols: info.symbols,
            c13,
            data,
            procedures: procedures.into(),
            lines,
            inlinees: OnceLock::new(),
            sites: OnceLock::new(),
            separated: OnceLock::new(),
            exports: OnceLock::new(),
        }))
    }

    pub(super) fn symbols(&self) -> &[u8] {
        self.data.get(..self.symbols as usize).unwrap_or_default()
    }

    pub(super) fn c13(&self) -> &[u8] {
        self.data.get(self.c13 as usize..).unwrap_or_default()
    }

    pub(super) fn record(&self, procedure: &Procedure) -> Option<Record<'_>> {
        Record::at(self.symbols(), procedure.record)
    }

    /// Returns the procedure that covers `address`, and its index: the innermost; of several with
    /// one start the first that has lines, or else the first.
    pub(super) fn procedure(&self, address: SectionOffset) -> Option<(usize, &Procedure)> {
        // Procedures hardly nest: a longer search would only cross other procedures.
        let mut candidates = self.before(address).iter().enumerate().rev().take(8);
        let procedure = candidates.find(|(_, procedure)| procedure.contains(address))?;
        let folded = candidates
            .take_while(|(_, other)| other.start() == procedure.1.start())
            .filter(|(_, other)| other.contains(address));
        let mut best = procedure;
        for other in folded {
            if other.1.table.is_some() || best.1.table.is_none() {
                best = other;
            }
        }
        Some(best)
    }

    /// Returns the last procedure that starts at or before `address`, in its section.
    pub(super) fn procedure_before(&self, address: SectionOffset) -> Option<&Procedure> {
        let before = self.before(address).last();
        before.filter(|procedure| procedure.section == address.section)
    }

    /// Returns the procedures that start at or before `address`.
    fn before(&self, address: SectionOffset) -> &[Procedure] {
        let is_before = |procedure: &Procedure| procedure.start() <= address;
        let after = self.procedures.partition_point(is_before);
        self.procedures.get(..after).unwrap_or_default()
    }

    /// Returns the name in the record; that of the parent for separated code; trampolines have
    /// none.
    pub(super) fn name(&self, procedure: &Procedure) -> Option<&[u8]> {
        let record = self.record(procedure)?;
        match procedure.kind {
            FunctionKind::Procedure => Some(record.name(35)),
            FunctionKind::Managed => Some(record.name(37)),
            FunctionKind::Thunk => Some(record.name(21)),
            FunctionKind::Separated => {
                let (_, parent) = self.parent(&record)?;
                let record = self.record(parent)?;
                Some(record.name(35))
            }
            FunctionKind::Trampoline | FunctionKind::Public => None,
        }
    }

    /// Returns the procedure of a separated code chunk, and its index; `None` for any other kind.
    pub(super) fn separated_from(&self, procedure: &Procedure) -> Option<(usize, &Procedure)> {
        let separated = procedure.kind == FunctionKind::Separated;
        self.parent(&self.record(procedure).filter(|_| separated)?)
    }

    fn parent(&self, separated: &Record<'_>) -> Option<(usize, &Procedure)> {
        let start = SectionOffset {
            section: separated.u16(26)?,
            offset: separated.u32(20)?,
        };
        let first = self
            .procedures
            .partition_point(|procedure| procedure.start() < start);
        let procedure = self.procedures.get(first)?;
        let is_parent = procedure.start() == start && procedure.kind == FunctionKind::Procedure;
        is_parent.then_some((first, procedure))
    }

    /// Returns the target of a trampoline.
    pub(super) fn target(&self, trampoline: &Procedure) -> Option<SectionOffset> {
        let record = self.record(trampoline)?;
        Some(SectionOffset {
            section: record.u16(14)?,
            offset: record.u32(8)?,
        })
    }

    /// Starts of the procedure's separated code chunks, relative to it, in file order; `None` for
    /// one in another section.
    fn chunks(&self, procedure: &Procedure) -> Vec<Option<u32>> {
        let start = procedure.start();
        let separated = self.separated.get_or_init(|| self.separated());
        let first = separated.partition_point(|chunk| chunk.parent < start);
        let own = separated
            .iter()
            .skip(first)
            .take_while(|chunk| chunk.parent == start);
        own.map(|chunk| chunk.start.distance(start)).collect()
    }

    /// Returns the separated code chunks of all procedures, by procedure and in file order.
    fn separated(&self) -> Box<[SeparatedChunk]> {
        let chunk = |procedure: &Procedure| {
            Some(SeparatedChunk {
                parent: self.separated_from(procedure)?.1.start(),
                record: procedure.record,
                start: procedure.start(),
            })
        };
        let mut separated: Vec<_> = self.procedures.iter().filter_map(chunk).collect();
        separated.sort_unstable_by_key(|chunk| (chunk.parent, chunk.record));
        separated.into()
    }

    /// Returns the inline sites of the procedure with index `number`; `None` if it has none.
    pub(super) fn sites<'s>(
        &'s self,
        number: usize,
        procedure: &Procedure,
        budget: &Budget,
        scratch: &'s mut Sites,
    ) -> Result<Option<&'s Sites>> {
        let slots = || self.procedures.iter().map(|_| Slot::new()).collect();
        let slots = self.sites.get_or_init(slots);
        let Some(slot) = slots.get(number) else {
            return Ok(None);
        };
        if let Some(sites) = slot.get() {
            return Ok(sites.as_deref());
        }
        let Some(record) = self.record(procedure) else {
            return Ok(None);
        };
        let chunks = self.chunks(procedure);
        let inlinees = || inlinee_lines(self.c13(), &self.lines.inlinees);
        let context = Context {
            symbols: self.symbols(),
            inlinees: self.inlinees.get_or_init(inlinees),
            chunks: &chunks,
        };
        inline::sites(slot, &context, &record, budget, scratch)
    }

    /// Returns the exporter's local id of an imported id: (offset of the module's name in `/names`,
    /// id there).
    ///
    /// Bits 20 to 30 of an imported id are the index of the module among the imports, the low 20
    /// bits the index of the id among those imported from it.
    pub(super) fn import(&self, id: u32) -> Option<(u32, u32)> {
        let (module, index) = ((id >> 20 & 0x7FF) as usize, (id & 0xF_FFFF) as usize);
        let data = self.lines.imports.of(self.c13());
        let mut at = 0usize;
        for number in 0..=module {
            let count = bytes::u32(data, at.checked_add(4)?)? as usize;
            if number == module && index < count {
                let id = index.checked_mul(4)?.checked_add(8)?.checked_add(at)?;
                return Some((bytes::u32(data, at)?, bytes::u32(data, id)?));
            }
            at = at.checked_add(8)?.checked_add(count.checked_mul(4)?)?;
        }
        None
    }

    /// Returns the id in the file of a local id that this module exports.
    pub(super) fn export(&self, local: u32) -> Option<u32> {
        let exports = self.exports.get_or_init(|| {
            let mut pairs = bytes::pairs(self.lines.exports.of(self.c13()));
            pairs.sort_by_key(|pair| pair.0);
            pairs
        });
        let first = exports.partition_point(|pair| pair.0 < local);
        exports
            .get(first)
            .filter(|pair| pair.0 == local)
            .map(|pair| pair.1)
    }
}

/// Reads the records of a symbol stream that describe code.
fn procedures(symbols: &[u8]) -> Result<Vec<Procedure>> {
    let mut procedures = Vec::new();
    let mut at = 4u32;
    let mut fetched = 0;
    while (at as usize) < symbols.len() {
        if at as usize >= fetched {
            fetched = bytes::fetch(symbols, at as usize);
        }
        let Some(head) = bytes::u32(symbols, at as usize) else {
            return Err(super::symbols::leaves(at));
        };
        if !says_code((head >> 16) as u16) {
            at = at.saturating_add(head & 0xFFFF).saturating_add(2);
            continue;
        }
        let Some(record) = Record::at(symbols, at) else {
            return Err(super::symbols::leaves(at));
        };
        at = record.next();
        let Some(procedure) = procedure(&record) else {
            continue;
        };
        if procedure.len > 0 {
            procedures.push(procedure);
        }
        // The record states the end of its scope, so nested records are skipped; an invalid end is
        // ignored.
        let scope = procedure.kind != FunctionKind::Trampoline;
        if let Some(end) = record.end().filter(|&end| scope && end > record.offset)
            && let Some(end) = Record::at(symbols, end)
            && matches!(end.kind, S_END | S_PROC_ID_END)
        {
            at = end.next();
        }
    }
    procedures.sort_by_key(Procedure::start);
    Ok(procedures)
}

/// Assigns each procedure the line table with the same start. Folded functions have one start: the
/// first gets the first table and so on, because compilers write both in the same order.
fn join(procedures: &mut [Procedure], lines: &Subsections) {
    let mut tables = &lines.tables[..];
    let mut unclear = false;
    for same in procedures.chunk_by_mut(|a, b| a.start() == b.start()) {
        let Some(start) = same.first().map(Procedure::start) else {
            continue;
        };
        while let [table, rest @ ..] = tables
            && table.start < start
        {
            tables = rest;
        }
        let count = tables.iter().take_while(|table| table.start == start);
        let (own, rest) = tables.split_at(count.count());
        tables = rest;
        if (1..same.len()).contains(&own.len()) {
            unclear = true;
            continue;
        }
        for (procedure, table) in same.iter_mut().zip(own) {
            procedure.table = Some(table.table);
        }
    }
    if unclear {
        join_by_neighbours(procedures, &lines.tables);
    }
}

/// Steps of assigning line tables at one address: each step searches all procedures there.
const MAX_FOLDED_STEPS: usize = 1 << 22;

/// Assigns the tables of folded functions of which some have no table because they have no source
/// (such as implicit constructors): the record of a table's procedure is between the records of the
/// procedures that own the preceding and the following table.
fn join_by_neighbours(procedures: &mut [Procedure], tables: &[AddressedTable]) {
    let owner = |procedure: &Procedure| Some((procedure.table?, procedure.record));
    let mut owners: Vec<_> = procedures.iter().filter_map(owner).collect();
    owners.sort_unstable();
    for same in procedures.chunk_by_mut(|a, b| a.start() == b.start()) {
        if same.iter().any(|procedure| procedure.table.is_some()) {
            continue;
        }
        let Some(start) = same.first().map(Procedure::start) else {
            continue;
        };
        let first = tables.partition_point(|table| table.start < start);
        let own = tables
            .iter()
            .skip(first)
            .map_while(|table| (table.start == start).then_some(table.table));
        for table in own.take(MAX_FOLDED_STEPS.checked_div(same.len()).unwrap_or(0)) {
            let after = owners.partition_point(|&(other, _)| other < table);
            let owner = |at: Option<usize>| owners.get(at?).map(|&(_, record)| record);
            let low = owner(after.checked_sub(1)).unwrap_or(0);
            let high = owner(Some(after)).unwrap_or(u32::MAX);
            let free = |procedure: &Procedure| procedure.table.is_none();
            let between =
                |procedure: &Procedure| free(procedure) && (low..high).contains(&procedure.record);
            let owner = same.iter().position(between);
            let owner = owner.or_else(|| same.iter().position(free));
            if let Some(owner) = owner.and_then(|owner| same.get_mut(owner)) {
                owner.table = Some(table);
            }
        }
    }
}

/// Returns whether [`procedure`] decodes the kind. A bit set of the kinds from 0x1100 on: most
/// records are of other kinds and are skipped at memory speed.
fn says_code(kind: u16) -> bool {
    const FIRST: u16 = 0x1100;
    const KINDS: u128 = {
        let (mut bits, mut bit) = (0, 0_u16);
        while bit < 128 {
            if FunctionKind::of_record(FIRST.wrapping_add(bit)).is_some() {
                bits |= 1 << bit;
            }
            bit = bit.wrapping_add(1);
        }
        bits
    };
    let bit = kind.wrapping_sub(FIRST);
    bit < 128 && KINDS >> bit & 1 != 0
}

fn procedure(record: &Record<'_>) -> Option<Procedure> {
    let kind = FunctionKind::of_record(record.kind)?;
    let (offset, section, len) = match kind {
        FunctionKind::Procedure | FunctionKind::Managed => (28, 32, record.u32(12)?),
        FunctionKind::Thunk => (12, 16, u32::from(record.u16(18)?)),
        FunctionKind::Separated => (16, 24, record.u32(8)?),
        FunctionKind::Trampoline => (4, 12, u32::from(record.u16(2)?)),
        FunctionKind::Public => return None,
    };
    Some(Procedure {
        offset: record.u32(offset)?,
        len,
        record: record.offset,
        table: None,
        section: record.u16(section)?,
        kind,
    })
}
