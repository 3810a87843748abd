//! Bounds: the map from native to IL offsets in the image (section 105, `DEBUG_INFO`).
//!
//! The values are those of `ICorDebugInfo::OffsetMapping` in `cordebuginfo.h`.

use super::native::{Bits, NativeArray, Nibbles, unsigned};
use crate::checkpoints::ListPosition;

/// The maximum number of bounds of a method.
const MAX_BOUNDS: u32 = 1 << 16;

/// A funclet's prolog takes the IL offset of one of at most this many bounds after it.
const FUNCLET: usize = 256;

/// The code from `native_offset` on was compiled from `il`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bound {
    /// Bytes from the method's first byte, counted over the hot part, then the cold part.
    pub native_offset: u32,
    /// The IL that the code was compiled from.
    pub il: IlMapping,
    /// Whether the bound marks a call instruction (`CALL_INSTRUCTION`) instead of the start of
    /// code.
    pub call_instruction: bool,
}

/// The IL of a bound (`ICorDebugInfo::MappingTypes`), in the order of the stored values.
///
/// Closed: other stored values are offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum IlMapping {
    /// −3: the epilog.
    Epilog,
    /// −2: the prolog of the method or of a funclet.
    Prolog,
    /// −1: no IL.
    NoMapping,
    /// The IL from this offset on.
    Offset(u32),
}

impl IlMapping {
    /// Converts a stored value, which is biased by 3.
    fn stored(value: u32) -> Self {
        match value {
            0 => Self::Epilog,
            1 => Self::Prolog,
            2 => Self::NoMapping,
            offset => Self::Offset(offset.saturating_sub(3)),
        }
    }
}

/// The IL of a native offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct IlPosition {
    /// The mapping of the bound that covers the offset.
    pub mapping: IlMapping,
    /// The IL offset to look up a line for: that of the mapping; 0 in the method's prolog; in a
    /// funclet's prolog that of the code after it; else that of the nearest bound before with an IL
    /// offset.
    pub il_offset: Option<u32>,
}

/// The bounds of one method in native order; ends early at malformed data.
#[derive(Debug, Clone)]
pub struct Bounds<'d> {
    form: Form<'d>,
    left: u32,
    native_offset: u32,
    /// Offset of the list in the section.
    pub(super) offset: usize,
    /// Size of the list in bytes.
    pub(super) bytes: usize,
}

#[derive(Debug, Clone)]
enum Form<'d> {
    Nibbles(Nibbles<'d>),
    Bits {
        bits: Bits<'d>,
        source: u32,
        native: u32,
        il: u32,
    },
}

impl Iterator for Bounds<'_> {
    type Item = Bound;

    fn next(&mut self) -> Option<Bound> {
        self.left = self.left.checked_sub(1)?;
        let (source, delta, il) = match &mut self.form {
            Form::Nibbles(nibbles) => {
                let (delta, il) = (nibbles.unsigned()?, nibbles.unsigned()?);
                (nibbles.unsigned()? >> 4, delta, il)
            }
            Form::Bits {
                bits,
                source,
                native,
                il,
            } => (bits.take(*source)?, bits.take(*native)?, bits.take(*il)?),
        };
        self.native_offset = self.native_offset.checked_add(delta)?;
        Some(Bound {
            native_offset: self.native_offset,
            il: IlMapping::stored(il),
            call_instruction: source & 1 != 0,
        })
    }
}

impl<'d> Bounds<'d> {
    /// Returns the bounds of the method whose entry point is runtime function `function`.
    pub(super) fn of(debug_info: &NativeArray<'d>, function: u32, major: u16) -> Option<Self> {
        let at = debug_info.get(function)?;
        let (back, after) = unsigned(debug_info.data(), at)?;
        let blob = if back == 0 {
            after
        } else {
            at.checked_sub(back as usize)?
        };
        let bounds = Self::parse(debug_info.data().get(blob..)?, major)?;
        Some(Self {
            offset: blob,
            ..bounds
        })
    }

    fn parse(blob: &'d [u8], major: u16) -> Option<Self> {
        let mut header = Nibbles::new(blob);
        let mut size = header.unsigned()?;
        let mut others = 1; // variables
        if major >= 17 && size == 0 {
            // The fat header has further parts.
            size = header.unsigned()?;
            others = 5;
        }
        for _ in 0..others {
            header.unsigned()?;
        }
        let bytes = header.rest().get(..size as usize)?;
        let mut nibbles = Nibbles::new(bytes);
        let left = if size == 0 { 0 } else { nibbles.unsigned()? };
        let left = left.min(MAX_BOUNDS);
        if major < 16 || left == 0 {
            return Some(Self {
                form: Form::Nibbles(nibbles),
                left,
                native_offset: 0,
                offset: 0,
                bytes: bytes.len(),
            });
        }
        let (native, il) = (
            nibbles.unsigned()?.checked_add(1)?,
            nibbles.unsigned()?.checked_add(1)?,
        );
        let source = if major >= 17 { 3 } else { 2 };
        if native > 32 || il > 32 {
            return None;
        }
        let bits = Bits::new(nibbles.rest());
        Some(Self {
            form: Form::Bits {
                bits,
                source,
                native,
                il,
            },
            left,
            native_offset: 0,
            offset: 0,
            bytes: bytes.len(),
        })
    }
}

/// A position in a list of bounds, with the state before it.
#[derive(Debug, Clone)]
pub(super) struct BoundsPosition<'d> {
    bounds: Bounds<'d>,
    governing: Option<(u32, IlMapping)>,
    /// The last IL offset before that of the governing bound.
    before: Option<u32>,
}

impl ListPosition for BoundsPosition<'_> {
    fn advance(&mut self) -> Option<()> {
        let bound = self.bounds.next()?;
        self.take(bound);
        Some(())
    }
}

impl<'d> BoundsPosition<'d> {
    pub fn new(bounds: Bounds<'d>) -> Self {
        Self {
            bounds,
            governing: None,
            before: None,
        }
    }

    /// Returns whether all bounds before the position are at or before `native_offset`.
    pub fn is_before(&self, native_offset: u32) -> bool {
        self.bounds.native_offset <= native_offset
    }

    fn take(&mut self, bound: Bound) {
        match &mut self.governing {
            _ if bound.call_instruction => {}
            // Of several bounds at one offset the lowest is used.
            Some((at, mapping)) if *at == bound.native_offset => {
                *mapping = lower(*mapping, bound.il);
            }
            last => {
                if let Some((_, IlMapping::Offset(il))) = last {
                    self.before = Some(*il);
                }
                *last = Some((bound.native_offset, bound.il));
            }
        }
    }

    /// Returns the IL of the code at `native_offset`.
    pub fn lookup(mut self, native_offset: u32) -> Option<IlPosition> {
        let following = loop {
            match self.bounds.next() {
                Some(bound) if bound.native_offset <= native_offset => self.take(bound),
                following => break following,
            }
        };
        let (at, mapping) = self.governing?;
        let il_offset = match mapping {
            IlMapping::Offset(il) => Some(il),
            IlMapping::Prolog if at == 0 => Some(0),
            IlMapping::Prolog => {
                let following = following.into_iter().chain(self.bounds).take(FUNCLET);
                let mut code = following.filter_map(|bound| match bound.il {
                    IlMapping::Offset(il) if !bound.call_instruction => Some(il),
                    _ => None,
                });
                code.next().or(self.before)
            }
            IlMapping::NoMapping | IlMapping::Epilog => self.before,
        };
        Some(IlPosition { mapping, il_offset })
    }
}

fn lower(a: IlMapping, b: IlMapping) -> IlMapping {
    // An IL offset takes precedence over a prolog or epilog at the same native offset.
    match (a, b) {
        (IlMapping::Offset(a), IlMapping::Offset(b)) => IlMapping::Offset(a.min(b)),
        (IlMapping::Offset(_), _) => a,
        (_, IlMapping::Offset(_)) => b,
        _ => a.min(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoints::Checkpoints;

    /// Numbers as nibbles, and padding to a whole byte.
    fn nibbles(numbers: &[u32]) -> Vec<u8> {
        let mut out = Vec::new();
        for &number in numbers {
            let digits = (0..11)
                .rev()
                .map(|k| number.wrapping_shr(k * 3) & if k == 10 { 3 } else { 7 });
            let digits: Vec<_> = digits.skip_while(|&digit| digit == 0).collect();
            let last = digits.len().saturating_sub(1);
            out.extend(
                digits
                    .iter()
                    .enumerate()
                    .map(|(at, &digit)| (digit + u32::from(at < last) * 8) as u8),
            );
            if digits.is_empty() {
                out.push(0);
            }
        }
        out.chunks(2)
            .map(|pair| pair[0] | pair.get(1).unwrap_or(&0) << 4)
            .collect()
    }

    /// (native delta, IL + 3, source) as the older form, with its header.
    fn older(bounds: &[(u32, u32, u32)]) -> Vec<u8> {
        let mut numbers = vec![bounds.len() as u32];
        bounds
            .iter()
            .for_each(|bound| numbers.extend([bound.0, bound.1, bound.2]));
        let body = nibbles(&numbers);
        [nibbles(&[body.len() as u32, 0]), body].concat()
    }

    /// The newer form: 6 bits of delta, 7 of IL.
    fn newer(bounds: &[(u32, u32, u32)], source_bits: u32, header: &[u32]) -> Vec<u8> {
        let (mut bits, mut length) = (0u128, 0);
        for &(delta, il, source) in bounds {
            for (value, width) in [(source, source_bits), (delta, 6), (il, 7)] {
                bits |= u128::from(value) << length;
                length += width;
            }
        }
        let mut body = nibbles(&[bounds.len() as u32, 5, 6]);
        body.extend(&bits.to_le_bytes()[..length.div_ceil(8) as usize]);
        let header: Vec<_> = header
            .iter()
            .map(|&n| if n == u32::MAX { body.len() as u32 } else { n })
            .collect();
        [nibbles(&header), body].concat()
    }

    fn all(blob: &[u8], major: u16) -> Vec<(u32, IlMapping, bool)> {
        let bounds = Bounds::parse(blob, major).unwrap();
        bounds
            .map(|bound| (bound.native_offset, bound.il, bound.call_instruction))
            .collect()
    }

    #[test]
    fn every_form_gives_the_same_bounds() {
        let wanted = [
            (0, IlMapping::Prolog, false),
            (9, IlMapping::Offset(0), false),
            (9, IlMapping::NoMapping, false),
            (49, IlMapping::Offset(70), true),
            (60, IlMapping::Epilog, false),
        ];
        let stored = |call| [(0, 1, 0), (9, 3, 2), (0, 2, 0), (40, 73, call), (11, 0, 2)];
        assert_eq!(all(&older(&stored(0x10)), 9), wanted);
        assert_eq!(all(&newer(&stored(1), 2, &[u32::MAX, 0]), 16), wanted);
        assert_eq!(all(&newer(&stored(1), 3, &[u32::MAX, 0]), 17), wanted);
        assert_eq!(
            all(&newer(&stored(1), 3, &[0, u32::MAX, 0, 0, 0, 0, 0]), 17),
            wanted
        );
        // The body must be there in full.
        let whole = newer(&stored(1), 2, &[u32::MAX, 0]);
        assert!(Bounds::parse(&whole[..whole.len() - 1], 16).is_none());
        // No number has more than 32 bits.
        for (native, il, fits) in [(32, 32, true), (33, 32, false), (32, 33, false)] {
            let body = nibbles(&[1, native - 1, il - 1]);
            let blob = [nibbles(&[body.len() as u32, 0]), body].concat();
            assert_eq!(Bounds::parse(&blob, 16).is_some(), fits, "{native} {il}");
        }
        // A count beyond the bits ends with the bits.
        let mut long = newer(&stored(1), 2, &[u32::MAX, 0]);
        long[1] |= 6;
        assert!(all(&long, 16).len() <= 7);
    }

    fn lookup(bounds: &[(u32, u32, u32)], native_offset: u32) -> Option<(IlMapping, Option<u32>)> {
        let blob = older(bounds);
        let answer = BoundsPosition::new(Bounds::parse(&blob, 9).unwrap()).lookup(native_offset)?;
        Some((answer.mapping, answer.il_offset))
    }

    #[test]
    fn the_last_bound_at_or_before_an_offset_is_used() {
        let bounds = [
            (0, 1, 0),
            (4, 3, 0),
            (6, 13, 0),
            (10, 2, 0),
            (5, 23, 0),
            (5, 0, 0),
        ];
        let offset = |il| IlMapping::Offset(il);
        for (native, wanted) in [
            (0, (IlMapping::Prolog, Some(0))),
            (3, (IlMapping::Prolog, Some(0))),
            (4, (offset(0), Some(0))),
            (9, (offset(0), Some(0))),
            (10, (offset(10), Some(10))),
            // No mapping: the nearest preceding code has 10.
            (24, (IlMapping::NoMapping, Some(10))),
            (25, (offset(20), Some(20))),
            (30, (IlMapping::Epilog, Some(20))),
            (u32::MAX, (IlMapping::Epilog, Some(20))),
        ] {
            assert_eq!(lookup(&bounds, native), Some(wanted), "{native}");
        }
        assert_eq!(lookup(&[], 0), None);
        assert_eq!(lookup(&[(5, 3, 0)], 4), None);
    }

    #[test]
    fn long_lists_answer_as_short_ones_do() {
        // Several per offset, with funclets and code without IL among them.
        let bounds: Vec<_> = (0..3_000)
            .map(|at| {
                (
                    at % 3,
                    [0, 1, 2, 10, 9, 1][at as usize % 6] + at / 6,
                    at & 0x10,
                )
            })
            .collect();
        let blob = older(&bounds);
        let start = || BoundsPosition::new(Bounds::parse(&blob, 9).unwrap());
        let checkpoints = Checkpoints::new(blob.len());
        for offset in 0..3_100 {
            let is_before = |position: &BoundsPosition<'_>| position.is_before(offset);
            let position = checkpoints
                .nearest(0, blob.len(), start(), is_before)
                .unwrap();
            assert_eq!(position.lookup(offset), start().lookup(offset), "{offset}");
        }
        // Four lists that are one, but no fifth.
        let all = (0..5).map(|list| checkpoints.nearest(list, blob.len(), start(), |_| false));
        let read: Vec<_> = all.map(|position| position.is_some()).collect();
        assert_eq!(read, [true, true, true, true, false]);
    }

    #[test]
    fn bounds_at_one_offset() {
        // The lowest counts; "no mapping" following another does not; a call instruction never
        // does.
        assert_eq!(
            lookup(&[(0, 13, 0), (0, 8, 0)], 0),
            Some((IlMapping::Offset(5), Some(5)))
        );
        assert_eq!(
            lookup(&[(0, 8, 0), (0, 2, 0)], 0),
            Some((IlMapping::Offset(5), Some(5)))
        );
        assert_eq!(
            lookup(&[(0, 13, 0), (0, 3, 0x10)], 0),
            Some((IlMapping::Offset(10), Some(10)))
        );
        // The end of a branch that returns.
        let branch = [(0, 1, 0), (4, 32, 0), (0, 0, 0), (9, 56, 0), (0, 0, 0)];
        assert_eq!(lookup(&branch, 4), Some((IlMapping::Offset(29), Some(29))));
        // An IL offset takes precedence over a prolog; that of the method comes from its first IL.
        assert_eq!(
            lookup(&[(0, 1, 0), (0, 8, 0)], 0),
            Some((IlMapping::Offset(5), Some(5)))
        );
        assert_eq!(
            lookup(&[(0, 1, 0), (4, 8, 0)], 0),
            Some((IlMapping::Prolog, Some(0)))
        );
        // A funclet's prolog: the code following it is the handler's.
        let funclet = [(0, 1, 0), (4, 3, 0), (6, 0, 0), (6, 1, 0), (4, 43, 0)];
        assert_eq!(lookup(&funclet, 17), Some((IlMapping::Prolog, Some(40))));
    }
}
