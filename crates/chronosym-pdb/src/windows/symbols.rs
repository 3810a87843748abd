//! CodeView symbol records (cvinfo.h, `SYM_ENUM_e`): framing, and the kinds that describe code.

use crate::{Error, Result, bytes};

pub(super) const S_END: u16 = 0x0006;
const S_THUNK32: u16 = 0x1102;
pub(super) const S_PUB32: u16 = 0x110E;
const S_LPROC32: u16 = 0x110F;
const S_GPROC32: u16 = 0x1110;
const S_GMANPROC: u16 = 0x112A;
const S_LMANPROC: u16 = 0x112B;
const S_TRAMPOLINE: u16 = 0x112C;
const S_SEPCODE: u16 = 0x1132;
const S_LPROC32_ID: u16 = 0x1146;
const S_GPROC32_ID: u16 = 0x1147;
pub(super) const S_INLINESITE: u16 = 0x114D;
pub(super) const S_INLINESITE_END: u16 = 0x114E;
pub(super) const S_PROC_ID_END: u16 = 0x114F;
const S_LPROC32_DPC: u16 = 0x1155;
const S_LPROC32_DPC_ID: u16 = 0x1156;
pub(super) const S_INLINESITE2: u16 = 0x115D;

/// The record that describes a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FunctionKind {
    /// A procedure record (S_GPROC32, S_LPROC32 and their variants).
    Procedure,
    /// A managed procedure (S_GMANPROC, S_LMANPROC): its section offset is not an address of code.
    Managed,
    /// Separated code (S_SEPCODE), with the name of its procedure.
    Separated,
    /// A thunk (S_THUNK32), such as an import thunk or adjustor, named after its target.
    Thunk,
    /// A trampoline of incremental linking (S_TRAMPOLINE), named after its target.
    Trampoline,
    /// A public symbol (S_PUB32): the name is decorated, the length extends to the next symbol.
    Public,
}

impl FunctionKind {
    /// Returns the function kind of a record kind.
    pub(super) const fn of_record(kind: u16) -> Option<Self> {
        Some(match kind {
            S_LPROC32 | S_GPROC32 | S_LPROC32_ID | S_GPROC32_ID | S_LPROC32_DPC
            | S_LPROC32_DPC_ID => Self::Procedure,
            S_GMANPROC | S_LMANPROC => Self::Managed,
            S_SEPCODE => Self::Separated,
            S_THUNK32 => Self::Thunk,
            S_TRAMPOLINE => Self::Trampoline,
            _ => return None,
        })
    }
}

/// A record: its offset in the stream, its kind, and the bytes after the kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'d> {
    pub(super) offset: u32,
    pub(super) kind: u16,
    pub(super) body: &'d [u8],
}

impl<'d> Record<'d> {
    /// Returns the record at `offset`; `None` if it exceeds the stream.
    pub(super) fn at(data: &'d [u8], offset: u32) -> Option<Self> {
        let at = offset as usize;
        let len = usize::from(bytes::u16(data, at)?);
        let kind = bytes::u16(data, at.checked_add(2)?)?;
        Some(Self {
            offset,
            kind,
            body: bytes::slice(data, at.checked_add(4)?, len.checked_sub(2)?)?,
        })
    }

    /// Offset of the next record.
    pub(super) fn next(&self) -> u32 {
        // The length of a record has 16 bits.
        let size = u32::try_from(self.body.len()).unwrap_or(u32::MAX);
        self.offset.saturating_add(4).saturating_add(size)
    }

    pub(super) fn u32(&self, at: usize) -> Option<u32> {
        bytes::u32(self.body, at)
    }

    pub(super) fn u16(&self, at: usize) -> Option<u16> {
        bytes::u16(self.body, at)
    }

    /// Returns the NUL-terminated string at `at`.
    pub(super) fn name(&self, at: usize) -> &'d [u8] {
        bytes::until_nul(self.body.get(at..).unwrap_or_default())
    }

    /// Returns whether the record is a procedure, which has a scope of its own.
    pub(super) fn is_procedure(&self) -> bool {
        let kind = FunctionKind::of_record(self.kind);
        matches!(kind, Some(FunctionKind::Procedure | FunctionKind::Managed))
    }

    /// Returns the stream offset of the record that ends the scope, for kinds that open one.
    pub(super) fn end(&self) -> Option<u32> {
        self.u32(4)
    }
}

/// The records of a symbol stream, in order.
#[derive(Debug)]
pub(super) struct Records<'d> {
    data: &'d [u8],
    at: u32,
}

impl<'d> Records<'d> {
    pub(super) fn from(data: &'d [u8], at: u32) -> Self {
        Self { data, at }
    }

    pub(super) fn skip_to(&mut self, at: u32) {
        self.at = at;
    }

    pub(super) fn next(&mut self) -> Result<Option<Record<'d>>> {
        if self.at as usize >= self.data.len() {
            return Ok(None);
        }
        let record = Record::at(self.data, self.at).ok_or(leaves(self.at))?;
        self.at = record.next();
        Ok(Some(record))
    }
}

/// Returns the error of a record that exceeds the stream.
pub(super) fn leaves(at: u32) -> Error {
    Error::damaged("symbol stream", u64::from(at), "a record leaves the stream")
}
