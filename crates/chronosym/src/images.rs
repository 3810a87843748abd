//! Native images: files mapped at a base, and what identifies them.

use chronosym_timeline::{Begin, End};

use crate::body::PdbId;
use crate::process::index_type;
use crate::strings::StringId;

index_type! {
    /// Names an image of one process, dense from 0 in the order in which events told of them.
    ImageIndex
}

/// One mapping of a file.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    pub base: u64,
    /// Bytes.
    pub size: u64,
    /// What must be added to (address − base) to get an RVA: 0 for whole images, more for a segment of an ELF file.
    pub rva_bias: u64,
    pub path: StringId,
    /// File name without folder and extension.
    pub simple_name: StringId,
    pub timestamp: Option<u32>,
    pub checksum: Option<u32>,
    pub pdb: Option<PdbId>,
    /// PDB of the IL that a precompiled image was made from.
    pub il_pdb: Option<PdbId>,
    /// Hex digits.
    pub build_id: StringId,
    /// Which part of a PE file is mapped, where a runtime mapped it piece by piece.
    pub part: Option<PePart>,
    pub begin: Begin,
    pub end: End,
}

/// A piece of a PE file that the runtime mapped itself: what recorders on Linux tell of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct PePart {
    /// Where in the file the mapping begins, in bytes.
    pub file_offset: u64,
    /// The RVA of the section with the code minus its offset in the file.
    pub code_delta: u64,
    pub perf_map: Option<PerfMapId>,
}

/// The perf map (`r2rmap`) that a precompiled image says it was compiled with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerfMapId {
    /// The signature in file order: no GUID.
    pub signature: [u8; 16],
    /// The version of its format.
    pub version: u32,
    /// Its file name: not to be trusted.
    pub name: String,
}

impl Image {
    /// The address of the last byte.
    pub fn last(&self) -> u64 {
        self.base.saturating_add(self.size.max(1) - 1)
    }

    pub fn rva(&self, address: u64) -> u64 {
        address.wrapping_sub(self.base).wrapping_add(self.rva_bias)
    }
}

/// The file name of a path of any operating system.
pub fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// The file name without folder and extension: `ntdll`, `System.Private.CoreLib`, `libc`.
pub fn simple_name(path: &str) -> &str {
    const EXTENSIONS: [&str; 8] = [
        ".dll",
        ".exe",
        ".sys",
        ".winmd",
        ".ocx",
        ".drv",
        ".dylib",
        ".netmodule",
    ];
    let name = file_name(path);
    let strip = |name: &str, extension: &str| {
        let at = name.len().checked_sub(extension.len())?;
        let matches =
            at > 0 && name.is_char_boundary(at) && name[at..].eq_ignore_ascii_case(extension);
        matches.then_some(at)
    };
    if let Some(at) = EXTENSIONS
        .iter()
        .find_map(|extension| strip(name, extension))
    {
        let stem = &name[..at];
        return strip(stem, ".ni").map_or(stem, |at| &stem[..at]);
    }
    // libc.so, libstdc++.so.6.0.30
    match name
        .find(".so")
        .filter(|&at| at > 0 && matches!(name.as_bytes().get(at + 3), None | Some(b'.')))
    {
        Some(at) => &name[..at],
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_names_have_no_folder_and_no_extension() {
        for (path, name) in [
            (r"C:\Windows\System32\ntdll.dll", "ntdll"),
            (
                "/usr/share/dotnet/System.Private.CoreLib.dll",
                "System.Private.CoreLib",
            ),
            (r"C:\a\mscorlib.ni.dll", "mscorlib"),
            ("/lib/libstdc++.so.6.0.30", "libstdc++"),
            ("/lib/libc.so.6", "libc"),
            ("vmlinux", "vmlinux"),
            ("Workload", "Workload"),
            (".dll", ".dll"),
            ("", ""),
        ] {
            assert_eq!(simple_name(path), name, "{path}");
        }
    }
}
