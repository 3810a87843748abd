//! ELF images: finds their symbol file and maps their addresses to addresses in that file.

use std::sync::Arc;

use chronosym_symbols::identity::{BuildId, IdentityKind, Wanted};
use chronosym_symbols::{Address, Mapping};

use crate::files::{Files, Frames};
use crate::mapped;
use crate::object::{self, ObjectFile};
use crate::search::{ANY, FileAt, FileRequest, Search, SymbolFile};
use chronosym_core::Addressing;
use chronosym_core::ImageRef;

/// Maps an RVA of an image to an address in an ELF file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ElfAddressing {
    addressing: Addressing,
    /// Added to the RVA.
    bias: u64,
}

impl ElfAddressing {
    /// Uses the addressing that the recorder states.
    pub(super) fn of(image: &ImageRef<'_>) -> Self {
        ElfAddressing {
            addressing: image.addressing,
            bias: 0,
        }
    }

    /// Returns the addressing of a debug file. Its program headers need not map file offsets to
    /// addresses; `offset_bias` does. `None` if that has no result.
    pub(super) fn of_debug_file(
        image: &ImageRef<'_>,
        offset_bias: impl FnOnce(Mapping) -> Option<u64>,
    ) -> Option<Self> {
        if image.addressing != Addressing::FileOffset {
            return Some(Self::of(image));
        }
        let bias = offset_bias(Mapping {
            file_offset: image.file_offset,
            size: image.size,
        })?;
        Some(ElfAddressing {
            addressing: Addressing::Virtual,
            bias,
        })
    }

    pub(super) fn address(self, rva: u64) -> Address {
        let rva = rva.wrapping_add(self.bias);
        match self.addressing {
            Addressing::Virtual => Address::VirtualAddress(rva),
            Addressing::FileOffset => Address::FileOffset(rva),
            Addressing::Rva => Address::Rva(rva),
        }
    }
}

/// The symbol file of an ELF image.
pub(super) struct ElfFile {
    pub symbols: SymbolFile,
    addressing: ElfAddressing,
}

impl ElfFile {
    pub(super) fn find(image: &ImageRef<'_>, files: &Files) -> Self {
        let stated = image.build_id.and_then(BuildId::parse);
        let mapped = match stated {
            Some(_) => mapped::of_this_machine(image, &files.search),
            None => Some(mapped::find(image, &files.search)),
        };
        let own = mapped.as_ref().and_then(SymbolFile::build_id).cloned();
        let by_id = stated.clone().or(own.clone()).map(|id| {
            let mapped = mapped.clone().filter(|_| own.as_ref() == Some(&id));
            let (mut symbols, addressing) = find(image, id.clone(), mapped, files);
            breakpad(image, &id, &mut symbols, files).unwrap_or((symbols, addressing))
        });
        let (symbols, addressing) = match (by_id, mapped) {
            (Some((symbols, addressing)), mapped) => {
                let located_by = mapped
                    .filter(|_| stated.is_none())
                    .and_then(|it| it.located_by);
                (
                    SymbolFile {
                        located_by,
                        ..symbols
                    },
                    addressing,
                )
            }
            (None, mapped) => (
                mapped.unwrap_or_else(SymbolFile::unidentified),
                ElfAddressing::of(image),
            ),
        };
        ElfFile {
            symbols,
            addressing,
        }
    }

    /// Finds the symbol file by the image's build ID, or by the path from which it was mapped.
    pub(super) fn image(image: &ImageRef<'_>, search: &Search) -> SymbolFile {
        let Some(id) = image.build_id.and_then(BuildId::parse) else {
            return mapped::find(image, search);
        };
        let here = mapped::of_this_machine(image, search);
        match here.filter(|mapped| mapped.build_id() == Some(&id)) {
            Some(mapped) => mapped,
            None => search.first([FileRequest::at(Wanted::ElfImage(id), image.path)]),
        }
    }

    /// Returns the frames at an RVA, innermost first; none if the file has no name for it.
    pub(super) fn frames(&self, files: &Files, rva: u64) -> Frames {
        match self.symbols.file() {
            Some(at) => {
                let mut frames = object::frames(files, at, self.addressing.address(rva));
                if self.symbols.matched_by() == Some(IdentityKind::Path) {
                    let frames = frames.iter_mut().flatten();
                    frames.for_each(|frame| frame.approximate = true);
                }
                frames
            }
            None => Err(self.symbols.name_reason()),
        }
    }

    /// Resolves many addresses in one pass and caches the results.
    pub(super) fn prepare(&self, files: &Files, rvas: &[u64]) {
        if let Some(at) = self.symbols.file() {
            object::prepare(
                files,
                at,
                rvas.iter().map(|&rva| self.addressing.address(rva)),
            );
        }
    }
}

/// Finds the Breakpad symbol file of an image, if there is no file with symbols other than dynamic
/// ones.
fn breakpad(
    image: &ImageRef<'_>,
    id: &BuildId,
    found: &mut SymbolFile,
    files: &Files,
) -> Option<(SymbolFile, ElfAddressing)> {
    if found.found.is_ok() && !found.is_stripped() {
        return None;
    }
    let search = |wanted| {
        let mut other = SymbolFile::unidentified();
        let request = FileRequest::at(wanted, image.path);
        files.search.everywhere(&mut other, &request, ANY);
        let mut attempts = found.attempts.clone();
        attempts.append(&mut other.attempts);
        match other.found {
            Ok(_) => Some(SymbolFile { attempts, ..other }),
            Err(_) => {
                found.attempts = attempts;
                None
            }
        }
    };
    let other = Wanted::breakpad(id).into_iter().find_map(search)?;
    // Addresses of symbol files count from the base of the image, which only the image states.
    let own = found
        .file()
        .and_then(|at| files.open::<ObjectFile>(at).ok());
    let base = own.as_ref().map_or(0, |own| own.symbols.base());
    let bias = match image.addressing {
        Addressing::Rva => 0,
        Addressing::Virtual => base.wrapping_neg(),
        Addressing::FileOffset => {
            let mapping = Mapping {
                file_offset: image.file_offset,
                size: image.size,
            };
            own?.symbols.offset_bias(mapping)?.wrapping_sub(base)
        }
    };
    let addressing = Addressing::Virtual;
    Some((other, ElfAddressing { addressing, bias }))
}

/// Finds the symbol file of an image by its build ID: its debug file, or the image itself, which
/// may be `mapped`.
///
/// If both are available, the image is opened with its debug file: the image has the dynamic
/// symbols, and its program headers map file offsets to addresses, which those of a debug file need
/// not do.
fn find(
    image: &ImageRef<'_>,
    id: BuildId,
    mapped: Option<SymbolFile>,
    files: &Files,
) -> (SymbolFile, ElfAddressing) {
    let search = &files.search;
    let [debug, own] = [Wanted::ElfDebug(id.clone()), Wanted::ElfImage(id)]
        .map(|wanted| FileRequest::object(wanted, image.path));
    let stated = ElfAddressing::of(image);
    let mut symbols = SymbolFile::unidentified();
    search.folders(&mut symbols, &debug, ANY);
    if symbols.found.is_err() {
        match &mapped {
            Some(whole) if whole.id.as_ref().is_some_and(|id| debug.wanted.accepts(id)) => {
                return (whole.clone(), stated);
            }
            _ => search.stores(&mut symbols, &debug, ANY),
        }
    }
    let Some(at) = symbols.file().cloned() else {
        if let Some(mut stripped) = mapped {
            symbols.attempts.append(&mut stripped.attempts);
            let (wanted, attempts) = (symbols.wanted, symbols.attempts);
            let stripped = SymbolFile {
                wanted,
                attempts,
                ..stripped
            };
            return (stripped, stated);
        }
        search.everywhere(&mut symbols, &own, ANY);
        return (symbols, stated);
    };
    let file = files.open::<ObjectFile>(&at).ok();
    if file.as_ref().is_some_and(|file| file.symbols.has_offsets()) {
        // The image itself, which is not stripped.
        return (symbols, stated);
    }
    let alone = file.as_ref().and_then(|file| {
        ElfAddressing::of_debug_file(image, |mapping| file.symbols.offset_bias(mapping))
    });
    let mut other = mapped.unwrap_or_else(|| {
        let mut other = SymbolFile::unidentified();
        search.folders(&mut other, &own, ANY);
        other
    });
    if other.found.is_err() && alone.is_none() {
        other.or(&search.find(&own, true));
    }
    if let Some(image) = other.file() {
        symbols.at = Some(Arc::new(FileAt {
            debug_file: Some(at.path.clone()),
            ..FileAt::clone(image)
        }));
        return (symbols, stated);
    }
    match alone {
        None if file.is_some() => {
            other.attempts.splice(0..0, symbols.attempts);
            (other, stated)
        }
        // A damaged file is reported when it is used.
        alone => (symbols, alone.unwrap_or(stated)),
    }
}
