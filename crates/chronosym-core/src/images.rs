//! Native images: mapped files and their identities.

use std::collections::BTreeMap;

use chronosym_events::Action;
use chronosym_timeline::{End, Start};

use crate::facts;
use crate::ids::ImageIndex;
use crate::lifetime::{has_ended, is_over, lifetime_of};
use crate::names::NameTable;
use crate::strings::StringId;
use crate::symbol_identity::PdbReference;
use crate::terms::Addressing;
use chronosym_types::{MappedFile, SparseVec};

/// One mapping of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Image {
    pub base: u64,
    /// Bytes.
    pub size: u64,
    /// File offset of the mapping, in bytes.
    pub file_offset: u64,
    /// Added to (address − base) to get an RVA: 0 for whole images, more for a segment of an ELF
    /// file.
    pub rva_bias: u64,
    pub addressing: Addressing,
    pub is_function: bool,
    pub path: StringId,
    /// File name without folder and extension.
    pub simple_name: StringId,
    pub timestamp: Option<u32>,
    pub pdb: Option<PdbReference>,
    /// PDB of the IL that a precompiled image was made from.
    pub il_pdb: Option<PdbReference>,
    /// Hex digits.
    pub build_id: StringId,
    pub file: Option<MappedFile>,
    /// The mapped part of a PE file, if the runtime mapped the file section by section.
    pub part: Option<PePart>,
    pub loaded: Start,
    pub end: End,
    /// Time of the image's own latest event; its end may be that of its process.
    pub confirmed: u64,
}

/// A part of a PE file mapped by the runtime itself, as recorders on Linux describe it.
#[derive(Clone, Debug, Default)]
pub(crate) struct PePart {
    /// File offset of the mapping, in bytes.
    pub file_offset: u64,
    /// The RVA of the section with the code minus its offset in the file.
    pub code_delta: u64,
    pub perf_map: Option<PerfMapId>,
}

/// The perf map (`r2rmap`) that a precompiled image names as its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PerfMapId {
    /// The signature in file order; not a GUID.
    pub signature: [u8; 16],
    /// The format's version.
    pub version: u32,
    /// The file name; not trusted.
    pub name: String,
}

/// A range of a file mapped into a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileMapping {
    /// The first address.
    pub base: u64,
    /// Bytes.
    pub size: u64,
    /// File offset of the mapping, in bytes.
    pub file_offset: u64,
}

impl Image {
    /// Returns the address of the last byte.
    pub fn last(&self) -> u64 {
        self.base.saturating_add(self.size.max(1) - 1)
    }

    pub fn mapping(&self, file_offset: u64) -> FileMapping {
        FileMapping {
            base: self.base,
            size: self.size,
            file_offset,
        }
    }

    /// Returns whether two images have the same symbols.
    pub fn is_same_file(&self, other: &Self) -> bool {
        let names = |image: &Self| {
            (
                image.path,
                image.simple_name,
                image.build_id,
                image.rva_bias,
            )
        };
        let number = |image: &Self| {
            image
                .file
                .map(|file| (file.number.device, file.number.inode))
        };
        let identity = |image: &Self| (image.timestamp, image.pdb.clone(), image.il_pdb.clone());
        names(self) == names(other)
            && identity(self) == identity(other)
            && self.part.is_some() == other.part.is_some()
            && number(self) == number(other)
    }

    pub fn rva(&self, address: u64) -> u64 {
        address.wrapping_sub(self.base).wrapping_add(self.rva_bias)
    }
}

/// The current mappings of a process.
#[derive(Debug, Default)]
pub(crate) struct MappedImages {
    /// The image at a base now, and the time of its latest event.
    current: BTreeMap<u64, (ImageIndex, u64)>,
}

impl MappedImages {
    /// Returns the image last mapped at a base, and the time of its latest event.
    pub fn at(&self, base: u64) -> Option<(ImageIndex, u64)> {
        self.current.get(&base).copied()
    }

    /// Returns the image mapped at an address now.
    pub fn covering<'i>(&self, images: &'i SparseVec<Image>, address: u64) -> Option<&'i Image> {
        let index = self.spanning(images, address, address)?;
        images.get(index.index())
    }

    /// Returns the image that covers all addresses from `first` to `last`.
    fn spanning(&self, images: &SparseVec<Image>, first: u64, last: u64) -> Option<ImageIndex> {
        let (_, &(index, _)) = self.current.range(..=first).next_back()?;
        let image = &images[index.index()];
        (image.last() >= last && !is_over(image.end)).then_some(index)
    }

    /// Unmaps the addresses from `first` to `last`; the remaining ends of an image become separate
    /// images.
    fn cut(&mut self, images: &mut SparseVec<Image>, time: u64, first: u64, last: u64) {
        let covered = self.current.range(..=last).rev();
        let covered: Vec<_> = covered
            .map(|(&base, &(index, _))| (base, index))
            .take_while(|(_, index)| images[index.index()].last() >= first)
            .collect();
        for (base, index) in covered {
            self.current.remove(&base);
            let whole = images[index.index()].clone();
            if is_over(whole.end) {
                continue;
            }
            images[index.index()].end = End::At(time);
            let before = first.checked_sub(whole.base).filter(|&size| size > 0);
            let after = whole.last().checked_sub(last).filter(|&size| size > 0);
            let remainders = [
                before.map(|size| (whole.base, size)),
                after.map(|size| (last + 1, size)),
            ];
            for (base, size) in remainders.into_iter().flatten() {
                let offset = base - whole.base;
                let remainder = Image {
                    base,
                    size,
                    file_offset: whole.file_offset.wrapping_add(offset),
                    rva_bias: whole.rva_bias.wrapping_add(offset),
                    ..whole.clone()
                };
                self.inherit(images, remainder, time);
            }
        }
    }

    /// Adds a copy of an image: of the parent process, or of a part that remains mapped. Nothing
    /// confirms that the image itself is still there.
    pub fn inherit(&mut self, images: &mut SparseVec<Image>, image: Image, time: u64) {
        let base = image.base;
        let index = images.push(Image {
            loaded: Start::At(time),
            end: End::Open,
            ..image
        });
        self.current.insert(base, (ImageIndex(index as u32), time));
    }

    /// Removes images that were dropped.
    pub fn forget(&mut self, images: &SparseVec<Image>) {
        self.current
            .retain(|_, (image, _)| images.contains(image.index()));
    }

    /// Applies an image event. Returns its image, and whether it is new.
    pub fn apply(
        &mut self,
        images: &mut SparseVec<Image>,
        time: u64,
        fact: &facts::Image<'_>,
        names: &mut NameTable,
    ) -> Option<(ImageIndex, bool)> {
        let ends = matches!(fact.action, Action::Unload | Action::DCEnd);
        let path = names.text(fact.path);
        let text = names.strings.get(path);
        // On Linux a mapping replaces exactly the addresses that it covers, whatever was mapped
        // there.
        if let (Addressing::FileOffset, false, Some(size)) =
            (fact.addressing, ends, fact.size.checked_sub(1))
        {
            let (first, last) = (fact.base, fact.base.saturating_add(size));
            if let Some(index) = self.spanning(images, first, last)
                && images[index.index()].path == path
                && images[index.index()].rva(first) == fact.file_offset
            {
                return Some((index, false));
            }
            self.cut(images, time, first, last);
        }
        // Modules of the Linux kernel have such names as well.
        let is_kernel = fact.base >> 63 == 1 && text != "[vsyscall]";
        if is_anonymous(text) && !is_kernel {
            return None;
        }
        let name = file_name(text);
        let current = self.at(fact.base).map(|(index, _)| index);
        let same = current.filter(|index| {
            let image = &images[index.index()];
            let old_name = file_name(names.strings.get(image.path));
            (image.size == fact.size || (fact.size == 0 && ends))
                && (image.file_offset == fact.file_offset || ends)
                && (fact.action == Action::Unload || !has_ended(image.end, time))
                && (name.is_empty() || old_name.is_empty() || name.eq_ignore_ascii_case(old_name))
        });
        if same.is_none() && fact.size == 0 {
            return None;
        }
        let (loaded, end) = lifetime_of(fact.action, time);
        let index = same.unwrap_or_else(|| {
            let simple = simple_name(names.strings.get(path)).to_owned();
            let index = images.push(Image {
                base: fact.base,
                size: fact.size,
                file_offset: fact.file_offset,
                rva_bias: fact.file_offset,
                addressing: fact.addressing,
                is_function: fact.is_function,
                path,
                simple_name: names.strings.intern(&simple),
                timestamp: None,
                pdb: fact.pdb.clone(),
                il_pdb: None,
                build_id: names.strings.intern(fact.build_id),
                file: fact.file,
                part: None,
                loaded,
                end,
                confirmed: time,
            });
            ImageIndex(index as u32)
        });
        let image = &mut images[index.index()];
        if ends && !is_over(image.end) {
            image.end = end;
        }
        image.confirmed = time;
        image.timestamp = image.timestamp.or(fact.timestamp);
        self.current.insert(fact.base, (index, time));
        Some((index, same.is_none()))
    }
}

/// Returns whether a path denotes memory without a file. It may contain jitted code, named by
/// events or a perf map.
pub fn is_anonymous(path: &str) -> bool {
    let anonymous =
        path.starts_with("/memfd:") || path.starts_with("//anon") || path.starts_with('[');
    let is_file = || path.starts_with("[kernel") || path.contains("vmlinux") || path == "[vdso]";
    anonymous && !is_file()
}

/// Returns the file name of a path of any operating system.
pub fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// Returns the file name without folder and extension: `ntdll`, `System.Private.CoreLib`, `libc`.
pub fn simple_name(path: &str) -> &str {
    const EXTENSIONS: [&str; 8] = [
        "dll",
        "exe",
        "sys",
        "winmd",
        "ocx",
        "drv",
        "dylib",
        "netmodule",
    ];
    let split = |name: &'_ str| name.rfind('.').filter(|&at| at > 0);
    let name = file_name(path);
    if let Some(at) = split(name)
        && EXTENSIONS
            .iter()
            .any(|extension| name[at + 1..].eq_ignore_ascii_case(extension))
    {
        let stem = &name[..at];
        let native = split(stem).filter(|&at| stem[at..].eq_ignore_ascii_case(".ni"));
        return native.map_or(stem, |at| &stem[..at]);
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
