//! Abbreviation tables, compiled for the walk over entries (DWARF 5, section 7.5.3).

use std::ops::Range;

use chronosym_types::hash::HashMap;
use gimli::{DwAt, DwForm, DwTag, Encoding, constants as dw};

use super::form::{Cursor, DwarfError, SkipStep};

/// Attributes of one abbreviation: compilers write about twenty, but ones that take no bytes could
/// be any number.
const MAX_ATTRIBUTES: usize = 256;

/// What the walk does with an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    /// Step over it.
    Other,
    /// Step over it and its children, which have no code: it records where they end.
    Skippable,
    /// A class that records where its children end. Within a function it may hold the code of its
    /// methods.
    Class,
    /// A function without code that records where its children end: classes among them may hold the
    /// code of their methods.
    Abstract,
    /// A function with code.
    Function,
    /// A function inlined into another.
    Inlined,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Attribute {
    pub(crate) name: DwAt,
    pub(crate) form: DwForm,
    pub(crate) implicit: i64,
}

#[derive(Clone, Debug)]
pub(crate) struct Abbreviation {
    pub(crate) tag: DwTag,
    pub(crate) kind: EntryKind,
    pub(crate) has_children: bool,
    steps: Range<u32>,
    attributes: Range<u32>,
}

/// The table of one unit or of several that share it.
#[derive(Debug, Default)]
pub(crate) struct Abbreviations {
    /// By code − 1, as compilers number them.
    dense: Vec<Abbreviation>,
    sparse: HashMap<u64, Abbreviation>,
    steps: Vec<SkipStep>,
    attributes: Vec<Attribute>,
}

impl Abbreviations {
    /// Replaces the content by the table at the start of `data`; returns its length.
    pub(crate) fn read(&mut self, data: &[u8], encoding: Encoding) -> Result<usize, DwarfError> {
        self.dense.clear();
        self.sparse.clear();
        self.steps.clear();
        self.attributes.clear();
        let mut cursor = Cursor {
            data,
            pos: 0,
            big: false,
        };
        loop {
            // The last table of a section may lack its terminator.
            if cursor.pos == data.len() {
                return Ok(cursor.pos);
            }
            let code = cursor.uleb()?;
            if code == 0 {
                return Ok(cursor.pos);
            }
            let abbreviation = self.entry(&mut cursor, encoding)?;
            if code.wrapping_sub(1) == self.dense.len() as u64 {
                self.dense.push(abbreviation);
            } else {
                self.sparse.entry(code).or_insert(abbreviation);
            }
        }
    }

    fn entry(
        &mut self,
        cursor: &mut Cursor<'_>,
        encoding: Encoding,
    ) -> Result<Abbreviation, DwarfError> {
        let tag = cursor.uleb()?;
        let has_children = cursor.u8()? != 0;
        let first_step = self.steps.len();
        let first_attribute = self.attributes.len();
        let (mut sibling, mut code) = (false, false);
        loop {
            let (name, form) = (cursor.uleb()?, cursor.uleb()?);
            if name == 0 && form == 0 {
                break;
            }
            let form = u16::try_from(form).map_err(|_| DwarfError::Form(u16::MAX))?;
            let form = DwForm(form);
            let implicit = match form {
                dw::DW_FORM_implicit_const => cursor.sleb()?,
                _ => 0,
            };
            // No vendor uses attributes beyond 16 bits: such a value is only stepped over.
            let name = DwAt(u16::try_from(name).unwrap_or(0));
            sibling |= name == dw::DW_AT_sibling;
            code |= matches!(name, dw::DW_AT_low_pc | dw::DW_AT_ranges);
            let step = SkipStep::of(form, encoding)?;
            match (
                self.steps.get_mut(first_step..).and_then(<[_]>::last_mut),
                step,
            ) {
                (Some(SkipStep::Fixed(sum)), SkipStep::Fixed(len))
                    if sum.checked_add(len).is_some() =>
                {
                    *sum = sum.saturating_add(len);
                }
                _ => self.steps.push(step),
            }
            if self.attributes.len().wrapping_sub(first_attribute) >= MAX_ATTRIBUTES {
                return Err(DwarfError::Attributes);
            }
            self.attributes.push(Attribute {
                name,
                form,
                implicit,
            });
        }
        let tag = DwTag(u16::try_from(tag).unwrap_or(0));
        let kind = match tag {
            dw::DW_TAG_subprogram if code => EntryKind::Function,
            dw::DW_TAG_inlined_subroutine => EntryKind::Inlined,
            _ if !(sibling && has_children) => EntryKind::Other,
            dw::DW_TAG_subprogram => EntryKind::Abstract,
            dw::DW_TAG_structure_type | dw::DW_TAG_class_type | dw::DW_TAG_union_type => {
                EntryKind::Class
            }
            dw::DW_TAG_enumeration_type | dw::DW_TAG_array_type | dw::DW_TAG_subroutine_type => {
                EntryKind::Skippable
            }
            _ => EntryKind::Other,
        };
        let at = |at: usize| u32::try_from(at).map_err(|_| DwarfError::Truncated);
        let range = |from: usize, to: usize| Ok::<_, DwarfError>(at(from)?..at(to)?);
        Ok(Abbreviation {
            tag,
            kind,
            has_children,
            steps: range(first_step, self.steps.len())?,
            attributes: range(first_attribute, self.attributes.len())?,
        })
    }

    /// Heap in use, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let parts = [
            (self.dense.capacity(), size_of::<Abbreviation>()),
            (self.sparse.capacity(), size_of::<(u64, Abbreviation)>()),
            (self.steps.capacity(), size_of::<SkipStep>()),
            (self.attributes.capacity(), size_of::<Attribute>()),
        ];
        parts.iter().fold(0, |sum, &(count, size)| {
            count.saturating_mul(size).saturating_add(sum)
        })
    }

    #[inline]
    pub(crate) fn get(&self, code: u64) -> Result<&Abbreviation, DwarfError> {
        match usize::try_from(code.wrapping_sub(1))
            .ok()
            .and_then(|i| self.dense.get(i))
        {
            Some(abbreviation) => Ok(abbreviation),
            None => self.sparse.get(&code).ok_or(DwarfError::Abbreviation(code)),
        }
    }

    #[inline]
    pub(crate) fn steps(&self, abbreviation: &Abbreviation) -> &[SkipStep] {
        let range = &abbreviation.steps;
        let range = range.start as usize..range.end as usize;
        self.steps.get(range).unwrap_or(&[])
    }

    #[inline]
    pub(crate) fn attributes(&self, abbreviation: &Abbreviation) -> &[Attribute] {
        let range = &abbreviation.attributes;
        let range = range.start as usize..range.end as usize;
        self.attributes.get(range).unwrap_or(&[])
    }
}
