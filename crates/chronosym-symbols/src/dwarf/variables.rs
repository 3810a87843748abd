//! Variables: where they are declared, and the local variables of functions, for llvm-symbolizer's
//! `DATA` and `FRAME` lines.
//!
//! Both are rare, so entries are read with gimli, one unit at a time.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use chronosym_types::hash::HashMap;
use gimli::{
    Abbreviations, AttributeValue, DebugLocListsBase, DebuggingInformationEntry, Dwarf,
    DwarfFileType, Expression, Operation, SectionId, UnitOffset, constants as dw,
};

use super::budget::Budget;
use super::lines::LineProgram;
use super::names::InfoSection;
use super::unit::{Sections, Slice, Table, Unit};
use crate::elf::container::Container;

/// A concrete entry refers to its abstract one, and that to its declaration; chains are short.
const MAX_HOPS: usize = 16;

/// Types of arrays of arrays and the like nest no deeper.
const MAX_TYPES: usize = 32;

/// Maximum number of dimensions of an array.
const MAX_DIMENSIONS: usize = 64;

/// The number of units that stay open.
const MAX_UNITS: usize = 64;

/// LLVM's attribute with the tag of a variable in tagged memory.
const TAG_OFFSET: gimli::DwAt = gimli::DwAt(0x3e03);

/// A local variable or parameter of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LocalVariable {
    /// The function whose variable it is, without scope and parameters: that of an inlined call for
    /// its variables.
    pub function: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// The path of the file with its declaration.
    pub file: Option<String>,
    /// The line of its declaration; 0 if unknown.
    pub line: u64,
    /// Bytes from the frame base to the variable, if it is in memory there.
    pub frame_offset: Option<i64>,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// Its tag, relative to that of the frame.
    pub tag_offset: Option<u64>,
}

/// The place of a variable in memory, and its entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    start: u64,
    end: u64,
    unit: usize,
    entry: UnitOffset,
}

type Entry<'a> = DebuggingInformationEntry<Slice<'a>>;

/// The entries of a file.
pub(crate) struct Variables<'a> {
    info: InfoSection<'a>,
    locations: [&'a [u8]; 2],
    /// The skeleton of the unit, if that is split.
    skeleton: Option<Unit<'a>>,
    /// Lists that many entries may share.
    budget: RefCell<Budget>,
    /// The abbreviations read last, by their offset.
    table: RefCell<Table>,
    abbreviations: RefCell<Option<(usize, Arc<Abbreviations>)>>,
    /// Units that were opened.
    units: RefCell<HashMap<usize, Rc<Open<'a>>>>,
}

/// A unit, with the sections that its values refer to.
struct Open<'a> {
    own: Unit<'a>,
    dwarf: Dwarf<Slice<'a>>,
    unit: gimli::Unit<Slice<'a>>,
    lines: OnceCell<Option<LineProgram<'a>>>,
}

/// An entry and its unit.
type Found<'a> = (Rc<Open<'a>>, Entry<'a>);

impl<'a> Variables<'a> {
    pub(crate) fn new(container: &'a Container, info: InfoSection<'a>) -> Self {
        let get = |id| container.debug.get(id, false);
        let locations = [get(SectionId::DebugLoc), get(SectionId::DebugLocLists)];
        Self::with(info, locations, None)
    }

    /// Creates those of a split unit, with its sections.
    pub(crate) fn of_split(
        info: InfoSection<'a>,
        locations: [&'a [u8]; 2],
        skeleton: Unit<'a>,
    ) -> Self {
        Self::with(info, locations, Some(skeleton))
    }

    fn with(info: InfoSection<'a>, locations: [&'a [u8]; 2], skeleton: Option<Unit<'a>>) -> Self {
        let sections = &info.sections;
        let lists = [
            sections.ranges,
            sections.rnglists,
            locations[0],
            locations[1],
        ];
        let len = lists.iter().map(|list| list.len()).sum();
        Variables {
            info,
            locations,
            skeleton,
            budget: RefCell::new(Budget::of(len)),
            table: RefCell::default(),
            abbreviations: RefCell::default(),
            units: RefCell::default(),
        }
    }

    fn sections(&self) -> &Sections<'a> {
        &self.info.sections
    }

    fn open(&self, start: usize) -> Option<Rc<Open<'a>>> {
        if let Some(open) = self.units.borrow().get(&start) {
            return Some(Rc::clone(open));
        }
        let open = Rc::new(self.read(start)?);
        let mut units = self.units.borrow_mut();
        if units.len() >= MAX_UNITS {
            units.clear();
        }
        units.insert(start, Rc::clone(&open));
        Some(open)
    }

    fn read(&self, start: usize) -> Option<Open<'a>> {
        let table = &mut *self.table.borrow_mut();
        table.check(self.sections()).ok()?;
        let mut own = Unit::read(self.sections(), start, table).ok()?;
        if let Some(skeleton) = &self.skeleton {
            own.adopt(skeleton);
        }
        let sections = &own.sections;
        let info = sections.info.from(start)?;
        let dwarf = Dwarf::load(|id| {
            let bytes = match id {
                SectionId::DebugAbbrev => sections.abbrev,
                SectionId::DebugAddr => sections.addr,
                SectionId::DebugInfo => info,
                SectionId::DebugLineStr => sections.line_str,
                SectionId::DebugLoc => self.locations[0],
                SectionId::DebugLocLists => self.locations[1],
                SectionId::DebugRanges => sections.ranges,
                SectionId::DebugRngLists => sections.rnglists,
                SectionId::DebugStr => sections.str,
                SectionId::DebugStrOffsets => sections.str_offsets,
                _ => &[],
            };
            Ok::<_, gimli::Error>(sections.slice(bytes))
        });
        let mut dwarf = dwarf.ok()?;
        let file_type = match sections.split {
            true => DwarfFileType::Dwo,
            false => DwarfFileType::Main,
        };
        dwarf.file_type = file_type;
        let header = dwarf.units().next().ok()??;
        let offset = header.debug_abbrev_offset().0;
        let last = self.abbreviations.borrow_mut().take();
        let abbreviations = match last {
            Some((last, abbreviations)) if last == offset => abbreviations,
            _ => dwarf.abbreviations(&header).ok()?,
        };
        *self.abbreviations.borrow_mut() = Some((offset, Arc::clone(&abbreviations)));
        // gimli would read the line table, of which a compressed section has parts only.
        let mut unit = gimli::Unit {
            abbreviations,
            name: None,
            comp_dir: None,
            low_pc: own.low_pc,
            str_offsets_base: own.str_offsets_base,
            addr_base: own.addr_base,
            loclists_base: DebugLocListsBase::default_for_encoding_and_file(
                header.encoding(),
                file_type,
            ),
            rnglists_base: own.rnglists_base,
            line_program: None,
            dwo_id: None,
            header,
        };
        let root = unit.entry(UnitOffset(own.root)).ok()?;
        if let Some(AttributeValue::DebugLocListsBase(base)) =
            root.attr_value(dw::DW_AT_loclists_base)
        {
            unit.loclists_base = base;
        }
        Some(Open {
            own,
            dwarf,
            unit,
            lines: OnceCell::new(),
        })
    }

    /// Returns the local variables of the innermost function at an address of a unit, those of
    /// calls inlined into it included.
    pub(crate) fn locals(&self, start: usize, address: u64) -> Vec<LocalVariable> {
        let mut locals = Vec::new();
        if let Some(open) = self.open(start)
            && let Some(function) = open.function(address, &self.budget)
        {
            // Damaged data is read up to the damage.
            _ = self.add_locals(&open, function, &mut locals);
        }
        locals
    }

    fn add_locals(
        &self,
        open: &Rc<Open<'a>>,
        function: UnitOffset,
        locals: &mut Vec<LocalVariable>,
    ) -> gimli::Result<()> {
        let mut entries = open.unit.entries_at_offset(function)?;
        // The function of the entries at each depth: its name, and the register of its frame base.
        let mut functions: Vec<(isize, Option<String>, Option<u16>)> = Vec::new();
        let mut variable: Option<isize> = None;
        while let Some(entry) = entries.next_dfs()? {
            let depth = entry.depth();
            if depth <= 0 && !functions.is_empty() {
                break;
            }
            if variable.is_some_and(|outer| depth > outer) {
                continue;
            }
            variable = None;
            while functions.last().is_some_and(|(outer, ..)| *outer >= depth) {
                functions.pop();
            }
            match entry.tag() {
                dw::DW_TAG_variable | dw::DW_TAG_formal_parameter => {
                    variable = Some(depth);
                    let (_, function, base) = functions.last().cloned().unwrap_or_default();
                    locals.push(self.local(open, entry, function, base));
                }
                dw::DW_TAG_inlined_subroutine => {
                    let name = self.name(open, entry);
                    functions.push((depth, name, None));
                }
                _ if functions.is_empty() => {
                    let name = self.name(open, entry);
                    functions.push((depth, name, frame_base(entry)));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn local(
        &self,
        open: &Rc<Open<'a>>,
        entry: &Entry<'a>,
        function: Option<String>,
        base: Option<u16>,
    ) -> LocalVariable {
        let frame_offset = open.locations(entry, &self.budget).into_iter();
        let frame_offset = frame_offset
            .filter_map(|location| frame_offset_of(location, open, base))
            .next();
        let tag_offset = entry.attr_value(TAG_OFFSET);
        let tag_offset = tag_offset.and_then(|value| value.udata_value());
        let origin = self.follow(open, entry, dw::DW_AT_abstract_origin);
        let declared = |open: &Rc<Open<'a>>, entry: &Entry<'a>| {
            let value = |at| entry.attr_value(at);
            let file = value(dw::DW_AT_decl_file).and_then(|value| self.file(open, &value));
            let line = value(dw::DW_AT_decl_line).and_then(|value| value.udata_value());
            LocalVariable {
                function: None,
                name: value(dw::DW_AT_name).and_then(|name| self.text(open, name)),
                file,
                line: line.unwrap_or(0),
                size: self.size_of_type(open, entry, MAX_TYPES),
                ..LocalVariable::default()
            }
        };
        let own = match &origin {
            Some((open, origin)) => declared(open, origin),
            None => declared(open, entry),
        };
        LocalVariable {
            function,
            frame_offset,
            tag_offset,
            ..own
        }
    }

    /// Returns the variables at fixed addresses, sorted. Reads all entries.
    pub(crate) fn placed(&self) -> Vec<Placed> {
        let mut placed = Vec::new();
        let mut start = 0_usize;
        while let Some(open) = self.open(start) {
            _ = self.add_placed(&open, &mut placed);
            start = start.saturating_add(open.own.data.len());
        }
        placed.sort_by_key(|placed: &Placed| placed.start);
        placed
    }

    fn add_placed(&self, open: &Rc<Open<'a>>, placed: &mut Vec<Placed>) -> gimli::Result<()> {
        let mut entries = open.unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            if entry.tag() != dw::DW_TAG_variable {
                continue;
            }
            let locations = open.locations(entry, &self.budget).into_iter();
            let start = locations
                .filter_map(|location| fixed_address(location, open))
                .next();
            let Some(start) = start else { continue };
            let size = self.size_of_variable(open, entry).unwrap_or(1);
            placed.push(Placed {
                start,
                end: start.saturating_add(size.max(1)),
                unit: open.own.offset,
                entry: entry.offset(),
            });
        }
        Ok(())
    }

    /// Returns the file and the line of the declaration of the variable at an address.
    pub(crate) fn declaration(&self, placed: &[Placed], address: u64) -> Option<(String, u64)> {
        let next = placed.partition_point(|placed| placed.start <= address);
        let found = placed.get(next.checked_sub(1)?)?;
        if address >= found.end {
            return None;
        }
        let open = self.open(found.unit)?;
        let entry = open.unit.entry(found.entry).ok()?;
        let line = self.inherited(&open, &entry, dw::DW_AT_decl_line, |_, value| {
            value.udata_value()
        });
        let file = self.inherited(&open, &entry, dw::DW_AT_decl_file, |open, value| {
            self.file(open, value)
        });
        Some((file?, line.unwrap_or(0)))
    }

    /// Returns the value of an attribute of an entry, or of the entries that it completes.
    fn inherited<T>(
        &self,
        open: &Rc<Open<'a>>,
        entry: &Entry<'a>,
        at: gimli::DwAt,
        read: impl Fn(&Rc<Open<'a>>, &AttributeValue<Slice<'a>>) -> Option<T>,
    ) -> Option<T> {
        if let Some(value) = entry.attr_value(at) {
            return read(open, &value);
        }
        let mut found = self.completed(open, entry);
        for _ in 0..MAX_HOPS {
            let (open, entry) = found?;
            if let Some(value) = entry.attr_value(at) {
                return read(&open, &value);
            }
            found = self.completed(&open, &entry);
        }
        None
    }

    fn completed(&self, open: &Rc<Open<'a>>, entry: &Entry<'a>) -> Option<Found<'a>> {
        let origin = self.follow(open, entry, dw::DW_AT_abstract_origin);
        origin.or_else(|| self.follow(open, entry, dw::DW_AT_specification))
    }

    fn name(&self, open: &Rc<Open<'a>>, entry: &Entry<'a>) -> Option<String> {
        self.inherited(open, entry, dw::DW_AT_name, |open, value| {
            self.text(open, *value)
        })
    }

    /// Returns the entry to which an attribute refers.
    fn follow(&self, open: &Rc<Open<'a>>, entry: &Entry<'a>, at: gimli::DwAt) -> Option<Found<'a>> {
        let (start, offset) = match entry.attr_value(at)? {
            AttributeValue::UnitRef(offset) => {
                return Some((Rc::clone(open), open.unit.entry(offset).ok()?));
            }
            AttributeValue::DebugInfoRef(offset) => {
                let start = self.info.starts.containing(self.sections(), offset.0)?;
                (start, UnitOffset(offset.0.checked_sub(start)?))
            }
            _ => return None,
        };
        let open = self.open(start)?;
        let entry = open.unit.entry(offset).ok()?;
        Some((open, entry))
    }

    fn text(&self, open: &Rc<Open<'a>>, value: AttributeValue<Slice<'a>>) -> Option<String> {
        let bytes = match value {
            AttributeValue::DebugStrRefSup(offset) => {
                Sections::string(self.sections().supplement_str, offset.0 as u64)?
            }
            value => open.dwarf.attr_string(&open.unit, value).ok()?.slice(),
        };
        // Copied before it is checked: the file may be mapped and change.
        Some(chronosym_types::copied_text(bytes))
    }

    fn file(&self, open: &Rc<Open<'a>>, value: &AttributeValue<Slice<'a>>) -> Option<String> {
        let index = match value {
            AttributeValue::FileIndex(index) => *index,
            value => value.udata_value()?,
        };
        // The files of a split unit are in the line table of its skeleton.
        let unit = self.skeleton.as_ref().unwrap_or(&open.own);
        let read = || LineProgram::read(unit).ok().flatten();
        let lines = open.lines.get_or_init(read).as_ref()?;
        let path = lines.path(unit, u32::try_from(index).ok()?, false)?;
        Some(chronosym_types::copied_text(&path))
    }

    fn size_of_variable(&self, open: &Rc<Open<'a>>, entry: &Entry<'a>) -> Option<u64> {
        if entry.has_attr(dw::DW_AT_type) {
            return self.size_of_type(open, entry, MAX_TYPES);
        }
        let (open, entry) = self.completed(open, entry)?;
        self.size_of_type(&open, &entry, MAX_TYPES)
    }

    /// Returns the size in bytes of the type of an entry.
    fn size_of_type(&self, open: &Rc<Open<'a>>, entry: &Entry<'a>, depth: usize) -> Option<u64> {
        let (open, of) = self.follow(open, entry, dw::DW_AT_type)?;
        let depth = depth.checked_sub(1)?;
        if let Some(size) = of.attr_value(dw::DW_AT_byte_size) {
            return size.udata_value();
        }
        let pointer = u64::from(open.unit.header.encoding().address_size);
        match of.tag() {
            dw::DW_TAG_pointer_type
            | dw::DW_TAG_reference_type
            | dw::DW_TAG_rvalue_reference_type => Some(pointer),
            dw::DW_TAG_ptr_to_member_type => {
                let to = self.follow(&open, &of, dw::DW_AT_type);
                let is_function = to.is_some_and(|(_, to)| to.tag() == dw::DW_TAG_subroutine_type);
                Some(if is_function {
                    pointer.wrapping_mul(2)
                } else {
                    pointer
                })
            }
            dw::DW_TAG_const_type
            | dw::DW_TAG_immutable_type
            | dw::DW_TAG_volatile_type
            | dw::DW_TAG_restrict_type
            | dw::DW_TAG_template_alias
            | dw::DW_TAG_typedef => self.size_of_type(&open, &of, depth),
            dw::DW_TAG_array_type => {
                let element = self.size_of_type(&open, &of, depth)?;
                Some(open.elements(of.offset()).wrapping_mul(element))
            }
            _ => None,
        }
    }
}

impl<'a> Open<'a> {
    /// Returns the innermost function or inlined call that contains an address.
    fn function(&self, address: u64, budget: &RefCell<Budget>) -> Option<UnitOffset> {
        let mut innermost = None;
        let mut entries = self.unit.entries();
        while let Ok(Some(entry)) = entries.next_dfs() {
            let is_function = matches!(
                entry.tag(),
                dw::DW_TAG_subprogram | dw::DW_TAG_inlined_subroutine
            );
            if !is_function || self.overflows(entry) {
                continue;
            }
            let Ok(mut ranges) = self.dwarf.die_ranges(&self.unit, entry) else {
                continue;
            };
            while let Ok(Some(range)) = ranges.next() {
                if budget.borrow_mut().take(1).is_err() {
                    return None;
                }
                if (range.begin..range.end).contains(&address) {
                    innermost = Some(entry.offset());
                }
            }
        }
        innermost
    }

    /// Returns whether the code of an entry would end beyond the last address: gimli does not check
    /// it.
    fn overflows(&self, entry: &Entry<'a>) -> bool {
        let low = entry.attr_value(dw::DW_AT_low_pc);
        let low = low.and_then(|it| self.dwarf.attr_address(&self.unit, it).ok().flatten());
        match entry.attr_value(dw::DW_AT_high_pc) {
            Some(AttributeValue::Udata(size)) => {
                low.is_some_and(|low| low.checked_add(size).is_none())
            }
            _ => false,
        }
    }

    /// Returns the expressions of a variable's locations.
    fn locations(&self, entry: &Entry<'a>, budget: &RefCell<Budget>) -> Vec<Expression<Slice<'a>>> {
        match entry.attr_value(dw::DW_AT_location) {
            Some(AttributeValue::Exprloc(expression)) => vec![expression],
            Some(AttributeValue::Block(bytes)) => vec![Expression(bytes)],
            Some(value) => {
                let mut expressions = Vec::new();
                let list = self.dwarf.attr_locations(&self.unit, value);
                if let Ok(Some(mut list)) = list {
                    while let Ok(Some(location)) = list.next() {
                        if budget.borrow_mut().take(1).is_err() {
                            return Vec::new();
                        }
                        expressions.push(location.data);
                    }
                }
                expressions
            }
            None => Vec::new(),
        }
    }

    /// Returns the number of elements of an array: the product of its dimensions.
    fn elements(&self, array: UnitOffset) -> u64 {
        let mut count = 1_u64;
        let Ok(mut entries) = self.unit.entries_at_offset(array) else {
            return count;
        };
        for at in 0..MAX_DIMENSIONS {
            let Ok(Some(entry)) = entries.next_dfs() else {
                break;
            };
            let depth = entry.depth();
            if depth <= 0 && at > 0 {
                break;
            }
            if depth != 1 || entry.tag() != dw::DW_TAG_subrange_type {
                continue;
            }
            let value = |at| entry.attr_value(at);
            let own = value(dw::DW_AT_count).and_then(|count| count.udata_value());
            let upper = value(dw::DW_AT_upper_bound).and_then(|bound| bound.sdata_value());
            let lower = value(dw::DW_AT_lower_bound).and_then(|bound| bound.sdata_value());
            let span = upper.map(|upper| upper.wrapping_sub(lower.unwrap_or(0)).wrapping_add(1));
            count = count
                .wrapping_mul(own.unwrap_or(1))
                .wrapping_mul(span.map_or(1, i64::cast_unsigned));
        }
        count
    }
}

/// Returns the register of the frame base, if it is one.
fn frame_base(entry: &Entry<'_>) -> Option<u16> {
    let expression = entry.attr_value(dw::DW_AT_frame_base)?.exprloc_value()?;
    let first = *expression.0.slice().first()?;
    let register = first.checked_sub(dw::DW_OP_reg0.0)?;
    (register < 32).then_some(u16::from(register))
}

/// Returns the offset from the frame base, if an expression is nothing else; it may be that of an
/// address of the variable.
fn frame_offset_of(
    expression: Expression<Slice<'_>>,
    open: &Open<'_>,
    base: Option<u16>,
) -> Option<i64> {
    let mut operations = expression.operations(open.unit.encoding());
    let offset = match operations.next().ok()?? {
        Operation::FrameOffset { offset } => offset,
        Operation::RegisterOffset {
            register, offset, ..
        } if Some(register.0) == base => offset,
        _ => return None,
    };
    match operations.next().ok()? {
        None => Some(offset),
        Some(Operation::Deref { .. }) => {
            let is_end = operations.next().ok()?.is_none();
            is_end.then_some(offset)
        }
        Some(_) => None,
    }
}

/// Returns the address that an expression states.
fn fixed_address(expression: Expression<Slice<'_>>, open: &Open<'_>) -> Option<u64> {
    let mut operations = expression.operations(open.unit.encoding());
    let address = match operations.next().ok()?? {
        Operation::Address { address } => address,
        Operation::AddressIndex { index } => open.dwarf.address(&open.unit, index).ok()?,
        _ => return None,
    };
    match operations.next().ok()? {
        None => Some(address),
        Some(Operation::PlusConstant { value }) => Some(address.wrapping_add(value)),
        Some(_) => None,
    }
}
