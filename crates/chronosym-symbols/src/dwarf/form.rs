//! Reads and skips attribute values without allocating.
//!
//! To name one address, a walk passes all entries of its unit, most of which are types and
//! variables. So it does the minimum: it moves an offset, and each abbreviation has a plan to step
//! over its values (DWARF 5, section 7.5.6).

use std::fmt;

use gimli::{DwForm, Encoding, Format, constants as dw};

use crate::answer::Missing;

/// Why DWARF data cannot be read. Small, because the hot loop returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DwarfError {
    /// The data ends within a value.
    Truncated,
    /// An unknown form, whose size is unknown too.
    Form(u16),
    /// An abbreviation code that the table lacks.
    Abbreviation(u64),
    /// A reference without a target.
    Reference,
    /// References that form a cycle.
    Cycle,
    /// Entries nested deeper than any compiler nests them.
    Depth,
    /// More attributes in an entry than any compiler gives one.
    Attributes,
    /// More entries share range lists than any compiler lets them.
    Shared,
    /// More units share line tables than any compiler lets them.
    SharedLines,
    /// An error of gimli.
    Gimli(gimli::Error),
}

impl DwarfError {
    /// Returns true for a limit, where the data may be valid.
    pub(crate) fn is_limit(self) -> bool {
        matches!(self, Self::Shared | Self::SharedLines)
    }

    /// Returns why an address has no frames where this error occurred.
    pub(crate) fn missing(self) -> Missing {
        match self.is_limit() {
            true => Missing::LimitReached,
            false => Missing::Damaged,
        }
    }
}

impl fmt::Display for DwarfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the data ends within a value"),
            Self::Form(form) => write!(f, "attribute form {form:#x} is not known"),
            Self::Abbreviation(code) => write!(f, "abbreviation {code} is not defined"),
            Self::Reference => f.write_str("a reference is invalid"),
            Self::Cycle => f.write_str("references form a cycle"),
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

impl From<gimli::Error> for DwarfError {
    fn from(error: gimli::Error) -> Self {
        Self::Gimli(error)
    }
}

/// A position in the bytes of a unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    pub(crate) data: &'a [u8],
    pub(crate) pos: usize,
    pub(crate) big: bool,
}

impl<'a> Cursor<'a> {
    #[inline]
    pub(crate) fn skip(&mut self, len: usize) -> Result<(), DwarfError> {
        let pos = self.pos.checked_add(len).ok_or(DwarfError::Truncated)?;
        if pos > self.data.len() {
            return Err(DwarfError::Truncated);
        }
        self.pos = pos;
        Ok(())
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8, DwarfError> {
        let byte = *self.data.get(self.pos).ok_or(DwarfError::Truncated)?;
        self.pos = self.pos.wrapping_add(1);
        Ok(byte)
    }

    /// Returns an unsigned integer of 1 to 8 bytes.
    #[inline]
    pub(crate) fn uint(&mut self, size: usize) -> Result<u64, DwarfError> {
        let start = self.pos;
        self.skip(size)?;
        let bytes = self
            .data
            .get(start..self.pos)
            .ok_or(DwarfError::Truncated)?;
        let mut buffer = [0; 8];
        if self.big {
            let unused = buffer.len().saturating_sub(size);
            buffer
                .get_mut(unused..)
                .filter(|_| size <= 8)
                .ok_or(DwarfError::Truncated)?
                .copy_from_slice(bytes);
            Ok(u64::from_be_bytes(buffer))
        } else {
            buffer
                .get_mut(..size)
                .ok_or(DwarfError::Truncated)?
                .copy_from_slice(bytes);
            Ok(u64::from_le_bytes(buffer))
        }
    }

    /// Unsigned LEB128; bits beyond 64 are dropped.
    #[inline]
    pub(crate) fn uleb(&mut self) -> Result<u64, DwarfError> {
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
    pub(crate) fn sleb(&mut self) -> Result<i64, DwarfError> {
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
    fn skip_leb(&mut self) -> Result<(), DwarfError> {
        while self.u8()? >= 0x80 {}
        Ok(())
    }

    fn cstr(&mut self) -> Result<&'a [u8], DwarfError> {
        let rest = self.data.get(self.pos..).ok_or(DwarfError::Truncated)?;
        let len = memchr::memchr(0, rest).ok_or(DwarfError::Truncated)?;
        self.pos = self.pos.saturating_add(len).saturating_add(1);
        rest.get(..len).ok_or(DwarfError::Truncated)
    }

    /// Steps over the values of one entry.
    #[inline]
    pub(crate) fn skip_steps(
        &mut self,
        steps: &[SkipStep],
        encoding: Encoding,
    ) -> Result<(), DwarfError> {
        for step in steps {
            match *step {
                SkipStep::Fixed(len) => self.skip(usize::from(len))?,
                SkipStep::Leb => self.skip_leb()?,
                SkipStep::Block(size) => {
                    let len = self.uint(usize::from(size))?;
                    self.skip(usize::try_from(len).map_err(|_| DwarfError::Truncated)?)?;
                }
                SkipStep::BlockLeb => {
                    let len = self.uleb()?;
                    self.skip(usize::try_from(len).map_err(|_| DwarfError::Truncated)?)?;
                }
                SkipStep::Text => {
                    self.cstr()?;
                }
                SkipStep::Indirect => {
                    let form = indirect(self.uleb()?)?;
                    let step = SkipStep::of(form, encoding)?;
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
    ) -> Result<Value<'a>, DwarfError> {
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
            dw::DW_FORM_string => Value::StringRef(StringRef::Here(self.cstr()?)),
            dw::DW_FORM_strp => Value::StringRef(StringRef::Str(self.uint(word)?)),
            dw::DW_FORM_line_strp => Value::StringRef(StringRef::LineStr(self.uint(word)?)),
            dw::DW_FORM_strp_sup | dw::DW_FORM_GNU_strp_alt => {
                Value::StringRef(StringRef::Supplement(self.uint(word)?))
            }
            dw::DW_FORM_strx | dw::DW_FORM_GNU_str_index => {
                Value::StringRef(StringRef::Index(self.uleb()?))
            }
            dw::DW_FORM_strx1 => Value::StringRef(StringRef::Index(self.uint(1)?)),
            dw::DW_FORM_strx2 => Value::StringRef(StringRef::Index(self.uint(2)?)),
            dw::DW_FORM_strx3 => Value::StringRef(StringRef::Index(self.uint(3)?)),
            dw::DW_FORM_strx4 => Value::StringRef(StringRef::Index(self.uint(4)?)),
            dw::DW_FORM_indirect => {
                let form = indirect(self.uleb()?)?;
                return self.value(form, implicit, encoding);
            }
            other => {
                self.skip_steps(&[SkipStep::of(other, encoding)?], encoding)?;
                Value::Other
            }
        })
    }
}

/// Returns the form that an indirect value names. Another indirect one is rejected: it could
/// recurse without end.
fn indirect(form: u64) -> Result<DwForm, DwarfError> {
    match u16::try_from(form).map(DwForm) {
        Ok(error @ (dw::DW_FORM_indirect | dw::DW_FORM_implicit_const)) => {
            Err(DwarfError::Form(error.0))
        }
        Ok(form) => Ok(form),
        Err(_) => Err(DwarfError::Form(u16::MAX)),
    }
}

/// Returns the string up to its terminating zero, or all of it without one.
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

/// A string or its location.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StringRef<'a> {
    Here(&'a [u8]),
    Str(u64),
    LineStr(u64),
    Index(u64),
    Supplement(u64),
}

/// The value of an attribute, as far as names and lines need it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    Address(u64),
    AddressIndex(u64),
    Unsigned(u64),
    RangeIndex(u64),
    UnitRef(u64),
    InfoRef(u64),
    SupplementRef(u64),
    StringRef(StringRef<'a>),
    Other,
}

/// One step over values that are not needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SkipStep {
    /// A number of bytes.
    Fixed(u16),
    /// A LEB128 number.
    Leb,
    /// A block after its length, which has this many bytes.
    Block(u8),
    /// A block after its length in LEB128.
    BlockLeb,
    /// A string ending in zero.
    Text,
    /// A form, then its value.
    Indirect,
}

impl SkipStep {
    #[inline]
    pub(crate) fn of(form: DwForm, encoding: Encoding) -> Result<Self, DwarfError> {
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
            other => return Err(DwarfError::Form(other.0)),
        })
    }
}
