//! The classes of classic events: GUIDs by the names of kernel groups.

use crate::Guid;

macro_rules! classes {
    ($($(#[$meta:meta])* $name:ident $text:literal $guid:literal)*) => {
        $($(#[$meta])* pub const $name: Guid = Guid::from_u128($guid);)*
        pub(crate) const ALL: &[(Guid, &str)] = &[$(($name, $text)),*];
    };
}

classes! {
    /// The trace's header and other events about tracing (group 0).
    EVENT_TRACE "EventTrace" 0x68fdd900_4a3e_11d1_84f4_0000f80464e3
    /// Disks (group 1).
    DISK_IO "DiskIO" 0x3d6fa8d4_fe05_11d0_9dda_00c04fd7ba7c
    /// Page faults and virtual memory (group 2).
    PAGE_FAULT "Memory" 0x3d6fa8d3_fe05_11d0_9dda_00c04fd7ba7c
    /// Processes (group 3).
    PROCESS "Process" 0x3d6fa8d0_fe05_11d0_9dda_00c04fd7ba7c
    /// Files (group 4).
    FILE_IO "FileIO" 0x90cbdc39_4a3e_11d1_84f4_0000f80464e3
    /// Threads (group 5).
    THREAD "Thread" 0x3d6fa8d1_fe05_11d0_9dda_00c04fd7ba7c
    /// TCP (group 6).
    TCP_IP "TcpIp" 0x9a280ac0_c8e0_11d1_84e2_00c04fb998a2
    /// Jobs (group 7).
    JOB "Job" 0x3282fc76_feed_498e_8aa7_e70f459d430e
    /// UDP (group 8).
    UDP_IP "UdpIp" 0xbf3a50c5_a9c9_4988_a005_2df0b7c80f80
    /// The registry (group 9).
    REGISTRY "Registry" 0xae53722e_c863_11d2_8659_00c04fa321a1
    /// Debug output (group 0xa).
    DBG_PRINT "DbgPrint" 0x13976d09_a327_438c_950b_7f03192815c7
    /// The system's configuration, logged by the kernel (group 0xb).
    SYSTEM_CONFIG "SystemConfig" 0x01853a65_418f_4f36_aefc_dc0f1d2fd235
    /// Pool memory (group 0xe).
    POOL "Pool" 0x0268a8b6_74fd_4302_9dd0_6e8f1795c0cf
    /// Samples, interrupts, system calls (group 0xf).
    PERF_INFO "PerfInfo" 0xce1dbfb4_137e_4da6_87b0_3f59aa102cbc
    /// Heaps (group 0x10).
    HEAP "Heap" 0x222962ab_6180_4b88_a825_346b75f2a24a
    /// Kernel objects (group 0x11).
    OBJECT "Object" 0x89497f50_effe_4440_8cf2_ce6b1cdcaca7
    /// Power (group 0x12).
    POWER "Power" 0xe43445e0_0903_48c3_b878_ff0fccebdd04
    /// Images (group 0x14).
    IMAGE "Image" 0x2cb15d1d_5fc1_11d2_abe1_00a0c911f518
    /// Call stacks (group 0x18).
    STACK_WALK "StackWalk" 0xdef2fe46_7bd6_4b80_bd94_f57fe20d0ce3
    /// Local procedure calls (group 0x1a).
    ALPC "Alpc" 0x45d8cccd_539f_4b72_a8b7_5c683142609a
    /// Split disk requests (group 0x1b).
    SPLIT_IO "SplitIo" 0xd837ca92_12b9_44a5_ad6a_3a65b3578ad8
    /// Thread pools (group 0x1c).
    THREAD_POOL "ThreadPool" 0xc861d0e2_a2c1_4d36_9f9c_970bab943a12
    /// Image identities, added by merging.
    IMAGE_ID "ImageID" 0xb3e675d7_2554_4f18_830b_2762732560de
    /// System properties, added by merging.
    SYS_CONFIG "SysConfig" 0x9b79ee91_b5fd_41c0_a243_4248e266e9d0
    /// Descriptions of manifest events, added by merging.
    EVENT_INFO "MetaData" 0xbbccf6c1_6cd1_48c4_80ff_839482e37671
    /// Lost events.
    LOST_EVENT "RT_LostEvent" 0x6a399ae0_4bc6_4de9_870b_3657f8947e7e
}

/// Returns a class's name.
pub(crate) fn name(class: Guid) -> Option<&'static str> {
    let class = ALL.iter().find(|(guid, _)| *guid == class);
    class.map(|(_, name)| *name)
}

/// Returns the name of the provider that logs a class.
pub(crate) fn provider_name(class: Guid) -> Option<&'static str> {
    match class {
        IMAGE_ID | EVENT_INFO => Some("KernelTraceControl"),
        _ => name(class).map(|_| "Windows Kernel"),
    }
}
