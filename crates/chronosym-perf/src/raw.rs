//! Undecoded records.

use chronosym_types::ByteOrder;

use crate::bytes::Cursor;
use crate::kind;

/// Bits of a record header's `misc`, whose meaning depends on the record.
pub(crate) mod misc {
    pub(crate) const CUT_MAPS: u16 = 1 << 12;
    pub(crate) const DATA_EXEC_OUT: u16 = 1 << 13;
    pub(crate) const BUILD_ID_PREEMPT: u16 = 1 << 14;
}

/// The mode that a processor was in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CpuMode {
    /// Not stated.
    #[default]
    Unknown,
    /// The kernel.
    Kernel,
    /// A program.
    User,
    /// The hypervisor.
    Hypervisor,
    /// The kernel of a guest: its addresses are another machine's.
    GuestKernel,
    /// A program of a guest: its addresses are another machine's.
    GuestUser,
}

impl CpuMode {
    pub(crate) fn of(flags: u16) -> Self {
        match flags & 7 {
            1 => Self::Kernel,
            2 => Self::User,
            3 => Self::Hypervisor,
            4 => Self::GuestKernel,
            5 => Self::GuestUser,
            _ => Self::Unknown,
        }
    }
}

/// An undecoded record.
#[derive(Clone, Copy)]
pub(crate) struct RawRecord<'a> {
    pub(crate) kind: u32,
    pub(crate) flags: u16,
    pub(crate) body: &'a [u8],
    pub(crate) order: ByteOrder,
}

impl<'a> RawRecord<'a> {
    pub(crate) const HEADER: usize = 8;

    /// Splits a whole record into header and body.
    pub(crate) fn new(bytes: &'a [u8], order: ByteOrder) -> Option<Self> {
        let mut at = Cursor::new(bytes, order);
        let (kind, flags, _) = (at.u32()?, at.u16()?, at.u16()?);
        Some(Self {
            kind,
            flags,
            body: at.rest(),
            order,
        })
    }

    /// Returns whether it is a plausible record, of a known or a later version.
    pub(crate) fn is_plausible(&self) -> bool {
        (1..128).contains(&self.kind) || kind::SIMPLEPERF.contains(&self.kind)
    }

    /// Returns whether its type is known.
    pub(crate) fn is_known(&self) -> bool {
        matches!(
            self.kind,
            1..=kind::LAST_OF_KERNEL | kind::USER_TYPE_START..=kind::LAST_OF_RECORDER
        )
    }

    /// Returns the size that the header at the front of `bytes` states.
    pub(crate) fn size(bytes: &[u8], order: ByteOrder) -> Option<usize> {
        Cursor::new(bytes.get(6..)?, order).u16().map(usize::from)
    }
}
