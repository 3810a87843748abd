//! Classic events of the Windows kernel, and those that merging adds to a trace.
//!
//! Classic events are identified by class GUID and opcode. Process and thread are in their
//! payloads; the record's header has the thread that logged them, or none.

pub mod classes;
mod image;
mod perf;
mod process;
mod system;

pub use {image::*, perf::*, process::*, system::*};

use crate::part::events;

events! {
    /// An event of the Windows kernel, or one that merging adds to a trace.
    KernelEvent {
        Process(Process<'a>),
        Thread(Thread<'a>),
        ThreadName(ThreadName<'a>),
        Image(Image<'a>),
        HypercallPage(HypercallPage),
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
        ReadyThread(ReadyThread),
        SystemPaths(SystemPaths<'a>),
        VolumeMapping(VolumeMapping<'a>),
    }
}
