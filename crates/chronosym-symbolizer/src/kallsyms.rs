//! The kernel's list of its functions: `/proc/kallsyms`, or a copy of it.
//!
//! A line is `ADDRESS TYPE NAME`, followed by a tab and `[MODULE]` for symbols of a module.
//! Addresses are valid for one boot: the list is used only for a recording in which the kernel was
//! loaded at the same address.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use chronosym_core::file_name;
use chronosym_core::{ImageRef, NativeFrame};
use chronosym_types::Hex;

/// Maximum size of a list, in bytes; those of current kernels have 5 to 20 MB.
const MOST_BYTES: u64 = 128 << 20;

/// The functions of a running kernel and of its modules.
#[derive(Debug, Default)]
pub struct Kallsyms {
    path: PathBuf,
    text: String,
    /// Sorted by address, one per address. A symbol that is not a function ends the function before
    /// it.
    rows: Vec<Row>,
    /// First and last address of each module's functions.
    modules: BTreeMap<String, (u64, u64)>,
    /// The addresses of `_text` and `_stext`, by which recorders identify the kernel.
    starts: Vec<u64>,
    /// The end of the kernel's code, and the end of the kernel.
    text_end: Option<u64>,
    end: Option<u64>,
    /// Hex digits.
    build_id: Option<String>,
}

/// Why a list of functions cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KallsymsError {
    /// The file cannot be read.
    #[error("it cannot be read: {0}")]
    Read(#[from] io::Error),
    /// The file is larger than any kernel's list.
    #[error("it has more than {MOST_BYTES} bytes")]
    TooLarge,
    /// It has no `_text`, or it is not a list of functions.
    #[error("it is not a list of kernel symbols: it has neither _text nor _stext")]
    NoKernel,
    /// All addresses are zero: the reader may not see them.
    #[error("the kernel hid its addresses (kernel.kptr_restrict)")]
    Hidden,
}

/// Why a list does not match the kernel of a recording.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KallsymsMismatch {
    /// The module has code outside the image that the recording states.
    #[error("the module starts at {found:#x} in it and at {recorded:#x} in the recording")]
    ModulePlace {
        /// The first address in the list.
        found: u64,
        /// The module's base in the recording.
        recorded: u64,
    },
    /// The module is not in the list.
    #[error("it has no such module")]
    NoModule,
    /// The build IDs of the kernels differ.
    #[error("it belongs to the kernel with build id {found}, the recording to {recorded}")]
    BuildId {
        /// The build ID of the list.
        found: String,
        /// The build ID in the recording.
        recorded: String,
    },
    /// The kernel was loaded at another address: another boot.
    #[error("its kernel starts at {found:#x}, that of the recording at {recorded:#x}")]
    Place {
        /// Its address in the list.
        found: u64,
        /// Its address in the recording.
        recorded: u64,
    },
    /// The kernel's code has another size.
    #[error("the code of its kernel ends at {found:#x}, that of the recording at {recorded:#x}")]
    Size {
        /// Its end in the list.
        found: u64,
        /// Its end in the recording.
        recorded: u64,
    },
}

#[derive(Debug)]
struct Row {
    address: u64,
    /// Range of the name in the text; empty for a symbol that is not a function.
    name: Range<u32>,
}

/// Ranks the names at one address; the greatest is used: functions before data, global before weak
/// and local names, then fewer leading underscores, then the longer name. `perf` chooses likewise.
fn rank(kind: u8, name: &str) -> (bool, bool, bool, usize, usize) {
    let is_function = matches!(kind, b't' | b'T' | b'w' | b'W');
    let is_weak = matches!(kind, b'w' | b'W' | b'v' | b'V');
    let underscores = name.bytes().take_while(|&byte| byte == b'_').count();
    (
        is_function,
        !is_weak,
        kind.is_ascii_uppercase(),
        usize::MAX - underscores,
        name.len(),
    )
}

impl Kallsyms {
    /// Reads `/proc/kallsyms` or a copy. The build ID is known for the running kernel's list, and
    /// for a copy in `perf`'s cache, whose folder is named after it.
    ///
    /// # Errors
    ///
    /// [`KallsymsError`]: the file cannot be read, is too large, or has no kernel or no addresses.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, KallsymsError> {
        let path = path.as_ref();
        let mut bytes = Vec::new();
        File::open(path)?
            .take(MOST_BYTES + 1)
            .read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MOST_BYTES {
            return Err(KallsymsError::TooLarge);
        }
        let text = String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        Self::parse(path, text, build_id(path))
    }

    fn parse(path: &Path, text: String, build_id: Option<String>) -> Result<Self, KallsymsError> {
        let mut all = Vec::new();
        let mut list = Kallsyms {
            path: path.to_owned(),
            build_id,
            ..Kallsyms::default()
        };
        let mut is_hidden = false;
        for line in text.lines() {
            let Some((address, kind, name, module)) = columns(line) else {
                continue;
            };
            is_hidden |= address == 0;
            if address >> 31 == 0 {
                // Offsets of per-processor data.
                continue;
            }
            let rank = rank(kind, name);
            let at = (name.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize) as u32;
            let own = match rank.0 {
                true => at..at.saturating_add(name.len() as u32),
                false => 0..0,
            };
            match (module, name) {
                (Some(module), _) if rank.0 => {
                    let ends = list.modules.entry(module.to_owned());
                    let (first, last) = ends.or_insert((address, address));
                    (*first, *last) = (address.min(*first), address.max(*last));
                }
                (None, "_text" | "_stext") => list.starts.push(address),
                (None, "_etext") => list.text_end = Some(address),
                (None, "_end") => list.end = Some(address),
                _ => {}
            }
            all.push((address, rank, own));
        }
        if list.starts.is_empty() {
            return Err(match is_hidden && all.is_empty() {
                true => KallsymsError::Hidden,
                false => KallsymsError::NoKernel,
            });
        }
        all.sort_by_key(|&(address, rank, _)| (address, std::cmp::Reverse(rank)));
        all.dedup_by_key(|(address, ..)| *address);
        let rows = all.into_iter();
        list.rows = rows
            .map(|(address, _, name)| Row { address, name })
            .collect();
        list.text = text;
        Ok(list)
    }

    /// Returns the path from which the list was read.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether an image is of a kind that the list covers: the kernel, or a kernel module.
    pub fn is_about(&self, image: &ImageRef<'_>) -> bool {
        is_kernel(image.path) || self.module(image).is_some()
    }

    fn module(&self, image: &ImageRef<'_>) -> Option<&(u64, u64)> {
        self.modules.get(&module_name(image.path)?)
    }

    /// Checks that the list belongs to the kernel or kernel module that an image of a recording is.
    ///
    /// # Errors
    ///
    /// The difference: the build ID if both state one, the address, or the size of the code.
    pub fn fits(&self, image: &ImageRef<'_>) -> Result<(), KallsymsMismatch> {
        let recorded = image.base;
        let last = image.base.saturating_add(image.size.saturating_sub(1));
        if !is_kernel(image.path) {
            return match self.module(image) {
                Some(&(first, end)) if first >= image.base && end <= last => Ok(()),
                Some(&(found, _)) => Err(KallsymsMismatch::ModulePlace { found, recorded }),
                None => Err(KallsymsMismatch::NoModule),
            };
        }
        if let (Some(own), Some(stated)) = (&self.build_id, image.build_id)
            && !own.eq_ignore_ascii_case(stated)
        {
            return Err(KallsymsMismatch::BuildId {
                found: own.clone(),
                recorded: stated.to_owned(),
            });
        }
        if !self.starts.contains(&image.base) {
            let found = self.starts.first().copied().unwrap_or_default();
            return Err(KallsymsMismatch::Place { found, recorded });
        }
        // Older recorders state a range that ends at the first module.
        let end = last.saturating_add(1);
        let beyond = self.end.is_some_and(|own| end >= own);
        match self.text_end.filter(|&own| own != end && !beyond) {
            Some(found) => Err(KallsymsMismatch::Size {
                found,
                recorded: end,
            }),
            None => Ok(()),
        }
    }

    /// Returns the function at an RVA of an image that the list covers.
    pub(super) fn frame(&self, image: &ImageRef<'_>, rva: u64) -> Option<NativeFrame> {
        let address = image.base.checked_add(rva)?;
        let behind = self.rows.partition_point(|row| row.address <= address);
        let row = self.rows.get(behind.checked_sub(1)?)?;
        let name = self
            .text
            .get(row.name.start as usize..row.name.end as usize)?;
        (row.address >= image.base && !name.is_empty()).then(|| {
            let mut frame = NativeFrame::new(name);
            frame.offset = Some(address - row.address);
            frame
        })
    }
}

/// Returns address, type, name and module of a line.
fn columns(line: &str) -> Option<(u64, u8, &str, Option<&str>)> {
    let mut columns = line.split_ascii_whitespace();
    let address = u64::from_str_radix(columns.next()?, 16).ok()?;
    let (kind, name) = (columns.next()?, columns.next()?);
    let module = columns.next().and_then(|it| it.strip_prefix('['));
    let module = module.and_then(|it| it.strip_suffix(']'));
    Some((address, *kind.as_bytes().first()?, name, module))
}

fn is_kernel(path: &str) -> bool {
    path.starts_with("[kernel") || file_name(path).starts_with("vmlinux")
}

/// Returns file names that a kernel module may have in addition to the one in its path: recorders
/// know many modules by the kernel's name only.
pub(super) fn module_files(path: &str) -> impl Iterator<Item = String> {
    let is_module = !is_kernel(path) && !matches!(path, "[vdso]" | "[vsyscall]");
    let name = module_name(path).filter(|_| is_module);
    let spellings = name.map(|name| [name.replace('_', "-"), name]);
    spellings.into_iter().flatten().flat_map(|name| {
        let endings = ["", ".xz", ".zst", ".gz"];
        endings.map(|ending| format!("{name}.ko{ending}"))
    })
}

/// Returns `xfs` for `[xfs]` and for `…/xfs.ko.xz`: the name as the kernel spells it.
fn module_name(path: &str) -> Option<String> {
    let own = path.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let file = || file_name(path).split_once(".ko").map(|(name, _)| name);
    own.or_else(file).map(|name| name.replace('-', "_"))
}

/// Returns the build ID of the running kernel for its own list. That of a copy in `perf`'s cache is
/// the name of its folder.
fn build_id(path: &Path) -> Option<String> {
    if path == Path::new("/proc/kallsyms") {
        let notes = std::fs::read("/sys/kernel/notes").ok()?;
        return gnu_build_id(&notes);
    }
    let folder = path.parent()?.file_name()?.to_str()?;
    let is_id = folder.len() == 40 && folder.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| folder.to_owned())
}

/// Finds the build ID among the notes of the running kernel.
fn gnu_build_id(mut notes: &[u8]) -> Option<String> {
    const BUILD_ID: u32 = 3;
    loop {
        let (head, rest) = notes.split_first_chunk::<12>()?;
        let field = |at: usize| Some(u32::from_ne_bytes(*head.get(at..)?.first_chunk()?));
        let padded = |size: u32| usize::try_from(size).ok()?.checked_next_multiple_of(4);
        let (name_size, size, kind) = (field(0)?, field(4)?, field(8)?);
        let (name, rest) = rest.split_at_checked(padded(name_size)?)?;
        if kind == BUILD_ID && name == b"GNU\0" {
            let id = rest.get(..usize::try_from(size).ok()?)?;
            return Some(Hex(id).to_string());
        }
        notes = rest.get(padded(size)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "0000000000000000 A fixed_percpu_data\n\
        ffffffff81000000 T _stext\nffffffff81000000 T _text\n\
        ffffffff81000100 t __do_work\nffffffff81000100 T do_work\nffffffff81000100 W work\n\
        ffffffff81000200 d table\nffffffff81000300 T _etext\nffffffff82000000 B _end\n\
        ffffffffc0201000 t trampoline\t[my_fs]\nffffffffc0201080 r rows\t[my_fs]\n";

    fn list(text: &str, id: Option<&str>) -> Result<Kallsyms, KallsymsError> {
        Kallsyms::parse(Path::new("list"), text.to_owned(), id.map(str::to_owned))
    }

    fn placed(path: &'static str, base: u64, size: u64) -> ImageRef<'static> {
        let mut image = ImageRef::new(path);
        (image.base, image.size) = (base, size);
        image
    }

    fn kernel(base: u64, end: u64) -> ImageRef<'static> {
        let mut image = placed("[kernel.kallsyms]", base, end - base);
        image.build_id = Some("ab");
        image
    }

    #[test]
    fn the_best_of_several_names_applies_up_to_the_next_symbol() {
        let list = list(LIST, None).unwrap();
        let image = kernel(0xffff_ffff_8100_0000, 0xffff_ffff_8100_0300);
        let at = |rva| {
            list.frame(&image, rva)
                .map(|it| (it.name.to_string(), it.offset))
        };
        assert_eq!(at(0x1ff), Some(("do_work".to_owned(), Some(0xff))));
        assert_eq!(at(0x200), None, "data");
        let module = placed(
            "/lib/modules/6.1/my-fs.ko.xz",
            0xffff_ffff_c020_1000,
            0x1000,
        );
        assert_eq!(list.fits(&module), Ok(()));
        let name = |rva| list.frame(&module, rva).map(|it| it.name.to_string());
        assert_eq!((name(4).as_deref(), name(0x80)), (Some("trampoline"), None));
    }

    #[test]
    fn another_kernel_is_refused() {
        const BASE: u64 = 0xffff_ffff_8100_0000;
        let good = kernel(BASE, BASE + 0x300);
        let own = list(LIST, Some("AB")).unwrap();
        assert_eq!(own.fits(&good), Ok(()));
        // As an older recorder states it.
        assert_eq!(own.fits(&kernel(BASE, 0xffff_ffff_c000_0000)), Ok(()));
        let refused = |list: &Kallsyms, image: &ImageRef<'_>, why: &str| {
            let found = list.fits(image).unwrap_err().to_string();
            assert!(found.contains(why), "{found}");
        };
        refused(
            &own,
            &kernel(BASE + 0x10_0000, BASE + 0x10_0300),
            "starts at",
        );
        refused(&own, &kernel(BASE, BASE + 0x400), "ends at");
        refused(&list(LIST, Some("cd")).unwrap(), &good, "build id cd");
        let module = |base, name| placed(name, base, 0x1000);
        refused(
            &own,
            &module(0xffff_ffff_c030_0000, "[my_fs]"),
            "the module starts at",
        );
        refused(&own, &module(0xffff_ffff_c030_0000, "[other]"), "no such");
    }

    #[test]
    fn invalid_lists_are_rejected() {
        let hidden = "0000000000000000 T _text\n0000000000000000 t work\n";
        assert!(matches!(list(hidden, None), Err(KallsymsError::Hidden)));
        for text in ["", "hello\n", "ffffffff81000100 t work\n"] {
            assert!(matches!(list(text, None), Err(KallsymsError::NoKernel)));
        }
    }

    #[test]
    fn a_build_id_is_found_among_notes() {
        let mut notes = Vec::new();
        for (kind, name, id) in [
            (1_u32, *b"Linux\0\0\0", [1, 2, 3, 4]),
            (3, *b"GNU\0\0\0\0\0", [0xab; 4]),
        ] {
            let size = if kind == 3 { 4_u32 } else { 6 };
            notes.extend([size, 4, kind].iter().flat_map(|it| it.to_ne_bytes()));
            notes.extend(&name[..(size as usize).next_multiple_of(4)]);
            notes.extend(id);
        }
        assert_eq!(gnu_build_id(&notes).as_deref(), Some("abababab"));
        assert_eq!(gnu_build_id(&notes[..20]), None);
    }
}
