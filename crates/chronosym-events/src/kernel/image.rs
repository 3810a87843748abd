//! Images and what identifies their symbol files.

use crate::cursor::Cursor;
use crate::part::{FieldSpec, Part, Style, payload};
use crate::value::FieldList;
use crate::{AStr, Action, DecodeError, Guid, WStr};

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
}

payload! {
    /// Where the kernel or the hypervisor was loaded.
    KernelBase {
        /// Its base address.
        base: u64 = "ImageBase" as ptr,
    }
}

payload! {
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

impl<'a> Part<'a> for DbgId {
    fn read(c: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        Ok(if c.shape.il { Self::Il } else { Self::Image })
    }
    fn list(&self, _: &'static str, _: Style, _: &mut FieldList<'a>) {}
    fn spec(_: &'static str, _: &str, _: &mut Vec<FieldSpec>) {}
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

payload! {
    /// An image without a PDB record.
    DbgIdNone {
        /// The image's base address.
        base: u64 = "ImageBase" as ptr,
        /// The process that the image belongs to.
        process_id: u32 = "ProcessId",
    }
}

payload! {
    /// The portable PDB record of an image.
    DbgIdPpdb {
        /// The image's base address.
        base: u64 = "ImageBase" as ptr,
        /// The process that the image belongs to.
        process_id: u32 = "ProcessId",
        /// The record's time stamp, a part of the PDB's id.
        time_date_stamp: u32 = "TimeDateStamp" as hex,
        /// Version of the PDB format.
        major_version: u16 = "MajorVersion",
        /// 0x504d marks a portable PDB.
        minor_version: u16 = "MinorVersion" as hex,
    }
}

payload! {
    /// An image of a deterministic build: its time stamp is a hash.
    DbgIdDeterministic {
        /// The image's base address.
        base: u64 = "ImageBase" as ptr,
        /// The process that the image belongs to.
        process_id: u32 = "ProcessId",
    }
}

payload! {
    /// The version resource of an image file.
    FileVersion<'a> {
        /// The image's size in memory, in bytes.
        size: u32 = "ImageSize",
        /// The time stamp in the image's header.
        time_date_stamp: u32 = "TimeDateStamp" as hex,
        /// What the file was called when it was built.
        original_file_name: WStr<'a> = "OrigFileName",
        /// What the file is.
        file_description: WStr<'a> = "FileDescription",
        /// Its version as text.
        file_version: WStr<'a> = "FileVersion",
        /// Its version as numbers.
        bin_file_version: WStr<'a> = "BinFileVersion",
        /// The language of the resource.
        ver_language: WStr<'a> = "VerLanguage",
        /// The product that it belongs to.
        product_name: WStr<'a> = "ProductName",
        /// Who made it.
        company_name: WStr<'a> = "CompanyName",
        /// The product's version.
        product_version: WStr<'a> = "ProductVersion",
        /// A hash of the file.
        file_id: Option<WStr<'a>> = "FileId",
        /// The id of the program that it belongs to.
        program_id: Option<WStr<'a>> = "ProgramId",
    }
}
