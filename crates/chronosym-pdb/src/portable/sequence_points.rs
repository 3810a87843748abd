//! Sequence points (MethodDebugInformation table, 0x31; "Sequence Points Blob").

use crate::blob::BlobReader;
use crate::checkpoints::ListPosition;

/// The line of a hidden sequence point.
const HIDDEN: u32 = 0x00fe_efee;

/// The source range of the IL code from `il_offset` up to the next sequence point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SequencePoint {
    /// Offset of the first instruction.
    pub il_offset: u32,
    /// The row of the document.
    pub document: u32,
    /// First line, from 1; 0xFEEFEE if the point is hidden.
    pub start_line: u32,
    /// First column, from 1; 0 if hidden.
    pub start_column: u32,
    /// Last line.
    pub end_line: u32,
    /// Column after the last one.
    pub end_column: u32,
}

impl SequencePoint {
    /// Returns whether the code has no source (a hidden sequence point).
    pub fn is_hidden(&self) -> bool {
        self.start_line == HIDDEN
    }
}

/// Decodes the sequence points of one method, in IL order. A malformed blob ends the iteration: see
/// [`SequencePoints::is_damaged`].
#[derive(Debug, Clone)]
pub struct SequencePoints<'d> {
    blob: BlobReader<'d>,
    document: u32,
    il_offset: Option<u32>,
    /// Start line and column of the last visible point.
    visible: Option<(u32, u32)>,
    damaged: bool,
    left: u32,
}

/// The maximum number of sequence points of a method.
const MAX_POINTS: u32 = 1 << 17;

impl<'d> SequencePoints<'d> {
    pub(super) fn new(document: u32, blob: &'d [u8]) -> Self {
        let mut points = Self {
            blob: BlobReader::new(blob),
            document,
            il_offset: None,
            visible: None,
            damaged: false,
            left: MAX_POINTS,
        };
        if !points.blob.is_empty() {
            points.damaged = points.header().is_none();
        }
        points
    }

    #[cfg(test)]
    pub(super) fn at_most(self, left: u32) -> Self {
        Self { left, ..self }
    }

    fn header(&mut self) -> Option<()> {
        self.blob.unsigned()?; // LocalSignature
        if self.document == 0 {
            self.document = self.blob.unsigned()?;
        }
        Some(())
    }

    /// Returns the number of unread bytes.
    pub(super) fn bytes(&self) -> usize {
        self.blob.rest().len()
    }

    /// Returns whether the iteration ended at malformed data.
    pub fn is_damaged(&self) -> bool {
        self.damaged
    }

    fn point(&mut self) -> Option<SequencePoint> {
        loop {
            let delta = self.blob.unsigned()?;
            match self.il_offset {
                Some(_) if delta == 0 => {
                    self.document = self.blob.unsigned()?;
                    continue;
                }
                last => self.il_offset = Some(last.unwrap_or(0).checked_add(delta)?),
            }
            let (document, il_offset) = (self.document, self.il_offset?);
            let lines = self.blob.unsigned()?;
            let columns = if lines == 0 {
                self.blob.unsigned()? as i32
            } else {
                self.blob.signed()?
            };
            if lines == 0 && columns == 0 {
                return Some(SequencePoint {
                    il_offset,
                    document,
                    start_line: HIDDEN,
                    start_column: 0,
                    end_line: HIDDEN,
                    end_column: 0,
                });
            }
            let (start_line, start_column) = match self.visible {
                None => (self.blob.unsigned()?, self.blob.unsigned()?),
                Some((line, column)) => (
                    line.checked_add_signed(self.blob.signed()?)?,
                    column.checked_add_signed(self.blob.signed()?)?,
                ),
            };
            self.visible = Some((start_line, start_column));
            return Some(SequencePoint {
                il_offset,
                document,
                start_line,
                start_column,
                end_line: start_line.checked_add(lines)?,
                end_column: start_column.checked_add_signed(columns)?,
            });
        }
    }
}

impl Iterator for SequencePoints<'_> {
    type Item = SequencePoint;

    fn next(&mut self) -> Option<SequencePoint> {
        if self.damaged || self.blob.is_empty() {
            return None;
        }
        let left = self.left.checked_sub(1);
        self.left = left.unwrap_or_default();
        let point = left.and_then(|_| self.point());
        self.damaged = point.is_none();
        point
    }
}

/// A position in a list of sequence points, and the last visible point before it.
#[derive(Clone)]
pub(super) struct PointPosition<'d> {
    pub points: SequencePoints<'d>,
    pub line: Option<SequencePoint>,
}

impl PointPosition<'_> {
    /// Returns whether all points before the position are at or before `il_offset`.
    pub fn is_before(&self, il_offset: u32) -> bool {
        self.points.il_offset <= Some(il_offset)
    }
}

impl ListPosition for PointPosition<'_> {
    fn advance(&mut self) -> Option<()> {
        let point = self.points.next()?;
        if !point.is_hidden() {
            self.line = Some(point);
        }
        Some(())
    }
}
