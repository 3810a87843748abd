//! Reading attribute values, and skipping them, without building anything.
//!
//! Naming one address means walking past all the entries of its unit, most of them types and variables. So the walk is kept
//! to the minimum: an offset, and for each abbreviation a plan of how to step over its values (DWARF 5, section 7.5.6).

use std::fmt;

use gimli::{DwForm, Encoding, Format, constants as dw};

use crate::answer::Missing;

/// What is wrong with an entry. Small, because it travels through the hot loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bad {
    /// The data ends within a value.
    Truncated,
    /// A form that is not known, so that its size is not.
    Form(u16),
    /// An abbreviation code that the table lacks.
    Abbreviation(u64),
    /// A reference that leads nowhere.
    Reference,
    /// References that lead round in a circle.
    Cycle,
    /// Entries nested deeper than any compiler nests them.
    Depth,
    /// More attributes in an entry than any compiler gives one.
    Attributes,
    /// More entries name the same lists than any compiler lets share them.
    Shared,
    /// More units name the same line tables than any compiler lets share them.
    SharedLines,
    /// Anything that gimli finds.
    Gimli(gimli::Error),
}

impl Bad {
    /// True where reading on would cost too much, so that nothing is known to be wrong.
    pub(crate) fn is_limit(self) -> bool {
        matches!(self, Self::Shared | Self::SharedLines)
    }

    /// Why an address has no answer where this was met.
    pub(crate) fn missing(self) -> Missing {
        match self.is_limit() {
            true => Missing::LimitReached,
            false => Missing::Damaged,
        }
    }
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the data ends within a value"),
            Self::Form(form) => write!(f, "attribute form {form:#x} is not known"),
            Self::Abbreviation(code) => write!(f, "abbreviation {code} is not defined"),
            Self::Reference => f.write_str("a reference leads nowhere"),
            Self::Cycle => f.write_str("references lead round in a circle"),
            Self::Depth => f.write_str("entries are nested too deeply"),
            Self::Attributes => f.write_str("an entry has too many attributes"),
            Self::Shared => f.write_str("too many entries share the same ranges"),
            Self::SharedLines => {
                f.write_str("too many units share the same line tables (line_share)")
            }
            Self::Gimli(error) => error.fmt(f),
        }
    }
}

impl From<gimli::Error> for Bad {
    fn from(error: gimli::Error) -> Self {
        Self::Gimli(error)
    }
}

/// A position in a unit's bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    pub(crate) data: &'a [u8],
    pub(crate) pos: usize,
    pub(crate) big: bool,
}

impl<'a> Cursor<'a> {
    #[inline]
    pub(crate) fn skip(&mut self, len: usize) -> Result<(), Bad> {
        let pos = self.pos.checked_add(len).ok_or(Bad::Truncated)?;
        if pos > self.data.len() {
            return Err(Bad::Truncated);
        }
        self.pos = pos;
        Ok(())
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8, Bad> {
        let byte = *self.data.get(self.pos).ok_or(Bad::Truncated)?;
        self.pos = self.pos.wrapping_add(1);
        Ok(byte)
    }

    /// An unsigned integer of 1 to 8 bytes.
    #[inline]
    pub(crate) fn uint(&mut self, size: usize) -> Result<u64, Bad> {
        let start = self.pos;
        self.skip(size)?;
        let bytes = self.data.get(start..self.pos).ok_or(Bad::Truncated)?;
        let mut buffer = [0; 8];
        if self.big {
            let unused = buffer.len().saturating_sub(size);
            buffer
                .get_mut(unused..)
                .filter(|_| size <= 8)
                .ok_or(Bad::Truncated)?
                .copy_from_slice(bytes);
            Ok(u64::from_be_bytes(buffer))
        } else {
            buffer
                .get_mut(..size)
                .ok_or(Bad::Truncated)?
                .copy_from_slice(bytes);
            Ok(u64::from_le_bytes(buffer))
        }
    }

    /// Unsigned LEB128; bits beyond 64 are dropped.
    #[inline]
    pub(crate) fn uleb(&mut self) -> Result<u64, Bad> {
        let first = self.u8()?;
        if first < 0x80 {
            return Ok(u64::from(first));
        }
        let mut value = u64::from(first & 0x7f);
        let mut shift = 7u32;
        loop {
            let byte = self.u8()?;
            if shift < 64 {
                value |= u64::from(byte & 0x7f) << shift;
            }
            shift = shift.wrapping_add(7);
            if byte < 0x80 {
                return Ok(value);
            }
        }
    }

    /// Signed LEB128; bits beyond 64 are dropped.
    #[inline]
    pub(crate) fn sleb(&mut self) -> Result<i64, Bad> {
        let mut value = 0i64;
        let mut shift = 0u32;
        loop {
            let byte = self.u8()?;
            if shift < 64 {
                value |= i64::from(byte & 0x7f) << shift;
            }
            shift = shift.saturating_add(7);
            if byte < 0x80 {
                if shift < 64 && byte & 0x40 != 0 {
                    value |= -1 << shift;
                }
                return Ok(value);
            }
        }
    }

    #[inline]
    fn skip_leb(&mut self) -> Result<(), Bad> {
        while self.u8()? >= 0x80 {}
        Ok(())
    }

    fn cstr(&mut self) -> Result<&'a [u8], Bad> {
        let rest = self.data.get(self.pos..).ok_or(Bad::Truncated)?;
        let len = memchr::memchr(0, rest).ok_or(Bad::Truncated)?;
        self.pos = self.pos.saturating_add(len).saturating_add(1);
        rest.get(..len).ok_or(Bad::Truncated)
    }

    /// Steps over the values of one entry.
    #[inline]
    pub(crate) fn skip_steps(&mut self, steps: &[Step], encoding: Encoding) -> Result<(), Bad> {
        for step in steps {
            match *step {
                Step::Fixed(len) => self.skip(usize::from(len))?,
                Step::Leb => self.skip_leb()?,
                Step::Block(size) => {
                    let len = self.uint(usize::from(size))?;
                    self.skip(usize::try_from(len).map_err(|_| Bad::Truncated)?)?;
                }
                Step::BlockLeb => {
                    let len = self.uleb()?;
                    self.skip(usize::try_from(len).map_err(|_| Bad::Truncated)?)?;
                }
                Step::Text => {
                    self.cstr()?;
                }
                Step::Indirect => {
                    let form = indirect(self.uleb()?)?;
                    let step = Step::of(form, encoding)?;
                    self.skip_steps(&[step], encoding)?;
                }
            }
        }
        Ok(())
    }

    /// Reads a value.
    #[inline]
    pub(crate) fn value(
        &mut self,
        form: DwForm,
        implicit: i64,
        encoding: Encoding,
    ) -> Result<Value<'a>, Bad> {
        let word = usize::from(encoding.format.word_size());
        Ok(match form {
            dw::DW_FORM_addr => Value::Address(self.uint(usize::from(encoding.address_size))?),
            dw::DW_FORM_data1 => Value::Unsigned(self.uint(1)?),
            dw::DW_FORM_data2 => Value::Unsigned(self.uint(2)?),
            dw::DW_FORM_data4 => Value::Unsigned(self.uint(4)?),
            dw::DW_FORM_data8 => Value::Unsigned(self.uint(8)?),
            dw::DW_FORM_udata => Value::Unsigned(self.uleb()?),
            dw::DW_FORM_sdata => Value::Unsigned(self.sleb()? as u64),
            dw::DW_FORM_implicit_const => Value::Unsigned(implicit as u64),
            dw::DW_FORM_sec_offset => Value::Unsigned(self.uint(word)?),
            dw::DW_FORM_addrx | dw::DW_FORM_GNU_addr_index => Value::AddressIndex(self.uleb()?),
            dw::DW_FORM_addrx1 => Value::AddressIndex(self.uint(1)?),
            dw::DW_FORM_addrx2 => Value::AddressIndex(self.uint(2)?),
            dw::DW_FORM_addrx3 => Value::AddressIndex(self.uint(3)?),
            dw::DW_FORM_addrx4 => Value::AddressIndex(self.uint(4)?),
            dw::DW_FORM_rnglistx => Value::RangeIndex(self.uleb()?),
            dw::DW_FORM_ref1 => Value::UnitRef(self.uint(1)?),
            dw::DW_FORM_ref2 => Value::UnitRef(self.uint(2)?),
            dw::DW_FORM_ref4 => Value::UnitRef(self.uint(4)?),
            dw::DW_FORM_ref8 => Value::UnitRef(self.uint(8)?),
            dw::DW_FORM_ref_udata => Value::UnitRef(self.uleb()?),
            dw::DW_FORM_ref_addr => {
                Value::InfoRef(self.uint(usize::from(ref_addr_size(encoding)))?)
            }
            dw::DW_FORM_GNU_ref_alt => Value::SupplementRef(self.uint(word)?),
            dw::DW_FORM_ref_sup4 => Value::SupplementRef(self.uint(4)?),
            dw::DW_FORM_ref_sup8 => Value::SupplementRef(self.uint(8)?),
            dw::DW_FORM_string => Value::Text(Text::Here(self.cstr()?)),
            dw::DW_FORM_strp => Value::Text(Text::Str(self.uint(word)?)),
            dw::DW_FORM_line_strp => Value::Text(Text::LineStr(self.uint(word)?)),
            dw::DW_FORM_strp_sup | dw::DW_FORM_GNU_strp_alt => {
                Value::Text(Text::Supplement(self.uint(word)?))
            }
            dw::DW_FORM_strx | dw::DW_FORM_GNU_str_index => Value::Text(Text::Index(self.uleb()?)),
            dw::DW_FORM_strx1 => Value::Text(Text::Index(self.uint(1)?)),
            dw::DW_FORM_strx2 => Value::Text(Text::Index(self.uint(2)?)),
            dw::DW_FORM_strx3 => Value::Text(Text::Index(self.uint(3)?)),
            dw::DW_FORM_strx4 => Value::Text(Text::Index(self.uint(4)?)),
            dw::DW_FORM_indirect => {
                let form = indirect(self.uleb()?)?;
                return self.value(form, implicit, encoding);
            }
            other => {
                self.skip_steps(&[Step::of(other, encoding)?], encoding)?;
                Value::Other
            }
        })
    }
}

/// The form that an indirect value names; not another indirect one, which could go on for ever.
fn indirect(form: u64) -> Result<DwForm, Bad> {
    match u16::try_from(form).map(DwForm) {
        Ok(bad @ (dw::DW_FORM_indirect | dw::DW_FORM_implicit_const)) => Err(Bad::Form(bad.0)),
        Ok(form) => Ok(form),
        Err(_) => Err(Bad::Form(u16::MAX)),
    }
}

/// The string up to its terminating zero; all of it if there is none.
pub(crate) fn until_zero(bytes: &[u8]) -> &[u8] {
    let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
    bytes.get(..end).unwrap_or(bytes)
}

fn ref_addr_size(encoding: Encoding) -> u16 {
    if encoding.version <= 2 {
        u16::from(encoding.address_size)
    } else {
        u16::from(encoding.format.word_size())
    }
}

/// A string, or where it is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Text<'a> {
    Here(&'a [u8]),
    Str(u64),
    LineStr(u64),
    Index(u64),
    Supplement(u64),
}

/// An attribute's value as far as names and lines need it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    Address(u64),
    AddressIndex(u64),
    Unsigned(u64),
    RangeIndex(u64),
    UnitRef(u64),
    InfoRef(u64),
    SupplementRef(u64),
    Text(Text<'a>),
    Other,
}

/// One step over values whose contents do not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// So many bytes.
    Fixed(u16),
    /// A LEB128 number.
    Leb,
    /// A block after a length of so many bytes.
    Block(u8),
    /// A block after a length in LEB128.
    BlockLeb,
    /// A string ending in zero.
    Text,
    /// A form, then its value.
    Indirect,
}

impl Step {
    #[inline]
    pub(crate) fn of(form: DwForm, encoding: Encoding) -> Result<Self, Bad> {
        let word = u16::from(encoding.format.word_size());
        debug_assert!(matches!(encoding.format, Format::Dwarf32 | Format::Dwarf64));
        Ok(match form {
            dw::DW_FORM_flag_present | dw::DW_FORM_implicit_const => Self::Fixed(0),
            dw::DW_FORM_data1
            | dw::DW_FORM_flag
            | dw::DW_FORM_ref1
            | dw::DW_FORM_strx1
            | dw::DW_FORM_addrx1 => Self::Fixed(1),
            dw::DW_FORM_data2 | dw::DW_FORM_ref2 | dw::DW_FORM_strx2 | dw::DW_FORM_addrx2 => {
                Self::Fixed(2)
            }
            dw::DW_FORM_strx3 | dw::DW_FORM_addrx3 => Self::Fixed(3),
            dw::DW_FORM_data4
            | dw::DW_FORM_ref4
            | dw::DW_FORM_ref_sup4
            | dw::DW_FORM_strx4
            | dw::DW_FORM_addrx4 => Self::Fixed(4),
            dw::DW_FORM_data8 | dw::DW_FORM_ref8 | dw::DW_FORM_ref_sig8 | dw::DW_FORM_ref_sup8 => {
                Self::Fixed(8)
            }
            dw::DW_FORM_data16 => Self::Fixed(16),
            dw::DW_FORM_addr => Self::Fixed(u16::from(encoding.address_size)),
            dw::DW_FORM_strp
            | dw::DW_FORM_sec_offset
            | dw::DW_FORM_line_strp
            | dw::DW_FORM_strp_sup
            | dw::DW_FORM_GNU_ref_alt
            | dw::DW_FORM_GNU_strp_alt => Self::Fixed(word),
            dw::DW_FORM_ref_addr => Self::Fixed(ref_addr_size(encoding)),
            dw::DW_FORM_udata
            | dw::DW_FORM_sdata
            | dw::DW_FORM_ref_udata
            | dw::DW_FORM_strx
            | dw::DW_FORM_addrx
            | dw::DW_FORM_loclistx
            | dw::DW_FORM_rnglistx
            | dw::DW_FORM_GNU_addr_index
            | dw::DW_FORM_GNU_str_index => Self::Leb,
            dw::DW_FORM_block1 => Self::Block(1),
            dw::DW_FORM_block2 => Self::Block(2),
            dw::DW_FORM_block4 => Self::Block(4),
            dw::DW_FORM_block | dw::DW_FORM_exprloc => Self::BlockLeb,
            dw::DW_FORM_string => Self::Text,
            dw::DW_FORM_indirect => Self::Indirect,
            other => return Err(Bad::Form(other.0)),
        })
    }
}
