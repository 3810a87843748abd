//! Images and the identities of their symbol files.

use crate::cursor::Form;
use crate::part::{payload, shape_part};
use crate::{AStr, Action, Guid, WStr};

payload! {
    /// An image file: Image Load, Unload, DCStart, DCEnd.
    Image<'a> {
        /// The action on the image.
        action: Action = "",
        /// Its base address.
        base: u64 = "ImageBase" as ptr,
        /// Its size in memory, in bytes.
        size: u64 = "ImageSize" as ptr_since_1,
        /// The process that it is mapped into (not the one that logs); 0 and 4 are the kernel's.
        process_id: u32 = "ProcessId" if since 1,
        /// The checksum in its header.
        checksum: u32 = "ImageChecksum" as hex if since 2,
        /// The time stamp in its header; mostly 0 in rundown events: [`ImageId`] has it.
        time_date_stamp: u32 = "TimeDateStamp" as hex if since 2,
        /// The signature level (V3).
        signature_level: u8 = "SignatureLevel" if since 2,
        /// The signature type (V3).
        signature_type: u8 = "SignatureType" if since 2,
        /// Not used.
        reserved0: u16 = "Reserved0" if since 2,
        /// The preferred base in its header.
        default_base: u64 = "DefaultBase" as ptr if since 2,
        /// Not used.
        reserved1: &'a [u8] = "Reserved1" as list(16) if since 2,
        /// Its path, as an NT device path.
        file_name: WStr<'a> = "FileName",
    }

    /// The page through which a guest of Hyper-V calls the hypervisor.
    HypercallPage {
        /// Its address.
        base: u64 = "ImageBase" as ptr,
    }

    /// Size and time stamp of an image file, just before or after the image event with the same
    /// base.
    ImageId<'a> {
        /// The image's base address.
        base: u64 = "ImageBase" as ptr,
        /// The image's size in memory, in bytes.
        size: u64 = "ImageSize" as ptr,
        /// Mostly 0: the process is that of the image event.
        process_id: u32 = "ProcessId",
        /// The time stamp in the image's header.
        time_date_stamp: u32 = "TimeDateStamp" as hex,
        /// The original name of the file.
        original_file_name: WStr<'a> = "OriginalFileName",
    }
}

/// The file that a record's PDB belongs to.
///
/// Closed: an image has IL or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DbgId {
    /// The image.
    Image,
    /// The IL that a native image was compiled from.
    Il,
}

shape_part! {
    DbgId: shape => match shape.form {
        Form::Il => Self::Il,
        _ => Self::Image,
    };
}

payload! {
    /// The identity of an image's PDB: DbgID_RSDS, DbgID_ILRSDS.
    DbgIdRsds<'a> {
        /// The file that the PDB belongs to.
        of: DbgId = "",
        /// The image's base address.
        base: u64 = "ImageBase" as ptr,
        /// The process that the image is mapped into.
        process_id: u32 = "ProcessId",
        /// The PDB's signature.
        guid: Guid = "GuidSig",
        /// The PDB's age.
        age: u32 = "Age",
        /// The path of the PDB when the image was built (UTF-8).
        pdb_path: AStr<'a> = "PdbFileName",
    }
}
