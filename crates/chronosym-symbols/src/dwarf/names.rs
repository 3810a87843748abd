//! The name of a function's entry, found along its references and kept.

use chronosym_types::hash::HashMap;
use gimli::constants as dw;

use super::form::{Bad, Value};
use super::functions::Entry;
use super::index::UnitStarts;
use super::unit::{Sections, Table, Unit};
use crate::answer::{NonZeroId, Strings};

/// A concrete function leads to its abstract one, that to its declaration; no chain is longer than a few.
const MAX_HOPS: usize = 16;

/// At most this many foreign units are kept open.
const MAX_FOREIGN: usize = 32;

/// What references out of a unit lead into.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Space<'a> {
    pub(crate) sections: Sections<'a>,
    pub(crate) starts: &'a UnitStarts,
}

/// The names of one space of entries. Create anew for another file.
#[derive(Debug, Default)]
pub(crate) struct Names<'a> {
    known: HashMap<(bool, usize), Option<NonZeroId>>,
    foreign: HashMap<(bool, usize), Box<(Unit<'a>, Table)>>,
    /// What the next foreign unit's is read into.
    table: Table,
}

/// What an entry says of its name.
#[derive(Clone, Copy, Default)]
struct Said<'a> {
    linkage: Option<&'a [u8]>,
    plain: Option<&'a [u8]>,
    next: Option<Entry>,
}

impl<'a> Names<'a> {
    /// The name of `entry`, interned in `out`. `main` and `supplement` are what its references lead into.
    pub(crate) fn find(
        &mut self,
        unit: &Unit<'a>,
        table: &Table,
        entry: Entry,
        main: Space<'a>,
        supplement: Option<Space<'a>>,
        out: &mut Strings,
    ) -> Result<Option<NonZeroId>, Bad> {
        let key = match entry {
            Entry::Unit(at) => (false, unit.offset.saturating_add(at)),
            Entry::Info(at) => (false, at),
            Entry::Supplement(at) => (true, at),
        };
        if let Some(&known) = self.known.get(&key) {
            return Ok(known);
        }
        let name = self.follow(unit, table, entry, main, supplement);
        let id = match name {
            Ok(Some(name)) => out.intern(name),
            _ => None,
        };
        self.known.insert(key, id);
        name.map(|_| id)
    }

    fn follow(
        &mut self,
        unit: &Unit<'a>,
        table: &Table,
        mut entry: Entry,
        main: Space<'a>,
        supplement: Option<Space<'a>>,
    ) -> Result<Option<&'a [u8]>, Bad> {
        let mut plain = None;
        // Which unit `Entry::Unit` is relative to: the caller's, or a foreign one.
        let mut home: Option<(bool, usize)> = None;
        for _ in 0..MAX_HOPS {
            let (foreign, at) = match entry {
                Entry::Unit(at) => (home, at),
                Entry::Info(at) => {
                    let in_supplement = home.is_some_and(|(s, _)| s);
                    let space = if in_supplement {
                        supplement.ok_or(Bad::Reference)?
                    } else {
                        main
                    };
                    if !in_supplement
                        && let Some(within) = at.checked_sub(unit.offset)
                        && within < unit.data.len()
                    {
                        (None, within)
                    } else {
                        let start = self.open(in_supplement, space, at)?;
                        (Some((in_supplement, start)), at.saturating_sub(start))
                    }
                }
                Entry::Supplement(at) => {
                    // Without the supplementary file its names are not to be had; that is no damage.
                    let Some(space) = supplement else {
                        return Ok(plain);
                    };
                    let start = self.open(true, space, at)?;
                    (Some((true, start)), at.saturating_sub(start))
                }
            };
            home = foreign;
            let said = match foreign.and_then(|key| self.foreign.get(&key)) {
                Some(open) => read(&open.0, &open.1, at)?,
                None => read(unit, table, at)?,
            };
            if said.linkage.is_some() {
                return Ok(said.linkage);
            }
            plain = plain.or(said.plain);
            match said.next {
                Some(next) => entry = next,
                None => return Ok(plain),
            }
        }
        Err(Bad::Cycle)
    }

    /// Opens the unit that an offset lies in; returns where it starts.
    fn open(&mut self, in_supplement: bool, space: Space<'a>, at: usize) -> Result<usize, Bad> {
        let start = space
            .starts
            .containing(&space.sections, at)
            .ok_or(Bad::Reference)?;
        let key = (in_supplement, start);
        if !self.foreign.contains_key(&key) {
            if self.foreign.len() >= MAX_FOREIGN {
                self.foreign.clear();
            }
            self.table.check(&space.sections)?;
            let unit = Unit::read(&space.sections, start, &mut self.table)?;
            self.foreign
                .insert(key, Box::new((unit, self.table.take())));
        }
        Ok(start)
    }
}

fn read<'a>(unit: &Unit<'a>, table: &Table, at: usize) -> Result<Said<'a>, Bad> {
    if at < unit.root || at >= unit.data.len() {
        return Err(Bad::Reference);
    }
    let mut cursor = unit.cursor(at);
    let code = cursor.uleb()?;
    let abbreviation = table.abbreviations.get(code)?;
    let mut said = Said::default();
    for attribute in table.abbreviations.attributes(abbreviation) {
        let value = cursor.value(attribute.form, attribute.implicit, unit.encoding)?;
        match attribute.name {
            dw::DW_AT_linkage_name | dw::DW_AT_MIPS_linkage_name => {
                said.linkage = text(unit, value);
                if said.linkage.is_some() {
                    return Ok(said);
                }
            }
            dw::DW_AT_name => said.plain = text(unit, value),
            dw::DW_AT_abstract_origin | dw::DW_AT_specification => said.next = Entry::of(value),
            _ => {}
        }
    }
    Ok(said)
}

fn text<'a>(unit: &Unit<'a>, value: Value<'a>) -> Option<&'a [u8]> {
    unit.text(value).filter(|text| !text.is_empty())
}
