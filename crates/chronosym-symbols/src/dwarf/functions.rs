//! Which function, and which functions inlined into it, stand at an address: one pass over a unit's entries.

use std::ops::Range;

use gimli::constants as dw;

use super::abbrev::{Abbreviations, Kind};
use super::budget::Budget;
use super::form::{Bad, Value};
use super::unit::Unit;
use crate::elf::container::contains;

/// No compiler nests entries deeper; what does is damaged or made to exhaust memory.
const MAX_DEPTH: usize = 4096;

/// No node.
pub(crate) const NONE: u32 = u32::MAX;

/// Where the entry that names a function is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Entry {
    /// Offset within the unit.
    Unit(usize),
    /// Offset within `.debug_info`.
    Info(usize),
    /// Offset within the supplementary file's `.debug_info`.
    Supplement(usize),
}

impl Entry {
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

/// A function, or one inlined into it, that may be the answer to an address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub(crate) entry: Entry,
    /// The node it is inlined into; [`NONE`] for a function of its own.
    pub(crate) parent: u32,
    /// The function of its own around it.
    pub(crate) root: u32,
    /// Where it is entered.
    pub(crate) start: u64,
    pub(crate) call_file: u32,
    pub(crate) call_line: u32,
    pub(crate) call_column: u32,
}

/// The walk's working memory, kept between units.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    pub(crate) nodes: Vec<Node>,
    /// For every address wanted: the innermost node there.
    pub(crate) best: Vec<u32>,
    /// For every address wanted that has a function: where the piece of it that the address is in begins, or is entered
    /// if the entry lies before the address.
    pub(crate) pieces: Vec<u64>,
    /// Nodes around the current entry, with the depth of what is inside them.
    open: Vec<(usize, u32)>,
    /// How many wanted addresses have no function yet.
    left: usize,
    budget: Budget,
}

/// What is read of a function's entry.
#[derive(Default)]
struct Attributes<'a> {
    entry: Option<Value<'a>>,
    low: Option<Value<'a>>,
    high: Option<Value<'a>>,
    ranges: Option<Value<'a>>,
    origin: Option<Entry>,
    call_file: u32,
    call_line: u32,
    call_column: u32,
}

impl Walk {
    /// Finds the innermost function of every address of `wanted` (sorted).
    ///
    /// Where functions overlap, the first one wins, so that the walk may end once every address has its function. Of what
    /// is inlined into it the last entry wins, as in LLVM's tools: children come after their parents. A function that does
    /// not begin in `code` is one that the linker dropped. On an error, what was found before it stays.
    ///
    /// The walk begins at the entry `from`: the root's first child, or a function that is known to be the first.
    pub(crate) fn run(
        &mut self,
        unit: &Unit<'_>,
        abbreviations: &Abbreviations,
        from: usize,
        wanted: &[u64],
        code: &[Range<u64>],
    ) -> Result<(), Bad> {
        self.nodes.clear();
        self.open.clear();
        self.best.clear();
        self.best.resize(wanted.len(), NONE);
        self.pieces.clear();
        self.pieces.resize(wanted.len(), 0);
        self.left = wanted.len();
        self.budget = unit.sections.range_budget();

        let mut search = Search {
            walk: self,
            unit,
            wanted,
            code,
        };
        walk(unit, abbreviations, from, &mut search)
    }

    /// Calls `each` with every range of every function, and where its entry is, in the order of the walk.
    pub(crate) fn each_function(
        unit: &Unit<'_>,
        abbreviations: &Abbreviations,
        each: impl FnMut(u64, u64, usize),
    ) -> Result<(), Bad> {
        let budget = unit.sections.range_budget();
        let mut list = List { unit, budget, each };
        walk(unit, abbreviations, unit.first_child, &mut list)
    }

    /// Makes a node of an entry whose children may matter: a function that covers a wanted address, or anything inlined
    /// into one.
    #[inline]
    fn enter(
        &mut self,
        unit: &Unit<'_>,
        entry: Entry,
        parent: u32,
        attributes: &Attributes<'_>,
        wanted: &[u64],
        code: &[Range<u64>],
    ) -> Result<u32, Bad> {
        let id = u32::try_from(self.nodes.len()).map_err(|_| Bad::Depth)?;
        let around = self.nodes.get(parent as usize).map(|node| node.root);
        let mut start = None;
        let mut covers = false;
        let (best, nodes, left) = (&mut self.best, &self.nodes, &mut self.left);
        let pieces = &mut self.pieces;
        let mut cover = |low: u64, high: u64| {
            let start = *start.get_or_insert_with(|| attributes.start(unit, low));
            let from = wanted.partition_point(|&va| va < low);
            if wanted.get(from).is_none_or(|&va| va >= high) {
                return;
            }
            if around.is_none() && !contains(code, low) {
                return;
            }
            let found = (best.get_mut(from..), pieces.get_mut(from..));
            let ((Some(best), Some(pieces)), Some(wanted)) = (found, wanted.get(from..)) else {
                return;
            };
            for (va, (node, piece)) in wanted.iter().zip(best.iter_mut().zip(pieces)) {
                if *va >= high {
                    break;
                }
                match around {
                    None if *node == NONE => {
                        *left = left.saturating_sub(1);
                        *node = id;
                        *piece = if (low..=*va).contains(&start) {
                            start
                        } else {
                            low
                        };
                        covers = true;
                    }
                    // Another function's, or this one's by a range that overlaps.
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
        if !covers && parent == NONE {
            return read.map(|()| NONE);
        }
        self.nodes.push(Node {
            entry,
            parent,
            root: around.unwrap_or(id),
            start: start.unwrap_or_else(|| attributes.start(unit, 0)),
            call_file: attributes.call_file,
            call_line: attributes.call_line,
            call_column: attributes.call_column,
        });
        read.map(|()| id)
    }
}

/// What a walk is made for.
trait Visitor {
    /// True once nothing of the entries to come matters.
    fn done(&self) -> bool {
        false
    }

    /// A function with code, and at which depth its children are if it has some.
    fn function(&mut self, at: usize, read: &Attributes<'_>, inner: usize) -> Result<(), Bad>;

    /// True if what is inlined here matters.
    fn wants_inlined(&self) -> bool {
        false
    }

    /// What is inlined into the function around it, as [`Visitor::function`].
    fn inlined(&mut self, _at: usize, _read: &Attributes<'_>, _inner: usize) -> Result<(), Bad> {
        Ok(())
    }

    /// All children at a depth are done with.
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
        entry: Entry,
        parent: u32,
        read: &Attributes<'_>,
        inner: usize,
    ) -> Result<(), Bad> {
        let walk = &mut *self.walk;
        let opened = walk.enter(self.unit, entry, parent, read, self.wanted, self.code)?;
        if opened != NONE && inner != 0 {
            walk.open.push((inner, opened));
        }
        Ok(())
    }
}

impl Visitor for Search<'_, '_, '_> {
    #[inline]
    fn done(&self) -> bool {
        self.walk.left == 0 && self.walk.open.is_empty()
    }

    #[inline]
    fn function(&mut self, at: usize, read: &Attributes<'_>, inner: usize) -> Result<(), Bad> {
        self.enter(Entry::Unit(at), NONE, read, inner)
    }

    #[inline]
    fn wants_inlined(&self) -> bool {
        !self.walk.open.is_empty()
    }

    #[inline]
    fn inlined(&mut self, at: usize, read: &Attributes<'_>, inner: usize) -> Result<(), Bad> {
        let parent = self.walk.open.last().map_or(NONE, |&(_, node)| node);
        self.enter(read.origin.unwrap_or(Entry::Unit(at)), parent, read, inner)
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
    fn function(&mut self, at: usize, read: &Attributes<'_>, _: usize) -> Result<(), Bad> {
        let each = |low, high| (self.each)(low, high, at);
        read.each_range(self.unit, &mut self.budget, each)
    }
}

/// Walks the entries from `from` on; those inside functions that have no code of their own, and inside classes of functions, after
/// all others and only if they still matter: GCC puts the code of lambdas and of other local classes' methods there.
fn walk(
    unit: &Unit<'_>,
    abbreviations: &Abbreviations,
    from: usize,
    visitor: &mut impl Visitor,
) -> Result<(), Bad> {
    let mut later = Vec::new();
    let whole = from..unit.data.len();
    walk_part(unit, abbreviations, whole, Some(&mut later), visitor)?;
    for part in later {
        walk_part(unit, abbreviations, part, None, visitor)?;
    }
    Ok(())
}

/// Walks entries and all inside them; what is to be walked `later` is put there instead.
fn walk_part(
    unit: &Unit<'_>,
    abbreviations: &Abbreviations,
    part: Range<usize>,
    mut later: Option<&mut Vec<Range<usize>>>,
    visitor: &mut impl Visitor,
) -> Result<(), Bad> {
    let mut cursor = unit.cursor(part.start);
    let mut depth = 1usize;
    // The depth inside the outermost function around.
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
            Kind::Function => {
                let read = attributes(unit, abbreviations, &mut cursor, abbreviation)?;
                visitor.function(at, &read, inner)?;
                if inner != 0 {
                    local = local.min(inner);
                }
            }
            Kind::Inlined if visitor.wants_inlined() => {
                let read = attributes(unit, abbreviations, &mut cursor, abbreviation)?;
                visitor.inlined(at, &read, inner)?;
            }
            Kind::Skippable | Kind::Class | Kind::Abstract => {
                let end = sibling(unit, abbreviations, &mut cursor, abbreviation)?;
                let skipped_to = match (abbreviation.kind, &mut later) {
                    (Kind::Skippable, _) => end,
                    (kind, Some(later)) => end.inspect(|&end| {
                        if kind == Kind::Abstract || local <= depth {
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
            Kind::Other | Kind::Inlined => {
                cursor.skip_steps(abbreviations.steps(abbreviation), unit.encoding)?;
            }
        }
        if abbreviation.has_children {
            depth = depth.wrapping_add(1);
            if depth > MAX_DEPTH {
                return Err(Bad::Depth);
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
) -> Result<Attributes<'a>, Bad> {
    let mut found = Attributes::default();
    for attribute in abbreviations.attributes(abbreviation) {
        let value = cursor.value(attribute.form, attribute.implicit, unit.encoding)?;
        match attribute.name {
            dw::DW_AT_entry_pc => found.entry = Some(value),
            dw::DW_AT_low_pc => found.low = Some(value),
            dw::DW_AT_high_pc => found.high = Some(value),
            dw::DW_AT_ranges => found.ranges = Some(value),
            dw::DW_AT_abstract_origin => found.origin = Entry::of(value),
            dw::DW_AT_call_file => found.call_file = number(value),
            dw::DW_AT_call_line => found.call_line = number(value),
            dw::DW_AT_call_column => found.call_column = number(value),
            _ => {}
        }
    }
    Ok(found)
}

impl Attributes<'_> {
    /// Where the code is entered (DWARF 5, section 2.17): of several ranges, of which the first begins at `first`, that
    /// need not be the lowest address.
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
    ) -> Result<(), Bad> {
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

fn number(value: Value<'_>) -> u32 {
    match value {
        Value::Unsigned(n) => u32::try_from(n).unwrap_or(0),
        _ => 0,
    }
}

/// The offset at which the entry's children end; always ahead, so that the walk cannot go round in a circle.
fn sibling(
    unit: &Unit<'_>,
    abbreviations: &Abbreviations,
    cursor: &mut super::form::Cursor<'_>,
    abbreviation: &super::abbrev::Abbreviation,
) -> Result<Option<usize>, Bad> {
    let mut found = None;
    for attribute in abbreviations.attributes(abbreviation) {
        let value = cursor.value(attribute.form, attribute.implicit, unit.encoding)?;
        if let (dw::DW_AT_sibling, Value::UnitRef(n)) = (attribute.name, value) {
            found = usize::try_from(n).ok();
        }
    }
    Ok(found.filter(|&end| end > cursor.pos && end <= cursor.data.len()))
}
