//! Images and what identifies their symbol files.

use crate::cursor::Form;
use crate::part::{payload, shape_part};
use crate::{AStr, Action, Guid, WStr};

payload! {
    /// An image file: Image Load, Unload, DCStart, DCEnd.
    Image<'a> {
        /// What happened to the image.
        action: Action = "",
        /// Its base address.
        base: u64 = "ImageBase" as ptr,
        /// Its size in memory, in bytes.
        size: u64 = "ImageSize" as ptr_since_1,
        /// The process that it belongs to (not the one that logs); 0 and 4 are the kernel's.
        process_id: u32 = "ProcessId" if since 1,
        /// The checksum in its header.
        checksum: u32 = "ImageChecksum" as hex if since 2,
        /// The time stamp in its header; mostly 0 in rundown events: [`ImageId`] has it.
        time_date_stamp: u32 = "TimeDateStamp" as hex if since 2,
        /// How it is signed (V3).
        signature_level: u8 = "SignatureLevel" if since 2,
        /// By whom it is signed (V3).
        signature_type: u8 = "SignatureType" if since 2,
        /// Not used.
        reserved0: u16 = "Reserved0" if since 2,
        /// The base that its header asks for.
        default_base: u64 = "DefaultBase" as ptr if since 2,
        /// Not used.
        reserved1: &'a [u8] = "Reserved1" as list(16) if since 2,
        /// Its path, as an NT device path.
        file_name: WStr<'a> = "FileName",
    }

    /// Size and time stamp of an image file: it stands just before or after the image event with the same base.
    ImageId<'a> {
        /// The image's base address.
        base: u64 = "ImageBase" as ptr,
        /// The image's size in memory, in bytes.
        size: u64 = "ImageSize" as ptr,
        /// Mostly 0: the process is that of the image event.
        process_id: u32 = "ProcessId",
        /// The time stamp in the image's header.
        time_date_stamp: u32 = "TimeDateStamp" as hex,
        /// What the file was called when it was built.
        original_file_name: WStr<'a> = "OriginalFileName",
    }
}

/// Whose PDB a record names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DbgId {
    /// That of the image.
    Image,
    /// That of the IL which a native image was compiled from.
    Il,
}

shape_part! {
    DbgId: shape => match shape.form {
        Form::Il => Self::Il,
        _ => Self::Image,
    };
}

payload! {
    /// Which PDB belongs to an image: DbgID_RSDS, DbgID_ILRSDS.
    DbgIdRsds<'a> {
        /// Whose PDB this is.
        of: DbgId = "",
        /// The image's base address.
        base: u64 = "ImageBase" as ptr,
        /// The process that the image belongs to.
        process_id: u32 = "ProcessId",
        /// The PDB's signature.
        guid: Guid = "GuidSig",
        /// The PDB's age.
        age: u32 = "Age",
        /// Where the PDB was when the image was built (UTF-8).
        pdb_path: AStr<'a> = "PdbFileName",
    }
}
