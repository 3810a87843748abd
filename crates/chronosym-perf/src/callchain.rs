//! Call chains and their context markers.

use crate::bytes::Words;
use crate::raw::CpuMode;

/// Values from here up are context markers (`PERF_CONTEXT_MAX`) or invalid, not addresses.
const CONTEXT_MAX: u64 = (-4095i64) as u64;
const USER_DEFERRED: u64 = (-640i64) as u64;

fn mode(marker: u64) -> Option<CpuMode> {
    Some(match marker as i64 {
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
    /// Mode of addresses before the first marker.
    pub(crate) mode: CpuMode,
}

/// The frames of a chain that belong to the kernel, to user space or another mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChainPart<'a> {
    /// The processor's mode.
    pub mode: CpuMode,
    /// Innermost first. The first one is the instruction pointer; the others are return addresses.
    pub addresses: Words<'a>,
    /// The frames follow in a later [`DeferredCallchain`](crate::Event::DeferredCallchain) with
    /// this cookie, of the same thread; there are no addresses then.
    pub deferred: Option<u64>,
}

impl<'a> Callchain<'a> {
    /// Returns all values, including markers.
    pub fn words(&self) -> Words<'a> {
        self.words
    }

    /// Returns the parts of the chain, innermost first; empty parts are skipped.
    ///
    /// A walk over broken frame pointers may end in a value that is neither a marker nor an
    /// address. It ends the part, and what follows it up to the next marker is skipped.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_perf::{CpuMode, Event, Options, Reader};
    /// # use chronosym_support::perf::{PerfAttr, PerfWriter};
    /// # let mut writer = PerfWriter::new(PerfAttr::default());
    /// # let (kernel, user) = (-128i64 as u64, -512i64 as u64); // PERF_CONTEXT_KERNEL, PERF_CONTEXT_USER
    /// # writer.sample(2, 10, 10, &[kernel, 0xffff_8000_0000_1000, user, 0x1010, 0x2020]);
    /// # let recording = writer.pipe();
    ///
    /// let mut reader = Reader::new(&recording[..], Options::default())?;
    /// let Some(record) = reader.next_record()? else { panic!("no record") };
    /// let Event::Sample(sample) = record.event else { panic!("no sample") };
    /// let parts: Vec<_> = sample.callchain.unwrap().parts().collect();
    /// assert_eq!((parts[0].mode, parts[0].addresses.len()), (CpuMode::Kernel, 1));
    /// assert_eq!((parts[1].mode, parts[1].addresses.get(0)), (CpuMode::User, Some(0x1010)));
    /// # Ok::<(), chronosym_perf::Error>(())
    /// ```
    pub fn parts(&self) -> ChainParts<'a> {
        ChainParts {
            words: self.words,
            mode: Some(self.mode),
        }
    }
}

/// Iterator over the parts of a chain.
#[derive(Clone, Debug)]
pub struct ChainParts<'a> {
    words: Words<'a>,
    /// `None` after an invalid value.
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
            if first >= CONTEXT_MAX {
                self.mode = mode(first);
                (_, self.words) = self.words.split_at(1);
                continue;
            }
            let count = self.words.count_below(CONTEXT_MAX);
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
