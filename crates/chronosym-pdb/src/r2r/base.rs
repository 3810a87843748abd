//! The load address of an image, from the start addresses of some of its methods.

use super::image::{R2rImage, R2rMethod};
use crate::metadata::{Table, Token};
use crate::pe::Machine;

/// The start of a precompiled method in a trace.
///
/// Closed: callers build it as a literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MethodStart {
    /// The address of its first byte.
    pub address: u64,
    /// Its size in bytes, if the event states it.
    pub size: Option<u32>,
    /// Its MethodDef token, if the event states it. With a token, one start is sufficient.
    pub token: Option<Token>,
}

/// The result of matching method starts with an image.
///
/// Closed: callers handle every result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaseMatch {
    /// All starts are entry points of the image loaded at this address.
    Base(u64),
    /// Several load addresses fit: there are too few starts.
    Ambiguous,
    /// No load address fits: the image is of another build.
    Mismatch,
    /// No starts are known.
    NoStarts,
}

/// Images are mapped at page boundaries.
const PAGE: u64 = 4096;

/// Returns the only base at which `first` is one of the ascending `entry_points` and for which
/// `fits` holds.
pub(super) fn only_base(
    first: Option<u64>,
    entry_points: impl Iterator<Item = u32>,
    fits: impl Fn(u64) -> bool,
) -> BaseMatch {
    let Some(first) = first else {
        return BaseMatch::NoStarts;
    };
    let mut base_match = BaseMatch::Mismatch;
    for start in entry_points {
        let Some(base) = first.checked_sub(start.into()) else {
            break;
        };
        if base % PAGE != 0 || !fits(base) {
            continue;
        }
        if base_match != BaseMatch::Mismatch {
            return BaseMatch::Ambiguous;
        }
        base_match = BaseMatch::Base(base);
    }
    base_match
}

impl R2rImage<'_> {
    /// Finds the load address at which every start is an entry point with the stated size and
    /// token. Neither the PDB id nor the perf map signature distinguishes builds; this does.
    pub fn base_of(&self, starts: &[MethodStart]) -> BaseMatch {
        let thumb = u64::from(self.machine() == Machine::Arm);
        let first = starts.first().map(|start| start.address & !thumb);
        only_base(first, self.entry_points(), |base| {
            starts
                .iter()
                .all(|start| self.starts_at(base, start, thumb))
        })
    }

    fn starts_at(&self, base: u64, start: &MethodStart, thumb: u64) -> bool {
        let rva = (start.address & !thumb)
            .checked_sub(base)
            .and_then(|rva| u32::try_from(rva).ok());
        let Some(method) = rva.and_then(|rva| self.method_starting_at(rva)) else {
            return rva.is_some_and(|rva| self.starts_cold(rva, start));
        };
        start.size.is_none_or(|size| size == method.hot_size)
            && start.token.is_none_or(|token| self.can_be(&method, token))
    }

    /// Returns whether the method can have this token; one of another module can have any.
    fn can_be(&self, method: &R2rMethod, token: Token) -> bool {
        let definition = self.definition(method);
        definition.is_none_or(|of| of.token.table() != Table::METHOD_DEF || of.token == token)
    }

    /// The runtime writes an event of its own for a cold part.
    fn starts_cold(&self, rva: u32, start: &MethodStart) -> bool {
        let cold = self.method_of_cold(rva).and_then(|method| method.cold);
        cold.is_some_and(|cold| cold.rva == rva && start.size.is_none_or(|size| size == cold.size))
    }
}
