//! Names and declarations of functions, found by following the references of their entries.

use chronosym_types::hash::HashMap;
use gimli::constants as dw;

use super::form::{DwarfError, Value};
use super::functions::{EntryRef, number};
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

/// The entries that references lead to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct References<'a> {
    pub(crate) main: InfoSection<'a>,
    pub(crate) supplement: Option<InfoSection<'a>>,
}

/// Names and declarations of the functions of one file.
#[derive(Debug, Default)]
pub(crate) struct FunctionNames<'a> {
    cached: HashMap<(bool, usize), Option<NonZeroId>>,
    declarations: HashMap<(bool, usize), (Option<NonZeroId>, u32)>,
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
    /// Returns the name of `entry`, interned in `out`.
    pub(crate) fn find(
        &mut self,
        unit: &Unit<'a>,
        table: &Table,
        entry: EntryRef,
        references: References<'a>,
        out: &mut Strings,
    ) -> Result<Option<NonZeroId>, DwarfError> {
        let key = key(unit, entry);
        if let Some(&name) = self.cached.get(&key) {
            return Ok(name);
        }
        let (mut linkage, mut plain) = (None, None);
        let followed = self.follow(unit, table, entry, references, |unit, table, at| {
            let attributes = read(unit, table, at)?;
            linkage = attributes.linkage;
            plain = plain.or(attributes.plain);
            Ok(attributes.next.filter(|_| linkage.is_none()))
        });
        let name = linkage.or(plain).filter(|_| followed.is_ok());
        let id = name.and_then(|name| out.intern(name));
        self.cached.insert(key, id);
        followed.map(|()| id)
    }

    /// Returns the file, interned in `files`, and the line of the declaration of `entry`, else of
    /// the entries that it refers to. `path_of` returns the path of a file of a unit.
    pub(crate) fn declaration(
        &mut self,
        unit: &Unit<'a>,
        table: &Table,
        entry: EntryRef,
        references: References<'a>,
        path_of: impl Fn(&Unit<'a>, u32) -> Option<Vec<u8>>,
        files: &mut Strings,
    ) -> Result<(Option<NonZeroId>, u32), DwarfError> {
        let key = key(unit, entry);
        if let Some(&declared) = self.declarations.get(&key) {
            return Ok(declared);
        }
        let (mut path, mut line) = (None, None);
        let mut has_file = false;
        let followed = self.follow(unit, table, entry, references, |unit, table, at| {
            let mut cursor = unit.cursor(at);
            let abbreviation = table.abbreviations.get(cursor.uleb()?)?;
            let mut next = None;
            for attribute in table.abbreviations.attributes(abbreviation) {
                let value = cursor.value(attribute.form, attribute.implicit, unit.encoding)?;
                match attribute.name {
                    // LLVM's tools read no file of this form.
                    dw::DW_AT_decl_file if attribute.form == dw::DW_FORM_implicit_const => {
                        has_file = true;
                    }
                    dw::DW_AT_decl_file if !has_file => {
                        has_file = true;
                        path = path_of(unit, number(value));
                    }
                    dw::DW_AT_decl_line => line = line.or(Some(number(value))),
                    dw::DW_AT_abstract_origin | dw::DW_AT_specification => {
                        next = EntryRef::of(value)
                    }
                    _ => {}
                }
            }
            Ok(next.filter(|_| !has_file || line.is_none()))
        });
        let file = path.and_then(|path| files.intern(&path));
        let declared = (file, line.unwrap_or(0));
        self.declarations.insert(key, declared);
        followed.map(|()| declared)
    }

    /// Calls `visit` with an entry, and with those that it refers to, as long as it returns the
    /// next.
    fn follow(
        &mut self,
        unit: &Unit<'a>,
        table: &Table,
        mut entry: EntryRef,
        references: References<'a>,
        mut visit: impl FnMut(&Unit<'a>, &Table, usize) -> Result<Option<EntryRef>, DwarfError>,
    ) -> Result<(), DwarfError> {
        // The unit that `EntryRef::Unit` is relative to: a foreign one, or the caller's.
        let mut home: Option<(bool, usize)> = None;
        for _ in 0..MAX_HOPS {
            let (foreign, at) = match entry {
                EntryRef::Unit(at) => (home, at),
                EntryRef::Info(at) => {
                    let in_supplement = home.is_some_and(|(s, _)| s);
                    let space = if in_supplement {
                        references.supplement.ok_or(DwarfError::Reference)?
                    } else {
                        references.main
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
                    let Some(space) = references.supplement else {
                        return Ok(());
                    };
                    let start = self.open(true, space, at)?;
                    (Some((true, start)), at.saturating_sub(start))
                }
            };
            home = foreign;
            let (unit, table) = match foreign.and_then(|key| self.foreign.get(&key)) {
                Some(open) => (&open.0, &open.1),
                None => (unit, table),
            };
            if at < unit.root || at >= unit.data.len() {
                return Err(DwarfError::Reference);
            }
            match visit(unit, table, at)? {
                Some(next) => entry = next,
                None => return Ok(()),
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

/// Returns whether an entry is in the supplementary file, and its offset.
fn key(unit: &Unit<'_>, entry: EntryRef) -> (bool, usize) {
    match entry {
        EntryRef::Unit(at) => (false, unit.offset.saturating_add(at)),
        EntryRef::Info(at) => (false, at),
        EntryRef::Supplement(at) => (true, at),
    }
}

fn read<'a>(unit: &Unit<'a>, table: &Table, at: usize) -> Result<NameAttributes<'a>, DwarfError> {
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
