//! The function and the inlinees at an address, found in one pass over a unit's entries.

use std::ops::Range;

use gimli::constants as dw;

use super::abbrev::{Abbreviations, EntryKind};
use super::budget::Budget;
use super::form::{DwarfError, Value};
use super::unit::Unit;
use crate::elf::container::contains;

/// No compiler nests entries deeper: such data is damaged or meant to exhaust memory.
const MAX_DEPTH: usize = 4096;

/// Stands for no node.
pub(crate) const NO_NODE: u32 = u32::MAX;

/// Location of the entry that names a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum EntryRef {
    /// Offset within the unit.
    Unit(usize),
    /// Offset within `.debug_info`.
    Info(usize),
    /// Offset within the supplementary file's `.debug_info`.
    Supplement(usize),
}

impl EntryRef {
    pub(crate) fn of(value: Value<'_>) -> Option<Self> {
        let at = |n| usize::try_from(n).ok();
        match value {
            Value::UnitRef(n) => at(n).map(Self::Unit),
            Value::InfoRef(n) => at(n).map(Self::Info),
            Value::SupplementRef(n) => at(n).map(Self::Supplement),
            _ => None,
        }
    }
}

/// A function or inlinee that may cover a wanted address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FunctionNode {
    pub(crate) entry: EntryRef,
    /// The node it is inlined into; [`NO_NODE`] for a function that is not inlined.
    pub(crate) parent: u32,
    /// The outermost function.
    pub(crate) root: u32,
    /// Address of its entry point.
    pub(crate) start: u64,
    pub(crate) low_pc: Option<u64>,
    pub(crate) call_file: u32,
    pub(crate) call_line: u32,
    pub(crate) call_column: u32,
    pub(crate) call_discriminator: u32,
}

/// The walk's working memory, kept between units.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    pub(crate) nodes: Vec<FunctionNode>,
    /// For each wanted address: the innermost node.
    pub(crate) innermost: Vec<u32>,
    /// For each wanted address with a function: the start of the function's range that covers it,
    /// or the entry point if that is in the range and not after the address.
    pub(crate) starts: Vec<u64>,
    /// Nodes around the current entry, each with the depth of its children.
    open: Vec<(usize, u32)>,
    /// The number of wanted addresses without a function.
    remaining: usize,
    budget: Budget,
}

/// Attributes of a function's entry.
#[derive(Default)]
struct Attributes<'a> {
    entry: Option<Value<'a>>,
    low: Option<Value<'a>>,
    high: Option<Value<'a>>,
    ranges: Option<Value<'a>>,
    origin: Option<EntryRef>,
    call_file: u32,
    call_line: u32,
    call_column: u32,
    call_discriminator: u32,
}

impl Walk {
    /// Finds the innermost function of every address of `wanted` (sorted).
    ///
    /// Where functions overlap, the first one is used, so the walk may end once each address has
    /// its function. Of the inlinees the last entry is used, as in LLVM's tools: children come
    /// after their parents. A function that does not start in `code` was dropped by the linker. On
    /// an error the results so far stay.
    ///
    /// The walk starts at the entry `from`: the root's first child, or a function that covers the
    /// only address.
    pub(crate) fn run(
        &mut self,
        unit: &Unit<'_>,
        abbreviations: &Abbreviations,
        from: usize,
        wanted: &[u64],
        code: &[Range<u64>],
    ) -> Result<(), DwarfError> {
        self.nodes.clear();
        self.open.clear();
        self.innermost.clear();
        self.innermost.resize(wanted.len(), NO_NODE);
        self.starts.clear();
        self.starts.resize(wanted.len(), 0);
        self.remaining = wanted.len();
        self.budget = unit.sections.range_budget();

        let mut search = Search {
            walk: self,
            unit,
            wanted,
            code,
        };
        walk(unit, abbreviations, from, &mut search)
    }

    /// Calls `each` with every range of every function and the offset of its entry, in the order of
    /// the walk.
    pub(crate) fn each_function(
        unit: &Unit<'_>,
        abbreviations: &Abbreviations,
        each: impl FnMut(u64, u64, usize),
    ) -> Result<(), DwarfError> {
        let budget = unit.sections.range_budget();
        let mut list = List { unit, budget, each };
        walk(unit, abbreviations, unit.first_child, &mut list)
    }

    /// Calls `each` with every address at which the functions or their start can change: the ends of
    /// the ranges of functions and inlinees, and their entry points. Returns the number of functions
    /// around each other, at most.
    pub(crate) fn each_boundary(
        unit: &Unit<'_>,
        abbreviations: &Abbreviations,
        each: impl FnMut(u64),
    ) -> Result<usize, DwarfError> {
        let mut all = Boundaries {
            unit,
            budget: unit.sections.range_budget(),
            open: Vec::new(),
            depth: 0,
            each,
        };
        walk(unit, abbreviations, unit.first_child, &mut all)?;
        Ok(all.depth)
    }

    /// Makes a node of an entry whose children may matter: a function that covers a wanted address,
    /// or an inlinee of one.
    #[inline]
    fn enter(
        &mut self,
        unit: &Unit<'_>,
        entry: EntryRef,
        parent: u32,
        attributes: &Attributes<'_>,
        wanted: &[u64],
        code: &[Range<u64>],
    ) -> Result<u32, DwarfError> {
        let id = u32::try_from(self.nodes.len()).map_err(|_| DwarfError::Depth)?;
        let around = self.nodes.get(parent as usize).map(|node| node.root);
        let mut start = None;
        let mut covers = false;
        let (innermost, nodes, remaining) = (&mut self.innermost, &self.nodes, &mut self.remaining);
        let starts = &mut self.starts;
        let mut cover = |low: u64, high: u64| {
            let start = *start.get_or_insert_with(|| attributes.start(unit, low));
            let from = wanted.partition_point(|&va| va < low);
            if wanted.get(from).is_none_or(|&va| va >= high) {
                return;
            }
            if around.is_none() && !contains(code, low) {
                return;
            }
            let covered = (innermost.get_mut(from..), starts.get_mut(from..));
            let ((Some(innermost), Some(starts)), Some(wanted)) = (covered, wanted.get(from..))
            else {
                return;
            };
            for (va, (node, range_start)) in wanted.iter().zip(innermost.iter_mut().zip(starts)) {
                if *va >= high {
                    break;
                }
                match around {
                    None if *node == NO_NODE => {
                        *remaining = remaining.saturating_sub(1);
                        *node = id;
                        *range_start = if (low..=*va).contains(&start) {
                            start
                        } else {
                            low
                        };
                        covers = true;
                    }
                    // The range belongs to another function, or to this one by an overlapping
                    // range.
                    None => {}
                    Some(root) => {
                        let current = nodes.get(*node as usize);
                        if current.is_some_and(|current| current.root == root) {
                            *node = id;
                        }
                    }
                }
            }
        };
        let read = attributes.each_range(unit, &mut self.budget, &mut cover);
        if !covers && parent == NO_NODE {
            return read.map(|()| NO_NODE);
        }
        self.nodes.push(FunctionNode {
            entry,
            parent,
            root: around.unwrap_or(id),
            start: start.unwrap_or_else(|| attributes.start(unit, 0)),
            low_pc: attributes.low.and_then(|value| unit.address(value)),
            call_file: attributes.call_file,
            call_line: attributes.call_line,
            call_column: attributes.call_column,
            call_discriminator: attributes.call_discriminator,
        });
        read.map(|()| id)
    }
}

/// Receives the entries of a walk.
trait Visitor {
    /// True once the remaining entries do not matter.
    fn done(&self) -> bool {
        false
    }

    /// Visits a function with code; `inner` is the depth of its children, 0 if it has none.
    fn function(
        &mut self,
        at: usize,
        read: &Attributes<'_>,
        inner: usize,
    ) -> Result<(), DwarfError>;

    /// Returns true if inlinees matter here.
    fn wants_inlined(&self) -> bool {
        false
    }

    /// Visits an inlinee of the function around it; else as [`Visitor::function`].
    fn inlined(
        &mut self,
        _at: usize,
        _read: &Attributes<'_>,
        _inner: usize,
    ) -> Result<(), DwarfError> {
        Ok(())
    }

    /// All children at a depth were visited.
    fn leave(&mut self, _inner: usize) {}
}

/// Finds the functions at addresses.
struct Search<'w, 'u, 'a> {
    walk: &'w mut Walk,
    unit: &'u Unit<'a>,
    wanted: &'u [u64],
    code: &'u [Range<u64>],
}

impl Search<'_, '_, '_> {
    fn enter(
        &mut self,
        entry: EntryRef,
        parent: u32,
        read: &Attributes<'_>,
        inner: usize,
    ) -> Result<(), DwarfError> {
        let walk = &mut *self.walk;
        let opened = walk.enter(self.unit, entry, parent, read, self.wanted, self.code)?;
        if opened != NO_NODE && inner != 0 {
            walk.open.push((inner, opened));
        }
        Ok(())
    }
}

impl Visitor for Search<'_, '_, '_> {
    #[inline]
    fn done(&self) -> bool {
        self.walk.remaining == 0 && self.walk.open.is_empty()
    }

    #[inline]
    fn function(
        &mut self,
        at: usize,
        read: &Attributes<'_>,
        inner: usize,
    ) -> Result<(), DwarfError> {
        self.enter(EntryRef::Unit(at), NO_NODE, read, inner)
    }

    #[inline]
    fn wants_inlined(&self) -> bool {
        !self.walk.open.is_empty()
    }

    #[inline]
    fn inlined(
        &mut self,
        at: usize,
        read: &Attributes<'_>,
        inner: usize,
    ) -> Result<(), DwarfError> {
        let parent = self.walk.open.last().map_or(NO_NODE, |&(_, node)| node);
        self.enter(
            read.origin.unwrap_or(EntryRef::Unit(at)),
            parent,
            read,
            inner,
        )
    }

    #[inline]
    fn leave(&mut self, inner: usize) {
        while self.walk.open.last().is_some_and(|&(d, _)| d >= inner) {
            self.walk.open.pop();
        }
    }
}

/// Lists all functions.
struct List<'u, 'a, F> {
    unit: &'u Unit<'a>,
    budget: Budget,
    each: F,
}

impl<F: FnMut(u64, u64, usize)> Visitor for List<'_, '_, F> {
    fn function(&mut self, at: usize, read: &Attributes<'_>, _: usize) -> Result<(), DwarfError> {
        let each = |low, high| (self.each)(low, high, at);
        read.each_range(self.unit, &mut self.budget, each)
    }
}

/// Lists the boundaries of functions and inlinees.
struct Boundaries<'u, 'a, F> {
    unit: &'u Unit<'a>,
    budget: Budget,
    /// Depths of the children of the functions around the entry.
    open: Vec<usize>,
    depth: usize,
    each: F,
}

impl<F: FnMut(u64)> Visitor for Boundaries<'_, '_, F> {
    fn function(
        &mut self,
        _: usize,
        read: &Attributes<'_>,
        inner: usize,
    ) -> Result<(), DwarfError> {
        self.depth = self.depth.max(self.open.len().saturating_add(1));
        if inner != 0 {
            self.open.push(inner);
        }
        let (unit, each) = (self.unit, &mut self.each);
        read.each_range(unit, &mut self.budget, |low, high| {
            each(low);
            each(high);
            each(read.start(unit, low));
        })
    }

    fn wants_inlined(&self) -> bool {
        true
    }

    fn inlined(
        &mut self,
        at: usize,
        read: &Attributes<'_>,
        inner: usize,
    ) -> Result<(), DwarfError> {
        self.function(at, read, inner)
    }

    fn leave(&mut self, inner: usize) {
        while self.open.last().is_some_and(|&depth| depth >= inner) {
            self.open.pop();
        }
    }
}

/// Walks the entries from `from` on. Entries inside functions without code, and inside classes of
/// functions, come last and only if they still matter: GCC puts the code of lambdas and of other
/// local classes' methods there.
fn walk(
    unit: &Unit<'_>,
    abbreviations: &Abbreviations,
    from: usize,
    visitor: &mut impl Visitor,
) -> Result<(), DwarfError> {
    let mut later = Vec::new();
    let whole = from..unit.data.len();
    walk_part(unit, abbreviations, whole, Some(&mut later), visitor)?;
    for part in later {
        walk_part(unit, abbreviations, part, None, visitor)?;
    }
    Ok(())
}

/// Walks entries and their children; children to be walked last go to `later` instead.
fn walk_part(
    unit: &Unit<'_>,
    abbreviations: &Abbreviations,
    part: Range<usize>,
    mut later: Option<&mut Vec<Range<usize>>>,
    visitor: &mut impl Visitor,
) -> Result<(), DwarfError> {
    let mut cursor = unit.cursor(part.start);
    let mut depth = 1usize;
    // The depth of the children of the outermost function.
    let mut local = usize::MAX;
    while cursor.pos < part.end && !visitor.done() {
        let at = cursor.pos;
        let number = cursor.uleb()?;
        if number == 0 {
            visitor.leave(depth);
            if local == depth {
                local = usize::MAX;
            }
            depth = depth.wrapping_sub(1);
            if depth == 0 {
                break;
            }
            continue;
        }
        let abbreviation = abbreviations.get(number)?;
        let inner = if abbreviation.has_children {
            depth.wrapping_add(1)
        } else {
            0
        };
        match abbreviation.kind {
            EntryKind::Function => {
                let read = attributes(unit, abbreviations, &mut cursor, abbreviation)?;
                visitor.function(at, &read, inner)?;
                if inner != 0 {
                    local = local.min(inner);
                }
            }
            EntryKind::Inlined if visitor.wants_inlined() => {
                let read = attributes(unit, abbreviations, &mut cursor, abbreviation)?;
                visitor.inlined(at, &read, inner)?;
            }
            EntryKind::Skippable | EntryKind::Class | EntryKind::Abstract => {
                let end = sibling(unit, abbreviations, &mut cursor, abbreviation)?;
                let skipped_to = match (abbreviation.kind, &mut later) {
                    (EntryKind::Skippable, _) => end,
                    (kind, Some(later)) => end.inspect(|&end| {
                        if kind == EntryKind::Abstract || local <= depth {
                            later.push(cursor.pos..end);
                        }
                    }),
                    (_, None) => None,
                };
                if let Some(end) = skipped_to {
                    cursor.pos = end;
                    continue;
                }
            }
            EntryKind::Other | EntryKind::Inlined => {
                cursor.skip_steps(abbreviations.steps(abbreviation), unit.encoding)?;
            }
        }
        if abbreviation.has_children {
            depth = depth.wrapping_add(1);
            if depth > MAX_DEPTH {
                return Err(DwarfError::Depth);
            }
        }
    }
    visitor.leave(0);
    Ok(())
}

#[inline]
fn attributes<'a>(
    unit: &Unit<'a>,
    abbreviations: &Abbreviations,
    cursor: &mut super::form::Cursor<'a>,
    abbreviation: &super::abbrev::Abbreviation,
) -> Result<Attributes<'a>, DwarfError> {
    let mut read = Attributes::default();
    for attribute in abbreviations.attributes(abbreviation) {
        let value = cursor.value(attribute.form, attribute.implicit, unit.encoding)?;
        match attribute.name {
            dw::DW_AT_entry_pc => read.entry = Some(value),
            dw::DW_AT_low_pc => read.low = Some(value),
            dw::DW_AT_high_pc => read.high = Some(value),
            dw::DW_AT_ranges => read.ranges = Some(value),
            dw::DW_AT_abstract_origin => read.origin = EntryRef::of(value),
            dw::DW_AT_call_file => read.call_file = number(value),
            dw::DW_AT_call_line => read.call_line = number(value),
            dw::DW_AT_call_column => read.call_column = number(value),
            dw::DW_AT_GNU_discriminator => read.call_discriminator = number(value),
            _ => {}
        }
    }
    Ok(read)
}

impl Attributes<'_> {
    /// Returns the entry point (DWARF 5, section 2.17). Of several ranges, the first of which
    /// starts at `first`, it need not be the lowest address.
    fn start(&self, unit: &Unit<'_>, first: u64) -> u64 {
        let low = self.low.and_then(|value| unit.address(value));
        let base = low.unwrap_or(first);
        // An address, or a distance from the base.
        let entry = self.entry.and_then(|value| unit.high(base, value));
        entry.unwrap_or(base)
    }

    /// Calls `each` with the ranges of the code.
    #[inline]
    fn each_range(
        &self,
        unit: &Unit<'_>,
        budget: &mut Budget,
        mut each: impl FnMut(u64, u64),
    ) -> Result<(), DwarfError> {
        if let Some(ranges) = self.ranges {
            unit.each_range(ranges, budget, each)
        } else {
            let low = self.low.and_then(|value| unit.address(value));
            if let (Some(low), Some(high)) = (low, self.high)
                && let Some(high) = unit.high(low, high)
            {
                each(low, high);
            }
            Ok(())
        }
    }
}

pub(crate) fn number(value: Value<'_>) -> u32 {
    match value {
        Value::Unsigned(n) => u32::try_from(n).unwrap_or(0),
        _ => 0,
    }
}

/// Returns the offset at which the entry's children end: always ahead, so that the walk ends.
fn sibling(
    unit: &Unit<'_>,
    abbreviations: &Abbreviations,
    cursor: &mut super::form::Cursor<'_>,
    abbreviation: &super::abbrev::Abbreviation,
) -> Result<Option<usize>, DwarfError> {
    let mut end = None;
    for attribute in abbreviations.attributes(abbreviation) {
        let value = cursor.value(attribute.form, attribute.implicit, unit.encoding)?;
        if let (dw::DW_AT_sibling, Value::UnitRef(n)) = (attribute.name, value) {
            end = usize::try_from(n).ok();
        }
    }
    Ok(end.filter(|&end| end > cursor.pos && end <= cursor.data.len()))
}
