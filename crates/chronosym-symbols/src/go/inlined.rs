//! Inline trees: the inlinees of a function, and where each is called.

use chronosym_types::bytes;

use super::image::Image;
use super::pclntab::{Function, Layout, Pclntab};

/// The code value that is the index of the innermost inlined call.
pub(super) const CALLS: u32 = 2;

/// Number of functions with inlined calls that are checked before trees are trusted.
const CHECKED: usize = 16;

/// Maximum number of functions searched for inlined calls.
const SEARCHED: usize = 4096;

/// Maximum number of ranges per function searched for inlined calls.
const CHECKED_RANGES: usize = 256;

/// One inlined call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InlinedCall {
    /// Offset of the callee's name in the table of names.
    pub(super) name: u32,
    pub(super) site: CallSite,
}

/// The call site of an inlined function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallSite {
    /// At the line of this instruction, counted from the function's start (since Go 1.20).
    Instruction(u64),
    /// In the inlined call with the index `parent`, or in the function itself if it is negative.
    Line { parent: i32, file: i32, line: i32 },
}

/// The inline trees of all functions.
#[derive(Clone, Copy, Debug)]
pub(super) struct InlineTrees<'a> {
    /// The bytes from the base of the trees' offsets to the end.
    pub(super) bytes: &'a [u8],
    /// The address of these bytes, which the trees' addresses include.
    pub(super) start: u64,
    /// Index of the tree in a function's data.
    pub(super) index: u8,
}

impl<'a> InlineTrees<'a> {
    /// Returns the trees at offsets in `bytes`, if every tree that is checked is well-formed.
    pub(super) fn at_offsets(bytes: &'a [u8], table: Pclntab<'_>) -> Option<Self> {
        let trees = Self {
            bytes,
            start: 0,
            index: 3,
        };
        trees.are_trees(table).then_some(trees)
    }

    /// Returns the trees at the addresses that functions state, if they are well-formed.
    /// Position-independent programs of these releases lack the addresses.
    pub(super) fn at_addresses(image: &Image<'a>, table: Pclntab<'_>) -> Option<Self> {
        // The numbering of a function's data changed with Go 1.16.
        let index = match table.header.layout {
            Layout::Go12 => 4,
            _ => 3,
        };
        image.segments.iter().find_map(|&(start, bytes)| {
            let trees = Self {
                bytes,
                start,
                index,
            };
            trees.are_trees(table).then_some(trees)
        })
    }

    /// Returns the call with an index in a function's tree.
    pub(super) fn call(
        &self,
        table: Pclntab<'_>,
        function: &Function,
        index: i32,
    ) -> Option<InlinedCall> {
        let bytes = self.of(table, function)?;
        let size = size(table.header.layout);
        let start = usize::try_from(index).ok()?.checked_mul(size)?;
        let record = bytes::slice(bytes, start, size)?;
        // No function is declared in line 0: the record is all zeros.
        if record.iter().all(|&byte| byte == 0) {
            return None;
        }
        let word = |at| Some(table.header.order.u32(bytes::array(record, at)?));
        let signed = |at| word(at).map(|word| word as i32);
        // A record starts with the parent, which is no longer set, and the kind of function.
        if table.header.layout >= Layout::Go120 {
            let site = CallSite::Instruction(word(8)?.into());
            return Some(InlinedCall {
                name: word(4)?,
                site,
            });
        }
        let parent = table.header.order.u16(bytes::array(record, 0)?) as i16;
        Some(InlinedCall {
            name: word(12)?,
            site: CallSite::Line {
                parent: parent.into(),
                file: signed(4)?,
                line: signed(8)?,
            },
        })
    }

    fn of(&self, table: Pclntab<'_>, function: &Function) -> Option<&'a [u8]> {
        let place = table.function_data(function, self.index)?;
        let offset = usize::try_from(place.checked_sub(self.start)?).ok()?;
        self.bytes.get(offset..)
    }

    fn are_trees(&self, table: Pclntab<'_>) -> bool {
        let functions = (0..table.len().min(SEARCHED)).filter_map(|index| table.function(index));
        let mut checked = 0usize;
        for function in functions {
            let mut ranges = table.code_data(&function, CALLS).take(CHECKED_RANGES);
            let Some(first) = ranges.find(|range| range.value >= 0) else {
                continue;
            };
            let call = self.call(table, &function, first.value);
            if call.is_none_or(|call| !is_call(table, &function, first.value, call)) {
                return false;
            }
            checked = checked.saturating_add(1);
            if checked == CHECKED {
                break;
            }
        }
        checked > 0
    }
}

/// Size of a record in bytes.
fn size(layout: Layout) -> usize {
    match layout >= Layout::Go120 {
        true => 16,
        false => 20,
    }
}

/// Returns true if the record may be a call: the name starts where one can, and the call is in the
/// function.
fn is_call(table: Pclntab<'_>, function: &Function, index: i32, call: InlinedCall) -> bool {
    let name = table.name_at(call.name);
    let before = name.and_then(|name| table.bytes.get(name.checked_sub(1)?));
    // Before Go 1.16 names are between other data.
    let starts = table.header.layout < Layout::Go116 || call.name == 0 || before == Some(&0);
    let text = name.and_then(|name| table.text(name));
    let is_in_function = match call.site {
        CallSite::Instruction(at) => at < function.end.saturating_sub(function.start),
        CallSite::Line { parent, file, line } => {
            parent < index && line >= 0 && table.file(function, file).is_some()
        }
    };
    starts && is_in_function && text.is_some_and(|text| !text.is_empty())
}
