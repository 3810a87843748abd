//! Runs line number programs (DWARF 5, section 6.2) without building their tables.

use std::sync::{Mutex, PoisonError};

use chronosym_types::hash::HashSet;
use gimli::{AttributeValue, DebugLine, DebugLineOffset, IncompleteLineProgram, constants as dw};

use super::budget::FREE;
use super::form::{Cursor, DwarfError, StringRef, Value};
use super::unit::{Slice, Unit};

/// A row of the line table, without its address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LineRow {
    pub(crate) file: u32,
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) discriminator: u32,
}

/// The line number program of a unit, of which only the header is read.
#[derive(Debug)]
pub(crate) struct LineProgram<'a> {
    program: IncompleteLineProgram<Slice<'a>>,
    big: bool,
}

impl<'a> LineProgram<'a> {
    pub(crate) fn read(unit: &Unit<'a>) -> Result<Option<Self>, DwarfError> {
        let Some(offset) = unit.stmt_list else {
            return Ok(None);
        };
        let table = unit
            .sections
            .line
            .from(offset)
            .ok_or(DwarfError::Reference)?;
        let section = DebugLine::from(unit.sections.slice(table));
        let program = section.program(
            DebugLineOffset(0),
            unit.encoding.address_size,
            unit.comp_dir.map(|d| unit.sections.slice(d)),
            unit.name.map(|n| unit.sections.slice(n)),
        )?;
        Ok(Some(Self {
            program,
            big: unit.sections.endian == gimli::RunTimeEndian::Big,
        }))
    }

    /// Size of header and program in bytes.
    pub(crate) fn len(&self) -> usize {
        self.program.header().unit_length()
    }

    /// Returns the path of a file: compilation directory, directory and name, joined; without the
    /// compilation directory if `is_relative`.
    pub(crate) fn path(&self, unit: &Unit<'a>, file: u32, is_relative: bool) -> Option<Vec<u8>> {
        let header = self.program.header();
        let entry = header.file(u64::from(file))?;
        let name = text(unit, entry.path_name())?;
        // Directory 0 is the compilation directory.
        let has_directory = !is_relative || entry.directory_index() != 0;
        let directory = entry
            .directory(header)
            .filter(|_| has_directory)
            .and_then(|d| text(unit, d))
            .unwrap_or_default();
        let mut path = Vec::new();
        if !is_relative && !is_absolute(name) && !is_absolute(directory) {
            path.extend_from_slice(unit.comp_dir.unwrap_or_default());
        }
        // Before DWARF 5, gimli returns the compilation directory as directory 0; it is in `path`
        // already.
        if !is_absolute(name) && path != directory {
            push(&mut path, directory);
        }
        push(&mut path, name);
        (!path.is_empty()).then_some(path)
    }

    /// Runs the program and calls `each` with every row and its half-open range of addresses,
    /// unless that is empty. Within a sequence the ranges ascend.
    ///
    /// `enter` gets the start of each sequence; if it returns false, the rows of that sequence are
    /// skipped.
    #[expect(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::indexing_slicing,
        reason = "the hottest loop there is: opcodes are bytes and index 256 entries, what divides is not 0, lines wrap"
    )]
    pub(crate) fn run(
        &self,
        mut enter: impl FnMut(u64) -> bool,
        mut each: impl FnMut(u64, u64, &LineRow),
    ) -> Result<(), DwarfError> {
        let header = self.program.header();
        let encoding = header.encoding();
        let line = header.line_encoding();
        if line.line_range == 0 {
            return Err(DwarfError::Gimli(gimli::Error::LineRangeZero));
        }
        let opcode_base = header.opcode_base();
        let step = u64::from(line.minimum_instruction_length);
        let per_bundle = u64::from(line.maximum_operations_per_instruction).max(1);
        let mask = match encoding.address_size {
            size @ 1..8 => u64::MAX >> (64 - 8 * u32::from(size)),
            _ => u64::MAX,
        };
        // The effect of each special opcode.
        let mut special = [(0u64, 0i64); 256];
        for (opcode, effect) in special
            .iter_mut()
            .enumerate()
            .skip(usize::from(opcode_base))
        {
            let adjusted = opcode as u8 - opcode_base;
            let lines = i64::from(line.line_base) + i64::from(adjusted % line.line_range);
            *effect = (u64::from(adjusted / line.line_range), lines);
        }
        let (const_add, _) = special[255];

        let program = header.raw_program_buf();
        let mut cursor = Cursor {
            data: program.slice(),
            pos: 0,
            big: self.big,
        };
        let initial = LineRow {
            file: 1,
            line: 1,
            ..LineRow::default()
        };
        let mut row = initial;
        let (mut address, mut op_index) = (0u64, 0u64);
        // The previous row, whose end is not known yet. Rows of a sequence that go backwards are
        // dropped.
        let mut pending: Option<(u64, LineRow)> = None;
        let mut wanted = true;
        let mut started = false;

        let advance = |address: &mut u64, op_index: &mut u64, operations: u64| {
            if per_bundle == 1 {
                *address = address.wrapping_add(operations.wrapping_mul(step)) & mask;
            } else {
                let sum = op_index.wrapping_add(operations);
                *address = address.wrapping_add((sum / per_bundle).wrapping_mul(step)) & mask;
                *op_index = sum % per_bundle;
            }
        };
        macro_rules! emit {
            () => {{
                if !started {
                    started = true;
                    wanted = enter(address);
                }
                if wanted {
                    if let Some((from, before)) = &pending
                        && *from < address
                    {
                        each(*from, address, before);
                    }
                    pending = Some((address, row));
                }
                row.discriminator = 0;
            }};
        }

        while cursor.pos < cursor.data.len() {
            let opcode = cursor.u8()?;
            if opcode >= opcode_base {
                let (operations, lines) = special[usize::from(opcode)];
                advance(&mut address, &mut op_index, operations);
                row.line = row.line.wrapping_add(lines as u32);
                emit!();
                continue;
            }
            match gimli::DwLns(opcode) {
                gimli::DwLns(0) => {
                    let len = usize::try_from(cursor.uleb()?).map_err(|_| DwarfError::Truncated)?;
                    let start = cursor.pos;
                    cursor.skip(len)?;
                    let end = cursor.pos;
                    if len == 0 {
                        continue;
                    }
                    cursor.pos = start;
                    match gimli::DwLne(cursor.u8()?) {
                        dw::DW_LNE_end_sequence => {
                            if let Some((from, before)) = pending.take()
                                && wanted
                                && from < address
                            {
                                each(from, address, &before);
                            }
                            row = initial;
                            (address, op_index) = (0, 0);
                            (wanted, started) = (true, false);
                        }
                        dw::DW_LNE_set_address => {
                            address = cursor.uint((len - 1).min(8))?;
                            op_index = 0;
                        }
                        dw::DW_LNE_set_discriminator => {
                            row.discriminator = u32::try_from(cursor.uleb()?).unwrap_or(u32::MAX);
                        }
                        _ => {}
                    }
                    cursor.pos = end;
                }
                dw::DW_LNS_copy => emit!(),
                dw::DW_LNS_advance_pc => {
                    let operations = cursor.uleb()?;
                    advance(&mut address, &mut op_index, operations);
                }
                dw::DW_LNS_advance_line => row.line = row.line.wrapping_add(cursor.sleb()? as u32),
                dw::DW_LNS_set_file => row.file = u32::try_from(cursor.uleb()?).unwrap_or(u32::MAX),
                dw::DW_LNS_set_column => {
                    row.column = u32::try_from(cursor.uleb()?).unwrap_or(u32::MAX);
                }
                dw::DW_LNS_negate_stmt
                | dw::DW_LNS_set_basic_block
                | dw::DW_LNS_set_prologue_end
                | dw::DW_LNS_set_epilogue_begin => {}
                dw::DW_LNS_const_add_pc => advance(&mut address, &mut op_index, const_add),
                dw::DW_LNS_fixed_advance_pc => {
                    address = address.wrapping_add(cursor.uint(2)?) & mask;
                    op_index = 0;
                }
                dw::DW_LNS_set_isa => {
                    cursor.uleb()?;
                }
                // An opcode of a later version: the header has the number of its operands.
                gimli::DwLns(opcode) => {
                    let lengths = header.standard_opcode_lengths().slice();
                    let count = lengths
                        .get(usize::from(opcode).wrapping_sub(1))
                        .ok_or(DwarfError::Truncated)?;
                    for _ in 0..*count {
                        cursor.uleb()?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Limits how often the line tables of one file are read for different units.
#[derive(Debug, Default)]
pub(crate) struct LineTables(Mutex<Charged>);

#[derive(Debug, Default)]
struct Charged {
    /// Offsets in `.debug_info`.
    units: HashSet<usize>,
    bytes: usize,
}

impl LineTables {
    /// Returns the line number program of a unit, if it has one. On average each table is read for
    /// up to `share` units.
    pub(crate) fn read<'a>(
        &self,
        unit: &Unit<'a>,
        share: usize,
    ) -> Result<Option<LineProgram<'a>>, DwarfError> {
        if unit.stmt_list.is_none() {
            return Ok(None);
        }
        let max = share.saturating_mul(unit.sections.line.len());
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let charged = lock();
            if charged.bytes > max.saturating_add(FREE) && !charged.units.contains(&unit.offset) {
                return Err(DwarfError::SharedLines);
            }
        }
        let lines = LineProgram::read(unit)?;
        let mut charged = lock();
        if charged.units.insert(unit.offset) {
            let len = lines.as_ref().map_or(0, LineProgram::len);
            charged.bytes = charged.bytes.saturating_add(len);
        }
        Ok(lines)
    }
}

fn text<'a>(unit: &Unit<'a>, value: AttributeValue<Slice<'a>>) -> Option<&'a [u8]> {
    let text = match value {
        AttributeValue::String(text) => StringRef::Here(text.slice()),
        AttributeValue::DebugStrRef(offset) => StringRef::Str(offset.0 as u64),
        AttributeValue::DebugLineStrRef(offset) => StringRef::LineStr(offset.0 as u64),
        AttributeValue::DebugStrOffsetsIndex(index) => StringRef::Index(index.0 as u64),
        AttributeValue::DebugStrRefSup(offset) => StringRef::Supplement(offset.0 as u64),
        _ => return None,
    };
    unit.text(Value::StringRef(text))
}

/// Returns true if the path is absolute on the system that compiled, which need not be this one.
fn is_absolute(path: &[u8]) -> bool {
    match path {
        [b'/' | b'\\', ..] => true,
        [drive, b':', b'/' | b'\\', ..] => drive.is_ascii_alphabetic(),
        _ => false,
    }
}

/// Appends a component, with the separator that the path uses.
fn push(path: &mut Vec<u8>, part: &[u8]) {
    if part.is_empty() {
        return;
    }
    if !path.is_empty() && !matches!(path.last(), Some(b'/' | b'\\')) {
        let windows = path.get(1) == Some(&b':') && !path.contains(&b'/');
        path.push(if windows { b'\\' } else { b'/' });
    }
    path.extend_from_slice(part);
}
