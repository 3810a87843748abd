//! The trace's header and the system's configuration.

use crate::WStr;
use crate::part::payload;

payload! {
    /// The paths of Windows.
    SystemPaths<'a> {
        /// The system directory.
        system_directory: WStr<'a> = "SystemDirectory",
        /// The Windows directory.
        windows_directory: WStr<'a> = "SystemWindowsDirectory",
    }

    /// The drive or folder of an NT device path.
    VolumeMapping<'a> {
        /// The NT path, such as `\Device\HarddiskVolume2`.
        nt_path: WStr<'a> = "NtPath",
        /// The DOS path.
        dos_path: WStr<'a> = "DosPath",
    }
}
