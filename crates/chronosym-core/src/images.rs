//! Native images: files mapped at a base, and what identifies them.

use std::collections::BTreeMap;

use chronosym_events::Action;
use chronosym_timeline::{End, Start};

use crate::facts;
use crate::ids::ImageIndex;
use crate::life::{has_ended, is_over, life_of};
use crate::names::Names;
use crate::strings::StringId;
use crate::symbol_identity::PdbReference;
use crate::terms::Addressing;

/// One mapping of a file.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    pub base: u64,
    /// Bytes.
    pub size: u64,
    /// Where in the file the mapping begins, in bytes.
    pub file_offset: u64,
    /// What must be added to (address − base) to get an RVA: 0 for whole images, more for a segment of an ELF file.
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
    /// Which part of a PE file is mapped, where a runtime mapped it piece by piece.
    pub part: Option<PePart>,
    pub begin: Start,
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
#[non_exhaustive]
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

/// Which images of a process stand where.
#[derive(Debug, Default)]
pub(crate) struct MappedImages {
    /// The image that stands at a base now, and the time of the event that spoke of it last.
    current: BTreeMap<u64, (ImageIndex, u64)>,
}

impl MappedImages {
    /// The image that was last said to stand at a base, and when.
    pub fn at(&self, base: u64) -> Option<(ImageIndex, u64)> {
        self.current.get(&base).copied()
    }

    /// The image that stands at an address now.
    pub fn covering<'i>(&self, images: &'i [Image], address: u64) -> Option<&'i Image> {
        let index = self.holding(images, address, address)?;
        images.get(index.index())
    }

    /// The image that stands at all addresses from first to last.
    fn holding(&self, images: &[Image], first: u64, last: u64) -> Option<ImageIndex> {
        let (_, &(index, _)) = self.current.range(..=first).next_back()?;
        let image = &images[index.index()];
        (image.last() >= last && !is_over(image.end)).then_some(index)
    }

    /// Takes the addresses from first to last away from what stands there; what is left of it are images of their own.
    fn cut(&mut self, images: &mut Vec<Image>, time: u64, first: u64, last: u64) {
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
            let pieces = [
                before.map(|size| (whole.base, size)),
                after.map(|size| (last + 1, size)),
            ];
            for (base, size) in pieces.into_iter().flatten() {
                let behind = base - whole.base;
                let piece = Image {
                    base,
                    size,
                    file_offset: whole.file_offset.wrapping_add(behind),
                    rva_bias: whole.rva_bias.wrapping_add(behind),
                    ..whole.clone()
                };
                self.inherit(images, piece, time);
            }
        }
    }

    /// Maps what stands in the process that this one is a copy of.
    pub fn inherit(&mut self, images: &mut Vec<Image>, image: Image, time: u64) {
        let index = ImageIndex(images.len() as u32);
        self.current.insert(image.base, (index, time));
        images.push(Image {
            begin: Start::At(time),
            end: End::Open,
            ..image
        });
    }

    /// Applies an image event; returns the image that it speaks of, and whether it is a new one.
    pub fn apply(
        &mut self,
        images: &mut Vec<Image>,
        time: u64,
        fact: &facts::Image<'_>,
        names: &mut Names,
    ) -> Option<(ImageIndex, bool)> {
        let ends = matches!(fact.action, Action::Unload | Action::DCEnd);
        let path = names.text(fact.path);
        let text = names.strings.get(path);
        // On Linux a mapping takes the place of what it covers and of nothing else, whatever it is of.
        if let (Addressing::FileOffset, false, Some(size)) =
            (fact.addressing, ends, fact.size.checked_sub(1))
        {
            let (first, last) = (fact.base, fact.base.saturating_add(size));
            if let Some(index) = self.holding(images, first, last)
                && images[index.index()].path == path
                && images[index.index()].rva(first) == fact.file_offset
            {
                return Some((index, false));
            }
            self.cut(images, time, first, last);
        }
        // Modules of the Linux kernel are named so, too.
        let is_kernel = fact.base >> 63 == 1 && text != "[vsyscall]";
        if is_anonymous(text) && !is_kernel {
            return None;
        }
        let name = file_name(text);
        let known = self.at(fact.base).map(|(index, _)| index);
        let same = known.filter(|index| {
            let image = &images[index.index()];
            let known = file_name(names.strings.get(image.path));
            (image.size == fact.size || (fact.size == 0 && ends))
                && (image.file_offset == fact.file_offset || ends)
                && (fact.action == Action::Unload || !has_ended(image.end, time))
                && (name.is_empty() || known.is_empty() || name.eq_ignore_ascii_case(known))
        });
        if same.is_none() && fact.size == 0 {
            return None;
        }
        let (begin, end) = life_of(fact.action, time);
        let index = same.unwrap_or_else(|| {
            let simple = simple_name(names.strings.get(path)).to_owned();
            images.push(Image {
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
                part: None,
                begin,
                end,
            });
            ImageIndex(images.len() as u32 - 1)
        });
        let image = &mut images[index.index()];
        if ends && !is_over(image.end) {
            image.end = end;
        }
        image.timestamp = image.timestamp.or(fact.timestamp);
        self.current.insert(fact.base, (index, time));
        Some((index, same.is_none()))
    }
}

/// Memory that no file stands behind names nothing; jitted code can lie in it, and events or a perf map know that.
pub fn is_anonymous(path: &str) -> bool {
    let anonymous =
        path.starts_with("/memfd:") || path.starts_with("//anon") || path.starts_with('[');
    let is_file = path.starts_with("[kernel") || path.contains("vmlinux") || path == "[vdso]";
    anonymous && !is_file
}

/// The file name of a path of any operating system.
pub fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// The file name without folder and extension: `ntdll`, `System.Private.CoreLib`, `libc`.
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
            .any(|known| name[at + 1..].eq_ignore_ascii_case(known))
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
