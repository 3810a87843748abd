//! Names of functions, found by following the references of their entries.

use chronosym_types::hash::HashMap;
use gimli::constants as dw;

use super::form::{DwarfError, Value};
use super::functions::EntryRef;
use super::index::UnitStarts;
use super::unit::{Sections, Table, Unit};
use crate::answer::{NonZeroId, Strings};

/// A concrete function refers to its abstract one, and that to its declaration; chains are short.
const MAX_HOPS: usize = 16;

/// The number of foreign units that stay open.
const MAX_FOREIGN: usize = 32;

/// The entries of a file, to which references out of a unit lead.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InfoSection<'a> {
    pub(crate) sections: Sections<'a>,
    pub(crate) starts: &'a UnitStarts,
}

/// Names of the functions of one file.
#[derive(Debug, Default)]
pub(crate) struct FunctionNames<'a> {
    cached: HashMap<(bool, usize), Option<NonZeroId>>,
    foreign: HashMap<(bool, usize), Box<(Unit<'a>, Table)>>,
    /// For the abbreviations of the next foreign unit.
    table: Table,
}

/// The attributes of an entry that lead to its name.
#[derive(Clone, Copy, Default)]
struct NameAttributes<'a> {
    linkage: Option<&'a [u8]>,
    plain: Option<&'a [u8]>,
    next: Option<EntryRef>,
}

impl<'a> FunctionNames<'a> {
    /// Returns the name of `entry`, interned in `out`. Its references lead into `main` and
    /// `supplement`.
    pub(crate) fn find(
        &mut self,
        unit: &Unit<'a>,
        table: &Table,
        entry: EntryRef,
        main: InfoSection<'a>,
        supplement: Option<InfoSection<'a>>,
        out: &mut Strings,
    ) -> Result<Option<NonZeroId>, DwarfError> {
        let key = match entry {
            EntryRef::Unit(at) => (false, unit.offset.saturating_add(at)),
            EntryRef::Info(at) => (false, at),
            EntryRef::Supplement(at) => (true, at),
        };
        if let Some(&name) = self.cached.get(&key) {
            return Ok(name);
        }
        let name = self.follow(unit, table, entry, main, supplement);
        let id = match name {
            Ok(Some(name)) => out.intern(name),
            _ => None,
        };
        self.cached.insert(key, id);
        name.map(|_| id)
    }

    fn follow(
        &mut self,
        unit: &Unit<'a>,
        table: &Table,
        mut entry: EntryRef,
        main: InfoSection<'a>,
        supplement: Option<InfoSection<'a>>,
    ) -> Result<Option<&'a [u8]>, DwarfError> {
        let mut plain = None;
        // The unit that `EntryRef::Unit` is relative to: a foreign one, or the caller's.
        let mut home: Option<(bool, usize)> = None;
        for _ in 0..MAX_HOPS {
            let (foreign, at) = match entry {
                EntryRef::Unit(at) => (home, at),
                EntryRef::Info(at) => {
                    let in_supplement = home.is_some_and(|(s, _)| s);
                    let space = if in_supplement {
                        supplement.ok_or(DwarfError::Reference)?
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
                EntryRef::Supplement(at) => {
                    // A missing supplementary file is no damage.
                    let Some(space) = supplement else {
                        return Ok(plain);
                    };
                    let start = self.open(true, space, at)?;
                    (Some((true, start)), at.saturating_sub(start))
                }
            };
            home = foreign;
            let attributes = match foreign.and_then(|key| self.foreign.get(&key)) {
                Some(open) => read(&open.0, &open.1, at)?,
                None => read(unit, table, at)?,
            };
            if attributes.linkage.is_some() {
                return Ok(attributes.linkage);
            }
            plain = plain.or(attributes.plain);
            match attributes.next {
                Some(next) => entry = next,
                None => return Ok(plain),
            }
        }
        Err(DwarfError::Cycle)
    }

    /// Opens the unit that covers an offset; returns its start.
    fn open(
        &mut self,
        in_supplement: bool,
        space: InfoSection<'a>,
        at: usize,
    ) -> Result<usize, DwarfError> {
        let start = space
            .starts
            .containing(&space.sections, at)
            .ok_or(DwarfError::Reference)?;
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

fn read<'a>(unit: &Unit<'a>, table: &Table, at: usize) -> Result<NameAttributes<'a>, DwarfError> {
    if at < unit.root || at >= unit.data.len() {
        return Err(DwarfError::Reference);
    }
    let mut cursor = unit.cursor(at);
    let code = cursor.uleb()?;
    let abbreviation = table.abbreviations.get(code)?;
    let mut attributes = NameAttributes::default();
    for attribute in table.abbreviations.attributes(abbreviation) {
        let value = cursor.value(attribute.form, attribute.implicit, unit.encoding)?;
        match attribute.name {
            dw::DW_AT_linkage_name | dw::DW_AT_MIPS_linkage_name => {
                attributes.linkage = text(unit, value);
                if attributes.linkage.is_some() {
                    return Ok(attributes);
                }
            }
            dw::DW_AT_name => attributes.plain = text(unit, value),
            dw::DW_AT_abstract_origin | dw::DW_AT_specification => {
                attributes.next = EntryRef::of(value)
            }
            _ => {}
        }
    }
    Ok(attributes)
}

fn text<'a>(unit: &Unit<'a>, value: Value<'a>) -> Option<&'a [u8]> {
    unit.text(value).filter(|text| !text.is_empty())
}
