//! Method bodies (ECMA-335 II.25.4) and the call instructions in them (III).

use super::tables::Token;
use crate::bytes;

/// The IL code of one method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct IlBody<'d> {
    /// The instructions.
    pub code: &'d [u8],
}

impl<'d> IlBody<'d> {
    /// Parses the method header at the start of `data`; `None` if the body is incomplete.
    pub fn parse(data: &'d [u8]) -> Option<Self> {
        let first = *data.first()?;
        let (start, size) = match first & 3 {
            2 => (1, usize::from(first >> 2)),
            3 => {
                let words = usize::from(bytes::u16(data, 0)? >> 12);
                (words * 4, bytes::u32(data, 4)? as usize)
            }
            _ => return None,
        };
        Some(Self {
            code: bytes::slice(data, start, size)?,
        })
    }

    /// Returns the callee's token of the call instruction at IL offset `offset`, which must be the
    /// start of an instruction or of its prefix. Walks the body from its start to find instruction
    /// boundaries.
    pub fn call_at(&self, offset: u32) -> Option<Token> {
        let target = offset as usize;
        let mut at = 0;
        while at < target {
            at = self.next(at)?;
        }
        if at != target {
            return None;
        }
        while let [0xfe, second, ..] = *self.code.get(at..)?
            && is_prefix(second)
        {
            at = self.next(at)?;
        }
        self.call_here(at)
    }

    /// IL offset and callee of every call, in order; ends at the first invalid instruction.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_pdb::{metadata::Token, pe::PeImage};
    ///
    /// let file = std::fs::read("../../testdata/clr10/workload/PluginA.dll")?;
    /// let image = PeImage::parse(&file)?;
    /// // `Run` calls `AlphaWork` and then a delegate.
    /// let body = image.il_body(&image.metadata()?, 2).unwrap();
    /// let calls: Vec<_> = body.calls().collect();
    /// assert_eq!(calls[0].1, Token(0x0600_0001));
    /// assert_eq!(body.call_at(calls[0].0), Some(Token(0x0600_0001)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn calls(&self) -> impl Iterator<Item = (u32, Token)> + '_ {
        let mut at = 0;
        std::iter::from_fn(move || {
            let here = at;
            at = self.next(here)?;
            Some(here)
        })
        .filter_map(|at| Some((u32::try_from(at).ok()?, self.call_here(at)?)))
    }

    /// Offset of the instruction after the one at `at`.
    fn next(&self, at: usize) -> Option<usize> {
        at.checked_add(instruction_length(self.code.get(at..)?)?)
    }

    /// Returns the token of a `jmp`, `call`, `calli` (a signature), `callvirt` or `newobj`.
    fn call_here(&self, at: usize) -> Option<Token> {
        match *self.code.get(at)? {
            0x27..=0x29 | 0x6f | 0x73 => Some(Token(bytes::u32(self.code, at.checked_add(1)?)?)),
            _ => None,
        }
    }
}

fn is_prefix(second: u8) -> bool {
    // unaligned., volatile., tail., constrained., no., readonly.
    matches!(second, 0x12 | 0x13 | 0x14 | 0x16 | 0x19 | 0x1e)
}

/// Length of the instruction at the start of `code` (III.1.9, VI.C.2); `None` if it is incomplete.
fn instruction_length(code: &[u8]) -> Option<usize> {
    let length = match *code.first()? {
        // ldarg.s to stloc.s, ldc.i4.s, short branches, leave.s
        0x0e..=0x13 | 0x1f | 0x2b..=0x37 | 0xde => 2,
        // ldc.i4, ldc.r4, jmp, call, calli, branches, tokens, leave
        0x20
        | 0x22
        | 0x27..=0x29
        | 0x38..=0x44
        | 0x6f..=0x75
        | 0x79
        | 0x7b..=0x81
        | 0x8c
        | 0x8d
        | 0x8f
        | 0xa3..=0xa5
        | 0xc2
        | 0xc6
        | 0xd0
        | 0xdd => 5,
        0x21 | 0x23 => 9,
        0x45 => {
            let targets = bytes::u32(code, 1)? as usize;
            targets.checked_mul(4)?.checked_add(5)?
        }
        0xfe => match *code.get(1)? {
            0x06 | 0x07 | 0x15 | 0x16 | 0x1c => 6,
            0x09..=0x0e => 4,
            0x12 | 0x19 => 3,
            _ => 2,
        },
        _ => 1,
    };
    (length <= code.len()).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(code: &[u8]) -> IlBody<'_> {
        IlBody { code }
    }

    #[test]
    fn headers_small_and_large() {
        assert_eq!(
            IlBody::parse(&[2 << 2 | 2, 0x00, 0x2a, 9]).unwrap().code,
            [0x00, 0x2a]
        );
        let fat = [0x13, 0x30, 8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0x2a];
        assert_eq!(IlBody::parse(&fat).unwrap().code, [0x2a]);
        assert!(IlBody::parse(&fat[..12]).is_none());
        assert!(IlBody::parse(&[2 << 2 | 2, 0x2a]).is_none());
        assert!(IlBody::parse(&[]).is_none());
        assert!(IlBody::parse(&[1, 0x2a]).is_none());
    }

    #[test]
    fn operands_are_not_instructions() {
        // Every form of operand holds the byte of `call`.
        let code = [
            &[0x0e, 0x28][..],                                 // ldarg.s
            &[0x20, 0x28, 0x28, 0x28, 0x28],                   // ldc.i4
            &[0x21, 0x28, 0x28, 0x28, 0x28, 0, 0, 0, 0x28],    // ldc.i8
            &[0x2b, 0x28],                                     // br.s
            &[0x45, 2, 0, 0, 0, 0x28, 0, 0, 0, 0x28, 0, 0, 0], // switch
            &[0xfe, 0x09, 0x28, 0x28],                         // ldarg
            &[0xfe, 0x06, 0x28, 0, 0, 6],                      // ldftn
            &[0xfe, 0x12, 0x28],                               // unaligned.
            &[0x28, 0x2a, 0, 0, 0x0a],                         // call
            &[0xfe, 0x16, 0x28, 0, 0, 0x1b],                   // constrained.
            &[0x6f, 0x07, 0, 0, 0x06],                         // callvirt
            &[0x2a],
        ]
        .concat();
        let body = body(&code);
        let (call, virtual_call) = (Token(0x0a00_002a), Token(0x0600_0007));
        let at = code.len() as u32 - 1;
        assert_eq!(
            body.calls().collect::<Vec<_>>(),
            [(at - 16, call), (at - 5, virtual_call)]
        );
        let answers: Vec<_> = (0..at + 9)
            .filter_map(|offset| Some((offset, body.call_at(offset)?)))
            .collect();
        // A call may be named by its prefix.
        assert_eq!(
            answers,
            [
                (at - 19, call),
                (at - 16, call),
                (at - 11, virtual_call),
                (at - 5, virtual_call)
            ]
        );
    }

    #[test]
    fn instructions_that_leave_the_body_end_it() {
        for code in [
            &[0x28, 1, 0][..],
            &[0x45, 0xff, 0xff, 0xff, 0xff],
            &[0xfe],
            &[0x45, 1],
        ] {
            assert_eq!(body(code).calls().count(), 0);
            assert_eq!((body(code).call_at(0), body(code).call_at(1)), (None, None));
        }
    }
}
