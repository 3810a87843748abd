//! Reads CPU profiles of Linux: `perf.data`, jitdump, and the text of `perf script`.
#![deny(missing_docs)]

mod attr;
mod bytes;
mod callchain;
mod compressed;
mod diagnostics;
mod error;
mod header;
mod info;
pub mod jitdump;
mod reader;
mod record;
mod round;
mod sample;
pub mod script;
mod stream;

pub use attr::EventAttr;
pub use bytes::{ByteOrder, Words};
pub use callchain::{Callchain, ChainPart, ChainParts};
pub use diagnostics::Diagnostics;
pub use error::{Error, Truncation};
pub use info::{BuildIdEntry, ClockData, Info, Recorder, TimeConversion};
pub use reader::{Options, Reader};
pub use record::{BuildId, Comm, CpuMode, Event, KernelSymbol, MappedFile, Mmap, Record, Task};
pub use sample::{Registers, Sample};
