//! Call chains and what their marks say.

use crate::bytes::Words;
use crate::raw::CpuMode;

/// Values from here up are marks, or nonsense: no address.
const MARKS: u64 = (-4095i64) as u64;
const USER_DEFERRED: u64 = (-640i64) as u64;

fn mode(mark: u64) -> Option<CpuMode> {
    Some(match mark as i64 {
        -32 => CpuMode::Hypervisor,
        -128 => CpuMode::Kernel,
        -512 => CpuMode::User,
        -2176 | -2048 => CpuMode::GuestKernel,
        -2560 => CpuMode::GuestUser,
        _ => return None,
    })
}

/// The call chain of a sample, as recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Callchain<'a> {
    pub(crate) words: Words<'a>,
    /// What addresses before the first mark are.
    pub(crate) mode: CpuMode,
}

/// The frames of a chain that belong to the kernel, to user space or another mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChainPart<'a> {
    /// What the processor ran in.
    pub mode: CpuMode,
    /// Innermost first. The first one is where the processor stood; the others are return addresses.
    pub addresses: Words<'a>,
    /// The frames follow later, in the [`DeferredCallchain`](crate::Event::DeferredCallchain) with this cookie of the
    /// same thread; there are no addresses then.
    pub deferred: Option<u64>,
}

impl<'a> Callchain<'a> {
    /// All values, marks among them.
    pub fn words(&self) -> Words<'a> {
        self.words
    }

    /// The parts of the chain, innermost first; parts without a frame are left out.
    ///
    /// A walk over broken frame pointers may end in a value that is neither mark nor address. It ends the part, and what
    /// follows it up to the next mark is left out.
    pub fn parts(&self) -> ChainParts<'a> {
        ChainParts {
            words: self.words,
            mode: Some(self.mode),
        }
    }
}

/// Goes over the parts of a chain.
#[derive(Clone, Debug)]
pub struct ChainParts<'a> {
    words: Words<'a>,
    /// `None` behind nonsense.
    mode: Option<CpuMode>,
}

impl<'a> Iterator for ChainParts<'a> {
    type Item = ChainPart<'a>;

    fn next(&mut self) -> Option<ChainPart<'a>> {
        while let Some(first) = self.words.get(0) {
            if first == USER_DEFERRED && self.words.len() > 1 {
                let deferred = self.words.get(1);
                let (_, rest) = self.words.split_at(2);
                let (addresses, _) = rest.split_at(0);
                self.words = rest;
                return Some(ChainPart {
                    mode: CpuMode::User,
                    addresses,
                    deferred,
                });
            }
            if first >= MARKS {
                self.mode = mode(first);
                (_, self.words) = self.words.split_at(1);
                continue;
            }
            let count = self.words.iter().take_while(|&word| word < MARKS).count();
            let (addresses, rest) = self.words.split_at(count);
            self.words = rest;
            if let Some(mode) = self.mode {
                return Some(ChainPart {
                    mode,
                    addresses,
                    deferred: None,
                });
            }
        }
        None
    }
}
