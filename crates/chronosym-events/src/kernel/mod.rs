//! Classic events of the Windows kernel, and those that merging a trace adds.
//!
//! Classic events are known by class GUID and opcode. Their payloads name the process and the thread that they speak of; the
//! record's header names who logged them, or nobody.

pub mod classes;
mod image;
mod perf;
mod process;
mod system;

pub use image::{DbgId, DbgIdRsds, Image, ImageId};
pub use perf::{
    CSwitch, IntervalEvent, PmcInterrupt, SampleInterval, SampledProfile, StackKeyDefinition,
    StackKeyReference, StackMode, StackWalk, UserStack,
};
pub use process::{Process, ProcessAction, Sid, Thread, ThreadDetails, ThreadName};
pub use system::{SystemPaths, VolumeMapping};

use crate::part::events;

events! {
    /// An event of the Windows kernel, or one that merging a trace adds.
    KernelEvent {
        Process(Process<'a>),
        Thread(Thread<'a>),
        ThreadName(ThreadName<'a>),
        Image(Image<'a>),
        ImageId(ImageId<'a>),
        DbgIdRsds(DbgIdRsds<'a>),
        SampledProfile(SampledProfile),
        PmcInterrupt(PmcInterrupt),
        SampleInterval(SampleInterval<'a>),
        StackWalk(StackWalk<'a>),
        StackKeyReference(StackKeyReference),
        StackKeyDefinition(StackKeyDefinition<'a>),
        UserStack(UserStack<'a>),
        CSwitch(CSwitch),
        SystemPaths(SystemPaths<'a>),
        VolumeMapping(VolumeMapping<'a>),
    }
}
