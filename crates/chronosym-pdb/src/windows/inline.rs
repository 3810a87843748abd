//! Inline sites: the binary annotations of S_INLINESITE, and the chain of sites at an address.
//!
//! The annotations (`BinaryAnnotationOpcode` in cvinfo.h) are a line program relative to the start
//! of the procedure; the ranges of its rows are the bytes that the site covers.

use super::lines::{InlineeLine, SourcePosition};
use super::symbols::{Record, Records, S_INLINESITE, S_INLINESITE_END, S_INLINESITE2};
use crate::Result;
use crate::blob::BlobReader;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Opcodes of the binary annotations: `BA_OP_*`.
mod op {
    pub(super) const CODE_OFFSET: u32 = 1;
    pub(super) const CHANGE_CODE_OFFSET_BASE: u32 = 2;
    pub(super) const CHANGE_CODE_OFFSET: u32 = 3;
    pub(super) const CHANGE_CODE_LENGTH: u32 = 4;
    pub(super) const CHANGE_FILE: u32 = 5;
    pub(super) const CHANGE_LINE_OFFSET: u32 = 6;
    pub(super) const CHANGE_LINE_END_DELTA: u32 = 7;
    pub(super) const CHANGE_RANGE_KIND: u32 = 8;
    pub(super) const CHANGE_COLUMN_START: u32 = 9;
    pub(super) const CHANGE_COLUMN_END_DELTA: u32 = 10;
    pub(super) const CHANGE_CODE_OFFSET_AND_LINE_OFFSET: u32 = 11;
    pub(super) const CHANGE_CODE_LENGTH_AND_CODE_OFFSET: u32 = 12;
    pub(super) const CHANGE_COLUMN_END: u32 = 13;
}

/// A range of code that an inline site covers, with its source position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CodeRange {
    /// Offsets from the start of the procedure.
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) position: SourcePosition,
}

/// The position of an inlinee without an inlinee line.
const UNKNOWN: SourcePosition = SourcePosition {
    file: u32::MAX,
    line: 0,
    column: 0,
};

/// A site of the chain at an address.
#[derive(Debug, Clone, Copy)]
pub(super) struct ActiveSite {
    pub(super) inlinee: u32,
    /// `None` if only a nested site covers the address.
    pub(super) position: Option<SourcePosition>,
}

/// Decodes a signed operand: the lowest bit is the sign.
fn signed(value: u32) -> i32 {
    let magnitude = (value >> 1) as i32;
    match value & 1 {
        0 => magnitude,
        _ => magnitude.wrapping_neg(),
    }
}

/// Runs the annotations of a site up to the first invalid one and passes its ranges to `each`, in
/// file order. `chunk` is the start of the nth separated code chunk relative to the procedure's
/// start; `None` for a chunk in another section, whose ranges are dropped.
pub(super) fn ranges(
    annotations: &[u8],
    origin: SourcePosition,
    chunk: impl Fn(u32) -> Option<u32>,
    mut each: impl FnMut(CodeRange),
) -> Option<()> {
    let mut operands = BlobReader::new(annotations);
    let mut base = Some(0u32);
    let mut offset = 0u32;
    let mut position = origin;
    let mut open: Option<CodeRange> = None;
    let mut close = |range: Option<CodeRange>, end: u32| {
        if let Some(range) = range
            && end > range.start
        {
            each(CodeRange { end, ..range });
        }
    };
    loop {
        let (operation, operand) = (operands.unsigned()?, operands.unsigned()?);
        match operation {
            op::CODE_OFFSET => offset = operand,
            // A range does not extend into another chunk.
            op::CHANGE_CODE_OFFSET_BASE => (base, open) = (chunk(operand), None),
            // A range starts; its length may be stated.
            op::CHANGE_CODE_OFFSET
            | op::CHANGE_CODE_OFFSET_AND_LINE_OFFSET
            | op::CHANGE_CODE_LENGTH_AND_CODE_OFFSET => {
                let (by, len) = match operation {
                    op::CHANGE_CODE_OFFSET => (operand, None),
                    op::CHANGE_CODE_OFFSET_AND_LINE_OFFSET => (operand & 0xF, None),
                    _ => (operands.unsigned()?, Some(operand)),
                };
                if operation == op::CHANGE_CODE_OFFSET_AND_LINE_OFFSET {
                    position.line = position.line.wrapping_add_signed(signed(operand >> 4));
                }
                offset = offset.wrapping_add(by);
                let Some(base) = base else {
                    continue;
                };
                let start = base.wrapping_add(offset);
                close(open.take(), start);
                let end = start;
                open = Some(CodeRange {
                    start,
                    end,
                    position,
                });
                if let Some(len) = len {
                    close(open.take(), start.saturating_add(len));
                }
            }
            op::CHANGE_CODE_LENGTH => {
                if let Some(range) = open.take() {
                    close(Some(range), range.start.saturating_add(operand));
                }
                offset = offset.wrapping_add(operand);
            }
            op::CHANGE_FILE => position.file = operand,
            op::CHANGE_LINE_OFFSET => {
                position.line = position.line.wrapping_add_signed(signed(operand))
            }
            // A column that exceeds 16 bits is unknown.
            op::CHANGE_COLUMN_START => position.column = operand.try_into().unwrap_or_default(),
            op::CHANGE_LINE_END_DELTA
            | op::CHANGE_RANGE_KIND
            | op::CHANGE_COLUMN_END_DELTA
            | op::CHANGE_COLUMN_END => {}
            _ => return None,
        }
    }
}

/// The parts of a module that the annotations refer to.
pub(super) struct Context<'d> {
    pub(super) symbols: &'d [u8],
    pub(super) inlinees: &'d [InlineeLine],
    /// Starts of the separated code chunks, relative to the procedure.
    pub(super) chunks: &'d [Option<u32>],
}

impl Context<'_> {
    fn origin(&self, inlinee: u32) -> SourcePosition {
        let number = |entry: &InlineeLine| entry.inlinee;
        let index = self.inlinees.binary_search_by_key(&inlinee, number).ok();
        let line = index.and_then(|index| self.inlinees.get(index));
        line.map_or(UNKNOWN, |line| line.position)
    }

    /// Chunk 0 is the main code.
    fn chunk(&self, number: u32) -> Option<u32> {
        let Some(separated) = (number as usize).checked_sub(1) else {
            return Some(0);
        };
        self.chunks.get(separated).copied().flatten()
    }

    /// Runs the annotations of `site`.
    fn site(&self, site: &Record<'_>, each: impl FnMut(CodeRange)) {
        let at = if site.kind == S_INLINESITE { 12 } else { 16 };
        let annotations = site.body.get(at..).unwrap_or_default();
        let origin = self.origin(site.u32(8).unwrap_or_default());
        ranges(annotations, origin, |number| self.chunk(number), each);
    }
}

/// The maximum number of inlined frames at one address; compilers nest about 60.
const MAX_INLINED: usize = 256;

/// Memory for decoded sites: once it is used up, sites are decoded again for each lookup.
#[derive(Debug, Default)]
pub(super) struct Budget(AtomicUsize);

impl Budget {
    const BYTES: usize = 32 << 20;

    /// Returns a budget that is used up.
    pub(super) fn none() -> Self {
        Self(AtomicUsize::new(Self::BYTES))
    }

    fn take(&self, bytes: usize) -> bool {
        let fits =
            |used: usize| Some(used.saturating_add(bytes)).filter(|&used| used <= Self::BYTES);
        self.0.fetch_update(Relaxed, Relaxed, fits).is_ok()
    }
}

/// The decoded sites of one procedure; `None` if it has none.
pub(super) type Slot = OnceLock<Option<Box<Sites>>>;

/// Decodes the sites in the scope of `record` into `slot`, or into `scratch` if the budget is used
/// up.
pub(super) fn sites<'s>(
    slot: &'s Slot,
    context: &Context<'_>,
    record: &Record<'_>,
    budget: &Budget,
    scratch: &'s mut Sites,
) -> Result<Option<&'s Sites>> {
    scratch.read(context, record)?;
    if scratch.sites.is_empty() {
        return Ok(slot.get_or_init(|| None).as_deref());
    }
    if !budget.take(scratch.heap_bytes()) {
        return Ok(Some(scratch));
    }
    let sites = slot.get_or_init(|| Some(Box::new(scratch.clone())));
    Ok(sites.as_deref())
}

/// The decoded inline sites of one procedure.
#[derive(Debug, Default, Clone)]
pub(super) struct Sites {
    /// In file order: a site follows its parent.
    sites: Vec<InlineSite>,
    /// The ranges of all sites, by start.
    ranges: Vec<SiteRange>,
    /// For each range, the greatest end up to it.
    ended: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct SiteRange {
    range: CodeRange,
    site: u32,
}

#[derive(Debug, Clone, Copy)]
struct InlineSite {
    inlinee: u32,
    parent: Option<u32>,
    depth: u32,
}

impl Sites {
    /// Decodes the sites in the scope of the procedure `record`.
    pub(super) fn read(&mut self, context: &Context<'_>, record: &Record<'_>) -> Result<()> {
        self.sites.clear();
        self.ranges.clear();
        self.ended.clear();
        let end = record.end().unwrap_or_default();
        let mut records = Records::from(context.symbols, record.next());
        let mut open = None;
        while let Some(record) = records.next()? {
            if record.offset >= end {
                break;
            }
            match record.kind {
                S_INLINESITE | S_INLINESITE2 => {
                    let Ok(number) = u32::try_from(self.sites.len()) else {
                        break;
                    };
                    let around = open.and_then(|site| self.node(site));
                    let node = InlineSite {
                        inlinee: record.u32(8).unwrap_or_default(),
                        parent: open,
                        depth: around.map_or(0, |around| around.depth.saturating_add(1)),
                    };
                    self.sites.push(node);
                    open = Some(number);
                    context.site(&record, |range| {
                        self.ranges.push(SiteRange {
                            range,
                            site: number,
                        });
                    });
                }
                S_INLINESITE_END => {
                    open = open.and_then(|site| self.node(site)?.parent);
                }
                _ if record.is_procedure() => {
                    if let Some(end) = record.end().filter(|&end| end > record.offset) {
                        records.skip_to(end);
                    }
                }
                _ => {}
            }
        }
        self.ranges.sort_by_key(|row| row.range.start);
        let mut ended = 0;
        self.ended.extend(self.ranges.iter().map(|row| {
            ended = ended.max(row.range.end);
            ended
        }));
        Ok(())
    }

    /// Returns the chain of sites at `offset`, innermost first; `hits` is scratch.
    ///
    /// The deepest site that covers the byte counts, the first of equals; of its ranges there, the
    /// one that starts last. Some compilers give a site bytes that its parent does not have: the
    /// parent is part of the chain without a position.
    pub(super) fn find<'s>(
        &'s self,
        offset: u32,
        hits: &'s mut Vec<(u32, SourcePosition)>,
    ) -> impl Iterator<Item = ActiveSite> + use<'s> {
        hits.clear();
        let started = self.ranges.partition_point(|row| row.range.start <= offset);
        let ranges = self.ranges.get(..started).unwrap_or_default();
        let before = ranges.iter().zip(&self.ended).rev();
        for (row, _) in before.take_while(|&(_, &ended)| ended > offset) {
            if row.range.end > offset {
                hits.push((row.site, row.range.position));
            }
        }
        let order = |site| {
            (
                self.node(site).map(|node| node.depth),
                std::cmp::Reverse(site),
            )
        };
        let deepest = hits.iter().map(|hit| hit.0).max_by_key(|&site| order(site));
        let chain = std::iter::successors(deepest, |&site| self.node(site)?.parent);
        // A site follows its parent: chain and hits are in the same order.
        hits.sort_by_key(|hit| std::cmp::Reverse(hit.0));
        let mut hits = hits.iter().peekable();
        chain.take(MAX_INLINED).filter_map(move |site| {
            while hits.next_if(|hit| hit.0 > site).is_some() {}
            Some(ActiveSite {
                inlinee: self.node(site)?.inlinee,
                position: hits.peek().filter(|hit| hit.0 == site).map(|hit| hit.1),
            })
        })
    }

    /// Returns the offsets from the procedure at which ranges of sites start and end.
    pub(super) fn boundaries(&self) -> impl Iterator<Item = u32> {
        let ranges = self.ranges.iter().map(|row| row.range);
        ranges.flat_map(|range| [range.start, range.end])
    }

    /// Returns the length of the longest chain of sites.
    pub(super) fn depth(&self) -> usize {
        let depths = self.sites.iter().map(|site| site.depth as usize);
        depths.max().map_or(0, |depth| depth.saturating_add(1))
    }

    fn node(&self, site: u32) -> Option<&InlineSite> {
        self.sites.get(site as usize)
    }

    fn heap_bytes(&self) -> usize {
        size_of::<Self>()
            .saturating_add(size_of_val(&*self.sites))
            .saturating_add(size_of_val(&*self.ranges))
            .saturating_add(size_of_val(&*self.ended))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(annotations: &[u8], line: u32) -> Vec<(u32, u32, u32, u32)> {
        let mut out = Vec::new();
        let origin = SourcePosition {
            file: 7,
            line,
            column: 0,
        };
        let chunk = |number| [0, 0x1000].get(number as usize).copied();
        ranges(annotations, origin, chunk, |range| {
            out.push((
                range.start,
                range.end,
                range.position.file,
                range.position.line,
            ));
        });
        out
    }

    #[test]
    fn rows_end_at_the_next_or_at_their_length() {
        // +0x50 | +8, line +1 | +4, line +1 | length 4 | line -2 | +0x10 | length 0x10
        let program = [
            3, 0x50, 0x0B, 0x28, 0x0B, 0x24, 4, 4, 6, 5, 3, 0x10, 4, 0x10, 0, 0,
        ];
        assert_eq!(
            run(&program, 4),
            [
                (0x50, 0x58, 7, 4),
                (0x58, 0x5C, 7, 5),
                (0x5C, 0x60, 7, 6),
                (0x70, 0x80, 7, 4)
            ]
        );
    }

    #[test]
    fn lengths_files_and_wide_operands() {
        // file 0x123 (two bytes) | length 0x20 at +0x4000 (four bytes)
        let program = [5, 0x81, 0x23, 12, 0x20, 0xC0, 0, 0x40, 0, 3, 0x30, 4, 1];
        assert_eq!(
            run(&program, 1),
            [(0x4000, 0x4020, 0x123, 1), (0x4030, 0x4031, 0x123, 1)]
        );
    }

    #[test]
    fn a_row_without_a_length_at_the_end_covers_nothing() {
        assert_eq!(run(&[3, 4, 3, 6], 1), [(4, 10, 7, 1)]);
        assert_eq!(run(&[3], 1), []);
        assert_eq!(run(&[99, 1], 1), []);
        // No number starts with three bits set.
        assert_eq!(run(&[12, 0xE0, 0, 0, 4, 3], 1), []);
    }

    #[test]
    fn a_budget_is_used_up() {
        let budget = Budget::default();
        assert!(budget.take(Budget::BYTES - 1));
        assert!(!budget.take(2));
        assert!(budget.take(1));
        assert!(!budget.take(1));
    }

    #[test]
    fn separated_code_counts_from_its_own_start() {
        assert_eq!(run(&[2, 1, 3, 4, 4, 8], 1), [(0x1004, 0x100C, 7, 1)]);
        // A range without a length does not extend into another chunk; an unknown chunk has no
        // ranges.
        assert_eq!(run(&[3, 4, 2, 1, 12, 8, 0], 1), [(0x1004, 0x100C, 7, 1)]);
        let unknown = [2, 2, 12, 8, 4, 2, 9, 12, 8, 4, 2, 0, 12, 8, 8];
        assert_eq!(run(&unknown, 1), [(0x10, 0x18, 7, 1)]);
    }

    #[test]
    fn rows_of_one_offset_leave_the_last() {
        // line +1 at +4, line +2 at +0 of it, length 8
        assert_eq!(run(&[0x0B, 0x24, 0x0B, 0x40, 4, 8], 10), [(4, 12, 7, 13)]);
    }
}
