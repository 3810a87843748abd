//! Reads the identity of files in the formats that this workspace supports.

use std::path::Path;

use object::{FileKind, Object, ObjectSection};

use crate::breakpad::Module;
use crate::elf::contents::{self, build_id};
use crate::elf::packing;
use crate::elf::universal::{self, Choice};
use crate::identity::{FileIdentity, PeId, Wanted};
use crate::mmap::FileData;
use chronosym_pdb::pe::PeImage;
use chronosym_pdb::portable::PortablePdb;
use chronosym_pdb::r2r::R2rMap;
use chronosym_pdb::windows::WindowsPdb;

/// Why a file has no usable identity.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IdentifyError {
    /// It is not a file of the wanted kind, or it is damaged.
    Damaged(String),
    /// It cannot be read.
    Unreadable(String),
    /// The caller cannot use it despite its identity; the search continues.
    Unfit(String),
}

impl From<std::io::Error> for IdentifyError {
    fn from(error: std::io::Error) -> Self {
        Self::Unreadable(error.to_string())
    }
}

/// Reads the identity of the file at a path; the [`Wanted`] states the expected kind.
///
/// It should read enough to detect a truncated file: accepted files are used, and kept in the
/// cache.
pub type Identify<'a> = dyn Fn(&Path, &Wanted) -> Result<FileIdentity, IdentifyError> + Sync + 'a;

/// Reads the identity of a PDB in either format, a PE image, an ELF file (also one compressed by
/// gzip, xz or zstd), a Mach-O file, a Breakpad symbol file or an `r2rmap`, detected by content.
/// For a universal file, that of the wanted image.
///
/// Reads headers and directories only, but enough to detect a truncated file. It is an
/// [`Identify`].
///
/// # Errors
///
/// The file cannot be read, is in none of these formats, or is damaged or truncated.
pub fn read_identity(path: &Path, wanted: &Wanted) -> Result<FileIdentity, IdentifyError> {
    let data = FileData::map(path).map_err(|error| IdentifyError::Unreadable(error.to_string()))?;
    let choice = match wanted {
        Wanted::ElfDebug(id) | Wanted::ElfImage(id) => Choice::Uuid(id),
        _ => Choice::Only,
    };
    identity_in(&data, choice)
}

/// Returns whether a file that had an identity still has it: in a universal file, the image with
/// the same UUID.
pub fn has_identity(data: &FileData, known: &FileIdentity) -> bool {
    let choice = match known {
        FileIdentity::Elf {
            build_id: Some(id), ..
        } => Choice::Uuid(id),
        _ => Choice::Only,
    };
    identity_in(data, choice).is_ok_and(|now| now == *known)
}

fn identity_in(data: &FileData, choice: Choice<'_>) -> Result<FileIdentity, IdentifyError> {
    match universal::image(data, choice).map_err(damaged)? {
        Some(image) => identity_of(&data.part(image)),
        None => identity_of(data),
    }
}

/// Like [`read_identity`], for a file's bytes.
///
/// # Errors
///
/// The bytes are those of none of the formats, or of a damaged file.
pub fn identity_of(data: &[u8]) -> Result<FileIdentity, IdentifyError> {
    if PortablePdb::sniff(data) {
        let pdb = PortablePdb::parse(data).map_err(damaged)?;
        Ok(FileIdentity::PortablePdb(pdb.id()))
    } else if data.starts_with(b"Microsoft C/C++ ") {
        let pdb = WindowsPdb::open(data).map_err(damaged)?;
        Ok(FileIdentity::WindowsPdb(pdb.id()))
    } else if data.starts_with(b"MZ") {
        image(data)
    } else if data.starts_with(b"\x7fELF") || is_mach_o(data) {
        object(data)
    } else if Module::sniff(data) {
        let module = Module::parse(data).map_err(damaged)?;
        Ok(FileIdentity::Breakpad(module.id))
    } else if data.starts_with(b"FFFFFFFF ") {
        let map = R2rMap::parse(data).map_err(damaged)?;
        Ok(FileIdentity::R2rMap {
            signature: map.signature,
            version: 1,
        })
    } else if let Some(file) = packing::whole_file(data).map_err(damaged)? {
        match Module::sniff(&file) {
            true => identity_of(&file),
            false => object(&file),
        }
    } else {
        Err(damaged("in none of the supported formats"))
    }
}

fn damaged(why: impl ToString) -> IdentifyError {
    IdentifyError::Damaged(why.to_string())
}

fn image(data: &[u8]) -> Result<FileIdentity, IdentifyError> {
    let image = PeImage::parse(data).map_err(damaged)?;
    // Raw sizes, because tools differ in what they treat as padding.
    let sections = image.sections();
    check(
        data,
        sections.map(|it| (it.file_offset.into(), it.file_size.into())),
    )?;
    Ok(FileIdentity::Image {
        pe: PeId {
            timestamp: image.timestamp(),
            size_of_image: image.size_of_image(),
        },
        pdbs: image.codeviews().map(|codeview| codeview.id).collect(),
    })
}

fn is_mach_o(data: &[u8]) -> bool {
    let kind = FileKind::parse(data);
    matches!(kind, Ok(FileKind::MachO32 | FileKind::MachO64))
}

fn object(data: &[u8]) -> Result<FileIdentity, IdentifyError> {
    let file = object::File::parse(data).map_err(damaged)?;
    check(data, file.sections().filter_map(|it| it.file_range()))?;
    Ok(FileIdentity::Elf {
        build_id: build_id(&file).map_err(damaged)?,
        has_debug: contents::has_debug(&file),
        has_code: contents::has_code(&file),
    })
}

/// Finds a section, by its start and size, that reaches beyond the end of the file.
fn check(data: &[u8], mut sections: impl Iterator<Item = (u64, u64)>) -> Result<(), IdentifyError> {
    let len = data.len() as u64;
    let within = |(start, size): (u64, u64)| start.checked_add(size).is_some_and(|end| end <= len);
    match sections.all(within) {
        true => Ok(()),
        false => Err(damaged("a section reaches beyond the end of the file")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::PdbFormat;
    use std::fs;

    fn read(path: &str) -> Vec<u8> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../testdata")
            .join(path);
        fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    fn damaged(data: &[u8]) -> bool {
        matches!(identity_of(data), Err(IdentifyError::Damaged(_)))
    }

    /// The PDB id in an image is the identity of that PDB, and a truncated PDB is detected.
    #[test]
    fn images_and_their_pdbs_agree() {
        let pairs = [
            ("clr10/workload/Workload", "dll", PdbFormat::Portable),
            ("clr31/workload/PluginA", "dll", PdbFormat::Portable),
            ("pdb-small/x86_64/small", "exe", PdbFormat::Windows),
            ("pdb-small/i686/small", "exe", PdbFormat::Windows),
            ("pdb-small/aarch64/small", "exe", PdbFormat::Windows),
        ];
        for (name, ending, format) in pairs {
            let image = read(&format!("{name}.{ending}"));
            let pdb = read(&format!("{name}.pdb"));
            let actual = identity_of(&image).unwrap();
            let FileIdentity::Image { pe, pdbs } = &actual else {
                panic!("{name} is {actual}");
            };
            let (pe, id) = (Some(*pe), pdbs[0]);
            let stamp = None;
            let wanted = Wanted::Pdb { id, stamp, format };
            let pdb_says = identity_of(&pdb).unwrap();
            assert!(wanted.accepts(&pdb_says), "{wanted}, found {pdb_says}");
            assert!(Wanted::Image { pe, pdb: Some(id) }.accepts(&actual));
            for file in [&image, &pdb] {
                for part in 0..8 {
                    assert!(damaged(&file[..file.len() * part / 8]), "{name}: {part}/8");
                }
            }
        }
    }

    #[test]
    fn maps_of_precompiled_images() {
        for target in ["linux-x64", "linux-arm64", "windows-x64"] {
            let map = read(&format!("clr10/r2r/{target}/Workload.ni.r2rmap"));
            let image = read(&format!("clr10/r2r/{target}/Workload.dll"));
            assert!(matches!(
                identity_of(&image),
                Ok(FileIdentity::Image { .. })
            ));
            let image = PeImage::parse(&image).unwrap();
            let id = image.perf_map_id().unwrap();
            let wanted = Wanted::R2rMap {
                signature: Some(id.signature),
                version: id.version,
            };
            let actual = identity_of(&map).unwrap();
            assert!(wanted.accepts(&actual), "{wanted}, found {actual}");
        }
    }

    /// Reads this test's own binary, if it is an ELF file.
    #[test]
    #[cfg(target_os = "linux")]
    fn elf_files() {
        let data = FileData::map(&std::env::current_exe().unwrap()).unwrap();
        match identity_of(&data).unwrap() {
            FileIdentity::Elf {
                has_debug,
                has_code,
                ..
            } => assert!(has_debug && has_code),
            other => panic!("{other}"),
        }
        assert!(damaged(&data[..data.len() - 1]));
        assert!(damaged(&data[..data.len() / 2]));
    }
}
