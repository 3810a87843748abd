//! Classic events of the Windows kernel, and those that merging a trace adds.
//!
//! Classic events are known by class GUID and opcode. Their payloads name the process and the thread that they speak of; the
//! record's header names who logged them, or nobody.

mod fields;
mod image;
mod perf;
mod process;
mod system;
mod table;

pub(crate) use fields::fields_only;
pub use image::{
    DbgId, DbgIdDeterministic, DbgIdNone, DbgIdPpdb, DbgIdRsds, FileVersion, Image, ImageId,
    KernelBase,
};
pub use perf::{
    CSwitch, IntervalEvent, PmcInterrupt, ReadyThread, SampleInterval, SampledProfile,
    StackKeyDefinition, StackKeyReference, StackMode, StackWalk, UserStack,
};
pub use process::{Process, ProcessAction, Sid, Thread, ThreadDetails, ThreadName};
pub use system::{BuildInfo, EventTraceHeader, SystemPaths, UnknownVolume, VolumeMapping};
pub use table::classes;
pub(crate) use table::{ROWS, USER_STACK, event_name, find, find_manifest, provider_name};

use crate::part::{Part, Style};
use crate::value::FieldList;

macro_rules! kernel_events {
    ($($(#[$meta:meta])* $variant:ident($ty:ty),)*) => {
        /// An event of the Windows kernel, or one that merging a trace adds.
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum KernelEvent<'a> {
            $($(#[$meta])* $variant($ty),)*
        }

        impl<'a> KernelEvent<'a> {
            pub(crate) fn list(&self, out: &mut FieldList<'a>) {
                match self {
                    $(Self::$variant(event) => Part::list(event, "", Style::Plain, out),)*
                }
            }
        }
    };
}

kernel_events! {
    /// A process.
    Process(Process<'a>),
    /// A thread.
    Thread(Thread<'a>),
    /// A thread's name.
    ThreadName(ThreadName<'a>),
    /// An image in a process or in the kernel.
    Image(Image<'a>),
    /// Where the kernel or the hypervisor was loaded.
    KernelBase(KernelBase),
    /// Size and time stamp of an image file.
    ImageId(ImageId<'a>),
    /// Which PDB belongs to an image, or to the IL of a native image.
    DbgIdRsds(DbgIdRsds<'a>),
    /// An image without a PDB record.
    DbgIdNone(DbgIdNone),
    /// The stamp of a portable PDB.
    DbgIdPpdb(DbgIdPpdb),
    /// An image of a deterministic build.
    DbgIdDeterministic(DbgIdDeterministic),
    /// The version resource of an image file.
    FileVersion(FileVersion<'a>),
    /// A CPU sample.
    SampledProfile(SampledProfile),
    /// A sample of a performance counter.
    PmcInterrupt(PmcInterrupt),
    /// How often CPU samples are taken.
    SampleInterval(SampleInterval<'a>),
    /// A call stack of an earlier event.
    StackWalk(StackWalk<'a>),
    /// A call stack of an earlier event, by a key that a later event defines.
    StackKeyReference(StackKeyReference),
    /// The call stack behind a key.
    StackKeyDefinition(StackKeyDefinition<'a>),
    /// The user part of a call stack, logged on leaving the kernel.
    UserStack(UserStack<'a>),
    /// A processor changes threads.
    CSwitch(CSwitch),
    /// A thread can run again.
    ReadyThread(ReadyThread),
    /// The header of the trace.
    EventTraceHeader(EventTraceHeader<'a>),
    /// Which Windows this is.
    BuildInfo(BuildInfo<'a>),
    /// Where Windows is installed.
    SystemPaths(SystemPaths<'a>),
    /// Which drive an NT path means.
    VolumeMapping(VolumeMapping<'a>),
    /// A volume without a drive.
    UnknownVolume(UnknownVolume<'a>),
}
