//! One module (compiland): its procedures by address and its line tables.

use super::dbi::ModuleInfo;
use super::inline::Context;
use super::lines::{InlineeLine, Subsections, inlinee_lines};
use super::msf::Msf;
use super::space::Place;
use super::symbols::{
    Record, Records, S_END, S_GMANPROC, S_LMANPROC, S_PROC_ID_END, S_SEPCODE, S_THUNK32,
    S_TRAMPOLINE,
};
use crate::bytes;
use crate::{Error, Result};
use std::borrow::Cow;
use std::sync::OnceLock;

const WHAT: &str = "module stream";
/// Signature of C13 symbols, before the first record.
const C13: u32 = 4;

/// What kind of record says that there is code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Procedure,
    Managed,
    Separated,
    Thunk,
    Trampoline,
}

/// A piece of code with a name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Procedure {
    pub(super) start: Place,
    pub(super) kind: Kind,
    pub(super) len: u32,
    /// Offset of the record in the module's symbols.
    pub(super) record: u32,
}

impl Procedure {
    pub(super) fn contains(&self, place: Place) -> bool {
        self.start.section == place.section
            && place
                .offset
                .checked_sub(self.start.offset)
                .is_some_and(|at| at < self.len)
    }
}

#[derive(Debug)]
pub(super) struct Module<'a> {
    data: Cow<'a, [u8]>,
    symbols: u32,
    c13: u32,
    /// Sorted by place; of several at one place (folded functions) the first record is first.
    pub(super) procedures: Box<[Procedure]>,
    pub(super) lines: Subsections,
    inlinees: OnceLock<Box<[InlineeLine]>>,
}

impl<'a> Module<'a> {
    /// None if the module has no symbols.
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
        let symbols = &data[..info.symbols as usize];
        let procedures = match bytes::u32(symbols, 0) {
            None => Box::default(),
            Some(C13) => procedures(symbols)?,
            Some(version) => {
                return Err(Error::Unsupported {
                    what: WHAT,
                    version,
                });
            }
        };
        let lines = Subsections::scan(&data[c13 as usize..])?;
        Ok(Some(Self {
            symbols: info.symbols,
            c13,
            data,
            procedures,
            lines,
            inlinees: OnceLock::new(),
        }))
    }

    pub(super) fn symbols(&self) -> &[u8] {
        &self.data[..self.symbols as usize]
    }

    pub(super) fn c13(&self) -> &[u8] {
        &self.data[self.c13 as usize..]
    }

    pub(super) fn record(&self, procedure: &Procedure) -> Option<Record<'_>> {
        Record::at(self.symbols(), procedure.record)
    }

    /// The procedure that covers `place`: the innermost, the first of several at one start.
    pub(super) fn procedure(&self, place: Place) -> Option<&Procedure> {
        let after = self
            .procedures
            .partition_point(|found| found.start <= place);
        // Procedures nest at most a little; a longer way back would only cross neighbours.
        let found = self.procedures[..after]
            .iter()
            .rev()
            .take(8)
            .find(|found| found.contains(place))?;
        let first = self.procedures[..after].partition_point(|other| other.start < found.start);
        self.procedures[first..after]
            .iter()
            .find(|found| found.contains(place))
    }

    /// The last procedure that starts at or before `place`, in its section.
    pub(super) fn procedure_before(&self, place: Place) -> Option<&Procedure> {
        let after = self
            .procedures
            .partition_point(|found| found.start <= place);
        self.procedures[..after]
            .last()
            .filter(|found| found.start.section == place.section)
    }

    /// The name in `procedure`'s record; separated code has its parent's, trampolines have none.
    pub(super) fn name(&self, procedure: &Procedure) -> Option<&[u8]> {
        let record = self.record(procedure)?;
        match procedure.kind {
            Kind::Procedure => Some(record.name(35)),
            Kind::Managed => Some(record.name(37)),
            Kind::Thunk => Some(record.name(21)),
            Kind::Separated => {
                let parent = self.parent(&record)?;
                let record = self.record(parent)?;
                Some(record.name(35))
            }
            Kind::Trampoline => None,
        }
    }

    /// The procedure that a piece of separated code belongs to.
    fn parent(&self, separated: &Record<'_>) -> Option<&Procedure> {
        let start = Place {
            section: separated.u16(26)?,
            offset: separated.u32(20)?,
        };
        let first = self.procedures.partition_point(|found| found.start < start);
        self.procedures
            .get(first)
            .filter(|found| found.start == start && found.kind == Kind::Procedure)
    }

    /// Where a trampoline jumps to.
    pub(super) fn target(&self, trampoline: &Procedure) -> Option<Place> {
        let record = self.record(trampoline)?;
        Some(Place {
            section: record.u16(14)?,
            offset: record.u32(8)?,
        })
    }

    /// Starts of the separated pieces of `procedure`, relative to it, in file order.
    pub(super) fn chunks(&self, procedure: &Procedure) -> Vec<u32> {
        let mut pieces: Vec<_> = self
            .procedures
            .iter()
            .filter(|found| found.kind == Kind::Separated)
            .filter(|found| {
                let record = self.record(found);
                let parent = record.and_then(|record| self.parent(&record));
                parent.is_some_and(|parent| parent.start == procedure.start)
            })
            .collect();
        pieces.sort_by_key(|piece| piece.record);
        let start = procedure.start.offset;
        pieces
            .iter()
            .map(|piece| piece.start.offset.wrapping_sub(start))
            .collect()
    }

    /// What inline sites are read with.
    pub(super) fn context<'d>(&'d self, chunks: &'d [u32]) -> Context<'d> {
        Context {
            symbols: self.symbols(),
            inlinees: self
                .inlinees
                .get_or_init(|| inlinee_lines(self.c13(), &self.lines.inlinees)),
            chunks,
        }
    }

    pub(super) fn has_separated_code(&self) -> bool {
        self.procedures
            .iter()
            .any(|found| found.kind == Kind::Separated)
    }

    /// The local id behind an imported one: (module name's offset in `/names`, id there).
    ///
    /// Bits 20 to 30 of an imported id number the module among the imports, the low 20 bits the id
    /// among those imported from it.
    pub(super) fn import(&self, id: u32) -> Option<(u32, u32)> {
        let (module, index) = ((id >> 20 & 0x7FF) as usize, (id & 0xF_FFFF) as usize);
        let data = self.lines.imports.of(self.c13());
        let mut at = 0usize;
        for number in 0..=module {
            let count = bytes::u32(data, at + 4)? as usize;
            if number == module && index < count {
                return Some((bytes::u32(data, at)?, bytes::u32(data, at + 8 + index * 4)?));
            }
            at = at.checked_add(8)?.checked_add(count.checked_mul(4)?)?;
        }
        None
    }

    /// The file's id of a local id that this module exports.
    pub(super) fn export(&self, local: u32) -> Option<u32> {
        let data = self.lines.exports.of(self.c13());
        let pair = data
            .chunks_exact(8)
            .find(|pair| bytes::u32(pair, 0) == Some(local))?;
        bytes::u32(pair, 4)
    }

    pub(super) fn heap_bytes(&self) -> usize {
        size_of::<Self>()
            + super::owned_len(&self.data)
            + size_of_val(&*self.procedures)
            + size_of_val(&*self.lines.lines)
            + self
                .inlinees
                .get()
                .map_or(0, |entries| size_of_val(&**entries))
    }
}

/// Walks the top level of a symbol stream, from scope to scope.
fn procedures(symbols: &[u8]) -> Result<Box<[Procedure]>> {
    let mut found = Vec::new();
    let mut records = Records::from(symbols, 4);
    while let Some(record) = records.next()? {
        let Some(procedure) = procedure(&record) else {
            continue;
        };
        if procedure.len > 0 {
            found.push(procedure);
        }
        // A scope names its end, so what is inside need not be read; an end that is none is not
        // followed.
        let scope = procedure.kind != Kind::Trampoline;
        if let Some(end) = record.end().filter(|&end| scope && end > record.offset)
            && let Some(end) = Record::at(symbols, end)
            && matches!(end.kind, S_END | S_PROC_ID_END)
        {
            records.skip_to(end.next());
        }
    }
    found.sort_by_key(|procedure| procedure.start);
    Ok(found.into())
}

fn procedure(record: &Record<'_>) -> Option<Procedure> {
    let (kind, offset, section, len) = match record.kind {
        S_GMANPROC | S_LMANPROC => (Kind::Managed, 28, 32, record.u32(12)?),
        S_THUNK32 => (Kind::Thunk, 12, 16, u32::from(record.u16(18)?)),
        S_SEPCODE => (Kind::Separated, 16, 24, record.u32(8)?),
        S_TRAMPOLINE => (Kind::Trampoline, 4, 12, u32::from(record.u16(2)?)),
        _ if record.is_procedure() => (Kind::Procedure, 28, 32, record.u32(12)?),
        _ => return None,
    };
    Some(Procedure {
        start: Place {
            section: record.u16(section)?,
            offset: record.u32(offset)?,
        },
        kind,
        len,
        record: record.offset,
    })
}
