//! Reads numbers of any width at any bit.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "places in a packet that is in memory: they are compared with its end; numbers have 1 to 64 bits"
)]

use chronosym_types::ByteOrder;

use crate::types::{Kind, Scalar};

/// The value is not within the packet's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfBounds;

/// A position in a packet. Alignment counts from the packet's start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bits<'a> {
    pub bytes: &'a [u8],
    /// In bits.
    pub at: u64,
    pub order: ByteOrder,
}

impl<'a> Bits<'a> {
    fn end(&self) -> u64 {
        self.bytes.len() as u64 * 8
    }

    pub fn align(&mut self, bits: u32) -> Result<(), OutOfBounds> {
        let at = self.at.checked_next_multiple_of(bits.max(1).into());
        self.at = at.filter(|&at| at <= self.end()).ok_or(OutOfBounds)?;
        Ok(())
    }

    /// Reads the bits of a number; those above its width are 0.
    pub fn scalar(&mut self, scalar: &Scalar) -> Result<u64, OutOfBounds> {
        self.align(scalar.align)?;
        let end = self.at + u64::from(scalar.bits);
        if end > self.end() {
            return Err(OutOfBounds);
        }
        let bytes = &self.bytes[(self.at / 8) as usize..end.div_ceil(8) as usize];
        let before = (self.at % 8) as u32;
        let joined = |all: u128, &byte: &u8| all << 8 | u128::from(byte);
        let value = match scalar.order.unwrap_or(self.order) {
            ByteOrder::Little => bytes.iter().rev().fold(0, joined) >> before,
            ByteOrder::Big => {
                let after = bytes.len() as u32 * 8 - before - scalar.bits;
                bytes.iter().fold(0, joined) >> after
            }
        };
        self.at = end;
        Ok(value as u64 & (u64::MAX >> (64 - scalar.bits)))
    }

    /// Skips `count` consecutive numbers.
    pub fn scalars(&mut self, scalar: &Scalar, count: u64) -> Result<(), OutOfBounds> {
        self.align(scalar.align)?;
        let Some(before) = count.checked_sub(1) else {
            return Ok(());
        };
        let apart = u64::from(scalar.bits.next_multiple_of(scalar.align));
        let size = before.checked_mul(apart);
        let end = size.and_then(|size| size.checked_add(self.at + u64::from(scalar.bits)));
        self.at = end.filter(|&end| end <= self.end()).ok_or(OutOfBounds)?;
        Ok(())
    }

    /// Reads text up to a NUL, which is not part of it.
    pub fn text(&mut self) -> Result<&'a [u8], OutOfBounds> {
        self.align(8)?;
        let rest = &self.bytes[(self.at / 8) as usize..];
        let length = rest.iter().position(|&byte| byte == 0).ok_or(OutOfBounds)?;
        self.at += (length as u64 + 1) * 8;
        Ok(&rest[..length])
    }
}

/// Returns the value of a number, by its bits.
pub(crate) fn signed(scalar: &Scalar, value: u64) -> i128 {
    match scalar.kind {
        Kind::Signed => i128::from((value << (64 - scalar.bits)) as i64 >> (64 - scalar.bits)),
        Kind::Unsigned | Kind::Float => value.into(),
    }
}
