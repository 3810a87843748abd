//! Finds the file of an ELF image at the path from which it was mapped, if the trace states no
//! build ID or was recorded on this machine.

use std::path::Path;
use std::sync::Arc;

use chronosym_core::{Addressing, FileNumber, ImageRef, MappedFile, file_name};
use chronosym_symbols::identity::{FileIdentity, IdentityKind, Wanted};
use chronosym_symbols::store::{
    Attempt, AttemptResult, IdentifyError, NoFile, SearchLocation, local_path, read_identity,
};

use crate::search::{FileAt, FoundFile, Search, SymbolFile};

/// Returns whether the mapping shows that the image is an ELF file; nothing else is known about it.
pub(super) fn is_elf(image: &ImageRef<'_>) -> bool {
    let has_pe_identity = image.pdb.or(image.il_pdb).is_some() || image.timestamp.is_some();
    let endings = [".dll", ".exe"];
    let is_named_pe = endings.iter().any(|ending| image.path.ends_with(ending));
    image.addressing == Addressing::FileOffset && !has_pe_identity && !is_named_pe
}

/// Finds the file if the recording was made on this machine.
pub(super) fn of_this_machine(image: &ImageRef<'_>, search: &Search) -> Option<SymbolFile> {
    image.file?.here_until_ns?;
    Some(find(image, search)).filter(|file| file.found.is_ok())
}

/// Finds the file among those that the user names, or at the path in the trace. The path is used if
/// such paths are trusted, or if the recording was made on this machine and the file is the one
/// that was mapped.
pub(super) fn find(image: &ImageRef<'_>, search: &Search) -> SymbolFile {
    let config = search.config();
    let mut symbols = SymbolFile {
        wanted: Some(Wanted::ElfMapped(image.file.map(|file| file.number))),
        ..SymbolFile::unidentified()
    };
    let name = file_name(image.path);
    let is_named = |path: &&std::path::PathBuf| {
        path.file_name().is_some_and(|own| own == name) && path.is_file()
    };
    if let Some(path) = config.folders.iter().find(is_named) {
        let location = SearchLocation::File(path.clone());
        symbols.take(path, location, Ok(IdentityKind::Path));
    }
    if symbols.found.is_err() && !image.path.is_empty() {
        let location = SearchLocation::TracePath(image.path.chars().take(4096).collect());
        match local_path(image.path) {
            Ok(path) => {
                let kind = match_file(&path, image.file, config.trust_trace_paths);
                symbols.take(&path, location, kind);
            }
            Err(result) => symbols.attempts.push(Attempt { location, result }),
        }
    }
    symbols
}

/// Returns what shows that the file at a path is the one that was mapped.
fn match_file(
    path: &Path,
    mapped: Option<MappedFile>,
    is_trusted: bool,
) -> Result<IdentityKind, AttemptResult> {
    let here_until_ns = mapped.and_then(|mapped| mapped.here_until_ns);
    if here_until_ns.is_none() && !is_trusted {
        return Err(AttemptResult::NotTrusted);
    }
    let (number, changed_ns) = number_of(path).ok_or(AttemptResult::NotFound)?;
    let is_same = mapped.is_some_and(|mapped| match is_trusted {
        // Some file systems have several device numbers, and the recorder may state another than
        // `stat`.
        true => mapped.number.inode == number.inode,
        false => mapped.number.is_same_file(&number),
    });
    match here_until_ns {
        Some(until) if !is_same || changed_ns > until => {
            let why = "the file at this path was replaced after the recording".into();
            Err(AttemptResult::Refused(why))
        }
        _ if is_same => Ok(IdentityKind::FileNumber),
        _ => Ok(IdentityKind::Path),
    }
}

impl SymbolFile {
    /// Uses a file if it is an ELF image, else notes why not.
    fn take(
        &mut self,
        path: &Path,
        location: SearchLocation,
        kind: Result<IdentityKind, AttemptResult>,
    ) {
        let wanted = self.wanted.clone().unwrap_or(Wanted::ElfMapped(None));
        let identified = kind.and_then(|kind| match read_identity(path, &wanted) {
            Ok(id @ FileIdentity::Elf { has_code: true, .. }) => Ok((kind, id)),
            Ok(id) => Err(AttemptResult::Mismatch(id)),
            Err(IdentifyError::Damaged(why)) => Err(AttemptResult::Damaged(why)),
            Err(IdentifyError::Unreadable(why) | IdentifyError::Unfit(why)) => {
                Err(AttemptResult::Failed(why))
            }
            Err(_) => Err(AttemptResult::NotFound),
        });
        let result = match identified {
            Ok((kind, id)) => {
                self.found = Ok(FoundFile::File(path.to_owned()));
                self.at = Some(Arc::new(FileAt::new(path.to_owned(), Some(id.clone()))));
                (self.id, self.located_by) = (Some(id), Some(kind));
                AttemptResult::Found
            }
            Err(result) => {
                if result == AttemptResult::NotTrusted {
                    let path = path.display().to_string();
                    self.found = Err(NoFile::PathNotTrusted { path });
                }
                result
            }
        };
        self.attempts.push(Attempt { location, result });
    }
}

/// Returns the inode and device of a file, and its last change in ns since 1970-01-01 UTC.
#[cfg(target_os = "linux")]
fn number_of(path: &Path) -> Option<(FileNumber, u64)> {
    use std::os::unix::fs::MetadataExt;
    let data = path.metadata().ok().filter(|data| data.is_file())?;
    // Device numbers as the C library packs them.
    let device = data.dev();
    let major = (device >> 8 & 0xfff) | (device >> 32 & !0xfff);
    let minor = (device & 0xff) | (device >> 12 & !0xff);
    let number = FileNumber {
        device: (major as u32, minor as u32),
        inode: data.ino(),
        generation: 0,
    };
    let changed_ns = i128::from(data.mtime()) * 1_000_000_000 + i128::from(data.mtime_nsec());
    Some((number, u64::try_from(changed_ns).unwrap_or(0)))
}

#[cfg(not(target_os = "linux"))]
fn number_of(path: &Path) -> Option<(FileNumber, u64)> {
    let number = FileNumber {
        device: (0, 0),
        inode: 0,
        generation: 0,
    };
    path.is_file().then_some((number, 0))
}
