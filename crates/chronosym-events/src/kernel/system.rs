//! The trace's header and the system's configuration.

use crate::WStr;
use crate::part::payload;

payload! {
    /// Where Windows is installed.
    SystemPaths<'a> {
        /// The system directory.
        system_directory: WStr<'a> = "SystemDirectory",
        /// The Windows directory.
        windows_directory: WStr<'a> = "SystemWindowsDirectory",
    }

    /// Which drive or folder an NT device path means.
    VolumeMapping<'a> {
        /// The NT path, such as `\Device\HarddiskVolume2`.
        nt_path: WStr<'a> = "NtPath",
        /// The path that programs know.
        dos_path: WStr<'a> = "DosPath",
    }
}
